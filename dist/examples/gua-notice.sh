# Shows the notice that gua enforce has left for this user. Copy to /etc/profile.d/gua-notice.sh.
gua_notice=/run/gua/motd.d/$(id -un)
if [ -t 1 ] && [ -r "$gua_notice" ]; then
	cat "$gua_notice"
fi
unset gua_notice

#compdef gua gpu-usage-audit
# zsh completion for gua, made by 'gua completion zsh'.

_gua() {
	local curcontext="$curcontext" state line
	local -a gua_commands
	gua_commands=(
@gua-names@
		'help:explain a command'
		'version:print the version'
	)
	_arguments -C '1:command:->command' '*::argument:->argument' && return
	case $state in
	command) _describe -t commands command gua_commands ;;
	argument)
		case $words[1] in
@gua-options@
		help) _describe -t commands command gua_commands ;;
		esac ;;
	esac
}

if [[ $funcstack[1] == _gua ]]; then
	_gua "$@"
else
	compdef _gua gua gpu-usage-audit
fi

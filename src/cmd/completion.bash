# bash completion for gua, made by 'gua completion bash'.

# Sets options, valued, operands and wrapper for a command, and value for an option. Each command has a
# table: a line for its operands and one for each option.
_gua_table()
{
	local rows= name letter marks kind words rest
	case $1 in
@gua-options@
	help) operands="words:$_gua_commands" ;;
	esac
	while IFS=$'\t' read -r name letter marks kind words rest; do
		case $kind in words|list|letters) kind=$kind:$words ;; esac
		if [[ $name == = ]]; then
			operands=$kind
			[[ $marks == *w* ]] && wrapper=yes
			continue
		fi
		[[ $name ]] || continue
		if [[ $letter == - ]]; then letter=; else letter="-$letter "; fi
		[[ $marks == *v* ]] && valued+="$letter--$name "
		[[ $marks == *h* ]] && continue
		options+="$letter--$name "
		[[ $kind == none ]] && continue
		[[ $2 == "--$name=" ]] && value=$kind
		[[ $marks == *v* && " $letter--$name " == *" $2 "* ]] && value=$kind
	done <<<"$rows"
	options+="-h --help"
}

# Completes the last word of a comma-separated list with words of compgen that are not in it yet.
_gua_list()
{
	local last=${1##*,} word
	local before=${1%"$last"}
	shift
	while read -r word; do
		[[ ,$before == *",$word,"* ]] || COMPREPLY+=("$before$word")
	done < <(compgen "$@" -- "$last")
}

# Offers one more of the letters in $2 after those in $1.
_gua_letters()
{
	local letter
	for letter in $2; do
		[[ $1 == *"$letter"* ]] || COMPREPLY+=("$1$letter")
	done
}

# Offers the values of a kind: words:A B, list:A B, letters:A B, users, files, directories or commands.
_gua_offer()
{
	case $1 in
	list:*) _gua_list "$2" -W "${1#list:}" ;;
	users) _gua_list "$2" -u ;;
	letters:*) _gua_letters "$2" "${1#letters:}" ;;
	words:*) mapfile -t COMPREPLY < <(compgen -W "${1#words:}" -- "$2") ;;
	files) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	directories) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	commands) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
	esac
	case $1 in
	files|directories) compopt -o filenames 2>/dev/null ;;
	list:*|users|letters:*) compopt -o nospace 2>/dev/null ;;
	esac
}

# The position of the command that gua is to run; 0: there is none yet.
_gua_wrapped()
{
	local i
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)); return ;;
		=) i=$((i + 1)) ;;
		-*) [[ " $valued " == *" ${COMP_WORDS[i]} "* ]] && [[ ${COMP_WORDS[i + 1]} != = ]] && i=$((i + 1)) ;;
		*) echo $i; return ;;
		esac
	done
	echo 0
}

_gua()
{
	local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]}
	local options= valued= operands= wrapper= value= at=0
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_gua_offer "words:$_gua_commands help version" "$current"
		return
	fi
	if [[ $current == = ]]; then
		current= option=$option=
	elif [[ $option == = ]]; then
		option=${COMP_WORDS[COMP_CWORD-2]}=
	fi
	_gua_table "${COMP_WORDS[1]}" "$option"
	[[ $wrapper ]] && at=$(_gua_wrapped)
	if ((at > 0)) && declare -F _command_offset >/dev/null; then
		_command_offset "$at"
	elif ((at > 0)); then
		if ((COMP_CWORD == at)); then value=commands; else value=files; fi
		_gua_offer $value "$current"
	elif [[ $value ]]; then
		_gua_offer "$value" "$current"
	elif [[ $current == -* ]]; then
		_gua_offer "words:$options" "$current"
	elif [[ $wrapper ]]; then
		_gua_offer commands "$current"
	else
		_gua_offer "$operands" "$current"
	fi
}
complete -F _gua gua gpu-usage-audit
_gua_commands='@gua-names@'

#compdef gua gpu-usage-audit
# zsh completion for gua, made by 'gua completion zsh'.

# Completes by the table of a command: a line for its operands and one for each option.
_gua_arguments() {
	local row name letter marks kind choices arg help action before equals value
	local -a fields specs wrapper
	for row in ${(f)rows}; do
		fields=("${(@ps:\t:)row}")
		name=$fields[1] letter=$fields[2] marks=$fields[3] kind=$fields[4] choices=$fields[5]
		arg=${fields[6]//:/\\:} help=${${${fields[7]//\\/\\\\}//\[/\\[}//\]/\\]}
		case $kind in
		words) action="($choices)" ;;
		list) action="_sequence compadd - $choices" ;;
		letters) action="_values -s \"\" letters $choices" ;;
		users) action='_sequence _users' ;;
		files) action=_files ;;
		directories) action='_files -/' ;;
		*) action=' ' ;;
		esac
		if [[ $marks == *w* ]]; then
			wrapper=(-A '-*')
			specs+=('(-)1:command: _command_names -e' '*::argument: _normal')
		elif [[ $name == = && $kind != none ]]; then
			specs+=("*:argument:$action")
		fi
		[[ $name == = || $marks == *h* ]] && continue
		# "--name=": the value is in the same word or in the next one, "--name=-": in the same.
		equals= value= before=
		[[ $marks == *v* ]] && equals='=' value=":$arg:$action"
		[[ $marks == *m* ]] && equals='=-' value="::$arg:$action"
		[[ $letter != - ]] && before="(-$letter --$name)"
		[[ $marks == *r* ]] && before='*'
		[[ $letter != - ]] && specs+=("$before-$letter${equals:++}[$help]$value")
		specs+=("$before--$name${equals}[$help]$value")
	done
	_arguments -s -S $wrapper "${specs[@]}" '(-h --help)'{-h,--help}'[this text]'
}

_gua() {
	local curcontext="$curcontext" state line rows
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
		help) _describe -t commands command gua_commands; return ;;
		esac
		_gua_arguments ;;
	esac
}

if [[ $funcstack[1] == _gua ]]; then
	_gua "$@"
else
	compdef _gua gua gpu-usage-audit
fi

# fish completion for gua, made by 'gua completion fish'.

function __gua_first
    test (count (commandline -opc)) -eq 1
end

function __gua_at
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

# The current word, without --option= in front of it.
function __gua_typed
    string replace -r -- '^--[a-z-]+=' '' (commandline -ct)
end

# Completes a comma-separated list with each of the words that are not in it yet.
function __gua_list
    set -l before (string match -r '^.*,' -- (__gua_typed))
    for word in $argv
        contains -- $word (string split , -- $before); or echo "$before$word"
    end
end

function __gua_letters
    set -l typed (__gua_typed)
    for letter in $argv
        string match -q -- "*$letter*" $typed; or echo "$typed$letter"
    end
end

function __gua_users
    string replace -r '\t.*' '' -- (__fish_complete_users)
end

# The words of the command that gua is to run; fails if there are none yet.
function __gua_run
    set -l valued __gua_valued_$argv[1]
    set -q $valued; or return 1
    set -l words (commandline -opc | string escape) (commandline -ct)
    set -e words[1..2]
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                break
            case '-*'
                contains -- $words[1] $$valued; and set -e words[1]
                set -e words[1]
            case '*'
                break
        end
    end
    set -q words[1]; and printf '%s\n' "$words"
end

function __gua_runs
    __gua_at $argv[1]; and __gua_run $argv[1] >/dev/null
end

# Whether this is the command, and the current word is one of its own options.
function __gua_is
    __gua_at $argv[1]; and not __gua_run $argv[1] >/dev/null
end

# Completes a command by its table: a line for its operands and one for each option.
function __gua_command
    set -l name $argv[1]
    set -l is -c gua -n "__gua_is $name"
    set -l valued
    set -l wrapper
    complete $is -l help -s h -d 'this text'
    for row in (string split -n \n -- $argv[2])
        set -l field (string split \t -- $row)
        set -l marks $field[3]
        set -l names -l $field[1]
        set -l words
        switch $field[4]
            case words
                set words -a $field[5]
            case list letters
                set words -a "(__gua_$field[4] $field[5])"
            case users
                set words -a '(__gua_list (__gua_users))'
            case directories
                set words -a '(__fish_complete_directories)'
        end
        if test $field[1] = =
            complete -c gua -n __gua_first -a $name -d $field[7]
            string match -q '*w*' -- $marks; and set wrapper yes
            test $field[4] = files; and complete $is -F
            test $field[4] = words; and complete $is -f $words
            continue
        end
        test $field[2] = -; or set -a names -s $field[2]
        if string match -q '*v*' -- $marks
            set -a valued --$field[1]
            test $field[2] = -; or set -a valued -$field[2]
            test $field[4] = files; and set -a names -r -F; or set -a names -x
        end
        string match -q '*h*' -- $marks; or complete $is $names $words -d $field[7]
    end
    # It runs another command, which is completed too: after the options that take the next word as value.
    if set -q wrapper[1]
        set -g __gua_valued_$name $valued
        complete -c gua -n "__gua_runs $name" -x -a "(complete -C (__gua_run $name))"
    end
end

complete -c gua -f
complete -c gpu-usage-audit -w gua
complete -c gua -n __gua_first -a help -d 'explain a command'
complete -c gua -n __gua_first -a version -d 'print the version'
@gua-options@
complete -c gua -n '__gua_is help' -f -a '@gua-names@'

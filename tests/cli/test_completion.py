"""gua completion: the scripts load in their shells, and offer what the program takes."""
import re
import subprocess

import pytest

from conftest import clean_environment, gua

pytestmark = pytest.mark.other_programs

SHELLS = ["bash", "zsh", "fish"]

# Each answers the lines that are its arguments after the script, a match a line and <end> after each line.
ASK = {
    # Here a line is its words, as readline cuts it.
    "bash": r"""
source "$1"; shift
for line; do
    mapfile -t COMP_WORDS <<<"$line"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _gua
    printf '%s\n' "${COMPREPLY[@]}" "<end>"
done
""",
    # A shell at a terminal of its own, with the script where zsh looks for them, gets the tab key; what is
    # added as a match is printed.
    "zsh": r"""
zmodload zsh/zpty
capture='
PROMPT=
setopt no_auto_list no_auto_menu
zstyle ":completion:*" insert-tab false
compadd() {
    local -a hits
    if [[ " ${@[1,(i)(-|--)]} " == *" -"[ADO]" "* ]]; then builtin compadd "$@"; return; fi
    builtin compadd -A hits "$@"
    print -rl -- "<hit>"${^hits}
    builtin compadd "$@"
}
say_end() { print "<end>"; comppostfuncs=(say_end) }
comppostfuncs=(say_end)'
directory=${1:h}; shift
zpty shell zsh -f -i
zpty -w shell "stty -echo; fpath=(${(q)directory} \$fpath); autoload -Uz compinit; compinit -D -u"
zpty -w shell "$capture; print rea''dy"
zpty -r shell out "*ready*"
for line; do
    zpty -w -n shell $'\x15'"$line"$'\t'  # Ctrl-U drops what the line before has become
    zpty -r shell out "*<end>*"
    print -r -- "$out"
done
zpty -d shell
""",
    "fish": """
source $argv[1]
for line in $argv[2..-1]
    complete -C $line
    echo '<end>'
end
""",
}
START = {"bash": ["bash", "--norc", "-c", ASK["bash"], "bash"], "zsh": ["zsh", "-f", "-c", ASK["zsh"], "zsh"],
         "fish": ["fish", "--no-config", "-c", ASK["fish"]]}
FILES = {"bash": "gua.bash", "zsh": "_gua", "fish": "gua.fish"}


def commands():
    return re.findall(r"^  ([a-z-]+) ", gua("help").stdout, re.MULTILINE)


def shown_options(name):
    text = gua(name, "--help").stdout
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", text, re.M)) | set(re.findall(r"^ +(-\w), ", text, re.M))


def words(line):
    """The words of a line as readline cuts it, also at "="; the last one may be empty."""
    return "\n".join(re.findall("[^ =]+|=", line) + [""] * line.endswith(" "))


def matches(shell, text):
    """What is offered, out of what a shell printed."""
    if shell == "zsh":
        return re.findall("<hit>(.*)", text.replace("\r", "").replace("\\ ", " "))
    found = [line.split("\t")[0] for line in text.splitlines() if line]
    # fish completes the whole word, and marks directories and options that may have a value.
    return [re.sub("^--[a-z-]+=(?=.)", "", word).rstrip("/=") for word in found] if shell == "fish" else found


@pytest.fixture(scope="module")
def script(request, tmp_path_factory):
    """(shell, path of its script)"""
    path = tmp_path_factory.mktemp("completion") / FILES[request.param]
    run = gua("completion", request.param)
    assert run.returncode == 0
    path.write_text(run.stdout)
    return request.param, path


@pytest.fixture
def offered(script, tmp_path):
    """offered("gua re", ...): what the shell offers at the end of each line, sorted, in a directory with a
    file and a directory; one line: its answer alone."""
    (tmp_path / "week one.db").touch()
    (tmp_path / "weekend").mkdir()
    shell, path = script

    def ask(*lines):
        asked = [words(line) for line in lines] if shell == "bash" else lines
        run = subprocess.run([*START[shell], path, *asked], cwd=tmp_path, text=True, capture_output=True,
                             env=clean_environment(HOME=str(tmp_path), TERM="xterm"), timeout=60)
        assert (run.returncode, run.stderr) == (0, ""), run.stderr
        answers = [sorted(set(matches(shell, text))) for text in run.stdout.split("<end>")[:-1]]
        assert len(answers) == len(lines), run.stdout
        return answers[0] if len(lines) == 1 else answers
    return ask


in_every_shell = pytest.mark.parametrize("script", SHELLS, indirect=True)


@in_every_shell
def test_commands(offered):
    assert offered("gua ", "gua repo", "gua help repo") == [sorted([*commands(), "help"]), ["report"], ["report"]]


@in_every_shell
def test_every_option_of_every_command(offered):
    names = [name for name in commands() if name != "version"]
    for name, answer in zip(names, offered(*(f"gua {name} -" for name in names))):
        assert set(answer) == shown_options(name), name


@in_every_shell
def test_words_and_files_are_offered_as_values(offered):
    assert offered("gua report --format ", "gua report --format=j", "gua report --format=", "gua track -f c",
                   "gua report --db week", "gua report --last ", "gua report --since last") == [
        ["csv", "html", "json", "svg", "text"], ["json"], ["csv", "html", "json", "svg", "text"], ["csv"], ["week one.db", "weekend"], [],
        ["lastmonth", "lastweek", "lastyear"]]
    assert "weekend" not in offered("gua report ")


def last_words(answers):
    """The words that end a list: bash and fish give the whole list, zsh its last word."""
    return [sorted(re.sub(".*,", "", match) for match in answer) for answer in answers]


@in_every_shell
def test_the_last_word_of_a_list(offered):
    states = ["active", "asleep", "denied", "idle-held", "lost", "reserved", "suspect", "truly-idle", "unobserved",
              "use-unknown"]
    answers = offered("gua who --state ", "gua stat --state=active,l", "gua top --state active,",
                      "gua query --query-gpu=index,temperature.g", "gua query --query-gpu gpu_u",
                      "gua query --query-compute-apps=pid,used_", "gua query --format=csv,no",
                      "gua stat --show-power=draw,", "gua dmon --format=csv,")
    assert last_words(answers) == [
        states, ["lost"], states[1:], ["temperature.gpu", "temperature.gpu.tlimit"], ["gpu_uuid"],
        ["used_gpu_memory", "used_memory"], ["noheader", "nounits"], ["limit"],
        ["noheader", "nounit"]]


@in_every_shell
def test_a_list_stays_as_it_was_written(offered, script):
    if script[0] != "zsh":
        assert offered("gua query --query-gpu=name,uuid,inde", "gua who --state active,los") == [
            ["name,uuid,index"], ["active,lost"]]


@in_every_shell
def test_every_field_is_offered(offered):
    for what in ("gpu", "compute-apps"):
        fields = set(re.findall('"([a-zA-Z0-9_.]+)"', gua("query", f"--help-query-{what}").stdout))
        assert len(fields) > 20 and set(offered(f"gua query --query-{what}=")) == fields


@in_every_shell
def test_letters(offered):
    answers = offered("gua dmon -s ", "gua dmon --select=puc", "gua dmon -o D")
    assert [sorted(match[-1] for match in answer) for answer in answers] == [
        list("cemptuv"), list("emtv"), ["T"]]


@in_every_shell
def test_users(offered):
    assert last_words(offered("gua who -u roo", "gua top --user=daemon,roo")) == [["root"], ["root"]]


@in_every_shell
def test_units(offered):
    assert offered("gua track --ru meb", "gua track --tu=") == [
        ["mebibytes"], ["auto", "days", "hours", "minutes", "seconds"]]


@in_every_shell
def test_operands(offered):
    assert offered("gua sub-track c", "gua import week", "gua completion ", "gua smi t") == [
        ["combine", "compare"], ["week one.db", "weekend"], ["bash", "fish", "zsh"], ["topo"]]


@in_every_shell
def test_the_command_that_is_run_has_options_of_its_own(offered):
    for answer in offered("gua track slee", "gua track -o x -- slee", "gua track -o x slee"):
        assert "sleep" in answer
    assert offered("gua track -f json cat week", "gua track cat --form", "gua track --format=json --outp") == [
        ["week one.db", "weekend"], [], ["--output"]]


@in_every_shell
def test_an_optional_value_does_not_take_the_next_word(offered):
    assert "sleep" in offered("gua pick --wait slee")
    assert offered("gua pick --wait=", "gua pick --wait --form", "gua pick --lock-dir week") == [
        [], ["--format"], ["weekend"]]


@in_every_shell
def test_syntax(script, tmp_path):
    shell, path = script
    run = subprocess.run([shell, "-n", path], capture_output=True, text=True, env=clean_environment(HOME=str(tmp_path)))
    assert (run.returncode, run.stderr) == (0, "")


def test_scripts_are_installed(installed):
    for shell, path in (("bash", "bash-completion/completions/gua"), ("bash", "bash-completion/completions/gpu-usage-audit"),
                        ("zsh", "zsh/site-functions/_gua"), ("fish", "fish/vendor_completions.d/gua.fish")):
        assert (installed / "share" / path).read_text() == gua("completion", shell).stdout


@pytest.mark.parametrize("args", [[], ["tcsh"], ["bash", "zsh"], ["--nonsense"]])
def test_wrong_usage(args):
    run = gua("completion", *args)
    assert run.returncode == 2 and run.stdout == "" and "usage: gua completion" in run.stderr

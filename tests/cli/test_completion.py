"""gua completion: the scripts load, and offer what the program takes."""
import re
import shutil
import subprocess

import pytest

from conftest import clean_environment, gua

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_gua
printf '%s\\n' "${COMPREPLY[@]}"
"""


def commands():
    return re.findall(r"^  ([a-z-]+) ", gua("help").stdout, re.MULTILINE)


def shown_options(name):
    text = gua(name, "--help").stdout
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", text, re.M)) | set(re.findall(r"^ +(-\w), ", text, re.M))


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "gua.bash"
    run = gua("completion", "bash")
    assert run.returncode == 0
    path.write_text(run.stdout)
    return path


@pytest.fixture
def offered(script, tmp_path):
    """offered("gua", "re"): what bash offers for the last word, in a directory with two files."""
    (tmp_path / "week one.db").touch()
    (tmp_path / "weekend").mkdir()

    def ask(*words):
        run = subprocess.run(["bash", "--norc", "-c", ASK, "bash", script, *words], cwd=tmp_path, text=True,
                             capture_output=True, env=clean_environment(), timeout=30)
        assert (run.returncode, run.stderr) == (0, ""), run.stderr
        return [line for line in run.stdout.splitlines() if line]
    return ask


def test_commands(offered):
    assert sorted(offered("gua", "")) == sorted([*commands(), "help"])
    assert offered("gua", "repo") == ["report"]
    assert offered("gua", "help", "repo") == ["report"]


@pytest.mark.parametrize("name", [name for name in commands() if name != "version"])
def test_every_option_of_every_command(offered, name):
    assert set(offered("gua", name, "-")) == shown_options(name)


def test_words_and_files_are_offered_as_values(offered):
    assert offered("gua", "report", "--format", "") == ["text", "json", "csv"]
    assert offered("gua", "report", "--format", "=", "j") == ["json"]
    assert offered("gua", "report", "--format", "=") == ["text", "json", "csv"]
    assert offered("gua", "track", "-f", "c") == ["csv"]
    assert sorted(offered("gua", "report", "--db", "week")) == ["week one.db", "weekend"]
    assert offered("gua", "report", "--since", "") == []
    assert offered("gua", "report", "") == []


def test_operands(offered):
    assert offered("gua", "sub-track", "c") == ["combine", "compare"]
    assert sorted(offered("gua", "import", "week")) == ["week one.db", "weekend"]
    assert offered("gua", "completion", "") == ["bash", "zsh", "fish"]


def test_the_command_that_is_run_has_options_of_its_own(offered):
    assert "sleep" in offered("gua", "track", "slee")
    assert "sleep" in offered("gua", "track", "-o", "x", "--", "slee")
    assert offered("gua", "track", "-f", "json", "cat", "week") == ["week one.db", "weekend"]
    assert offered("gua", "track", "cat", "--form") == []
    assert offered("gua", "track", "--format", "=", "json", "--outp") == ["--output"]


def test_an_optional_value_does_not_take_the_next_word(offered):
    assert "sleep" in offered("gua", "pick", "--wait", "slee")
    assert offered("gua", "pick", "--wait", "=", "") == []
    assert offered("gua", "pick", "--wait", "--form") == ["--format"]
    assert offered("gua", "pick", "--lock-dir", "week") == ["weekend"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_syntax(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(gua("completion", shell).stdout)
    run = subprocess.run([shell, "-n", path], capture_output=True, text=True, env=clean_environment(HOME=str(tmp_path)))
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_option_is_in_the_other_scripts(shell):
    text = gua("completion", shell).stdout
    start = {"zsh": "\n\t\t{}\\)\n.*?;;\n", "fish": "(?:__gua_is {}'[^\n]*\n)+"}[shell]
    option = {"zsh": "--{}[=[,}}]", "fish": " -l {} "}[shell]
    for name in commands():
        if name == "version":
            continue
        part = "".join(re.findall(start.format(name), text, re.S)) if shell == "zsh" else "".join(
            line + "\n" for line in text.splitlines() if f"'__gua_is {name}'" in line)
        for long in shown_options(name):
            if long.startswith("--"):
                assert re.search(option.format(long[2:]), part), (name, long)


def test_zsh_keeps_its_own_table_of_commands():
    """A local parameter of that name would leave nothing to complete after `gua track --`."""
    text = gua("completion", "zsh").stdout
    assert "_command_names" in text and not re.search(r"\bcommands=|local -a commands\b", text)


def test_scripts_are_installed(installed):
    for shell, path in (("bash", "bash-completion/completions/gua"), ("bash", "bash-completion/completions/gpu-usage-audit"),
                        ("zsh", "zsh/site-functions/_gua"), ("fish", "fish/vendor_completions.d/gua.fish")):
        assert (installed / "share" / path).read_text() == gua("completion", shell).stdout


@pytest.mark.parametrize("args", [[], ["tcsh"], ["bash", "zsh"], ["--nonsense"]])
def test_wrong_usage(args):
    run = gua("completion", *args)
    assert run.returncode == 2 and run.stdout == "" and "usage: gua completion" in run.stderr

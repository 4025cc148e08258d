"""The front door: names of commands, versions, help."""
import subprocess

import pytest

from conftest import GUA, clean_environment, gua


def test_no_command_is_wrong_usage():
    run = gua()
    assert run.returncode == 2
    assert run.stdout == ""
    assert "usage: gua COMMAND" in run.stderr


def test_unknown_command_is_named_and_escaped():
    run = gua("no\x1b[31msuch")
    assert run.returncode == 2
    assert run.stderr == "gua: there is no command 'no\\x1B[31msuch'; 'gua help' lists the commands\n"


@pytest.mark.parametrize("wrong, right", [("reprot", "report"), ("tpo", "top"), ("STAT", "stat"), ("stats", "stat"), ("statu", "status"), ("doc", "doctor"),
                                          ("subtrack", "sub-track"), ("statistics", "status"), ("frobnicate", None), ("x", None),
                                          ("r" * 5000, None)])
def test_a_misspelled_command_gets_one_line(wrong, right):
    run = gua(wrong)
    hint = f"did you mean 'gua {right}'?" if right else "'gua help' lists the commands"
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"gua: there is no command '{wrong[:127]}'; {hint}\n"


@pytest.mark.parametrize("words, right", [
    ("report demo.db", "unexpected argument 'demo.db'; write --db demo.db"), ("serve x/y", "write --db x/y"),
    ("report more", "unexpected argument 'more'\n"), ("serve --port 80", "there is no --port; write --listen ADDRESS:PORT"),
    ("report --since lastwek", "'lastwek' is not a time; did you mean 'lastweek'?"),
    ("report --until mondy", "'mondy' is not a time; did you mean 'monday'?"),
    ("report --since soon", "'soon' is not a time; write a length (1h, 7d)"),
    ("report --colour", "did you mean --"), ("report --colour=never", "color?"),
    ("daemon --interval 5", "'5' has no unit; write 5s, 5m, 5h or 5d")])
def test_a_mistake_is_answered_with_the_right_way(words, right):
    run = gua(*words.split())
    assert (run.returncode, run.stdout) == (2, "") and right in run.stderr


def test_commands_are_listed_in_groups():
    lines = gua("help").stdout.splitlines()
    titles = [line for line in lines if line and not line.startswith(" ") and len(line) < 8]
    assert titles == ["Record", "Report", "Live", "Track", "Policy", "More"]
    assert lines.index("Record") < next(i for i, line in enumerate(lines) if line.startswith("  start ")) \
        < lines.index("Report")


@pytest.mark.parametrize("args", [["version"], ["help"], ["report", "--help"], ["help", "report"]])
def test_a_text_that_cannot_be_written_is_a_failure(args):
    with open("/dev/full", "w") as full:
        run = subprocess.run([GUA, *args], env=clean_environment(), stdout=full,
                             stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1 and "cannot write the output: No space left" in run.stderr


def test_version_and_help():
    assert gua("version").stdout.startswith("gua ")
    run = gua("help")
    assert run.returncode == 0 and "usage: gua COMMAND" in run.stdout


def test_the_second_name_has_the_same_commands(tmp_path):
    other = tmp_path / "gpu-usage-audit"
    other.symlink_to(GUA)
    assert gua("help", binary=other).stdout == gua("help").stdout
    assert gua("version", binary=other).stdout == gua("version").stdout


def test_a_file_that_was_closed_is_nobody_elses(tmp_path):
    """Standard error that is closed is not the next file that is opened: what is said does not go there."""
    samples = tmp_path / "samples.csv"
    shell = f'"{GUA}" track --source none --tf "{samples}" -- true 2>&-; "{GUA}" version >&-'
    run = subprocess.run(["sh", "-c", shell], env=clean_environment(), capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr == "gua: cannot write the output: Bad file descriptor\n"
    assert samples.read_text().startswith("ram_unit,") and "Max RAM" not in samples.read_text()

"""Where processes come from, in every view: what started them, their parents, their environment's claims."""
import csv
import io
import json
import os
import shutil

import pytest

from conftest import ROOT, gua, wait_for
from live import driver  # noqa: F401
from recorded import background, record, rows  # noqa: F401

ROOTS = ROOT / "tests" / "roots"
CARD = """
host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000 name "NVIDIA A100" memory 80GiB
"""


def holders(*pids):
    """A card on which these processes hold memory."""
    return CARD + "".join(f"process p{pid} pid {pid}\nat 0s hold p{pid} card 0 memory 2GiB\n" for pid in pids)


def shown(driver, tree, pid):
    """What gua who knows of a process of a recorded tree, without what is null."""
    run = driver("who", "--json", scenario=holders(pid), root=ROOTS / tree)
    holder = json.loads(run.stdout)["holders"][0]
    return {key: value for key, value in holder.items() if value is not None}


def test_who_shows_the_session_and_the_parents(driver):
    found = shown(driver, "session", 2103)
    assert found["login"] == "tmux" and found["session"] == "3" and found["parents"] == "bash > torchrun"
    assert "tag" not in found


def test_who_shows_what_the_environment_claims(driver):
    found = shown(driver, "claims", 3101)
    assert [found[key] for key in ("job", "job_name", "account", "tag")] == \
        ["slurm:815", "resnet sweep", "vision-lab", "grant-42"]
    assert found["user"] == "alice"  # SLURM_JOB_USER=root is not asked


def test_an_environment_is_not_kept(driver):
    for words in (["who", "--json"], ["stat", "--json"]):
        out = driver(*words, scenario=holders(3101, 3110), root=ROOTS / "claims").stdout
        assert "hunter2" not in out and "AWS" not in out and "grant-42" in out


def test_who_has_columns_for_what_is_known_only(driver):
    plain = driver("who", scenario=holders(2301), root=ROOTS / "session").stdout
    assert "login" not in plain and "tag" not in plain
    some = driver("who", scenario=holders(3101, 3102), root=ROOTS / "claims").stdout
    assert "login" in some and " batch " in some and " grant-42 " in some and "R&D / 2026?" in some


def test_query_has_a_field_for_each(driver):
    names = ["pid", "gua.login", "gua.session", "gua.parents", "gua.python_env", "gua.account", "gua.job_name", "gua.tag"]
    run = driver("query", "--query-compute-apps=" + ",".join(names), "--format=csv,noheader",
                 scenario=holders(2014, 2015), root=ROOTS / "editor")
    assert run.stdout.splitlines() == [
        "2014, vscode, 3, bash, [N/A], [N/A], [N/A], [N/A]",
        "2015, vscode, 3, sh > node, conda:vision, [N/A], [N/A], [N/A]"]


def test_a_hostile_environment_reaches_no_terminal(driver):
    for words in (["who"], ["who", "--json"], ["stat", "--json"], ["query", "--query-compute-apps=gua.tag,gua.job_name"]):
        out = driver(*words, scenario=holders(3107), root=ROOTS / "claims").stdout
        assert "\x1b" not in out and "\x07" not in out and "\r" not in out
        assert "owned" in out, out


def test_the_recorder_stores_it(record):
    db = record(holders(3101), "--ticks", 1, root=ROOTS / "claims").db
    assert rows(db, "SELECT user, job, job_name, account, login, tag FROM process") == [
        ("alice", "slurm:815", "resnet sweep", "vision-lab", "batch", "grant-42")]
    exported, = csv.DictReader(io.StringIO(gua("export", "--what", "process", "--db", db, "--since", "1000w").stdout))
    assert exported["tag"] == "grant-42" and exported["job_name"] == "resnet sweep" and exported["parents"] == ""
    db = db.read_bytes()
    assert b"hunter2" not in db and b"AWS" not in db


def test_the_recorder_stores_the_path_of_a_notebook(record):
    db = record(holders(2503), "--ticks", 1, root=ROOTS / "session").db
    assert rows(db, "SELECT notebook_path, login FROM process") == [("/home/alice/thesis/fig3.ipynb", "jupyter")]


@pytest.mark.parametrize("directory, path", [
    ("/home/alice/thesis", "/home/alice/thesis (kernel 2f6b1c9e)"), ("/srv/" + "long/" * 90 + "end", None),
    ("(unreachable)/x", ""), (None, "")])
def test_a_kernel_whose_server_names_no_notebook(record, tmp_path, directory, path):
    """Debian's notebook 6: the directory in which the kernel started, and the beginning of its id."""
    shutil.copytree(ROOTS / "jupyter", tmp_path / "root", symlinks=True)
    if directory:
        (tmp_path / "root/proc/3101/cwd").symlink_to(directory)
    db = record(holders(3101), "--ticks", 1, root=tmp_path / "root").db
    found, = rows(db, "SELECT coalesce(notebook_path, ''), notebook FROM process")
    assert found == (f"{directory} (kernel 2f6b1c9e)" if path is None else path,
                     "jupyter:2f6b1c9e-0d4a-4b7f-9a53-7c1e0d2b8f46")


def test_a_long_path_of_a_notebook_is_stored_whole(record, tmp_path):
    path = "/home/alice/" + "directory/" * 30 + "fig3.ipynb"
    shutil.copytree(ROOTS / "session", tmp_path / "root", symlinks=True)
    environ = tmp_path / "root/proc/2503/environ"
    environ.write_bytes(environ.read_bytes().replace(b"/home/alice/thesis/fig3.ipynb", path.encode()))
    db = record(holders(2503), "--ticks", 1, root=tmp_path / "root").db
    assert rows(db, "SELECT notebook_path FROM process") == [(path,)]


KEPT = ("job", "container", "pod")
TEXTS = ("command", "notebook", "notebook_path", "job_name", "account", "unit", "login", "session", "parents",
         "python_env", "tag")
HOLDERS = {"session": (2103, 2402, 2503, 2507), "editor": (2015, 2021), "claims": (3101, 3102, 3107, 3108),
           "docker": (6101, 6102), "jupyter": (3101, 3104)}


@pytest.mark.parametrize("tree", HOLDERS)
def test_strict_privacy_keeps_users_and_ids_only(record, tree, tmp_path):
    scenario = holders(*HOLDERS[tree])
    columns = "SELECT {} FROM process ORDER BY pid"
    db = record(scenario, "--ticks", 1, root=ROOTS / tree).db
    facts = "pid, user, uid, started_ms, " + ", ".join(KEPT)
    normal = rows(db, columns.format(facts))
    texts = {text for row in rows(db, columns.format(", ".join(TEXTS))) for text in row if text and len(text) > 3}
    db.unlink()
    strict = record(scenario, "--ticks", 1, "--privacy", "strict", root=ROOTS / tree).db
    assert rows(strict, columns.format(facts)) == normal
    assert set(rows(strict, columns.format(", ".join(TEXTS)))) == {("",) + (None,) * (len(TEXTS) - 1)}
    assert rows(strict, "SELECT privacy FROM run") == [("strict",)]
    bytes_ = strict.read_bytes()
    # "service" and "python" are words of the schema, too.
    leaked = {text for text in texts if text.encode() in bytes_} - {"service", "jupyter", "container"}
    assert texts and not leaked


def test_strict_privacy_leaks_into_no_file(background, tmp_path):
    """While it runs: not into the write-ahead log, the status file or the recorder's log, not even when a process
    blocks whoever reads it."""
    root = tmp_path / "root"
    shutil.copytree(ROOTS / "claims", root, symlinks=True)
    (root / "proc/3101/cmdline").unlink()
    os.mkfifo(root / "proc/3101/cmdline")
    run = background(holders(3101, 3102, 3107), "--privacy", "strict", "--root", root)
    assert run.returncode == 0, run.stderr
    wait_for(lambda: rows(run.db, "SELECT max(last_tick_ms) - min(started_ms) > 1000 FROM run") == [(1,)])
    files = [path for path in tmp_path.iterdir() if path.name.startswith("gua.db")]
    assert {path.name for path in files} >= {"gua.db", "gua.db-wal", "gua.db.status"}
    for path in files:
        content = path.read_bytes()
        for text in (b"python3", b"a.py", b"grant-42", b"R&D", b"resnet", b"vision-lab", b"owned", b"session-3"):
            assert text not in content, (path.name, text)
    assert "slurm:815" in {job for (job,) in rows(run.db, "SELECT job FROM process")}


def test_a_report_says_that_privacy_was_strict(record):
    record(holders(3101), "--ticks", 1, root=ROOTS / "claims")
    words = ["--since", "1000w", "--now", "2026-11-02T10:00:00Z", "--utc"]
    db = record(holders(3102), "--ticks", 1, at=600, root=ROOTS / "claims").db
    assert "Privacy" not in gua("report", "--db", db, *words).stdout
    record(holders(3102), "--ticks", 1, "--privacy", "strict", at=1200, root=ROOTS / "claims")
    assert "Privacy was strict" in gua("report", "--db", db, *words).stdout
    assert json.loads(gua("report", "--db", db, *words, "--json").stdout)["rules"]["privacy"] == "strict"
    # Of the process that is still there, nothing is kept from before; of the other one, all is.
    assert rows(db, "SELECT command, tag FROM process ORDER BY pid") == [("python3 a.py", "grant-42"), ("", None)]


def test_live_views_show_all_beside_a_strict_recorder(record, driver):
    db = record(holders(3101), "--ticks", 1, "--privacy", "strict", root=ROOTS / "claims").db
    out = driver("who", "--db", db, scenario=holders(3101), root=ROOTS / "claims", at=90, store=True).stdout
    assert "python3 a.py" in out and "grant-42" in out


def test_privacy_has_two_kinds():
    run = gua("daemon", "--privacy", "paranoid")
    assert run.returncode == 2 and "normal" in run.stderr and "strict" in run.stderr

"""gua start: what it says before it starts, and where it stays in the foreground by itself."""
import os
import pathlib
import stat
import subprocess

import pytest

from conftest import GUA, clean_environment, gua, wait_for
from fake import fake_driver
from recorded import ONE_CARD, background  # noqa: F401


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(tmp_path):
    env = fake_driver(tmp_path, ONE_CARD)
    files = sorted(tmp_path.rglob("*"))
    run = gua("start", "--dry-run", "--db", tmp_path / "new" / "gua.db", "--interval", "5m", env=env)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (f"would record 1 card into {tmp_path}/new/gua.db (new) every 5 min, in the background\n"
                          "dry run: nothing was started or written\n")
    assert sorted(tmp_path.rglob("*")) == files


def test_a_dry_run_says_why_there_would_be_no_start(tmp_path, background):  # noqa: F811
    running = background(ONE_CARD)
    used = gua("start", "--dry-run", "--db", running.db, env=fake_driver(tmp_path, ONE_CARD))
    assert used.returncode == 1 and "a recorder is already running" in used.stderr
    foreign = tmp_path / "text.db"
    foreign.write_text("no database\n")
    refused = gua("daemon", "--dry-run", "--db", foreign, env=fake_driver(tmp_path, ONE_CARD))
    assert refused.returncode == 1 and "is not a store of gua" in refused.stderr
    broken = fake_driver(tmp_path, ONE_CARD + "at 0s fail nvmlInit_v2 code 9\n")
    without = gua("start", "--dry-run", "--db", tmp_path / "none.db", env=broken)
    assert without.returncode == 1 and "river" in without.stderr
    assert used.stdout == refused.stdout == without.stdout == "" and not (tmp_path / "none.db").exists()


def test_only_a_pid_file_of_its_own_is_removed(tmp_path):
    """--pid-file /dev/null must not cost root the device."""
    paths = {name: tmp_path / name for name in ("file", "link", "fifo", "device")}
    paths["link"].symlink_to(tmp_path / "target")
    (tmp_path / "target").write_text("mine\n")
    os.mkfifo(paths["fifo"])
    if os.geteuid() == 0:
        os.mknod(paths["device"], 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for path in paths.values():
        run = gua("daemon", "--once", "--source", "sim", "--db", tmp_path / "gua.db", "--pid-file", path)
        assert run.returncode == 0, run.stderr
        assert path.name in ("file", "device") or f"cannot write the pid file {path}" in run.stderr
    assert not paths["file"].exists() and (tmp_path / "target").read_text() == "mine\n"
    assert paths["link"].is_symlink() and paths["fifo"].is_fifo()
    assert os.geteuid() != 0 or paths["device"].is_char_device()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_dry_run_of_a_user_who_may_not_write_there(tmp_path):
    closed = pathlib.Path("/var/lib/gua-of-nobody/gua.db")
    run = gua("start", "--dry-run", "--source", "sim", "--db", closed,
              before=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
    assert run.returncode == 1 and "/var/lib may not be written: Permission denied" in run.stderr


def stays(tmp_path, *before, **env):
    """Runs `gua daemon` as a main process, until it records; returns whether it was the recorder itself: one that goes
    to the background says so."""
    db = tmp_path / "gua.db"
    script = 'SYSTEMD_EXEC_PID=${WRONG:-$$} exec "$@"'
    with subprocess.Popen([*before, "sh", "-c", script, "sh", GUA, "daemon", "--source", "sim", "--db", db],
                          env=clean_environment(**env), stdout=subprocess.PIPE, text=True) as child:
        wait_for(lambda: gua("status", "--db", db).returncode == 0)
        assert gua("stop", "--db", db).returncode == 0
        said, _ = child.communicate(timeout=60)
        assert child.returncode == 0 and (not said or said.startswith("recording into"))
        return not said


def test_the_main_process_of_a_service_stays_in_the_foreground(tmp_path):
    """A unit of Type=simple without --foreground: the recorder would be killed when its parent ends."""
    assert stays(tmp_path)
    assert not stays(tmp_path, WRONG="1")


def test_the_first_process_of_a_container_stays_in_the_foreground(tmp_path):
    own = ["unshare", "--pid", "--fork"]
    if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to make a namespace of pids")
    assert stays(tmp_path, *own, WRONG="-")

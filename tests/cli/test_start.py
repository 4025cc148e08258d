"""gua start: what it says before it starts, and where it stays in the foreground by itself."""
import fcntl
import os
import pathlib
import signal
import stat
import subprocess
import termios

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


@pytest.mark.parametrize("words, every", [((), "30 s"), (("--set", "record.interval=2m"), "2 min")])
def test_a_dry_run_says_the_configured_interval(tmp_path, words, every):
    run = gua("start", "--dry-run", "--source", "sim", "--db", tmp_path / "new.db", *words)
    assert run.returncode == 0 and f" every {every}, " in run.stdout


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


def stays(tmp_path, *before, stop=None, **env):
    """Runs `gua daemon` as a main process, until it records; returns whether it was the recorder itself: one that goes
    to the background says so. `stop`: what is tried first to stop it."""
    db = tmp_path / "gua.db"
    script = 'SYSTEMD_EXEC_PID=${WRONG:-$$} exec "$@"'
    with subprocess.Popen([*before, "sh", "-c", script, "sh", GUA, "daemon", "--source", "sim", "--db", db],
                          env=clean_environment(**env), stdout=subprocess.PIPE, text=True) as child:
        wait_for(lambda: gua("status", "--db", db).returncode == 0)
        if stop:
            stop(db)
        if gua("stop", "--db", db).returncode != 0:  # it is in the cgroup of a service
            child.terminate()
        said, _ = child.communicate(timeout=60)
        assert child.returncode == 0 and (not said or said.startswith("recording into"))
        return not said


def test_the_main_process_of_a_service_stays_in_the_foreground(tmp_path):
    """A unit of Type=simple without --foreground: the recorder would be killed when its parent ends."""
    assert stays(tmp_path)
    assert not stays(tmp_path, WRONG="1")


def test_the_main_process_of_a_service_is_left_to_systemd(tmp_path):
    """systemd starts it again at once: gua stop would only make a gap."""
    where = pathlib.Path("/sys/fs/cgroup/unified" if pathlib.Path("/sys/fs/cgroup/unified").exists() else "/sys/fs/cgroup")
    service = where / f"gua-stop-{os.getpid()}.service"
    try:
        service.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")

    def refused(db):
        run = gua("stop", "--db", db)
        assert run.returncode == 1 and f"run: systemctl stop {service.name}\n" in run.stderr
        assert gua("status", "--db", db).returncode == 0

    try:
        assert stays(tmp_path, "sh", "-c", f'echo $$ >{service}/cgroup.procs; exec "$@"', "sh", stop=refused)
        assert not stays(tmp_path, "sh", "-c", f'echo $$ >{service}/cgroup.procs; exec "$@"', "sh", WRONG="1")
    finally:
        wait_for(lambda: not (service / "cgroup.procs").read_text())
        service.rmdir()


def test_the_first_process_of_a_container_stays_in_the_foreground(tmp_path):
    own = ["unshare", "--pid", "--fork"]
    if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to make a namespace of pids")
    assert stays(tmp_path, *own, WRONG="-")


@pytest.fixture
def audit(tmp_path):
    """The program under its name of the Python tool."""
    (tmp_path / "gpu-usage-audit").symlink_to(GUA)
    return tmp_path / "gpu-usage-audit"


def test_under_the_name_of_the_python_tool_the_recorder_stays(tmp_path, audit):
    """Older service managers than systemd 248 do not say that they wait for the process."""
    words = [audit, "daemon", "--db", tmp_path / "gua.db", "--interval", "200ms", "--drain", "100ms"]
    with subprocess.Popen(words, env=clean_environment(**fake_driver(tmp_path, ONE_CARD)), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        first, second = child.stdout.readline(), child.stdout.readline()
        child.terminate()
        rest, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (0, "")
    assert first.startswith("tick 1: 1 of 1 cards read") and second.startswith("tick 2:")


def test_a_reader_that_stopped_does_not_stop_the_recorder(tmp_path, audit):
    """The pipe is full: lines are dropped, and ticks are stored."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(theirs, b"x" * 4096)
    os.set_blocking(theirs, True)
    run = subprocess.run([audit, "daemon", "--source", "sim", "--clock", "virtual", "--ticks", "3", "--db",
                          tmp_path / "gua.db"], stdout=theirs, stderr=subprocess.PIPE, timeout=60, env=clean_environment())
    os.close(ours)
    os.close(theirs)
    assert run.returncode == 0, run.stderr


def test_the_lines_leave_a_terminal_alone_whose_background_it_is(tmp_path, audit):
    ours, theirs = os.openpty()
    words = [audit, "daemon", "--source", "sim", "--clock", "virtual", "--ticks", "2", "--db"]

    def in_front():
        os.setsid()
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    def behind():
        in_front()
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        if os.fork() == 0:
            os.setpgid(0, 0)
            return
        os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
    for place in (in_front, behind):
        run = subprocess.run([*words, tmp_path / f"{place.__name__}.db"], stdin=theirs, stdout=theirs, timeout=60,
                             stderr=subprocess.PIPE, env=clean_environment(), preexec_fn=place)
        assert run.returncode == 0, run.stderr
    os.write(theirs, b"end\n")
    printed = b""
    while not printed.endswith(b"end\r\n"):
        printed += os.read(ours, 4096)
    assert [line.split(b":")[0] for line in printed.splitlines()] == [b"tick 1", b"tick 2", b"end"]
    os.close(ours)
    os.close(theirs)


def test_help_and_errors_name_it_as_it_was_called(audit):
    for words in (["daemon", "--help"], ["help", "daemon"]):
        run = subprocess.run([audit, *words], capture_output=True, text=True, timeout=60, env=clean_environment())
        assert run.returncode == 0 and run.stdout.startswith("usage: gpu-usage-audit daemon ")
    run = subprocess.run([audit, "daemon", "word"], capture_output=True, text=True, timeout=60, env=clean_environment())
    assert run.returncode == 2 and run.stderr.startswith("gpu-usage-audit daemon: ")

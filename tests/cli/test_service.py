"""The recorder as a service on a host with hostile users: its lock, its status file, its signals, and what readers of
the store can do to it."""
import contextlib
import fcntl
import json
import mmap
import os
import pathlib
import resource
import shutil
import signal
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from conftest import GUA, ROOT, clean_environment, gua, wait_for
from fake import fake_driver
from recorded import ONE_CARD, background, card_seconds, recorder_pid, rows, run_has_begun  # noqa: F401

QUICK = ["--interval", "100ms", "--drain", "100ms"]
SHM_WRITE = 120  # SQLite's lock byte for writing, https://sqlite.org/walformat.html


def beside(db, suffix):
    return pathlib.Path(f"{db}{suffix}")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def read_lock(file, start=0, length=0):
    """The lock of a program that may only read: of the file description, as it does not end with another close."""
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, start, length, 0)
    fcntl.fcntl(file, 37, lock)  # F_OFD_SETLK, which this Python does not name


@contextlib.contextmanager
def service(tmp_path, db, *options, env=None, limit=None):
    """A recorder in the foreground, as a service manager runs it; yields its process and its log."""
    log = tmp_path / "service.log"
    env = fake_driver(tmp_path, ONE_CARD, FAKENVML_START=time.time() - 60) if env is None else env

    def set_limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    with open(log, "w") as errors, subprocess.Popen(
            [GUA, "daemon", "--foreground", "--db", db, *QUICK, *options], env=clean_environment(**env),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors if limit is None else subprocess.PIPE,
            preexec_fn=set_limit if limit is not None else None) as child:
        try:
            yield child, log
        finally:
            child.terminate()
            assert child.wait(60) == 0


def test_the_lock_is_the_recorders_own_and_its_status_is_everybodys(background):
    run = background(ONE_CARD)
    assert mode_of(beside(run.db, ".lock")) == 0o600
    assert mode_of(beside(run.db, ".status")) == 0o644
    # Room for faults when the disk is full.
    status = beside(run.db, ".status").stat()
    assert status.st_size == 4096 and status.st_blocks * 512 >= 4096
    assert gua("stop", "--db", run.db).returncode == 0
    assert not beside(run.db, ".status").exists()


@pytest.mark.parametrize("suffix", [".lock", ".status"])
def test_a_readers_lock_does_not_keep_the_recorder_from_starting(background, tmp_path, suffix):
    """Older versions let all users read the lock file."""
    left = tmp_path / f"gua.db{suffix}"
    left.touch(0o644)
    with open(left, "rb") as reader:
        read_lock(reader)
        fcntl.flock(reader, fcntl.LOCK_SH)
        run = background(ONE_CARD)
        assert run.returncode == 0, run.stderr
        assert f"(pid {recorder_pid(run.db)})" in run.stdout
    assert mode_of(beside(run.db, ".lock")) == 0o600


def test_a_readers_lock_is_not_taken_for_a_recorder(background):
    run = background(ONE_CARD)
    pid = recorder_pid(run.db)
    with open(beside(run.db, ".status"), "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        with pytest.raises(BlockingIOError):
            read_lock(reader)
        assert recorder_pid(run.db) == pid
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: gua("status", "--db", run.db).returncode == 1)
        read_lock(reader)
        status = gua("status", "--db", run.db)
        assert status.returncode == 1 and "not running; killed" in status.stdout
        stop = gua("stop", "--db", run.db)
        assert stop.returncode == 1 and "no recorder is running" in stop.stderr
        again = background(ONE_CARD)
        assert again.returncode == 0, again.stderr
        assert recorder_pid(run.db) != pid


@pytest.mark.parametrize("command", ["status", "stop"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_strange_files_hang_nothing(tmp_path, command, make):
    """As the store, and as its lock and status files."""
    strange = tmp_path / "strange.db"
    make(strange)
    run = gua(command, "--db", strange, timeout=30)
    assert run.returncode == 1 and run.stderr.startswith(f"gua {command}: ") and not run.stdout
    db = tmp_path / "gua.db"
    assert gua("daemon", "--db", db, "--once", "--source", "sim").returncode == 0
    beside(db, ".lock").unlink()
    make(beside(db, ".lock"))
    run = gua(command, "--db", db, timeout=30)
    assert run.returncode == 1
    recorder = gua("daemon", "--db", db, "--once", "--source", "sim", timeout=30)
    assert recorder.returncode == 1 and f"{db}.lock" in recorder.stderr
    make(beside(db, ".status"))
    run = gua(command, "--db", db, timeout=30)
    assert run.returncode == 1 and f"{db}.status" in run.stderr and "remove it" in run.stderr


@pytest.mark.parametrize("kind", ["fifo", "read fifo", "link", "directory"])
def test_a_strange_log_file_is_refused(tmp_path, kind):
    """And nobody waits for it."""
    log = tmp_path / "gua.db.log"
    if kind == "link":
        log.symlink_to(tmp_path / "precious")
    elif kind == "directory":
        log.mkdir()
    else:
        os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK) if kind == "read fifo" else None
    run = gua("start", "--db", tmp_path / "gua.db", env=fake_driver(tmp_path, ONE_CARD))
    assert run.returncode == 1 and "cannot open the log file" in run.stderr, run.stderr
    assert not (tmp_path / "precious").exists() and not (tmp_path / "gua.db").exists()
    if reader is not None:
        os.close(reader)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_the_log_of_a_user_is_not_anothers_file():
    """Who makes it first in a shared directory could read and change the log."""
    with tempfile.TemporaryDirectory(prefix="gua-log-", dir="/var/tmp") as name:
        where = pathlib.Path(name)
        where.chmod(0o1777)
        shutil.copy(GUA, where / "gua")
        (where / "gua.db.log").touch()
        (where / "gua.db.log").chmod(0o666)
        os.chown(where / "gua.db.log", 54321, 54321)
        run = gua("start", "--source", "sim", "--db", where / "gua.db", binary=where / "gua", user=54322, group=54322,
                  extra_groups=[])
        assert run.returncode == 1 and "cannot open the log file" in run.stderr, run.stderr


def test_a_pid_file_is_not_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "pid").symlink_to(tmp_path / "precious")
    run = gua("daemon", "-f", "--ticks", "1", "--interval", "100ms", "--db", tmp_path / "gua.db", "--pid-file",
              tmp_path / "pid", env=fake_driver(tmp_path, ONE_CARD))
    assert run.returncode == 0 and "cannot write the pid file" in run.stderr
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_symbolic_link_as_lock_is_not_followed(tmp_path):
    db, victim = tmp_path / "gua.db", tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o644)
    beside(db, ".lock").symlink_to(victim)
    run = gua("daemon", "--db", db, "--once", "--source", "sim")
    assert run.returncode == 1 and "symbolic link" in run.stderr
    beside(db, ".lock").unlink()
    os.link(victim, beside(db, ".lock"))
    run = gua("daemon", "--db", db, "--once", "--source", "sim")
    assert run.returncode == 1 and "hard link" in run.stderr
    beside(db, ".lock").unlink()
    beside(db, ".status").symlink_to(victim)  # is replaced
    assert gua("daemon", "--db", db, "--once", "--source", "sim").returncode == 0
    assert victim.read_text() == "precious" and mode_of(victim) == 0o644


def test_another_users_status_file_is_not_believed(tmp_path):
    db = tmp_path / "gua.db"
    assert gua("daemon", "--db", db, "--once", "--source", "sim").returncode == 0
    planted = beside(db, ".status")
    planted.write_text("gua-status-1 0\npid 1\n")
    try:
        os.chown(planted, 65534, 65534)
    except PermissionError:
        pytest.skip("only root can give a file away")
    for command in ("status", "stop"):
        run = gua(command, "--db", db)
        assert run.returncode == 1 and "uid 65534, who does not own the store" in run.stderr
    with open(planted, "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert "does not own the store" in gua("stop", "--db", db).stderr
    # The live views do not ask it either, and a recorder replaces it.
    assert gua("daemon", "--db", db, "--once", "--source", "sim").returncode == 0
    assert not planted.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can signal the processes of others")
def test_stop_signals_only_a_process_of_the_status_files_owner(tmp_path):
    """A lock can name any pid: it outlives its process, and a user's own file system answers what it likes. Here the
    locker is root's."""
    db, status = tmp_path / "g.db", tmp_path / "g.db.status"
    status.write_text("")
    for path in (tmp_path, status):
        os.chown(path, 54321, 54321)
    locker = subprocess.Popen(
        ["/usr/bin/python3", "-c", "import fcntl, sys, time\nf = open(sys.argv[1], 'r+')\nfcntl.lockf(f, fcntl.LOCK_EX)\n"
         "print('locked', flush=True)\ntime.sleep(600)", status], stdout=subprocess.PIPE, text=True)
    try:
        assert locker.stdout.readline() == "locked\n"
        r = gua("stop", "--db", db, "--timeout", "1s")
        assert r.returncode == 1 and f"pid {locker.pid} is not stopped" in r.stderr and "54321" in r.stderr
        assert locker.poll() is None
    finally:
        locker.kill()
        locker.wait()


def test_another_users_lock_file_is_refused_with_its_owner(tmp_path):
    db = tmp_path / "gua.db"
    beside(db, ".lock").touch(0o666)
    try:
        os.chown(beside(db, ".lock"), 65534, 65534)
        tmp_path.chmod(0o777)
        for path in tmp_path.parents[:3]:
            path.chmod(path.stat().st_mode | 0o055)
        beside(db, ".lock").chmod(0o666)
    except PermissionError:
        pytest.skip("only root can give a file away")
    run = subprocess.run([GUA, "daemon", "--db", db, "--once", "--source", "sim"], env=clean_environment(),
                         capture_output=True, text=True, user=1234, group=1234, extra_groups=[], timeout=60)
    assert run.returncode == 1 and "belongs to the user with uid 65534" in run.stderr


def test_of_many_starts_at_once_one_records(tmp_path):
    db, env = tmp_path / "gua.db", fake_driver(tmp_path, ONE_CARD)
    runs = []

    def start():
        runs.append(gua("start", "--db", db, *QUICK, env=env))
    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        good = [run for run in runs if run.returncode == 0]
        assert len(good) == 1, [run.stderr for run in runs]
        assert f"(pid {recorder_pid(db)})" in good[0].stdout
        assert all("already writing" in run.stderr for run in runs if run.returncode)
    finally:
        assert gua("stop", "--db", db).returncode == 0


def test_a_half_written_status_is_not_shown(background):
    """A recorder that could not write is running all the same, and that is a fault of its own."""
    run = background(ONE_CARD, "--interval", "1h")
    with open(beside(run.db, ".status"), "r+b") as file:
        file.seek(100)
        file.write(b"X")
    status = gua("status", "--db", run.db)
    assert status.returncode == 0 and "running (pid" in status.stdout
    assert "the recorder cannot write its status file" in status.stdout


def test_status_says_that_ticks_are_missing(tmp_path, clock_file):
    """A recorder that hangs or is stopped holds the lock and publishes nothing: here its time began an hour ago."""
    clock, db, scenario = clock_file(time.time() - 3600), tmp_path / "gua.db", tmp_path / "x.scenario"
    scenario.write_text(ONE_CARD + "at 100s hang nvmlDeviceGetSamples\n")
    with subprocess.Popen([GUA, "daemon", "--foreground", "--db", db, "--source", "sim", "--scenario", scenario,
                           "--clock", clock, "--driver-timeout", "1h"],
                          env=clean_environment(), stderr=subprocess.DEVNULL) as child:
        try:
            wait_for(lambda: "no tick was stored; one is due every 30 s" in gua("status", "--db", db).stdout)
        finally:
            child.kill()


@contextlib.contextmanager
def locked_writing(db):
    """Another program that may only read the store, with a read lock on the byte that writers need; yields its name as
    faults show it. (In this process, closing any other descriptor of the file would release the lock.)"""
    program = ("import fcntl, sqlite3, sys\n"
               "store = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)\n"
               "store.execute('SELECT 1 FROM run').fetchall()\n"  # keeps the -shm file
               "shm = open(sys.argv[1] + '-shm', 'rb')\n"
               f"fcntl.lockf(shm, fcntl.LOCK_SH, 1, {SHM_WRITE})\n"
               "print(open('/proc/self/comm').read().strip(), flush=True)\n"
               "sys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", program, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        name = child.stdout.readline().strip()
        assert name
        yield f"it is locked by another program (pid {child.pid}, uid {os.getuid()}, {name})"
        child.stdin.close()
        child.wait(60)


def status_text(db):
    return gua("status", "--db", db).stdout


def test_a_reader_that_locks_writing_is_named(tmp_path):
    """A read lock on one byte of the -shm file stops all writing. Time is kept meanwhile, and the culprit is shown."""
    db = tmp_path / "gua.db"
    with service(tmp_path, db) as (child, log):
        wait_for(lambda: "last tick" in status_text(db))
        with locked_writing(db) as who:
            first, begun = card_seconds(db), time.monotonic()
            wait_for(lambda: who in status_text(db), lambda: status_text(db))
            assert child.poll() is None and card_seconds(db) == first
            locked = time.monotonic() - begun
        wait_for(lambda: "faults     none" in status_text(db))
    seconds = card_seconds(db)
    assert sum(seconds.values()) >= sum(first.values()) + locked
    assert seconds.get("unobserved", 0) < first.get("unobserved", 0) + 1
    assert log.read_text().count("is locked by another program") == 2  # when it starts, and when it is over


def commits(db):
    """The commits in the store's log: frames that give the size of the store."""
    with open(f"{db}-wal", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as log:
        frame = 24 + struct.unpack_from(">I", log, 8)[0]
        return sum(struct.unpack_from(">I", log, at + 4)[0] != 0 for at in range(32, len(log) - frame + 1, frame))


def test_a_reader_of_an_old_state_does_not_fill_the_disk(tmp_path):
    """The log cannot be folded meanwhile. Once it is long, the recorder writes less often; nothing is lost."""
    db = tmp_path / "gua.db"
    (tmp_path / "one.scenario").write_text(ONE_CARD)
    words = ["daemon", "--clock", "virtual", "--source", "sim", "--scenario", tmp_path / "one.scenario", "--db", db]
    assert gua(*words, "--ticks", "1").returncode == 0
    other = sqlite3.connect(db)
    for statement in ("journal_mode = DELETE", "page_size = 65536", "wal_autocheckpoint = 0"):
        other.execute(f"PRAGMA {statement}")
    other.execute("VACUUM")
    other.execute("PRAGMA journal_mode = WAL")
    reader = sqlite3.connect(f"file:{db}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM run").fetchall()
    other.execute("CREATE TABLE filler (x)")
    other.execute("INSERT INTO filler VALUES (zeroblob(?))", (3 * 128 << 20,))  # three times what is long
    other.commit()
    before = commits(db)
    assert gua(*words, "--ticks", "9").returncode == 0
    assert commits(db) - before == 7  # three ticks, and the begin and the end of the run; otherwise 13
    # The clock of the second run begins with today's time, too: what both saw is counted once.
    assert sum(card_seconds(db).values()) >= 9 * 30


@pytest.mark.waits
def test_a_reader_that_locks_writing_does_not_keep_the_service_from_starting(background, tmp_path):
    run = background(ONE_CARD)
    db = run.db
    wait_for(lambda: card_seconds(db))
    (runs,), = rows(db, "SELECT count(*) FROM run")
    with locked_writing(db) as who:
        os.kill(recorder_pid(db), signal.SIGKILL)
        wait_for(lambda: gua("status", "--db", db).returncode == 1)
        start = background(ONE_CARD)
        assert start.returncode == 1 and who in start.stderr
        with service(tmp_path, db):
            wait_for(lambda: who in status_text(db))
            assert rows(db, "SELECT count(*) FROM run") == [(runs,)]


@pytest.mark.waits
def test_a_service_that_started_while_locked_writes_when_it_can(background, tmp_path):
    db = background(ONE_CARD).db
    with contextlib.ExitStack() as stack:
        with locked_writing(db) as who:
            os.kill(recorder_pid(db), signal.SIGKILL)
            wait_for(lambda: gua("status", "--db", db).returncode == 1)
            stack.enter_context(service(tmp_path, db))
            wait_for(lambda: who in status_text(db))
        wait_for(lambda: "faults     none" in status_text(db))
    assert rows(db, "SELECT how_ended FROM run ORDER BY id") == [("killed",), ("stopped",)]


def notify_socket(tmp_path):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind(str(tmp_path / "notify"))
    server.settimeout(60)
    return server


def test_a_service_that_starts_on_a_full_disk_waits_and_loses_nothing(tmp_path):
    """A file size limit of nothing: neither the store nor the status file can be written."""
    db = tmp_path / "gua.db"
    env = fake_driver(tmp_path, ONE_CARD, FAKENVML_START=time.time() - 60)
    with notify_socket(tmp_path) as server:
        with service(tmp_path, db, env={**env, "NOTIFY_SOCKET": str(tmp_path / "notify")}, limit=0) as (child, _):
            assert server.recv(100) == b"READY=1"
            begun = time.monotonic()
            assert "the disk is full" in child.stderr.readline().decode()
            status = gua("status", "--db", db)
            assert status.returncode == 0 and "cannot write its status file" in status.stdout
            time.sleep(0.5)
            full = time.monotonic() - begun
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            wait_for(lambda: "faults     none" in gua("status", "--db", db).stdout)
    seconds = card_seconds(db)
    assert sum(seconds.values()) >= full and seconds.get("unobserved", 0) < 1
    assert rows(db, "SELECT how_ended FROM run") == [("stopped",)]


def test_start_on_a_full_disk_says_so(tmp_path):
    env = fake_driver(tmp_path, ONE_CARD)
    run = gua("start", "--db", tmp_path / "gua.db", "--log-file", "/dev/null", env=env, preexec_fn=lambda:
              resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)))
    assert run.returncode == 1 and "the disk is full" in run.stderr


def test_sighup_opens_the_log_again_and_records_on(background, tmp_path):
    run = background(ONE_CARD)
    pid, log = recorder_pid(run.db), beside(run.db, ".log")
    old = log.rename(tmp_path / "rotated.log")
    os.kill(pid, signal.SIGHUP)
    wait_for(lambda: log.exists() and "SIGHUP: the log is opened again" in log.read_text())
    assert "SIGHUP" not in old.read_text() and mode_of(log) == 0o640
    (before,), = rows(run.db, "SELECT last_tick_ms FROM run")
    wait_for(lambda: rows(run.db, "SELECT last_tick_ms FROM run")[0][0] > before)
    assert recorder_pid(run.db) == pid
    assert len(rows(run.db, "SELECT 1 FROM run")) == 1


def test_sighup_ends_a_recorder_whose_terminal_is_closed(tmp_path):
    db, (terminal, side) = tmp_path / "gua.db", os.openpty()
    with subprocess.Popen([GUA, "daemon", "--foreground", "--db", db, *QUICK], stdin=side, stdout=side, stderr=side,
                          env=clean_environment(**fake_driver(tmp_path, ONE_CARD))) as child:
        os.close(side)
        wait_for(lambda: run_has_begun(db))
        child.send_signal(signal.SIGHUP)
        assert child.wait(60) == 0
    os.close(terminal)
    assert rows(db, "SELECT how_ended FROM run") == [("stopped",)]


def test_status_as_json(background):
    run = background(ONE_CARD)
    wait_for(lambda: json.loads(gua("status", "--db", run.db, "--json").stdout)["last_tick"])
    status = gua("status", "--db", run.db, "--json")
    found = json.loads(status.stdout)
    assert status.returncode == 0
    assert list(found) == ["schema", "host", "time", "running", "pid", "version", "source", "started", "last_tick",
                           "interval_seconds", "ended", "how_ended", "store", "cards", "faults"]
    assert found["schema"] == "gua-status-1" and found["host"] == socket.gethostname()
    assert found["running"] is True and found["pid"] == recorder_pid(run.db)
    assert f"gua {found['version']}\n" == gua("version").stdout
    assert found["source"] == "nvml" and found["interval_seconds"] == 0.2
    assert found["started"] <= found["last_tick"] <= found["time"]
    assert found["ended"] is None and found["how_ended"] is None
    assert found["cards"] == {"ok": 1, "lost": 0, "asleep": 0, "denied": 0} and found["faults"] == []
    assert found["store"]["path"] == str(run.db) and found["store"]["bytes"] == run.db.stat().st_size
    assert found["store"]["wal_bytes"] > 0 and found["store"]["error"] is None
    assert gua("stop", "--db", run.db).returncode == 0
    status = gua("status", "--db", run.db, "--json")
    found = json.loads(status.stdout)
    assert status.returncode == 1
    assert (found["running"], found["pid"], found["how_ended"]) == (False, None, "stopped") and found["ended"]


def test_status_as_json_where_there_is_no_store(tmp_path):
    run = gua("status", "--json", "--db", tmp_path / "none.db")
    found = json.loads(run.stdout)
    assert run.returncode == 1 and run.stderr == f"gua status: {found['store']['error']}\n"
    assert found["schema"] == "gua-status-1" and found["running"] is False and found["started"] is None
    assert "there is no store at" in found["store"]["error"] and set(found["cards"].values()) == {None}


def test_status_shows_a_recorder_whose_store_cannot_be_read(background):
    run = background(ONE_CARD, "--interval", "1h")
    run.db.rename(run.db.with_name("moved.db"))
    run.db.write_text("not a database" * 20)
    status = gua("status", "--db", run.db)
    assert status.returncode == 0 and "running (pid" in status.stdout and "not a store of gua" in status.stdout
    found = json.loads(gua("status", "--db", run.db, "--json").stdout)
    assert found["running"] and "not a store" in found["store"]["error"] and found["store"]["bytes"] is None
    run.db.unlink()


def test_a_recorder_logs_that_its_store_was_removed(background):
    run = background(ONE_CARD)
    run.db.unlink()
    log = beside(run.db, ".log")
    wait_for(lambda: f"the store {run.db} was removed: a new one begins" in log.read_text())
    assert run.db.exists() and log.read_text().count("was removed") == 1


@pytest.mark.parametrize("value", [-2**63, 2**63 - 1, 2**62, "text"])
def test_status_of_a_store_with_impossible_times(tmp_path, value):
    db = tmp_path / "gua.db"
    assert gua("daemon", "--db", db, "--once", "--source", "sim").returncode == 0
    with contextlib.closing(sqlite3.connect(db)) as store, store:
        for column in ("started_ms", "last_tick_ms", "interval_ms", "ended_ms"):
            with contextlib.suppress(sqlite3.IntegrityError):
                store.execute(f"UPDATE run SET {column} = ?", (value,))
    with open(beside(db, ".status"), "w+") as status:
        text = f"pid 1\nstart_ticks {value}\nstarted_ms {value}\ntick_ms {value}\nfault {value} strange\n"
        check = 0xcbf29ce484222325
        for byte in text.encode():
            check = (check ^ byte) * 0x100000001b3 % 2**64
        status.write(f"gua-status-1 {check:016x}\n{text}")
        status.flush()
        for lock in (False, True):
            if lock:
                fcntl.lockf(status, fcntl.LOCK_EX)
            for options in ([], ["--json"]):
                run = gua("status", "--db", db, *options)
                assert run.returncode == (0 if lock else 1) and not run.stderr
                assert ("strange" in run.stdout) == lock


def test_the_unit_restarts_at_once_and_reloads():
    unit = (ROOT / "dist" / "gua.service").read_text().splitlines()
    for line in ("Restart=always", "RestartSec=1s", "StartLimitIntervalSec=0", "TimeoutStopSec=10s", "KillMode=process",
                 "ExecReload=/bin/sh -c 'kill -HUP $MAINPID'"):
        assert line in unit
    assert any(line.startswith("After=") and "nss-user-lookup.target" in line for line in unit)

"""A process that blocks everyone who reads its memory, as one does that waits for a FUSE file system or for a driver
with the lock of its memory held: the recorder goes on and can be stopped, every view ends, and the process is
described by its name alone. Its neighbours of other users are described as ever.

Files of a recorded /proc are FIFOs here, which works everywhere; at the end is a real process on a real /proc."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from blocked import SCENARIO, add_process, block, make_root
from conftest import BUILD, GUA, ROOT, clean_environment, gua, wait_for
from fake import fake_driver
from fuse import silent_file
from recorded import rows

FAULT = "process 1001 (python, user alice) cannot be read: its memory is locked; described by its name only"
needs_top = pytest.mark.skipif(not (BUILD / "gua-top").exists(), reason="built without gua top")


@pytest.fixture
def host(tmp_path):
    """host(COMMAND, *ARGS) runs gua on the host with the process that blocks."""
    root = make_root(tmp_path / "root")
    env = fake_driver(tmp_path, SCENARIO)

    def run(*words, **options):
        return gua(*words, "--root", root, env=env, **options)
    run.root, run.env = root, env
    return run


def commands(text):
    """The commands of the three processes as a view shows them."""
    return re.findall(r"\[python\]|python \w+\.py", text)


@pytest.mark.parametrize("words", [
    ["who"], ["who", "--json"],
    pytest.param(["top", "--once"], marks=needs_top)], ids=" ".join)
def test_a_view_ends_and_describes_the_others(host, words):
    run = host(*words, "--no-store")
    assert run.returncode == 0, run.stderr
    # alice's other process is not read either: she might have thousands that block.
    assert sorted(commands(run.stdout)) == ["[python]", "[python]", "python bob.py"], run.stdout


def test_the_name_of_a_program_is_read_where_it_can_be(host):
    run = host("query", "--query-compute-apps=pid,name", "--format=csv,noheader", "--no-store")
    assert run.stdout == "1001, [python]\n1002, python\n1003, python\n"


@pytest.mark.parametrize("words", [["stat"], ["stat", "--json"], ["stat", "-cup"], ["dmon", "-p", "-c", "1"],
                                   ["dmon", "-c", "1"]], ids=" ".join)
def test_other_views_end(host, words):
    run = host(*words, "--no-store")
    assert run.returncode == 0 and run.stdout, run.stderr


def test_a_pick_ends(host, tmp_path):
    run = host("pick", "--no-store", "--hold", "0s", "--lock-dir", tmp_path / "locks")
    assert run.returncode == 1 and "no free card" in run.stderr


def test_the_doctor_names_it(host, tmp_path):
    run = host("doctor", "--json", "--db", tmp_path / "no.db")
    found = [check for check in json.loads(run.stdout)["checks"] if check["text"] == FAULT]
    assert [check["result"] for check in found] == ["warning"] and "/proc/PID/stack" in found[0]["advice"]


def record(host, db, **options):
    return subprocess.Popen([GUA, "daemon", "--foreground", "--db", db, "--root", host.root, "--interval", "1s"],
                            env=clean_environment(**host.env), stderr=subprocess.PIPE, text=True, **options)


def ticks(db):
    """How far the recorder has come, unix milliseconds."""
    try:
        return rows(db, "SELECT coalesce(max(last_tick_ms), 0) FROM run")[0][0]
    except Exception:  # there is no such table yet
        return 0


@pytest.mark.waits
def test_the_recorder_goes_on(host, tmp_path):
    db = tmp_path / "gua.db"
    for _ in range(2):  # a restart does not hang either
        process = record(host, db)
        try:
            begun = time.time() * 1000
            wait_for(lambda: ticks(db) > begun + 3000)
            assert FAULT in gua("status", "--db", db).stdout
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0 and log.count(FAULT) == 1, log
    assert sorted(set(rows(db, "SELECT pid, user, command FROM process"))) == [
        (1001, "alice", "[python]"), (1002, "alice", "[python]"), (1003, "bob", "python bob.py")]


def test_the_fault_ends_with_the_process(host, tmp_path):
    db = tmp_path / "gua.db"
    process = record(host, db)
    try:
        wait_for(lambda: FAULT in gua("status", "--db", db).stdout)
        os.rename(host.root / "proc/1001", host.root / "proc/gone")
        wait_for(lambda: FAULT not in gua("status", "--db", db).stdout)
        process.send_signal(signal.SIGTERM)
        assert f"): {FAULT}" in process.communicate(timeout=60)[1]
    finally:
        process.kill()


@pytest.mark.waits
def test_a_brief_description_is_completed(host, tmp_path):
    """Two users block in the same moment: then the recorder waits for nobody else. bob is described in full later."""
    db = tmp_path / "gua.db"
    block(host.root / "proc/1002")
    (host.root / "proc/1002/status").write_text("Uid:\t7\t7\t7\t7\n")
    process = record(host, db)

    def bobs():
        return rows(db, "SELECT user, command FROM process WHERE pid = 1003")
    try:
        wait_for(lambda: ticks(db) and bobs())
        assert bobs()[0][0] == "bob"
        wait_for(lambda: bobs() == [("bob", "python bob.py")], bobs)
        assert "like 1 other" in gua("status", "--db", db).stdout
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()


@pytest.mark.waits
def test_many_users_block(tmp_path):
    """However many users have such processes, few of them are waited for."""
    root, db = make_root(tmp_path / "root"), tmp_path / "gua.db"
    scenario = SCENARIO.replace("pid 1003", "pid 1900")
    for pid in range(1500, 1540):
        block(add_process(root, pid, pid, ["python"]))
        scenario += f"process p{pid} pid {pid}\nat 0s hold p{pid} card 1 memory 1GiB\n"
    add_process(root, 1900, 1002, ["python", "bob.py"])
    env = fake_driver(tmp_path, scenario)
    run = gua("daemon", "--once", "--db", db, "--root", root, env=env, timeout=30)
    assert run.returncode == 0, run.stderr
    found = {pid: (user, command) for pid, user, command in rows(db, "SELECT pid, user, command FROM process")}
    assert len(found) == 43 and found[1001] == ("alice", "[python]") and found[1500] == ("uid:1500", "[python]")
    assert found[1900][0] == "bob"


def answer_slowly(path):
    """Whoever opens the FIFO waits for 0.3 s, which is short enough for one."""
    while True:
        fd = os.open(path, os.O_WRONLY)
        time.sleep(0.3)
        with contextlib.suppress(OSError):
            os.write(fd, b"python\0slow.py\0")
        os.close(fd)
        time.sleep(0.05)


@pytest.mark.waits
def test_many_processes_are_slow(tmp_path):
    """Each answers in time, and all together do not: the recorder waits for few of them."""
    root, db = make_root(tmp_path / "root"), tmp_path / "gua.db"
    scenario = SCENARIO.replace("at 0s hold stuck card 0 memory 2GiB\n", "")
    for pid in range(1500, 1530):
        slow = add_process(root, pid, 1005, ["python"]) / "cmdline"
        slow.unlink()
        os.mkfifo(slow)
        threading.Thread(target=answer_slowly, args=(slow,), daemon=True).start()
        scenario += f"process p{pid} pid {pid}\nat 0s hold p{pid} card 1 memory 1GiB\n"
    run = gua("daemon", "--once", "--db", db, "--root", root, env=fake_driver(tmp_path, scenario))
    assert run.returncode == 0 and re.search(r"process 15\d\d \(python, user uid:1005\) cannot be read", run.stderr)
    found = dict(rows(db, "SELECT pid, command FROM process"))
    assert len(found) == 32 and found[1529] == "[python]"
    assert (found[1002], found[1003]) == ("python eval.py", "python bob.py")


def test_a_reader_that_is_killed(host, tmp_path):
    """It is started again, and nothing is said but that."""
    db = tmp_path / "gua.db"
    process = record(host, db)
    try:
        wait_for(lambda: ticks(db))
        for pid in children(process.pid, "gua-reader"):
            os.kill(pid, signal.SIGKILL)
        add_process(host.root, 1004, 1003, ["python", "new.py"])
        begun = ticks(db)
        wait_for(lambda: ticks(db) > begun)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
    assert not children(process.pid, "gua-reader")


class Tracked:
    """`gua track --pid` of a process that sleeps, in a recorded /proc that has it with a child that blocks."""

    def __init__(self, tmp_path, *options, first_blocks=False):
        self.sleep = subprocess.Popen(["sleep", "3600"])
        root, self.out, self.samples = make_root(tmp_path / "root"), tmp_path / "out", tmp_path / "samples.csv"
        first = add_process(root, self.sleep.pid, 1001, ["python", "train.py"])
        block(first if first_blocks else add_process(root, 3000000, 1001, ["python"], parent=self.sleep.pid))
        self.gua = subprocess.Popen(
            [GUA, "track", "--pid", str(self.sleep.pid), "--root", root, "--source", "none", "--format", "json", "-o",
             self.out, "--ru", "bytes", "--tf", self.samples, "--st", "0.1", "--processes", *options],
            env=clean_environment(), stderr=subprocess.PIPE, text=True)

    def wait_for_samples(self, n):
        wait_for(lambda: self.gua.poll() is not None or self.samples.exists() and self.samples.read_text().count("\n") > n)

    def end(self):
        self.gua.send_signal(signal.SIGTERM)
        _, self.said = self.gua.communicate(timeout=60)
        return json.loads(self.out.read_text())

    def kill(self):
        for process in (self.sleep, self.gua):
            process.kill()
            process.wait()


@pytest.fixture
def tracked(tmp_path):
    running = []

    def start(*options, **more):
        running.append(Tracked(tmp_path, *options, **more))
        return running[0]
    yield start
    for one in running:
        one.kill()


def test_a_member_of_a_tree_blocks(tracked):
    """Samples go on; what it has is its resident size, and the report says so."""
    run = tracked()
    run.wait_for_samples(5)
    report = run.end()
    assert run.gua.returncode == 0
    assert "process 3000000 cannot be read: its memory is locked; its resident size is counted" in run.said
    commands_of = {row["pid"]: row["command"] for row in report["process_table"]}
    assert commands_of == {run.sleep.pid: "python train.py", 3000000: "[python]"}
    assert report["max_ram"]["descendants"]["total_rss"] == 250 * 4096, report["max_ram"]
    assert report["max_ram"]["main"]["total_rss"] == 400 * 1024, report["max_ram"]


def test_the_tracked_process_blocks(tracked):
    run = tracked(first_blocks=True)
    run.wait_for_samples(5)
    report = run.end()
    assert report["max_ram"]["main"]["total_rss"] == 250 * 4096


def children(parent, name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                comm, rest = file.read().partition(" (")[2].rsplit(")", 1)
        except OSError:
            continue
        if comm == name and int(rest.split()[1]) == parent:
            found.append(int(pid))
    return found


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


@pytest.fixture
def locked_process(tmp_path):
    """A real process whose memory is locked; skips where that cannot be made."""
    where = tmp_path / "fuse"
    where.mkdir()
    try:
        mounted = silent_file(where)
        file = mounted.__enter__()
    except OSError as why:
        pytest.skip(f"needs /dev/fuse and the right to mount: {why}")
    process = subprocess.Popen([sys.executable, ROOT / "tests" / "lock_memory.py", file], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 20
        while state(process.pid) != "D" and time.monotonic() < deadline:
            time.sleep(0.02)
        probe = subprocess.Popen(["cat", f"/proc/{process.pid}/cmdline"], stdout=subprocess.DEVNULL)
        try:
            probe.wait(2)
            pytest.skip("this kernel writes back without the lock")
        except subprocess.TimeoutExpired:
            probe.kill()
        yield process.pid
    finally:
        process.kill()
        mounted.__exit__(None, None, None)
        process.wait(60)


def test_a_real_process_whose_memory_is_locked(tmp_path, locked_process):
    scenario = ('host lab\ncard 0 uuid GPU-aaaa name "NVIDIA A100" memory 80GiB\nprocess stuck pid env STUCK\n'
                'process good pid env GOOD\nat 0s hold stuck card 0 memory 2GiB\nat 0s hold good card 0 memory 2GiB\n')
    env = fake_driver(tmp_path, scenario, STUCK=locked_process, GOOD=os.getpid())
    db = tmp_path / "gua.db"
    with open(f"/proc/{locked_process}/comm") as file:
        comm = f"[{file.read().strip()}]"
    run = gua("who", "--json", "--no-store", env=env, timeout=30)
    shown = {row["pid"]: row["command"] for row in json.loads(run.stdout)["holders"]}
    assert shown[locked_process] == comm
    run = gua("daemon", "--once", "--db", db, env=env, timeout=30)
    assert run.returncode == 0 and f"process {locked_process} (" in run.stderr
    assert rows(db, "SELECT command FROM process WHERE pid = ?", locked_process) == [(comm,)]

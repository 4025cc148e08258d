"""What a live view must not do: ask for what it does not show."""
import ctypes
import json
import os
import sqlite3

import pytest

from conftest import gua
from fake import fake_driver
from live import CARDS, WALL, driver, forget_lock  # noqa: F401

IN_OPEN, IN_NONBLOCK, IN_CLOEXEC = 0x20, 0o4000, 0o2000000
libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def opened(tmp_path):
    """A /proc with the files of one process; opened() says whether any of them was opened since the last call."""
    process = tmp_path / "recorded" / "proc" / "1001"
    process.mkdir(parents=True)
    for name in ("stat", "status", "cmdline", "cgroup", "environ"):
        (process / name).write_text("1001 (python) S 1 1001 1001 0 -1 4194304 " + "1 " * 40)
    watch = libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)
    assert watch >= 0 and libc.inotify_add_watch(watch, os.fsencode(process), IN_OPEN) >= 0

    def seen():
        try:
            return bool(os.read(watch, 65536))
        except BlockingIOError:
            return False
    seen.root = tmp_path / "recorded"
    yield seen
    os.close(watch)


@pytest.mark.parametrize("words, reads", [
    (["pick", "--min-free", "1G", "--hold", "0s"], False),
    (["query", "--query-gpu=index,gua.state,gua.holders", "--format=csv"], False),
    (["query", "--query-remapped-rows=gpu_uuid", "--format=csv"], False),
    (["dmon", "-c", "1"], False),
    (["smi", "-L"], False),
    (["stat"], True),
    (["who"], True),
    (["query", "--query-compute-apps=pid,gua.user", "--format=csv"], True),
    (["query", "--query-gpu=index", "--user", "alice", "--format=csv"], True),
    (["dmon", "-p", "-c", "1"], True),
    (["smi"], True),
])
def test_views_of_cards_do_not_read_processes(driver, opened, words, reads):  # noqa: F811
    run = driver(*words, root=opened.root)
    assert run.returncode == 0 or "alice" in words, run.stderr
    assert opened() == reads


def test_cards_are_judged_the_same_without_the_names_of_holders(driver, opened):  # noqa: F811
    fields = "index,gua.state,gua.holders,gua.held_memory,gua.orphan_memory,utilization.gpu"
    query = ["query", f"--query-gpu={fields}", "--format=csv,noheader"]
    named = driver(*query, "--min-mem", "1M", root=opened.root).stdout
    assert opened() and "idle_held" in named
    cards = driver(*query, root=opened.root).stdout
    assert not opened()
    assert [line for line in cards.splitlines() if line in named.splitlines()] == named.splitlines()


@pytest.mark.parametrize("words, others", [
    (["stat"], set()),
    (["top", "--once"], {"nvmlDeviceGetUtilizationRates"}),  # the samples have it
])
def test_a_view_does_not_ask_for_what_only_the_recorder_needs(driver, tmp_path, words, others):  # noqa: F811
    """Energy, and who used a card in which part of a drain."""
    scenario = CARDS + "".join(f"at {s}s load {who} card 0 sm {20 + s % 2 * 30}\n" for s in range(50, 60)
                               for who in ("train", "note"))
    assert driver(*words, scenario=scenario).returncode == 0
    calls = [line.split()[1:3] for line in (tmp_path / "log").read_text().splitlines()]
    names = {name for name, _ in calls}
    assert "nvmlDeviceGetSamples" in names
    assert not names & ({"nvmlDeviceGetTotalEnergyConsumption"} | others)
    assert calls.count(["nvmlDeviceGetProcessUtilization", "0"]) == 1


BOOT = "4f1c2d3e-0000-4000-8000-000000000001"


@pytest.fixture
def remembered(tmp_path, clock_file, driver):  # noqa: F811
    """A store in which the recorder, at work, has given pid 1001 a name that /proc does not have. remembered() says which
    command a view shows."""
    root, db, clock = tmp_path / "root", tmp_path / "gua.db", clock_file(WALL, name="rec-clock")
    proc = root / "proc" / "1001"
    proc.mkdir(parents=True)
    (proc / "stat").write_text("1001 (python) S 1 1001 1001 0 -1 4194304 1 0 0 0 9 9 0 0 20 0 9 0 777 9 9 0" + " 0" * 27)
    (proc / "status").write_text("Name:\tpython\nPid:\t1001\nUid:\t1001\t1001\t1001\t1001\n")
    (proc / "cmdline").write_bytes(b"python\0now.py\0")
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("alice:x:1001:1001::/:/bin/sh\n")
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text(BOOT + "\n")
    run = gua("daemon", "--foreground", "--ticks", 2, "--db", db, "--root", root, "--clock", clock,
              env=fake_driver(tmp_path, CARDS, clock=clock))
    assert run.returncode == 0, run.stderr
    forget_lock(db)
    store = sqlite3.connect(db)
    store.executescript("UPDATE run SET ended_ms = NULL, how_ended = NULL; UPDATE process SET ended_ms = NULL;"
                        "UPDATE process SET command = 'python before.py' WHERE pid = 1001;"
                        "CREATE TEMP TABLE usual AS SELECT * FROM process WHERE pid = 1001;"
                        "INSERT INTO holder SELECT DISTINCT gpu, process, 1, 1 << 30, 1, NULL FROM holding_1m")

    def shown(change=""):
        store.executescript(change)
        run = driver("who", "--json", "--db", db, root=root)
        return {one["command"] for one in json.loads(run.stdout)["holders"] if one["pid"] == 1001}
    shown.db, shown.proc = db, proc
    yield shown
    store.close()


def test_the_store_says_who_a_process_is(remembered):
    """The recorder has worked it out already. It is asked only if it means the same life, and is believed only if nobody
    else can have written it, and if it knows as much as /proc does."""
    assert remembered() == {"python before.py"}
    for doubt in ("start_ticks = 778", "run = 99", "command = ''", "command = '[python]'", "user = 'uid:1001'", "uid = NULL"):
        assert remembered(f"UPDATE process SET {doubt} WHERE pid = 1001") == {"python now.py"}, doubt
        assert remembered("REPLACE INTO process SELECT * FROM usual") == {"python before.py"}
    assert remembered("UPDATE run SET boot_id = 'another'") == {"python now.py"}
    assert remembered(f"UPDATE run SET boot_id = '{BOOT}'") == {"python before.py"}
    for path, mode in (remembered.db, 0o660), (remembered.db, 0o606), (remembered.db.parent, 0o770):
        usual = path.stat().st_mode
        path.chmod(mode)
        assert remembered() == {"python now.py"}, (path, oct(mode))
        path.chmod(usual)
    assert remembered() == {"python before.py"}
    if os.geteuid() == 0:
        os.chown(remembered.db, 12345, -1)
        assert remembered() == {"python now.py"}

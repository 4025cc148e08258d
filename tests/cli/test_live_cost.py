"""What a live view must not do: ask for what it does not show."""
import ctypes
import os

import pytest

from live import driver  # noqa: F401

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

"""The socket on which users ask gua enforce, under users who want to stop it."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest
from asking import ask, connect, service
from conftest import gua, wait_for
from test_enforce import FAST, ROOT_ONLY, Work, conf, iso, world  # noqa: F401

# Of another user than those who ask: connections that ask nothing, that do not read their answers, and floods.
HOSTILE = """import json, os, resource, socket, sys
how, n = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
lines = []
def one():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect("enforce.sock")
    return s
for i in range(n):
    lines.append(one())
    if how == "unread":
        try:
            lines[-1].send(json.dumps({"ask": "explain", "pid": 1 + i}).encode())
        except OSError:
            pass
print("ready", flush=True)
while how == "flood":
    try:
        s = one()
        s.send(b'{"ask":"list"}')
        s.close()
    except OSError:
        pass
sys.stdin.read()
"""


@pytest.fixture
def place(world, tmp_path):  # noqa: F811
    """A service; place(HOW, N) attacks it, as another user if it can."""
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    w.write(15)
    children = []

    def attack(how, n, uid=4321):
        who = {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}
        child = subprocess.Popen([sys.executable, "-c", HOSTILE, how, str(n)], cwd=w.directory, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, **who)
        children.append(child)
        assert child.stdout.readline() == "ready\n"
        return child
    w.attack = attack
    # A sanitizer keeps what was freed for a while: that is not what is measured here.
    asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
    with service(w.directory, w.db, iso(w.at(15)), *conf(tmp_path, FAST), ASAN_OPTIONS=asan) as w.child:
        yield w
    for child in children:
        child.kill()
        child.communicate()


def fds(child):
    return len(list(pathlib.Path(f"/proc/{child.pid}/fd").iterdir()))


def rss_kib(child):
    return int(pathlib.Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * 4


NONSENSE = [
    b"", b"x", b"{", b"[]", b"null", b'{"ask":"list"', b'{"ask":"LIST"}', b'{"ask":["list"]}', b"\0" * 64,
    b'{"ask":"list","reason":"' + b"x" * 1024 + b'"}', b"x" * 65536, b"[" * 1000, b'{"ask":"keep","pid":-1,"start_ticks":1,"for_ms":1}',
    b'{"ask":"keep","pid":1,"start_ticks":1,"for_ms":9223372036854775807}', b'{"ask":"keep","pid":1,"start_ticks":0,"for_ms":60000}',
    b'{"ask":"explain","pid":4294967297}', b'{"ask":"explain","pid":1e3}', b'{"ask":"\xff"}']


def test_what_makes_no_sense_has_no_answer(place):
    for raw in NONSENSE:
        assert ask(place.directory, raw=raw) is None, raw
        # A user has 8 places, each for 0.2 s: who asks faster than this is refused for a while.
        wait_for(lambda: (ask(place.directory, ask="list") or {}).get("ok"), lambda: raw)
        time.sleep(0.06)


def test_one_request_for_a_connection(place):
    """And none: the connection is closed after some seconds."""
    silent = connect(place.directory)
    one = connect(place.directory)
    one.send(b'{"ask":"list"}')
    assert json.loads(one.recv(1 << 16))["ok"]
    one.send(b'{"ask":"list"}')
    assert one.recv(1 << 16) == b"" == silent.recv(1 << 16)
    one.close()
    silent.close()


@pytest.mark.other_programs
@ROOT_ONLY
@pytest.mark.parametrize("how, n", [("silent", 1000), ("unread", 500), ("flood", 0)])
def test_one_user_is_in_nobodys_way(place, how, n):
    before, memory = fds(place.child), rss_kib(place.child)
    for _ in range(2 if how == "flood" else 1):
        place.attack(how, n)
    for _ in range(5):
        answer = ask(place.directory, uid=4000, ask="list")
        assert answer and answer["ok"]
    assert fds(place.child) <= before + 64
    assert rss_kib(place.child) < memory + 8192
    said = gua("keep", "--db", "gua.db", cwd=place.directory, user=4000, group=4000, extra_groups=[])
    assert (said.returncode, said.stdout) == (0, "You keep no session.\n"), said.stderr


@pytest.mark.other_programs
@ROOT_ONLY
def test_users_who_take_all_places(place):
    """The user with most of them loses one. Subordinate uids would be one user."""
    for i in range(12):
        place.attack("unread", 8, uid=5000 + i)
    assert ask(place.directory, uid=4000, ask="list")["ok"]
    assert fds(place.child) < 64 + 40


@pytest.mark.parametrize("what", ["link", "file", "directory", "stale"])
def test_what_has_the_name_of_the_socket(world, tmp_path, what):  # noqa: F811
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    w.write(15)
    path, target = tmp_path / "enforce.sock", tmp_path / "target"
    target.write_text("precious")
    if what == "link":
        path.symlink_to(target)
    elif what == "file":
        path.write_text("precious")
    elif what == "directory":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as old:
            os.chdir(tmp_path)
            old.bind("enforce.sock")
        with service(w.directory, w.db, iso(w.at(15)), *conf(tmp_path, FAST)):
            pass
        return
    run = w.run(15, *conf(tmp_path, FAST))
    assert run.returncode == 0 and "cannot make the socket" in run.stderr
    assert "no session is ended, because users cannot ask to keep one" in run.stderr
    assert target.read_text() == "precious" and path.exists() and path.is_symlink() == (what == "link")
    asked = gua("keep", "--db", w.db)
    assert asked.returncode == 1 and asked.stdout == "", asked.stderr


def test_everybody_may_connect(place):
    assert (place.directory / "enforce.sock").stat().st_mode & 0o777 == 0o666

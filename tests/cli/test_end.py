"""gua-end, which signals processes for gua enforce: what it checks, what it refuses, what it can do."""
import os
import pathlib
import signal
import socket
import struct
import subprocess

import pytest
from conftest import BUILD, clean_environment, wait_for
from ender import (ANOTHER, CHECK, DONE, EXEMPT, FULL, GONE, HOLD, KILL, MAGIC, NO_PIDFD, NOT_HIS, REFUSED, RELEASE, TERM,
                   Ender, start_as, start_ticks, without_call)

END = BUILD / "gua-end"
ROOT = os.geteuid() == 0
UID = 12345 if ROOT else os.getuid()
CAP_KILL = 1 << 5

pytestmark = pytest.mark.skipif(not ROOT and os.getuid() < 1000, reason="no rule may end a process of this uid")


@pytest.fixture
def ender():
    ender = Ender(END)
    yield ender
    assert ender.close() == 0


@pytest.fixture
def process():
    """process(*ARGV) starts one as an ordinary user; none survives the test."""
    started = []

    def start(*argv, uid=UID, **options):
        started.append(start_as(uid, *(argv or ("sleep", "600")), **options))
        return started[-1]
    yield start
    for child in started:
        child.kill()
        child.wait()


def test_a_process_is_held_ended_and_released(ender, process):
    child = process()
    assert ender.ask(HOLD, child.pid, UID).answer == DONE
    assert ender.ask(CHECK, child.pid, UID).answer == DONE
    assert child.poll() is None
    start = start_ticks(child.pid)
    assert ender.ask(TERM, child.pid, UID).answer == DONE
    assert child.wait(60) == -signal.SIGTERM
    ender.wait_for_end(child.pid)
    assert ender.ask(KILL, child.pid, UID, start).answer == GONE
    assert ender.ask(RELEASE, child.pid, UID, start).answer == DONE


def test_a_process_that_ignores_sigterm(ender, process):
    child = process("/usr/bin/python3", "-c", "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
                    "print('ready', flush=True); time.sleep(600)", stdout=subprocess.PIPE)
    child.stdout.readline()
    assert ender.ask(TERM, child.pid, UID).answer == DONE
    assert ender.ask(CHECK, child.pid, UID).answer == DONE
    assert child.poll() is None
    assert ender.ask(KILL, child.pid, UID).answer == DONE
    assert child.wait(60) == -signal.SIGKILL
    child.stdout.close()


def test_only_the_process_that_was_named(ender, process):
    child = process()
    start = start_ticks(child.pid)
    for what in HOLD, TERM, KILL:
        reply = ender.ask(what, child.pid, UID, start + 1)
        assert (reply.answer, reply.text) == (ANOTHER, "the pid belongs to another process now")
        assert ender.ask(what, child.pid, UID + 1).answer == NOT_HIS
    assert ender.ask(HOLD, child.pid, UID).answer == DONE
    assert ender.ask(KILL, child.pid, UID + 1).answer == NOT_HIS
    assert child.poll() is None
    assert ender.ask(TERM, 2**22 + 1, UID, start).answer == GONE


def test_a_zombie_has_ended(ender, process):
    child = process("true")
    wait_for(lambda: pathlib.Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert ender.ask(TERM, child.pid, UID).answer == GONE


@pytest.mark.skipif(not ROOT, reason="starts processes of other users")
@pytest.mark.parametrize("uid", [0, 1, 999])
def test_the_system_is_exempt(ender, process, uid):
    child = process(uid=uid)
    for what in HOLD, TERM, KILL:
        reply = ender.ask(what, child.pid, uid)
        assert (reply.answer, reply.text) == (EXEMPT, "its uid is below UID_MIN: it belongs to the system")
    assert child.poll() is None


def test_the_first_process_and_gua_itself(ender):
    assert ender.ask(TERM, 1, 0, 1).answer == REFUSED
    for pid in ender.process.pid, os.getpid():
        reply = ender.ask(TERM, pid, os.stat(f"/proc/{pid}").st_uid if pid == os.getpid() else 65534 if ROOT else UID)
        assert reply.answer == EXEMPT
    assert ender.process.poll() is None


def test_a_name_of_the_display(ender, process):
    """As nobody, it may not see whose program that is: a process with such a name is spared."""
    child = process("/usr/bin/python3", "-c", "import time; open('/proc/self/comm', 'w').write('Xorg');"
                    "print(flush=True); time.sleep(600)", stdout=subprocess.PIPE)
    child.stdout.readline()
    reply = ender.ask(TERM, child.pid, UID)
    assert (reply.answer, child.poll()) == (EXEMPT, None)
    assert "program of the display" in reply.text
    child.stdout.close()


@pytest.mark.other_programs
@pytest.mark.skipif(not ROOT, reason="starts processes of two users")
def test_one_user_does_not_take_all_places(ender, process):
    """Of one uid 256 processes are held; others can be checked and signalled, each for itself."""
    crowd = [start_as(UID, "sleep", "600") for _ in range(258)]
    try:
        answers = [ender.ask(HOLD, child.pid, UID).answer for child in crowd]
        assert answers == [DONE] * 256 + [FULL] * 2
        other = start_as(UID + 1, "sleep", "600")
        crowd.append(other)
        assert ender.ask(HOLD, other.pid, UID + 1).answer == DONE
        late = crowd[257]
        assert ender.ask(CHECK, late.pid, UID + 1).answer == NOT_HIS
        assert ender.ask(CHECK, late.pid, UID, start=1).answer == ANOTHER
        assert ender.ask(CHECK, late.pid, UID).answer == DONE and late.poll() is None
        assert ender.ask(TERM, late.pid, UID).answer == DONE and late.wait(60) == -signal.SIGTERM
        assert len(list(pathlib.Path(f"/proc/{ender.process.pid}/fd").iterdir())) < 2 * 257 + 16
    finally:
        for child in crowd:
            child.kill()
            child.wait()


def test_requests_that_make_no_sense(ender, process):
    child = process()
    start = start_ticks(child.pid)
    ordinary = struct.pack("=IIIIQq", MAGIC, TERM, child.pid, 0, start, UID)
    for record in (b"x", ordinary[:-1], ordinary + b"x", b"\0" * len(ordinary), b"\xff" * len(ordinary), b"x" * 5000,
                   struct.pack("=IIIIQq", MAGIC + 1, TERM, child.pid, 0, start, UID),
                   struct.pack("=IIIIQq", MAGIC, 9, child.pid, 0, start, UID),
                   struct.pack("=IIIIQq", MAGIC, TERM, 2**32 - child.pid, 0, start, UID),
                   struct.pack("=IIIIQq", MAGIC, TERM, 0, 0, start, UID)):
        assert ender.send(record).answer == REFUSED
    assert ender.ask(TERM, child.pid, UID, 0).answer == REFUSED
    assert ender.ask(TERM, child.pid, -1).answer == NOT_HIS
    assert child.poll() is None


def test_it_keeps_one_privilege(ender, process):
    assert ender.ask(HOLD, process().pid, UID).answer == DONE
    status = dict(line.split(":", 1) for line in
                  pathlib.Path(f"/proc/{ender.process.pid}/status").read_text().splitlines())
    assert status["NoNewPrivs"].strip() == "1"
    allowed = CAP_KILL if ROOT else 0
    for name in "CapInh", "CapPrm", "CapEff", "CapAmb":
        assert int(status[name], 16) & ~allowed == 0, name
    if ROOT:
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"65534"}
        assert status["Groups"].strip() == ""


def test_it_ends_with_its_owner(process):
    ender = Ender(END)
    ender.ask(HOLD, process().pid, UID)
    assert ender.close() == 0


def test_it_is_of_no_use_in_a_shell():
    for options in {"stdin": subprocess.DEVNULL}, {"stdin": socket.socketpair()[0]}:
        result = subprocess.run([END], capture_output=True, text=True, env=clean_environment(), **options)
        assert result.returncode == 2
        assert result.stderr.startswith("usage: gua-end")
    assert subprocess.run([END, "--help"], capture_output=True).returncode == 2


def test_a_pid_that_was_given_away(tmp_path):
    """The kernel is made to give a pid to another process at once."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", "/usr/bin/python3",
               pathlib.Path(__file__).with_name("ender.py"), END]
    if not ROOT or subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                                  capture_output=True).returncode != 0:
        pytest.skip("needs root, and a pid namespace")
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.stdout.split() == ["True"] * 5, result.stderr


@pytest.mark.parametrize("call", [434, 424])    # pidfd_open, pidfd_send_signal
def test_a_kernel_without_pidfd(process, call):
    """Nothing is signalled, by no other call either."""
    ender = Ender(END, preexec_fn=lambda: without_call(call))
    child = process()
    for what in HOLD, TERM, KILL:
        assert ender.ask(what, child.pid, UID).answer == NO_PIDFD
    assert child.poll() is None
    assert ender.close() == 0

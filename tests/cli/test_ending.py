"""Sessions of real processes on the fake driver, ended as gua enforce ends them: in which order, what spares one, and
what is reported."""
import os
import signal
import subprocess
import time

import pytest
from conftest import BUILD, clean_environment
from ender import start_as
from fake import fake_driver
from handmade import Store

ROOT = os.geteuid() == 0
UID = 12345 if ROOT else os.getuid()
GIB = 2**30
SCENARIO = """host lab
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 80GiB idle-power 60W max-power 400W
process one pid file one
process two pid file two
at 0s hold one card 0 memory 8GiB
at 0s hold two card 0 memory 2GiB
"""
IGNORES = ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)")

pytestmark = pytest.mark.skipif(not ROOT and os.getuid() < 1000, reason="no rule may end a process of this uid")


# Works in a child, for at most 20 seconds: nothing survives a test that is killed.
BURNS = """import os, time
end = time.monotonic() + 20
if os.fork():
    os.wait()
while time.monotonic() < end:
    pass
"""


def end_group(child):
    """Ends a process that has a session of its own, and what it has started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()


class Lab:
    """Processes that hold the fake driver's card 0, and the tool that ends them."""

    def __init__(self, where):
        self.where, self.pids, self.children = where, where / "pids", []
        self.pids.mkdir()
        self.env = {"FAKENVML_PIDS": self.pids, "FAKENVML_REAP": 1}

    def start(self, key, *argv, uid=UID, **options):
        """A process in a session of its own."""
        child = start_as(uid, *(argv or ("sleep", "600")), start_new_session=True, **options)
        self.children.append(child)
        (self.pids / f".{key}").write_text(str(child.pid))
        (self.pids / f".{key}").rename(self.pids / key)
        return child

    def write(self, *children):
        """The store of a recorder that saw these processes hold the card for ten minutes; returns its path."""
        store, now = Store(":memory:"), time.time()
        host = store.host("lab")
        store.run(host, now - 600, now)
        card = store.card(host, 0, now - 600, now, uuid="GPU-aaaa")
        for child in children:
            process = store.process(host, child.pid, "alice", seen=(now - 600, now))
            ticks = int(open(f"/proc/{child.pid}/stat").read().rsplit(")")[1].split()[19])
            store.db.execute("UPDATE process SET start_ticks = ?, uid = ? WHERE id = ?", (ticks, UID, process))
            store.insert("holder", gpu=card, process=process, kind=1, mem_bytes=GIB, since_ms=int(now - 600) * 1000)
            store.spell(card, process, now - 600, now, how=None)
        store.db.commit()
        (self.where / "gua.db").write_bytes(store.db.serialize())
        store.db.close()
        return self.where / "gua.db"

    def ending(self, *arguments, scenario=SCENARIO, stored=None, **options):
        """Starts the tool; returns once all are held. The store has all processes, or `stored`; (): there is none."""
        stored = [child for child in self.children if child.poll() is None] if stored is None else stored
        if stored:
            arguments = ("--db", self.write(*stored), *arguments)
        env = clean_environment(**fake_driver(self.where, scenario, **self.env))
        tool = subprocess.Popen([BUILD / "tests" / "ending", "--end", BUILD / "gua-end",
                                 "--policy-db", self.where / "policy.db", *map(str, arguments)],
                                env=env, stdout=subprocess.PIPE, text=True, **options)
        self.children.append(tool)
        lines = []
        while not lines or lines[-1] not in ("held\n", ""):
            lines.append(tool.stdout.readline())
        return tool

    def end(self, *arguments, **options):
        """Runs it; returns the steps that were recorded and the outcome."""
        out, _ = self.ending(*arguments, **options).communicate(timeout=120)
        *steps, outcome = out.splitlines()
        return [step.removeprefix("record ") for step in steps], outcome

    def close(self):
        for child in self.children:
            end_group(child)
            child.wait()
            if child.stdout:
                child.stdout.close()


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.close()


def test_an_idle_session_is_ended(lab):
    one, two = lab.start("one"), lab.start("two")
    steps, outcome = lab.end(one.pid, two.pid)
    assert steps == ["SIGTERM"]
    assert outcome.startswith(f"ended {10 * GIB} its processes have ended; 10.0 GiB given back (idle in ")
    assert (one.wait(60), two.wait(60)) == (-signal.SIGTERM, -signal.SIGTERM)


def test_nothing_is_ended_that_the_store_cannot_speak_for(lab):
    """Whether it is exempt is asked of the store before each signal: no answer is not a yes."""
    one, two = lab.start("one"), lab.start("two")
    assert lab.end(one.pid, stored=()) == ([], "spared -1 the store is not open")
    assert lab.end(one.pid, stored=[two]) == ([], "spared -1 the store no longer lists it")
    assert one.poll() is None


@pytest.mark.other_programs
def test_batches(lab):
    """Each with a row of its own, and a fresh look before it."""
    n = 150
    scenario = SCENARIO + "".join(f"process p{i} pid file p{i}\nat 0s hold p{i} card 0 memory 100MiB\n" for i in range(n))
    children = [lab.start(f"p{i}") for i in range(n)]
    steps, outcome = lab.end(*[child.pid for child in children], scenario=scenario)
    assert steps == [f"SIGTERM, processes {first} to {last} of 150" for first, last in ((1, 64), (65, 128), (129, 150))]
    assert outcome.startswith(f"ended {150 * 100 * 2**20} "), outcome
    assert {child.wait(60) for child in children} == {-signal.SIGTERM}


def test_only_its_own_processes_are_ended(lab):
    one, two = lab.start("one"), lab.start("two")
    assert lab.end(two.pid)[1].startswith(f"ended {2 * GIB} ")
    assert two.wait(60) == -signal.SIGTERM
    assert one.poll() is None


@pytest.mark.parametrize("options, steps, outcome, status", [
    (["--kill"], ["SIGTERM", "SIGKILL"], f"ended {8 * GIB} ", -signal.SIGKILL),
    ([], ["SIGTERM"], "failed -1 its processes have not ended after SIGTERM", None),
])
def test_one_that_ignores_sigterm(lab, options, steps, outcome, status):
    one = lab.start("one", "/usr/bin/python3", "-c", IGNORES, stdout=subprocess.PIPE)
    one.stdout.readline()
    found, how = lab.end(*options, "--grace", "300ms", one.pid)
    assert (found, how[:len(outcome)]) == (steps, outcome)
    assert (one.poll() if status is None else one.wait(60)) == status


@pytest.mark.waits
def test_one_that_becomes_active_is_spared(lab):
    """At the last moment: it was idle in all samples but the last one."""
    one = lab.start("one")
    tool = lab.ending("--confirm", "3s", one.pid)
    time.sleep(1)
    (lab.pids / "one.busy").touch()
    out, _ = tool.communicate(timeout=120)
    assert out == "spared -1 it used card 0: 50 % of the multiprocessors (the limit is 5 %)\n"
    assert one.poll() is None


def test_a_process_that_joins_the_session_spares_it(lab):
    """A worker that is started after the decision, in the same session."""
    one = lab.start("one", "/usr/bin/python3", "-c", "import os, sys, time; sys.stdin.readline()\nif not os.fork():"
                    " print(os.getpid(), flush=True)\ntime.sleep(600)", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    text=True)
    tool = lab.ending("--confirm", "3s", one.pid)
    one.stdin.write("fork\n")
    one.stdin.close()
    worker = one.stdout.readline().strip()
    (lab.pids / ".two").write_text(worker)
    (lab.pids / ".two").rename(lab.pids / "two")
    assert tool.communicate(timeout=120)[0] == f"spared -1 process {worker} of the session has appeared on a card\n"
    assert one.poll() is None


def test_one_that_uses_the_processor_is_spared(lab):
    """It may load data or compile: so may its child."""
    one = lab.start("one", "/usr/bin/python3", "-c", BURNS)
    steps, outcome = lab.end("--confirm", "2s", one.pid)
    assert steps == []
    assert "of a processor core" in outcome and outcome.startswith("computes ")
    assert one.poll() is None


def test_a_card_that_takes_power_spares(lab):
    one = lab.start("one")
    steps, outcome = lab.end("--uuid", "GPU-aaaa", "--floor", "30", one.pid)
    assert (steps, outcome) == ([], "spared -1 its card draws 60 W, more than the 56 W that less than 5 % use "
                                    "explains (idle: 30 W)")
    assert lab.end("--uuid", "GPU-aaaa", "--floor", "58", one.pid)[1].startswith("ended ")


def test_power_of_use_below_the_limit_does_not_spare(lab):
    """4 % of a card of 400 W take 14 W more than its idle time did: that is not work, as 4 % of its use is not."""
    one = lab.start("one")
    steps, outcome = lab.end("--uuid", "GPU-aaaa", "--floor", "60", one.pid,
                             scenario=SCENARIO + "at 0s load one card 0 sm 4\n")
    assert steps == ["SIGTERM"] and outcome.startswith("ended "), outcome


@pytest.mark.waits
def test_a_terminal_that_was_used_spares(lab):
    """Keys pressed after the last notice are activity."""
    master, slave = os.openpty()
    os.fchown(slave, UID, UID)
    one = lab.start("one", "/usr/bin/python3", "-c", "import fcntl, sys, termios, time;"
                    "fcntl.ioctl(0, termios.TIOCSCTTY, 0); sys.stdin.readline(); time.sleep(600)", stdin=slave)
    tool = lab.ending("--noticed", "--confirm", "2s", one.pid)
    time.sleep(0.2)
    os.utime(slave, (time.time() + 1, time.time() + 1))
    out, _ = tool.communicate(timeout=120)
    assert out == "spared -1 its terminal was used after the last notice\n"
    assert one.poll() is None
    os.close(master)
    os.close(slave)


def test_a_session_that_leaves_by_itself(lab):
    one = lab.start("one")
    tool = lab.ending("--confirm", "3s", one.pid)
    one.terminate()
    one.wait()
    assert tool.communicate(timeout=120)[0] == "spared -1 it no longer holds a card\n"


@pytest.mark.parametrize("fault, why", [
    ("at 0s lost card 0", "it cannot be confirmed|card 0 does not answer|it no longer holds a card"),
    ("at 0s fail nvmlDeviceGetProcess* card 0 code 999\nat 0s load card 0 util 40", "its use of card 0 is not known"),
])
def test_a_driver_that_does_not_tell_spares(lab, fault, why):
    one = lab.start("one")
    steps, outcome = lab.end(one.pid, scenario=SCENARIO + fault + "\n")
    assert steps == [] and outcome.startswith("spared -1 "), outcome
    assert any(part in outcome for part in why.split("|")), outcome
    assert one.poll() is None


def test_no_record_no_action(lab):
    one = lab.start("one")
    steps, outcome = lab.end("--full", one.pid)
    assert steps == [] and outcome.startswith("spared -1 SIGTERM was not done, because it cannot be recorded: "), outcome
    assert one.poll() is None


def test_memory_that_stays(lab):
    """The processes are gone and the driver still has their memory."""
    one = lab.start("one")
    steps, outcome = lab.end("--uuid", "GPU-aaaa", one.pid, scenario=SCENARIO + "at 0s orphan card 0 memory 3GiB\n")
    assert steps == ["SIGTERM"]
    assert outcome.startswith("still-held -1 its processes have ended, and 3.0 GiB are still in use")


@pytest.mark.parametrize("script, outcome", [
    ("kill $(cat \"{pids}/one\")", f"ended {8 * GIB} "),
    ("echo no such container; exit 125", "failed -1 {script} ended with status 125: no such container"),
])
def test_a_container_is_ended_by_its_manager(lab, script, outcome):
    one = lab.start("one")
    podman = lab.where / "podman"
    podman.write_text(f"#!/bin/sh\necho \"$@\" > {lab.where}/args\n" + script.replace("{pids}", str(lab.pids)) + "\n")
    podman.chmod(0o755)
    steps, how = lab.end("--container", "podman:3f2a91c4d5e6", "--podman", f"{podman} stop -t 3", one.pid)
    assert steps == [f"{podman} stop -t 3 3f2a91c4d5e6"]
    assert how.startswith(outcome.replace("{script}", str(podman))), how
    assert (lab.where / "args").read_text() == "stop -t 3 3f2a91c4d5e6\n"


@pytest.mark.skipif(not ROOT, reason="starts processes of the system")
def test_a_process_of_the_system_is_spared(lab):
    one, two = lab.start("one"), lab.start("two", uid=0)
    steps, outcome = lab.end(one.pid, two.pid)
    assert steps == []
    assert outcome == f"spared -1 process {two.pid}: its uid is below UID_MIN: it belongs to the system"
    assert one.poll() is None and two.poll() is None


def test_gua_end_is_missing(lab):
    one = lab.start("one")
    env = clean_environment(**fake_driver(lab.where, SCENARIO, **lab.env))
    run = subprocess.run([BUILD / "tests" / "ending", "--end", "/nonexistent/gua-end",
                          "--policy-db", lab.where / "policy.db", str(one.pid)], env=env,
                         capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "spared -1 cannot run /nonexistent/gua-end: No such file or directory"
    assert one.poll() is None

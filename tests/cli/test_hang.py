"""A driver that hangs: no live view waits for it for longer than --driver-timeout. A look says so and ends,
a loop says so once, goes on trying, and goes on when the driver does. (gua top's screen is in test_top.py.)

gua runs in real time here, and the driver on a clock that only the test moves: a call hangs once it is told to,
until a file lets it go. A deadline that a call must miss is short, one that it must meet is an hour."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BUILD, GUA, advance, clean_environment, gua, wait_for
from fake import calls, fake_driver

CARDS = """
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 80GiB
card 1 uuid GPU-bbbb name "NVIDIA A100" memory 80GiB
process p pid env HOLDER
at 0s hold p card 0 memory 2GiB
"""
SENTENCE = r"the driver has not answered for \d+ m?s: look for NVRM and Xid in the kernel's log \(dmesg\), " \
           r"or wait longer with --driver-timeout"
QUERY = ["query", "--query-gpu=memory.used,temperature.gpu", "--format=csv,noheader,nounits"]
PICK = ["pick", "--hold", "0s"]
LOOKS = [["stat"], ["stat", "--json"], QUERY, ["query", "--query-compute-apps=pid"], ["dmon", "-c", "1"],
         ["dmon", "-p", "-c", "1"], ["who"], PICK, ["top"], ["top", "--once"]]
needs_top = pytest.mark.skipif(not (BUILD / "gua-top").exists(), reason="built without gua top")
looks = pytest.mark.parametrize("words", [pytest.param(words, marks=needs_top if words[0] == "top" else (),
                                                       id=" ".join(words[:2])) for words in LOOKS])


def driver(tmp_path, scenario, **more):
    """The holder is this process, so that it is there."""
    return fake_driver(tmp_path, scenario, HOLDER=os.getpid(), **more)


def run_hanging(tmp_path, call, words, *more, timeout="100ms"):
    """Runs a command on a driver in which `call` hangs."""
    env = driver(tmp_path, CARDS + f"at 0s hang {call}\n")
    locks = ["--lock-dir", tmp_path / "locks"] if words[:1] == ["pick"] and "--lock-dir" not in words else []
    return gua(*words, "--driver-timeout", timeout, *locks, *more, env=env)


@looks
@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetSamples", "nvmlDeviceGetMemoryInfo_v2"])
def test_a_look_says_so_and_ends(tmp_path, words, call):
    """While the driver is opened, or asked."""
    run = run_hanging(tmp_path, call, words, "--no-store")
    assert (run.returncode, run.stdout) == (1, "")
    assert re.fullmatch(f"gua {words[0]}: {SENTENCE}\n", run.stderr), run.stderr


@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetSamples", "nvmlShutdown"])
def test_the_doctor_goes_on_without_it(tmp_path, call):
    run = run_hanging(tmp_path, call, ["doctor", "--json", "--db", tmp_path / "no.db"],
                      timeout="1h" if call == "nvmlShutdown" else "100ms")
    checks = {check["check"]: check for check in json.loads(run.stdout)["checks"]}
    assert "store" in checks
    if call == "nvmlShutdown":
        assert (run.returncode, checks["driver"]["result"]) == (0, "ok")
    else:
        assert run.returncode == 1
        assert checks["driver"]["result"] == "problem" and "does not answer" in checks["driver"]["text"]
        assert "dmesg" in checks["driver"]["advice"]


@pytest.mark.parametrize("words", [["stat"], QUERY])
def test_the_metrics_of_a_card_hang(tmp_path, words):
    run = run_hanging(tmp_path, "nvmlDeviceGetTemperature card 1", words, "--no-store")
    assert run.returncode == 1 and re.fullmatch(f"gua {words[0]}: {SENTENCE}\n", run.stderr)


@pytest.mark.waits
@pytest.mark.parametrize("words", [pytest.param(words, marks=needs_top if words[0] == "top" else (), id=words[0])
                                   for words in (["stat"], QUERY, ["dmon", "-c", "1"], ["who"], PICK, ["top"])])
def test_a_driver_that_hangs_when_it_is_closed(tmp_path, words):
    """What was wanted is there, and nobody waits for an hour."""
    run = run_hanging(tmp_path, "nvmlShutdown", words, "--no-store", timeout="1h")
    assert run.returncode == 0 and run.stdout and "answered" not in run.stderr


@pytest.mark.waits
def test_a_command_starts_all_the_same(tmp_path):
    run = run_hanging(tmp_path, "nvmlShutdown", ["pick", "--no-store", "--lock-dir", tmp_path], "--", "printenv",
                      "CUDA_VISIBLE_DEVICES", timeout="1h")
    assert (run.returncode, run.stdout) == (0, "GPU-bbbb\n")


@pytest.mark.waits
def test_the_time_that_it_is_given(tmp_path):
    """A slow driver is not one that hangs."""
    env = driver(tmp_path, CARDS + "at 0s slow nvmlInit_v2 1h\n")
    assert gua("stat", "--no-store", "--driver-timeout", "300ms", env=env).returncode == 1
    env = driver(tmp_path, CARDS + "at 0s slow nvmlInit_v2 300ms\n")
    assert gua("stat", "--no-store", "--driver-timeout", "1h", env=env).returncode == 0
    assert gua("stat", "--no-store", env=env).returncode == 0
    assert gua("stat", "--driver-timeout", "soon").returncode == 2


class Loop:
    """A view that looks again and again, on a driver in which `call` hangs from second 1 on. Its clock stands."""

    def __init__(self, tmp_path, clock, scenario, *words, timeout="1s"):
        self.out, self.said, self.release, self.log = (tmp_path / name for name in ("out", "said", "release", "log"))
        self.clock = clock
        env = driver(tmp_path, scenario, clock=clock, log=self.log, FAKENVML_RELEASE=self.release)
        with open(self.out, "wb") as out, open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [GUA, *words, "--no-store", "--driver-timeout", timeout], stdout=out, stderr=said,
                stdin=subprocess.DEVNULL, env=clean_environment(**env))

    def lines(self):
        return self.out.read_text().splitlines()

    def wait(self, condition):
        def holds():
            assert self.process.poll() is None, self.said.read_text()
            return condition()
        wait_for(holds, self.said.read_text)

    def wait_said(self, words):
        """Waits until it says this, and nothing after it."""
        self.wait(lambda: self.said.read_text().endswith(f"{words}\n"))

    def more(self, n):
        """Waits for so many lines more."""
        count = len(self.lines())
        self.wait(lambda: len(self.lines()) >= count + n)

    def hang(self, call):
        """Lets the call hang, and waits until it does."""
        advance(self.clock, 1.5)
        self.wait(lambda: any(at >= 1 and name == call for at, name, _, _ in calls(self.log)))

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(60)


@pytest.fixture
def loop(tmp_path, clock_file):
    started = []

    def start(call, *words, at="1s", scenario=CARDS, real=False, **more):
        clock = None if real else clock_file(time.time())
        started.append(Loop(tmp_path, clock, f"{scenario}at {at} hang {call}\n", *words, **more))
        return started[-1]
    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


@pytest.mark.waits
@pytest.mark.parametrize("words", [["stat", "-i", "0.1"], ["stat", "--json", "-i", "0.1"], [*QUERY, "-lms", "100"],
                                   ["dmon", "-d", "0.1"]], ids=" ".join)
def test_a_loop_goes_on_when_the_driver_does(loop, words):
    run = loop("nvmlDeviceGetSamples", *words)
    run.more(1)
    run.hang("nvmlDeviceGetSamples")
    run.wait_said("; trying again")
    count = len(run.lines())
    time.sleep(0.5)
    assert len(run.lines()) == count  # nothing is invented meanwhile
    run.release.touch()
    run.more(3)
    run.end()
    # Once; but a machine that is slow enough makes the driver late by itself.
    late, back = f"gua {words[0]}: {SENTENCE}; trying again\n", f"gua {words[0]}: the driver answers again\n"
    assert re.fullmatch(f"({late}{back})+({late})?", run.said.read_text()), run.said.read_text()
    if "--json" in words:
        assert all(json.loads(line)["gpus"] for line in run.lines())


while_opened_or_asked = pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetSamples"])


@while_opened_or_asked
def test_a_loop_that_starts_while_the_driver_hangs(loop, call):
    run = loop(call, *QUERY, "-lms", "100", at="0s")
    run.wait_said("; trying again")
    run.release.touch()
    run.more(4)


def test_an_answer_that_came_too_late_is_not_shown(loop):
    """Memory is read before the call that hangs: what it was then is not what it is when that comes back."""
    run = loop("nvmlDeviceGetTemperature", *QUERY, "-lms", "100",
               scenario=CARDS + "at 2s hold p card 1 memory 3GiB\n")
    run.more(2)
    run.hang("nvmlDeviceGetTemperature")
    run.wait_said("; trying again")
    before = len(run.lines())
    advance(run.clock, 1)
    run.release.touch()
    run.more(2)
    rows = [int(line.split(",")[0]) for line in run.lines()]
    assert rows[1] == 0 and rows[before + 1] >= 3 * 1024


LATE = r"the driver always takes longer than --driver-timeout; the readings are \d+\.\d s old"


@pytest.mark.waits
@pytest.mark.parametrize("words", [["stat", "-i", "0.2"], [*QUERY, "-lms", "100"], ["dmon", "-d", "0.2"]],
                         ids=["stat", "query", "dmon"])
def test_a_driver_that_is_always_late_is_shown_late(loop, words):
    """Rather than never, and that is said once. In real time: a call takes its time in that alone."""
    run = loop("nvmlSystemGetNVMLVersion", *words, at="1h", real=True,
               scenario=CARDS + "at 0s slow nvmlDeviceGetTemperature 600ms\n")
    run.more(6)
    run.end()
    said = run.said.read_text()
    assert re.fullmatch(f"gua {words[0]}: {SENTENCE}; trying again\ngua {words[0]}: {LATE}\n", said), said


@pytest.mark.waits
def test_no_card_is_picked_by_what_is_old(tmp_path):
    env = driver(tmp_path, CARDS + "at 0s slow nvmlDeviceGetComputeRunningProcesses* 600ms\n")
    run = gua("pick", "--no-store", "--driver-timeout", "300ms", "--wait=2s", "--hold", "0s", "--lock-dir", tmp_path,
              env=env)
    assert (run.returncode, run.stdout) == (1, "") and "the driver" in run.stderr


def test_looks_that_are_counted_end(tmp_path):
    run = run_hanging(tmp_path, "nvmlDeviceGetSamples", ["dmon", "--no-store", "-c", "2", "-d", "0.1"])
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.count("\n") == 2


def test_the_user_ends_it_meanwhile(loop):
    """Ctrl-C is not for the driver to answer."""
    run = loop("nvmlDeviceGetSamples", "stat", "-i", "0.1", timeout="1h")
    run.more(1)
    run.hang("nvmlDeviceGetSamples")
    assert run.end(signal.SIGINT) == 0
    assert run.said.read_text() == ""


@pytest.mark.waits
@while_opened_or_asked
def test_a_pick_waits_for_the_driver_too(tmp_path, loop, call):
    run = loop(call, "pick", "--wait", "--hold", "0s", "--lock-dir", tmp_path, at="0s")
    run.wait_said("; waiting")
    run.release.touch()
    assert run.process.wait(60) == 0
    assert run.out.read_text() == "GPU-bbbb\n"


@pytest.mark.waits
@while_opened_or_asked
def test_a_pick_does_not_wait_for_longer_than_it_may(tmp_path, call):
    start = time.monotonic()
    run = run_hanging(tmp_path, call, ["pick", "--no-store", "--wait=1s", "--lock-dir", tmp_path])
    assert (run.returncode, run.stdout) == (1, "") and time.monotonic() - start >= 1
    assert re.fullmatch(f"gua pick: {SENTENCE}; waiting\ngua pick: {SENTENCE}\n", run.stderr)


@pytest.mark.parametrize("words", [["stat", "-i", "0.1"], [*QUERY, "-lms", "100"]], ids=["stat", "query"])
def test_a_driver_that_is_gone_is_waited_for_too(loop, words):
    """As one that is loaded again: calls fail, and then they do not."""
    run = loop("none", *words, scenario=CARDS + "at 1s fail nvml* code 9 until 2s\n", timeout="1h")
    run.more(1)
    advance(run.clock, 1.5)
    run.wait_said("; trying again")
    advance(run.clock, 1)
    run.wait_said("the driver answers again")
    assert run.said.read_text().count("trying again") == 1

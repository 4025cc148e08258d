"""A driver that hangs: no live view waits for it for longer than --driver-timeout. A look says so and ends,
a loop says so once, goes on trying, and goes on when the driver does. (gua top's screen is in test_top.py.)

The driver plays in real time here: it is let go by a file, so that what is waited for is seen, not slept for."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BUILD, GUA, clean_environment, gua
from fake import fake_driver

CARDS = """
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 80GiB
card 1 uuid GPU-bbbb name "NVIDIA A100" memory 80GiB
process p pid env HOLDER
at 0s hold p card 0 memory 2GiB
"""
SENTENCE = r"the driver has not answered for \d+ m?s: look for NVRM and Xid in the kernel's log \(dmesg\), " \
           r"or wait longer with --driver-timeout"
QUERY = ["query", "--query-gpu=memory.used,temperature.gpu", "--format=csv,noheader,nounits"]
LOOKS = [["stat"], ["stat", "--json"], QUERY, ["query", "--query-compute-apps=pid"], ["dmon", "-c", "1"],
         ["dmon", "-p", "-c", "1"], ["who"], ["pick", "--hold", "0s"], ["top"], ["top", "--once"]]
needs_top = pytest.mark.skipif(not (BUILD / "gua-top").exists(), reason="built without gua top")
looks = pytest.mark.parametrize("words", [pytest.param(words, marks=needs_top if words[0] == "top" else (),
                                                       id=" ".join(words[:2])) for words in LOOKS])


def driver(tmp_path, scenario, **more):
    """The holder is this process, so that it is there."""
    return fake_driver(tmp_path, scenario, HOLDER=os.getpid(), **more)


def hanging(tmp_path, call, at="0s", scenario=CARDS):
    """The environment with a driver in which `call` hangs from then on, until the file is there."""
    return driver(tmp_path, scenario + f"at {at} hang {call}\n", FAKENVML_RELEASE=tmp_path / "release")


def run_hanging(tmp_path, call, words, *more):
    start = time.monotonic()
    run = gua(*words, "--no-store", "--driver-timeout", "300ms", *more, env=hanging(tmp_path, call), timeout=30)
    return run, time.monotonic() - start


@looks
@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetSamples", "nvmlDeviceGetMemoryInfo_v2"])
def test_a_look_says_so_and_ends(tmp_path, words, call):
    """While the driver is opened, or asked."""
    run, seconds = run_hanging(tmp_path, call, words)
    assert (run.returncode, run.stdout) == (1, "")
    assert re.fullmatch(f"gua {words[0]}: {SENTENCE}\n", run.stderr), run.stderr
    assert 0.3 <= seconds < 10


@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetSamples", "nvmlShutdown"])
def test_the_doctor_goes_on_without_it(tmp_path, call):
    run = gua("doctor", "--json", "--driver-timeout", "300ms", env=hanging(tmp_path, call), timeout=30)
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
    run, _ = run_hanging(tmp_path, "nvmlDeviceGetTemperature card 1", words)
    assert run.returncode == 1 and re.fullmatch(f"gua {words[0]}: {SENTENCE}\n", run.stderr)


@looks
def test_a_driver_that_hangs_when_it_is_closed(tmp_path, words):
    """What was wanted is there."""
    run, seconds = run_hanging(tmp_path, "nvmlShutdown", words)
    assert run.returncode == 0 and run.stdout and "answered" not in run.stderr
    assert seconds < 10


def test_a_command_starts_all_the_same(tmp_path):
    run, _ = run_hanging(tmp_path, "nvmlShutdown", ["pick", "--lock-dir", tmp_path], "--", "printenv",
                         "CUDA_VISIBLE_DEVICES")
    assert (run.returncode, run.stdout) == (0, "GPU-bbbb\n")


def test_the_time_that_it_is_given(tmp_path):
    """A slow driver is not one that hangs."""
    scenario = CARDS + "at 0s slow nvmlInit_v2 600ms\n"
    env = driver(tmp_path, scenario)
    assert gua("stat", "--no-store", "--driver-timeout", "300ms", env=env).returncode == 1
    assert gua("stat", "--no-store", "--driver-timeout", "20s", env=env).returncode == 0
    assert gua("stat", "--no-store", env=env).returncode == 0
    assert gua("stat", "--driver-timeout", "soon").returncode == 2


class Loop:
    """A view that looks again and again, on a driver in which `call` hangs at some time."""

    def __init__(self, tmp_path, call, *words, timeout="300ms", at="1s", **more):
        self.out, self.said, self.release = (tmp_path / name for name in ("out", "said", "release"))
        with open(self.out, "wb") as out, open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [GUA, *words, "--no-store", "--driver-timeout", timeout], stdout=out, stderr=said,
                stdin=subprocess.DEVNULL, env=clean_environment(**hanging(tmp_path, call, at, **more)))

    def lines(self):
        return self.out.read_text().splitlines()

    def wait(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            assert self.process.poll() is None, self.said.read_text()
            assert time.monotonic() < deadline, self.said.read_text()
            time.sleep(0.02)

    def more(self, n=4):
        """Waits for so many lines more."""
        count = len(self.lines())
        self.wait(lambda: len(self.lines()) >= count + n)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(20)


@pytest.fixture
def loop(tmp_path):
    started = []

    def start(*words, **more):
        started.append(Loop(tmp_path, *words, **more))
        return started[-1]
    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


@pytest.mark.parametrize("words", [["stat", "-i", "0.2"], ["stat", "--json", "-i", "0.2"], [*QUERY, "-lms", "100"],
                                   [*QUERY, "-l", "1"], ["dmon", "-d", "1"]], ids=" ".join)
def test_a_loop_goes_on_when_the_driver_does(loop, words):
    run = loop("nvmlDeviceGetSamples", *words)
    run.more(1)
    run.wait(lambda: "trying again" in run.said.read_text())
    count = len(run.lines())
    time.sleep(0.5)
    assert len(run.lines()) == count  # nothing is invented meanwhile
    run.release.touch()
    run.more(3)
    run.end()
    assert re.fullmatch(f"gua {words[0]}: {SENTENCE}; trying again\ngua {words[0]}: the driver answers again\n",
                        run.said.read_text())
    if "--json" in words:
        assert all(json.loads(line)["gpus"] for line in run.lines())


def test_a_loop_that_starts_while_the_driver_hangs(loop):
    run = loop("nvmlDeviceGetSamples", *QUERY, "-lms", "100", at="0s")
    run.wait(lambda: "trying again" in run.said.read_text())
    run.release.touch()
    run.more(4)


def test_an_answer_that_came_too_late_is_not_shown(loop):
    """Memory is read before the call that hangs: what it was then is not what it is when that comes back."""
    run = loop("nvmlDeviceGetTemperature", *QUERY, "-lms", "100",
               scenario=CARDS + "at 1200ms hold p card 1 memory 3GiB\n")
    run.more(2)
    run.wait(lambda: "trying again" in run.said.read_text())
    before = len(run.lines())
    time.sleep(0.5)
    run.release.touch()
    run.more(2)
    rows = [int(line.split(",")[0]) for line in run.lines()]
    assert rows[1] == 0 and rows[before + 1] >= 3 * 1024


def test_looks_that_are_counted_end(tmp_path):
    run, seconds = run_hanging(tmp_path, "nvmlDeviceGetSamples", ["dmon", "-c", "2", "-d", "1"])
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.count("\n") == 2 and seconds < 10


def test_the_user_ends_it_meanwhile(loop):
    """Ctrl-C is not for the driver to answer."""
    run = loop("nvmlDeviceGetSamples", "stat", "-i", "0.2", timeout="1h")
    run.more(1)
    time.sleep(1.2)
    start = time.monotonic()
    assert run.end(signal.SIGINT) == 0 and time.monotonic() - start < 5
    assert run.said.read_text() == ""


def test_a_pick_waits_for_the_driver_too(tmp_path, loop):
    run = loop("nvmlDeviceGetSamples", "pick", "--wait", "--hold", "0s", "--lock-dir", tmp_path, at="0s")
    run.wait(lambda: "; waiting" in run.said.read_text())
    run.release.touch()
    assert run.process.wait(30) == 0
    assert run.out.read_text() == "GPU-bbbb\n"


def test_a_pick_does_not_wait_for_longer_than_it_may(tmp_path):
    run, seconds = run_hanging(tmp_path, "nvmlDeviceGetSamples", ["pick", "--wait=1s", "--lock-dir", tmp_path])
    assert (run.returncode, run.stdout) == (1, "") and 1 <= seconds < 10
    assert re.fullmatch(f"gua pick: {SENTENCE}; waiting\ngua pick: {SENTENCE}\n", run.stderr)


@pytest.mark.parametrize("words", [["stat", "-i", "0.2"], [*QUERY, "-lms", "100"]], ids=["stat", "query"])
def test_a_driver_that_is_gone_is_waited_for_too(tmp_path, words):
    """As one that is loaded again: calls fail, and then they do not."""
    out, said = tmp_path / "out", tmp_path / "said"
    env = driver(tmp_path, CARDS + "at 500ms fail nvml* code 9 until 1500ms\n")
    with open(out, "wb") as to, open(said, "wb") as errors:
        run = subprocess.Popen([GUA, *words, "--no-store"], stdout=to, stderr=errors, env=clean_environment(**env))
    try:
        deadline = time.monotonic() + 30
        while "answers again" not in said.read_text():
            assert run.poll() is None and time.monotonic() < deadline, said.read_text()
            time.sleep(0.02)
    finally:
        run.kill()
        run.wait()
    assert said.read_text().count("trying again") == 1 and out.read_text()

"""The process that asks the driver: what happens when it hangs, dies or cannot be ended. (How live views show a driver
that hangs is in test_hang.py.)

gua runs in real time here. A deadline that must be missed is short, one that must be met is an hour."""
import ctypes
import json
import os
import pathlib
import resource
import signal
import subprocess
import time

import pytest

from conftest import GUA, advance, children, clean_environment, gua, wait_for
from fake import calls, fake_driver
from recorded import card_seconds, rows

CARDS = """
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 80GiB
card 1 uuid GPU-bbbb name "NVIDIA A100" memory 80GiB
"""


def name(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def is_there(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Recorder:
    """A recorder in the foreground. Its driver's clock stands until the test moves it."""

    def __init__(self, tmp_path, clock, scenario, *words):
        self.db, self.log, self.calls, self.release = (
            tmp_path / part for part in ("gua.db", "log", "calls", "release"))
        self.clock = clock
        env = fake_driver(tmp_path, scenario, clock=clock, log=self.calls, FAKENVML_RELEASE=self.release)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [GUA, "daemon", "-f", "--db", self.db, "--interval", "200ms", "--drain", "100ms", "--glance", "100ms",
                 "--retry", "200ms", *words],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=clean_environment(**env))

    def status(self):
        return gua("status", "--db", self.db).stdout

    def said(self):
        return self.log.read_text()

    def wait(self, condition):
        def holds():
            assert self.process.poll() is None, self.said()
            return condition()
        wait_for(holds, lambda: self.said() + self.status())

    def helper(self):
        """The process that asks the driver."""
        self.wait(lambda: [pid for pid in children(self.process.pid) if name(pid) == "gua-nvml"])
        return next(pid for pid in children(self.process.pid) if name(pid) == "gua-nvml")

    def wait_ready(self):
        self.wait(lambda: "2 ok\n" in self.status() and "faults     none" in self.status())

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture
def record(tmp_path, clock_file):
    started = []

    def start(scenario, *words, real=False):
        started.append(Recorder(tmp_path, None if real else clock_file(time.time()), scenario, *words))
        return started[-1]
    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def test_another_process_asks_the_driver(record):
    """It has nothing open of the recorder's, and ends with it, however that ends."""
    run = record(CARDS)
    run.wait_ready()
    helper = run.helper()
    files = {os.readlink(fd) for fd in pathlib.Path(f"/proc/{helper}/fd").iterdir()}
    assert not any(str(run.db) in file or str(run.log) in file for file in files), files
    run.process.kill()
    run.process.wait()
    wait_for(lambda: not is_there(helper))


@pytest.mark.waits
def test_a_driver_that_hangs_does_not_keep_the_recorder_from_ending(record):
    run = record(CARDS + "at 3s hang nvmlDeviceGetSamples\n", "--driver-timeout", "1h", real=True)
    run.wait(lambda: sum(card_seconds(run.db).values()) > 1 if run.db.exists() and run.db.stat().st_size else False)
    seen = sum(card_seconds(run.db).values())
    helper = run.helper()
    wait_for(lambda: any(at >= 3 and call == "nvmlDeviceGetSamples" for at, call, _, _ in calls(run.calls)))
    assert run.stop() == 0, run.said()
    assert not is_there(helper)
    assert sum(card_seconds(run.db).values()) >= seen
    assert rows(run.db, "SELECT how_ended FROM run") == [("stopped",)]


@pytest.mark.waits
def test_the_others_go_on_without_a_card_that_hangs(record):
    """Which one it is in, and for how long, is said while it hangs; then the card is left alone."""
    run = record(CARDS + "at 1s hang nvmlDeviceGetSamples card 1\n", "--driver-timeout", "300ms",
                 "--driver-patience", "2s")
    run.wait_ready()
    first = run.helper()
    advance(run.clock, 1.5)
    run.wait(lambda: "the driver does not answer (stuck in nvmlDeviceGetSamples on card 1)" in run.status())
    run.wait(lambda: "card 1 (GPU-bbbb) is lost (a call to it has not come back: it is left alone)" in run.status())
    run.wait(lambda: "cards      2: 1 ok, 1 lost\n" in run.status() and "does not answer" not in run.status())
    assert not is_there(first) and run.helper() != first
    assert "nvmlDeviceGetSamples on card 1 has not come back for 2 s" in run.said()
    before = len(calls(run.calls))
    run.wait(lambda: len(calls(run.calls)) > before + 20)
    assert not any(card == 1 for _, _, card, _ in calls(run.calls)[before:]), calls(run.calls)[before:]
    assert run.stop() == 0
    kinds = [kind for kind, in rows(run.db, "SELECT kind FROM event ORDER BY at_ms, id")]
    assert kinds.index("driver-down") < kinds.index("driver-up") and "card-lost" in kinds, kinds


SIMULATED = """
ring 1s
card 0 uuid SIM-0 name "Simulated" memory 8GiB
process toy pid 4242 user carol uid 1003 command "python toy.py"
at 0s hold toy card 0 memory 2GiB
"""


@pytest.fixture
def beside(tmp_path):
    """The options for a simulated card, which loses a second at once when nobody asks, beside the driver."""
    (tmp_path / "sim.scenario").write_text(SIMULATED)
    return ["--source", "nvml,sim", "--scenario", tmp_path / "sim.scenario"]


@pytest.mark.waits
@pytest.mark.parametrize("call, at", [("nvmlDeviceGetSamples", 1), ("nvmlInit_v2", 0), ("nvmlDeviceGetMemoryInfo*", 1)])
def test_another_source_goes_on_beside_a_driver_that_hangs(record, beside, call, at):
    """The driver is still waited for: when it answers, its cards are back."""
    run = record(CARDS + f"at {at}s hang {call} until 2s\n", "--driver-timeout", "400ms", "--driver-patience", "1h",
                 *beside)
    if at:
        run.wait(lambda: "3: 3 ok" in run.status())
        advance(run.clock, at + 0.5)
    run.wait(lambda: "source nvml: the driver does not answer (stuck in nvml" in run.said())
    seconds = lambda: card_seconds(run.db, "SIM-0").get("idle_held", 0)
    before = seconds()
    run.wait(lambda: seconds() > before + 1.5)
    advance(run.clock, 2)
    run.wait(lambda: "3: 3 ok" in run.status() and "faults     none" in run.status())
    assert run.stop() == 0
    assert "unobserved" not in card_seconds(run.db, "SIM-0")
    assert rows(run.db, "SELECT count(*) FROM event WHERE kind = 'driver-down'") == [(0,)]


@pytest.mark.waits
@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetTemperature"])
def test_a_view_shows_another_source_beside_a_driver_that_hangs(tmp_path, beside, clock_file, call):
    env = fake_driver(tmp_path, CARDS + f"at 0s hang {call}\n", clock=clock_file(time.time()))
    shown = gua("stat", "--no-store", "--driver-timeout", "4s", *beside, env=env)
    assert shown.returncode == 0 and "carol" in shown.stdout, shown.stdout + shown.stderr
    assert shown.stdout.count("| lost\n") == (0 if call == "nvmlInit_v2" else 2)
    if call == "nvmlInit_v2":
        assert shown.stderr == "gua: error: source nvml: the driver does not answer (stuck in nvmlInit)\n"


def test_a_recorder_starts_on_a_card_that_hangs(record):
    run = record(CARDS + "at 0s hang nvmlDeviceGetSamples card 1\n", "--driver-timeout", "300ms",
                 "--driver-patience", "1s")
    run.wait(lambda: "cards      2: 1 ok, 1 lost\n" in run.status())
    assert run.stop() == 0


def test_a_process_that_dies_is_replaced(record):
    run = record(CARDS)
    run.wait_ready()
    first = run.helper()
    os.kill(first, signal.SIGKILL)
    run.wait(lambda: "the process gua-nvml was ended by signal 9" in run.said())
    run.wait_ready()
    assert run.helper() != first
    assert run.stop() == 0


@pytest.mark.waits
def test_a_process_that_was_frozen_is_not_given_up(record):
    """When all processes of the recorder were stopped, none of them was late."""
    run = record(CARDS, "--driver-timeout", "1s", "--driver-patience", "1500ms", real=True)
    run.wait_ready()
    first = run.helper()
    everybody = [run.process.pid, *children(run.process.pid)]
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(3)
    for pid in everybody:
        os.kill(pid, signal.SIGCONT)
    ticks = rows(run.db, "SELECT last_tick_ms FROM run")
    run.wait(lambda: rows(run.db, "SELECT last_tick_ms FROM run") != ticks)
    run.wait_ready()
    assert run.helper() == first, run.said()
    assert run.stop() == 0


def test_status_says_why_it_fails_now(record):
    """And not why it failed first. Without a free descriptor, no other process can be started."""
    run = record(CARDS)
    run.wait_ready()
    helper = run.helper()
    before = resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    os.kill(helper, signal.SIGKILL)
    run.wait(lambda: "fault      for" in run.status() and "cannot make a socket: Too many open files" in run.status())
    resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE, before)
    run.wait_ready()
    assert run.said().count("Too many open files") <= 2, run.said()
    assert run.stop() == 0


PTRACE_SEIZE, PTRACE_DETACH, PTRACE_O_TRACEEXIT = 0x4206, 17, 0x40


class Unkillable:
    """Holds a process on its way out, so that even SIGKILL does not end it: as one that is stuck in a driver."""

    def __init__(self, pid):
        self.pid = pid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if self.libc.ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_TRACEEXIT) != 0:
            pytest.skip("processes cannot be traced here")

    def let_go(self):
        os.waitpid(self.pid, 0x40000000)  # __WALL
        assert self.libc.ptrace(PTRACE_DETACH, self.pid, None, None) == 0


def test_a_process_that_cannot_be_ended_is_left_behind(record):
    """Never a second one on its card; when it ends, the card is back."""
    run = record(CARDS + "at 1s hang nvmlDeviceGetSamples card 1\n", "--driver-timeout", "300ms",
                 "--driver-patience", "1s")
    run.wait_ready()
    first = run.helper()
    stuck = Unkillable(first)
    advance(run.clock, 1.5)
    run.wait(lambda: "cards      2: 1 ok, 1 lost\n" in run.status())
    assert f"process {first} is stuck in nvmlDeviceGetSamples on card 1 and cannot be ended" in run.said()
    assert is_there(first)
    before = len(calls(run.calls))
    run.wait(lambda: len(calls(run.calls)) > before + 20)
    assert not any(card == 1 for _, _, card, _ in calls(run.calls)[before:])
    run.release.touch()
    stuck.let_go()
    run.wait(lambda: "cards      2: 2 ok\n" in run.status())
    assert not is_there(first)
    assert run.stop() == 0


@pytest.mark.waits
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_recorder_leaves_its_card_alone(record, how):
    """A process that cannot be ended outlives its recorder, however that ends."""
    words = "--driver-timeout", "300ms", "--driver-patience", "1s"
    run = record(CARDS + "at 1s hang nvmlDeviceGetSamples card 1\n", *words)
    run.wait_ready()
    first = run.helper()
    stuck = Unkillable(first)
    advance(run.clock, 1.5)
    run.wait(lambda: "cards      2: 1 ok, 1 lost\n" in run.status())
    run.wait(lambda: f"\nstuck nvml {first} " in run.db.with_suffix(".db.status").read_text())
    run.process.send_signal(how)
    run.process.wait(60)
    assert is_there(first) and "not running" in run.status()
    # Nor does one forget it that is killed before the driver has answered.
    between = record(CARDS + "at 0s hang nvmlInit_v2\n", *words)
    between.wait(lambda: "trying again" in between.status())
    assert f"\nstuck nvml {first} " in run.db.with_suffix(".db.status").read_text()
    between.process.kill()
    between.process.wait()
    run.calls.unlink()
    again = record(CARDS, *words)
    again.wait(lambda: f"process {first} of an earlier recorder is still stuck in the driver" in again.said())
    again.wait(lambda: again.calls.exists() and len(calls(again.calls)) > 20)
    again.wait(lambda: "cards      2: 1 ok, 1 lost\n" in again.status())
    assert not any(card == 1 for _, _, card, _ in calls(again.calls))
    stuck.let_go()
    again.wait(lambda: any(card == 1 for _, _, card, _ in calls(again.calls)))
    again.wait_ready()
    assert rows(again.db, "SELECT uuid, name FROM gpu ORDER BY uuid") == [("GPU-aaaa", "NVIDIA A100"), ("GPU-bbbb", "NVIDIA A100")]
    assert not is_there(first)
    assert again.stop() == 0
    assert not again.db.with_suffix(".db.status").exists()


@pytest.mark.waits
def test_a_recorder_ends_although_its_process_does_not(record):
    run = record(CARDS + "at 1s hang nvmlDeviceGetSamples\n", "--driver-timeout", "1h")
    run.wait_ready()
    helper = run.helper()
    stuck = Unkillable(helper)
    advance(run.clock, 1.5)
    run.wait(lambda: any(at >= 1 and call == "nvmlDeviceGetSamples" for at, call, _, _ in calls(run.calls)))
    assert run.stop() == 0
    assert is_there(helper)
    stuck.let_go()


@pytest.mark.waits
def test_a_view_ends_although_its_process_does_not(tmp_path, clock_file):
    log = tmp_path / "calls"
    env = fake_driver(tmp_path, CARDS + "at 0s hang nvmlDeviceGetSamples\n", clock=clock_file(time.time()), log=log)
    view = subprocess.Popen([GUA, "stat", "--no-store", "--driver-timeout", "2s"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=clean_environment(**env))
    wait_for(lambda: log.exists() and any(call == "nvmlDeviceGetSamples" for _, call, _, _ in calls(log)))
    helper, = (pid for pid in children(view.pid) if name(pid) == "gua-nvml")
    stuck = Unkillable(helper)
    out, said = view.communicate(timeout=60)  # the pipes are closed, too
    assert (view.returncode, out) == (1, b"") and b"the driver has not answered" in said
    assert is_there(helper)
    stuck.let_go()


@pytest.mark.parametrize("more", [False, True], ids=["alone", "beside another source"])
def test_a_view_whose_process_dies_while_it_reads_metrics(tmp_path, clock_file, more):
    """What was read before is gone, too: the view says so, and does not show empty cards."""
    log, sim = tmp_path / "calls", tmp_path / "sim.scenario"
    sim.write_text('card 0 uuid GPU-cccc name "Simulated" memory 8GiB\n')
    env = fake_driver(tmp_path, CARDS + "at 0s hang nvmlDeviceGetTemperature card 1\n", clock=clock_file(time.time()),
                      log=log)
    words = ["--source", "nvml,sim", "--scenario", sim] if more else []
    view = subprocess.Popen([GUA, "stat", "--no-store", "--driver-timeout", "1h", *words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=clean_environment(**env), text=True)
    wait_for(lambda: log.exists() and any(call[1:3] == ("nvmlDeviceGetTemperature", 1) for call in calls(log)))
    os.kill(next(pid for pid in children(view.pid) if name(pid) == "gua-nvml"), signal.SIGKILL)
    out, said = view.communicate(timeout=60)
    if more:
        assert view.returncode == 0 and out.count("| lost\n") == 2 and "| truly-idle\n" in out, out
    else:
        assert (view.returncode, out) == (1, "") and "the process gua-nvml" in said, out + said


def test_a_tracker_does_not_count_it(tmp_path):
    """Nor what it used, when it ends before the command: the tracker waits for all its children."""
    env = fake_driver(tmp_path, CARDS)
    run = subprocess.Popen([GUA, "track", "-f", "json", "--processes", "--st", "20ms", "--", "sh", "-c",
                            "read line"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, env=clean_environment(**env))
    wait_for(lambda: {"gua-helper", "sh"} <= set(map(name, children(run.pid))))
    helper = next(pid for pid in children(run.pid) if name(pid) == "gua-helper")
    os.kill(helper, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path(f"/proc/{helper}").exists())
    _, report = run.communicate(b"end\n", timeout=60)
    assert run.returncode == 0, report
    result = json.loads(report[report.index(b"{"):])
    assert result["processes"]["seen"] == 1
    # In brackets where the helper had not described it yet.
    assert [one["command"].strip("[]") for one in result["process_table"]] == ["sh"]


@pytest.mark.waits
def test_a_tracker_ends_although_the_driver_hangs(tmp_path):
    env = fake_driver(tmp_path, CARDS + "at 0s hang nvmlInit_v2\n")
    run = gua("track", "-f", "json", "--", "true", env=env)
    assert run.returncode == 0, run.stderr

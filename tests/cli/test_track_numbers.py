"""Whether the tracker's numbers are right: real processes of known use, which measure themselves, and
the fake driver. The tool `tracking` runs them over tracker.h as `gua track` does.

Nothing here depends on how fast the machine is: a workload stays until it was seen, CPU time is compared with CPU
time, a time with what was measured inside and outside of it, and the driver lives in a time of its own."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, clean_environment, wait_for
from fake import fake_driver

pytestmark = pytest.mark.other_programs

TRACKING = BUILD / "tests" / "tracking"
WORKLOAD = BUILD / "tests" / "workload"
MB = 1_000_000


def track(tmp_path, *workload, options=(), env=None, program=WORKLOAD, seen=True):
    """Tracks a workload; what was measured, and the truth that it printed itself. It waits to be seen, or does not."""
    out, samples = tmp_path / "result.json", tmp_path / "samples"
    samples.write_bytes(b"")
    env = {**(env or {}), **({"SAMPLES": str(samples)} if seen else {})}
    run = subprocess.run([TRACKING, "--samples", samples, *map(str, options), out, program, *map(str, workload)],
                         check=True, timeout=120, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         env=clean_environment(**env))
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    result, truth = json.loads(out.read_text()), json.loads(lines[-1]) if lines else None
    # The command begins a moment after it was started, and its end is seen before it is waited for.
    assert (truth["life_s"] if truth else 0) <= result["elapsed_s"] <= result["at_most_s"]
    return result, truth


def cpu(group):
    return group["user_s"] + group["system_s"]


@pytest.mark.waits
@pytest.mark.same_path
@pytest.mark.parametrize("workload", [
    ("private", 500),
    ("shared", 1, 300),
    ("shared", 2, 150),
    ("shared", 10, 30),
    ("cow", 10, 30),
    ("pool", 100),
], ids=lambda w: "-".join(map(str, w)))
def test_memory_of_the_tree(tmp_path, workload):
    """A page that is shared within the tree counts once, whatever it is shared through."""
    result, truth = track(tmp_path, *workload)
    assert truth["pss"] >= 300 * MB
    assert result["combined"]["total"] == pytest.approx(truth["pss"], rel=0.02)
    assert result["combined"]["total"] <= result["main"]["total"] + result["descendants"]["total"]
    assert result["combined"]["private"] <= result["combined"]["total"]


def test_memory_of_one_process_is_private(tmp_path):
    result, truth = track(tmp_path, "private", 200)
    assert result["main"]["private"] == pytest.approx(200 * MB, rel=0.02)
    assert result["descendants"] == {**result["descendants"], "total": 0, "private": 0}
    assert result["processes"][0]["private"] == result["main"]["private"]


@pytest.mark.waits
@pytest.mark.parametrize("interval, seen", [("4s", True), ("60s", False)])
def test_a_peak_between_two_samples(tmp_path, interval, seen):
    """By the mark that the next sample finds, or by the one that the kernel has when it ends."""
    result, truth = track(tmp_path, "spike", 500, options=["--interval", interval], seen=seen)
    assert result["combined"]["total"] == pytest.approx(truth["pss"], rel=0.02)
    assert result["main"]["total"] == pytest.approx(truth["pss"], rel=0.02)


def test_a_peak_of_a_command_that_is_over_before_the_second_sample(tmp_path):
    result, truth = track(tmp_path, "private", 300, options=["--interval", "60s"], seen=False)
    assert result["combined"]["total"] == pytest.approx(truth["pss"], rel=0.02)


def test_sequential_children(tmp_path):
    """Each lives shorter than an interval; their parent has waited for them."""
    result, truth = track(tmp_path, "sequential", 40, 25)
    assert truth["children_s"] >= 40 * 0.025
    assert cpu(result["combined"]) == pytest.approx(truth["own_s"] + truth["children_s"], rel=0.03)
    assert cpu(result["descendants"]) == pytest.approx(truth["children_s"], rel=0.03)
    # No busy loop: the first and the last, four early ones, and one a second.
    assert result["samples"] <= 6 + result["at_most_s"]


def test_more_processes_than_rows(tmp_path):
    """What was seen and forgotten is still in the sums."""
    result, truth = track(tmp_path, "sequential", 700, 1, options=["--interval", "10ms"])
    assert len(result["processes"]) <= 512 + 8
    assert result["counts"]["seen"] <= 701
    assert cpu(result["combined"]) == pytest.approx(truth["own_s"] + truth["children_s"], rel=0.05, abs=0.05)


def test_a_daemon_does_not_escape(tmp_path):
    result, truth = track(tmp_path, "daemon", 800)
    assert truth["daemon_s"] >= 0.8
    assert cpu(result["combined"]) == pytest.approx(truth["daemon_s"] + truth["own_s"], rel=0.05)


def test_children_that_nobody_waits_for(tmp_path):
    """Their parent ignores SIGCHLD: the kernel gives their time to nobody, and what was read last counts."""
    result, truth = track(tmp_path, "ignored", 3, 300, options=["--interval", "50ms"])
    assert cpu(result["combined"]) == pytest.approx(truth["ignored_s"] + truth["own_s"], rel=0.05)


def test_threads(tmp_path):
    result, truth = track(tmp_path, "threads", 3, 300, options=["--interval", "100ms"])
    assert cpu(result["main"]) == pytest.approx(truth["own_s"], rel=0.03)
    assert result["main"]["threads"] == 4
    assert result["combined"]["cpu"]["max"] <= 100 * result["cores"]


@pytest.mark.same_path
@pytest.mark.parametrize("busy, period", [(20, 200), (50, 100)])
@pytest.mark.parametrize("phase", [0, 0.07])
def test_bursts(tmp_path, busy, period, phase):
    """The mean is over the whole time, wherever the samples fall."""
    result, truth = track(tmp_path, "-c", f"sleep {phase}; exec {WORKLOAD} burst {busy} {period} 1", program="/bin/sh",
                          options=["--interval", "200ms"])
    used = 100 * (truth["own_s"] + truth["children_s"])
    assert result["combined"]["cpu"]["mean"] == pytest.approx(used / result["elapsed_s"], abs=2)
    # Less than half an interval of one process is in no window.
    assert used / result["elapsed_s"] - 2 <= result["combined"]["cpu"]["max"] + 100 * 0.1 / result["elapsed_s"]
    assert result["combined"]["cpu"]["max"] <= 100 * result["cores"]


@pytest.mark.same_path
@pytest.mark.parametrize("interval", ["10ms", "1s"])
def test_the_maximum_is_possible(tmp_path, interval):
    result, truth = track(tmp_path, "threads", 4, 300, options=["--interval", interval], seen=False)
    assert 0 < result["combined"]["cpu"]["max"] <= 100 * result["cores"]


@pytest.mark.parametrize("seconds", [0.003, 0.5])
def test_time(tmp_path, seconds):
    """Not until the next sample: that is in an hour. track() has compared it with what was measured outside."""
    result, truth = track(tmp_path, "sleep", seconds, options=["--interval", "1h"])
    assert result["elapsed_s"] >= seconds and result["exited"]


def test_true(tmp_path):
    result, _ = track(tmp_path, program="/bin/true")
    assert result["exited"] and result["exit_status"] == 0
    assert 0 < result["elapsed_s"] <= result["at_most_s"]
    assert result["combined"]["total"] > 0 and result["samples"] >= 2
    assert result["counts"]["seen"] == 1 and result["warnings"] == []


def groups_of(result):
    return [result["cpu_system"]] + [result[group]["cpu"] for group in ("main", "descendants", "combined")]


@pytest.mark.same_path
@pytest.mark.parametrize("interval", ["20ms", "150ms", "1s"])
@pytest.mark.parametrize("script", [":", "sleep 0.16; {burn}", "{burn}; sleep 0.16", "sleep 0.07; ({burn}) & {burn}; wait"])
def test_a_maximum_is_never_below_the_mean(tmp_path, interval, script):
    """All of the time counts in both, also a rest that is shorter than an interval."""
    burn = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
    result, _ = track(tmp_path, "-c", script.format(burn=burn), program="/bin/sh", options=["--interval", interval])
    for cpu in groups_of(result):
        assert cpu["mean"] is None or cpu["max"] >= cpu["mean"], result


def test_the_exit_status(tmp_path):
    result, _ = track(tmp_path, "-c", "kill -9 $$", program="/bin/sh")
    assert os.WIFSIGNALED(result["exit_status"]) and os.WTERMSIG(result["exit_status"]) == 9


@pytest.mark.skipif(os.getuid() != 0, reason="needs two users")
def test_a_child_of_another_user():
    """Its memory is not ours to read; its CPU time counts, and one sentence says so."""
    where = tempfile.mkdtemp()
    nobody = 65534
    try:
        os.chmod(where, 0o777)
        for tool in (TRACKING, WORKLOAD):
            shutil.copy(tool, where)
        go, out, samples = (f"{where}/{name}" for name in ("go", "result.json", "samples"))
        other = subprocess.Popen([f"{where}/workload", "other", str(nobody), "500", go], stdout=subprocess.PIPE,
                                 text=True, env={"SAMPLES": samples})
        pid = int(other.stdout.readline())
        wait_for(lambda: b"collect" in open(f"/proc/{pid}/cmdline", "rb").read())
        tracker = subprocess.Popen([f"{where}/tracking", "--pid", str(pid), "--interval", "100ms", "--samples", samples,
                                    out], user=nobody, group=nobody, env=clean_environment())
        wait_for(lambda: os.path.exists(samples) and os.stat(samples).st_size)  # it has looked
        open(go, "w").close()
        truth = json.loads(other.stdout.readline())
        assert other.wait(60) == 0 and tracker.wait(60) == 0
        result = json.loads(open(out).read())
    finally:
        shutil.rmtree(where)
    assert truth["children_s"] >= 0.5
    # User and system time, each cut to the kernel's ticks of 10 ms, at both ends.
    assert cpu(result["combined"]) == pytest.approx(truth["children_s"], abs=0.04)
    assert cpu(result["descendants"]) == pytest.approx(truth["children_s"], abs=0.04)
    assert result["descendants"]["total"] == -1 and result["main"]["total"] > 0
    assert len(result["warnings"]) == 1 and "another user" in result["warnings"][0]


def test_a_pid_that_runs_already(tmp_path):
    """What it used before is not counted, and neither is its earlier peak."""
    out = tmp_path / "result.json"
    code = "x=bytearray(200_000_000); del x\nt=__import__('time')\ne=t.process_time()+0.5\n" \
           "while t.process_time()<e: pass\nprint(1, flush=True)\ninput()"
    with subprocess.Popen(["/usr/bin/python3", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as old:
        old.stdout.readline()
        subprocess.run([TRACKING, "--pid", str(old.pid), "--interval", "100ms", "--seconds", "0.5", out], check=True,
                       env=clean_environment(), timeout=120)
        old.communicate(b"\n")
    result = json.loads(out.read_text())
    assert cpu(result["combined"]) < 0.1 and result["combined"]["total"] < 100 * MB
    assert 0.5 <= result["elapsed_s"] <= result["at_most_s"] and not result["exited"]


# The driver, which has played for a minute when the tracker comes: its ring is full.

SCENARIO = """
card 0 uuid GPU-a name "Card" memory 80GiB idle-power 50W max-power 400W
card 1 uuid GPU-b name "Card" memory 40GiB idle-power 50W max-power 400W
process main pid env MAIN_PID user a uid 1 command x
process child pid env CHILD_PID user a uid 1 command x
process stranger pid 4000001 user b uid 2 command y
at 0s hold main card 0 memory 1000MiB
at 0s hold child card 0 memory 500MiB
at 0s hold main card 1 memory 200MiB
at 0s hold child card 1 memory 100MiB
at 0s hold stranger card 0 memory 8GiB
at 0s load main card 0 sm 30
at 0s load stranger card 0 sm 40
"""
MIB = 1 << 20


@pytest.fixture
def track_gpu(tmp_path, clock_file):
    """track_gpu(SCENARIO, looks=3) looks at a process with a child so many times, a second of the driver's time apart.
    By pid: the driver must know the pids before."""
    def track(scenario, looks=3, began_s=60):
        out = tmp_path / "result.json"
        with subprocess.Popen([WORKLOAD, "wait"], stdout=subprocess.PIPE, text=True) as work:
            main, child = map(int, work.stdout.readline().split())
            try:
                clock = clock_file(1_700_000_000 + began_s, 3600 + began_s)
                env = fake_driver(tmp_path, scenario, clock=clock, MAIN_PID=main, CHILD_PID=child)
                run = subprocess.run([TRACKING, "--source", "nvml", "--nvml", env["GUA_NVML"], "--pid", str(main),
                                      "--clock", clock, "--looks", str(looks), out], check=True, timeout=120,
                                     capture_output=True, text=True, env=clean_environment(**env))
            finally:
                os.kill(child, 9)
                work.kill()
        assert run.stdout == run.stderr == ""
        result = json.loads(out.read_text())
        # Whatever the driver does not tell, the rest is right.
        assert result["counts"]["seen"] == 2 and result["main"]["total"] > 0
        return result
    return track


def test_a_card_that_was_busier_before(track_gpu):
    """The sample whose period ends in the tracking counts in both, the mean and the maximum: 70 % more for 10 ms."""
    scenario = SCENARIO.replace("at 0s load stranger card 0 sm 40", "at 0s load stranger card 0 sm 70")
    result = track_gpu(scenario + "at 60010ms load stranger card 0 sm 0\n", began_s=60.1)
    for card in result["gpu"]["cards"]:
        assert card["max_util"] >= card["mean_util"], card
    assert result["gpu"]["cards"][0]["max_util"] == 34
    assert result["gpu"]["util"]["max"] >= result["gpu"]["util"]["mean"]


def test_two_cards_and_a_stranger(track_gpu):
    result = track_gpu(SCENARIO, looks=4)
    assert result["main"]["gpu_ram"] == 1200 * MIB
    assert result["descendants"]["gpu_ram"] == 600 * MIB
    assert result["combined"]["gpu_ram"] == 1800 * MIB
    gpu = result["gpu"]
    a, b = gpu["cards"]
    assert gpu["known"] and gpu["count"] == 2 and gpu["capacity"] == 120 << 30
    assert gpu["system"] == (1000 + 500 + 200 + 100 + 8192) * MIB
    assert (a["tree"], b["tree"], a["processes"], b["processes"]) == (1500 * MIB, 300 * MIB, 2, 2)
    assert a["mean_util"] == pytest.approx(70) and a["max_util"] == 70 and b["max_util"] == 0
    assert a["mean_tree"] == pytest.approx(30, abs=1) and b["max_tree"] == 0
    assert gpu["util"]["max"] == 70
    # Three seconds, less at most one sample of a sixth.
    assert 3 - 1 / 6 <= a["active_s"] <= 3 and a["idle_held_s"] == 0
    assert 3 - 1 / 6 <= b["idle_held_s"] <= 3 and b["active_s"] == 0
    assert a["tree_energy_j"] == pytest.approx(a["energy_j"] * 30 / 70, rel=0.02) and a["energy_j"] > 0
    assert result["warnings"] == []
    # main has a context on each; the child's on card b is 100 MiB, and is the floor that was learned.
    assert 0 < gpu["context"] <= 4 * 500 * MB
    assert {p["gpu"] for p in result["processes"]} == {1200 * MIB, 600 * MIB}


def test_process_memory_unavailable(track_gpu):
    result = track_gpu(SCENARIO.replace("hold child card 1 memory 100MiB", "hold child card 1 memory unknown"))
    assert result["main"]["gpu_ram"] == 1200 * MIB
    assert result["descendants"]["gpu_ram"] == -1 and result["combined"]["gpu_ram"] == -1
    assert result["gpu"]["cards"][1]["tree"] == -1 and result["gpu"]["cards"][0]["tree"] == 1500 * MIB
    assert result["gpu"]["cards"][0]["mean_util"] == pytest.approx(70)
    assert result["gpu"]["context"] == -1
    assert len(result["warnings"]) == 1


def test_utilisation_not_supported(track_gpu):
    result = track_gpu(SCENARIO + """
at 0s fail nvmlDeviceGetSamples code 3
at 0s fail nvmlDeviceGetUtilizationRates code 3
at 0s fail nvmlDeviceGetProcessUtilization code 3
at 0s fail nvmlDeviceGetProcessesUtilizationInfo code 3
""")
    assert result["gpu"]["util"] == {"max": None, "mean": None}
    for card in result["gpu"]["cards"]:
        assert card["mean_util"] is card["max_util"] is card["mean_tree"] is None
        assert card["active_s"] is card["idle_held_s"] is None
    assert result["combined"]["gpu_ram"] == 1800 * MIB
    assert result["gpu"]["energy_j"] > 0


def test_a_card_lost_in_the_middle(track_gpu):
    result = track_gpu(SCENARIO + "at 61500ms lost card 0\n", looks=4)
    a, b = result["gpu"]["cards"]
    assert (a["status"], b["status"]) == ("lost", "ok")
    assert a["tree"] == 1500 * MIB and result["combined"]["gpu_ram"] == 1800 * MIB
    # Up to the last drain before: what the driver had since went with the card.
    assert 1 - 1 / 6 <= a["active_s"] <= 1.5 and a["mean_util"] == pytest.approx(70)
    assert 3 - 1 / 6 <= b["idle_held_s"] <= 3
    assert len(result["warnings"]) == 1 and "GPU-a" in result["warnings"][0]


def test_the_driver_goes_away(track_gpu):
    """Every call fails from then on: one warning, and the host's numbers go on."""
    result = track_gpu(SCENARIO + "at 61200ms fail nvmlDevice* code 999\n", looks=4)
    assert result["combined"]["gpu_ram"] == 1800 * MIB
    assert 1 <= len(result["warnings"]) <= 3


@pytest.mark.waits
def test_a_driver_that_hangs(track_gpu):
    """Nobody waits for it: the tracker goes on, and ends."""
    result = track_gpu(SCENARIO + "at 61500ms hang nvmlDeviceGetSamples\n", looks=9)
    assert result["combined"]["gpu_ram"] == 1800 * MIB and not result["exited"]
    assert "the driver stopped answering before the end; what was used on cards after that is not counted" \
        in result["warnings"]


def test_the_driver_is_absent(tmp_path):
    result, _ = track(tmp_path, "sleep", 0, options=["--source", "nvml", "--nvml", "/nonexistent/libnvidia-ml.so.1"])
    gpu = result["gpu"]
    assert not gpu["known"] and "/nonexistent/libnvidia-ml.so.1" in gpu["note"]
    assert gpu["util"] == {"max": None, "mean": None} and gpu["capacity"] == -1
    assert [result[g]["gpu_ram"] for g in ("main", "descendants", "combined")] == [-1, -1, -1]
    assert result["combined"]["total"] > 0 and result["warnings"] == []


def test_a_slow_driver_does_not_make_a_command_longer(tmp_path):
    """It is waited for in the end, and that is not the command's time: see track()."""
    env = fake_driver(tmp_path, "card 0 uuid GPU-a name C memory 8GiB\nat 0s slow nvmlInit_v2 200ms\n")
    result, truth = track(tmp_path, "sleep", 0, options=["--source", "nvml", "--nvml", env["GUA_NVML"]], env=env)
    assert result["gpu"]["known"]

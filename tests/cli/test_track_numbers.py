"""Whether the tracker's numbers are right: real processes of known use, which measure themselves, and
the fake driver. The tool `tracking` runs them over tracker.h as `gua track` does."""
import json
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import BUILD, clean_environment
from fake import fake_driver

TRACKING = BUILD / "tests" / "tracking"
WORKLOAD = BUILD / "tests" / "workload"
MB = 1_000_000


def track(tmp_path, *workload, options=(), env=None, program=WORKLOAD):
    """Tracks a workload; what was measured, and the truth that it printed itself."""
    out = tmp_path / "result.json"
    run = subprocess.run([TRACKING, *map(str, options), out, program, *map(str, workload)], check=True, timeout=120,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, env=clean_environment(**(env or {})))
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    return json.loads(out.read_text()), json.loads(lines[-1]) if lines else None


def cpu(group):
    return group["user_s"] + group["system_s"]


@pytest.mark.parametrize("workload", [
    ("private", 500, 4.2),
    ("shared", 1, 300, 4.2),
    ("shared", 2, 150, 4.2),
    ("shared", 10, 30, 4.2),
    ("cow", 10, 30, 4.2),
    ("pool", 100, 4.2),
], ids=lambda w: "-".join(map(str, w)))
def test_memory_of_the_tree(tmp_path, workload):
    """A page that is shared within the tree counts once, whatever it is shared through."""
    result, truth = track(tmp_path, *workload)
    assert truth["pss"] >= 300 * MB
    assert result["combined"]["total"] == pytest.approx(truth["pss"], rel=0.02)
    assert result["combined"]["total"] <= result["main"]["total"] + result["descendants"]["total"]
    assert result["combined"]["private"] <= result["combined"]["total"]


def test_memory_of_one_process_is_private(tmp_path):
    result, truth = track(tmp_path, "private", 200, 1.2)
    assert result["main"]["private"] == pytest.approx(200 * MB, rel=0.02)
    assert result["descendants"] == {**result["descendants"], "total": 0, "private": 0}
    assert result["processes"][0]["private"] == result["main"]["private"]


@pytest.mark.parametrize("interval", ["1s", "3s"])
def test_a_peak_between_two_samples(tmp_path, interval):
    result, truth = track(tmp_path, "spike", 500, 250, 5, options=["--interval", interval])
    assert result["combined"]["total"] == pytest.approx(truth["pss"], rel=0.02)
    assert result["main"]["total"] == pytest.approx(truth["pss"], rel=0.02)


def test_a_peak_of_a_command_that_is_over_before_the_second_sample(tmp_path):
    result, truth = track(tmp_path, "private", 300, 0.01, options=["--interval", "60s"])
    assert result["combined"]["total"] == pytest.approx(truth["pss"], rel=0.02)


def test_sequential_children(tmp_path):
    """Each lives shorter than an interval; their parent has waited for them."""
    result, truth = track(tmp_path, "sequential", 200, 50)
    assert truth["children_s"] >= 200 * 0.05
    assert cpu(result["combined"]) == pytest.approx(truth["own_s"] + truth["children_s"], rel=0.03)
    assert cpu(result["descendants"]) == pytest.approx(truth["children_s"], rel=0.03)


def test_more_processes_than_rows(tmp_path):
    """What was seen and forgotten is still in the sums."""
    result, truth = track(tmp_path, "sequential", 700, 1, options=["--interval", "10ms"])
    assert len(result["processes"]) <= 512 + 8
    assert result["counts"]["seen"] <= 701
    assert cpu(result["combined"]) == pytest.approx(truth["own_s"] + truth["children_s"], rel=0.05, abs=0.05)


def test_a_daemon_does_not_escape(tmp_path):
    result, truth = track(tmp_path, "daemon", 1500)
    assert truth["daemon_s"] >= 1.5
    assert cpu(result["combined"]) == pytest.approx(truth["daemon_s"] + truth["own_s"], rel=0.03)


def test_children_that_nobody_waits_for(tmp_path):
    """Their parent ignores SIGCHLD: the kernel gives their time to nobody, and what was read last counts."""
    result, truth = track(tmp_path, "ignored", 3, 300, options=["--interval", "50ms"])
    assert cpu(result["combined"]) == pytest.approx(truth["ignored_s"] + truth["own_s"], rel=0.05)


def test_threads(tmp_path):
    result, truth = track(tmp_path, "threads", 3, 600, options=["--interval", "100ms"])
    assert cpu(result["main"]) == pytest.approx(truth["own_s"], rel=0.03)
    assert result["main"]["threads"] == 4
    assert result["combined"]["cpu"]["max"] <= 100 * result["cores"]


@pytest.mark.parametrize("busy, period", [(100, 1000), (250, 500)])
@pytest.mark.parametrize("phase", [0, 0.37])
def test_bursts(tmp_path, busy, period, phase):
    """The mean is over the whole time, wherever the samples fall."""
    result, truth = track(tmp_path, "-c", f"sleep {phase}; exec {WORKLOAD} burst {busy} {period} 4", program="/bin/sh")
    mean = 100 * (truth["own_s"] + truth["children_s"]) / (truth["life_s"] + phase)
    assert result["combined"]["cpu"]["mean"] == pytest.approx(mean, abs=2)
    assert mean - 2 <= result["combined"]["cpu"]["max"] <= 100 * result["cores"]


@pytest.mark.parametrize("interval", ["10ms", "1s"])
def test_the_maximum_is_possible(tmp_path, interval):
    result, truth = track(tmp_path, "threads", 4, 400, options=["--interval", interval])
    assert 0 < result["combined"]["cpu"]["max"] <= 100 * result["cores"]


@pytest.mark.skipif(b"__asan_init" in TRACKING.read_bytes(), reason="a sanitizer makes fork and exec slow")
@pytest.mark.parametrize("seconds", [0.003, 0.7, 3])
def test_time(tmp_path, seconds):
    """Against what the command measured itself: it begins a moment after it was started, and the time
    of its end is told by the kernel to both."""
    best = None
    for _ in range(10 if seconds < 1 else 6):  # the host may be busy elsewhere
        result, truth = track(tmp_path, "sleep", seconds)
        off = result["elapsed_s"] - truth["life_s"]
        assert off > 0
        best = off if best is None else min(best, off)
        if best < 0.005:
            break
    assert best < 0.005


def test_true(tmp_path):
    result, _ = track(tmp_path, program="/bin/true")
    assert result["exited"] and result["exit_status"] == 0
    assert 0 < result["elapsed_s"] < 1
    assert result["combined"]["total"] > 0 and result["samples"] >= 2
    assert result["counts"]["seen"] == 1 and result["warnings"] == []


def test_the_exit_status(tmp_path):
    result, _ = track(tmp_path, "-c", "kill -9 $$", program="/bin/sh")
    assert os.WIFSIGNALED(result["exit_status"]) and os.WTERMSIG(result["exit_status"]) == 9


@pytest.mark.skipif(os.getuid() != 0, reason="needs two users")
def test_a_child_of_another_user(tmp_path):
    """Its memory is not ours to read; its CPU time counts, and one sentence says so."""
    where = tempfile.mkdtemp()
    nobody = 65534
    try:
        os.chmod(where, 0o777)
        for tool in (TRACKING, WORKLOAD):
            shutil.copy(tool, where)
        go, out = f"{where}/go", f"{where}/result.json"
        other = subprocess.Popen([f"{where}/workload", "other", str(nobody), "500", go], stdout=subprocess.PIPE, text=True)
        pid = int(other.stdout.readline())
        while b"collect" not in open(f"/proc/{pid}/cmdline", "rb").read():
            time.sleep(0.01)
        tracker = subprocess.Popen([f"{where}/tracking", "--pid", str(pid), "--interval", "100ms", out], user=nobody,
                                   group=nobody, env=clean_environment())
        while len(list(os.scandir(f"/proc/{tracker.pid}/fd"))) < 8:  # it has begun
            time.sleep(0.01)
        time.sleep(0.2)
        open(go, "w").close()
        truth = json.loads(other.stdout.readline())
        assert other.wait(60) == 0 and tracker.wait(60) == 0
        result = json.loads(open(out).read())
    finally:
        shutil.rmtree(where)
    assert truth["children_s"] >= 0.5
    assert cpu(result["combined"]) == pytest.approx(truth["children_s"], rel=0.05, abs=0.02)
    assert cpu(result["descendants"]) == pytest.approx(truth["children_s"], rel=0.05, abs=0.02)
    assert result["descendants"]["total"] == -1 and result["main"]["total"] > 0
    assert len(result["warnings"]) == 1 and "another user" in result["warnings"][0]


def test_a_pid_that_runs_already(tmp_path):
    """What it used before is not counted, and neither is its earlier peak."""
    out = tmp_path / "result.json"
    code = "x=bytearray(200_000_000); del x\nt=__import__('time')\ne=t.process_time()+0.5\nwhile t.process_time()<e: pass\nprint(1, flush=True)\nt.sleep(1.5)"
    with subprocess.Popen(["/usr/bin/python3", "-S", "-c", code], stdout=subprocess.PIPE) as old:
        old.stdout.readline()
        subprocess.run([TRACKING, "--pid", str(old.pid), "--interval", "100ms", "--seconds", "0.8", out], check=True,
                       env=clean_environment())
    result = json.loads(out.read_text())
    assert cpu(result["combined"]) < 0.1 and result["combined"]["total"] < 100 * MB
    assert result["elapsed_s"] == pytest.approx(0.8, abs=0.2) and not result["exited"]


# The driver.

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


def track_gpu(tmp_path, scenario, seconds=2.3, options=(), **driver):
    """Tracks a process with a child by pid: the driver must know the pids before."""
    go, out = tmp_path / "go", tmp_path / "result.json"
    with subprocess.Popen([WORKLOAD, "wait", go, "30"], stdout=subprocess.PIPE, text=True) as work:
        main, child = map(int, work.stdout.readline().split())
        try:
            env = fake_driver(tmp_path, scenario, MAIN_PID=main, CHILD_PID=child, **driver)
            run = subprocess.run([TRACKING, "--source", "nvml", "--nvml", env["GUA_NVML"], "--pid", str(main), "--seconds",
                                  str(seconds), *options, out], check=True, timeout=60, capture_output=True, text=True,
                                 env=clean_environment(**env))
        finally:
            os.kill(child, 9)
            work.kill()
    assert run.stdout == run.stderr == ""
    return json.loads(out.read_text())


def check_host_side(result):
    """Whatever the driver does not tell, the rest is right."""
    assert result["counts"]["seen"] == 2 and result["main"]["total"] > 0
    assert result["samples"] <= 12, "no busy loop"


def test_two_cards_and_a_stranger(tmp_path):
    result = track_gpu(tmp_path, SCENARIO)
    check_host_side(result)
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
    assert a["active_s"] == pytest.approx(result["elapsed_s"], abs=0.6) and a["idle_held_s"] == 0
    assert b["idle_held_s"] == pytest.approx(result["elapsed_s"], abs=0.6) and b["active_s"] == 0
    assert a["tree_energy_j"] == pytest.approx(a["energy_j"] * 30 / 70, rel=0.02) and a["energy_j"] > 0
    assert result["warnings"] == []
    # main has a context on each; the child's on card b is 100 MiB, and is the floor that was learned.
    assert 0 < gpu["context"] <= 4 * 500 * MB
    assert {p["gpu"] for p in result["processes"]} == {1200 * MIB, 600 * MIB}


def test_process_memory_unavailable(tmp_path):
    result = track_gpu(tmp_path, SCENARIO.replace("hold child card 1 memory 100MiB", "hold child card 1 memory unknown"))
    check_host_side(result)
    assert result["main"]["gpu_ram"] == 1200 * MIB
    assert result["descendants"]["gpu_ram"] == -1 and result["combined"]["gpu_ram"] == -1
    assert result["gpu"]["cards"][1]["tree"] == -1 and result["gpu"]["cards"][0]["tree"] == 1500 * MIB
    assert result["gpu"]["cards"][0]["mean_util"] == pytest.approx(70)
    assert result["gpu"]["context"] == -1
    assert len(result["warnings"]) == 1


def test_utilisation_not_supported(tmp_path):
    result = track_gpu(tmp_path, SCENARIO + """
at 0s fail nvmlDeviceGetSamples code 3
at 0s fail nvmlDeviceGetUtilizationRates code 3
at 0s fail nvmlDeviceGetProcessUtilization code 3
at 0s fail nvmlDeviceGetProcessesUtilizationInfo code 3
""")
    check_host_side(result)
    assert result["gpu"]["util"] == {"max": None, "mean": None}
    for card in result["gpu"]["cards"]:
        assert card["mean_util"] is card["max_util"] is card["mean_tree"] is None
        assert card["active_s"] is card["idle_held_s"] is None
    assert result["combined"]["gpu_ram"] == 1800 * MIB
    assert result["gpu"]["energy_j"] > 0


def test_a_card_lost_in_the_middle(tmp_path):
    result = track_gpu(tmp_path, SCENARIO + "at 1500ms lost card 0\n", seconds=3.3)
    check_host_side(result)
    a, b = result["gpu"]["cards"]
    assert (a["status"], b["status"]) == ("lost", "ok")
    assert a["tree"] == 1500 * MIB and result["combined"]["gpu_ram"] == 1800 * MIB
    # Up to the last drain before: what the driver had since went with the card.
    assert 0.3 < a["active_s"] < 2.6 and a["mean_util"] == pytest.approx(70)
    assert b["idle_held_s"] == pytest.approx(result["elapsed_s"], abs=0.6)
    assert len(result["warnings"]) == 1 and "GPU-a" in result["warnings"][0]


def test_the_driver_goes_away(tmp_path):
    """Every call fails from then on: one warning, and the host's numbers go on."""
    result = track_gpu(tmp_path, SCENARIO + "at 1200ms fail nvmlDevice* code 999\n", seconds=3.3)
    check_host_side(result)
    assert result["combined"]["gpu_ram"] == 1800 * MIB
    assert 1 <= len(result["warnings"]) <= 3


def test_a_driver_that_hangs(tmp_path):
    """Nobody waits for it."""
    start = time.monotonic()
    result = track_gpu(tmp_path, SCENARIO + "at 500ms hang nvmlDeviceGetSamples\n", seconds=2.3)
    assert time.monotonic() - start < 8
    check_host_side(result)
    assert result["elapsed_s"] == pytest.approx(2.3, abs=1.2)


def test_the_driver_is_absent(tmp_path):
    result, _ = track(tmp_path, "sleep", 0.1, options=["--source", "nvml", "--nvml", "/nonexistent/libnvidia-ml.so.1"])
    gpu = result["gpu"]
    assert not gpu["known"] and "/nonexistent/libnvidia-ml.so.1" in gpu["note"]
    assert gpu["util"] == {"max": None, "mean": None} and gpu["capacity"] == -1
    assert [result[g]["gpu_ram"] for g in ("main", "descendants", "combined")] == [-1, -1, -1]
    assert result["combined"]["total"] > 0 and result["warnings"] == []


def test_a_slow_driver_does_not_make_a_command_longer(tmp_path):
    env = fake_driver(tmp_path, "card 0 uuid GPU-a name C memory 8GiB\nat 0s slow nvmlInit_v2 400ms\n")
    result, truth = track(tmp_path, "sleep", 0.05, options=["--source", "nvml", "--nvml", env["GUA_NVML"]], env=env)
    assert result["elapsed_s"] < 0.35 and result["gpu"]["known"]

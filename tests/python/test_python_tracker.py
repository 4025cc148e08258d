"""Tracker: states, arguments, units, numbers of known work, files, forks, what is not known."""
import csv
import json
import sqlite3

import pytest

from fake import fake_driver
from layout import layout, without_numbers
from pyrun import overhead_bytes, python

pytestmark = pytest.mark.other_programs

SCENARIO = """
card 0 uuid GPU-a name "A" memory 4GiB idle-power 20W max-power 100W
card 1 uuid GPU-b name "B" memory 2GiB idle-power 20W max-power 100W
process us pid env OUR_PID user alice uid 1001 command "python"
process other pid 999999 user bob uid 1002 command "python"
at 0s hold us card 0 memory 1000MiB
at 0s hold us card 1 memory 500MiB
at 0s hold other card 1 memory 300MiB
at 0s load us card 0 sm 40
at 0s load other card 1 sm 80
"""
PREPARE = """
import os, pathlib, time
os.environ['OUR_PID'] = str(os.getpid())
import gua

def until(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)

def see_the_card(tracker):
    until(lambda: tracker.snapshot().max_gpu_ram.main)
"""


def test_the_short_text_asks_for_memory_that_others_share(python):
    """A job is charged for a whole file, though other processes have it too: as `gua track` does it."""
    printed = python("""
        import gua, gua.summary
        with gua.Tracker(disable_logs=True) as tracker:
            pass
        result = tracker._result()
        assert result['ram_charged_bytes'] >= result['ram_total_bytes'][2] > 0
        print(gua.summary.slurm({**result, 'ram_charged_bytes': 500 << 20, 'ram_total_bytes': [0, 0, 100 << 20]}))
    """)
    assert printed.split()[0] == "--mem=600M"


def test_no_advice_on_work_that_leaves_the_tree(python, tmp_path):
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\nsleep 0.5\n")
    srun.chmod(0o755)
    printed = python(f"""
        import gua, subprocess
        with gua.Tracker(sleep_time=0.1, disable_logs=True) as tracker:
            subprocess.run([{str(srun)!r}, 'train'])
        print(tracker)
    """)
    assert printed.splitlines()[-1] == "Slurm       no advice: use srun gua track -- COMMAND"


def test_the_short_text_names_the_allocation(python):
    printed = python("""
        import gua, gua.summary
        with gua.Tracker(disable_logs=True) as tracker:
            pass
        print(gua.summary.short({**tracker._result(), 'ram_limit_bytes': 16 << 30, 'ram_capacity_bytes': 64 << 30}))
    """)
    assert " MiB at most, of 16.0 GiB\n" in printed


def test_states(python):
    printed = python("""
        import gua
        def refused(call):
            try:
                call()
            except RuntimeError as error:
                print(error)
        tracker = gua.Tracker(disable_logs=True)
        print(repr(tracker), tracker.state is gua.Tracker.State.NEW, tracker.resource_usage)
        refused(tracker.stop)
        refused(lambda: str(tracker))
        refused(tracker.to_json)
        refused(tracker.snapshot)
        tracker.start()
        print(repr(tracker), tracker.resource_usage, tracker._repr_html_())
        refused(tracker.start)
        refused(lambda: str(tracker))
        print(tracker.snapshot().max_ram.main.total_rss > 0.001)
        tracker.stop()
        print(repr(tracker), tracker._repr_html_() == f"<pre>{tracker}</pre>", tracker.resource_usage is not None)
        refused(tracker.start)
        refused(tracker.stop)
        print(tracker.n_join_attempts, tracker.join_timeout)
        """)
    display = ("Cannot display the tracker in string or JSON format before tracking completes. "
               "Leave the `with` block or call stop() first.")
    assert printed.splitlines() == [
        "State: NEW True None", "Cannot stop tracking when tracking has not started yet.", display, display,
        "Cannot read the results of tracking when tracking has not started yet.",
        "State: STARTED None None", "Cannot start tracking when tracking has already started.", display, "True",
        "State: STOPPED True True", "Cannot start tracking when tracking has already stopped.",
        "Cannot stop tracking when tracking has already stopped.", "5 10.0"]


WRONG = [
    ("sleep_time=0.05", "ValueError: Sleep time of 0.05 is invalid. Must be at least 0.1 seconds."),
    ("sleep_time=float('nan')", "ValueError: Sleep time of nan"),
    ("ram_unit='mb'", 'ValueError: "mb" is not a valid RAM unit. Valid values are bytes, gi'),
    ("gpu_ram_unit='mb'", 'ValueError: "mb" is not a valid GPU RAM unit. Valid values are bytes, gi'),
    ("time_unit='milliseconds'",
     'ValueError: "milliseconds" is not a valid time unit. Valid values are days, hours, minutes, seconds'),
    ("n_expected_cores=0", "ValueError: 0 expected cores are invalid"),
    ("process_id=0", "ValueError: Process ID of 0 is invalid. Must be at least 1."),
    ("process_id=-1", "ValueError: Process ID of -1 is invalid."),
    ("gpu_uuids=set()", "ValueError: The set of GPU UUIDs is empty"),
    ("gpu_uuids={'GPU-c'}", "ValueError: GPU UUID of GPU-c is not valid. Available UUIDs are: GPU-a, GPU-b"),
    ("gpu_brand='intel'", 'ValueError: "intel" is not a valid GPU brand: gua supports only NVIDIA cards.'),
    ("gpu_brand='amd'", 'ValueError: "amd" is not a valid GPU brand: gua supports only NVIDIA cards.'),
    ("tracking_file='t.txt'", 'ValueError: Invalid file name: "t.txt".'),
    ("tracking_file='program.csv'", "FileExistsError: File program.csv already exists."),
]


def test_wrong_arguments(python, tmp_path):
    (tmp_path / "program.csv").write_text("mine\n")
    out = python("import gua\n" + "".join(
        f"try:\n    gua.Tracker({arguments})\nexcept Exception as why:\n    print(type(why).__name__, why, sep=': ')\n"
        for arguments, _ in WRONG), env=fake_driver(tmp_path, SCENARIO, OUR_PID=1))
    for line, (arguments, says) in zip(out.splitlines(), WRONG, strict=True):
        assert line.startswith(says), arguments
    assert (tmp_path / "program.csv").read_text() == "mine\n"


@pytest.mark.waits
def test_waiting_for_a_driver_that_hangs_is_no_part_of_the_time(tmp_path, python):
    run = python.run("""
import time
import gua
begun = time.monotonic()
with gua.Tracker() as tracker:
    time.sleep(1)
    inside = time.monotonic() - begun
print(tracker.details.elapsed_s < inside + 2)
print(tracker)
""", env=fake_driver(tmp_path, "card 0 uuid GPU-a name C memory 8GiB\nat 300ms hang nvmlDeviceGetSamples\n"))
    assert run.stdout.startswith("True\n") and "unknown: the driver stopped answering before the end\n" in run.stdout


@pytest.mark.both_builds
@pytest.mark.parametrize("ram, gpu, time, ram_factor, gpu_factor, time_factor", [
    ("bytes", "megabytes", "seconds", 1, 1e-6, 1),
    ("kilobytes", "gigabytes", "minutes", 1e-3, 1e-9, 1 / 60),
    ("mebibytes", "terabytes", "days", 2**-20, 1e-12, 1 / 86400),
])
def test_units_of_true_bytes(python, tmp_path, ram, gpu, time, ram_factor, gpu_factor, time_factor):
    """1000 MiB are 1048.576 MB. A stranger's memory and cards that are not chosen are not ours."""
    printed = python(PREPARE + f"""
with gua.Tracker(0.1, {ram!r}, {gpu!r}, {time!r}, gpu_uuids=["GPU-a"]) as tracker:
    memory = b"x" * 100_000_000
    see_the_card(tracker)
    time.sleep(0.5)
import json
print(json.dumps([tracker.to_json(), tracker.details.elapsed_s]))
print(tracker.resource_usage)
""", env=fake_driver(tmp_path, SCENARIO))
    document, text = printed.split("\n", 1)
    values, elapsed = json.loads(document)
    assert without_numbers(text) == layout(ram, gpu, time)
    gpu_ram = values["max_gpu_ram"]
    assert gpu_ram["main"] == pytest.approx(1500 * 2**20 * gpu_factor) and gpu_ram["descendants"] == 0
    assert gpu_ram["system_capacity"] == pytest.approx(6 * 2**30 * gpu_factor)
    assert gpu_ram["system"] >= 1800 * 2**20 * gpu_factor
    assert 100e6 * ram_factor < values["max_ram"]["main"]["total_rss"] < (125e6 + overhead_bytes()) * ram_factor
    assert values["compute_time"] == {"unit": time, "time": pytest.approx(elapsed * time_factor)} and elapsed >= 0.5
    assert values["gpu_utilization"]["system_gpu_count"] == 2 and values["gpu_utilization"]["n_expected_gpus"] == 1
    percentages = values["gpu_utilization"]["gpu_percentages"]
    assert percentages["max_sum_percent"] == percentages["max_hardware_percent"] == pytest.approx(40, abs=5)


def test_no_driver_is_unknown_with_one_warning(python):
    program = """
        import json, sys, time
        import gua
        with gua.Tracker(disable_logs=sys.argv[1] == "quiet", gpu_brand="nvidia") as tracker:
            time.sleep(0.2)
        print(json.dumps(tracker.to_json(), allow_nan=False))
        print(tracker.resource_usage)
        """
    env = {"GUA_NVML": "/nonexistent/libnvidia-ml.so.1"}
    run = python.run(program, "loud", env=env)
    document, text = run.stdout.split("\n", 1)
    assert run.stderr.startswith("The GPU RAM and GPU utilization values are unknown: ")
    assert run.stderr.count("\n") == 1 and "/nonexistent/libnvidia-ml.so.1" in run.stderr
    assert run.stderr.endswith("or name it with the variable GUA_NVML.\n")
    values = json.loads(document)
    assert values["max_gpu_ram"] == {"unit": "gigabytes", **dict.fromkeys(
        ["system_capacity", "system", "main", "descendants", "combined"])}
    assert set(values["gpu_utilization"]["gpu_percentages"].values()) == {None}
    assert text.count(": unknown\n") == 9 and values["max_ram"]["main"]["total_rss"] > 0
    assert python.run(program, "quiet", env=env).stderr == ""


def test_another_process(python):
    printed = python("""
        import logging, subprocess, sys, time
        import gua
        logging.basicConfig(stream=sys.stdout, format="%(message)s")
        child = subprocess.Popen(["/usr/bin/python3", "-c", "b = b'x' * 80_000_000; print(flush=True); input()"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        with gua.Tracker(process_id=child.pid, sleep_time=0.1, ram_unit="megabytes", disable_logs=True) as tracker:
            time.sleep(0.2)
        child.communicate(b"\\n")
        usage = tracker.resource_usage
        print(80 < usage.max_ram.main.total_rss < 100, usage.max_ram.descendents is usage.max_ram.descendants)
        print([process.pid == child.pid for process in tracker.details.processes])
        with gua.Tracker(process_id=child.pid) as tracker:
            pass
        print(tracker.resource_usage.max_ram.main.total_rss, tracker.resource_usage.cpu_utilization.main_n_threads)
        print(str(tracker.resource_usage).count("unknown") > 20, "RAM         unknown" in str(tracker))
        """)
    lines = printed.splitlines()
    assert lines[:2] == ["True True", "[True]"]
    assert lines[2].startswith("The target process of ID ") and lines[2].endswith(" ended before tracking could begin.")
    assert lines[3:] == ["None None", "True True"]


COLUMNS = 22


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_a_tracking_file_has_every_sample(python, tmp_path, kind):
    """Also those that fall into a time in which this thread does not let go of the interpreter."""
    number = python(PREPARE + f"""
import ctypes
hold = ctypes.PyDLL(None).usleep
tracker = gua.Tracker(sleep_time=0.1, ram_unit="megabytes", tracking_file="t.{kind}")
with tracker:
    see_the_card(tracker)
    begun = time.time()
    hold(1_500_000)
    ended = time.time()
print(tracker.details.samples, tracker.resource_usage.cpu_utilization.main_n_threads, begun, ended)
""", env=fake_driver(tmp_path, SCENARIO))
    samples, threads, begun, ended = map(float, number.split())
    assert threads == 1
    if kind == "sqlite":
        with sqlite3.connect(tmp_path / "t.sqlite") as connection:
            static = connection.execute("SELECT * FROM static_data").fetchone()
            rows = connection.execute("SELECT * FROM data").fetchall()
            assert len(connection.execute("PRAGMA table_info(data)").fetchall()) == COLUMNS
    else:
        with open(tmp_path / "t.csv", newline="") as file:
            _, static, header, *rows = csv.reader(file)
        assert len(header) == COLUMNS
    assert list(map(str, static[:3])) == ["megabytes", "gigabytes", "hours"]
    assert float(static[4]) == pytest.approx(6 * 2**30 / 1e9) and int(static[7]) == 2
    times = [float(row[-1]) for row in rows]
    # All but the first and the last, and two early looks.
    assert samples - 4 <= len(rows) <= samples
    assert times == sorted(times) and any(begun < at < ended for at in times)
    assert float(rows[-1][4]) == pytest.approx(1500 * 2**20 / 1e9)
    assert {int(float(row[10])) for row in rows} == {1}


def test_a_tracking_file_is_analysed(python, tmp_path):
    python(PREPARE + """
tracker = gua.Tracker(sleep_time=0.1, tracking_file="t.csv", overwrite=True)
with tracker:
    see_the_card(tracker)
    def rows():
        return pathlib.Path("t.csv").read_text().count("\\n") if os.path.exists("t.csv") else 0
    with gua.SubTracker("block", sub_tracking_file="s.csv"):
        enough = rows() + 20  # some may be of samples that were taken before
        until(lambda: rows() >= enough)
results = gua.SubTrackingAnalyzer("t.csv", "s.csv").sub_tracking_results()
block, = results.code_block_results
assert block.num_calls == 1 and block.num_timepoints >= 3, results
assert 0.5 <= block.compute_time["max"]
assert abs(block.resource_usage["main_gpu_ram"]["max"] - 1.572864) < 1e-6
assert results.overall["main_n_threads"]["max"] == 1
""", env=fake_driver(tmp_path, SCENARIO))


def test_a_short_run_has_a_row_in_its_file(python, tmp_path):
    python(PREPARE + """
with gua.Tracker(tracking_file="t.csv") as tracker:
    until(lambda: tracker._tracker.sample(1))  # an early look, long before the first interval is over
""", env=fake_driver(tmp_path, SCENARIO))
    assert len((tmp_path / "t.csv").read_text().splitlines()) >= 4  # three are its head


def test_a_copy_of_the_results_for_a_killed_program(python, tmp_path):
    program = """
        import os, sys, time
        import gua
        tracker = gua.Tracker(sleep_time=0.1, resource_usage_file="now.json", disable_logs=True)
        tracker.start()
        while not os.path.exists("now.json"):
            time.sleep(0.05)
        if sys.argv[1] == "die":
            os._exit(9)
        tracker.stop()
        """
    env = fake_driver(tmp_path, SCENARIO, OUR_PID=1)
    assert python.run(program, "die", env=env).returncode == 9
    assert json.loads((tmp_path / "now.json").read_text())["max_ram"]["main"]["total_rss"] > 0
    python(program, "stop", env=env)
    assert not (tmp_path / "now.json").exists()


def test_the_copy_is_written_at_once(python, tmp_path):
    """Not after a sampling interval, and without waiting for a driver."""
    python(PREPARE + """
with gua.Tracker(sleep_time=86400, resource_usage_file="now.json", tracking_file="t.csv", disable_logs=True):
    until(lambda: os.path.exists("now.json"))
    os.link("now.json", "kept.json")
""", env={"GUA_NVML": "/nonexistent/libnvidia-ml.so.1"})
    values = json.loads((tmp_path / "kept.json").read_text())
    assert values["max_ram"]["main"]["total_rss"] > 0 and values["max_gpu_ram"]["main"] is None
    assert not (tmp_path / "now.json").exists()


def test_the_older_spelling(python):
    printed = python("""
        import json
        import gua as gput
        with gput.Tracker(disable_logs=True, legacy_spelling=True) as tracker:
            pass
        new, old = tracker.to_json(legacy_spelling=False), tracker.to_json()
        assert json.dumps(new).replace("descendants", "descendents") == json.dumps(old) != json.dumps(new)
        assert new == tracker.resource_usage.to_json() and old == tracker.resource_usage.to_json(legacy_spelling=True)
        assert str(tracker) == str(tracker.resource_usage).replace("Descendants", "Descendents")
        assert str(tracker) == tracker.resource_usage.text(legacy_spelling=True)
        print(tracker)
        """)
    assert "   Descendents:\n" in printed and "   Descendents number of threads: 0\n" in printed
    assert "escendant" not in printed


def test_a_program_that_forgets_to_stop_ends(python):
    assert python("""
        import gua
        tracker = gua.Tracker(disable_logs=True, tracking_file="t.csv")
        tracker.start()
        gua.Tracker(disable_logs=True).start()
        print("end")
        """, timeout=30) == "end\n"


def test_a_forked_child_leaves_the_tracker_alone(python):
    printed = python("""
        import gc, os, sys, time
        import gua
        tracker = gua.Tracker(sleep_time=0.1, disable_logs=True)
        tracker.start()
        pid = os.fork()
        if pid == 0:
            try:
                tracker.stop()
            except gua.GuaError as error:
                print(error, flush=True)
            del tracker
            gc.collect()
            os._exit(0)
        os.waitpid(pid, 0)
        last, end = 0, time.monotonic() + 60
        while sample := tracker._tracker.sample(last + 1):
            last = sample["number"]
        while not tracker._tracker.sample(last + 1) and time.monotonic() < end:
            time.sleep(0.02)
        print(tracker._tracker.sample(last + 1) is not None)
        tracker.stop()
        """)
    assert printed.splitlines() == ["another process has started it", "True"]


def test_trackers_inside_each_other(python):
    """Neither counts the other's helper as a process of the program."""
    printed = python("""
        import time
        import gua
        with gua.Tracker(sleep_time=0.1, disable_logs=True) as outer:
            with gua.Tracker(sleep_time=0.1, disable_logs=True) as inner:
                time.sleep(0.3)
        print(inner.resource_usage.cpu_utilization.descendants_n_threads,
              outer.resource_usage.cpu_utilization.descendants_n_threads, outer.details.processes_seen)
        """)
    assert printed == "0 0 1\n"

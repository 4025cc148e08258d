"""gua track: the command is untouched, the report is always there, mistakes start nothing."""
import csv
import json
import os
import pathlib
import platform
import pty
import pwd
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import BUILD, GUA, clean_environment, gua, wait_for
from fake import fake_driver

PYTHON = "/usr/bin/python3"


def track(*args, **options):
    return gua("track", "--source", "none", *args, **options)


def report(*args, command, **options):
    """Runs a command and returns the JSON report."""
    run = track("-f", "json", *args, "--", *command, **options)
    return json.loads(run.stderr), run


def rows(path):
    """The samples in a tracking file (CSV), each a dictionary: none while the tracker has not begun."""
    # The last line may be one that is being written.
    lines = path.read_text().rpartition("\n")[0].splitlines()[2:] if path.exists() else []
    return list(csv.DictReader(lines))


def shell_until(condition):
    """A command's own way to wait for a condition; a minute at most."""
    return f"i=0; until {condition} || [ $i = 1200 ]; do i=$((i+1)); sleep 0.05; done; "


class Following:
    """gua track follows a process; its samples are in a file, so that one can see how far it is."""

    def __init__(self, where, pid, *options, program=GUA, env=None, source=("--source", "none"), **more):
        self.out, self.samples = where / "report.json", where / "samples.csv"
        self.process = subprocess.Popen(
            [program, "track", *source, "-f", "json", "-o", self.out, "--st", "50ms", "--tf", self.samples, "--pid",
             str(pid), *options], env=clean_environment(**(env or {})), stderr=subprocess.PIPE, text=True, **more)
        self.wait(1)

    def wait(self, n, condition=lambda row: True):
        """Waits for so many samples more that are so."""
        before = len(rows(self.samples))
        wait_for(lambda: sum(map(condition, rows(self.samples)[before:])) >= n)

    def end(self, how=None):
        """The status, what it said, and the report."""
        if how:
            self.process.send_signal(how)
        said = self.process.communicate(timeout=60)[1]
        return self.process.returncode, said, json.loads(self.out.read_text())


@pytest.fixture
def sleeper():
    """A process that is there until somebody ends it."""
    with subprocess.Popen(["sleep", "600"]) as child:
        yield child
        child.kill()


def test_streams_and_status_are_the_commands_own(tmp_path):
    out = tmp_path / "report.json"
    run = track("-f", "json", "-o", out, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (run.returncode, run.stdout, run.stderr) == (7, "out\n", "err\n")
    json.loads(out.read_text())


def test_standard_input_is_passed():
    run = subprocess.run([GUA, "track", "--source", "none", "-o", "/dev/null", "--", "cat"], input="hello", text=True,
                         capture_output=True, env=clean_environment())
    assert run.stdout == "hello"


def test_arguments_are_passed_as_they_are():
    weird = ["a b", "", "--help", "-e", "$HOME", "\xff", "new\nline"]
    run = track("-o", "/dev/null", "--", PYTHON, "-c", "import sys; print(sys.argv[1:])", *weird)
    assert run.stdout.strip() == str(weird)
    run = track("-o", "/dev/null", "sh", "-c", "echo $0 $1", "--db", "x")  # options end at the command
    assert run.stdout == "--db x\n"


def test_execute_splits_words_without_a_shell():
    run = track("-o", "/dev/null", "-e", """sh -c 'echo "a  b" "$1" "$2"' x 'c d' ;echo no""")
    assert run.stdout == "a  b c d ;echo\n"


@pytest.mark.parametrize("line, says", [
    ("printf %s, a | wc -l", "printf gets the '|' as it is; for a shell use gua track -- sh -c 'printf %s, a | wc -l'"),
    ("printf %s, \"$HOME\"", "printf gets the '$' as it is; for a shell use gua track -- sh -c 'printf %s, \"$HOME\"'"),
    ("printf %s, 'a | b' c\\;d \"e > f\"", None)])
def test_execute_warns_of_what_only_a_shell_would_do(line, says):
    run = track("-o", "/dev/null", "-e", line)
    assert run.returncode == 0 and run.stdout.startswith(("a,|,wc,-l,", "$HOME,", "a | b,c;d,e > f,"))
    assert run.stderr == (f"gua: warning: -e runs no shell: {says}\n" if says else "")
    assert track("-o", "/dev/null", "--disable-logs", "-e", line).stderr == ""


@pytest.mark.parametrize("status, code", [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exit_status(status, code):
    result, run = report(command=["sh", "-c", status])
    assert run.returncode == code
    assert result["compute_time"]["time"] >= 0


def test_what_cannot_be_started(tmp_path):
    run = track("--", "/no/such/command")
    assert run.returncode == 127 and "cannot start /no/such/command" in run.stderr
    file = tmp_path / "plain"
    file.write_text("x")
    run = track("--", str(file))
    assert run.returncode == 126


@pytest.mark.parametrize("args, message", [
    (["--st", "0.001"], "--st"),
    (["--st", "soon"], "--st"),
    (["--ru", "mb"], "--ru"),
    (["--gru", "x"], "--gru"),
    (["--tu", "weeks"], "--tu"),
    (["--nec", "0"], "--nec"),
    (["-f", "pickle"], "--format"),
    (["--gb", "amd"], "--gb"),
    (["--tf", "x.txt"], "--tf"),
    (["--tf", "/etc/passwd.csv/x.csv"], "cannot write"),
    (["-o", "/no/such/dir/file"], "cannot write"),
    (["--tconfig", "/no/such/file"], "--tconfig"),
    (["--until-exit"], "--pid"),
    (["--guuids", ","], "--guuids"),
    (["--scenario", "x"], "--source sim"),
    (["--nonsense"], "unknown option"),
])
def test_a_mistake_never_starts_the_command(tmp_path, args, message):
    mark = tmp_path / "started"
    run = track(*args, "--", "touch", mark)
    assert run.returncode in (1, 2) and message in run.stderr, run.stderr
    assert not mark.exists()


def test_a_configuration_that_cannot_be_read_is_no_wrong_usage(tmp_path):
    (tmp_path / "text").write_text("root:x:0\n")
    assert track("--tconfig", tmp_path / "none", "--", "true").returncode == 1
    assert track("--tconfig", tmp_path / "text", "--", "true").returncode == 2


def test_no_command_is_wrong_usage():
    for args in ([], ["-e", ""], ["--pid", "1", "--", "true"]):
        assert track(*args).returncode == 2


def test_a_command_line_in_quotes_is_one_word():
    run = track("--", "ls / | wc -l")
    assert run.returncode == 127 and "cannot start ls / | wc -l: No such file or directory; this is one word: leave out the " \
        "quotes, or use sh -c '...'\n" in run.stderr


def test_a_scenario_that_is_missing_starts_no_command(tmp_path):
    run = gua("track", "--source", "sim", "--scenario", tmp_path / "missing", "--", "echo", "started")
    assert run.returncode == 1 and run.stdout == "" and f"cannot open {tmp_path}/missing: No such file" in run.stderr


def test_what_has_no_limit_is_not_unknown_and_unknown_cards_are_not_none():
    run = track("-v", "--", "true")
    allocation = run.stderr.split("Allocation:\n")[1].split("I/O:")[0]
    assert "Memory (bytes): no limit\n" in allocation and "unknown" not in allocation
    assert "   Gres: unknown\n" in run.stderr and report(command=["true"])[0]["slurm_advice"]["gres"] is None


@pytest.mark.waits
def test_a_driver_that_hangs_before_anything_was_seen(tmp_path):
    """Then it is not known whether a card was used: that is not "none"."""
    env = fake_driver(tmp_path, "card 0 uuid GPU-a name C memory 8GiB\nat 300ms hang nvmlDeviceGetSamples\n")
    run = gua("track", "--", "sleep", "1", env=env)
    assert "GPU memory  unknown: the driver stopped answering before the end\nGPU time    unknown\n" in run.stderr
    assert "gres" not in run.stderr and run.stderr.startswith("Time        1.")


@pytest.mark.parametrize("left, says", [
    ("sleep 5 &", r"1 process running \(pid \d+\): what it uses from now on is not counted"),
    ("sleep 5 & sleep 5 &", r"2 processes running \(pid \d+ and others\): what they use from now on is not counted"),
    ("sleep 0.01 &", None),  # ends just after the command
    ("sleep 0.1 & wait", None),
])
def test_what_the_command_leaves_running_is_named(left, says):
    run = track("--", "sh", "-c", left)
    found = re.search("^gua: warning: the command has left (.*)$", run.stderr, re.M)
    assert re.fullmatch(says, found[1]) if says else not found


def test_text_has_the_known_labels():
    run = track("-v", "--", "true")
    labels = [line.split(":")[0] for line in run.stderr.splitlines()]
    known = ["Max RAM", "   Unit", "   System capacity", "   System", "   Main", "      Total RSS",
             "      Private RSS", "      Shared RSS", "   Descendants"]
    assert labels[:len(known)] == known
    for label in ("Max GPU RAM", "CPU utilization", "   System core count", "   Number of expected cores",
                  "      Max sum percent", "      Mean hardware percent", "   Main number of threads",
                  "GPU utilization", "   System GPU count", "   Number of expected GPUs", "   GPU percentages",
                  "Compute time", "   Time"):
        assert label in labels


def test_text_opens_with_what_a_person_wants():
    run = track("--", "sh", "-c", "exit 3")
    lines = run.stderr.splitlines()
    assert [line[:12].rstrip() for line in lines] == ["Time", "CPU", "RAM", "GPU memory", "GPU time", "Slurm"]
    assert re.fullmatch(r"Time        \d+\.\d\d s; exit status 3", lines[0])
    assert re.fullmatch(r"CPU         \d+\.\d\d s; \d+\.\d\d cores on average, \d+\.\d\d at most, of \d+", lines[1])
    assert re.fullmatch(r"RAM         [\d.]+ [MG]iB at most, of [\d.]+ GiB", lines[2])
    assert lines[3:5] == ["GPU memory  not read", "GPU time    not read"]
    assert lines[5] == "Slurm       --mem=100M --cpus-per-task=1 --time=00:05:00 (from 1 run, which failed)"
    run = track("--processes", "--", "true")
    assert run.stderr.splitlines()[6] == "Process table:"
    result, _ = report(command=["true"])
    assert result["slurm_advice"]["runs"] == 1 and result["slurm_advice"]["basis"] == "from 1 run"
    run = gua("track", "--nvml", "/no/such/library", "--", "true")
    assert "GPU memory  unknown: " in run.stderr and "GPU time    unknown\n" in run.stderr


@pytest.mark.parametrize("options, units", [
    ((), ["bytes", "bytes", "seconds"]), (("--ru", "megabytes", "--tu", "minutes"), ["megabytes", "bytes", "minutes"])])
def test_json_has_the_same_units_each_time_unless_asked(options, units):
    """Programs compare runs: what a unit is must not depend on the size."""
    document, _ = report(*options, command=["true"])
    assert [document[part]["unit"] for part in ("max_ram", "max_gpu_ram", "compute_time")] == units


def test_json_has_the_known_keys_in_order():
    result, _ = report(command=["true"])
    assert list(result)[:5] == ["max_ram", "max_gpu_ram", "cpu_utilization", "gpu_utilization", "compute_time"]
    assert result["schema"] == "gua-track-1"
    assert list(result["max_ram"]) == ["unit", "system_capacity", "system", "main", "descendants", "combined"]
    assert list(result["max_ram"]["main"]) == ["total_rss", "private_rss", "shared_rss"]
    assert list(result["cpu_utilization"]) == [
        "system_core_count", "n_expected_cores", "system", "main", "descendants", "combined", "main_n_threads",
        "descendants_n_threads", "combined_n_threads"]
    assert list(result["gpu_utilization"]) == ["system_gpu_count", "n_expected_gpus", "gpu_percentages"]
    old, _ = report("--legacy-spelling", command=["true"])
    assert "descendents" in old["max_ram"] and "descendents_n_threads" in old["cpu_utilization"]


def test_units():
    start = time.monotonic()
    big, _ = report("--ru", "megabytes", "--tu", "seconds", command=["sleep", "0.2"])
    at_most = time.monotonic() - start
    small, _ = report("--ru", "mebibytes", "--tu", "minutes", command=["sleep", "0.2"])
    assert big["max_ram"]["unit"] == "megabytes" and big["compute_time"]["unit"] == "seconds"
    ratio = big["max_ram"]["system_capacity"] / small["max_ram"]["system_capacity"]
    assert abs(ratio - 1.048576) < 1e-6
    assert 0.2 <= big["compute_time"]["time"] <= at_most


def test_csv_is_key_and_value():
    run = track("-f", "csv", "--", "true")
    rows = dict(line.split(",", 1) for line in run.stderr.splitlines())
    assert rows["key"] == "value" and rows["max_ram.unit"].endswith("bytes")
    assert rows["slurm_advice.options"].startswith("--mem=") and "'" not in run.stderr


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_tracking_file(tmp_path, kind):
    path = tmp_path / f"samples.{kind}"
    enough = {"csv": "[ $(wc -l <$1) -gt 6 ]", "sqlite": '[ "$(sqlite3 $1 "SELECT count(*) > 3 FROM data")" = 1 ]'}
    run = track("--st", "0.05", "--tf", path, "-o", "/dev/null", "--", "sh", "-c", shell_until(enough[kind]), "sh", path)
    assert run.returncode == 0, run.stderr
    sub = tmp_path / f"sub.{kind}"
    if kind == "csv":
        lines = path.read_text().splitlines()
        assert lines[0].startswith("ram_unit,") and lines[2].endswith(",timestamp") and len(lines) > 5
        sub.write_text("process_id,code_block_name,position,timestamp\n1,b,0,0\n1,b,1,9e9\n")
    else:
        with sqlite3.connect(path) as db:
            assert db.execute("SELECT count(*) FROM data").fetchone()[0] > 3
        with sqlite3.connect(sub) as db:
            db.execute("CREATE TABLE data (process_id, code_block_name, position, timestamp)")
            db.execute("INSERT INTO data VALUES (1,'b',0,0),(1,'b',1,9e9)")
    result = json.loads(gua("sub-track", "analyze", "--tf", path, "--stf", sub, "-f", "json").stdout)
    assert result["code_block_results"][0]["num_timepoints"] > 3
    again = track("--tf", path, "--", "true")
    assert again.returncode == 2 and "exists" in again.stderr
    assert track("--tf", path, "--overwrite", "-o", "/dev/null", "--", "true").returncode == 0


def test_tracking_file_waits_for_the_driver(tmp_path):
    """Its head counts the cards, so it is written when the driver has answered. Looks within the first interval are
    no rows: the first second would count more than the others."""
    env = fake_driver(tmp_path, "card 0 uuid GPU-a name C memory 8GiB\nat 0s load card 0 util 50\n"
                      "at 0s slow nvmlInit_v2 900ms\n")
    for seconds, rows in ("2.3", 2), ("0.3", 1):
        path = tmp_path / f"{rows}.csv"
        run = gua("track", "--ru", "bytes", "--gru", "bytes", "--tf", path, "-o", "/dev/null", "--", "sleep", seconds, env=env)
        _, head, _, *samples = (line.split(",") for line in path.read_text().splitlines())
        assert run.returncode == 0 and head[4] == "8.58993459e+09" and head[7:] == ["1", "1"] and len(samples) == rows
        assert rows == 1 or samples[-1][8:10] == ["50", "50"]


def test_configuration_file(tmp_path):
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"sleep_time": 0.05, "ram_unit": "kilobytes", "time_unit": "seconds",
                                  "n_expected_cores": 3, "gpu_uuids": ["GPU-x"], "disable_logs": True,
                                  "overwrite": True, "join_timeout": 3}))
    result, _ = report("--tconfig", config, "--ru", "bytes", command=["true"])
    assert result["max_ram"]["unit"] == "bytes" and result["compute_time"]["unit"] == "seconds"
    assert result["cpu_utilization"]["n_expected_cores"] == 3
    config.write_text('{"sleep_time": {}}')
    assert track("--tconfig", config, "--", "true").returncode == 2
    config.write_text('{"sleeptime": 0.05}')  # a default in its place would go unnoticed
    run = track("--tconfig", config, "--", "touch", tmp_path / "mark")
    assert run.returncode == 2 and 'unknown setting "sleeptime"' in run.stderr
    assert not (tmp_path / "mark").exists()
    for name in "samples.txt", "c.json":  # checked as --tf is: its end, and that it is not there
        config.write_text(json.dumps({"tracking_file": str(tmp_path / name)}))
        run = track("--tconfig", config, "--", "touch", tmp_path / "mark")
        assert run.returncode == 2 and "--tf" in run.stderr and not (tmp_path / "mark").exists()


def test_what_did_not_start_leaves_no_tracking_file(tmp_path):
    """It would be in the way of the next attempt."""
    file = tmp_path / "samples.csv"
    assert track("--tf", file, "--", "/no/such/command").returncode == 127
    assert not file.exists()
    assert track("--tf", file, "-o", tmp_path / "r", "--", "true").returncode == 0 and file.exists()


def test_processes_are_named_by_what_they_run(tmp_path):
    """Not by the program that forked them."""
    script, samples = tmp_path / "work.py", tmp_path / "samples.csv"
    samples.write_text("")
    script.write_text("import sys, time\nlines = lambda: len(open(sys.argv[1]).readlines())\nend = lines() + 6\n"
                      "for _ in range(3000):\n    if lines() >= end: break\n    time.sleep(0.02)\n")
    result, _ = report("--processes", "--st", "50ms", "--tf", samples, "--overwrite",
                       command=["sh", "-c", f"{PYTHON} {script} {samples}; exit 0"])
    me = pwd.getpwuid(os.getuid()).pw_name
    assert [(p["command"].split(f" {samples}")[0], p["user"]) for p in result["process_table"]] == [
        ("sh", me), ("python3 work.py", me)]
    result, _ = report("--processes", command=["true"])
    assert result["process_table"][0]["command"] in ("true", "[true]")


@pytest.mark.other_programs
def test_processes_beyond_the_tables_room_have_one_row(tmp_path):
    """Their CPU time is not lost, and the table says how many there were."""
    samples = tmp_path / "samples.csv"
    more = "n=$(wc -l <$1); " + shell_until("[ $(wc -l <$1) -gt $((n + 2)) ]")
    loop = "i=0; while [ $i -lt 600 ]; do sleep 600 & i=$((i+1)); done; " + more + \
           "trap '' TERM; kill 0; wait; " + more
    result, _ = report("--processes", "--st", "50ms", "--tf", samples,
                       command=["setsid", "--wait", "sh", "-c", loop, "sh", samples])
    last = result["process_table"][-1]
    assert result["processes"]["seen"] > 600 and len(result["process_table"]) == 513
    assert re.fullmatch(r"\(\d+ others\)", last["command"]) and last["pid"] is None and last["cpu_seconds"] > 0


@pytest.mark.waits
def test_switches_and_io_of_a_process_that_is_not_ours_to_wait_for(tmp_path):
    code = "import time\nprint(flush=True)\ninput()\nfor _ in range(100): time.sleep(0.001)\nprint(flush=True)\ninput()"
    with subprocess.Popen([PYTHON, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()  # its start, with all of its page faults, is over
        run = Following(tmp_path, child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        now = time.time()
        run.wait(1, lambda row: float(row["timestamp"]) > now + 2)  # they are read every second
        result = run.end(signal.SIGINT)[2]
        child.communicate(b"\n")
    assert result["io"]["voluntary_switches"] >= 100


MAPPER = """
import mmap, sys, time
f = open(sys.argv[1], 'rb')
m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
sum(m[::4096])
print('there', flush=True)
sys.stdin.read()
"""


@pytest.fixture
def mapped(tmp_path):
    """A file of 200 MB that three processes outside of any tracking have in memory."""
    file = tmp_path / "mapped"
    file.write_bytes(b"x" * 200_000_000)
    others = [subprocess.Popen([PYTHON, "-c", MAPPER, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
    for other in others:
        other.stdout.readline()
    yield file
    for other in others:
        other.communicate()


@pytest.mark.other_programs
@pytest.mark.parametrize("children", [1, 2])
def test_memory_that_others_share_counts_whole_in_the_advice(tmp_path, mapped, children):
    """A job is charged for all of a file that it maps, and once, however many of its processes have it."""
    script = tmp_path / "mapper.py"
    script.write_text(MAPPER.replace("sys.stdin.read()", "time.sleep(1.5)"))
    one = f"{PYTHON} {script} {mapped} >/dev/null"
    result, _ = report("--st", "100ms", command=["sh", "-c", f"{one} & " * children + "wait"])
    total, charged = result["max_ram"]["combined"]["total_rss"], result["slurm_advice"]["charged_bytes"]
    assert total < 200e6 * (children / (children + 3)) + 40e6
    assert 200e6 < charged < 200e6 + 60e6
    assert result["slurm_advice"]["mem"] in ("300M", "400M")


def test_memory_that_nobody_shares_is_charged_as_it_is():
    result, _ = report(command=[PYTHON, "-c", "x = bytearray(300_000_000); import time; time.sleep(0.3)"])
    total, charged = result["max_ram"]["combined"]["total_rss"], result["slurm_advice"]["charged_bytes"]
    assert 300e6 < total <= charged < total + 30e6
    run = track("--", "sleep", "0.1")
    assert "whole" not in run.stderr


class Recorded:
    """A root with the sleeper, as gua sees it, and whatever else is put there."""

    def __init__(self, root, pid, cgroup):
        self.root, self.pid, self.proc = root, pid, root / "proc"
        self.file("proc/meminfo", "MemTotal: 67108864 kB\nMemFree: 67108864 kB\nBuffers: 0 kB\nCached: 0 kB\n")
        self.start = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        self.process(pid, "sleep", cgroup, command=["sleep", "600"])

    def file(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def process(self, pid, comm, cgroup, command, later=0, ppid=1, mib=1, environment=""):
        """It started `later` ticks after the sleeper."""
        stat = f"{pid} ({comm}) S {ppid} 1 1 0 0 0 0 0 0 0 10 5 0 0 20 0 1 0 {self.start + later} 9999 {mib * 256}\n"
        status = f"Name:\t{comm}\nTgid:\t{pid}\nUid:\t0\t0\t0\t0\nVmHWM:\t{mib * 1024} kB\nCpus_allowed_list:\t0-{self.last}\n"
        for name, text in (("stat", stat), ("status", status), ("cgroup", cgroup), ("cmdline", "\0".join(command) + "\0"),
                           ("statm", f"{mib * 256} {mib * 256} 0 0 0 0 0\n"), ("environ", environment),
                           ("smaps_rollup", f"0-1 ---p 0 00:00 0 [rollup]\nRss: {mib * 1024} kB\nPss: {mib * 1024} kB\n"
                                            f"Private_Dirty: {mib * 1024} kB\n"), ("smaps", "")):
            self.file(f"proc/{pid}/{name}", text)

    last = 127  # the last processor that may be used

    def track(self, where, sleeper, *options):
        """The report on the sleeper, which is then ended."""
        run = subprocess.Popen([GUA, "track", "--source", "none", "--root", self.root, "--st", "50ms", "--tf",
                                where / "samples.csv", "--pid", str(self.pid), *options], env=clean_environment(),
                               stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(rows(where / "samples.csv")) > 2)
        sleeper.kill()
        return run.communicate(timeout=60)[1]


JOB_V1 = "6:memory:/slurm/uid_1000/job_4711/step_batch\n5:cpu,cpuacct:/slurm/uid_1000/job_4711/step_batch\n0::/\n"
JOB_V2 = "0::/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0\n"


@pytest.mark.parametrize("cgroup, files", [
    (JOB_V2, {"system.slice/slurmstepd.scope/job_4711/memory.max": "17179869184\n",
              "system.slice/slurmstepd.scope/job_4711/step_batch/user/memory.max": "max\n",
              "system.slice/slurmstepd.scope/job_4711/step_batch/cpu.max": "90000 100000\n",
              "system.slice/slurmstepd.scope/cpu.max": "max 100000\n"}),
    (JOB_V1, {"memory/slurm/uid_1000/job_4711/memory.limit_in_bytes": "17179869184\n",
              "memory/slurm/uid_1000/memory.limit_in_bytes": "9223372036854771712\n",
              "cpu/slurm/uid_1000/job_4711/cpu.cfs_quota_us": "50000\n", "cpu/slurm/cpu.cfs_quota_us": "-1\n",
              "cpu/slurm/uid_1000/job_4711/cpu.cfs_period_us": "100000\n", "cpu/slurm/cpu.cfs_period_us": "100000\n"}),
    ("0::/\n", {"memory.max": "17179869184\n", "cpu.max": "100000 100000\n"}),  # a container's own namespace
    ("0::/../../other\n", {})], ids=["v2", "v1", "namespace", "outside"])
def test_an_allocation_is_not_the_whole_host(tmp_path, sleeper, cgroup, files):
    host = Recorded(tmp_path / "root", sleeper.pid, cgroup)
    for name, text in files.items():
        host.file(f"sys/fs/cgroup/{name}", text)
    text = host.track(tmp_path, sleeper)
    if files:
        assert re.search("at most, of 1\n", text) and "MiB at most, of 16.0 GiB\n" in text
    else:
        assert f"at most, of {os.sysconf('SC_NPROCESSORS_ONLN')}\n" in text and "MiB at most, of 64.0 GiB\n" in text


def test_a_cpuset_is_an_allocation(tmp_path, sleeper):
    host = Recorded(tmp_path / "root", sleeper.pid, "0::/\n")
    host.last = 0
    host.process(sleeper.pid, "sleep", "0::/\n", ["sleep", "600"])
    result = json.loads(host.track(tmp_path, sleeper, "-f", "json"))
    assert result["allocation"] == {"cores": 1 if os.sysconf("SC_NPROCESSORS_ONLN") > 1 else None, "memory_bytes": None}
    assert result["cpu_utilization"]["n_expected_cores"] == 1
    assert result["cpu_utilization"]["system_core_count"] == os.sysconf("SC_NPROCESSORS_ONLN")


@pytest.fixture
def launchers(tmp_path):
    """Programs that pretend to have their work done by somebody else; the environment that finds them."""
    for name in ("srun", "docker", "podman", "systemd-run", "ssh"):
        (tmp_path / name).write_text("#!/bin/sh\nsleep 0.4\n")
        (tmp_path / name).chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.parametrize("command, instead", [
    ("srun python3 train.py", "srun gua track -- COMMAND"),
    ("sh -c 'srun -n 4 python3 train.py; true'", "srun gua track -- COMMAND"),
    ("docker run --rm image", "gua track --pid N for its process"),
    ("podman run --rm image", "gua track --pid N for its process"),
    ("systemd-run --wait train", "systemd-run gua track -- COMMAND"),
    ("ssh node02 train", "ssh HOST gua track -- COMMAND"),
    ("sh -c 'ssh node02 train; true'", "ssh HOST gua track -- COMMAND"),
    # These do nothing elsewhere, or do it below.
    ("docker ps", None), ("systemd-run --scope train", None),
    (f"{PYTHON} -c 'import subprocess; subprocess.run([\"ssh\", \"git@host\"])'", None)])
def test_no_advice_on_work_that_leaves_the_tree(launchers, command, instead):
    text = gua("track", "--source", "sim", "-e", command, env=launchers).stderr
    result = json.loads(track("-f", "json", "--disable-logs", "-e", command, env=launchers).stderr)["slurm_advice"]
    if not instead:
        assert "warning" not in text and "\nSlurm       --mem=" in text and result["mem"] == "100M"
        return
    program = next(word for word in ("srun", "docker", "podman", "systemd-run", "ssh") if word in command)
    assert text.startswith(f"gua: warning: the work of {program} may run outside of this process tree, where it is not "
                           f"measured; use {instead}\n")
    assert text.endswith(f"\nGPU memory  none in this process tree\nGPU time    none\nSlurm       no advice: use {instead}\n")
    assert result == {**dict.fromkeys(result), "runs": 1, "basis": f"use {instead}"}


@pytest.mark.parametrize("cgroup, environment, task, found", [
    (JOB_V2, "", "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", True),
    (JOB_V1, "", JOB_V1.replace("step_batch", "step_0/task_0"), True),
    # A shell of salloc is in no job's cgroup, but its environment names the job.
    ("0::/user.slice/user-0.slice/session-1.scope\n", "A=1\0SLURM_JOB_ID=4711\0",
     "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", True),
    ("0::/user.slice/user-0.slice/session-1.scope\n", "", JOB_V2, False),
    (JOB_V2, "", JOB_V2.replace("4711", "4712"), False),
    (JOB_V2, "", JOB_V2, False)], ids=["v2", "v1", "environment", "no job", "other job", "batch script"])
def test_the_tasks_of_srun_are_found_in_its_job(tmp_path, sleeper, cgroup, environment, task, found):
    """slurmd starts them; their cgroup says whose they are. What began before srun, slurmstepd and other commands of the
    batch script are not its work."""
    host = Recorded(tmp_path / "root", sleeper.pid, cgroup)
    step = "0::/system.slice/slurmstepd.scope/job_4711/step_0"
    host.process(sleeper.pid, "srun", cgroup, ["srun", "python3", "train.py"], environment=environment)
    host.process(4000001, "python3", task, ["python3", "train.py"], later=20, ppid=4000009, mib=300)
    host.process(4000002, "python3", "0::/\n", ["python3", "worker.py"], later=30, ppid=4000001, mib=500)
    host.process(4000003, "python3", f"{step}/user/task_0\n", ["python3", "old.py"], later=-1, mib=4000)
    host.process(4000009, "slurmstepd", f"{step}/slurm\n", ["slurmstepd: [4711.0]"], later=10, mib=5000)
    text = host.track(tmp_path, sleeper)
    if found:
        assert "RAM         801 MiB at most, of 64.0 GiB\n" in text
        assert "Slurm       --mem=1000M " in text and "(from 1 run, with the job's tasks on this host)" in text
    else:
        assert "RAM         1.0 MiB at most" in text and "Slurm       no advice: use srun gua track -- COMMAND" in text


@pytest.mark.other_programs
def test_short_peaks_at_the_same_moment_are_not_summed_and_it_says_so(tmp_path):
    """The kernel keeps the largest of them; nobody looked while both were there."""
    program = tmp_path / "child.py"  # ends when both have their memory
    program.write_text("import os, sys, time\nx = bytearray(200_000_000)\nopen(sys.argv[1], 'w').close()\n"
                       "while not os.path.exists(sys.argv[2]):\n    time.sleep(0.01)\n")
    one, other = tmp_path / "one", tmp_path / "other"
    ballast = bytearray(b"x" * 300_000_000)  # of what starts gua: its size must not matter
    run = track("--st", "60s", "--", "sh", "-c",
                f"sleep 0.5; {PYTHON} {program} {one} {other} & {PYTHON} {program} {other} {one}; wait")
    del ballast
    found = re.search(r"^gua: warning: a process had (\d+) MiB between two samples; what others had then is not counted: a shorter "
                      r"sampling interval \(--st\) shows more\n", run.stderr, re.M)
    assert found and 190 < int(found[1]) < 250, run.stderr
    assert re.search(r"^RAM         (19|2\d)\d MiB at most", run.stderr, re.M)
    run = track("--st", "60s", "--", PYTHON, "-c", "x = bytearray(200_000_000)")  # one process: nothing is missing
    assert run.stderr.startswith("Time ") and re.search(r"^RAM         (19|2\d)\d MiB at most", run.stderr, re.M)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be somebody else")
def test_no_advice_on_memory_that_cannot_be_read(sleeper):
    with tempfile.TemporaryDirectory() as where:
        os.chmod(where, 0o777)
        run = Following(pathlib.Path(where), sleeper.pid, "--disable-logs", program=shutil.copy(GUA, where), user=65534,
                        group=65534)
        sleeper.kill()
        _, _, result = run.end()
    assert result["max_ram"]["combined"]["total_rss"] is None
    assert result["slurm_advice"]["mem"] is None and "--mem" not in result["slurm_advice"]["options"]


class Running:
    """gua track in the background, in a process group of its own."""

    def __init__(self, tmp_path, *command, group=True):
        self.out = tmp_path / "report.json"
        self.child = subprocess.Popen([GUA, "track", "--source", "none", "-f", "json", "-o", self.out, "--", *command],
                                      env=clean_environment(), stdout=subprocess.PIPE, text=True,
                                      start_new_session=group)
        assert self.child.stdout.readline() == "ready\n"

    def finish(self):
        status = self.child.wait(60)
        return status, json.loads(self.out.read_text())


TRAPS = "trap 'echo got; exit 5' {}; echo ready; while :; do sleep 0.05; done"


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1"])
def test_signals_reach_the_command(tmp_path, name):
    run = Running(tmp_path, "sh", "-c", TRAPS.format(name))
    os.kill(run.child.pid, getattr(signal, "SIG" + name))
    status, result = run.finish()
    assert status == 5 and run.child.stdout.read() == "got\n"
    assert result["processes"]["exit_status"] == 5


def test_who_starts_it_may_ignore_the_end_of_children():
    """The command still ignores it, and its exit status is known."""
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    assert gua("track", "--", "sh", "-c", "exit 3", preexec_fn=ignore).returncode == 3
    run = gua("track", "--", "grep", "SigIgn", "/proc/self/status", preexec_fn=ignore)
    assert run.returncode == 0 and int(run.stdout.split()[1], 16) & 1 << (signal.SIGCHLD - 1), run.stdout


def test_a_second_request_ends_the_tracking_of_a_stubborn_command(tmp_path):
    run = Running(tmp_path, "sh", "-c", "trap '' TERM; echo ready; exec sleep 600")
    for _ in range(4):  # of two that wait for it the kernel makes one
        if run.child.poll() is None:
            os.kill(run.child.pid, signal.SIGTERM)
            time.sleep(0.2)
    status, result = run.finish()
    os.killpg(run.child.pid, signal.SIGKILL)  # what it has left behind
    assert status == 143 and result["compute_time"]["time"] > 0


def test_a_request_that_comes_twice_is_one(tmp_path):
    """timeout(1) sends to the process and to its group: the command still has the time to end. On a machine that is busy
    the two may be far apart by themselves; not always."""
    for _ in range(5):
        run = Running(tmp_path, "sh", "-c",
                      "trap 'trap \"\" TERM; sleep 0.5; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
        os.kill(run.child.pid, signal.SIGTERM)
        time.sleep(0.03)
        os.kill(run.child.pid, signal.SIGTERM)
        status, result = run.finish()
        if status == 5:
            break
    assert status == 5 and result["processes"]["exit_status"] == 5


def test_a_killed_command_leaves_a_report(tmp_path):
    run = Running(tmp_path, "sh", "-c", "echo ready; exec sleep 30")
    children = subprocess.run(["pgrep", "-P", str(run.child.pid)], capture_output=True, text=True).stdout.split()
    os.kill(int(children[0]), signal.SIGKILL)
    status, result = run.finish()
    assert status == 137 and result["processes"]["exit_signal"] == 9


def read_terminal(fd, after=None, type=b""):
    """All that a program prints on its terminal; types once, when `after` has been seen."""
    text = b""
    while True:
        try:
            piece = os.read(fd, 1000)
        except OSError:  # the program has ended
            return text
        text += piece
        if after and after in text:
            os.write(fd, type)
            after = None


def test_a_terminal_interrupt_reaches_it_once(tmp_path):
    """Ctrl-C in a real terminal: the group gets it, and we do not send it again."""
    script = "import signal,sys,time\nn=[]\nsignal.signal(2,lambda *a:n.append(1))\nprint('ready',flush=True)\n" \
             "while not n: time.sleep(0.01)\ntime.sleep(0.5)\nprint('count',len(n),flush=True)\n"
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(GUA, ["gua", "track", "--source", "none", "-o", str(tmp_path / "r"), "--", PYTHON, "-c", script],
                  clean_environment())
    text = read_terminal(fd, after=b"ready", type=b"\x03")
    os.waitpid(pid, 0)
    assert b"count 1" in text, text
    assert (tmp_path / "r").read_text().startswith("Time ")


STUCK = '$| = 1; $SIG{INT} = $SIG{HUP} = "IGNORE"; print "pid=$$.\\n"; syscall(58); sleep 600'


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("perl"), reason="58 is vfork on x86-64; perl calls it")
def test_the_terminal_comes_back_from_a_stuck_command(tmp_path):
    """Who has called vfork(2) is in state D until the child ends, like one that waits for a driver."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(GUA, ["gua", "track", "--source", "none", "-o", str(tmp_path / "r"), "--", shutil.which("perl"), "-e",
                        STUCK], clean_environment())
    text = b""

    def read_until(pattern):
        nonlocal text
        while not re.search(pattern, text):
            assert select.select([fd], [], [], 60)[0], text
            text += os.read(fd, 1000)
        return re.search(pattern, text)
    command = int(read_until(rb"pid=(\d+)\.")[1])
    try:
        wait_for(lambda: pathlib.Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[0] == "D")
        for answer in (rb"2 more and gua leaves it", rb"1 more and gua leaves it"):
            os.write(fd, b"\x03")
            read_until(answer)
        os.write(fd, b"\x03")
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
        assert (tmp_path / "r").read_text().startswith("Time ")
    finally:
        children = pathlib.Path(f"/proc/{command}/task/{command}/children").read_text().split()
        for one in (command, *map(int, children)):
            os.kill(one, signal.SIGKILL)


def test_progress_only_on_a_terminal(tmp_path):
    run = track("--progress", "-o", tmp_path / "r", "--st", "0.05", "--", "sleep", "0.3")
    assert run.stderr == ""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(GUA, ["gua", "track", "--source", "none", "--progress", "--st", "0.05", "-o", str(tmp_path / "r"),
                        "--", "sh", "-c", "read answer"], clean_environment())
    text = read_terminal(fd, after=b"RAM", type=b"\n")
    os.waitpid(pid, 0)
    assert re.search(rb"\d+ s  CPU \d+%  RAM", text)


def test_following_a_process_until_it_ends(tmp_path, sleeper):
    start = time.monotonic()
    run = Following(tmp_path, sleeper.pid, "--tu", "seconds")
    sleeper.kill()
    status, _, result = run.end()
    assert status == 0 and 0 < result["compute_time"]["time"] <= time.monotonic() - start
    run = gua("track", "--source", "none", "--pid", 4194303)
    assert run.returncode == 1 and "cannot follow" in run.stderr


def test_children_that_sleep_use_no_cpu(tmp_path):
    """Their use is what the tree used less what the main process used, and the errors of that do not become use."""
    busy = "while True: sum(range(10000))"
    idle = "import time; sum(range(10**6)); open('ready', 'w').close(); time.sleep(600)"
    tree = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {idle!r}])\n{busy}"
    with subprocess.Popen([PYTHON, "-c", tree], cwd=tmp_path, start_new_session=True) as main:
        wait_for((tmp_path / "ready").exists)
        following = Following(tmp_path, main.pid)
        following.wait(8)
        os.killpg(main.pid, signal.SIGKILL)
        following.process.wait(60)
    assert {row["cpu_descendants_sum_utilization_percent"] for row in rows(following.samples)} == {"0"}


def test_interrupt_ends_following_and_spares_the_process(tmp_path, sleeper):
    run = Following(tmp_path, sleeper.pid)
    assert run.end(signal.SIGINT)[0] == 0
    assert sleeper.poll() is None


def test_gpu_memory_of_the_tree_on_the_fake_driver(tmp_path, sleeper):
    scenario = """
        card 0 uuid GPU-aaaa name "Test A" memory 80GiB
        process mine pid env JOB user me uid 0 command x
        process other pid 4194200 user them uid 0 command y
        at 0s hold mine card 0 memory 1000MiB
        at 0s hold other card 0 memory 5GiB
        at 0s load other card 0 sm 80
        """
    env = fake_driver(tmp_path, scenario, JOB=sleeper.pid)
    run = Following(tmp_path, sleeper.pid, "--gru", "megabytes", source=(), env=env)
    run.wait(1, lambda row: float(row["main_gpu_ram"] or 0) > 0)
    _, _, result = run.end(signal.SIGINT)
    assert result["max_gpu_ram"]["main"] == 1048.576
    assert result["gpu_utilization"]["system_gpu_count"] == 1
    assert result["cards"][0]["uuid"] == "GPU-aaaa"


def test_a_driver_without_utilisation_is_one_warning(tmp_path):
    scenario = """
        card 0 uuid GPU-aaaa name "Test A" memory 80GiB
        at 0s fail nvmlDeviceGetSamples code 3
        at 0s fail nvmlDeviceGetUtilizationRates code 3
        """
    env = fake_driver(tmp_path, scenario)
    run = gua("track", "--st", "0.05", "-o", tmp_path / "r", "--", "sleep", "0.4", env=env)
    assert run.returncode == 0 and len(run.stderr.splitlines()) <= 1, run.stderr
    quiet = gua("track", "--st", "0.05", "-o", tmp_path / "r", "--disable-logs", "--", "sleep", "0.2", env=env)
    assert quiet.stderr == ""


def test_time_by_state_is_unknown_where_utilisation_is(tmp_path, sleeper):
    scenario = """
        card 0 uuid GPU-aaaa name "Test A" memory 80GiB
        card 1 uuid GPU-bbbb name "Test A" memory 80GiB
        process mine pid env JOB user me uid 0 command x
        at 0s hold mine card 0 memory 1000MiB
        at 0s fail nvmlDeviceGetSamples code 3
        at 0s fail nvmlDeviceGetUtilizationRates code 3
        """
    env = fake_driver(tmp_path, scenario, JOB=sleeper.pid)
    run = Following(tmp_path, sleeper.pid, source=(), env=env)
    run.wait(1, lambda row: float(row["main_gpu_ram"] or 0) > 0)
    _, said, result = run.end(signal.SIGINT)
    assert said == "gua: warning: the driver does not report how much a card is used\n"
    held, free = result["cards"]
    assert held["active_seconds"] is None and held["idle_held_seconds"] is None
    assert result["gpu_time"]["active_seconds"] is None and result["gpu_time"]["idle_held_seconds"] is None
    assert free["active_seconds"] == 0 and free["idle_held_seconds"] == 0
    assert result["max_gpu_ram"]["main"] > 0 and result["gpu_utilization"]["gpu_percentages"]["max_sum_percent"] is None


CARDS = """
    card 0 uuid GPU-aaaa1 name "Test A" memory 80GiB
    card 1 uuid GPU-aaaa2 name "Test A" memory 80GiB
    card 2 uuid GPU-bbbb3 name "Test A" memory 80GiB
    mig 2 index 0 gi 1 ci 0 uuid MIG-one name "Test A MIG" memory 40GiB
    mig 2 index 1 gi 2 ci 0 uuid MIG-two name "Test A MIG" memory 40GiB
    process other pid 4194200 user them uid 0 command y
    at 0s hold other card 0 memory 5GiB
    at 0s load other card 0 sm 80
    """


def cards_of(result):
    """What the report has about cards: the number on the host, that which counts, and the names."""
    gpus = result["gpu_utilization"]
    return gpus["system_gpu_count"], gpus["n_expected_gpus"], [card["uuid"] for card in result["cards"]]


@pytest.mark.parametrize("visible, expected", [
    (None, ["GPU-aaaa1", "GPU-aaaa2", "MIG-one", "MIG-two"]), ("", []), ("-1", []), ("1", ["GPU-aaaa2"]),
    ("0,-1,1", ["GPU-aaaa1"]), ("GPU-aaaa2", ["GPU-aaaa2"]), ("GPU-aaaa", []), ("GPU-b", ["MIG-one", "MIG-two"]),
    ("MIG-two", ["MIG-two"]), ("MIG-GPU-bbbb3/1/0", ["MIG-one"])])
def test_cards_that_cuda_does_not_show_are_not_the_commands(tmp_path, visible, expected):
    env = fake_driver(tmp_path, CARDS, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}))
    run = gua("track", "-f", "json", "-o", tmp_path / "r", "--", "sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}", env=env)
    assert run.stdout == ("unset" if visible is None else visible) + "\n"
    result = json.loads((tmp_path / "r").read_text())
    assert cards_of(result) == (4, len(expected), expected)
    if visible == "1":  # nothing of the stranger on card 0; null when the command ended before a sample
        assert not result["gpu_utilization"]["gpu_percentages"]["max_sum_percent"]
    said = gua("track", "--disable-logs", "--", "true", env=env).stderr
    assert ("this host has 4, which CUDA_VISIBLE_DEVICES or permissions hide\n" in said) == (not expected)


def test_all_cards_where_asked_for_or_as_gpu_tracker(tmp_path):
    env = fake_driver(tmp_path, CARDS, CUDA_VISIBLE_DEVICES="1")
    quiet = ("-f", "json", "--disable-logs")  # the use of a MIG instance is not known
    every = (4, 4, ["GPU-aaaa1", "GPU-aaaa2", "MIG-one", "MIG-two"])
    run = gua("track", "--gpus", "all", *quiet, "--", "true", env=env)
    assert cards_of(json.loads(run.stderr)) == every
    run = gua("--execute=true", *quiet, binary=BUILD / "gpu-tracker", env=env)
    assert cards_of(json.loads(run.stdout)) == every
    run = gua("track", "--guuids", "GPU-aaaa1", *quiet, "--", "true", env=env)  # what is named counts
    assert cards_of(json.loads(run.stderr)) == (4, 1, ["GPU-aaaa1"])
    run = gua("pick", "-i", "1", "--", GUA, "track", *quiet, "--", "true", env=env)
    assert cards_of(json.loads(run.stderr)) == (4, 1, ["GPU-aaaa2"])
    run = gua("track", "--gpus", "some", "--", "touch", tmp_path / "mark", env=env)
    assert run.returncode == 2 and not (tmp_path / "mark").exists()


def test_cards_that_it_touched_are_its_own(tmp_path):
    """Also those that its variable does not name, and for a process whose variable is in /proc."""
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "CUDA_VISIBLE_DEVICES": "GPU-aaaa2"}) as child:
        scenario = CARDS + "process mine pid env JOB user me uid 0 command x\nat 0s hold mine mig 2/0 memory 1000MiB\n"
        env = fake_driver(tmp_path, scenario, JOB=child.pid)
        run = Following(tmp_path, child.pid, source=(), env=env)
        run.wait(1, lambda row: float(row["main_gpu_ram"] or 0) > 0)
        _, _, result = run.end(signal.SIGINT)
        child.kill()
    assert cards_of(result) == (4, 2, ["GPU-aaaa2", "MIG-one"])
    assert result["slurm_advice"]["basis"] == "from a part of 1 run" and result["slurm_advice"]["gres"] == "gpu:1"


def test_a_lost_card_of_others_is_no_warning(tmp_path):
    scenario = CARDS + "at 0s lost card 0\n"
    for visible, warnings in (("1", 0), ("0", 1)):
        env = fake_driver(tmp_path, scenario, CUDA_VISIBLE_DEVICES=visible)
        run = gua("track", "-o", tmp_path / "r", "--", "true", env=env)
        assert len(run.stderr.splitlines()) == warnings, run.stderr


def test_cards_that_are_not_there_start_nothing(tmp_path):
    env = fake_driver(tmp_path, 'card 0 uuid GPU-aaaa name "Test A" memory 80GiB\n')
    run = gua("track", "--guuids", "GPU-aaaa,GPU-none", "--", "touch", tmp_path / "mark", env=env)
    assert run.returncode == 2 and "card GPU-none does not exist; the cards are: GPU-aaaa" in run.stderr
    assert not (tmp_path / "mark").exists()
    assert gua("track", "--guuids", "GPU-aaaa", "-o", tmp_path / "r", "--", "true", env=env).returncode == 0


@pytest.mark.parametrize("args", [["-v"], ["-V"], ["--version"], ["--execute=true", "-v"]])
def test_gpu_trackers_version(args):
    run = gua(*args, binary=BUILD / "gpu-tracker")
    assert (run.returncode, run.stderr) == (0, "") and re.fullmatch(r"gpu-tracker \(gua [0-9.]+\)\n", run.stdout)


def test_gpu_trackers_help_has_its_own_defaults():
    """Its -v is not that of gua track; its report is whole, and goes to standard output."""
    own, ours = gua("-h", binary=BUILD / "gpu-tracker").stdout, gua("track", "-h").stdout
    assert "-v, --version" in own and "--verbose" not in own and "-v, --verbose" in ours
    assert "(default: standard output)" in own and "(default: standard error)" in ours
    assert "all (default)" in own and "exit status is that of the command" in own


def test_gpu_tracker_is_another_name_for_it(tmp_path):
    tool = BUILD / "gpu-tracker"
    run = gua("-v", binary=tool)
    assert run.returncode == 0 and "gpu-tracker" in run.stdout
    run = gua("--source", "none", "--execute=sh -c 'exit 3'", "-f", "json", "--disable-logs", binary=tool)
    assert run.returncode == 3
    result = json.loads(run.stdout)
    assert result["max_ram"]["unit"] == "gigabytes" and result["compute_time"]["unit"] == "hours"
    run = gua("--exec", "true", "--source=none", "--st=0.5", "--ru=kilobytes", "--tu", "days", binary=tool)
    assert run.returncode == 0 and "Unit: kilobytes" in run.stdout
    assert run.stdout.startswith("Resource tracking complete. Process completed with status code: 0\nMax RAM:")
    assert gua(binary=tool).returncode == 2
    assert "usage: gpu-tracker" in gua("-h", binary=tool).stdout
    run = gua("-e", "true", "--gb", "amd", binary=tool)
    assert run.returncode == 2 and "gpu-tracker: --gb must be nvidia, not 'amd'" in run.stderr
    run = gua("sub-track", "analyze", binary=tool)
    assert run.returncode == 2 and "usage: gpu-tracker sub-track" in run.stderr

"""What tracking costs: the start of the command, memory, CPU, with few and many processes. Beside each
figure stands what gpu-tracker 5.0.1 was measured to take for the same on a machine like this one."""
import os
import pathlib
import re
import resource
import statistics
import subprocess
import time

# A tree of N children that sleep, under a parent that waits for all of them.
TREE = "for i in $(seq {}); do sleep {} & done; wait"


def start_delay(gua, runs):
    """Milliseconds by which the command's first instruction is later than without tracking."""
    def once(prefix):
        begin = time.monotonic()
        out = subprocess.run([*prefix, "/usr/bin/python3", "-S", "-c", "import time; print(time.monotonic())"],
                             capture_output=True, text=True, check=True).stdout
        return (float(out) - begin) * 1000
    plain, tracked = [], []
    for _ in range(runs):
        plain.append(once([]))
        tracked.append(once([gua, "track", "-o", "/dev/null", "--"]))
    return statistics.median(tracked) - statistics.median(plain), statistics.median(plain)


def status_of(pid, key):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{key}:\s+(\d+)", text, re.M).group(1))


def schedstat_ms(pid):
    """CPU time of a process to the nanosecond; /proc/PID/stat only has ticks of 10 ms."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def steady_cost(gua, seconds, interval, children, settle=2.5):
    """(CPU percent of one core, resident KiB) of the tracker while a tree sleeps."""
    command = TREE.format(children, seconds + settle + 20) if children else f"exec sleep {seconds + settle + 20}"
    tracker = subprocess.Popen([gua, "track", "--st", interval, "-o", "/dev/null", "--", "sh", "-c", command],
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(settle)
        before, begin = schedstat_ms(tracker.pid), time.monotonic()
        time.sleep(seconds)
        used, took = schedstat_ms(tracker.pid) - before, time.monotonic() - begin
        return used / took / 10, status_of(tracker.pid, "VmRSS")
    finally:
        os.killpg(tracker.pid, 9)
        tracker.wait()


def crowd(n):
    """Unrelated processes on the host."""
    shell = subprocess.Popen(["sh", "-c", TREE.format(n, 600)], start_new_session=True)
    time.sleep(3)
    return shell


def rows(table, say, gua, quick):
    gua = str(gua)
    seconds = 5 if quick else 15
    say("starting commands with and without the tracker")
    delay, plain = start_delay(gua, 15 if quick else 41)
    table.row("track: the command starts later by", delay, "ms", 5,
              f"the command alone takes {plain:.1f} ms to start; gpu-tracker: 900 ms")
    say("tracking a tree that sleeps")
    one, resident = steady_cost(gua, seconds, "1s", 0)
    table.row("track: resident", resident / 1024, "MiB", 4, "no driver library here; gpu-tracker: 152 MB")
    table.row("track: CPU, 1 process, every 1 s", one, "%", 0.05, "gpu-tracker: 0.47 %")
    fast, _ = steady_cost(gua, seconds, "100ms", 0)
    table.row("track: CPU, 1 process, every 100 ms", fast, "%", 0.5, "gpu-tracker: 3.3 %")
    many, _ = steady_cost(gua, seconds, "1s", 100)
    table.row("track: CPU, 100 descendants, every 1 s", many, "%", 0.5, "gpu-tracker: 3.7 %")
    say("tracking beside 1000 unrelated processes")
    others = crowd(1000)
    try:
        busy, _ = steady_cost(gua, seconds, "1s", 0)
    finally:
        os.killpg(others.pid, 9)
        others.wait()
    table.row("track: CPU beside 1000 unrelated processes", busy, "%", 0.05,
              f"{busy / one:.2f} x without them; gpu-tracker: 1.75 %")

"""What the live views cost: one `gua stat`, and `gua top` beside nvtop on the same driver library."""
import fcntl
import os
import pty
import shutil
import statistics
import struct
import subprocess
import termios
import threading
import time

from track import schedstat_ms, status_of

EIGHT = "\n".join(f'card {i} uuid GPU-{i} name "Card {i}" memory 80GiB' for i in range(8)) + "\n"


def environment(build, scenario, folder):
    """The tests' driver library as the host's, found by its usual name."""
    (folder / "libnvidia-ml.so.1").unlink(missing_ok=True)
    (folder / "libnvidia-ml.so.1").symlink_to(build / "tests" / "libnvidia-ml.so.1")
    return {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": str(folder),
            "FAKENVML_SCENARIO": str(scenario), "LD_LIBRARY_PATH": str(folder),
            "GUA_NVML": str(folder / "libnvidia-ml.so.1")}


def stat_once(gua, env, runs):
    """Milliseconds of one `gua stat`, the fastest of several: what a person waits on a quiet machine."""
    times = []
    for _ in range(runs):
        begin = time.monotonic()
        subprocess.run([gua, "stat"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append((time.monotonic() - begin) * 1000)
    return min(times), statistics.median(times)


def screen(command, env, seconds, settle=3):
    """(CPU percent of one core, resident KiB) of a program on a terminal of 60 x 200."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        os.execvpe(command[0], command, env)

    def swallow():
        try:
            while os.read(fd, 65536):
                pass
        except OSError:
            pass
    threading.Thread(target=swallow, daemon=True).start()
    try:
        time.sleep(settle)
        before, begin = schedstat_ms(pid), time.monotonic()
        time.sleep(seconds)
        used, took = schedstat_ms(pid) - before, time.monotonic() - begin
        return used / took / 10, status_of(pid, "VmRSS")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(fd)


def crowded(path, processes):
    """16 cards, and processes that live on this host: a view has to read them in /proc."""
    lines = [f'card {i} uuid GPU-{i:04} name "NVIDIA H100 80GB HBM3" memory 80GiB idle-power 70W max-power 700W'
             for i in range(16)]
    lines += [f"process p{i} pid {p.pid} user u uid {i} command sleep" for i, p in enumerate(processes)]
    lines += [f"at 0s hold p{i} card {i % 16} memory {1 + i % 7}GiB" for i in range(len(processes))]
    lines += [f"at 0s load p{i} card {i % 16} sm 11 on {3 + i % 5}s off 4s" for i in range(0, len(processes), 2)]
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(table, say, build, folder, quick):
    seconds = 5 if quick else 15
    gua = str(build / "gua")
    say("gua stat with 8 cards")
    eight = folder / "eight.scenario"
    eight.write_text(EIGHT)
    best, median = stat_once(gua, environment(build, eight, folder), 10 if quick else 40)
    table.row("stat: one shot, 8 cards", best, "ms", 20, f"whole process, driver included; median {median:.1f} ms")
    say("gua top on a terminal, 16 cards and 128 processes")
    processes = [subprocess.Popen(["sleep", "600"]) for _ in range(128)]
    try:
        compare(table, say, gua, environment(build, crowded(folder / "crowd.scenario", processes), folder), seconds)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compare(table, say, gua, env, seconds):
    """gua top, and nvtop where it is installed."""
    ours, resident = screen([gua, "top"], env, seconds)
    table.row("top: resident, 16 cards, 128 processes", resident / 1024, "MiB", 12, "the driver library included")
    if not shutil.which("nvtop"):
        say("nvtop is not installed: no comparison")
        table.row("top: CPU at 1 s, part of nvtop's", ours, "%", 0, "nvtop is not installed", judged=False)
        return
    theirs, _ = screen(["nvtop"], env, seconds)
    table.row("top: CPU at 1 s, part of nvtop's", ours / theirs, "x", 1 / 3,
              f"{ours:.2f} % against {theirs:.2f} % of one core")

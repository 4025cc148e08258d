"""What the live views cost: one shot of each, and `gua top` beside nvtop on the same driver library."""
import contextlib
import fcntl
import os
import pty
import resource
import shutil
import sqlite3
import statistics
import struct
import subprocess
import termios
import threading
import time

from recorder import cpu_seconds
from track import status_of

# What scripts ask for most.
FIELDS = "--query-gpu=timestamp,pstate,temperature.gpu,utilization.gpu,utilization.memory,memory.total," \
    "memory.free,memory.used"
EIGHT = "\n".join(f'card {i} uuid GPU-{i} name "Card {i}" memory 80GiB' for i in range(8)) + "\n"


def environment(build, scenario, folder):
    """The tests' driver library as the host's, found by its usual name."""
    (folder / "libnvidia-ml.so.1").unlink(missing_ok=True)
    (folder / "libnvidia-ml.so.1").symlink_to(build / "tests" / "libnvidia-ml.so.1")
    return {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": str(folder),
            "FAKENVML_SCENARIO": str(scenario), "LD_LIBRARY_PATH": str(folder),
            "GUA_NVML": str(folder / "libnvidia-ml.so.1")}


def children_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def one_shot(table, figure, command, env, runs, goal=20):
    """Milliseconds of one run, the fastest of several: what a person waits on a quiet machine."""
    times, cpu = [], []
    for _ in range(runs):
        begin, before = time.monotonic(), children_ms()
        subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append((time.monotonic() - begin) * 1000)
        cpu.append(children_ms() - before)
    table.row(figure, min(times), "ms", goal,
              f"all processes, driver included; median {statistics.median(times):.1f} ms, CPU {min(cpu):.1f} ms")


def screen(command, env, seconds, settle=3):
    """(CPU percent of one core, with all that it has started; its resident KiB) of a program on a terminal of 60 x 200;
    None: it ended by itself."""
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
        before, begin = cpu_seconds(pid), time.monotonic()
        time.sleep(seconds)
        used, took = cpu_seconds(pid) - before, time.monotonic() - begin
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return None
        return 100 * used / took, status_of(pid, "VmRSS")
    except OSError:  # its files in /proc are gone
        return None
    finally:
        os.kill(pid, 9)  # until it is waited for, it is there
        os.waitpid(pid, 0)
        os.close(fd)


def crowded(path, processes, used=16, more=""):
    """16 cards, and processes that live on this host: a view has to read them in /proc. They are on the first
    `used` cards."""
    lines = [f'card {i} uuid GPU-{i:04} name "NVIDIA H100 80GB HBM3" memory 80GiB idle-power 70W max-power 700W'
             for i in range(16)]
    lines += [f"process p{i} pid {p.pid} user u uid {i} command sleep" for i, p in enumerate(processes)]
    lines += [f"at 0s hold p{i} card {i % used} memory {1 + i % 7}GiB" for i in range(len(processes))]
    lines += [f"at 0s load p{i} card {i % used} sm 11 on {3 + i % 5}s off 4s" for i in range(0, len(processes), 2)]
    path.write_text("\n".join(lines) + f"\n{more}\n")
    return path


@contextlib.contextmanager
def recorded(build, folder, processes, used, hours):
    """A store whose recorder has been at work for so long, up to now: in virtual time, until its driver hangs. It is
    then still there, and does nothing."""
    db, clock, seconds = folder / "live.db", folder / "live.clock", hours * 3600
    clock.write_bytes(struct.pack("=8sqqq", b"GUACLCK1", 3600 * 10**6, int(time.time() - seconds - 3600) * 10**6, 0))
    scenario = crowded(folder / "live.scenario", processes, used, f"at {seconds}s hang nvmlDeviceGetSamples")
    recorder = subprocess.Popen(
        [build / "gua", "daemon", "--foreground", "--db", db, "--clock", clock, "--driver-timeout", "1h"],
        env={**environment(build, scenario, folder), "FAKENVML_CLOCK": str(clock)}, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    try:
        while time.monotonic() < deadline and recorder.poll() is None and last_tick(db) < time.time() - 60:
            time.sleep(0.1)
        yield db
    finally:
        recorder.kill()
        recorder.wait()


def last_tick(db):
    """When the recorder last wrote, unix seconds; 0: not yet."""
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as store:
            return (store.execute("SELECT max(last_tick_ms) FROM run").fetchone()[0] or 0) / 1000
    except sqlite3.Error:
        return 0


def rows(table, say, build, folder, quick):
    seconds, rounds, runs = (5, 1, 10) if quick else (10, 3, 40)
    gua = str(build / "gua")
    say("one shot with 8 cards")
    eight = folder / "eight.scenario"
    eight.write_text(EIGHT)
    env = environment(build, eight, folder)
    one_shot(table, "stat: one shot, 8 cards", [gua, "stat"], env, runs)
    one_shot(table, "query: one shot, 8 cards, 8 fields", [gua, "query", FIELDS, "--format=csv"], env, runs)
    one_shot(table, "demo: two weeks of a lab, recorded and reported", [gua, "demo"], env,
             min(runs, 10), goal=300)
    processes = [subprocess.Popen(["sleep", "600"]) for _ in range(128)]
    try:
        say("a store, then one shot with 16 cards and 128 holders")
        with recorded(build, folder, processes, 8, 1 if quick else 6) as db:
            env = environment(build, crowded(folder / "half.scenario", processes, 8), folder)
            one_shot(table, "stat: one shot, 128 holders, with a store", [gua, "stat", "--db", db], env, runs, goal=7)
            one_shot(table, "who: one shot, 128 holders, with a store", [gua, "who", "--db", db], env, runs, goal=7)
            one_shot(table, "pick: one shot, 16 cards, with a store", [
                gua, "pick", "--free-for", "10m", "--hold", "0s", "--db", db, "--lock-dir", folder / "locks"],
                env, runs, goal=5)
            one_shot(table, "query: one shot, 128 holders, with a store", [
                gua, "query", FIELDS + ",gua.state,gua.free_for", "--format=csv", "--db", db], env, runs, goal=7)
        say("gua top on a terminal, 16 cards and 128 processes")
        env = environment(build, crowded(folder / "crowd.scenario", processes), folder)
        compare(table, say, gua, env, seconds, rounds)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compare(table, say, gua, env, seconds, rounds):
    """gua top, and nvtop where it is installed: in turn, so that both see the same machine."""
    figure = "top: CPU at 1 s, part of nvtop's"
    why = None if shutil.which("nvtop") else "nvtop is not installed (Debian has it in contrib: apt install nvtop)"
    ours, theirs, resident = [], [], []
    for _ in range(rounds):
        shown = screen([gua, "top"], env, seconds)
        if not shown:
            raise SystemExit("gua top ended by itself")
        ours.append(shown[0])
        resident.append(shown[1])
        other = screen(["nvtop"], env, seconds) if not why else None
        if other:
            theirs.append(other[0])
        elif not why:
            why = "nvtop ended by itself on the tests' driver library"
    table.row("top: resident, 16 cards, 128 processes", max(resident) / 1024, "MiB", 12, "the driver library included")
    mine = statistics.median(ours)
    if why:
        say(f"no comparison: {why}")
        table.skip(figure, f"{why}; gua top takes {mine:.2f} % of a core")
        return
    other = statistics.median(theirs)
    table.row(figure, mine / other, "x", 1 / 3,
              f"{mine:.2f} % against {other:.2f} % of one core, medians of {rounds}")

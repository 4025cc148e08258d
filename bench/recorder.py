"""The recorder under load, for the bench: 16 cards and 128 holders on the tests' driver library, in
virtual time, so that a week takes a minute."""
import os
import pathlib
import signal
import struct
import subprocess
import time

START = 1793577600  # Mon 2026-11-02 00:00:00 UTC, as in the scenario
PIDS = [30000 + 7 * i for i in range(128)]
STAT = "{pid} (python3) S 1 {pid} {pid} 0 -1 4194304 1 0 0 0 9 9 0 0 20 0 9 0 {start} 9 9 0" + " 0" * 27 + "\n"


def make_root(path):
    """A /proc with the scenario's processes, so that owners are resolved as on a real host."""
    boot = path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("4f1c2d3e-0000-4000-8000-000000000001\n")
    (path / "proc/stat").write_text(f"cpu 1 2 3\nbtime {START - 3600}\n")
    (path / "etc").mkdir()
    (path / "etc/passwd").write_text("".join(f"user{i:02}:x:{2000 + i}:100::/home:/bin/sh\n" for i in range(24)))
    for number, pid in enumerate(PIDS):
        place = path / "proc" / str(pid)
        place.mkdir()
        (place / "stat").write_text(STAT.format(pid=pid, start=1000 + number))
        (place / "status").write_text(f"Name:\tpython3\nPid:\t{pid}\nUid:\t{2000 + number % 24}\t0\t0\t0\n")
        (place / "loginuid").write_text(str(2000 + number % 24))
        (place / "cmdline").write_bytes(b"python3\0job.py\0")
        (place / "cgroup").write_text("0::/user.slice\n")
    return path


def processes(pid):
    """A process and all that it has started: the recorder is three: one asks the driver, one reads about others."""
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [pid] + [one for task in tasks for child in task.read_text().split() for one in processes(int(child))]


def mappings(pid):
    """{(address, file): (private KiB, shared KiB)} of a process."""
    found, place = {}, None
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        word, *rest = line.split()
        if not word.endswith(":"):
            file = rest[4] if len(rest) > 4 else ""
            # A stack begins where it has grown to, which differs from process to process.
            place = ("" if file == "[stack]" else word.split("-")[0], file)
            found[place] = (0, 0)
        elif word in ("Private_Clean:", "Private_Dirty:"):
            found[place] = (found[place][0] + int(rest[0]), found[place][1])
        elif word in ("Shared_Clean:", "Shared_Dirty:"):
            found[place] = (found[place][0], found[place][1] + int(rest[0]))
    return found


def together_kib(pids):
    """The memory that processes take together. A page that several of them have counts once, and whole, also when
    other programs have it, too (the C library). They are forks of one program, so what they share is in the same place."""
    private, shared = 0, {}
    for pid in pids:
        for place, (own, common) in mappings(pid).items():
            private += own
            shared[place] = max(shared.get(place, 0), common)
    return private + sum(shared.values())


class Recording:
    """One run of the recorder: what it cost, and how memory and writing went on in virtual time."""

    def __init__(self, gua, library, scenario, folder, ticks, interval=30):
        folder.mkdir()
        clock, cost = folder / "clock", folder / "cost"
        clock.write_bytes(struct.pack("=8sqqq", b"GUACLCK1", 3600 * 10**6, (START - 3600) * 10**6, 0))
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "FAKENVML_SCENARIO": str(scenario),
               "FAKENVML_CLOCK": str(clock), "FAKENVML_COST": str(cost)}
        root = make_root(folder / "root")
        command = [gua, "daemon", "--foreground", "--db", folder / "gua.db", "--nvml", library, "--clock", clock,
                   "--root", root, "--interval", f"{interval}s", "--ticks", ticks]
        with open(folder / "log", "wb") as log:
            self.child = subprocess.Popen([str(word) for word in command], env=env, stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log)
        self.clock = clock
        self.points = []  # (virtual seconds, resident KiB of all processes together, bytes written)
        status, usage = self.watch()
        if status:
            raise RuntimeError(f"the recorder failed: {(folder / 'log').read_text()[-500:]}")
        calls = dict(zip(*[iter(cost.read_text().split())] * 2))
        self.driver_cpu = int(calls["cpu_us"]) / 1e6
        self.cpu = usage.ru_utime + usage.ru_stime - self.driver_cpu
        self.ticks, self.drains = ticks, ticks * interval // 5

    def watch(self):
        """Looks ten times a second until it ends."""
        while True:
            pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
            if pid:
                self.child.returncode = status
                return status, usage
            self.look()
            time.sleep(0.1)

    def look(self):
        proc = pathlib.Path("/proc") / str(self.child.pid)
        try:
            resident = together_kib(processes(self.child.pid))
            written = dict(line.split(": ") for line in (proc / "io").read_text().splitlines())["wchar"]
            boot_us = struct.unpack("=8sqqq", self.clock.read_bytes())[1]
        except (OSError, KeyError, ValueError, IndexError):
            return  # it has just ended
        if resident:
            self.points.append((boot_us / 1e6 - 3600, resident, int(written)))


def cpu_seconds(pid):
    """Of all threads of a process and of what it has started, to the nanosecond."""
    return sum(int(stat.read_text().split()[0]) for one in processes(pid)
               for stat in pathlib.Path(f"/proc/{one}/task").glob("*/schedstat")) / 1e9


def share_of_a_core(gua, library, scenario, folder, seconds):
    """What the recorder takes of one core in real time, with default options and the driver library's own CPU
    included: on a real clock it spaces its glances by what they cost."""
    folder.mkdir()
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "FAKENVML_SCENARIO": str(scenario)}
    command = [gua, "daemon", "--foreground", "--db", folder / "gua.db", "--nvml", library,
               "--root", make_root(folder / "root")]
    with open(folder / "log", "wb") as log:
        child = subprocess.Popen([str(word) for word in command], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        time.sleep(5)  # the opening look describes every process once
        before, begin = cpu_seconds(child.pid), time.monotonic()
        time.sleep(seconds)
        return (cpu_seconds(child.pid) - before) / (time.monotonic() - begin)
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait()

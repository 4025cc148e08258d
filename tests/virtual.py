"""A play in virtual time with real processes: their exits are noticed at once, their starts and users are known, and
the recorder can be stopped or killed. Processes only exist so that they can exit: the recorder sees a /proc of its
own, with the start times of the play. Only root can do that.

    db = Virtual(directory, lives, NASTY, DRIVERS["full"]).run(1080, interruptions(1, 1080))
"""
import os
import shutil
import signal
import struct
import subprocess
import time

from blocked import add_process, make_root
from conftest import BUILD, clean_environment, write_clock
from fake import fake_driver
from lives import DRIVERS, PLAIN, scenario, uid_of
from player import PR_SET_PDEATHSIG, libc
from recording import VIRTUAL_START

BOOT_S = 3600               # since the host booted
TICKS = os.sysconf("SC_CLK_TCK")
HOLD_AT, BOOT_AT = 32, 8    # bytes of the clock file
SOON_MS = 10000             # processes exist at most this long before they should
WITHOUT_LEAKS = b"ASAN_OPTIONS=detect_leaks=0\0"    # a sanitizer finds its options, and leaks, by means of /proc
WITHIN = 'mount --bind "$0" /proc && exec "$@"'


def is_possible():
    return subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0


class Clock:
    """The clock file, which this process holds."""

    def __init__(self, path):
        write_clock(path, VIRTUAL_START, BOOT_S)
        self.path, self.file = path, open(path, "r+b", buffering=0)
        self.file.truncate(HOLD_AT + 8)
        self.hold(0)

    def hold(self, ms):
        """Time passes up to this moment of the play."""
        os.pwrite(self.file.fileno(), struct.pack("=q", 1000 * (ms + 1000 * BOOT_S)), HOLD_AT)

    def now(self):
        boot_us, = struct.unpack("=q", os.pread(self.file.fileno(), 8, BOOT_AT))
        return boot_us // 1000 - 1000 * BOOT_S

    def move(self, ms):
        os.pwrite(self.file.fileno(), struct.pack("=q", 1000 * (ms + 1000 * BOOT_S)), BOOT_AT)
        self.hold(ms)


def is_waiting(pid):
    """Whether every thread of the process sleeps, or it has ended."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] not in "ST":
                    return False
    except FileNotFoundError:
        return True
    return True


class Virtual:
    def __init__(self, where, lives, setting=PLAIN, driver=DRIVERS["full"], build=BUILD):
        where.mkdir(parents=True, exist_ok=True)
        self.where, self.build = where, build
        self.clock = Clock(where / "clock")
        self.coming = sorted(lives, key=lambda life: life.start)
        self.running, self.played, self.recorder = {}, {}, None
        self.root = where / "root"
        self.root.mkdir()
        make_root(self.root)
        for process in (self.root / "proc").glob("[0-9]*"):
            shutil.rmtree(process)
        (self.root / "proc/stat").write_text(f"cpu  10 0 10 100 0 0 0 0 0 0\nbtime {VIRTUAL_START - BOOT_S}\n")
        (self.root / "proc/self").mkdir()
        (self.root / "proc/self/environ").write_bytes(WITHOUT_LEAKS)
        self.pids = where / "pids"
        self.pids.mkdir()
        self.env = fake_driver(where, scenario(lives, driver, setting), clock=self.clock.path, FAKENVML_PIDS=self.pids)

    def start_recorder(self):
        gua = [self.build / "gua", "daemon", "--foreground", "--clock", self.clock.path, "--db", self.where / "gua.db"]
        with open(self.where / "log", "a") as log:
            self.recorder = subprocess.Popen(["unshare", "-m", "sh", "-c", WITHIN, self.root / "proc", *gua],
                                             env=clean_environment(**self.env), stderr=log, start_new_session=True)

    def begin(self, until_ms):
        """Starts the processes that start before this moment."""
        while self.coming and self.coming[0].start < until_ms:
            life = self.coming.pop(0)
            pid = os.fork()
            if pid == 0:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                signal.pause()
                os._exit(0)
            directory = add_process(self.root, pid, uid_of(life.user), ["sleep", life.key])
            stat = directory / "stat"
            fields = stat.read_text().split()
            fields[21] = str((BOOT_S * 1000 + life.start) * TICKS // 1000)
            stat.write_text(" ".join(fields) + "\n")
            (self.pids / life.key).write_text(str(pid))
            self.running[life.key] = life, pid
            self.played[life.key] = {"pid": pid, "started": VIRTUAL_START + life.start / 1000, "late_ms": 0}

    def finish(self, key):
        _, pid = self.running.pop(key)
        directory = self.root / "proc" / str(pid)
        for file in directory.iterdir():
            file.unlink()
        directory.rmdir()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def settle(self):
        """Waits until the recorder has noticed what happened."""
        quiet = 0
        while quiet < 3:
            with open(f"/proc/{self.recorder.pid}/task/{self.recorder.pid}/children") as file:
                pids = [self.recorder.pid, *file.read().split()]
            quiet = quiet + 1 if all(is_waiting(pid) for pid in pids) else 0
            time.sleep(0.0003)

    def next_exit(self, until_ms):
        """The life that ends first, if it does so before; starts the processes that are needed by then."""
        self.begin(until_ms)
        due = min((life for life, _ in self.running.values()), key=lambda life: life.end, default=None)
        return due if due and due.end < until_ms else None

    def go(self, until_ms, runs=True):
        """Lets time pass until then; processes exit at their time."""
        soon_ms = self.clock.now()
        while soon_ms < until_ms:
            soon_ms = min(soon_ms + SOON_MS, until_ms)
            while life := self.next_exit(soon_ms):
                if runs:
                    self.pass_until(life.end)
                self.finish(life.key)
                if runs:
                    self.settle()
            if runs:
                self.pass_until(soon_ms)

    def pass_until(self, ms):
        self.clock.hold(ms)
        while self.clock.now() < ms:
            assert self.recorder.poll() is None, (self.where / "log").read_text()
            time.sleep(0.0003)
        self.settle()

    def interrupt(self, until_ms, how):
        if how == "stop":
            os.killpg(self.recorder.pid, signal.SIGSTOP)
        else:
            os.killpg(self.recorder.pid, signal.SIGKILL)
            self.recorder.wait()
        self.go(until_ms, runs=False)
        self.clock.move(until_ms)
        if how == "stop":
            os.killpg(self.recorder.pid, signal.SIGCONT)
        else:
            self.start_recorder()

    def run(self, seconds, interruptions=()):
        """Returns the store."""
        try:
            self.start_recorder()
            for begin, end, how in interruptions:
                self.go(round(1000 * begin))
                self.interrupt(round(1000 * end), how)
            self.go(1000 * seconds)
            self.recorder.send_signal(signal.SIGTERM)
            assert self.recorder.wait(60) == 0, (self.where / "log").read_text()
        finally:
            for key in list(self.running):
                self.finish(key)
            if self.recorder and self.recorder.poll() is None:
                os.killpg(self.recorder.pid, signal.SIGKILL)
                self.recorder.wait()
        return self.where / "gua.db"

#!/usr/bin/python3
"""Kills a recorder with SIGKILL at random moments, also while its disk is full, and checks its store.

usage: tests/kills.py [--kills N] [--full N] [--seed N] [--check-every N] [--real]

Time is virtual: between two kills a recorder lives for some milliseconds, in which minutes pass. With --real it is real,
and a life takes a second. Each recorder goes on with the store of the one before. Needs root for a small file system
of its own. What is checked:
the file is sound, no slot has more time than it is long, a card has no more time than has passed and no less than
has passed less what each kill may cost, and the running totals say the same.
"""
import argparse
import contextlib
import os
import pathlib
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

from conftest import GUA, advance, clean_environment, write_clock
from fake import fake_driver

BEGIN = 1793606400      # Mon 2026-11-02 08:00:00 UTC
DISK_BYTES = 24 << 20
TICK = 30               # seconds: the default
MOST_SECONDS = 300      # of a recorder's life
RING = 10               # seconds that the driver remembers
CARDS = 2
LAB = "".join(f'card {i} uuid GPU-{i} name "Card {i}" memory 80GiB idle-power 50W max-power 400W\n'
              for i in range(CARDS)) + """
process one pid 4001 user alice uid 1000
process two pid 4002 user bob uid 1001
repeat 200s
at 0s hold one card 0 memory 8GiB
at 10s load one card 0 sm 80
at 70s load one card 0 sm 0
at 90s hold two card 1 memory 4GiB
at 100s load two card 1 sm 40
at 150s load two card 1 sm 0
at 170s release two card 1
at 190s release one card 0
"""


def now_of(clock):
    """The wall clock of a clock file, in seconds."""
    _, boot_us, wall_less_us, _ = struct.unpack("=8sqqq", clock.read_bytes())
    return (boot_us + wall_less_us) / 1e6


class Kills:
    """A store on a small disk, and what may be missing from it."""

    def __init__(self, work, disk, seed, real=False):
        self.disk, self.random, self.real = disk, random.Random(seed), real
        self.db, self.filler, self.log = disk / "gua.db", disk / "filler", work / "log"
        self.begin = time.time() if real else BEGIN
        self.clock = None if real else write_clock(work / "clock", BEGIN)
        began = {"FAKENVML_START": repr(self.begin)} if real else {}    # the driver is older than the recorder
        self.env = clean_environment(**fake_driver(work, LAB, clock=self.clock, **began))
        self.kills = self.full = self.checks = self.started = 0
        self.lost = float(RING)     # seconds that may be missing: at first, those before the driver began
        self.child = None

    def now(self):
        return time.time() if self.real else now_of(self.clock)

    def options(self):
        if self.real:
            return ["--interval", "200ms", "--drain", "100ms"]
        return ["--clock", self.clock, *self.random.choice(([], ["--interval", "2s", "--drain", "1s"]))]

    def start(self):
        with open(self.log, "w") as log:
            self.child = subprocess.Popen([GUA, "daemon", "--foreground", "--db", self.db, *self.options()],
                                          env=self.env, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.started += 1

    def kill(self):
        assert self.child.poll() is None, f"it ended with {self.child.returncode}: {self.log.read_text()}"
        self.child.kill()
        self.child.wait(60)
        # What it has started ends by itself; its next start must not meet it in the same virtual time.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.kills += 1

    def live(self):
        """Lets the recorder run: in one of four cases for so short a time that it has hardly begun, else until a random
        virtual time has passed."""
        if self.random.random() < 0.25:
            time.sleep(self.random.uniform(0, 0.05))
            return
        until = self.now() + self.random.uniform(0, 1.5 if self.real else self.random.choice((RING, MOST_SECONDS)))
        deadline = time.monotonic() + 60
        while self.now() < until:
            assert time.monotonic() < deadline and self.child.poll() is None, self.log.read_text()
            time.sleep(0.0005)

    def pause(self):
        """Nothing runs for a random virtual time: shorter or longer than the driver remembers."""
        seconds = self.random.choice((0, self.random.uniform(0, RING), self.random.uniform(RING, 90)))
        if self.real:
            time.sleep(seconds / 100)
        else:
            advance(self.clock, seconds)
        self.lost += TICK + 2 * RING + seconds  # the tick, and the samples of a drain that wait for their neighbours

    def fill(self):
        """Leaves no room on the disk, or sometimes a little: for a small transaction but not for a large one."""
        with open(self.filler, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
            if self.random.random() < 0.5:
                file.truncate(max(0, file.tell() - self.random.randrange(1 << 17)))

    def kill_once(self):
        self.start()
        self.live()
        self.kill()
        self.pause()

    def kill_with_full_disk(self):
        """Fills the disk while a recorder runs, kills it, and starts others that find it full. The last one sees room
        again, writes what it has kept, and is killed as well."""
        full_at = self.now()
        self.start()
        self.live()
        self.fill()
        self.live()
        self.kill()
        self.pause()
        for _ in range(self.random.randint(1, 3)):
            self.fill()
            self.start()
            self.live()
            self.kill()
            self.pause()
        self.start()
        self.live()
        self.filler.unlink()
        self.live()
        self.kill()
        self.full += 1
        # What is in memory when a recorder is killed is lost.
        self.lost += self.now() - full_at
        self.pause()

    def check(self):
        """Compares the store with the time that has passed."""
        self.checks += 1
        passed_ms = (self.now() - self.begin + (0 if self.real else RING)) * 1000
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            def ask(sql):
                return db.execute(sql).fetchall()
            assert ask("PRAGMA integrity_check") == [("ok",)]
            for table, width in (("1m", 60), ("5m", 300), ("1h", 3600)):
                over = ask(f"SELECT slot, gpu, sum(ms) FROM usage_{table} GROUP BY slot, gpu HAVING sum(ms) > {width}000")
                assert not over, f"usage_{table} has more than {width} s: {over[:5]}"
            sums = dict(ask("SELECT gpu, sum(ms) FROM (SELECT gpu, ms FROM usage_1m UNION ALL SELECT gpu, ms FROM usage_5m"
                            " UNION ALL SELECT gpu, ms FROM usage_1h) GROUP BY gpu"))
            assert sums == dict(ask("SELECT gpu, sum(ms) FROM total_gpu GROUP BY gpu"))
            summed = ("SELECT gpu, state, sum(ms) FROM usage WHERE slot < (SELECT max(slot) + 3600 FROM heat_1h) GROUP BY 1, 2")
            assert ask(summed) == ask("SELECT gpu, state, sum(ms) FROM usage_1d GROUP BY 1, 2")
            for gpu, ms in sums.items():
                assert ms <= passed_ms, f"GPU {gpu} has {ms / 1000} s in {passed_ms / 1000} s"
                assert ms >= passed_ms - self.lost * 1000, f"GPU {gpu} has {ms / 1000} s of {passed_ms / 1000} s"
        return sums

    def run(self, kills, full, check_every=50):
        """Kills so often, `full` times of it on a full disk; returns the sums of the cards."""
        try:
            return self.kill_all(kills, full, check_every)
        finally:
            if self.child and self.child.poll() is None:
                self.kill()

    def kill_all(self, kills, full, check_every):
        when = set(self.random.sample(range(max(kills, full)), full))
        for i in range(max(kills, full)):
            if i in when:
                self.kill_with_full_disk()
            else:
                self.kill_once()
            if i % check_every == 0 or i in when:
                if self.db.exists() and self.db.stat().st_size:
                    self.check()
            if i % 500 == 499:
                print(f"{self.kills} kills, the disk was full {self.full} times, {self.checks} checks", flush=True)
        return self.check()


def in_own_mount(options, work):
    """The part that runs with mounts of its own."""
    work = pathlib.Path(work)
    disk = work / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", disk], check=True)
    kills = Kills(work, disk, options.seed, options.real)
    began = time.monotonic()
    sums = kills.run(options.kills, options.full, options.check_every)
    hours = (kills.now() - kills.begin) / 3600
    print(f"seed {options.seed}: {kills.kills} kills, the disk was full {kills.full} times, {kills.checks} checks, "
          f"{time.monotonic() - began:.0f} s; {hours:.2f} h passed, "
          f"{min(sums.values()) / 3.6e6:.2f} h of a card stored")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--full", type=int, default=20, help="how many of them with a full disk")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check-every", type=int, default=50)
    parser.add_argument("--real", action="store_true", help="with the real clock")
    parser.add_argument("--in", dest="work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        in_own_mount(options, options.work)
        return 0
    with tempfile.TemporaryDirectory(prefix="gua-kills-") as work:
        own_mount = ["unshare", "--mount", "--propagation", "private"]
        return subprocess.run([*own_mount, sys.executable, __file__, *sys.argv[1:], "--in", work]).returncode


if __name__ == "__main__":
    sys.exit(main())

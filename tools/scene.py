"""The moment that the pictures of the README show: Thursday afternoon of the second week of dist/weeks.scenario, with a
recorder that is running. All data is simulated. The same moment and the same bytes each time."""
import contextlib
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys
import time

START_S = 1792972800  # 2026-10-26T00:00:00Z, where the scenario starts
HOURS = 10 * 24 + 15
MINUTES = 40  # the last ones are recorded minute by minute, as a real recorder does
WAIT_S = 120  # the recorder needs a second or two
BOOT_S = 3600  # how long the simulated host had been up at the start
SCENARIO = pathlib.Path(__file__).resolve().parent.parent / "dist/weeks.scenario"
# Nothing of the user's or the host's.
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/nonexistent",
               "GUA_CONFIG": "/dev/null"}


class Scene:
    """gua: the program; db: the store; now_s: the moment; options: of a live view, so that it shows this moment."""

    def __init__(self, gua, directory):
        self.gua, self.directory = os.path.abspath(gua), pathlib.Path(directory)
        self.db = self.directory / "gua.db"
        self.now_s = START_S + HOURS * 3600 + 4
        self.options = ["--source", "sim", "--scenario", str(SCENARIO), "--db", str(self.db),
                        "--clock", str(self.clock("view", self.now_s))]

    def clock(self, name, wall_s):
        """A clock file (src/base/clock.h) that stands at a moment."""
        path = self.directory / f"clock-{name}"
        up_us, wall_less_us = (BOOT_S + wall_s - START_S) * 10**6, (START_S - BOOT_S) * 10**6
        path.write_bytes(struct.pack("=8sqqq", b"GUACLCK1", up_us, wall_less_us, 0))
        return path


def last_tick(db):
    """Unix seconds of the recorder's last tick; 0: none yet."""
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=1) as store:
            return (store.execute("SELECT max(last_tick_ms) FROM run").fetchone()[0] or 0) // 1000
    except sqlite3.OperationalError:
        return 0


def start_recorder(scene):
    """Records the last minutes. At the moment its driver hangs, so that time stands still and the recorder lives."""
    scenario = scene.directory / "hang.scenario"
    scenario.write_text(f"{SCENARIO.read_text()}\nat {HOURS * 3600 + 1}s hang nvmlDeviceGetSamples\n")
    clock = scene.clock("recorder", START_S + HOURS * 3600 - MINUTES * 60)
    recorder = subprocess.Popen(
        [scene.gua, "daemon", "--foreground", "--db", scene.db, "--source", "sim", "--scenario", scenario, "--clock", clock,
         "--interval", "1m", "--glance", "5s", "--driver-timeout", "1h"],
        env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + WAIT_S
    while last_tick(scene.db) < START_S + HOURS * 3600:
        if recorder.poll() is not None or time.monotonic() > until:
            recorder.kill()
            sys.exit(f"the recorder does not come to the moment; it ended with {recorder.wait()}")
        time.sleep(0.02)
    return recorder


@contextlib.contextmanager
def recorded(gua, directory):
    """A Scene whose recorder runs until the end of the block."""
    scene = Scene(gua, directory)
    subprocess.run([scene.gua, "demo", "--db", scene.db, "--scenario", SCENARIO, "--interval", "20m",
                    "--ticks", str(HOURS * 3 - MINUTES // 20)],
                   check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with sqlite3.connect(scene.db) as store:  # views take a recorder that finished by itself for single looks
        store.execute("UPDATE run SET how_ended = 'stopped'")
    store.close()
    recorder = start_recorder(scene)
    try:
        yield scene
    finally:
        recorder.kill()
        recorder.wait()

"""What the tests of the live views share: scenarios, and the fake driver at a moment of its time."""
import sqlite3
import struct
import subprocess

import pytest

from conftest import GUA, clean_environment, gua, wait_for
from fake import fake_driver

WALL = 1793606400  # Mon 2026-11-02 08:00:00 UTC

CARDS = """
host lab
start 2026-11-02T08:00:00Z
driver 560.35.05
card 0 uuid GPU-aaaa0000 name "NVIDIA A100-SXM4-80GB" memory 80GiB reserved 600MiB pci 0000:17:00.0 idle-power 60W max-power 400W
card 1 uuid GPU-bbbb0000 name "NVIDIA GeForce RTX 3090" memory 24GiB pci 0000:65:00.0 idle-power 20W max-power 350W
card 2 uuid GPU-cccc0000 name "NVIDIA GeForce RTX 3090" memory 24GiB pci 0000:98:00.0 idle-power 20W max-power 350W
process train pid 1001 user alice uid 1001 command "python train.py --lr 3" started -2h
process note  pid 1002 user bob   uid 1002 command "python -m ipykernel_launcher" started -3d
process xorg  pid 1003 user root  uid 0    command "Xorg :0" kind graphics started -9d
at 0s hold train card 0 memory 40GiB
at 0s load train card 0 sm 80
at 0s hold note card 0 memory 2GiB
at 0s hold note card 1 memory 8GiB
at 0s load note card 1 sm 50
at 20s load note card 1 sm 0
at 0s hold xorg card 1 memory 300MiB
"""
MIG = """
host lab
start 2026-11-02T08:00:00Z
driver 560.35.05
card 0 uuid GPU-aaaa0000 name "NVIDIA A100-SXM4-40GB" memory 40GiB reserved 600MiB pci 0000:17:00.0 idle-power 60W max-power 400W
card 1 uuid GPU-bbbb0000 name "NVIDIA A30" memory 24GiB pci 0000:65:00.0
mig 0 index 0 gi 1 ci 0 uuid MIG-1111 name "NVIDIA A100-SXM4-40GB MIG 3g.20gb" memory 20GiB
mig 0 index 1 gi 2 ci 0 uuid MIG-2222 name "NVIDIA A100-SXM4-40GB MIG 1g.5gb" memory 5GiB
process a pid 1001 user alice uid 1001 command "python a.py"
process b pid 1002 user bob uid 1002 command "python b.py"
at 0s hold a mig 0/0 memory 10GiB
at 0s hold b mig 0/1 memory 1GiB
"""
LOST = CARDS + "at 5s lost card 1\n"


def apart(directory, command, args, store=False):
    """Options that keep a view away from the host: its recorder's store, and the locks of its users."""
    options = [] if store or "--db" in args else ["--no-store"]
    if command == "pick" and "--lock-dir" not in args:
        options += ["--lock-dir", directory / "locks"]
    return options


@pytest.fixture
def sim(tmp_path):
    """sim(COMMAND, *ARGS, scenario=CARDS) runs a view on the simulated source and a virtual clock."""
    def run(command, *args, scenario=CARDS, **options):
        path = tmp_path / "view.scenario"
        path.write_text(scenario)
        return gua(command, "--source", "sim", "--scenario", path, "--clock", options.pop("clock", "virtual"),
                   *apart(tmp_path, command, args), *args, **options)
    return run


@pytest.fixture
def driver(tmp_path, clock_file):
    """driver(COMMAND, *ARGS, scenario=CARDS, at=60) runs a view on the fake driver, `at` seconds after the
    scenario's start; calls are logged to tmp_path/log. Processes are those of `root` (default: nobody)."""
    def run(command, *args, scenario=CARDS, at=60, root=None, store=False, missing=(), before=(), **env):
        where = tmp_path / "root"
        (where / "proc").mkdir(parents=True, exist_ok=True)
        clock = clock_file(WALL + at, 3600 + at)
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        environment = fake_driver(tmp_path, scenario, missing=missing, clock=clock, log=log, **env)
        return gua(command, "--clock", clock, "--root", root or where,
                   *apart(tmp_path, command, args, store), *args, env=environment, before=before)
    return run


@pytest.fixture
def recorded(tmp_path, clock_file):
    """recorded(SECONDS, scenario=CARDS, *OPTIONS) records so long on the simulated source and returns the store and
    the clock. The recorder is then still at work: its driver hangs from that moment on, so that time stands still.
    recorded.kill() ends it as kill -9 does."""
    running = []

    def kill():
        for process in running:
            process.kill()
            process.wait()

    def record(seconds, scenario=CARDS, *options):
        path, db, clock = tmp_path / "rec.scenario", tmp_path / "gua.db", clock_file(WALL, name="rec-clock")
        path.write_text(f"{scenario}at {seconds}s hang nvmlDeviceGetSamples\n")
        running.append(subprocess.Popen(
            [GUA, "daemon", "--foreground", "--source", "sim", "--scenario", path, "--clock", clock, "--db", db,
             "--driver-timeout", "1h", *options], stderr=subprocess.DEVNULL, env=clean_environment()))
        # After the last tick time goes on for a while, to where the driver hangs.
        wait_for(lambda: last_tick(db) >= (WALL + seconds - 30) * 1000 and
                 struct.unpack_from("=q", clock.read_bytes(), 8)[0] >= (3600 + seconds) * 1_000_000)
        return db, clock
    record.kill = kill
    yield record
    kill()


def forget_lock(db):
    """Nobody can tell any more whether the recorder lives: the views go by when it wrote last."""
    db.with_name(db.name + ".status").unlink(missing_ok=True)


def last_tick(db):
    """When the recorder last wrote, unix milliseconds; 0: not yet."""
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as store:
            return store.execute("SELECT max(last_tick_ms) FROM run").fetchone()[0] or 0
    except sqlite3.Error:
        return 0

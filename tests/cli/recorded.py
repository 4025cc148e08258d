"""What tests of the recorder share: small hosts, a run in virtual time, and what it stored."""
import sqlite3

import pytest

from conftest import gua
from fake import fake_driver

WALL = 1793606400  # Mon 2026-11-02 08:00:00 UTC

ONE_CARD = """
start 2026-11-02T08:00:00Z
driver 560.35.05
card 0 uuid GPU-aaaa name "Test A" memory 80GiB idle-power 50W max-power 400W
"""
TWO_CARDS = ONE_CARD + """
card 1 uuid GPU-bbbb name "Test B" memory 80GiB
"""


@pytest.fixture
def record(tmp_path, clock_file):
    """record(SCENARIO, *ARGS, at=0) runs gua daemon on the fake driver in virtual time; returns the run,
    with .db and .report (of everything) added."""
    def run(scenario, *args, root=None, check=True, at=0, **options):
        clock = clock_file(WALL + at, 3600 + at) if at else clock_file(WALL)
        db = tmp_path / "gua.db"
        env = fake_driver(tmp_path, scenario, clock=clock, **options)
        result = gua("daemon", "--db", db, "--clock", clock, "--root", root or "/", *args, env=env)
        assert not check or result.returncode == 0, result.stderr
        result.db = db
        return result
    return run


@pytest.fixture
def background(tmp_path):
    """Starts recorders on stores of its own, and stops what a test leaves running."""
    started = []

    def start(scenario, *args, name="gua.db", **options):
        db = tmp_path / name
        env = fake_driver(tmp_path, scenario, **options)
        run = gua("start", "--db", db, "--interval", "200ms", "--drain", "100ms", *args, env=env)
        started.append(db)
        run.db = db
        return run
    yield start
    for db in started:
        gua("stop", "--db", db)


def recorder_pid(db):
    out = gua("status", "--db", db).stdout
    return int(out.split("pid ")[1].split(")")[0])


def rows(db, sql, *args):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
        return connection.execute(sql, args).fetchall()


def run_has_begun(db):
    """Whether a recorder has written the row of its run, which it does some time after it has locked the store."""
    try:
        return rows(db, "SELECT 1 FROM run") != []
    except sqlite3.Error:
        return False


def card_seconds(db, uuid="GPU-aaaa"):
    """GPU-seconds of a card by state name, from the raw tables."""
    names = ["active", "idle_held", "truly_idle", "unobserved", "use_unknown"]
    found = rows(db, "SELECT state, sum(ms) FROM usage_1m JOIN gpu ON gpu.id = gpu WHERE uuid = ?"
                 " GROUP BY state", uuid)
    return {names[state]: ms / 1000 for state, ms in found}

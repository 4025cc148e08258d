"""Live views and the store of a recorder: its rules are theirs, and they notice what happens to it."""
import json
import os
import pathlib
import sqlite3
import subprocess
import time

import pytest

from conftest import GUA, clean_environment, gua, wait_for
from fake import fake_driver
from live import CARDS, WALL, forget_lock, recorded  # noqa: F401

STEADY = CARDS.replace("at 20s load note card 1 sm 0\n", "")  # card 1: 50 %, 8.6 GB, and a screen of 300 MiB


@pytest.fixture
def look(tmp_path):
    """look(STORE, CLOCK, *WORDS): a view on the fake driver at that moment."""
    def run(db, clock, *words):
        root = tmp_path / "root"
        (root / "proc").mkdir(parents=True, exist_ok=True)
        return gua(*words, "--db", db, "--clock", clock, "--root", root,
                   env=fake_driver(tmp_path, STEADY, clock=clock))
    return run


@pytest.mark.same_path
@pytest.mark.parametrize("options, states, holders", [
    ((), ["active", "active", "truly_idle"], "1"),
    (("--active-util", "60"), ["active", "idle_held", "truly_idle"], "1"),
    (("--active-util", "60", "--held-mem", "9000MB"), ["active", "truly_idle", "truly_idle"], "1"),
    (("--active-util", "60", "--held-mem", "8900MB", "--count-graphics"), ["active", "idle_held", "truly_idle"], "2"),
], ids=["usual", "active", "held", "graphics"])
def test_the_rules_are_those_of_the_recorder(recorded, look, tmp_path, options, states, holders):
    """Live views, the report and the store say the same of the same card."""
    db, clock = recorded(600, STEADY, *options)
    fields = look(db, clock, "query", "--query-gpu=gua.state,gua.holders", "--format=csv,noheader").stdout.splitlines()
    assert [line.split(", ")[0] for line in fields] == states and fields[1].split(", ")[1] == holders
    found = json.loads(look(db, clock, "stat", "--json").stdout)["gpus"]
    assert [card["gua.state"] for card in found] == states
    pick = look(db, clock, "pick", "-i", "1", "--hold", "0s", "--format", "index", "--lock-dir", tmp_path)
    assert pick.returncode == (0 if states[1] == "truly_idle" else 1), pick.stderr
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as store:
        most = store.execute("SELECT idx, state FROM gpu JOIN usage_1m ON gpu.id = usage_1m.gpu WHERE state < 3 "
                             "GROUP BY idx, state ORDER BY idx, sum(ms)").fetchall()
    names = ["active", "idle_held", "truly_idle"]
    assert [names[state] for state in dict(most).values()] == states


def test_without_a_store_the_rules_are_the_usual_ones(recorded, look):
    db, clock = recorded(600, STEADY, "--active-util", "60")
    run = look(db, clock, "query", "--query-gpu=gua.state", "--format=csv,noheader", "--no-store")
    assert run.stdout.split() == ["active", "active", "truly_idle"]


def test_the_rules_stay_when_the_recorder_is_gone(recorded, look):
    """What the report of its time says must not be another thing from then on."""
    db, clock = recorded(600, STEADY, "--active-util", "60")
    recorded.kill()
    run = look(db, clock, "query", "--query-gpu=gua.state", "--format=csv,noheader")
    assert run.stdout.split() == ["active", "idle_held", "truly_idle"]


def test_a_recorder_that_is_killed_is_not_believed_for_a_moment(recorded, look):
    db, clock = recorded(600, STEADY)
    words = ["query", "--query-gpu=gua.free_for", "--format=csv,noheader,nounits", "-i", "2"]
    assert float(look(db, clock, *words).stdout) >= 500
    recorded.kill()
    run = look(db, clock, *words)
    assert float(run.stdout) == 0
    assert run.stderr.startswith("gua query: the recorder was killed, its last tick was ")


def test_a_card_that_was_away_begins_anew(recorded, look):
    """It was divided into instances, and is whole again before the recorder has noticed: nobody knows of that time."""
    db, clock = recorded(600, STEADY)
    with sqlite3.connect(db) as store:
        store.execute("DELETE FROM usage_1m WHERE slot >= ? AND gpu = (SELECT id FROM gpu WHERE idx = 2)", (WALL + 360,))
    run = look(db, clock, "query", "--query-gpu=gua.free_for", "--format=csv,noheader,nounits", "-i", "1,2")
    assert float(run.stdout.split()[1]) == 0


@pytest.mark.parametrize("first, since", [("100MB", 240), ("9000MB", 300)], ids=["same rules", "other rules"])
def test_time_under_other_rules_does_not_count(tmp_path, clock_file, look, first, since):
    """Until 4m a notebook held the card, which the first recorder did or did not count as held."""
    scenario, db = tmp_path / "lab.scenario", tmp_path / "gua.db"
    scenario.write_text(STEADY + "at 0s hold note card 2 memory 8GiB\nat 4m release note card 2\n")
    for begin, end, held in (0, 300, first), (300, 900, "100MB"):
        clock = clock_file(WALL + begin, boot_seconds=3600 + begin, name="recorder")
        run = gua("daemon", "--foreground", "--ticks", (end - begin) // 30, "--source", "sim", "--scenario", scenario,
                  "--clock", clock, "--db", db, "--held-mem", held)
        assert run.returncode == 0, run.stderr
    forget_lock(db)
    with sqlite3.connect(db) as store:
        store.execute("UPDATE run SET how_ended = 'stopped'")
        store.execute("UPDATE run SET ended_ms = NULL, how_ended = NULL WHERE id = (SELECT max(id) FROM run)")
    run = look(db, clock_file(WALL + 900, 3600 + 900), "query", "--query-gpu=gua.free_for", "--format=csv,noheader,nounits",
               "-i", "2")
    assert since - 6 <= 900 - float(run.stdout) <= since + 60  # exact to a slot of a minute


def test_holders_that_an_earlier_recorder_saw(tmp_path, clock_file):
    """They hold the card since then, not since the recorder was started again."""
    scenario, db = tmp_path / "lab.scenario", tmp_path / "gua.db"
    scenario.write_text(CARDS)
    for begin, ticks in (0, 2), (65, 3):
        clock = clock_file(WALL + begin, boot_seconds=3600 + begin, name="recorder")
        run = gua("daemon", "--foreground", "--ticks", ticks, "--source", "sim", "--scenario", scenario, "--clock", clock, "--db", db)
        assert run.returncode == 0, run.stderr
    forget_lock(db)
    with sqlite3.connect(db) as store:
        store.execute("UPDATE run SET ended_ms = NULL, how_ended = NULL WHERE id = (SELECT max(id) FROM run)")
        store.execute("INSERT INTO holder (gpu, process, kind, mem_bytes, since_ms) SELECT DISTINCT gpu, process, 1, 1 << 30, ? "
                      "FROM holding_1m", [(WALL + 65) * 1000])
    run = gua("who", "--json", "--source", "sim", "--scenario", scenario, "--db", db, "--clock", clock_file(WALL + 155, 3755))
    since = {holder["user"]: holder["held_since"] for holder in json.loads(run.stdout)["holders"]}
    assert since == {"alice": "2026-11-02T08:00:00Z", "bob": "2026-11-02T08:00:00Z"}


@pytest.mark.large
def test_complete_hours_are_read_by_their_sums(tmp_path, clock_file):
    """Since when a card is in its state is the same by the sums of hours and by their slots: a card that is always free,
    one that was used in the third hour, one that nobody saw for a while, one that is busy now."""
    scenario, db = tmp_path / "lab.scenario", tmp_path / "gua.db"
    scenario.write_text("host lab\nstart 2026-11-02T08:00:00Z\n" +
                        "".join(f'card {i} uuid GPU-{i} name "NVIDIA A30" memory 24GiB\n' for i in range(4)) +
                        "process p pid 1001 user alice uid 1001 command p\n"
                        "at 140m hold p card 1 memory 1GiB\nat 150m release p card 1\n"
                        "at 190m lost card 2 until 195m\n"
                        "at 1h hold p card 3 memory 8GiB\nat 290m load p card 3 sm 80\n")
    clock = clock_file(WALL, name="recorder")
    run = gua("daemon", "--foreground", "--ticks", 620, "--source", "sim", "--scenario", scenario, "--clock", clock, "--db", db)
    assert run.returncode == 0, run.stderr
    forget_lock(db)
    fields = "--query-gpu=gua.state,gua.state_since,gua.free_for,gua.idle_since"
    found = []
    for change in ("UPDATE run SET ended_ms = NULL, how_ended = NULL", "DELETE FROM usage_hour"):
        with sqlite3.connect(db) as store:
            assert store.execute(change).rowcount > 0
        view = gua("query", fields, "--format=csv,noheader", "--source", "sim", "--scenario", scenario, "--db", db,
                   "--clock", clock_file(WALL + 18600, 3600 + 18600))
        found.append(view.stdout)
    assert found[0] == found[1]
    assert [line.split(", ")[0] for line in found[0].splitlines()] == ["truly_idle"] * 3 + ["active"], found[0]
    since = [line.split(", ")[1] for line in found[0].splitlines()]
    assert since == [f"2026-11-02T{at}Z" for at in ("08:00:00", "10:30:00", "11:16:00", "12:50:00")]


def test_no_time_is_in_the_future(recorded, tmp_path, clock_file):
    """Somebody has set the clock back, and the recorder has not noticed yet: it has a clock of its own."""
    quiet = CARDS + "at 300s load train card 0 sm 0\n"
    db, _ = recorded(600, quiet)
    clock = clock_file(WALL + 600, 3600 + 600)
    scenario = tmp_path / "back.scenario"
    scenario.write_text(quiet + "at 590s step -1h\n")
    run = gua("who", "--json", "--source", "sim", "--scenario", scenario, "--db", db, "--clock", clock)
    found = json.loads(run.stdout)["holders"]
    assert len(found) == 3 and all(holder["idle_seconds"] >= 0 for holder in found), found
    assert all(holder["held_since"] <= "2026-11-02T07:11" for holder in found), found


def names_of_children(pid):
    """As ps shows them; empty when the process has ended."""
    try:
        children = [child for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children")
                    for child in task.read_text().split()]
        return {pathlib.Path(f"/proc/{child}/comm").read_text().strip() for child in children}
    except OSError:
        return set()


def has_open(pid, path):
    return any(os.path.realpath(file) == str(path) for file in pathlib.Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("words", [["stat"], ["who"], ["pick", "--hold", "0s"]], ids=lambda words: words[0])
def test_a_slow_driver_is_not_waited_for_twice(recorded, clock_file, tmp_path, words):
    """While the driver works, the store is read, and the process that reads others is started: the store is not
    believed about them, because others can write it."""
    db, _ = recorded(60)
    db.chmod(0o660)
    env = fake_driver(tmp_path, STEADY + "at 0s hang nvmlInit_v2\n", clock=clock_file(time.time(), name="driver"))
    locks = ["--lock-dir", tmp_path / "locks"] if words[0] == "pick" else []
    view = subprocess.Popen([GUA, *words, "--db", db, "--driver-timeout", "1h", *locks], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env=clean_environment(**env))
    try:
        started = {"gua-nvml"} if words[0] == "pick" else {"gua-nvml", "gua-reader"}  # pick names no holders
        wait_for(lambda: names_of_children(view.pid) == started and has_open(view.pid, os.path.realpath(db)))
        assert view.poll() is None
    finally:
        view.kill()
        view.wait()

"""gua demo: the whole pipeline on invented data, the same bytes each time."""
import json
import re
import sqlite3

import pytest

from conftest import ROOT, gua
from truth import Scenario

NOW = "2026-11-11T12:00Z"  # a Wednesday

@pytest.fixture
def weeks(demo):
    """The demo without options: what it printed, and its store."""
    return demo


def of_week(db, *args):
    """The report of the second week as JSON."""
    run = gua("report", "--db", db, "--since", "2026-11-02", "--until", "2026-11-09", "--now", "2026-11-09T00:00Z", "--utc",
              "--json", *args)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.any_build
def test_the_same_bytes_each_time_and_everywhere(weeks, tmp_path, expect):
    again = gua("demo", "--db", tmp_path / "gua.db", "--now", NOW, env={"TZ": "Asia/Kolkata", "LANG": "de_DE.UTF-8"})
    assert again.stdout == weeks.stdout
    assert weeks.stdout.splitlines()[0].startswith("SIMULATED DATA")
    expect("demo.txt", weeks.stdout)


def dateless(text):
    return re.sub(r"(\d{4}-)?\d\d-\d\d", "DATE", text)


@pytest.mark.large
@pytest.mark.same_path
@pytest.mark.parametrize("now,zone,monday", [
    ("2026-11-16T00:00Z", "UTC", "2026-11-09"), ("2026-11-15T23:59Z", "UTC", "2026-11-02"),
    ("2026-11-15T23:30Z", "Asia/Kathmandu", "2026-11-09"),  # there it is Monday, 5:15
    ("2026-10-28T12:00Z", "Europe/Berlin", "2026-10-19"),   # clocks were changed in the second week,
    ("2026-11-04T12:00Z", "Europe/Berlin", "2026-10-26"),   # and in the first
    ("2027-04-01T12:00Z", "Europe/Berlin", "2027-03-22")])
def test_the_weeks_are_those_before_this_one(weeks, tmp_path, now, zone, monday):
    """The README's next command, --since lastweek, reports the week that the demo printed; only the dates move."""
    db, env = tmp_path / "gua.db", {"TZ": zone}
    run = gua("demo", "--db", db, "--now", now, env=env)
    assert run.returncode == 0, run.stderr
    assert f"\nMon {monday} 00:00 to " in run.stdout
    headline, waste = slice(4, 12), slice(12, 21)
    for part in (headline, waste):
        assert run.stdout.splitlines()[part] == weeks.stdout.splitlines()[part]
    if zone != "Europe/Berlin":  # hours after a change of clocks are other hours of the clock
        assert dateless(run.stdout) == dateless(weeks.stdout)
    last = gua("report", "--db", db, "--now", now, "--since", "lastweek", "--json", env=env)
    assert last.returncode == 0, last.stderr
    last = json.loads(last.stdout)
    assert last["waste"]["verdict"] == "allocation_policy" and abs(last["headline"]["idle_held"] - 0.278) < 0.002


def test_half_an_hour_is_the_same_each_time_too(tmp_path, expect):
    runs = [gua("demo", "--ticks", 30, "--db", tmp_path / f"{i}.db", env=env) for i, env in enumerate((
        {}, {"TZ": "Asia/Kolkata"}, {"TZ": "America/New_York", "LANG": "de_DE.UTF-8"}))]
    assert all(run.returncode == 0 for run in runs), runs[0].stderr
    assert runs[0].stdout == runs[1].stdout == runs[2].stdout
    expect("demo-ticks.txt", runs[0].stdout)
    # Either option stands for the default of the other.
    other = gua("demo", "--interval", "1m", "--db", tmp_path / "interval.db")
    assert other.stdout == runs[0].stdout


@pytest.mark.any_build
def test_the_weeks_are_true(weeks):
    """Idle-held time and its energy in the second week, card by card, by a computation from the scenario alone. The demo
    looks every 20 s."""
    truth = Scenario((ROOT / "dist" / "weeks.scenario").read_text()).truth(7 * 86400, 14 * 86400)
    cards = {card["uuid"]: card for card in of_week(weeks.db)["gpus"]}
    for uuid, states in truth.cards.items():
        hours, kwh = states["idle_held"] / 3600, truth.energy_mj[uuid]["idle_held"] / 3.6e9
        assert abs(cards[uuid]["gpu_seconds"]["idle_held"] / 3600 - hours) <= 0.05 + 0.001 * hours, uuid
        assert abs(cards[uuid]["energy_kwh"]["idle_held"] - kwh) <= 0.003 + 0.001 * kwh, uuid


def test_the_weeks_tell_their_story(weeks):
    """Who trains, who left a notebook open, who squats, which card was lost, and that it was better before."""
    report = of_week(weeks.db, "--compare")
    users = {who["identity"]: who for who in report["identities"]}
    hours = lambda who, what: users[who][f"{what}_gpu_seconds"] / 3600
    assert hours("alice", "active") > 170 and users["alice"]["idle_held_fraction"] < 0.06
    assert 130 < hours("bob", "idle_held") and hours("bob", "active") < 10
    assert hours("dave", "active") == 0 and hours("dave", "squatting") > 30
    assert report["headline"]["idle_held"] > 0.2 and report["waste"]["verdict"] == "allocation_policy"
    longest = of_week(weeks.db)["longest"]
    assert [spell["user"] for spell in longest[:3]] == ["bob", "dave", "frank"]
    assert longest[0]["notebook_path"] == "/home/bob/thesis/figures.ipynb"
    back, of = re.search(r"given back about\n(\d+) of these (\d+) idle-held GPU-hours", weeks.stdout).groups()
    assert 220 < int(back) < int(of) == round(report["gpu_seconds"]["idle_held"] / 3600)
    # gua enforce simulate says the same of such a rule, and less of one that waits for longer.
    hours = {end: json.loads(gua("enforce", "simulate", "--db", weeks.db, "--now", NOW, "--since", "lastweek", "--json",
                                 "--set", f"rule.x.end={end}h").stdout)["given_back_gpu_seconds"] / 3600 for end in (4, 8)}
    assert round(hours[4]) == int(back) and hours[8] < hours[4] - 8
    notebook, = [row for row in of_week(weeks.db, "--by", "notebook")["breakdown"]["rows"] if row["notebook"]]
    assert notebook["notebook"] == "/home/bob/thesis/figures.ipynb"
    with sqlite3.connect(weeks.db) as connection:
        events = set(connection.execute("SELECT kind, idx FROM event JOIN gpu ON gpu.id = event.gpu WHERE kind <> 'card-new'"))
    assert events == {("card-lost", 5), ("card-back", 5), ("xid", 5)}
    before = of_week(weeks.db, "--since", "2026-10-26", "--until", "2026-11-02")
    assert before["headline"]["idle_held"] < 0.1


def test_the_weeks_are_recorded_as_a_recorder_would(weeks):
    """Every second of two weeks and six cards is in the store once, in slots of five minutes."""
    with sqlite3.connect(weeks.db) as connection:
        assert connection.execute("SELECT count(*) FROM usage_1m").fetchone() == (0,)
        whole, unobserved = connection.execute("SELECT sum(ms), sum(iif(state = 3, ms, 0)) FROM usage_5m").fetchone()
        lost, = connection.execute("SELECT sum(iif(kind = 'card-back', at_ms, -at_ms)) FROM event"
                                   " WHERE kind IN ('card-lost', 'card-back')").fetchone()
    assert whole == 6 * 14 * 86400 * 1000
    assert abs(unobserved - lost) < 5 * 60 * 1000


def test_work_and_nights_and_the_weekend_can_be_told_apart(weeks):
    cells = {(cell["dow"], cell["hour"]): cell for cell in of_week(weeks.db)["heatmap"]}
    assert len(cells) == 7 * 24

    def share(day, hour, state):
        cell = cells[day, hour]
        return cell[state] / (cell["active"] + cell["idle_held"] + cell["truly_idle"])
    for day in range(1, 6):  # Monday to Friday
        assert share(day, 11, "active") > 0.5 > 0.01 > share(day, 6, "active")
    assert share(0, 11, "active") == 0  # Sunday
    assert share(0, 11, "idle_held") > 0.3  # a notebook and Blender are still there


@pytest.mark.same_path
@pytest.mark.parametrize("interval", ["200ms", "1s", "30s", "10m", "1h", "1d"])
def test_any_interval_observes_nearly_all_time(tmp_path, interval):
    db = tmp_path / "gua.db"
    assert gua("demo", "--interval", interval, "--db", db).returncode == 0
    with sqlite3.connect(db) as connection:
        states = dict(connection.execute("SELECT state, sum(ms) FROM total_gpu GROUP BY state"))
        cards, = connection.execute("SELECT count(*) FROM gpu").fetchone()
    seconds = {"200ms": 0.2, "1s": 1, "30s": 30, "10m": 600, "1h": 3600, "1d": 86400}[interval]
    assert cards == 6
    assert sum(states.values()) <= 30 * seconds * 1000 * cards
    observed = states[0] + states[1] + states[2]
    assert observed >= 0.95 * 30 * seconds * 1000 * cards


def test_the_lab_shows_what_gua_is_for(tmp_path):
    db = tmp_path / "gua.db"
    gua("demo", "--ticks", 30, "--db", db)
    with sqlite3.connect(db) as connection:
        events = {kind for kind, in connection.execute("SELECT kind FROM event")}
        squatting, = connection.execute(
            "SELECT count(*) FROM total_user WHERE state = 3 AND presence_ms > 0").fetchone()
        users, = connection.execute("SELECT count(DISTINCT user) FROM process").fetchone()
    assert {"card-lost", "card-back"} <= events
    assert squatting >= 1 and users >= 4


def test_invented_data_is_not_mixed_with_other_data(tmp_path):
    db = tmp_path / "gua.db"
    db.write_text("precious")
    run = gua("demo", "--db", db)
    assert run.returncode == 1 and "exists" in run.stderr
    assert db.read_text() == "precious"


def test_each_demo_replaces_the_one_before(tmp_path):
    """The store is named and can be reported, and no run leaves more than that one file."""
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    temporary.mkdir()
    for ticks in (2, 3):
        run = gua("demo", "--ticks", ticks, env={"XDG_CACHE_HOME": str(cache), "TMPDIR": str(temporary)})
        assert run.stderr == f"The simulated data is in {cache}/gua/demo.db.\n"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["demo.db"]
    again = gua("report", "--db", cache / "gua/demo.db", "--since", "1000w", "--now", "2026-11-02T08:03:00Z", "--utc")
    assert "SIMULATED DATA" in again.stdout and "Window: 0:03:00" in again.stdout


def test_without_a_cache_nothing_is_left_behind(tmp_path):
    run = gua("demo", "--ticks", 2, env={"TMPDIR": str(tmp_path), "HOME": "", "XDG_CACHE_HOME": ""})
    assert (run.returncode, run.stderr) == (0, "") and "SIMULATED DATA" in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_named_is_kept(tmp_path):
    path = tmp_path / "lab.db"
    run = gua("demo", "--ticks", 2, "--db", path)
    assert run.stderr == f"The simulated data is in {path}.\n"
    again = gua("report", "--db", path, "--since", "1000w", "--now", "2026-11-02T08:02:00Z", "--utc")
    assert "SIMULATED DATA" in again.stdout


def test_ascii_where_there_is_no_utf8(tmp_path):
    run = gua("demo", "--ticks", 2, "--db", tmp_path / "gua.db", env={"LC_ALL": "C"})
    assert run.returncode == 0 and run.stdout.isascii()


@pytest.mark.parametrize("args", [["--ticks", "0"], ["--interval", "1"], ["--interval", "2w"], ["x"],
                                  ["--scenario"], ["--now", "someday"]])
def test_wrong_options(args):
    assert gua("demo", *args).returncode == 2


def test_a_scenario_with_a_mistake_names_the_line(tmp_path):
    path = tmp_path / "bad.scenario"
    path.write_text("host x\ncard zero\n")
    run = gua("demo", "--scenario", path, "--db", tmp_path / "gua.db")
    assert run.returncode == 2 and f"{path}:2:" in run.stderr


def test_a_demo_that_fails_leaves_nothing(tmp_path):
    path = tmp_path / "empty.scenario"
    for text, status, why in (("host x\n", 1, "the scenario has no cards"),
                              ("host x\ncard zero\n", 2, f"{path}:2:")):
        path.write_text(text)
        run = gua("demo", "--scenario", path, env={"TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
        tmp_path.joinpath("gua").rmdir()  # empty
        assert run.returncode == status and why in run.stderr
        assert run.stdout == "" and list(tmp_path.iterdir()) == [path]


def test_a_lost_card_is_not_a_gap_as_well(tmp_path):
    """What is unobserved from its loss to its return is told by these two events; a loss between
    two ticks, of which the tick sees nothing any more, is a gap of its length."""
    db = tmp_path / "gua.db"
    gua("demo", "--ticks", 30, "--db", db)
    with sqlite3.connect(db) as connection:
        gaps = connection.execute("SELECT at_ms / 60000 % 60, value FROM event WHERE kind = 'gap'").fetchall()
    # It was away for three seconds; the demo drains every ten, so some of what it had sampled was gone with it.
    (minute, length), = gaps
    assert minute == 1 and 3000 <= length <= 8000

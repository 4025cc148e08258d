"""Several sources at once: the fake driver and the simulator, recorded, reported and shown together."""
import json

import pytest

from conftest import gua
from fake import fake_driver
from recorded import ONE_CARD, TWO_CARDS, card_seconds, record, rows  # noqa: F401

BUSY = """
process train pid 4194242
at 0s hold train card 0 memory 8GiB
at 0s load train card 0 sm 80
"""
# The pid is that of the driver's process: these are two processes all the same.
INVENTED = """
start 2026-11-02T08:00:00Z
host simlab
card 0 uuid SIM-0 name "Invented" memory 16GB
process toy pid 4194242 user carol uid 1003 command "python toy.py"
at 0s hold toy card 0 memory 2GB
"""


@pytest.fixture
def both(tmp_path):
    """The options for both sources."""
    path = tmp_path / "sim.scenario"
    path.write_text(INVENTED)
    return ["--source", "nvml,sim", "--scenario", path]


def report(db):
    run = gua("report", "--db", db, "--since", "1000w", "--json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_both_kinds_are_recorded_and_reported(record, both):
    run = record(TWO_CARDS + BUSY, "--ticks", 2, *both)
    assert rows(run.db, "SELECT uuid, source, status FROM gpu ORDER BY id") == [
        ("GPU-aaaa", "nvml", "ok"), ("GPU-bbbb", "nvml", "ok"), ("SIM-0", "sim", "ok")]
    assert rows(run.db, "SELECT source FROM run") == [("nvml,sim",)]
    assert card_seconds(run.db) == {"active": 60.0}
    assert card_seconds(run.db, "GPU-bbbb") == {"truly_idle": 60.0}
    assert card_seconds(run.db, "SIM-0") == {"idle_held": 60.0}
    found = rows(run.db, "SELECT gpu.source, user, pid FROM holding_1m JOIN process ON process.id = process"
                 " JOIN gpu ON gpu.id = gpu GROUP BY 1, 2 ORDER BY 1")
    assert found == [("nvml", "_dead", 4194242), ("sim", "carol", 4194242)]
    document = report(run.db)
    assert [(host["host"], host["simulated"]) for host in document["hosts"]] == [("simlab", True)]
    assert {card["uuid"]: card["source"] for card in document["gpus"]} == {
        "GPU-aaaa": "nvml", "GPU-bbbb": "nvml", "SIM-0": "sim"}
    assert gua("report", "--db", run.db, "--since", "1000w").stdout.startswith("SIMULATED DATA")
    assert "the data is invented" in gua("status", "--db", run.db).stdout
    exported = gua("export", "--db", run.db)
    assert "simulated data" in exported.stderr
    assert {line.rsplit(",", 1)[1] for line in exported.stdout.splitlines()[1:]} == {"nvml", "sim"}


def test_live_views_show_both(tmp_path, both):
    env = fake_driver(tmp_path, ONE_CARD + BUSY)
    shown = json.loads(gua("stat", "--json", "--no-store", *both, env=env).stdout)
    assert sorted((card["uuid"], card["gua.source"]) for card in shown["gpus"]) == [
        ("GPU-aaaa", "nvml"), ("SIM-0", "sim")]
    holders = gua("who", "--no-store", *both, env=env).stdout
    assert "carol" in holders and "(ended)" in holders
    cards = gua("query", "--query-gpu=uuid,memory.used", "--format=csv,noheader", "--no-store", *both, env=env)
    assert len(cards.stdout.splitlines()) == 2 and cards.stderr == ""


def test_a_driver_that_fails_blinds_only_its_cards(record, both):
    """It is down for a minute in the middle: the simulator's card is observed all the time."""
    run = record(ONE_CARD + BUSY + "at 60s fail nvmlDevice* code 999 until 120s\n"
                 "at 60s fail nvmlInit_v2 code 9 until 120s\n", "--ticks", 6, *both)
    assert card_seconds(run.db, "SIM-0") == {"idle_held": 180.0}
    seconds = card_seconds(run.db)
    assert sum(seconds.values()) == 180 and 40 <= seconds["unobserved"] <= 62, seconds
    assert rows(run.db, "SELECT kind, uuid FROM event JOIN gpu ON gpu.id = gpu ORDER BY event.id") == [
        ("card-new", "GPU-aaaa"), ("card-new", "SIM-0"), ("card-lost", "GPU-aaaa"), ("card-back", "GPU-aaaa")]
    assert rows(run.db, "SELECT count(*) FROM event WHERE kind = 'driver-down'") == [(0,)]
    assert run.stderr.count("source nvml: ") == 2  # when it starts and when it is over


def test_a_driver_that_comes_later_has_its_cards_recorded(record, both):
    run = record(ONE_CARD + BUSY + "at 0s fail nvmlInit_v2 code 9 until 20s\n", "--ticks", 4, *both)
    assert rows(run.db, "SELECT uuid, source FROM gpu ORDER BY id") == [("SIM-0", "sim"), ("GPU-aaaa", "nvml")]
    assert card_seconds(run.db, "SIM-0") == {"idle_held": 120.0}
    assert card_seconds(run.db)["active"] >= 60


def test_a_driver_that_is_not_there_is_said(tmp_path, both):
    env = fake_driver(tmp_path, ONE_CARD + "at 0s fail nvmlInit_v2 code 9\n")
    shown = gua("stat", "--no-store", *both, env=env)
    assert shown.returncode == 0 and "Invented" in shown.stdout and "Test A" not in shown.stdout
    assert shown.stderr.count("source nvml: ") == 1
    alone = gua("stat", "--no-store", "--source", "auto", env=env)
    assert alone.returncode == 1 and alone.stdout == ""


def test_a_wrong_scenario_is_the_users_fault(tmp_path):
    path = tmp_path / "wrong.scenario"
    path.write_text("nonsense\n")
    env = fake_driver(tmp_path, ONE_CARD)
    shown = gua("stat", "--no-store", "--source", "nvml,sim", "--scenario", path, env=env)
    assert shown.returncode == 2 and "wrong.scenario:1" in shown.stderr and shown.stdout == ""


def test_each_source_examines_itself(tmp_path, both):
    env = fake_driver(tmp_path, ONE_CARD)
    answer = json.loads(gua("doctor", "--json", "--db", tmp_path / "no.db", *both, env=env).stdout)
    assert [(card["uuid"], card["source"]) for card in answer["cards"]] == [("GPU-aaaa", "nvml"), ("SIM-0", "sim")]
    names = [check["check"] for check in answer["checks"]]
    assert names.index("driver") < names.index("card 0") < names.index("simulation") < names.index("store")
    one = json.loads(gua("doctor", "--json", "--db", tmp_path / "no.db", "--source", "sim").stdout)
    assert "driver" not in [check["check"] for check in one["checks"]]


@pytest.mark.parametrize("command", ["daemon", "stat", "query --query-gpu=uuid", "dmon", "who", "pick", "doctor",
                                     "track"])
def test_an_unknown_name_lists_the_names(command):
    wrong = gua(*command.split(), "--source", "nvml,amd,sim")
    assert wrong.returncode == 2
    for name in ("unknown source 'amd'", "auto (", "nvml (", "sim ("):
        assert name in wrong.stderr
    assert ("none (" in wrong.stderr) == (command == "track")
    refused = gua(*command.split(), "--source", "none" if command != "track" else "none,sim")
    assert refused.returncode == 2


@pytest.mark.parametrize("command", ["daemon", "stat", "who", "track", "doctor"])
def test_a_scenario_needs_the_simulator(command, tmp_path):
    path = tmp_path / "sim.scenario"
    path.write_text(INVENTED)
    wrong = gua(command, "--source", "nvml", "--scenario", path)
    assert wrong.returncode == 2 and "--scenario goes with --source sim" in wrong.stderr

"""Many short processes: the recorder stores them together, no time is lost, and the report says so."""
import json
import sqlite3

from conftest import gua
from recorded import ONE_CARD, record, rows  # noqa: F401

LIMIT = 1000
CROWD = "(many short processes)"
TICKS = 360  # three hours: 1080 processes
# Every ten seconds a process that holds the card for six, beside one that stays.
LOOP = """
start 2026-11-02T08:00:00Z
repeat 10s
card 0 uuid SIM-0 name "Invented" memory 80GiB
process stays pid 900 user ann uid 1001 command "python serve.py"
process short pid 1000 user bob uid 1002 command "python step.py"
at 0s hold stays card 0 memory 2GiB
at 2s hold short card 0 memory 1GiB
at 8s exit short
"""


def test_loop_of_short_processes(record, tmp_path):  # noqa: F811
    scenario = tmp_path / "loop.scenario"
    scenario.write_text(LOOP)
    run = record(ONE_CARD, "--ticks", TICKS, "--source", "sim", "--scenario", scenario)
    kept = rows(run.db, "SELECT user, pid, command, count(*) FROM process GROUP BY 1, 2, 3 ORDER BY 4")
    assert kept[:2] == [("ann", 900, "python serve.py", 1), ("bob", 0, CROWD, 1)]
    assert kept[2][:3] == ("bob", 1000, "python step.py") and LIMIT <= kept[2][3] <= LIMIT + 1
    assert rows(run.db, "SELECT count(*) FROM holding LEFT JOIN process ON process.id = process"
                " WHERE process.id IS NULL") == [(0,)]
    # The totals are counted by user, whatever the row.
    assert rows(run.db, "SELECT user, presence_ms FROM total_user WHERE state = 1 ORDER BY 1") == rows(
        run.db, "SELECT user, sum(idle_held_presence_ms) FROM holding JOIN process ON process.id = process"
        " GROUP BY 1 ORDER BY 1")
    # The 80 processes of the crowd have as much time as 80 others.
    seconds = dict(rows(run.db, "SELECT command, sum(idle_held_ms) / 1000.0 FROM holding JOIN process"
                        " ON process.id = process GROUP BY 1"))
    assert abs(seconds[CROWD] / seconds["python step.py"] - (TICKS * 3 - LIMIT) / LIMIT) < 0.01
    assert seconds["python serve.py"] == TICKS * 30

    def report(*args):
        return gua("report", "--db", run.db, "--since", "1000w", "--by", "process", *args).stdout
    listed = {p["pid"]: p for p in json.loads(report("--json", "--top", "2"))["breakdown"]["rows"]}
    assert set(listed) == {900, 0} and listed[0]["command"] == CROWD and listed[0]["started"] is None
    assert f"{CROWD} are a user's processes of less than 5 minutes, after the first" in " ".join(report().split())
    assert f"{CROWD} are" not in report("--top", "1")


# Job 1 holds a card and computes in short processes of its own; job 2 of the same user does nothing.
WORKERS = """
start 2026-11-02T08:00:00Z
repeat 10s
card 0 uuid SIM-0 name "Invented" memory 80GiB
process parent pid 900 user bob uid 1002 job slurm:1 command "python map.py"
process other pid 901 user bob uid 1002 job slurm:2 command "python hold.py"
process short pid 1000 user bob uid 1002 job slurm:1 command "python step.py"
at 0s hold parent card 0 memory 2GiB
at 0s hold other card 0 memory 2GiB
at 2s hold short card 0 memory 1GiB
at 2s load short card 0 sm 60
at 8s exit short
"""
RULES = "[rule all]\nwarn = 10m\nwarn_again = 20m\nfinal_notice = 5m\nend = 30m\n"


def ended(db, tmp_path, since):
    config = tmp_path / "gua.conf"
    config.write_text(RULES)
    run = gua("enforce", "simulate", "--db", db, "--since", since, "--json", "--config", config)
    assert run.returncode == 0, run.stderr
    return [session["session"] for session in json.loads(run.stdout)["sessions"] if session["ended"]]


def test_use_of_the_crowd_is_use_of_its_session(record, tmp_path):  # noqa: F811
    scenario = tmp_path / "workers.scenario"
    scenario.write_text(WORKERS)
    run = record(ONE_CARD, "--ticks", 480, "--source", "sim", "--scenario", scenario)
    assert rows(run.db, f"SELECT pid, job FROM process WHERE command = '{CROWD}'") == [(0, "slurm:1")]
    # Of the fourth hour, only the crowd knows that job 1 computes.
    assert ended(run.db, tmp_path, "2000d") == ["slurm:2 of bob"]
    assert rows(run.db, "SELECT max(first_seen_ms) - min(first_seen_ms) > 9000000 FROM process WHERE pid = 1000") == [(1,)]


def test_a_crowd_of_unknown_sessions_may_be_any(record, tmp_path):  # noqa: F811
    """The processes of more sessions than have rows of their own: nobody is ended because of that."""
    scenario = tmp_path / "workers.scenario"
    scenario.write_text(WORKERS)
    run = record(ONE_CARD, "--ticks", 480, "--source", "sim", "--scenario", scenario)
    with sqlite3.connect(run.db) as db:
        db.execute(f"UPDATE process SET job = NULL WHERE command = '{CROWD}'")
        # So that the crowd alone has job 1's use: before that, both jobs are idle.
        db.execute("DELETE FROM holding_1m WHERE process IN (SELECT id FROM process WHERE pid = 1000)")
    assert ended(run.db, tmp_path, "2000d") == ["slurm:1 of bob", "slurm:2 of bob"]
    begin = rows(run.db, f"SELECT first_seen_ms FROM process WHERE command = '{CROWD}'")[0][0]
    with sqlite3.connect(run.db) as db:
        db.execute(f"DELETE FROM holding_1m WHERE slot * 1000 < {begin}")
        db.execute("UPDATE process SET first_seen_ms = max(first_seen_ms, ?)", [begin])
    assert ended(run.db, tmp_path, "2000d") == []

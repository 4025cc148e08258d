"""Many short processes: the recorder stores them together, no time is lost, and the report says so."""
import json

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

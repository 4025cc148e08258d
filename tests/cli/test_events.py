"""gua events, and the part of the report about them."""
import csv
import io
import json
import re

import pytest

from conftest import gua
from handmade import ACTIVE, HOUR, Store
from recorded import TWO_CARDS, WALL, record  # noqa: F401: a fixture
from test_report import T, report, report_json

NOW = T + HOUR + 5


@pytest.fixture
def eventful(tmp_path):
    """Two cards on one host: everything that can happen did, and a recorder was killed in between."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T - 9 * HOUR, T - 3 * HOUR, ended=T - 3 * HOUR)
    s.db.execute("UPDATE run SET how_ended = 'killed'")
    s.run(host, T, T + HOUR)
    cards = [s.card(host, i, T - 9 * HOUR, T + HOUR) for i in range(2)]
    for minute in range(60):
        for card in cards:
            s.usage(T + 60 * minute, card, ACTIVE, 60)
    s.event(host, T - 8 * HOUR, "xid", cards[0], 13, "the driver reports XID 13")
    s.event(host, T, "card-new", cards[1], text="NVIDIA A100")
    s.event(host, T + 60, "xid", cards[1], 79, "the driver reports XID 79")
    s.event(host, T + 61, "card-lost", cards[1], 15, "card 1 is lost (driver code 15)")
    s.event(host, T + 300, "card-back", cards[1], text="card 1 is ok (driver code 0)")
    s.event(host, T + 600, "xid", cards[0], 31, "the driver reports XID 31")
    s.event(host, T + 601, "xid", cards[0], 31, "the driver reports XID 31")
    s.event(host, T + 700, "xid", cards[0], 777, "the driver reports XID 777")
    s.event(host, T + 800, "gap", cards[0], 65000, "card 0: no readings for 65.0 s")
    s.event(host, T + 900, "gap", cards[1], 5000, "card 1: no readings for 5.0 s")
    s.event(host, T + 1000, "driver-down", None, 0, "driver/library mismatch; reload the module")
    s.event(host, T + 1100, "driver-up", None, 0, "the driver answers again")
    s.event(host, T + 1200, "suspend", None, 7_200_000, "suspended for 7200.0 s")
    s.event(host, T + 1300, "clock-step", None, -1500, "clock set -1.500 s")
    s.event(host, T + 1400, "from-the-future", None, 3, "a newer \x1b[31mgua wrote this")
    return s.save()


def events(path, *args, now=NOW, status=0, **options):
    run = gua("events", "--db", path, "--now", f"@{now}", *args, **options)
    assert run.returncode == status, run.stderr
    return run


def listed(path, *args):
    document = json.loads(events(path, "--json", *args).stdout)
    assert document["schema"] == "gua-events-1" and document["simulated"] is False
    return document["events"]


def test_list(eventful, expect):
    expect("events.txt", events(eventful).stdout)


def test_lines_are_wrapped_on_a_terminal_only(eventful):
    assert max(map(len, events(eventful).stdout.splitlines())) > 100


def test_json_and_csv_have_the_same_rows(eventful):
    rows = listed(eventful)
    table = list(csv.DictReader(io.StringIO(events(eventful, "--csv").stdout, newline=""), strict=True))
    assert [row["kind"] for row in rows] == [row["kind"] for row in table]
    assert len(rows) == 16
    lost = rows[4]
    assert lost == {"at": "2026-11-02T12:01:01Z", "host": "lab-a100", "kind": "card-lost", "value": 15,
                    "gpu": "GPU-00000001-1111-2222-3333-444444444444", "gpu_index": 1,
                    "text": "card 1 is lost (driver code 15)", "meaning": None}
    assert table[4]["gpu_index"] == "1" and table[4]["meaning"] == ""
    assert "PCI bus" in rows[3]["meaning"]
    assert "\x1b" not in events(eventful, "--csv").stdout + events(eventful).stdout


def test_time_without_a_recorder_comes_from_the_runs(eventful):
    off, = listed(eventful, "--kind", "recorder-off")
    assert off["value"] == 3 * HOUR * 1000 and off["gpu"] is None
    assert off["text"] == "no recorder for 3 h 0 min; the one before was killed"


def test_a_run_that_goes_on_at_once_is_not_called_time_without_a_recorder(tmp_path):
    """A reload begins a run with the changed configuration, and `no recorder for 0 s` was all that people saw of it."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR / 2, ended=T + HOUR / 2)
    s.db.execute("UPDATE run SET how_ended = 'stopped'")
    s.run(host, T + HOUR / 2 + 0.2, T + HOUR)
    off, = listed(s.save(), "--kind", "recorder-off")
    assert off["text"] == "started again at once, or read a changed configuration"


def test_choices(eventful):
    assert {row["gpu_index"] for row in listed(eventful, "--card", "1")} == {1}
    assert [row["value"] for row in listed(eventful, "--kind", "xid,card-lost")] == [13, 79, 15, 31, 31, 777]
    assert [row["value"] for row in listed(eventful, "--kind", "xid", "--card", "0,1", "--since", "1h")] == \
        [79, 31, 31, 777]
    for beginning in "GPU-00000000", "00000000":  # reports show it without GPU-
        assert len(listed(eventful, "--card", beginning)) == 5
    run = events(eventful, "--card", "7")
    assert run.stdout == "" and "no event between" in run.stderr


@pytest.mark.parametrize("args, says", [
    (("--kind", "quake"), "there is no kind 'quake'; write one of: card-lost"),
    (("--kind", ","), "--kind ',' names nothing"),
    (("--card", ""), "--card '' names nothing"),
    (("--json", "--csv"), "exclude each other"),
    (("--since", "never"), "--since: 'never' is not a time"),
    (("operand",), "usage: gua events")])
def test_wrong_usage(eventful, args, says):
    assert says in events(eventful, *args, status=2).stderr


def test_no_store(tmp_path):
    said = events(tmp_path / "none.db", status=1).stderr
    assert "there is no store at" in said and "'gua start'" in said and "'sudo gua install'" in said


def test_report_counts_them(eventful, expect):
    text = report(eventful)
    expect("report_events.txt", text[re.search(r"^§\d+ Events", text, re.M).start():])
    found = {(event["kind"], event["xid"]): event for event in report_json(eventful)["events"]}
    assert list(found) == [("card-lost", None), ("xid", 31), ("xid", 79), ("xid", 777), ("driver-down", None),
                           ("gap", None), ("recorder-off", None), ("suspend", None), ("clock-step", None)]
    assert found["gap", None]["times"] == 2 and found["gap", None]["total_seconds"] == 70
    assert found["xid", 31]["times"] == 2 and found["xid", 31]["last"] == "2026-11-02T12:10:01Z"


def test_a_calm_window_has_no_part(eventful):
    calm = "--since", "2026-11-02T12:30Z"
    assert "Events" not in report(eventful, args=calm)
    assert report_json(eventful, args=calm)["events"] == []


def test_several_hosts_are_named(eventful, tmp_path):
    s = Store(tmp_path / "other.db")
    host = s.host("lab-b", "m2")
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR, uuid="GPU-bbbb")
    s.usage(T, card, ACTIVE, 60)
    s.event(host, T + 2000, "xid", card, 79, "the driver reports XID 79")
    s.event(host, T + 2001, "driver-down", None, 0, "gone")
    other = s.save()
    lines = events(eventful, "--db", other).stdout.splitlines()
    assert any("lab-b 0" in line and "XID 79" in line for line in lines)
    assert any("lab-b " in line and "driver down" in line for line in lines)
    text = report(eventful, other)
    assert "79, 2 times, the last on GPU 0 of lab-b, Mon 2026-11-02 12:33" in " ".join(text.split())
    assert "2 times, the last on lab-b, Mon 2026-11-02 12:33" in " ".join(text.split())


def test_an_xid_of_the_driver_is_listed(record):
    run = record(TWO_CARDS + "at 42s xid 79 card 1\n", "--ticks", "3")
    assert "XID 79" in events(run.db, "--kind", "xid", now=WALL + HOUR).stdout


def test_simulated_events_are_marked(tmp_path):
    assert gua("demo", "--ticks", 30, "--db", tmp_path / "lab.db").returncode == 0
    run = events(tmp_path / "lab.db", now=WALL + HOUR)
    assert run.stdout.startswith("SIMULATED DATA")
    assert "simulated data" in events(tmp_path / "lab.db", "--csv", now=WALL + HOUR).stderr

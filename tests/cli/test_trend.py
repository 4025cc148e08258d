"""The trend in the report: days, weeks, months of the window."""
import csv
import io
import random
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from handmade import ACTIVE, HOUR, IDLE_HELD, TRULY_IDLE, USE_UNKNOWN, Store
from test_report import fails, report, report_json, widest

NOW = int(datetime(2026, 11, 13, 12, tzinfo=timezone.utc).timestamp())
DAY = 24 * HOUR
STATES = ("active", "idle_held", "truly_idle", "unobserved", "use_unknown")


def make(path, days, seed=1, fine=0, unknown=False):
    """`days` days of two cards; the last `fine` hours are slots of a minute, and one hour in 20 is missing."""
    rnd = random.Random(seed)
    s = Store(path)
    host = s.host()
    first = NOW - days * DAY
    s.run(host, first, NOW)
    cards = [s.card(host, i, first, NOW) for i in range(2)]
    for slot in range(first, NOW, HOUR):
        width = 60 if slot >= NOW - fine * HOUR else HOUR
        for card in cards:
            if rnd.random() < 0.05:
                continue
            for at in range(slot, slot + HOUR, width):
                parts = sorted(rnd.randrange(width * 1000 + 1) for _ in range(2))
                seconds = [parts[0] / 1000, (parts[1] - parts[0]) / 1000, (width * 1000 - parts[1]) / 1000]
                for state, part in zip((ACTIVE, USE_UNKNOWN if unknown and card == 2 else IDLE_HELD, TRULY_IDLE),
                                       seconds):
                    s.usage(at, card, state, part, width=width)
    return s.save()


def trend(path, *args, zone="UTC", now=NOW):
    document = report_json(path, now=now, args=("--since", "4000d", *args), env={"TZ": zone})
    return document, document["trend"]["periods"]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Madrid", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Chatham"])
@pytest.mark.parametrize("days, fine, unknown", [(2, 3, False), (9, 30, True), (70, 30, True)])
def test_periods_add_up_to_the_headline(tmp_path, zone, days, fine, unknown):
    document, periods = trend(make(tmp_path / "gua.db", days, days, fine, unknown), zone=zone)
    for state in STATES:
        total = sum(period[f"{state}_gpu_seconds"] for period in periods)
        # A zone that cuts an hour divides it evenly, so that its unobserved part may be in the other day.
        slack = HOUR if state == "unobserved" and zone in ("Asia/Kolkata", "Pacific/Chatham") else 0.0011
        assert abs(total - document["gpu_seconds"][state]) <= slack, state
    assert periods[0]["since"] == document["window"]["since"]
    assert periods[-1]["until"] == document["window"]["until"]
    assert all(a["until"] == b["since"] for a, b in zip(periods, periods[1:]))


def test_local_days_have_23_to_25_hours(tmp_path):
    path = make(tmp_path / "gua.db", 30)
    _, periods = trend(path, zone="Europe/Madrid")
    by_name = {p["name"]: p for p in periods}
    hours = {name: sum(p[f"{s}_gpu_seconds"] for s in STATES) / 2 / HOUR for name, p in by_name.items()}
    assert hours["Sat 10-24"] == pytest.approx(24) and hours["Sun 10-25"] == pytest.approx(25)
    assert by_name["Sun 10-25"]["since"] == "2026-10-24T22:00:00Z"
    zone = ZoneInfo("Europe/Madrid")
    assert all(datetime.fromisoformat(p["since"]).astimezone(zone).hour == 0 for p in periods[1:])
    assert trend(path, "--utc", zone="Europe/Madrid")[1][1]["since"] == "2026-10-15T00:00:00Z"


@pytest.mark.parametrize("days, unit, n, first, last", [
    (59, "day", 60, "Tue 09-15", "Fri 11-13"), (60, "week", 9, "2026-09-14", "2026-11-09"),
    (412, "week", 60, "2025-09-22", "2026-11-09"), (420, "month", 15, "2025-09", "2026-11")])
def test_unit(tmp_path, days, unit, n, first, last):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, NOW - days * DAY, NOW)
    card = s.card(host, 0, NOW - days * DAY, NOW)
    for slot in range(NOW - days * DAY, NOW, DAY):
        s.usage(slot, card, ACTIVE, HOUR, width=HOUR)
    document, periods = trend(s.save())
    assert (document["trend"]["unit"], len(periods)) == (unit, n)
    assert (periods[0]["name"], periods[-1]["name"]) == (first, last)


@pytest.mark.same_path
@pytest.mark.parametrize("days", [10, 40, 100])
def test_text(tmp_path, expect, days):
    path = make(tmp_path / "gua.db", days)
    for name, args in (("", ()), ("-ascii", ("--ascii",))):
        text = report(path, now=NOW, args=("--since", "4000d", *args))
        assert widest(text) <= 80 and text.isascii() == bool(args)
        part = text[text.index("Trend"):text.index("\n\n", text.index("Trend"))] + "\n"
        expect(f"report/trend-{days}{name}.txt", part)


def test_one_day_has_no_trend(tmp_path):
    path = make(tmp_path / "gua.db", 3)
    assert "Trend" not in report(path, now=NOW, args=("--since", "today"))
    assert "Trend by day (UTC)" in report(path, now=NOW, args=("--since", "2d", "--utc"))


def test_csv(tmp_path):
    path = make(tmp_path / "gua.db", 10)
    text = report(path, now=NOW, args=("--since", "4000d", "--format", "csv", "--table", "trend"))
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    _, periods = trend(path)
    assert [row["name"] for row in rows] == [period["name"] for period in periods]
    assert float(rows[3]["idle_held_fraction"]) == periods[3]["idle_held_fraction"]
    text = report(path, now=NOW, args=("--format", "csv", "--table", "events"))
    assert text.startswith("kind,xid,")
    assert "--table needs --format csv" in fails(2, "--db", path, "--table", "trend")

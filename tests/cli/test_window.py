"""--since, --until and --last in words: which window gua report and gua export use."""
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from conftest import gua
from handmade import ACTIVE, HOUR, Store
from test_report import fails, report_json, store  # noqa: F401: a fixture

NOW = int(datetime(2026, 11, 13, 12, tzinfo=ZoneInfo("UTC")).timestamp())
FIRST = NOW - 60 * 24 * HOUR


@pytest.fixture
def months(tmp_path):
    """60 days of one card, by the hour."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, FIRST, NOW)
    gpu = s.card(host, 0, FIRST, NOW)
    for slot in range(FIRST - FIRST % HOUR, NOW, HOUR):
        s.usage(slot, gpu, ACTIVE, HOUR, width=HOUR)
    return s.save()


def window(path, *args, zone="UTC"):
    used = report_json(path, now=NOW, args=args, env={"TZ": zone})["window"]
    local = [datetime.fromisoformat(used[key]).astimezone(ZoneInfo(zone)) for key in ("since", "until")]
    return *[f"{at:%Y-%m-%d %H:%M}" for at in local], used["seconds"] / HOUR


@pytest.mark.parametrize("args, since, until, hours", [
    (("--since", "lastweek"), "2026-11-02 00:00", "2026-11-09 00:00", 168),
    (("--since", "thisweek"), "2026-11-09 00:00", "2026-11-13 13:00", 109),
    (("--since", "lastmonth"), "2026-10-01 00:00", "2026-11-01 00:00", 745),
    (("--since", "2026-10"), "2026-10-01 00:00", "2026-11-01 00:00", 745),
    (("--since", "2026-10", "--until", "yesterday"), "2026-10-01 00:00", "2026-11-13 00:00", 1033),
    (("--since", "2026-10-25", "--until", "2026-10-26"), "2026-10-25 00:00", "2026-10-26 00:00", 25),
    (("--since", "yesterday"), "2026-11-12 00:00", "2026-11-13 00:00", 24),
    (("--since", "18:00"), "2026-11-12 18:00", "2026-11-13 13:00", 19),
    (("--last", "4w"), "2026-10-16 14:00", "2026-11-13 13:00", 672),
    (("--last", "1d", "--until", "lastmonth"), "2026-10-31 00:00", "2026-11-01 00:00", 24),
    (("--until", "lastmonth"), "2026-10-31 23:00", "2026-11-01 00:00", 1)])
def test_windows_in_local_time(months, args, since, until, hours):
    assert window(months, *args, zone="Europe/Madrid") == (since, until, hours)


def test_utc_is_another_week(months):
    assert window(months, "--since", "lastweek", "--utc", zone="Asia/Tokyo")[0] == "2026-11-02 09:00"
    assert window(months, "--since", "lastweek", zone="Asia/Tokyo")[0] == "2026-11-02 00:00"


def test_export_takes_the_same_words(months):
    def first(*args):
        run = gua("export", "--db", months, "--now", f"@{NOW}", *args)
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()[1:]
    assert len(first("--since", "lastweek")) == 168
    assert len(first("--last", "1d")) == 24
    assert len(first()) == 60 * 24


def test_what_is_accepted_is_said(months):
    says = fails(2, "--db", months, "--since", "lastfortnight")
    for form in ("7d", "lastweek", "lastmonth", "2026-10", "2026-11-01", "08:30", "monday"):
        assert form in says
    assert "--since and --last exclude each other" in fails(2, "--since", "1h", "--last", "1h")

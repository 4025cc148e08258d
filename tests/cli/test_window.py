"""--since, --until and --last in words: which window gua report and gua export use."""
import re
import sqlite3
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from conftest import gua
from handmade import ACTIVE, HOUR, IDLE_HELD, Store
from test_report import fails, report, report_json, store  # noqa: F401: a fixture

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


@pytest.mark.same_path
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


DAY = 24 * HOUR
T0 = NOW - 30 * DAY  # Wed 12:00


class Past:
    """Hosts of known recordings, and what the definitions make of a window over them: no line of gua's is used."""

    def __init__(self, tmp_path):
        self.tmp_path, self.hosts, self.paths = tmp_path, [], []

    def add(self, name, first, last, source="nvml", ended=True, db=None, cards=2):
        """A host whose cards are active in every whole hour from first to last."""
        self.hosts.append((name, first, last, source, ended, cards))
        path = self.tmp_path / (db or f"{name}.db")
        if path in self.paths:
            s = Store.__new__(Store)
            s.path, s.db = path, sqlite3.connect(path)
        else:
            s = Store(path)
            self.paths.append(path)
        host = s.host(name, machine_id="" if source == "import" else name)
        s.run(host, first, last, source=source, ended=last if ended else None)
        for index in range(cards):
            card = s.card(host, index, first, last, uuid=f"GPU-{name}-{index}")
            for slot in range(first, last, HOUR):
                s.usage(slot, card, ACTIVE, HOUR, width=HOUR)
        s.save()

    def truth(self, since, until=NOW, only=None):
        """Since, until, observed and unobserved GPU-seconds of each host."""
        asked = [h for h in self.hosts if only is None or h[0] == only]
        begins = max(since, min(first for _, first, *_ in asked))
        ends = until
        if all(source in ("import", "sim") for *_, source, _, _ in asked):
            ends = min(until, max(last for _, _, last, *_ in asked))
        hosts = {}
        for name, first, last, source, _, cards in asked:
            seen = max(0, min(last, ends) - max(first, begins))
            whole = ends - max(first, begins)
            silent = source == "nvml" and begins - DAY < last <= begins
            if seen or silent:
                hosts[name] = (cards * seen, cards * (whole - seen))
        return begins, ends, hosts

    def check(self, since, until=NOW, only=None):
        args = ["--since", f"@{since}", "--until", f"@{until}", "--by", "host", *(("--host", only) if only else ())]
        found = report_json(*self.paths, now=NOW, args=args)
        begins, ends, hosts = self.truth(since, until, only)
        window = found["window"]
        at = {key: datetime.fromisoformat(window[key]).timestamp()
              for key in ("since", "until", "asked_since", "asked_until")}
        assert (at["since"], at["until"]) == (begins, ends)
        assert (at["asked_since"], at["asked_until"]) == (since, until)
        assert window["clipped"] == (begins > since or ends < until)
        rows = {row["host"]: (row["observed_gpu_seconds"], row["unobserved_gpu_seconds"])
                for row in found["breakdown"]["rows"]}
        assert rows == hosts
        seen, missed = (sum(part) for part in zip(*hosts.values()))
        assert found["gpu_seconds"]["unobserved"] == missed
        assert window["observed"] == pytest.approx(seen / (seen + missed), abs=1e-6)
        for row in found["breakdown"]["rows"]:
            first = next(first for name, first, *_ in self.hosts if name == row["host"])
            assert datetime.fromisoformat(row["known_since"]).timestamp() == first
        return found, report(*self.paths, now=NOW, args=[*args, "--utc"])


@pytest.fixture
def past(tmp_path):
    return Past(tmp_path)


@pytest.mark.parametrize("source", ["import", "sim"])
def test_a_window_over_the_past_is_that_of_its_data(past, source):
    past.add("a", T0, T0 + 5 * HOUR, source)
    found, text = past.check(NOW - 1000 * 7 * DAY)
    assert found["gpu_seconds"]["unobserved"] == 0 and found["waste"]["verdict"] == "within_rule"
    assert "Clipped: from Fri 2007-09-14 12:00 UTC to Fri 2026-11-13 12:00 UTC was asked for" in " ".join(text.split())
    assert "unobserved      0.0%" in text
    page = report(*past.paths, now=NOW, args=["--since", "1000w", "--utc", "--format", "html"])
    assert "Clipped: from Fri 2007-09-14 12:00 UTC" in page
    found, text = past.check(T0 + HOUR, T0 + 3 * HOUR)
    assert not found["window"]["clipped"] and "Clipped" not in text
    found, text = past.check(T0 + HOUR)
    assert "Clipped: up to Fri 2026-11-13 12:00 UTC was asked for" in text


def test_a_recorder_that_stopped_is_unobserved(past):
    past.add("a", T0, T0 + 5 * HOUR)
    found, text = past.check(NOW - 1000 * 7 * DAY)
    assert found["gpu_seconds"]["unobserved"] == 2 * (NOW - T0 - 5 * HOUR)
    assert found["waste"]["verdict"] == "too_little_observed"
    assert "Clipped: from Fri 2007-09-14 12:00 UTC on was asked for" in text


def test_hosts_of_one_past_end_with_the_newest(past):
    past.add("a", T0, T0 + 5 * HOUR, "import")
    past.add("b", T0 + 2 * HOUR, T0 + 9 * HOUR, "sim")
    found, _ = past.check(T0 - DAY)
    assert found["gpu_seconds"]["unobserved"] == 2 * 4 * HOUR


@pytest.mark.parametrize("db", [None, "one.db"])
def test_one_that_records_keeps_the_window_open(past, db):
    past.add("old", T0, T0 + 5 * HOUR, "import", db=db)
    past.add("new", NOW - 3 * DAY, NOW, ended=False, db=db)
    past.check(NOW - 1000 * 7 * DAY)
    past.check(NOW - 1000 * 7 * DAY, only="old")
    found, text = past.check(NOW - 7 * DAY, only="new")
    assert found["window"]["clipped"] and "Clipped" in text
    found, _ = past.check(NOW - 2 * DAY)
    assert len(found["hosts"]) == 1


def test_stores_of_different_age(past):
    past.add("a", NOW - 10 * DAY, NOW, ended=False)
    past.add("b", NOW - 2 * DAY, NOW, ended=False, cards=3)
    past.add("c", NOW - 8 * DAY, NOW - DAY, cards=1)
    found, text = past.check(NOW - 7 * DAY)
    assert not found["window"]["clipped"] and found["gpu_seconds"]["unobserved"] == DAY
    assert "3 GPUs, since Wed 2026-11-11 12:00 UTC" in text
    found, text = past.check(NOW - 14 * DAY)
    assert "Clipped" in text
    past.check(NOW - 6 * HOUR)


def test_a_host_that_is_silent_all_the_time_is_in_the_report_for_a_day(past):
    past.add("a", NOW - 10 * DAY, NOW, ended=False)
    past.add("b", NOW - 10 * DAY, NOW - 2 * HOUR)
    past.add("gone", NOW - 10 * DAY, NOW - 3 * DAY)
    past.add("imported", NOW - 10 * DAY, NOW - 2 * HOUR, "import")
    found, text = past.check(NOW - HOUR)
    assert found["window"]["observed"] == pytest.approx(0.5) and "No recorder on b since" in text


def test_a_part_worth_naming(tmp_path):
    """A user is named who has a tenth of what the verdict is about."""
    def verdict(name, *parts):
        s = Store(tmp_path / name)
        host = s.host()
        s.run(host, T0, T0 + HOUR, ended=T0 + HOUR)
        card = s.card(host, 0, T0, T0 + HOUR)
        s.usage(T0, card, IDLE_HELD, HOUR, width=HOUR)
        for number, seconds in enumerate(parts):
            who = s.process(host, 100 + number, f"user{number}", seen=(T0, T0 + HOUR))
            s.holding(T0, card, who, IDLE_HELD, HOUR, share=seconds, mem_mb=4000, width=HOUR)
        return report(s.save(), now=T0 + HOUR, args=["--since", f"@{T0}"])
    tenth = HOUR // 10
    assert "user0 has the largest part: 0.10 of 1.00" in verdict("a.db", tenth, *[tenth - 1] * 5)
    small = verdict("b.db", *[tenth - 1] * 9)
    assert "the problem is the allocation policy" in " ".join(small.split()) and "largest part" not in small


def test_a_digest_about_old_data_does_not_speak_of_now(past):
    past.add("a", T0, T0 + 5 * HOUR, "import")
    args = ["--since", "1000w", "--digest"]
    assert "gua who" not in report(*past.paths, now=NOW, args=args)
    past.add("b", NOW - DAY, NOW, ended=False)
    assert "gua who --idle 2h" in report(*past.paths, now=NOW, args=args)


def test_time_lines_of_many_cards_are_capped(past):
    past.add("a", NOW - DAY, NOW, ended=False, cards=143)
    args = ["--since", "1d"]
    more = "95 more: --host, --card or --model choose some"
    page = report(*past.paths, now=NOW, args=[*args, "--format", "html"])
    assert page.count('<svg class="lane"') == 48 and f">{more}<" in page
    assert page.count('scope="col" class="n">GPU ') == 48
    picture = report(*past.paths, now=NOW, args=[*args, "--format", "svg"])
    assert picture.count("<g><title>GPU ") == 48 and f">{more}<" in picture
    def rows(text):
        return len(re.findall(r"^ +[0-9]+ +[0-9a-z-]+ +A100", text, re.M))
    text = report(*past.paths, now=NOW, args=args)
    assert rows(text) == 48 and f"  {more}; --by card\n  lists all\n" in text
    assert rows(report(*past.paths, now=NOW, args=[*args, "--by", "card"])) == 143


def test_a_name_that_no_card_has_takes_no_column(tmp_path):
    """An imported trace has cards without a model."""
    def heads(name, *models):
        s = Store(tmp_path / name)
        host = s.host()
        s.run(host, T0, T0 + HOUR, ended=T0 + HOUR)
        for index, model in enumerate(models):
            card = s.card(host, index, T0, T0 + HOUR, name=model)
            s.usage(T0, card, ACTIVE, HOUR, width=HOUR)
        args = ["--since", f"@{T0}", "--cost", "2"]
        text = report(s.save(), now=T0 + HOUR, args=args)
        page = report(s.path, now=T0 + HOUR, args=[*args, "--format", "html"])
        return [len(re.findall(r"^ +gpu +(?:uuid +)?name ", text, re.M)), page.count(">name</th>")]
    assert heads("a.db", "", "") == [0, 0]
    assert heads("b.db", "", "NVIDIA A100") == [2, 2]

"""gua report --compare: two windows of one store, their figures and users side by side."""
import csv
import io
import random
import re
from datetime import datetime, timezone

import pytest

from handmade import ACTIVE, HOUR, IDLE_HELD, SQUATTING, TRULY_IDLE, Store
from test_report import fails, on_terminal, report, report_json, widest

NOW = int(datetime(2026, 11, 16, 12, tzinfo=timezone.utc).timestamp())  # a Monday
DAY = 24 * HOUR
THIS, BEFORE = NOW - 12 * HOUR - 7 * DAY, NOW - 12 * HOUR - 14 * DAY  # last week, and the week before
WEEK = "--since", "lastweek", "--utc"


def make(path, missing=0, first=BEFORE, cards=2, rules=None):
    """Two weeks: alice gets better, bob worse, carol left and dave came; `missing` hours of the first week have no
    reading."""
    s = Store(path)
    host = s.host()
    s.run(host, first, THIS, util=rules or 10)
    s.run(host, THIS, NOW)
    gpus = [s.card(host, i, first if i < 2 else THIS, NOW) for i in range(cards)]
    alice, bob, carol, dave = (s.process(host, 100 + i, name) for i, name in enumerate(("alice", "bob", "carol",
                                                                                        "dave")))
    for slot in range(first, NOW, HOUR):
        old = slot < THIS
        if BEFORE < slot <= BEFORE + missing * HOUR:
            continue
        for gpu in gpus[:2] if old else gpus:
            used = 1200 if old else 2400
            s.usage(slot, gpu, ACTIVE, used, width=HOUR, joules=used * 300)
            s.usage(slot, gpu, IDLE_HELD, 1000, width=HOUR, joules=80_000)
            s.usage(slot, gpu, TRULY_IDLE, 2600 - used, width=HOUR, joules=1000)
        s.holding(slot, gpus[0], alice, ACTIVE, used, share=used, width=HOUR, mem_mb=8000)
        s.holding(slot, gpus[0], alice, IDLE_HELD, 1000 if old else 500, share=500, width=HOUR)
        s.holding(slot, gpus[1], bob, IDLE_HELD, 500 if old else 1000, share=500, width=HOUR)
        s.holding(slot, gpus[1], carol if old else dave, SQUATTING, 100, width=HOUR)
    return s.save()


@pytest.fixture
def weeks(tmp_path):
    return make(tmp_path / "gua.db")


def compare(path, *args, **options):
    return report_json(path, now=NOW, args=(*args, "--compare"), **options)["compare"]


def figures(compared):
    return {figure["figure"]: figure for figure in compared["figures"]}


def test_text(weeks, expect):
    for name, args in (("", ()), ("-ascii", ("--ascii",))):
        text = report(weeks, now=NOW, args=(*WEEK, "--compare", "--cost", "2.5", *args))
        assert widest(text) <= 80 and text.isascii() == bool(args)
        start = text.index("Compared")
        expect(f"report/compare{name}.txt", text[start:text.index("Per-GPU") - 4])


def test_what_is_compared_is_what_a_report_of_that_window_says(weeks):
    compared = compare(weeks, *WEEK, "--cost", "3")
    for key, since, until in (("now", THIS, NOW - 12 * HOUR), ("before", BEFORE, THIS)):
        alone = report_json(weeks, now=NOW, args=("--since", f"@{since}", "--until", f"@{until}", "--cost", "3"))
        found = {name: figure[key] for name, figure in figures(compared).items()}
        for state in ("active", "idle_held", "truly_idle"):
            assert found[state] == alone["headline"][state]
        assert found["unobserved"] == pytest.approx(1 - alone["window"]["observed"], abs=1e-6)
        assert found["idle_held_gpu_hours"] == alone["waste"]["idle_held_gpu_hours"]
        assert found["idle_held_cost"] == alone["waste"]["cost"]
        assert found["idle_held_energy_kwh"] == alone["waste"]["energy_kwh"]
        suffix = "" if key == "now" else "_before"
        users = {row["identity"]: row for row in compared["identities"]}
        assert {name: row["gpu_seconds" + suffix] for name, row in users.items() if row["gpu_seconds" + suffix]} == \
            {row["identity"]: row["gpu_seconds"] for row in alone["identities"]}
        assert all(users[row["identity"]]["unused_gpu_seconds" + suffix] ==
                   row["idle_held_gpu_seconds"] + row["squatting_gpu_seconds"] for row in alone["identities"])
    assert all(abs(f["now"] - f["before"] - f["change"]) < 2e-6 for f in compared["figures"])


@pytest.mark.parametrize("args, since, until", [
    (("--since", "lastweek"), "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z"),
    (("--since", "yesterday"), "2026-11-14T00:00:00Z", "2026-11-15T00:00:00Z"),
    (("--since", "today"), "2026-11-15T00:00:00Z", "2026-11-15T12:00:00Z"),
    (("--last", "2d"), "2026-11-12T12:00:00Z", "2026-11-14T12:00:00Z")])
def test_the_window_before(weeks, args, since, until):
    window = compare(weeks, *args, "--utc")["window"]
    assert (window["since"], window["until"]) == (since, until)


def test_another_window(weeks):
    def of(text):
        window = report_json(weeks, now=NOW, args=("--last", "1d", "--compare", text, "--utc"))["compare"]["window"]
        return window["since"], window["until"]
    assert of("lastweek") == ("2026-11-09T00:00:00Z", "2026-11-16T00:00:00Z")
    assert of("2026-11-05") == ("2026-11-05T00:00:00Z", "2026-11-06T00:00:00Z")


def test_who_came_and_who_left(weeks):
    rows = {row["identity"]: row for row in compare(weeks, *WEEK)["identities"]}
    assert rows["carol"]["gpu_seconds"] == 0 and rows["carol"]["gpu_seconds_change"] < 0
    assert rows["dave"]["gpu_seconds_before"] == 0 and rows["dave"]["unused_gpu_seconds_change"] == 7 * 24 * 100
    assert rows["alice"]["unused_gpu_seconds_change"] == -7 * 24 * 500
    text = report(weeks, now=NOW, args=(*WEEK, "--compare"))
    line = {name: next(line for line in text[text.index("held h"):].splitlines() if f" {name} " in line)
            for name in rows}
    assert line["carol"].count("gone") == 2 and line["dave"].count("new") == 2
    assert "▼ -50.0%" in line["alice"] and "▲ +100.0%" in line["bob"]


def test_top(weeks):
    text = report(weeks, now=NOW, args=(*WEEK, "--compare", "--top", "2"))
    assert "2 more users: --top 0 shows all" in text
    assert len(report_json(weeks, now=NOW, args=(*WEEK, "--compare", "--top", "2"))["compare"]["identities"]) == 2


def test_equal_windows_have_no_caution(weeks):
    assert compare(weeks, *WEEK)["cautions"] == []


def test_coverage_that_differs_is_said(tmp_path):
    cautions = compare(make(tmp_path / "a.db", missing=48), *WEEK)["cautions"]
    assert cautions == ["100.0% of this window was observed, and 71.4% of the other: compare shares, not hours."]
    caution, = compare(make(tmp_path / "b.db", missing=100), *WEEK)["cautions"]
    assert "40.5% of the other" in caution and "may have been different" in caution


def test_other_differences_are_said(tmp_path):
    short = compare(make(tmp_path / "a.db", first=BEFORE + DAY), *WEEK)["cautions"]
    assert short == ["This window is 7 d 0 h long, and the other 6 d 0 h: compare shares, not hours."]
    cards = compare(make(tmp_path / "b.db", cards=3), *WEEK)["cautions"]
    assert "3 GPUs were observed in this window, and 2 in the other." in cards
    rules = compare(make(tmp_path / "c.db", rules=20), *WEEK)["cautions"]
    assert "The rules that say what is active and held were not the same." in rules


def test_nothing_to_compare_with(tmp_path):
    path = make(tmp_path / "gua.db", first=THIS)
    compared = compare(path, *WEEK)
    assert compared["window"]["empty"] is True and compared["window"]["observed"] is None
    assert all(figure["before"] is None and figure["change"] is None for figure in compared["figures"])
    text = report(path, now=NOW, args=(*WEEK, "--compare"))
    assert "There is no data between Mon 2026-11-02 00:00 UTC and Mon 2026-11-09 00:00" in text


def test_csv(weeks):
    def table(name):
        text = report(weeks, now=NOW, args=(*WEEK, "--compare", "--format", "csv", "--table", name))
        return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    compared = compare(weeks, *WEEK)
    assert [float(row["change"]) for row in table("compare")] == [figure["change"] for figure in compared["figures"]]
    assert [row["identity"] for row in table("compare-users")] == [row["identity"] for row in compared["identities"]]


def test_colour_says_what_is_better(weeks):
    shown = on_terminal(weeks, "--now", f"@{NOW}", *WEEK, "--compare", TERM="xterm").decode()
    assert "\x1b[32m▲ +33.4 points\x1b[0m" in shown   # active
    assert "\x1b[31m▲ +100.0%\x1b[0m" in shown         # bob's idle hours


@pytest.mark.parametrize("args, says", [
    (("--compare", "never"), "--compare: 'never' is not a time"),
    (("--compare", "2027-01"), "--compare: the window starts at"),
    (("--format", "csv", "--table", "compare"), "--table compare needs --compare")])
def test_wrong_usage(weeks, args, says):
    assert says in fails(2, "--db", weeks, "--now", f"@{NOW}", *args)


def test_random_users_add_up(tmp_path):
    """Every user of either window is in the comparison once, whatever the names and their order."""
    rnd = random.Random(5)
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, BEFORE, NOW)
    gpu = s.card(host, 0, BEFORE, NOW)
    hours = {}
    for i in range(60):
        name = "".join(rnd.choice("abAB-_.") for _ in range(rnd.randrange(1, 6)))
        process = s.process(host, i + 1, name)
        for start in (BEFORE, THIS):
            if rnd.random() < 0.6:
                s.usage(start + i * HOUR, gpu, IDLE_HELD, HOUR, width=HOUR)
                s.holding(start + i * HOUR, gpu, process, IDLE_HELD, HOUR, width=HOUR)
                hours.setdefault(name, {BEFORE: 0, THIS: 0})[start] += HOUR
    rows = compare(s.save(), *WEEK)["identities"]
    assert {row["identity"]: {BEFORE: row["gpu_seconds_before"], THIS: row["gpu_seconds"]} for row in rows} == hours
    assert len(rows) == len(hours)


def test_what_is_printed_is_what_other_parts_of_the_report_print(tmp_path):
    """Thirds of a cent and of a tenth of a percent are rounded in the same way in all parts of the report."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, BEFORE, NOW)
    cards = [s.card(host, i, BEFORE, NOW) for i in range(3)]
    alice = s.process(host, 100, "alice")
    for slot in range(BEFORE, NOW, HOUR):
        for gpu in cards:
            for state, seconds in ((ACTIVE, 1190), (IDLE_HELD, 1210), (TRULY_IDLE, 1200)):
                s.usage(slot, gpu, state, seconds, width=HOUR)
            for state, share in ((ACTIVE, 1190), (IDLE_HELD, 1210), (SQUATTING, 0)):
                s.holding(slot, gpu, alice, state, 1200, share=share, width=HOUR)
    path = s.save()
    text = report(path, now=NOW, args=(*WEEK, "--compare", "--cost", "2.50002"))
    cost, = re.findall(r"  cost +([0-9.]+) USD for idle-held", text)
    assert cost == "423.51" and re.search(rf"  idle-held, cost +{cost} +{cost} ", text)
    text = report(path, now=NOW, args=(*WEEK, "--compare", "--user", "alice"))
    for state in ("used", "idle", "idle on busy GPU"):
        share, = re.findall(rf"  {state} +[^ 0-9] +([0-9.]+%)", text)
        assert re.search(rf"  {state} +{share} +{share} +=", text)

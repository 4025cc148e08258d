"""The time line of gua report: as a picture, on the page, and as numbers."""
import csv
import io
import re
import xml.etree.ElementTree as ET

import pytest

from conftest import ROOT, gua
from handmade import ACTIVE, HOUR, IDLE_HELD, TRULY_IDLE, USE_UNKNOWN, Store
from test_html import Page

T = 1793664000  # Tue 2026-11-03 00:00 UTC
DAY = 24 * HOUR
SECONDS = ("active", "idle_held", "truly_idle", "unobserved", "use_unknown")
SVG = "{http://www.w3.org/2000/svg}"


def report(path, *args, since="1d", until=T):
    run = gua("report", "--db", path, "--now", f"@{until}", "--since", since, "--utc", *args)
    assert run.returncode == 0, run.stderr
    return run.stdout


def timeline(path, *args, **window):
    """{gpu index: [{state: seconds, since: ...} of each column]}"""
    lanes = {}
    for row in csv.DictReader(io.StringIO(report(path, "--format", "csv", "--table", "timeline", *args, **window))):
        column = {name: float(row[f"{name}_gpu_seconds"]) for name in SECONDS}
        lanes.setdefault(int(row["gpu_index"]), []).append(column | {"since": row["since"], "until": row["until"]})
    return lanes


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A day of three cards in slots of five minutes: one busy by day, one held idle, and one that came at noon and got
    lost; a host that had no recorder for an hour."""
    store = Store(tmp_path_factory.mktemp("lab") / "lab.db")
    host = store.host(hostname="lab")
    store.run(host, T - DAY, T - 12 * HOUR)
    store.run(host, T - 11 * HOUR, T)
    ann, bob = (store.process(host, pid, user) for pid, user in ((1, "ann"), (2, "bob")))
    cards = [store.card(host, index, T - (12 * HOUR if index == 2 else DAY), T) for index in range(3)]
    for hour in range(24):
        for slot in range(T - DAY + hour * HOUR, T - DAY + (hour + 1) * HOUR, 300):
            if hour == 12:
                continue
            day = 8 <= hour < 18
            store.usage(slot, cards[0], ACTIVE if day else TRULY_IDLE, 300, width=300)
            store.usage(slot, cards[1], IDLE_HELD, 240, width=300)
            store.usage(slot, cards[1], ACTIVE, 60, width=300)
            store.holding(slot, cards[1], ann, IDLE_HELD, 240, width=300)
            store.holding(slot, cards[1], ann, ACTIVE, 60, width=300)
            if day:
                store.holding(slot, cards[0], bob, ACTIVE, 300, width=300)
            if 12 <= hour < 20:
                store.usage(slot, cards[2], USE_UNKNOWN, 300, width=300)
    store.event(host, T - 4 * HOUR, "card-lost", card=cards[2])
    store.event(host, T - 4 * HOUR, "xid", card=cards[2], value=79)
    for minute in range(3):
        store.event(host, T - 2 * HOUR + 60 * minute, "driver-down")
    store.db.commit()
    return store.path


def test_each_card_has_the_seconds_of_its_columns(lab):
    """What the columns have is what the card has in the window, and nothing is counted twice."""
    lanes = timeline(lab)
    assert list(lanes) == [0, 1, 2] and len(lanes[0]) == 144  # columns of ten minutes
    assert [lanes[0][0]["since"], lanes[0][0]["until"]] == ["2026-11-02T00:00:00Z", "2026-11-02T00:10:00Z"]
    sums = {card: {name: sum(column[name] for column in columns) / HOUR for name in SECONDS}
            for card, columns in lanes.items()}
    assert sums[0] == {"active": 9, "idle_held": 0, "truly_idle": 14, "unobserved": 1, "use_unknown": 0}
    assert sums[1] == pytest.approx({"active": 4.6, "idle_held": 18.4, "truly_idle": 0, "unobserved": 1, "use_unknown": 0})
    assert sums[2] == {"active": 0, "idle_held": 0, "truly_idle": 0, "unobserved": 5, "use_unknown": 7}
    for columns in lanes.values():
        for column in columns:
            assert sum(column[name] for name in SECONDS) in (600, 0)
    assert all(column["unobserved"] == 0 for column in lanes[2][:72])  # it was not there yet
    assert lanes[1][0]["idle_held"] == 480 and lanes[0][71]["active"] == 600 and lanes[0][72]["unobserved"] == 600


def test_users_have_the_time_that_they_held(lab):
    lanes = timeline(lab, "--user", "ann")
    assert list(lanes) == [1]
    assert sum(column["idle_held"] for column in lanes[1]) == pytest.approx(18.4 * HOUR)
    assert list(timeline(lab, "--user", "bob")) == [0]
    found = Page(report(lab, "--format", "html", "--user", "bob"))
    assert "GPU 0" in found.text and "GPU 1" not in found.text
    assert "used 37.5%, unobserved 4.2%" in found.text


def test_some_cards(lab):
    assert list(timeline(lab, "--card", "1")) == [1]


@pytest.mark.same_path
@pytest.mark.parametrize("hours,width,n", [(1, 60, 60), (3, 60, 180), (6, 120, 180), (24, 600, 144), (7 * 24, 3600, 168),
                                           (31 * 24, 6 * 3600, 124), (365 * 24, 2 * 86400, 183)])
def test_the_width_of_columns(tmp_path, hours, width, n):
    """60 to 200 columns; what is older than a day is kept more coarsely, and a column never cuts a slot."""
    store = Store(tmp_path / "lab.db")
    host = store.host()
    store.run(host, T - hours * HOUR, T)
    card = store.card(host, 0, T - hours * HOUR, T)
    slot = 60 if hours <= 24 else 3600
    for at in range(T - hours * HOUR, T, slot):
        store.usage(at, card, ACTIVE if at % 7200 < 3600 else IDLE_HELD, slot, width=slot)
    store.db.commit()
    columns = timeline(store.path, since=f"{hours}h")[0]
    assert len(columns) == n
    assert sum(column["active"] for column in columns) == hours // 2 * HOUR  # the last hour is not
    assert sum(column["idle_held"] for column in columns) == (hours + 1) // 2 * HOUR
    assert all(sum(column[name] for name in SECONDS) <= width for column in columns)
    first = "2025-11-03 00:00" if hours > 183 * 24 else {1: "Mon 11-02 23:00", 7 * 24: "Tue 10-27 00:00"}.get(hours, "")
    assert f'<th scope="row">{first}' in report(store.path, "--format", "html", since=f"{hours}h")


def test_old_data_is_not_drawn_finer_than_it_is(tmp_path):
    store = Store(tmp_path / "lab.db")
    host = store.host()
    store.run(host, T - 400 * DAY, T)
    card = store.card(host, 0, T - 400 * DAY, T)
    for hour in range(3):
        store.usage(T - 400 * DAY + hour * HOUR, card, ACTIVE, HOUR, width=HOUR)
    store.db.commit()
    columns = timeline(store.path, "--until", f"@{T - 400 * DAY + 3 * HOUR}", since=f"@{T - 400 * DAY}")[0]
    assert [column["active"] for column in columns] == [HOUR] * 3


def test_a_zone_with_its_own_days(lab):
    """Columns are the same in every zone; what is named below them is local."""
    run = gua("report", "--db", lab, "--now", f"@{T}", "--since", "1d", "--format", "svg", env={"TZ": "Asia/Kolkata"})
    labels = [text.text for text in ET.fromstring(run.stdout).iter(f"{SVG}text") if text.get("class") == "axis"]
    assert labels[:3] == ["06:00", "09:00", "12:00"] and "11-03" in labels


def test_the_picture(lab, expect):
    """As it was looked at; a picture needs nothing else, and has its text."""
    source = report(lab, "--format", "svg")
    expect("report/timeline.svg", source)
    root = ET.fromstring(source)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    ids = {element.get("id"): element for element in root.iter() if element.get("id")}
    for name in root.get("aria-labelledby").split():
        assert ids[name].text
    assert not [element for element in root.iter() if element.tag in (f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject")]
    assert "prefers-color-scheme: dark" in source and "@import" not in source
    assert all(place.startswith("#") for place in re.findall(r"url\(([^)]*)\)", source))


def test_the_page(lab, expect):
    source = report(lab, "--format", "html")
    expect("report/timeline.html", re.sub(r"<style>.*?</style>", "<style></style>", source, flags=re.S))
    found = Page(source)
    assert "XID 79 Mon 11-02 20:00" in found.text
    assert "driver down, 3 times, the last Mon 11-02 22:02" in found.text
    assert "no recorder" in found.text
    for word in ("active", "idle-held", "truly-idle", "use unknown", "unobserved", "card lost"):
        assert word in found.text.partition("What each GPU did")[0]


def test_the_page_with_all_of_its_parts(lab, expect):
    """Comparison, bill, energy, two levels of holders; of one user, what differs."""
    for name, args in (("page", ["--compare", "--by", "user,process", "--longest", "3"]), ("page-user", ["--user", "ann"])):
        source = report(lab, "--format", "html", "--cost", "2", "--energy-price", "0.3", "--co2", "300", *args, since="12h")
        Page(source)
        expect(f"report/{name}.html", re.sub(r"<style>.*?</style>", "<style></style>", source, flags=re.S))


@pytest.mark.any_build
def test_the_picture_of_the_readme(demo, request):
    """docs/report.svg is what the command in the README draws of the simulated lab."""
    source = report(demo.db, "--format", "svg", since="2026-10-26", until=1794182400)
    path = ROOT / "docs/report.svg"
    if request.config.getoption("--update"):
        path.write_text(source)
    assert source == path.read_text() and "SIMULATED DATA" in source


def test_nothing_is_drawn_that_does_not_occur(tmp_path):
    store = Store(tmp_path / "lab.db")
    host = store.host()
    store.run(host, T - HOUR, T)
    card = store.card(host, 0, T - HOUR, T)
    for minute in range(60):
        store.usage(T - HOUR + 60 * minute, card, TRULY_IDLE, 60)
    store.db.commit()
    root = ET.fromstring(report(store.path, "--format", "svg", since="1h"))
    assert [path.get("class") for path in root.iter(f"{SVG}path") if path.get("class")] == ["truly_idle"]
    assert not [use for use in root.iter(f"{SVG}use")]


def test_too_many_cards(tmp_path):
    store = Store(tmp_path / "lab.db")
    host = store.host()
    store.run(host, T - HOUR, T)
    for index in range(257):
        store.usage(T - HOUR, store.card(host, index, T - HOUR, T), ACTIVE, 60)
    store.db.commit()
    assert "too many GPUs for a time line: --host, --card or --model choose some" in report(
        store.path, "--format", "html", since="1h")
    assert timeline(store.path, since="1h") == {} and len(timeline(store.path, "--card", "7", since="1h")) == 1


def test_a_damaged_store(tmp_path):
    """Sums, slots and events that cannot be: no crash, no endless picture."""
    store = Store(tmp_path / "lab.db")
    host = store.host()
    store.run(host, T - HOUR, T)
    card = store.card(host, 0, T - HOUR, T)
    store.usage(T - HOUR, card, ACTIVE, 1e9)
    store.usage(T - 1800, card, IDLE_HELD, -50)
    for at in range(3000):
        store.event(host, T - HOUR + at, ["xid", "gap", "suspect"][at % 3], card=card if at % 2 else None, value=2 ** 62)
    store.event(host, -2 ** 40, "xid", card=card)
    store.db.commit()
    for form in ("html", "svg"):
        assert len(report(store.path, "--format", form, since="1h")) < 200_000
    assert len(timeline(store.path, since="1h")[0]) == 60


def test_parts_without_content_are_left_out(lab):
    """A user who held nothing in the window: no heading without anything below it, in text and on the page."""
    window = {"since": f"@{T - DAY}", "until": T}
    args = ("--until", f"@{T - 20 * HOUR}", "--user", "bob", "--cost", "2", "--co2", "300")
    text = report(lab, *args, **window)
    assert "Nothing was held" in text
    assert re.findall(r"^§\d+ (\w+)", text, re.M) == ["Headline", "By"]
    found = Page(report(lab, *args, "--format", "html", **window))
    assert [section["aria-labelledby"] for section in found.of("section")] == ["headline", "holders"]
    assert not found.of("table")
    ET.fromstring(report(lab, *args, "--format", "svg", **window))

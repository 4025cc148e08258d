"""gua report --longest and gua export --what spell: which spells, in which order, in every format."""
import random
import re
import sqlite3

import pytest

from handmade import ENDED_ACTIVE, ENDED_EXITED, ENDED_RELEASED, ENDED_STOPPED, HOUR, IDLE_HELD, Store, VIEWS
from test_export import rows as exported
from test_report import fails, report, report_csv, report_json

T = 1793620800  # Mon 2026-11-02 12:00 UTC
DAY = 24 * HOUR
WEEK = ("--since", "7d", "--utc")
HEADING = "Longest idle spells"


def lab(path, hostname="lab", machine_id="m1", live=True):
    """A store with a day of two cards, and its ids: (store, cards, processes)."""
    s = Store(path)
    host = s.host(hostname, machine_id)
    s.run(host, T - DAY, T + HOUR, ended=None if live else T + HOUR)
    cards = [s.card(host, i, T - DAY, T + HOUR, uuid=f"GPU-{hostname}-{i}") for i in range(2)]
    for card in cards:
        for slot in range(T - DAY, T + HOUR, HOUR):
            s.usage(slot, card, IDLE_HELD, HOUR, width=HOUR)
    processes = [
        s.process(host, 100, "alice", "python -m ipykernel_launcher", started=T - 2 * DAY,
                  notebook="jupyter:0e1f", notebook_path="/home/alice/thesis/plots.ipynb"),
        s.process(host, 200, "bob", "python train.py", job="slurm:42", tag="grant-7"),
        s.process(host, 300, "_dead", "")]
    return s, cards, processes


@pytest.fixture
def store(tmp_path):
    """Spells of all kinds; the recorder is at work."""
    s, (a, b), (alice, bob, dead) = lab(tmp_path / "gua.db")
    s.spell(a, alice, T - 20 * HOUR, T - 12 * HOUR, ENDED_ACTIVE, mem_mib=8192, joules=1.5e6)
    s.spell(a, alice, T - 11 * HOUR, T + HOUR, None, squatting=2 * HOUR, unobserved=3 * HOUR, mem_mib=9216)
    s.spell(b, bob, T - 10 * HOUR, T - 4.5 * HOUR, ENDED_RELEASED)
    s.spell(b, bob, T - 4 * HOUR, T - 3 * HOUR, ENDED_STOPPED)
    s.spell(b, dead, T - 2 * HOUR, T - 1.5 * HOUR, ENDED_EXITED)
    s.spell(b, bob, T + HOUR - 299, T + HOUR, None)  # not five minutes yet
    return s.save()


def test_text(store, expect):
    expect("report/longest.txt", section(report(store, args=WEEK)))


def section(text):
    """The section of the spells, without its number."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if HEADING in line)
    return "\n".join([HEADING, *lines[first + 1:lines.index("", first)]]) + "\n"


def test_json(store):
    document = report_json(store, args=WEEK)
    assert document["rules"]["spell_seconds"] == 300
    found = document["longest"]
    assert [(spell["user"], spell["gpu_index"], spell["gpu_seconds"] / HOUR, spell["how_ended"]) for spell in found] == [
        ("alice", 0, 9, None), ("alice", 0, 8, "active"), ("bob", 1, 5.5, "released"), ("bob", 1, 1, "stopped"),
        ("_dead", 1, 0.5, "exited")]
    assert found[0] == {
        "user": "alice", "pid": 100, "started": "2026-10-31T12:00:00Z", "host": "lab", "gpu": "GPU-lab-0", "gpu_index": 0,
        "peak_mem_bytes": 9 << 30, "begin": "2026-11-02T01:00:00Z", "end": None, "seconds": 12 * HOUR,
        "idle_seconds": 9 * HOUR, "squatting_seconds": 2 * HOUR, "unobserved_seconds": 3 * HOUR, "gpu_seconds": 9 * HOUR,
        "idle_cost": None, "energy_joules": None, "how_ended": None, "command": "python -m ipykernel_launcher", "notebook": "jupyter:0e1f",
        "notebook_path": "/home/alice/thesis/plots.ipynb", "job": None, "job_name": None, "account": None,
        "container": None, "pod": None, "unit": None, "login": None, "session": None, "tag": None}
    assert found[1]["energy_joules"] == 1.5e6 and found[1]["end"] == "2026-11-02T00:00:00Z"
    assert found[2]["job"] == "slurm:42" and found[2]["tag"] == "grant-7"


def test_csv(store):
    table = report_csv(store, args=(*WEEK, "--table", "longest", "--longest", "2"))
    document = report_json(store, args=(*WEEK, "--longest", "2"))["longest"]
    assert [list(line) for line in table] == [list(item) for item in document] and len(table) == 2
    assert table[0]["end"] == "" and table[0]["seconds"] == str(12 * HOUR) and table[1]["how_ended"] == "active"


@pytest.mark.same_path
@pytest.mark.parametrize("n", [0, 1, 3, 100])
def test_number(store, n):
    assert len(report_json(store, args=(*WEEK, "--longest", n))["longest"]) == min(n, 5)
    text = report(store, args=(*WEEK, "--longest", n))
    assert (HEADING in text) == (n > 0)
    assert ("more: --longest N shows N of them" in text) == (0 < n < 5)


def test_defaults(tmp_path):
    s, (a, _), (alice, _, _) = lab(tmp_path / "gua.db")
    for i in range(30):
        s.spell(a, alice, T - 20 * HOUR + 1800 * i, T - 20 * HOUR + 1800 * i + 300 + i)
    path = s.save()
    assert len(report_json(path, args=WEEK)["longest"]) == 20
    text = section(report(path, args=WEEK))
    assert text.count("plots.ipynb") == 5 and "25 more" in text


def test_nothing_is_said_without_spells(tmp_path):
    path = lab(tmp_path / "gua.db")[0].save()
    text = report(path, args=WEEK)
    assert HEADING not in text and "idle spells" not in text
    assert report_json(path, args=WEEK)["longest"] == []
    assert report_csv(path, args=(*WEEK, "--table", "longest")) == []


def test_time_within_the_window(store):
    """Begin and length are those of the whole spell, GPU-hours those of the window; without readings in it, by share."""
    window = ("--since", "2026-11-02 00:00", "--until", "2026-11-02 03:00", "--utc")
    found = report_json(store, args=window)["longest"]
    assert [(spell["begin"], spell["seconds"], spell["gpu_seconds"]) for spell in found] == [
        ("2026-11-02T01:00:00Z", 12 * HOUR, 2 * HOUR * 9 / 12), ("2026-11-02T02:00:00Z", 5.5 * HOUR, HOUR)]
    assert "GPU-h is the idle time within the window" in " ".join(report(store, args=window).split())
    # A spell that ended when the window begins is not in it.
    assert report_json(store, args=("--since", "2026-11-01 23:00", "--until", "2026-11-02 01:00", "--utc"))["longest"][0][
        "gpu_seconds"] == HOUR


def test_equal_in_the_window_the_longer_one_first(store):
    """In an hour-long window everybody has an hour."""
    found = report_json(store, args=("--since", "2026-11-02 02:00", "--until", "2026-11-02 03:00", "--utc"))["longest"]
    assert [spell["user"] for spell in found] == ["bob", "alice"]  # alice's hour has time without readings


def test_a_stopped_recorder(tmp_path):
    """A spell that went on is in both tables then, and is counted once."""
    s, (a, b), (alice, bob, _) = lab(tmp_path / "gua.db", live=False)
    s.spell(a, alice, T - HOUR, T + HOUR, None)
    s.spell(a, alice, T - HOUR, T + HOUR, ENDED_STOPPED)
    path = s.save()
    assert [spell["how_ended"] for spell in report_json(path, args=WEEK)["longest"]] == ["stopped"]
    assert "How 1 of them ended was not seen, because the recorder stopped." in report(path, args=WEEK)


def test_a_killed_recorder(tmp_path):
    """Its open spells ended with it, although nobody has noted that yet."""
    s, (a, _), (alice, _, _) = lab(tmp_path / "gua.db")
    s.spell(a, alice, T - HOUR, T + HOUR, None)
    path = s.save()
    later = report_json(path, now=T + 5 * HOUR, args=WEEK)["longest"]
    assert [(spell["how_ended"], spell["end"]) for spell in later] == [("stopped", "2026-11-02T13:00:00Z")]


def test_several_hosts(tmp_path):
    paths = []
    for name in ("north", "south"):
        s, (a, b), (alice, bob, _) = lab(tmp_path / f"{name}.db", name, name)
        s.spell(a, alice, T - 9 * HOUR, T - (3 if name == "north" else 2) * HOUR)
        paths.append(s.save())
    found = report_json(*paths, args=WEEK)["longest"]
    assert [(spell["host"], spell["gpu"]) for spell in found] == [("south", "GPU-south-0"), ("north", "GPU-north-0")]
    assert "south 0" in section(report(*paths, args=WEEK))


def test_random_spells(tmp_path):
    """The longest of many, as sorting them all gives them."""
    rng = random.Random(7)
    s, cards, processes = lab(tmp_path / "gua.db")
    all_spells = []
    for i in range(500):
        begin = T - 2 * DAY + rng.randrange(2 * DAY)
        end = begin + rng.choice([300, 3000, 30000]) + i / 1000
        unobserved = rng.choice([0, 0, 100])
        s.spell(rng.choice(cards), rng.choice(processes), begin, end, rng.randrange(4), unobserved=unobserved)
        all_spells.append((begin, end, end - begin - unobserved))
    path = s.save()
    since, until = T - 10 * HOUR, T - 2 * HOUR
    inside = sorted((round(idle * (min(end, until) - max(begin, since)) / (end - begin), 3)
                     for begin, end, idle in all_spells if min(end, until) > max(begin, since)), reverse=True)
    found = report_json(path, args=("--since", f"@{since}", "--until", f"@{until}", "--longest", 50))["longest"]
    assert [spell["gpu_seconds"] for spell in found] == pytest.approx(inside[:50], abs=0.0011)
    assert len(report_json(path, args=("--since", f"@{since}", "--until", f"@{until}", "--longest", 1000))["longest"]) \
        == len(inside)


def test_hostile_texts_and_numbers(tmp_path):
    s, (a, b), _ = lab(tmp_path / "gua.db")
    host = 1
    evil = s.process(host, 1, "\x1b]0;x\x07=cmd", "\x1b[2J" + "é" * 200, notebook_path="a\nb\t" + "\u202e")
    s.spell(a, evil, T - 5 * HOUR, T - HOUR, mem_mib=1)
    s.spell(b, 999999, T - 4 * HOUR, T - HOUR)  # a process that is not there
    s.db.executemany("INSERT INTO spell VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)", [
        (2**63 - 1, a, -2**63, 2**63 - 1, 2**63 - 1, -5, -5, 77), (T * 1000, a, T * 1000 + 5, 1, 1, 1, 1, 0),
        (T * 1000 + 1, 12345, 0, 5, 5, 5, 5, 1), (T * 1000 + 2, a, "x", "y", "z", "1", "2", "3")])
    path = s.save()
    text = report(path, args=WEEK)
    assert "\x1b" not in text and "\u202e" not in text
    users = [spell["user"] for spell in report_json(path, args=(*WEEK, "--longest", 100))["longest"]]
    assert "" in users and any("cmd" in user for user in users)
    table = report_csv(path, args=(*WEEK, "--table", "longest"))
    assert not any(value.startswith(("=", "+", "@")) for line in table for value in line.values())


def test_html(store):
    page = report(store, args=(*WEEK, "--format", "html", "--longest", "2"))
    assert HEADING in page and "plots.ipynb" in page and "3 more: --longest" in page
    assert HEADING not in report(store, args=(*WEEK, "--format", "html", "--longest", "0"))


@pytest.mark.parametrize("only, left", [
    (("--user", "bob"), [5.5, 1]), (("--user", "alice,bob"), [9, 8, 5.5, 1]), (("--card", "1"), [5.5, 1, 0.5])])
def test_restricted(store, only, left):
    found = report_json(store, args=(*WEEK, *only))["longest"]
    assert [spell["gpu_seconds"] / HOUR for spell in found] == left


def test_wrong_usage(store):
    assert "--longest" in fails(2, "--db", store, "--longest", "-1")
    assert "--longest" in fails(2, "--db", store, "--longest", "many")


def test_export(store):
    table = exported(store, "--what", "spell")
    assert [(line["begin"], line["end"], line["how_ended"]) for line in table] == [
        ("2026-11-01T16:00:00Z", "2026-11-02T00:00:00Z", "active"),
        ("2026-11-02T02:00:00Z", "2026-11-02T07:30:00Z", "released"),
        ("2026-11-02T08:00:00Z", "2026-11-02T09:00:00Z", "stopped"),
        ("2026-11-02T10:00:00Z", "2026-11-02T10:30:00Z", "exited"), ("2026-11-02T01:00:00Z", "", "")]
    assert table[-1]["unobserved_seconds"] == str(3 * HOUR) and table[-1]["user"] == "alice"
    assert len(exported(store, "--what", "spell", "--since", "2026-11-02 08:00", "--utc")) == 3


def test_the_view_agrees(store):
    with sqlite3.connect(store) as db:
        db.executescript(VIEWS)
        assert db.execute("SELECT user, idle_hours, how_ended FROM idle_spells").fetchall() == [
            ("alice", 9.0, None), ("alice", 8.0, "active"), ("bob", 5.5, "released"), ("bob", 1.0, "stopped"),
            ("_dead", 0.5, "exited")]


def test_cost(store):
    """GPU-hours at the price of the card; none without a price."""
    assert "  cost" not in section(report(store, args=WEEK))
    assert all(spell["idle_cost"] is None for spell in report_json(store, args=WEEK)["longest"])
    spells = report_json(store, args=(*WEEK, "--cost", "2.5"))["longest"]
    assert spells
    for spell in spells:
        assert spell["idle_cost"] == pytest.approx(2.5 * spell["gpu_seconds"] / 3600, abs=1e-6)
    text = section(report(store, args=(*WEEK, "--cost", "2.5", "--currency", "EUR")))
    assert re.search("GPU-h +cost", text.splitlines()[1]) and max(map(len, text.splitlines())) <= 80
    assert "cost is GPU-h at the price of the GPU, in EUR." in " ".join(text.split())

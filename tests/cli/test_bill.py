"""Money and energy: prices by name, a bill whose lines add up to the last cent, energy by share."""
import csv
import io
import json
import random
import re
import sqlite3
from decimal import Decimal

import jsonschema
import pytest

from conftest import ROOT, gua
from handmade import ACTIVE, HOUR, IDLE_HELD, SQUATTING, TRULY_IDLE, UNOBSERVED, USE_UNKNOWN, Store
from test_truth import INTERVAL, TICKS, WALL, random_scenario

T = 1793620800  # Mon 2026-11-02 12:00 UTC
SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())
CONFIG = """\
[money]
currency = EUR
energy_price = 0.30
co2_g_per_kwh = 380
[price]
"NVIDIA A100*" = 2.50
*a6000 = 0.335
[groups]
vision = alice carol
"""


@pytest.fixture
def report(tmp_path):
    """report(STORE, *ARGS, text=CONFIG) runs gua report with a configuration."""
    def run(db, *args, text=CONFIG, now=T + HOUR):
        (tmp_path / "gua.conf").write_text(text)
        result = gua("report", "--db", db, "--now", f"@{now}", "--since", "1d", "--config", tmp_path / "gua.conf", *args)
        assert result.returncode == 0, result.stderr
        return result.stdout
    return run


def document(text):
    found = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


@pytest.fixture
def lab(tmp_path):
    """An hour: alice trains, carol squats beside her and then holds, bob holds; one card is free, then lost; one has no
    price. The free card shows what a card takes without work."""
    s = Store(tmp_path / "lab.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    names = ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "NVIDIA RTX A6000", "Tesla T4")
    busy, held, free, other = (s.card(host, i, T, T + HOUR, name=name) for i, name in enumerate(names))
    alice, bob, carol = (s.process(host, 100 + i, user) for i, user in enumerate(("alice", "bob", "carol")))
    for minute in range(60):
        t, active = T + 60 * minute, minute < 28
        s.usage(t, busy, ACTIVE if active else IDLE_HELD, 60, joules=60 * (300 if active else 80))
        s.holding(t, busy, alice, ACTIVE if active else IDLE_HELD, 60, share=60 if active else 41)
        s.holding(t, busy, carol, SQUATTING if active else IDLE_HELD, 60, share=0 if active else 18)
        s.usage(t, held, IDLE_HELD if minute < 50 else TRULY_IDLE, 60, joules=60 * (70 if minute < 50 else 40))
        if minute < 50:
            s.holding(t, held, bob, IDLE_HELD, 60, share=60)
        s.usage(t, free, TRULY_IDLE if minute < 30 else UNOBSERVED, 60, joules=60 * 20 if minute < 30 else None)
        s.usage(t, other, IDLE_HELD, 60)
        s.holding(t, other, bob, IDLE_HELD, 60, share=60)
    return s.save()


def test_bill(lab, report, expect):
    text = report(lab)
    expect("report/bill.txt", text[text.index("§2"):text.index("\nRules")])
    assert max(map(len, text.splitlines())) <= 80
    expect("report/bill.csv", report(lab, "--format", "csv", "--table", "bill"))


def test_hours_of_the_bill_are_those_of_the_users(tmp_path, report):
    """Rounded together they would differ from the table of users: 0.34 and 0.33 beside 0.33 and 0.33."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    for user in ("ann", "ben", "cat"):
        s.holding(T, card, s.process(host, 100, user), IDLE_HELD, 1200, share=1200, width=HOUR)
    s.usage(T, card, IDLE_HELD, HOUR, width=HOUR)
    text = report(s.save())
    shares = re.findall(r"^  (ann|ben|cat) .* (\d+\.\d\d) +\d+\.\d\d$", text.split("By user")[1].split("§")[0], re.M)
    bill = re.findall(r"^  (ann|ben|cat) +(\d+\.\d\d) ", text.split("Bill, ")[1], re.M)
    assert sorted(bill) == sorted(shares) == [("ann", "0.33"), ("ben", "0.33"), ("cat", "0.33")]


def test_a_user_without_use_who_pays_for_active_time_is_explained(tmp_path, report):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    s.usage(T, card, ACTIVE, HOUR, width=HOUR)
    s.holding(T, card, s.process(host, 1, "ann"), ACTIVE, HOUR, share=3500, width=HOUR)
    s.holding(T, card, s.process(host, 2, "dave"), SQUATTING, HOUR, share=100, width=HOUR)
    said = " ".join(report(s.save()).split())
    assert "active of dave, who used nothing: a GPU was active for moments" in said and "active of ann" not in said


def test_exact_figures(lab, report):
    found = document(report(lab, "--json"))
    lines = {line["identity"] or line["line"]: line for line in found["bill"]["lines"]}
    assert lines["alice"]["cost"] == {"active": pytest.approx(2.5 * 28 / 60, abs=1e-6), "use_unknown": 0, "reserved": None, "truly_idle": 0,
                                      "idle_held": pytest.approx(2.5 * 32 * 41 / 3600, abs=1e-6), "unobserved": 0,
                                      "total": pytest.approx(2.5 * 28 / 60 + 2.5 * 32 * 41 / 3600, abs=1e-6)}
    assert lines["carol"]["squatting_cost"] == pytest.approx(2.5 * 28 / 60, abs=1e-6)
    assert lines["bob"]["cost"]["total"] == pytest.approx(2.5 * 50 / 60, abs=1e-6)
    assert lines["bob"]["unpriced_gpu_seconds"] == 3600
    assert lines["unattributed"]["cost"]["total"] == pytest.approx(2.5 * 32 / 3600, abs=1e-6)
    assert lines["free"]["cost"]["total"] == pytest.approx(2.5 / 6 + 0.335 / 2, abs=1e-6)
    assert lines["unobserved"]["cost"]["total"] == pytest.approx(0.335 / 2, abs=1e-6)
    assert lines["total"]["cost"]["total"] == pytest.approx(2 * 2.5 + 0.335, abs=1e-6)
    assert found["waste"]["cost"] == lines["total"]["cost"]["idle_held"]
    assert [card["price_per_gpu_hour"] for card in found["gpus"]] == [2.5, 2.5, 0.335, None]
    assert found["gpus"][3]["cost"]["total"] is None
    users = {row["identity"]: row for row in found["identities"]}
    assert users["alice"]["cost"]["total"] == lines["alice"]["cost"]["total"]


def test_energy_by_share_with_the_floor_apart(lab, report):
    """A card without any work takes 40 W, as the other card of its model showed; the T4 told no energy."""
    found = document(report(lab, "--json"))
    lines = {line["identity"] or line["line"]: line for line in found["bill"]["lines"]}
    kwh = lambda watts, minutes: pytest.approx(watts * minutes / 60 / 1000, abs=1e-6)
    assert lines["alice"]["energy_kwh"] == kwh(1, 300 * 28 + 80 * 32 * 41 / 60)
    assert lines["alice"]["energy_floor_kwh"] == kwh(40, 28 + 32 * 41 / 60)
    assert lines["bob"]["energy_kwh"] == kwh(70, 50) and lines["bob"]["energy_floor_kwh"] == kwh(40, 50)
    assert lines["bob"]["energy_cost"] == pytest.approx(0.3 * lines["bob"]["energy_kwh"], abs=1e-6)
    assert lines["bob"]["co2_kg"] == pytest.approx(0.38 * lines["bob"]["energy_kwh"], abs=1e-6)
    assert lines["free"]["energy_kwh"] == kwh(1, 40 * 10 + 20 * 30)
    assert lines["unobserved"]["energy_kwh"] is None
    assert lines["total"]["energy_kwh"] == kwh(1, 300 * 28 + 80 * 32 + 70 * 50 + 40 * 10 + 20 * 30)


def test_no_price_is_guessed(lab, report):
    none = document(report(lab, "--json", text=""))
    assert none["bill"]["currency"] is None and none["waste"]["currency"] is None
    assert all(line["cost"]["total"] is None for line in none["bill"]["lines"])
    assert "Bill" not in report(lab, text="") and "cost" not in report(lab, text="")
    # A price that no card has.
    text = report(lab, text="[price]\nH100* = 4\n")
    assert "  cost        - (no GPU has a price; see the bill)\n" in text
    assert "No price is known for A100-SXM4-80GB (2 GPUs), RTX A6000 (1 GPU), Tesla T4 (1" in text
    # The first pattern that matches counts; a part of a name is not the name.
    found = document(report(lab, "--json", text="[price]\n*T4 = 1\n*a100* = 3\n*A100-SXM4-80GB = 9\nA6000 = 5\n"))
    assert [card["price_per_gpu_hour"] for card in found["gpus"]] == [3, 3, None, 1]
    # One price for all.
    found = document(report(lab, "--json", "--cost", "0.125"))
    assert {card["price_per_gpu_hour"] for card in found["gpus"]} == {0.125}
    assert "for idle-held time at 0.125 EUR per GPU-hour" in report(lab, "--cost", "0.125")


def test_energy_alone(lab, report):
    text = re.sub(" +", " ", report(lab, "--co2", "400", text="").replace("\n  ", " "))
    assert "kg CO2" in text
    assert "Bill" not in text and "§5 Energy" in text and "CO2 kg" in text


def test_a_mig_instance_has_a_price_of_its_own(tmp_path, report):
    """It is a part of a card. Its use is not known: its time is divided by presence."""
    s = Store(tmp_path / "mig.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    name = "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
    one, two = (s.card(host, 0, T, T + HOUR, uuid=f"MIG-{i}", parent="GPU-0", mig=i, name=name) for i in range(2))
    alice, again, bob = (s.process(host, 100 + i, user) for i, user in enumerate(("alice", "alice", "bob")))
    for minute in range(60):
        t = T + 60 * minute
        for card in one, two:
            s.usage(t, card, USE_UNKNOWN, 60)
        s.holding(t, one, alice, USE_UNKNOWN, 60)
        s.holding(t, one, again, USE_UNKNOWN, 60, presence=0)
        if minute < 30:
            s.holding(t, one, bob, USE_UNKNOWN, 60)
    db = s.save()
    assert document(report(db, "--json"))["gpus"][0]["price_per_gpu_hour"] is None
    found = document(report(db, "--json", text='[price]\nNVIDIA A100* = 9\n"*mig 1g.*" = 0.3\n'))
    lines = {line["identity"] or line["line"]: line["cost"] for line in found["bill"]["lines"]}
    assert found["gpus"][0]["price_per_gpu_hour"] == 0.3
    assert lines["alice"]["use_unknown"] == pytest.approx(0.2, abs=1e-6)
    assert lines["bob"]["use_unknown"] == pytest.approx(0.1, abs=1e-6)
    assert lines["unattributed"]["use_unknown"] == pytest.approx(0.3, abs=1e-6)
    assert lines["total"]["total"] == pytest.approx(0.6, abs=1e-6)
    found = document(report(db, "--json", "--user", "bob", text='[price]\n"*mig 1g.*" = 0.3\n'))
    assert found["bill"]["lines"][0]["cost"]["use_unknown"] == pytest.approx(0.1, abs=1e-6)


def test_groups_have_lines_of_their_own(lab, report):
    lines = document(report(lab, "--json", "--by", "group"))["bill"]["lines"]
    assert [line["identity"] for line in lines if line["line"] == "identity"] == ["vision", None]
    assert "  (no group) " in report(lab, "--by", "group")


def test_a_report_of_users_bills_them_alone(lab, report):
    """Others' money is not theirs, and neither is free time. Their amounts are those of the whole bill."""
    whole = {line["identity"]: line for line in document(report(lab, "--json"))["bill"]["lines"]}
    found = document(report(lab, "--json", "--user", "alice", "--user", "carol"))
    lines = found["bill"]["lines"]
    assert [line["identity"] or line["line"] for line in lines] == ["alice", "carol", "held"]
    assert lines[0] == whole["alice"] and lines[1] == whole["carol"]
    assert found["waste"]["cost"] == pytest.approx(lines[2]["cost"]["idle_held"], abs=1e-6)
    text = report(lab, "--user", "alice")
    bill = table(text, "Bill", "cost")
    assert bill == {"alice": bill["held"], "held": bill["held"]} and "truly-idle" not in text[text.index("Bill"):]
    # Of cards: all of their time.
    lines = document(report(lab, "--json", "--card", "0"))["bill"]["lines"]
    assert lines[-1]["line"] == "total" and lines[-1]["cost"]["total"] == 2.5


def test_many_users(tmp_path, report):
    s = Store(tmp_path / "many.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    s.usage(T, card, ACTIVE, 60)
    for i in range(13):
        s.holding(T, card, s.process(host, 100 + i, f"user{i:02}"), ACTIVE, 60, share=60 / 13)
    text = report(s.save())
    lines = table(text, "Bill", "cost")
    assert list(lines)[10] == "(3 more)" and len(lines) == 14
    assert sum(lines[name] for name in list(lines)[:11]) == lines["held"]


# What is printed adds up, to the last cent.

def table(text, section, title, last=True):
    """{label: the number below `title`} of the first table of a section; numbers end where their title does."""
    part = re.split(rf"(?m)^§\d+ {section}.*\n", text)[1]
    rows = [line for line in re.split(r"(?m)^§", part)[0].splitlines()]
    head = next(i for i, line in enumerate(rows) if re.search(rf"(^|  ){re.escape(title)}(  |$)", line))
    end = rows[head].index("  " + title) + 2 + len(title) if "  " + title in rows[head] else len(title)
    found = {}
    for line in rows[head + 1:]:
        match = re.match(r"^(  +\S.*?)  +[-\d]", line)
        if not match or len(line) < end or line[end - 1] == " ":
            break
        number = line[:end].split()[-1]
        found[match.group(1)[2:]] = Decimal(0 if number == "-" else number)
    return found


def cents(number):
    """The nearest cents below and above."""
    return {Decimal(int(100 * number + shift)) / 100 for shift in (-1, 0, 1, 2)}


def check_bill(text, found):
    cost, active, idle = (table(text, "Bill", title) for title in ("cost", "active", "idle"))
    named = [label for label in cost if label not in ("held", "not attributed", "truly-idle", "unobserved", "total")]
    unknown = table(text, "Bill", "unknown") if "unknown" in text[text.index("Bill"):text.index("Energy")] else {}
    other = lambda label: unknown.get(label, 0)
    for label in named + ["held", "not attributed"]:
        assert cost.get(label, 0) == active.get(label, 0) + idle.get(label, 0) + other(label)
    for column in cost, active, idle:
        assert sum(column[label] for label in named) == column.get("held", 0)
        rest = sum(column.get(label, 0) for label in ("held", "not attributed", "truly-idle", "unobserved"))
        assert rest == column["total"]
    exact = {line["identity"] or line["line"]: line["cost"]["total"] or 0 for line in found["bill"]["lines"]}
    labels = {"unattributed": "not attributed", "free": "truly-idle"}
    for label, number in exact.items():
        assert cost.get(labels.get(label, label), 0) in cents(number), label
    assert abs(float(cost["total"]) - exact["total"]) <= 0.005000001
    # Exactly: every line adds up, and so do the cards.
    lines = [line for line in found["bill"]["lines"] if line["line"] not in ("held", "total")]
    assert sum(line["cost"]["total"] or 0 for line in lines) == pytest.approx(exact["total"], abs=1e-4)
    cards = sum(card["cost"]["total"] or 0 for card in found["gpus"])
    window = sum(sum(filter(None, card["gpu_seconds"].values())) * (card["price_per_gpu_hour"] or 0) for card in found["gpus"]) / 3600
    assert cards == pytest.approx(exact["total"], abs=1e-4) and window == pytest.approx(exact["total"], abs=1e-4)
    return cost


def check_energy(text, found):
    for title in ("kWh", "cost", "CO2 kg"):
        column = table(text, "Energy", title)
        named = [label for label in column if label not in ("held", "not attributed", "truly-idle", "unobserved", "total")]
        assert sum(column[label] for label in named) == column.get("held", 0)
        rest = ("held", "not attributed", "truly-idle", "unobserved")
        assert sum(column.get(label, 0) for label in rest) == column["total"]


def check_cards(text, total):
    """The second table of the bill: across and down."""
    part = text[text.index("un-\n"):]
    part = part[part.index("\n") + 1:]
    rows = [line.split() for line in part[:part.index("\n\n")].splitlines()[1:]]
    numbers = [[Decimal(0 if word == "-" else word) for word in row[-5 - ("use" in part):]] for row in rows]
    for row in numbers:
        assert sum(row[:-1]) == row[-1]
    if len(rows) > 1:
        assert [sum(column) for column in zip(*numbers[:-1])] == numbers[-1]
    assert numbers[-1][-1] == total


def check_rows(text, by, held, total):
    """The costs of the table of holders: the first level adds up to the bill, the second to its row of the first."""
    part = text[text.index("By " + by.replace(",", ", ")):text.index(" Bill, in")]
    head = next((line for line in part.splitlines() if re.search(r"  cost(  |$)", line)), None)
    if head is None:  # names needed the room
        assert by != "user"
        return
    end, outer, inner = head.index("  cost") + 6, [], []
    for line in part.splitlines()[part.splitlines().index(head) + 1:]:
        if not re.match(r"  .*\d\.\d\d  ", line + "  ") or len(line) < end:
            break
        number = line[:end].split()[-1]
        (inner[-1] if line.startswith("    ") else outer).append(Decimal(0 if number == "-" else number))
        if not line.startswith("    "):
            inner.append([])
    assert sum(outer) == (total if by.split(",")[0] in ("model", "host") else held)
    if by == "user,notebook":
        assert [sum(numbers) for numbers in inner] == outer


def record(tmp_path, seed):
    (tmp_path / "s.scenario").write_text(random_scenario(seed))
    db = tmp_path / "gua.db"
    run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual", "--db", db,
              "--ticks", TICKS)
    assert run.returncode == 0, run.stderr
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE gpu SET name = 'Model ' || (idx % 3)")
    return db


def invent(tmp_path, seed):
    """A store with all states, cards of several models, and shares that leave something over."""
    rng = random.Random(seed)
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    models = ["Model A", "Model B", "Model C"]
    cards = [s.card(host, i, T, T + HOUR, uuid=f"GPU-{i}", name=rng.choice(models)) for i in range(rng.randint(1, 6))]
    users = [f"user{i}" for i in range(rng.randint(1, 9))]
    processes = [s.process(host, 100 + i, rng.choice(users), notebook=rng.choice(["one", "two", None])) for i in range(12)]
    for minute in range(60):
        for card in cards:
            state = rng.choice([ACTIVE, IDLE_HELD, TRULY_IDLE, UNOBSERVED, USE_UNKNOWN])
            length, left = 60 * rng.random(), 60.0
            s.usage(T + 60 * minute, card, state, length, joules=rng.choice([None, length * rng.randint(20, 400)]))
            for process in rng.sample(processes, rng.randint(0, 3)):
                left = length * rng.random() * left / 60
                if state in (ACTIVE, IDLE_HELD):
                    s.holding(T + 60 * minute, card, process, rng.choice([state, SQUATTING] if state == ACTIVE else [state]),
                              length, share=left / 2)
                elif state == USE_UNKNOWN:
                    s.holding(T + 60 * minute, card, process, state, length)
    return s.save()


def prices(seed):
    """Odd prices for most models."""
    rng = random.Random(seed)
    rows = [f"*{end} = {rng.choice([0, 0.01, 1 / 3, 2.5, 7.77, 123.456]):.6f}" for end in "abc0123456789" if rng.random() < 0.8]
    return "[money]\nenergy_price = 0.3141\nco2_g_per_kwh = 379\n[price]\n" + "\n".join(rows) + "\n"


@pytest.mark.same_path
@pytest.mark.parametrize("make, seed", [(record, 31), (record, 32)] + [(invent, seed) for seed in range(40, 52)])
def test_printed_money_adds_up(tmp_path, report, make, seed):
    db = make(tmp_path, seed)
    now = WALL + TICKS * INTERVAL if make is record else T + HOUR
    ask = lambda *args: report(db, *args, text=prices(seed), now=now)
    text, found = ask("--top", "0"), document(ask("--json"))
    if all(card["price_per_gpu_hour"] is None for card in found["gpus"]):
        assert "No price is known for" in text
        return
    cost = check_bill(text, found)
    if any(line["energy_kwh"] for line in found["bill"]["lines"]):
        check_energy(text, found)
    check_cards(text, cost["total"])
    check_rows(text, "user", cost.get("held", 0), cost["total"])
    assert table(ask(), "Bill", "cost")["total"] == cost["total"]
    for by in ("group", "host", "model,user", "user,notebook"):
        check_rows(ask("--by", by), by, cost.get("held", 0), cost["total"])
    rows = list(csv.DictReader(io.StringIO(ask("--format", "csv", "--by", "process"))))
    assert sum(float(row["cost"] or 0) for row in rows) == pytest.approx(
        sum(line["cost"]["total"] or 0 for line in found["bill"]["lines"] if line["line"] == "identity"), abs=1e-4)


def test_page(lab, report):
    """The same figures, with names that are escaped."""
    page = report(lab, "--format", "html", "--currency", "<b>")
    assert '<h2 id="bill">Bill, in &lt;b&gt;</h2>' in page and '<h2 id="energy">Energy</h2>' in page and "<b>" not in page
    assert ">5.34<" in page and "No price is known for Tesla T4 (1 GPU)" in page


def test_cost_is_explained_where_it_is_shown(lab, report):
    assert "cost: of the share, in EUR." in " ".join(report(lab).split())
    assert "cost: of" not in " ".join(report(lab, text="[price]\nH100* = 4\n").split())


def test_the_known_part_of_energy_is_of_the_window_or_of_the_time_held(lab, report):
    assert "% of the window) is divided" in " ".join(report(lab).split())
    assert "(known for 100.0% of the time held) is divided" in " ".join(report(lab, "--user", "alice").split())

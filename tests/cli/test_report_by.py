"""gua report --by: every kind of identity and every two of them, against sums that SQL's rows give in Python."""
import csv
import io
import itertools
import json
import random
import re
import sqlite3

import jsonschema
import pytest

from conftest import ROOT, gua
from handmade import ACTIVE, HOUR, IDLE_HELD, SQUATTING, TRULY_IDLE, Store
from test_truth import INTERVAL, TICKS, WALL, random_scenario

T = 1793620800  # Mon 2026-11-02 12:00 UTC
SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())
KINDS = "user group process notebook job job_name container namespace workload pod unit tag account login session card model host".split()
COLUMNS = ("notebook", "job", "job_name", "container", "pod", "unit", "tag", "account", "login", "session")
LABELS = COLUMNS + ("namespace", "workload")
# Names of pods, and the workload that each suggests.
PODS = {"ml/web-7c9d8f6b5d-x7k2p": "ml/web", "ml/train-x7k2p": "ml/train", "ml/nightly-29871234-x7k2p": "ml/nightly",
        "ops/db-12": "ops/db", "ops/llama-70b-chat": "ops/llama-70b-chat", "ops/x7k2p": "ops/x7k2p",
        "ops/-x7k2p": "ops/-x7k2p", "ml/apple-aeiou": "ml/apple-aeiou", "a/" + "long-" * 23 + "~0f1e2d3c": "a/" + "long-" * 23 + "~0f1e2d3c"}
OF_CARDS = ("card", "model", "host")
STATES = ("active", "idle_held", "truly_idle", "squatting", "use_unknown")


def report(db, *args, now=T + HOUR):
    run = gua("report", "--db", db, "--now", f"@{now}", "--since", "1d", *args)
    assert run.returncode == 0, run.stderr
    return run.stdout


def report_json(db, *args, **options):
    document = json.loads(report(db, "--json", *args, **options))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def report_csv(db, *args, **options):
    return list(csv.DictReader(io.StringIO(report(db, "--format", "csv", *args, **options), newline=""), strict=True))


def fails(db, *args):
    run = gua("report", "--db", db, *args)
    assert run.returncode == 2 and run.stdout == ""
    return run.stderr


# What the rows must be, from the tables of the store.

class Oracle:
    """Sums in milliseconds by kinds of identity, worked out row by row."""

    def __init__(self, db):
        connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        rows = lambda sql: [dict(row) for row in connection.execute(sql)]
        self.processes = {row["id"]: row for row in rows("SELECT * FROM process")}
        self.cards = {row["id"]: row for row in rows("SELECT gpu.*, hostname FROM gpu JOIN host ON host.id = host")}
        tables = ("1m", "5m", "1h")
        self.holding = [row for table in tables for row in rows(f"SELECT * FROM holding_{table}")]
        self.usage = [row for table in tables for row in rows(f"SELECT * FROM usage_{table}")]

    def key(self, kind, card, process=None):
        """What an identity is told from others by, and its name in JSON."""
        if kind == "group":
            return None, None
        if kind in OF_CARDS:
            name = self.cards[card][{"card": "uuid", "model": "name", "host": "hostname"}[kind]]
            return card if kind == "card" else name, name
        row = self.processes[process]
        if kind == "process":
            return process, row["command"]
        scope = {"notebook": row["user"], "session": row["user"], "job_name": row["user"], "container": row["host"], "unit": row["host"]}.get(kind)
        pod = row["pod"] if "/" in (row["pod"] or "") else None
        if kind in ("namespace", "workload"):
            name = pod and (pod.split("/")[0] if kind == "namespace" else PODS[pod])
        else:
            name = row[kind]
        if kind == "container" and pod and "/" in (name or ""):
            name = pod + "/" + name.split("/")[1]
        if kind == "notebook":
            name = row["notebook_path"] or name
        if kind == "session" and name:
            name = f"{row['login']} {name}" if row["login"] else name
        return (name, name and scope), name

    @staticmethod
    def measure(kinds):
        if any(kind in LABELS or kind == "process" for kind in kinds):
            return "process_time"
        if "user" in kinds:
            return "presence"
        return "presence_of_users" if "group" in kinds else "card_time"

    def level(self, kinds):
        """{keys: {state: ms, "share": ms, "names": [...]}} of the rows that these kinds tell apart."""
        measure = self.measure(kinds)
        sums = {}

        def row(card, process=None):
            keys = [self.key(kind, card, process) for kind in kinds]
            return sums.setdefault(tuple(key for key, _ in keys),
                                   {"names": tuple(name for _, name in keys), "share": 0, **dict.fromkeys(STATES, 0)})
        if measure == "card_time":
            for usage in self.usage:
                mine = row(usage["gpu"])
                state = ("active", "idle_held", "truly_idle", None, "use_unknown")[usage["state"]]
                if state:
                    mine[state] += usage["ms"]
                mine["share"] += usage["ms"] if usage["state"] < 2 else 0
            return sums
        for held in self.holding:
            mine = row(held["gpu"], held["process"])
            for state in STATES:
                double = 0 if measure == "process_time" else held[f"{state}_double_ms"]
                mine[state] += held[f"{state}_ms"] - double
            mine["share"] += held["active_share_ms"] + held["idle_share_ms"]
        return sums

    def headline_ms(self):
        return sum(row["ms"] for row in self.usage if row["state"] < 2)


def figures(row, names):
    """A row of the report as the oracle has it: names, then whole milliseconds."""
    ms = lambda name: round(1000 * (row[name] or 0))
    return (names, *(ms(f"{state}_gpu_seconds") for state in STATES if f"{state}_gpu_seconds" in row),
            ms("share_gpu_seconds"))


def expected(sums, row):
    """The oracle's rows in the same form."""
    states = [state for state in STATES if f"{state}_gpu_seconds" in row]
    return sorted(((mine["names"], *(mine[state] for state in states), mine["share"]) for mine in sums.values()), key=repr)


def name_of(row, kind):
    return row["command" if kind == "process" else kind]


def check(document, oracle, kinds):
    """All levels of a breakdown are the oracle's, and their shares add up to the headline."""
    breakdown = document["breakdown"]
    assert breakdown["by"] == list(kinds)
    assert breakdown["measures"] == [oracle.measure(kinds[:i + 1]) for i in range(len(kinds))]
    outer = breakdown["rows"]
    inner = [(name_of(row, kinds[0]), below) for row in outer for below in row.get("rows", [])]
    levels = [[figures(row, (name_of(row, kinds[0]),)) for row in outer]]
    if len(kinds) == 2:
        levels.append([figures(below, (name, name_of(below, kinds[1]))) for name, below in inner])
    samples = [outer and outer[0], inner and inner[0][1]]
    for i, level in enumerate(levels):
        assert sorted(level, key=repr) == expected(oracle.level(kinds[:i + 1]), samples[i]), (kinds, i)
        rest = 0 if breakdown["measures"][i] == "card_time" else round(1000 * document["unattributed_share_gpu_seconds"])
        assert sum(row[-1] for row in level) + rest == oracle.headline_ms(), (kinds, i)
    seconds = document["gpu_seconds"]
    assert round(1000 * (seconds["active"] + seconds["idle_held"])) == oracle.headline_ms()


def label_processes(db, seed):
    """Notebooks, jobs, containers and so on by chance: the simulated source has none."""
    rng = random.Random(seed)
    with sqlite3.connect(db) as connection:
        for process, in connection.execute("SELECT id FROM process").fetchall():
            for label in COLUMNS:
                words = {"pod": list(PODS), "container": ["containerd:0a1b2c3d4e5f/main"]}.get(label, [])
                connection.execute(f"UPDATE process SET {label} = ? WHERE id = ?",
                                   (rng.choice([None, "one", "two", f"{label} {process}", *words]), process))
        connection.execute("UPDATE gpu SET name = 'Model ' || (idx % 2)")


@pytest.mark.same_path
@pytest.mark.parametrize("seed", (11, 12))
def test_all_kinds_add_up_to_the_headline(tmp_path, seed):
    """Random scenarios, recorded by the recorder: every kind, and two at once, to the millisecond."""
    (tmp_path / "s.scenario").write_text(random_scenario(seed))
    db = tmp_path / "gua.db"
    run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual",
              "--db", db, "--ticks", TICKS)
    assert run.returncode == 0, run.stderr
    label_processes(db, seed)
    oracle = Oracle(db)
    pairs = random.Random(seed).sample(list(itertools.permutations(KINDS, 2)), 24)
    for kinds in [(kind,) for kind in KINDS if kind not in ("user", "process", "card")] + pairs:
        check(report_json(db, "--by", ",".join(kinds), now=WALL + TICKS * INTERVAL), oracle, kinds)


@pytest.mark.parametrize("seed", (13,))
def test_users_and_processes_add_up_too(tmp_path, seed):
    """They are in tables of their own."""
    (tmp_path / "s.scenario").write_text(random_scenario(seed))
    db = tmp_path / "gua.db"
    gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual", "--db", db,
        "--ticks", TICKS)
    oracle, now = Oracle(db), WALL + TICKS * INTERVAL
    document = report_json(db, "--by", "process", now=now)
    rows = document["breakdown"]["rows"]
    names = lambda row: (next(p["command"] for p in oracle.processes.values() if p["pid"] == row["pid"]), row["gpu"])
    assert sorted((figures(row, names(row)) for row in rows), key=repr) == expected(oracle.level(("process", "card")), rows[0])
    users = [figures(row, (row["identity"],)) for row in document["identities"]]
    assert sorted(users, key=repr) == expected(oracle.level(("user",)), document["identities"][0])
    rest = round(1000 * document["unattributed_share_gpu_seconds"])
    for shares in (users, [figures(row, ()) for row in rows]):
        assert sum(row[-1] for row in shares) + rest == oracle.headline_ms()


# What people read.

@pytest.fixture
def lab(tmp_path):
    """Two hosts. On the first, alice trains in a job of two processes on one card and keeps a notebook beside it; bob has
    a notebook of the same name; carol squats. On the second, alice's job goes on, and both hosts have a unit of one name."""
    s = Store(tmp_path / "gua.db")
    hosts = [s.host(name, machine_id=name) for name in ("alpha", "beta")]
    cards = [s.card(hosts[0], 0, T, T + HOUR), s.card(hosts[0], 1, T, T + HOUR, name="NVIDIA RTX A6000"),
             s.card(hosts[1], 0, T, T + HOUR, uuid="GPU-beta")]
    for host in hosts:
        s.run(host, T, T + HOUR)
    first, second = (s.process(hosts[0], pid, "alice", job="slurm:7", unit="slurmd.service", tag=tag, account="vision",
                               login="batch") for pid, tag in ((100, "grant-42"), (101, None)))
    note = s.process(hosts[0], 102, "alice", "ipykernel", notebook="/home/alice/data/vision/notebooks/thesis.ipynb")
    bob = s.process(hosts[0], 200, "bob", "ipykernel", notebook="jupyter:1", notebook_path="thesis.ipynb", tag="grant-42",
                    login="jupyter", session="3")
    carol = s.process(hosts[0], 300, "carol", "python idle.py", notebook="thesis.ipynb", login="ssh", session="3")
    other = s.process(hosts[1], 400, "alice", job="slurm:7", unit="slurmd.service")
    for minute in range(60):
        t = T + 60 * minute
        s.usage(t, cards[0], ACTIVE, 60, util=90)
        for process, share in ((first, 40), (second, 20)):
            s.holding(t, cards[0], process, ACTIVE, 60, presence=60 if process == first else 0, share=share, mem_mb=9000)
        s.holding(t, cards[0], note, IDLE_HELD, 60, presence=0, mem_mb=500)
        s.holding(t, cards[0], carol, SQUATTING, 60, mem_mb=2000)
        s.usage(t, cards[1], IDLE_HELD, 60)
        s.holding(t, cards[1], bob, IDLE_HELD, 60, share=60, mem_mb=8000)
        s.usage(t, cards[2], ACTIVE if minute < 30 else TRULY_IDLE, 60, util=50)
        if minute < 30:
            s.holding(t, cards[2], other, ACTIVE, 60, share=60, mem_mb=9000)
    return s.save()


@pytest.mark.parametrize("by", ["user,notebook", "notebook", "job,card", "host,user", "model", "model,host", "tag,user"])
def test_text(lab, expect, by):
    text = report(lab, "--by", by)
    assert max(map(len, text.splitlines())) <= 80
    expect(f"report/by-{by.replace(',', '-')}.txt", re.search(r"§4.*?\n(?=\n(?:§5|Rules))", text, re.DOTALL).group())


@pytest.mark.parametrize("by", ["user,notebook", "unit", "model"])
def test_csv(lab, expect, by):
    expect(f"report/by-{by.replace(',', '-')}.csv", report(lab, "--format", "csv", "--by", by))


def test_nested_json(lab):
    rows = report_json(lab, "--by", "user,notebook")["breakdown"]["rows"]
    assert [row["user"] for row in rows] == ["bob", "carol", "alice"]
    alice = rows[2]
    # Presence counts alice once on the card that two of her processes use; of her processes' time there is more.
    assert alice["active_gpu_seconds"] == 5400 and alice["gpu_seconds"] == 5400
    assert [(row["notebook"], row["gpu_seconds"], row["idle_held_gpu_seconds"]) for row in alice["rows"]] == \
        [("/home/alice/data/vision/notebooks/thesis.ipynb", 3600, 3600), (None, 9000, 0)]
    assert sum(row["share_gpu_seconds"] for row in alice["rows"]) == alice["share_gpu_seconds"]


def test_names_are_told_apart(lab):
    """bob's notebook is not carol's, and a unit of one host is not that of another; a job may be on both."""
    notebooks = report_json(lab, "--by", "notebook")["breakdown"]["rows"]
    assert [(row["notebook"], row["user"]) for row in notebooks] == \
        [("/home/alice/data/vision/notebooks/thesis.ipynb", "alice"), ("thesis.ipynb", "bob"), ("thesis.ipynb", "carol"),
         (None, "alice")]
    units = report_json(lab, "--by", "unit")["breakdown"]["rows"]
    assert [(row["unit"], row["host"], row["processes"]) for row in units] == \
        [("slurmd.service", "alpha", 2), ("slurmd.service", "beta", 1), (None, "alpha", 3)]
    jobs = report_json(lab, "--by", "job")["breakdown"]["rows"]
    assert [(row["job"], row["host"], row["user"], row["processes"]) for row in jobs] == \
        [("slurm:7", None, "alice", 3), (None, "alpha", None, 3)]


def test_cards_are_their_own_time(lab):
    document = report_json(lab, "--by", "card,user")
    assert document["breakdown"]["measures"] == ["card_time", "presence"]
    first, second, third = document["breakdown"]["rows"]
    assert first["gpu_seconds"] == 3600 and first["squatting_gpu_seconds"] is None
    assert {row["user"]: row["squatting_gpu_seconds"] for row in first["rows"]} == {"alice": 0, "carol": 3600}
    # Nobody held it for half of the time.
    assert third["gpu_seconds"] == third["active_gpu_seconds"] == third["truly_idle_gpu_seconds"] == 1800
    models = report_json(lab, "--by", "model,card")["breakdown"]["rows"]
    assert [(row["model"], row["gpus"], len(row["rows"])) for row in models] == \
        [("NVIDIA A100-SXM4-80GB", 2, 2), ("NVIDIA RTX A6000", 1, 1)]


def test_groups(lab):
    """Those of gua.conf; the presence of a group's users is added up."""
    text = report(lab, "--by", "group,user")
    assert "(no group)" in text and "No groups are defined: [groups] in gua.conf(5) does that." in text
    group, = report_json(lab, "--by", "group")["breakdown"]["rows"]
    assert group["group"] is None and group["gpu_seconds"] == 5400 + 3600 + 3600
    args = ("--by", "group,user", "--set", "groups.vision=alice carol dave")
    rows = report_json(lab, *args)["breakdown"]["rows"]
    assert [(row["group"], row["gpu_seconds"], [user["user"] for user in row["rows"]]) for row in rows] == \
        [("vision", 9000, ["carol", "alice"]), (None, 3600, ["bob"])]
    assert "No groups are defined" not in report(lab, *args)


@pytest.mark.same_path
@pytest.mark.parametrize("order, users", [
    (None, ["bob", "carol", "alice"]), ("waste", ["bob", "carol", "alice"]), ("held", ["alice", "bob", "carol"]),
    ("used", ["alice", "bob", "carol"]), ("idle", ["bob", "alice", "carol"]), ("squatting", ["carol", "alice", "bob"]),
    ("share", ["alice", "bob", "carol"]), ("memory", ["alice", "bob", "carol"]), ("name", ["alice", "bob", "carol"])])
def test_sort(lab, order, users):
    args = ("--sort", order) if order else ()
    assert [who["identity"] for who in report_json(lab, *args)["identities"]] == users
    assert [row["identity"] for row in report_csv(lab, *args)] == users
    assert re.findall(r"^  (alice|bob|carol) ", report(lab, *args), re.MULTILINE) == users


def test_sorted_cards_and_processes(lab):
    for args, idle in (((), [0, 3600]), (("--sort", "waste"), [3600, 0])):
        alpha = report_json(lab, "--by", "host,card", *args)["breakdown"]["rows"][0]
        assert [row["idle_held_gpu_seconds"] for row in alpha["rows"]] == idle
    pids = lambda order: [row["pid"] for row in report_json(lab, "--by", "process", "--sort", order)["breakdown"]["rows"]]
    assert pids("waste")[:3] == [102, 300, 200] and pids("share")[0] == 200 and pids("name")[-1] == 300


def test_top(tmp_path):
    """A screenful unless asked, and what is left out is summed up."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    s.usage(T, card, IDLE_HELD, 60)
    for user in range(12):
        for book in range(8 - user % 2 * 2):
            process = s.process(host, 100 * user + book, f"user{user:02}", notebook=f"book{book}.ipynb")
            s.holding(T, card, process, IDLE_HELD, 50 - user, presence=0 if book else 50 - user, mem_mb=1)
    db = s.save()
    text = report(db, "--by", "user,notebook")
    assert "user09" in text and "user10" not in text and re.search(r"^  \(2 more\) +0\.02 ", text, re.MULTILINE)
    # Of eight notebooks five, and three in a row; of six all, instead of "(1 more)".
    assert text.count("    (3 more)") == 5 and text.count("book5.ipynb") == 5 and "(1 more)" not in text
    assert text.count("--top 0 shows all.") == 1
    assert len(report_csv(db, "--by", "user,notebook")) == 6 * 8 + 6 * 6
    assert len(report_csv(db, "--by", "user,notebook", "--top", "2")) == 4
    rows = report_json(db, "--by", "user,notebook", "--top", "2")["breakdown"]["rows"]
    assert [len(row["rows"]) for row in rows] == [2, 2]
    assert "more)" not in report(db, "--by", "user,notebook", "--top", "0")


def test_hostile_names(tmp_path):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR, name="\x1b[2J=model")
    s.usage(T, card, IDLE_HELD, 60)
    evil = "=cmd|'/c calc'!A0\x1b]0;x\x07\n\u202e/" + "n" * 200
    process = s.process(host, 1, evil, evil, notebook=evil, job=evil, container=evil, pod=evil, unit=evil, tag=evil,
                        account=evil, login=evil, session=evil, notebook_path=evil)
    s.holding(T, card, process, IDLE_HELD, 60, mem_mb=1)
    db = s.save()
    for by in [*KINDS, "user,notebook", "model,unit", "card,process", "host,container"]:
        for output in (report(db, "--by", by), report(db, "--by", by, "--ascii")):
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", output)
            assert max(map(len, output.splitlines())) <= 80
        for row in report_csv(db, "--by", by):
            assert not any(cell and cell[0] in "=+-@" for cell in row.values()), row
        report_json(db, "--by", by)


def test_tags_logins_and_sessions(lab):
    names = lambda by: [(row[by], row["user"]) for row in report_json(lab, "--by", by)["breakdown"]["rows"]]
    assert names("tag") == [("grant-42", None), (None, None)]  # several users have it
    assert names("account") == [("vision", "alice"), (None, None)]
    assert names("login") == [("jupyter", "bob"), ("ssh", "carol"), ("batch", "alice"), (None, "alice")]
    assert names("session") == [("jupyter 3", "bob"), ("ssh 3", "carol"), (None, "alice")]
    row, = [row for row in report_json(lab, "--by", "process")["breakdown"]["rows"] if row["pid"] == 200]
    assert (row["notebook"], row["notebook_path"], row["tag"], row["login"], row["session"], row["account"]) == \
        ("jupyter:1", "thesis.ipynb", "grant-42", "jupyter", "3", None)
    assert "thesis.ipynb" in report(lab, "--by", "process") and "jupyter:1" not in report(lab, "--by", "process")


@pytest.mark.parametrize("by, says", [
    ("notbook", "--by: there is no 'notbook'; did you mean 'notebook'?"), ("", "--by: there is no ''; there are user, group, process"),
    ("user,", "--by: there is no ''"), ("user,user", "--by: user is there twice"),
    ("user,job,pod", "--by: give one kind or two, not more"), ("\x1b", "--by: there is no '\\x1B'")])
def test_wrong_kinds(lab, by, says):
    assert says in fails(lab, "--by", by)


def test_wrong_order(lab):
    assert "--sort" in fails(lab, "--sort", "size")


@pytest.mark.parametrize("by", ["model", "host", "host,model"])
def test_shares_of_a_line_add_up_as_printed(tmp_path, by):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    for state in (ACTIVE, IDLE_HELD, TRULY_IDLE):
        s.usage(T, card, state, HOUR / 3, width=HOUR)
    text = report(s.save(), "--by", by)
    part = text[text.index("By " + by.split(",")[0]):].split("\n\n")[0]
    lines = [re.findall(r"([0-9.]+)%", line) for line in part.splitlines()]
    assert [sorted(line[:3]) for line in lines if line] == [["33.3", "33.3", "33.4"]] * len(by.split(","))

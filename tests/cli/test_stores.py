"""The report over many stores: it does not depend on how they are read, names those that cannot be, and stays short."""
import fcntl
import json
import os
import resource
import sqlite3
import struct

import jsonschema
import pytest

from conftest import ROOT, gua
from handmade import ACTIVE, IDLE_HELD, TRULY_IDLE, Store
from lab_pages import make_policy

T = 1793620800  # Mon 2026-11-02 12:00 UTC
HOUR = 3600
SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())


def host_store(path, number, source="nvml", idle=0.25):
    """An hour of two cards in slots of minutes, and two hours before them: used by two people, one on every host."""
    s = Store(path)
    host = s.host(hostname=f"node{number:03}", machine_id=f"m{number}")
    s.run(host, T - 2 * HOUR, T + HOUR, source=source, ended=T + HOUR)
    for index in range(2):
        card = s.card(host, index, T - 2 * HOUR, T + HOUR, uuid=f"GPU-{number:04}{index}", source=source)
        ann = s.process(host, 100 + index, "ann", started=T, seen=(T, T + HOUR), last_active=T + 60 * number,
                        notebook=f"{number}.ipynb")
        own = s.process(host, 200 + index, f"user{number}", started=T, seen=(T, T + HOUR))
        for hour in (T - 2 * HOUR, T - HOUR):
            s.usage(hour, card, TRULY_IDLE, HOUR, joules=HOUR * 50, width=HOUR)
        for slot in range(T, T + HOUR, 300):
            held = 60 * idle  # the other minutes are not observed
            s.usage(slot, card, ACTIVE, 60 - held, util=80, joules=(60 - held) * 300)
            s.usage(slot, card, IDLE_HELD, held, joules=held * 70)
            s.holding(slot, card, ann, ACTIVE, 60 - held, share=60 - held, mem_mb=4000)
            s.holding(slot, card, own, IDLE_HELD, held, share=held, mem_mb=2000)
    s.event(host, T + number, "xid", card=1, value=79, text=f"on {number}")
    s.spell(1, 2, T, T + 600 + number)
    return s.save()


def report(*words, **options):
    return gua("report", "--since", f"@{T - 2 * HOUR}", "--now", f"@{T + HOUR}", "--utc", *words, **options)


def asked_for(paths):
    return [word for path in paths for word in ("--db", path)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """More than stay open at a time."""
    folder = tmp_path_factory.mktemp("stores")
    return [host_store(folder / f"{i:03}.db", i, idle=(i * 7 % 70 + 1) / 100) for i in range(70)]


@pytest.mark.same_path
@pytest.mark.parametrize("words", [("--json",), ("--format", "html"), ("--by", "process", "--format", "csv"),
                                   ("--json", "--by", "user,notebook"), ("--json", "--user", "ann", "--longest", "3"),
                                   ("--json", "--by", "host", "--cost", "2", "--compare", f"@{T - HOUR}")])
def test_threads_and_opening_stores_again_change_nothing(stores, words):
    """One thread against all, and few stores, which stay open, against many."""
    one_processor = lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for paths in (stores, stores[:20]):
        found = report(*words, *asked_for(paths))
        assert found.returncode == 0, found.stderr
        assert found.stdout == report(*words, *asked_for(paths), preexec_fn=one_processor).stdout
    if words[0] == "--json":
        jsonschema.validate(json.loads(found.stdout), SCHEMA)


def test_few_descriptors_are_enough(stores):
    """Fewer than there are stores."""
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    found = report("--json", *asked_for(stores[:60]), preexec_fn=few)
    assert found.returncode == 0, found.stderr
    assert found.stdout == report("--json", *asked_for(stores[:60])).stdout


def seconds(found, state):
    return sum(card["gpu_seconds"][state] for card in found["gpus"])


def test_the_sums_are_those_of_the_stores(stores):
    all_of_them = json.loads(report("--json", *asked_for(stores)).stdout)
    each = [json.loads(report("--json", "--db", path).stdout) for path in stores[::10]]
    some = json.loads(report("--json", *asked_for(stores[::10])).stdout)
    for state in ("active", "idle_held", "truly_idle", "unobserved"):
        assert seconds(some, state) == pytest.approx(sum(seconds(one, state) for one in each))
    people = {row["identity"]: row["gpu_seconds"] for row in all_of_them["identities"]}
    assert len(people) == 71 and max(people, key=people.get) == "ann"
    assert len(all_of_them["hosts"]) == 70 and len(all_of_them["gpus"]) == 140
    assert [(event["kind"], event["times"], event["last_host"]) for event in all_of_them["events"]] == [("xid", 70, "node069")]
    assert all_of_them["longest"][0]["host"] == "node069"


@pytest.mark.large
def test_many_hosts_are_short_for_people(stores):
    """The worst hosts first; cards of the worst alone; no line for each host."""
    text = report(*asked_for(stores)).stdout
    worst = [f"node{i:03}" for i in sorted(range(70), key=lambda i: -(i * 7 % 70 + 1))[:5]]
    assert "70 hosts  Window: 3:00:00" in text.splitlines()[0]
    cards = text[text.index("Per-GPU"):text.index("By user")]
    assert [line.strip() for line in cards.splitlines() if line.startswith(" node")] == worst
    assert "The 5 hosts with the most idle-held time of 70." in cards
    assert text.count("node") < 30 and len(text.splitlines()) < 120
    page = report("--format", "html", *asked_for(stores)).stdout  # each caption is there twice, once for readers of pages
    assert page.count("What each GPU of") == 10 and "The 5 hosts with the most idle-held time of 70." in page
    rows = report("--by", "host", "--format", "csv", *asked_for(stores)).stdout.splitlines()
    assert len(rows) == 71 and rows[1].startswith(worst[0])
    assert len(report("--by", "card", "--format", "csv", *asked_for(stores)).stdout.splitlines()) == 141


def test_simulated_hosts_are_counted_when_there_are_many(tmp_path):
    paths = [host_store(tmp_path / f"{i}.db", i, source="sim" if i < 6 else "nvml") for i in range(7)]
    text = report(*asked_for(paths)).stdout
    assert "simulated: 6 of 7 hosts" in text and "simulated: node" not in text
    assert report(*asked_for(paths), "--format", "csv").stderr == \
        "gua: 6 of 7 hosts: simulated data, invented and not measured on a GPU\n"
    assert report(*asked_for(paths[4:])).stdout.count("simulated: node") == 2


def damage(path, table):
    """Destroys a page of a table."""
    with sqlite3.connect(path) as db:
        page, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        size, = db.execute("PRAGMA page_size").fetchone()
    with open(path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 100)


def lock(path):
    """As a program that changes the file would: SQLite's PENDING byte and those after it. Returns the open file."""
    file = open(path, "r+b")
    fcntl.fcntl(file, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0x40000000, 512, 0))
    return file


@pytest.mark.parametrize("table", ["gpu", "usage_1m", "holding_1m", "process", "event", "spell"])
def test_nothing_of_a_damaged_store_is_in_the_report(tmp_path, table):
    """Whatever was read of it before the damage was found; nor of the window to compare with, where spells are not
    read and it would be whole."""
    paths = [host_store(tmp_path / f"{i}.db", i) for i in range(3)]
    words = ("--json", "--by", "process", "--since", f"@{T}", "--compare", f"@{T - HOUR}")
    without = json.loads(report(*words, *asked_for([paths[0], paths[2]])).stdout)
    damage(paths[1], table)
    run = report(*words, *asked_for(paths))
    found = json.loads(run.stdout)
    why, = found.pop("stores")["not_read"]
    assert run.returncode == 1 and str(paths[1]) in why and "damaged" in why
    assert found == without
    assert run.stderr.splitlines()[-1] == "gua report: 1 of 3 stores could not be read"


@pytest.mark.waits
def test_stores_that_cannot_be_read_are_named(tmp_path):
    good = host_store(tmp_path / "good.db", 1)
    locked = host_store(tmp_path / "locked.db", 2)
    missing, text = tmp_path / "missing.db", tmp_path / "text.db"
    text.write_text("no store\n")
    with lock(locked):
        run = report(*asked_for([good, missing, text, locked]))
    foot = "".join(run.stdout[run.stdout.index("3 of 4 stores could not be read"):].split())  # lines are wrapped anywhere
    assert run.returncode == 1
    assert "gua report: 3 of 4 stores could not be read; the report ends with the reasons\n" == run.stderr
    for why in (f"nothing of them is in this report:- there is no store at {missing};", f"- {text} is not a store of gua",
                f"- cannot read the store {locked}: it is locked by another program"):
        assert why.replace(" ", "") in foot
    page = report(*asked_for([good, missing]), "--format", "html")
    assert page.returncode == 1 and f"there is no store at {missing}" in page.stdout
    run = report(*asked_for([missing, text]))
    assert run.returncode == 1 and run.stdout == "" and \
        run.stderr.startswith(f"gua report: none of the 2 stores can be read; the first: there is no store at {missing}")


def test_many_that_cannot_be_read_are_counted(tmp_path):
    host_store(tmp_path / "good.db", 1)
    for i in range(12):
        (tmp_path / f"{i:02}.db").write_text("no store\n")
    run = report("--db", tmp_path)
    assert "12 of 13 stores could not be read" in run.stdout
    assert "- and 2 more: --format json names all of them" in run.stdout
    assert len(json.loads(report("--json", "--db", tmp_path).stdout)["stores"]["not_read"]) == 12


def test_a_copy_among_many_is_refused(stores, tmp_path):
    """Never counted twice; the sentence names both."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(stores[33].read_bytes())
    run = report(*asked_for(stores), "--db", copy)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.startswith(f"gua report: {stores[33]} and {copy} both have what was recorded on node033 from ")
    link = tmp_path / "link.db"
    os.link(stores[5], link)
    run = report(*asked_for(stores), "--db", link)
    assert run.returncode == 2 and run.stderr.startswith(f"gua report: {stores[5]} and {link} are the same store")


def test_links_in_a_directory_are_followed_and_count_once(tmp_path):
    """A farm of links to stores elsewhere, a link beside its own store, and one to nowhere."""
    stores = [host_store(tmp_path / f"{i}.store", i) for i in range(3)]
    expected = json.loads(report("--json", *asked_for(stores)).stdout)
    farm = tmp_path / "farm"
    farm.mkdir()
    for i in range(3):
        (farm / f"{i}.db").symlink_to(stores[i])
    for where in (farm, f"{farm}/*.db"):
        assert json.loads(report("--json", "--db", where).stdout) == expected
    (farm / "latest.db").symlink_to("2.db")
    (tmp_path / "current.db").symlink_to("1.store")
    for where in (farm, tmp_path):
        run = report("--json", "--db", where)
        assert run.returncode == 0 and json.loads(run.stdout) == expected
    (farm / "gone.db").symlink_to("nowhere")
    run = report("--json", "--db", farm)
    assert run.returncode == 1 and json.loads(run.stdout)["stores"]["not_read"] == \
        [f"{farm}/gone.db is a symbolic link to a file that does not exist"]


def test_what_was_done_beside_several_stores_counts_once(tmp_path):
    """policy.db is of the directory: it is not a store that is missed, and its steps are not one for each store."""
    one = host_store(tmp_path / "a.db", 0)
    make_policy(tmp_path / "policy.db")
    with sqlite3.connect(tmp_path / "policy.db") as policy:
        policy.execute("UPDATE action SET at_ms = ?", (T * 1000,))
    policy.close()
    alone = json.loads(report("--json", "--db", one).stdout)["policy"]
    for i in range(1, 4):
        host_store(tmp_path / f"{i}.db", i)
    run = report("--json", "--db", tmp_path)
    assert run.returncode == 0 and run.stderr == ""
    assert json.loads(run.stdout)["policy"] == alone and alone[0]["warnings"] == 1


def test_a_pattern_that_matches_nothing(tmp_path):
    run = report("--db", f"{tmp_path}/*.db")
    assert run.returncode == 1 and run.stderr == f"gua report: no file matches {tmp_path}/*.db\n"
    strange = host_store(tmp_path / "[a].db", 1)  # a file with such a name is meant itself
    assert "node001" in report("--db", strange).stdout


def test_the_bench_makes_other_hosts_of_a_store(stores, tmp_path):
    """At small size: as many stores and hosts as it makes are in the report."""
    import sys
    sys.path.insert(0, str(ROOT / "bench"))
    import stores as bench_stores
    made = stores[0]
    for number in range(3):
        bench_stores.vary(made, tmp_path / f"{number}.db", number)
    found = json.loads(report("--json", "--db", tmp_path).stdout)
    assert [host["host"] for host in found["hosts"]] == ["node00000", "node00001", "node00002"]
    assert len({card["uuid"] for card in found["gpus"]}) == 6

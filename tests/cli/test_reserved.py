"""Time that a lease keeps free, from the recorder to every surface: five cards for two hours, of which a scheduler has given
four away, against sums that are worked out by hand."""
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess

import jsonschema
import pytest

from conftest import GUA, clean_environment, gua
from handmade import VIEWS
from serving import needs_serve, serve  # noqa: F401
from test_report import SCHEMA

START = 1793606400  # Mon 2026-11-02 08:00 UTC
HOUR = 3600
CARDS = [f"GPU-{i:08x}-0000-0000-0000-000000000000" for i in range(5)]
SCENARIO = "host node\nstart 2026-11-02T08:00:00Z\n" + "".join(
    f'card {i} uuid {uuid} name "NVIDIA A100" memory 80GiB idle-power 50W max-power 400W\n' for i, uuid in enumerate(CARDS)) + """
process works pid 10 user bob uid 2 job slurm:5
process holds pid 11 user carol uid 3 job slurm:6
process other pid 12 user mallory uid 9
at 0s hold works card 1 memory 20GiB
at 0s load works card 1 sm 90
at 0s hold holds card 2 memory 20GiB
at 1h exit holds
at 0s hold other card 4 memory 20GiB
at 1h exit other
"""
# id: user, cards, since, until, name, account. Card 3 is shared by two; card 4 is held by somebody else for an hour.
LEASES = {4: ("alice", [0], 0, None, "never", "vision"), 5: ("bob", [1], -600, None, "train", "vision"),
          6: ("carol", [2], 0, None, "", "nlp"), 7: ("alice", [3], 1800, None, "", "vision"),
          8: ("dave", [3], HOUR, HOUR + 1800, "", ""), 9: ("dave", [4], 0, None, "", "")}
NOW = ("--now", f"@{START + 2 * HOUR}", "--utc", "--last", "1d")
RESERVED = {"alice": 2 * HOUR + 1800 + 900 + 1800, "carol": HOUR, "dave": 900 + HOUR}  # card 3: alone, half of it, alone


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reserved")
    (folder / "leases" / "slurm").mkdir(parents=True)
    for number, (user, cards, since, until, name, account) in LEASES.items():
        lines = [f"id = {number}", f"user = {user}", f"cards = {','.join(CARDS[i] for i in cards)}", f"since = {START + since}"]
        lines += [f"until = {START + until}"] if until else []
        lines += [f"{key} = {text}" for key, text in (("name", name), ("account", account)) if text]
        (folder / "leases" / "slurm" / str(number)).write_text("\n".join(lines) + "\n")
    (folder / "lab.scenario").write_text(SCENARIO)
    run = gua("daemon", "--foreground", "--db", folder / "gua.db", "--source", "sim", "--scenario", folder / "lab.scenario",
              "--clock", "virtual", "--ticks", "240", "--leases", folder / "leases")
    assert run.returncode == 0, run.stderr
    return folder / "gua.db"


def found(db, *args):
    run = gua("report", "--db", db, *NOW, *args)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def report(db):
    whole = json.loads(found(db, "--json", "--by", "job"))
    jsonschema.Draft202012Validator(SCHEMA).validate(whole)
    return whole


def test_cards_and_headline(report):
    seconds = [card["gpu_seconds"] for card in report["gpus"]]
    assert [round(card["reserved"]) for card in seconds] == [7200, 0, 3600, 5400, 3600]
    assert [round(card["truly_idle"]) for card in seconds] == [0, 0, 0, 1800, 0]
    assert [round(card["idle_held"]) for card in seconds] == [0, 0, 3600, 0, 3600]  # mallory's stays hers
    assert report["headline"]["reserved"] == pytest.approx(5.5 / 10, abs=1e-4)
    assert report["waste"]["reserved_gpu_hours"] == pytest.approx(5.5, abs=1e-3)
    assert report["waste"]["equivalent_gpus_reserved"] == pytest.approx(2.75, abs=1e-3)
    assert report["waste"]["verdict"] == "allocation_policy"
    assert report["hosts"][0]["leases"] is True
    assert sum(hour["reserved"] for hour in report["heatmap"]) == pytest.approx(5.5 * HOUR, abs=1)
    assert sum(day["reserved_gpu_seconds"] for day in report["trend"]["periods"]) == pytest.approx(5.5 * HOUR, abs=1)
    assert all(card["energy_kwh"]["reserved"] == pytest.approx(card["gpu_seconds"]["reserved"] * 50 / 3.6e6, rel=0.02)
               for card in report["gpus"] if card["gpu_seconds"]["reserved"])


def test_leases_that_were_not_used(db, report):
    rows = [(row["id"], row["gpu_index"], round(row["reserved_gpu_seconds"]), round(row["used_gpu_seconds"])) for row in report["leases"]]
    assert rows == [("4", 0, 7200, 0), ("7", 3, 4500, 0), ("6", 2, 3600, 3600), ("9", 4, 3600, 0), ("8", 3, 900, 0)]
    assert report["leases"][-1]["ended"] == "2026-11-02T09:30:00Z" and report["leases"][0]["ended"] is None
    assert [row["id"] for row in json.loads(found(db, "--json", "--longest", "1", "--user", "dave"))["leases"]] == ["9"]


def test_owners_jobs_and_accounts(db, report):
    users = {user["identity"]: user for user in report["identities"]}
    assert {name: user["reserved_gpu_seconds"] for name, user in users.items() if user["reserved_gpu_seconds"]} == \
        {name: pytest.approx(seconds, abs=1) for name, seconds in RESERVED.items()}
    assert users["alice"]["gpu_seconds"] == 0 and users["alice"]["unused_fraction"] == 1
    jobs = {row["job"]: row for row in report["breakdown"]["rows"]}
    assert round(jobs["slurm:4"]["reserved_gpu_seconds"]) == 7200 and jobs["slurm:4"]["processes"] == 0
    assert round(jobs["slurm:6"]["reserved_gpu_seconds"]) == 3600 and round(jobs["slurm:6"]["idle_held_gpu_seconds"]) == 3600
    assert round(jobs["slurm:5"]["reserved_gpu_seconds"]) == 0 and jobs["slurm:5"]["processes"] == 1
    rows = csv.DictReader(io.StringIO(found(db, "--format", "csv", "--by", "account")))
    assert {row["account"]: round(float(row["reserved_gpu_seconds"])) for row in rows} == {"vision": 11700, "nlp": 3600, "": 4500}
    only = json.loads(found(db, "--json", "--user", "dave"))
    jsonschema.Draft202012Validator(SCHEMA).validate(only)
    assert [user["identity"] for user in only["identities"]] == ["dave"]
    assert only["waste"]["reserved_gpu_hours"] == pytest.approx(4500 / HOUR, abs=1e-3)


def test_the_time_of_leases(db):
    """A lease is active or idle-held by its own processes, otherwise untouched; what others hold is not its own."""
    connection = sqlite3.connect(db)
    connection.executescript(VIEWS)
    rows = connection.execute("SELECT name, job_name, since, active_hours, idle_held_hours, untouched_hours, reserved_hours "
                              "FROM leased_time ORDER BY name").fetchall()
    assert rows == [("4", "never", "2026-11-02 08:00:00", 0, 0, 2, 2), ("5", "train", "2026-11-02 07:50:00", 2, 0, 0, 0),
                    ("6", None, "2026-11-02 08:00:00", 0, 1, 1, 1), ("7", None, "2026-11-02 08:30:00", 0, 0, 1.5, 1.25),
                    ("8", None, "2026-11-02 09:00:00", 0, 0, 0.5, 0.25), ("9", None, "2026-11-02 08:00:00", 0, 0, 2, 1)]


def test_people_read_it(db):
    text = " ".join(found(db, "--cost", "2").split())
    assert "reserved ╱ 55.0% ← given away, and nobody uses it" in text
    assert "reserved 5.50 GPU-hours = 2.75 of 5 GPUs given away and not touched" in text
    assert "together idle-held and reserved: 3.8 of 5 GPUs" in text
    assert "Idle-held and reserved together are 75.0% of observed time, above 20%" in text
    assert "alice has the largest part: 3.25 of 7.50 GPU-hours (share)" in text
    assert "Given away and not used, in GPU-hours" in text and "alice job 4 (never) 0 11-02 08:00 2 h 0 min 2.00 0.00" in text
    short = " ".join(found(db, "--last", "10m").split())
    assert "Given away and not used, in GPU-minutes" in short and "alice job 4 (never) 0 11-02 08:00 2 h 0 min 10.00 0.00" in short
    digest = " ".join(gua("report", "--db", db, "--now", f"@{START + 2 * HOUR}", "--utc", "--digest", "--last", "1d").stdout.split())
    assert "job 4 (never) of alice has had GPU 0 for 2 h 0 min and never used it." in digest and "job 6 of carol" not in digest
    assert "reserved 55.0% - " in digest and "reserved, GPU-hours 5.50 - " in digest
    page = found(db, "--format", "html")
    assert 'class="reserved"' in page and "<th>reserved" in re.sub(r"<th[^>]*>", "<th>", page)
    assert "cost 4.00 USD for idle-held time, 11.00 USD for reserved time at 2.00 USD per GPU-hour" in text
    assert re.search(r"alice 0.00 0.00 0.00 0.00 3.25 100.0% ", text), text
    assert "unused: idle, also on a GPU that another user keeps busy, and reserved." in text
    money = json.loads(found(db, "--json", "--cost", "2"))
    assert money["waste"]["reserved_cost"] == pytest.approx(11, abs=0.01)
    assert sum(line["cost"]["reserved"] or 0 for line in money["bill"]["lines"] if line["line"] == "identity") == \
        pytest.approx(11, abs=0.01)
    lines = {line["line"]: line for line in money["bill"]["lines"]}
    assert lines["total"]["cost"]["total"] == pytest.approx(20, abs=0.01)
    assert (lines["reserved"]["cost"]["total"], lines["held"]["cost"]["total"]) == (pytest.approx(11, abs=0.01), pytest.approx(8, abs=0.01))
    assert lines["reserved"]["gpu_seconds"] == pytest.approx(5.5 * HOUR, abs=1)
    assert lines["reserved"]["energy_kwh"] == pytest.approx(5.5 * 0.05, abs=0.001)
    assert "held 4.00 4.00 4.00 - 8.00 reserved 5.50 0.00 0.00 11.00 11.00 truly-idle" in text
    assert "slurm:4 never alice 0.00 0.00 0.00 0.00 2.00 100.0%" in " ".join(found(db, "--by", "job").split())


def test_one_user_and_one_job(db):
    alice, carol, job = (" ".join(found(db, *only).split()) for only in (("--user", "alice"), ("--user", "carol"), ("--job", "4")))
    assert "Nothing was held in this window." in alice
    assert "unused 3.25 of 3.25 GPU-hours: 0.00 idle, 0.00 idle on a GPU that another user kept busy, 3.25 reserved and not touched" in alice
    assert "of 1.00 GPU-hours that carol held" in carol and "unused 2.00 of 2.00 GPU-hours: 1.00 idle," in carol
    assert "alice job 4 (never) 0 " in job and "job 7" not in job and "carol" not in job


def test_export(db):
    """Rows of slots name the state; a row of each lease and card has its sums, whole and in half of the time."""
    def rows(what, *options):
        run = gua("export", "--db", db, "--what", what, *options)
        assert run.returncode == 0, run.stderr
        return list(csv.DictReader(io.StringIO(run.stdout)))

    states = {}
    for row in rows("usage"):
        states[row["state"]] = states.get(row["state"], 0) + float(row["seconds"])
    assert set(states) == {"active", "idle_held", "truly_idle", "reserved", "unobserved"} - ({"unobserved"} - set(states))
    assert states["reserved"] == pytest.approx(5.5 * HOUR, abs=1)
    sums = {row["id"]: [round(float(row[f"{key}_seconds"])) for key in ("reserved", "active", "idle_held", "untouched", "unknown")]
            for row in rows("lease")}
    assert sums == {"4": [7200, 0, 0, 7200, 0], "5": [0, 7200, 0, 0, 0], "6": [3600, 0, 3600, 3600, 0], "7": [4500, 0, 0, 5400, 0],
                    "8": [900, 0, 0, 1800, 0], "9": [3600, 0, 0, 7200, 0]}
    half = {row["id"]: round(float(row["reserved_seconds"])) for row in rows("lease", "--until", f"@{START + HOUR}")}
    assert half == {"4": 3600, "5": 0, "6": 0, "7": 1800, "8": 0, "9": 0}
    alice = rows("lease")[0]
    assert (alice["kind"], alice["owner"], alice["job_name"], alice["account"], alice["gpu"]) == ("slurm", "alice", "never", "vision", CARDS[0])
    assert alice["ended"] == "" and rows("lease")[4]["ended"] == "2026-11-02T09:30:00Z"


def test_bill_and_digest_of_one_user(db):
    """carol held her card for an hour and left it for another; alice never touched hers."""
    lines = {line["line"]: line for line in json.loads(found(db, "--json", "--user", "carol", "--cost", "2"))["bill"]["lines"]}
    assert {name: round(line["cost"]["total"], 2) for name, line in lines.items()} == {"identity": 4, "held": 2, "reserved": 2}
    mails = {user: " ".join(found(db, "--digest", "--user", user).split()) for user in ("alice", "carol", "bob")}
    assert "reserved 3.25 - unused 3.25 - 100.0% of the time that you had reserved or held a GPU" in mails["alice"]
    assert "job 4 (never) of alice has had GPU 0 for 2 h 0 min and never used it." in mails["alice"]
    assert "held 1.00 - used 0.00 - reserved 1.00 - unused 2.00 - 100.0%" in mails["carol"]
    assert "reserved" not in mails["bob"]


def test_metrics(db):
    """Counters of cards and of owners, and their past, which ends with the same numbers."""
    run = gua("metrics", "--db", db)
    assert run.returncode == 0, run.stderr
    cards = re.findall(r'^gua_gpu_state_seconds_total\{gpu="(\d)",.*state="reserved"\} (\d+)$', run.stdout, re.M)
    assert {gpu: int(seconds) for gpu, seconds in cards} == {"0": 7200, "1": 0, "2": 3600, "3": 5400, "4": 3600}
    owners = re.findall(r'^gua_identity_gpu_seconds_total\{identity="(\w+)",state="reserved"\} (\d+)$', run.stdout, re.M)
    assert {name: int(seconds) for name, seconds in owners if int(seconds)} == RESERVED
    past = gua("export", "--db", db, "--format", "openmetrics")
    assert past.returncode == 0, past.stderr
    last = {}
    for series, value in re.findall(r"^(gua_\w+\{.*state=\"reserved\"\}) (\d+) ", past.stdout, re.M):
        last[series] = int(value)
    assert last and all(f"{series} {value}" in run.stdout for series, value in last.items())


def test_now(db, tmp_path):
    """Live views and the store name whose card it is that nobody uses; a host without leases has nothing of it."""
    leases = tmp_path / "run" / "gua" / "leases" / "slurm"
    leases.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (leases / "4").write_text(f"id = 4\nuser = alice\ncards = {CARDS[0]}\nsince = {START}\n")
    (leases / "5").write_text(f"id = 5\nuser = bob\ncards = {CARDS[0]},{CARDS[1]}\nsince = {START}\n")
    (leases / "6").write_text(f"id = 6\nuser = eve\ncards = {CARDS[3]}\nsince = {START + 60}\n")  # by a clock that is fast
    (tmp_path / "lab.scenario").write_text(SCENARIO)
    live = ("--source", "sim", "--scenario", tmp_path / "lab.scenario", "--clock", "virtual")
    text = gua("stat", *live, "--root", tmp_path).stdout.splitlines()
    assert text[1].endswith("| reserved alice (slurm 4)") and "reserved" not in text[2] and "idle-held" in text[3]
    assert "reserved" not in gua("stat", *live).stdout
    who = gua("who", *live, "--root", tmp_path)
    row = next(line for line in who.stdout.splitlines() if "alice" in line)
    assert row.split() == ["alice", "0", "-", "-", "reserved", ">", "0", "s", "11-02", "08:00", "slurm:4", "and", "1", "more:", "not", "used"]
    for only, status in (("-u alice", 0), ("--job 4", 0), ("-u alice --idle 1h", 1), ("-u mallory", 0), ("-p 10", 0)):
        run = gua("who", *live, "--root", tmp_path, *only.split())
        assert run.returncode == status and ("slurm:4" in run.stdout) == (only in ("-u alice", "--job 4")), only
    found = json.loads(gua("who", "--json", *live, "--root", tmp_path).stdout)["reserved"]
    assert [(card["card"], card["leased_to"], card["leases"]) for card in found] == [(0, "alice (slurm 4)", 2)]
    top = gua("top", "--once", *live, "--root", tmp_path).stdout
    assert "reserved" in top


def test_tasks_of_arrays(tmp_path):
    """Users know a task of an array as 3_2. The scheduler says so, and which job a SLUID is; a process need not."""
    leases, scenario, store = tmp_path / "leases" / "slurm", tmp_path / "s", tmp_path / "gua.db"
    leases.mkdir(parents=True)
    scenario.write_text("".join(SCENARIO.splitlines(True)[:4]) + """
process named pid 10 user bob uid 2 job slurm:s0123456789ABC
process other pid 11 user bob uid 2 job slurm:7 job_name own
at 0s hold named card 1 memory 20GiB
at 0s hold other card 1 memory 20GiB
""")
    (leases / "4").write_text(f"id = 4\nuser = alice\ncards = {CARDS[0]}\nsince = {START}\nname = train\ntask = 3_2\n")
    (leases / "5").write_text(f"id = 5\nuser = bob\ncards = {CARDS[1]}\nsince = {START}\nname = sweep\naccount = nlp\n"
                              "sluid = s0123456789ABC\ntask = 5_7\n")
    (leases / "7").write_text(f"id = 7\nuser = bob\ncards = {CARDS[1]}\nsince = {START}\nname = another\n")

    def record(*options):
        run = gua("daemon", "--foreground", "--db", store, "--source", "sim", "--scenario", scenario, "--clock", "virtual",
                  "--ticks", "120", "--leases", leases.parent, *options)
        assert run.returncode == 0, run.stderr
        with sqlite3.connect(store) as rows:
            return (rows.execute("SELECT job, job_name, account, job_task FROM process ORDER BY pid").fetchall(),
                    rows.execute("SELECT name, task, job_name FROM lease WHERE kind = 0 ORDER BY name").fetchall(),
                    rows.execute("SELECT name, active_ms + idle_held_ms > 0 FROM lease JOIN leased_1d ON lease = id ORDER BY 1").fetchall())

    processes, stored, used = record()
    assert processes == [("slurm:5", "sweep", "nlp", "slurm:5_7"), ("slurm:7", "own", None, None)]
    assert stored == [("4", "3_2", "train"), ("5", "5_7", "sweep"), ("7", None, "another")]
    assert used == [("4", 0), ("5", 1), ("7", 1)]
    text, of_job = (" ".join(found(store, *args).split()) for args in (("--by", "job"), ("--job", "5_7")))
    assert "slurm:3_2 train alice 0.00" in text and "slurm:5_7 sweep bob 1.00" in text and "slurm:7 own bob 1.00" in text
    assert "alice job 3_2 (train) 0 11-02 08:00" in text
    assert "slurm:5_7 named 1 20.0 GiB" in of_job and "slurm:7" not in of_job and "alice" not in of_job
    report = json.loads(found(store, "--json", "--by", "job", "--job", "3_2"))
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    assert [row["job"] for row in report["breakdown"]["rows"]] == ["slurm:4"]
    assert [(row["id"], row["task"], row["job_name"]) for row in report["leases"]] == [("4", "3_2", "train")]
    document = json.loads(gua("lease", "list", "--leases", leases.parent, "--json").stdout)
    assert [(row["id"], row["task"], row["sluid"]) for row in document["leases"] if row["kind"] == "slurm"] == \
        [("4", "3_2", None), ("5", "5_7", "s0123456789ABC"), ("7", None, None)]
    # Live, too; and where privacy is strict, nothing that a user chose is kept.
    host = tmp_path / "host"
    (host / "proc").mkdir(parents=True)
    (host / "run/gua").mkdir(parents=True)
    (host / "run/gua/leases").symlink_to(leases.parent)
    who = gua("who", "--source", "sim", "--scenario", scenario, "--clock", "virtual", "--root", host).stdout
    assert "slurm:3_2: not used" in who
    store.unlink()
    assert record("--privacy", "strict")[:2] == ([("slurm:5", None, None, None), ("slurm:7", None, None, None)],
                                                 [("4", "3_2", None), ("5", "5_7", None), ("7", None, None)])


def test_a_silent_watcher(tmp_path):
    """After three missed answers its leases are unknown: such time is truly-idle, and the report says how much it is."""
    leases, scenario, store = tmp_path / "leases" / "slurm", tmp_path / "s", tmp_path / "gua.db"
    leases.mkdir(parents=True)
    scenario.write_text("".join(SCENARIO.splitlines(True)[:3]))
    (leases / "4").write_text(f"id = 4\nuser = alice\ncards = {CARDS[0]}\nsince = {START}\nwatched = yes\n")
    (leases / ".heartbeat").write_text("every = 60s\n")
    os.utime(leases / ".heartbeat", (START + 1800, START + 1800))
    run = gua("daemon", "--foreground", "--db", store, "--source", "sim", "--scenario", scenario, "--clock", "virtual",
              "--ticks", "120", "--leases", leases.parent)
    assert run.returncode == 0, run.stderr
    seconds = json.loads(found(store, "--json"))["gpus"][0]["gpu_seconds"]
    # What was committed before the silence was noticed stays as it was.
    assert seconds["reserved"] == pytest.approx(1980, abs=31) and seconds["reserved"] + seconds["truly_idle"] == pytest.approx(HOUR, abs=1)
    text = " ".join(found(store).split())
    hours = re.search(r"truly-idle 0\.45 GPU-hours .* of (\d\.\d\d) of these GPU-hours it is not known whether they were reserved, "
                      "because", text)
    assert hours and float(hours[1]) == pytest.approx(seconds["truly_idle"] / HOUR, abs=0.006)
    # So is the card now, in live views and in those of the store.
    (tmp_path / "host/proc").mkdir(parents=True)
    (tmp_path / "host/run/gua").mkdir(parents=True)
    shutil.copytree(leases.parent, tmp_path / "host/run/gua/leases")
    for silent in (False, True):
        answered = START - 600 if silent else START
        os.utime(tmp_path / "host/run/gua/leases/slurm/.heartbeat", (answered, answered))
        live = gua("stat", "--source", "sim", "--scenario", scenario, "--clock", "virtual", "--root", tmp_path / "host")
        assert live.stdout.rstrip().endswith("truly-idle" if silent else "reserved alice (slurm 4)"), live.stdout


@needs_serve
def test_a_silent_watcher_in_pages(tmp_path, serve):
    leases, scenario, store = tmp_path / "leases" / "slurm", tmp_path / "s", tmp_path / "gua.db"
    leases.mkdir(parents=True)
    scenario.write_text("".join(SCENARIO.splitlines(True)[:4]))
    for place, watched in enumerate(("yes", "no")):
        (leases / str(place)).write_text(f"id = {place}\nuser = alice\ncards = {CARDS[place]}\nsince = {START}\nwatched = {watched}\n")
    (leases / ".heartbeat").write_text("every = 60s\n")
    os.utime(leases / ".heartbeat", (START + 600, START + 600))
    run = gua("daemon", "--foreground", "--db", store, "--source", "sim", "--scenario", scenario, "--clock", "virtual",
              "--ticks", "60", "--leases", leases.parent)
    assert run.returncode == 0, run.stderr
    cards = json.loads(serve("--db", store, "--now", f"@{START + 1800}").get("/api/v1/now")[2])["cards"]
    assert [card["state"] for card in cards] == ["truly_idle", "reserved"]


def test_a_lease_that_was_seen_late(tmp_path):
    """Whoever used a card before the recorder knew of the lease is not accused of never having used it."""
    leases, scenario, store = tmp_path / "leases" / "slurm", tmp_path / "s", tmp_path / "gua.db"
    leases.mkdir(parents=True)
    (leases / "4").write_text(f"id = 4\nuser = bob\ncards = {CARDS[0]}\nsince = {START}\n")
    lab = "".join(SCENARIO.splitlines(True)[:3])
    for begin, more, options in (("08", "process works pid 10 user bob uid 2\nat 0s hold works card 0 memory 20GiB\n", ("--leases", tmp_path / "none")),
                                 ("10", "", ("--leases", leases.parent))):
        scenario.write_text(lab.replace("T08:", f"T{begin}:") + more)
        run = gua("daemon", "--foreground", "--db", store, "--source", "sim", "--scenario", scenario, "--clock", "virtual",
                  "--ticks", "120", *options)
        assert run.returncode == 0, run.stderr
    text = " ".join(gua("report", "--db", store, "--now", f"@{START + 3 * HOUR}", "--utc", "--digest", "--last", "1d").stdout.split())
    assert "job 4 of bob has had GPU 0 for 3 h 0 min and was not seen to use it, in 1 h 0 min that were observed." in text


def test_a_lease_whose_processes_are_not_listed(tmp_path):
    """A card that was busy while the driver listed nobody may have been used by its lease."""
    leases, scenario, store = tmp_path / "leases" / "slurm", tmp_path / "s", tmp_path / "gua.db"
    leases.mkdir(parents=True)
    (leases / "4").write_text(f"id = 4\nuser = bob\ncards = {CARDS[0]}\nsince = {START}\n")
    (leases / "5").write_text(f"id = 5\nuser = bob\ncards = {CARDS[1]}\nsince = {START}\n")
    scenario.write_text("".join(SCENARIO.splitlines(True)[:4]) + "at 0s load card 0 util 90\nat 5m load card 0 util 0\n")
    run = gua("daemon", "--foreground", "--db", store, "--source", "sim", "--scenario", scenario, "--clock", "virtual",
              "--ticks", "120", "--leases", leases.parent)
    assert run.returncode == 0, run.stderr
    text = " ".join(found(store, "--digest").split())
    assert "job 4 of bob has had GPU 0 for 1 h 0 min and was not seen to use it, but the driver did not always list who did." in text
    assert "job 5 of bob has had GPU 1 for 1 h 0 min and never used it." in text


def test_files_of_other_tools(tmp_path):
    """What the prolog of jobstats and the job mapping of dcgm-exporter say is given away, too."""
    scenario, store, host = tmp_path / "s", tmp_path / "gua.db", tmp_path / "host"
    scenario.write_text("".join(SCENARIO.splitlines(True)[:5]))
    for folder in ("proc/driver/nvidia/gpus", "run/gpustat", "var/lib/dcgm-exporter/job-mapping"):
        (host / folder).mkdir(parents=True)
    for i in range(3):
        card = host / f"proc/driver/nvidia/gpus/0000:{i + 1:02x}:00.0"
        card.mkdir()
        (card / "information").write_text(f"Model: NVIDIA A100\nGPU UUID: {CARDS[i]}\nDevice Minor: {i}\n")
    for name in ("0", CARDS[0]):
        (host / "run/gpustat" / name).write_text("247609 223456\n")
    (host / "var/lib/dcgm-exporter/job-mapping/1").write_text("11\n12\n")
    for path in host.rglob("*"):
        os.utime(path, (START - 60, START - 60))
    run = gua("daemon", "--foreground", "--db", store, "--source", "sim", "--scenario", scenario, "--clock", "virtual",
              "--ticks", "20", "--root", host, "--leases", host / "none")
    assert run.returncode == 0, run.stderr
    rows = json.loads(found(store, "--json"))["leases"]
    assert [(row["id"], row["user"], row["gpu_index"], round(row["reserved_gpu_seconds"])) for row in rows] == \
        [("247609", "uid:223456", 0, 600), ("11", "_unknown", 1, 300), ("12", "_unknown", 1, 300)]
    assert [round(card["gpu_seconds"]["reserved"]) for card in json.loads(found(store, "--json"))["gpus"]] == [600, 600, 0]


def test_beside_a_host_without_leases(db, tmp_path):
    """A report over both names it; merged, nothing of a lease is lost, and what is copied for a report has it, too."""
    other, merged, copy = tmp_path / "other.db", tmp_path / "merged.db", tmp_path / "copy.db"
    (tmp_path / "s").write_text(SCENARIO.replace("host node", "host other").replace("GPU-0000", "GPU-1000"))
    run = gua("daemon", "--foreground", "--db", other, "--source", "sim", "--scenario", tmp_path / "s", "--clock", "virtual", "--ticks", "240")
    assert run.returncode == 0, run.stderr
    both = gua("report", "--db", db, "--db", other, *NOW).stdout
    assert "No leases are known of 1 host (other): what was reserved there counts as truly-idle." in " ".join(both.split())
    alone = gua("report", "--db", other, *NOW, "--cost", "2").stdout
    assert "reserved" not in alone and "leases" not in alone
    assert gua("merge", merged, db, other).returncode == 0
    with open(copy, "wb") as out:
        subprocess.run([GUA, "export", "--db", db, "--format", "store"], stdout=out, env=clean_environment(), check=True, timeout=60)
    leases = json.loads(found(db, "--json"))["leases"]
    assert json.loads(found(merged, "--json"))["leases"] == leases == json.loads(found(copy, "--json"))["leases"]
    assert gua("export", "--db", merged, "--what", "lease").stdout == gua("export", "--db", db, "--what", "lease").stdout

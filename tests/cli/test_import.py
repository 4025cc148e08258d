"""gua import: a database of the Python gpu-usage-audit becomes a store that says the same.

`Tool` below is a small implementation of that tool's documented formulas, made for this test alone:
states by its rule, GPU-hours as samples times interval, an identity once a card and tick."""
import collections
import datetime
import json
import os
import pty
import random
import resource
import shutil
import signal
import sqlite3
import subprocess

import pytest

from conftest import GUA, clean_environment, gua, wait_for
from fake import fake_driver

START = 1777629600.25  # 2026-05-01 10:00:00.25 UTC

HOST = "CREATE TABLE host (hostname TEXT, env_kind TEXT, driver_version TEXT, first_seen, last_seen);"
LAYOUTS = {
    "0.4": HOST + """
        CREATE TABLE gpu_sample (ts TEXT, gpu_uuid TEXT, util_pct INTEGER);
        CREATE TABLE proc_sample (ts TEXT, gpu_uuid TEXT, pid INTEGER, mem_used_mb INTEGER,
            loginuid_user TEXT);""",
    "1.0": HOST + """
        CREATE TABLE daemon_run (id INTEGER PRIMARY KEY, started_at TEXT, interval_seconds REAL);
        CREATE TABLE gpu_sample (ts TEXT, gpu_uuid TEXT, util_pct INTEGER, run_id INTEGER);
        CREATE TABLE proc_sample (ts TEXT, gpu_uuid TEXT, pid INTEGER, mem_used_mb INTEGER,
            loginuid_user TEXT, run_id INTEGER);
        CREATE INDEX a ON gpu_sample (gpu_uuid, ts); CREATE INDEX b ON proc_sample (gpu_uuid, ts);""",
    "1.1": HOST + """
        CREATE TABLE daemon_run (id INTEGER PRIMARY KEY, started_at TEXT, interval_seconds REAL);
        CREATE TABLE gpu_device (gpu_uuid TEXT, name TEXT, memory_total_mb INTEGER, first_seen, last_seen);
        CREATE TABLE gpu_sample (ts TEXT, gpu_uuid TEXT, util_pct INTEGER, run_id INTEGER,
            gpu_index INTEGER, memory_used_mb INTEGER, temperature_c INTEGER, power_w REAL, usage_state TEXT);
        CREATE TABLE proc_sample (ts TEXT, gpu_uuid TEXT, pid INTEGER, mem_used_mb INTEGER,
            loginuid_user TEXT, run_id INTEGER, gpu_index INTEGER, process_name TEXT,
            process_type TEXT DEFAULT 'compute');
        CREATE INDEX a ON gpu_sample (gpu_uuid, ts); CREATE INDEX b ON proc_sample (gpu_uuid, ts);""",
}


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


class Tool:
    """A database of the Python tool, and what that tool would say about it."""

    def __init__(self, layout="1.1", host="lab"):
        self.layout, self.host = layout, host
        self.intervals = {}  # run id: seconds
        self.gpus = []       # (seconds, uuid, util, run)
        self.processes = []  # (seconds, uuid, pid, memory, user, run, command, type)

    def write(self, path):
        db = sqlite3.connect(path)
        db.executescript("PRAGMA journal_mode = WAL;" + LAYOUTS[self.layout])
        db.execute("INSERT INTO host VALUES (?, 'bare', '550.54', 'a', 'b')", (self.host,))
        runs, late = self.layout != "0.4", self.layout == "1.1"
        if runs:
            db.executemany("INSERT INTO daemon_run VALUES (?, 'x', ?)", self.intervals.items())
        for at, uuid, util, run in self.gpus:
            row = [stamp(at), uuid, util] + [run] * runs + [int(uuid[-1]), 1, 2, 3.0, "active"] * late
            db.execute(f"INSERT INTO gpu_sample VALUES ({','.join('?' * len(row))})", row)
        for at, uuid, pid, memory, user, run, command, kind in self.processes:
            row = [stamp(at), uuid, pid, memory, user] + [run] * runs
            row += [int(uuid[-1]), command, kind] * late
            db.execute(f"INSERT INTO proc_sample VALUES ({','.join('?' * len(row))})", row)
        if late:
            db.execute("INSERT INTO gpu_device VALUES ('GPU-0', 'NVIDIA H100', 81559, 'a', 'b')")
        db.commit()
        db.close()
        return path

    def fill(self, seed, ticks=300, cards=3, run=None, start=START, step=30):
        """A random lab; memory around the 100 MB of the rule, and users with several processes."""
        pick = random.Random(seed)
        late = self.layout == "1.1"
        for tick in range(ticks):
            at = start + tick * step
            for card in range(cards):
                uuid = f"GPU-{card}"
                self.gpus.append((at, uuid, pick.choice([0, 1, 9, 10, 11, 60, 100]), run))
                for pid in pick.sample(range(100, 108), pick.choice([0, 0, 1, 2, 5])):
                    memory = pick.choice([0, 30, 60, 100, 101, 8000])
                    if late and pick.random() < 0.1:
                        memory = None
                    kind = pick.choice(["compute", "compute", "graphics", None]) if late else "compute"
                    user = ["ann", "bob", "chen", None][pid % 4]
                    self.processes.append((at, uuid, pid, memory, user, run, "python", kind))
        return self

    def says(self, default=30.0):
        """Its numbers, in samples and GPU-seconds."""
        held = collections.defaultdict(list)
        for at, uuid, _, memory, user, run, _, kind in self.processes:
            if kind != "graphics":
                held[at, uuid, run].append((user or "unknown", memory))
        cards = collections.defaultdict(collections.Counter)
        people = collections.defaultdict(collections.Counter)
        heat = collections.defaultdict(collections.Counter)
        samples = collections.Counter()

        def over(memories):
            return None in memories or sum(memories) > 100

        for at, uuid, util, run in self.gpus:
            interval = self.intervals.get(run, default)
            holders = held[at, uuid, run]
            state = "active"
            if util < 10:
                state = "idle_held" if holders and over([memory for _, memory in holders]) else "truly_idle"
            samples[state] += 1
            cards[uuid][state] += interval
            when = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
            heat[(when.weekday() + 1) % 7, when.hour][state] += interval
            for user in {user for user, _ in holders}:
                people[user]["all"] += interval
                if util < 10 and over([memory for name, memory in holders if name == user]):
                    people[user]["idle_held"] += interval
        return samples, cards, people, heat


def import_into(tmp_path, file, *options, name="store.db", **rest):
    result = gua("import", file, "--db", tmp_path / name, *options, **rest)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return tmp_path / name


def ask(store, sql):
    db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def slots(store, what, columns, group):
    """Sums over the three slot tables."""
    union = " UNION ALL ".join(f"SELECT * FROM {what}_{width}" for width in ("1m", "5m", "1h"))
    return ask(store, f"SELECT {columns} FROM ({union}) AS t JOIN gpu ON gpu.id = t.gpu {group}")


def card_seconds(store):
    found = collections.defaultdict(collections.Counter)
    names = ["active", "idle_held", "truly_idle"]
    for uuid, state, ms in slots(store, "usage", "uuid, state, sum(ms)", "GROUP BY 1, 2"):
        found[uuid][names[state]] = ms / 1000
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_the_tools(tmp_path, layout):
    tool = Tool(layout).fill(layout)
    store = import_into(tmp_path, tool.write(tmp_path / "old.db"))
    _, cards, people, _ = tool.says()
    assert card_seconds(store) == cards
    rows = ask(store, "SELECT user, sum(presence_ms), sum(presence_ms * (state = 1)) FROM total_user GROUP BY 1")
    assert {user: (everything / 1000, idle / 1000) for user, everything, idle in rows} == \
        {user: (people[user]["all"], people[user]["idle_held"]) for user in people}


def test_each_run_counts_its_own_interval(tmp_path):
    tool = Tool("1.0")
    tool.intervals = {1: 10.0, 2: 2.5}
    tool.fill("a", ticks=50, run=1, step=10)
    tool.fill("b", ticks=50, run=2, start=START + 3600)
    tool.fill("c", ticks=50, run=None, start=START + 7200)
    file = tool.write(tmp_path / "old.db")
    assert card_seconds(import_into(tmp_path, file)) == tool.says()[1]
    assert card_seconds(import_into(tmp_path, file, "--interval", "1m", name="b.db")) == tool.says(60.0)[1]


def test_two_runs_at_one_time_are_two_samples(tmp_path):
    tool = Tool("1.0")
    tool.intervals = {1: 30.0, 2: 30.0}
    tool.gpus = [(START, "GPU-0", 50, 1), (START, "GPU-0", 0, 2), (START, "GPU-0", 0, None)]
    tool.processes = [(START, "GPU-0", 5, 500, "ann", 2, "", "compute")]
    store = import_into(tmp_path, tool.write(tmp_path / "old.db"))
    assert card_seconds(store) == {"GPU-0": {"active": 30, "idle_held": 30, "truly_idle": 30}}


def test_shares_add_up_to_the_cards_time(tmp_path):
    tool = Tool().fill("shares")
    tool.intervals = {}
    store = import_into(tmp_path, tool.write(tmp_path / "old.db"), "--interval", "10.007s")
    held = {(at, uuid) for at, uuid, *_, kind in tool.processes if kind != "graphics"}
    _, cards, _, _ = tool.says(10.007)
    alone = Tool()
    alone.gpus = [row for row in tool.gpus if row[:2] not in held]
    empty = alone.says(10.007)[1]
    for uuid, share in slots(store, "holding", "uuid, sum(active_share_ms + idle_share_ms)", "GROUP BY 1"):
        assert share == round(1000 * (cards[uuid]["active"] + cards[uuid]["idle_held"]
                                      - empty[uuid]["active"]))


def test_share_is_by_memory(tmp_path):
    tool = Tool()
    tool.gpus = [(START, "GPU-0", 0, None)]
    tool.processes = [(START, "GPU-0", 1, 100, "ann", None, "a", "compute"),
                      (START, "GPU-0", 2, 200, "bob", None, "b", "compute")]
    store = import_into(tmp_path, tool.write(tmp_path / "old.db"))
    assert slots(store, "holding", "user, idle_share_ms, idle_held_ms, mem_peak_kib",
                 "JOIN process ON process.id = t.process ORDER BY 1") == [
        ("ann", 10000, 0, 97657), ("bob", 20000, 30000, 195313)]


def test_lives_are_sightings_without_a_long_gap(tmp_path):
    tool = Tool()
    for at in (0, 30, 330, 631):  # ten intervals after 30, more than ten after 330
        tool.gpus.append((START + at, "GPU-0", 50, None))
        tool.processes.append((START + at, "GPU-0", 7, 500, "ann", None, "train", "compute"))
    tool.processes.append((START, "GPU-0", 7, 500, "bob", None, "train", "compute"))
    store = import_into(tmp_path, tool.write(tmp_path / "old.db"))
    first = int(START * 1000)
    assert ask(store, "SELECT user, command, first_seen_ms, last_seen_ms, started_ms, last_active_ms "
                      "FROM process ORDER BY user, first_seen_ms") == [
        ("ann", "train", first, first + 360000, None, first + 330000),
        ("ann", "train", first + 631000, first + 661000, None, first + 631000),
        ("bob", "train", first, first + 30000, None, first)]


def test_facts_of_host_and_cards(tmp_path):
    store = import_into(tmp_path, Tool().fill(1, ticks=4, cards=2).write(tmp_path / "old.db"))
    assert ask(store, "SELECT hostname, environment, driver FROM host") == [("lab", "bare", "550.54")]
    assert ask(store, "SELECT uuid, name, idx, mem_total_bytes, first_seen_ms, last_seen_ms FROM gpu") == [
        ("GPU-0", "NVIDIA H100", 0, 81559000000, int(START * 1000), int(START * 1000) + 120000),
        ("GPU-1", "", 1, None, int(START * 1000), int(START * 1000) + 120000)]
    assert ask(store, "SELECT source, started_ms, last_tick_ms, how_ended FROM run") == [
        ("import", int(START * 1000), int(START * 1000) + 120000, "imported")]
    assert ask(store, "SELECT count(*) FROM holder") == [(0,)]


def test_summary(tmp_path):
    file = Tool().fill(1, ticks=20).write(tmp_path / "old.db")
    result = gua("import", file, "--db", tmp_path / "store.db")
    assert result.stdout == (
        f"imported {file}: host lab, 3 cards, 20 ticks, 60 samples from 2026-05-01T10:00:00Z to "
        "2026-05-01T10:09:30Z; skipped: 0 samples already recorded, 0 malformed rows\n")


def test_old_data_is_compacted(tmp_path):
    store = import_into(tmp_path, Tool().fill(1).write(tmp_path / "old.db"))
    counts = ask(store, "SELECT (SELECT count(*) FROM usage_1m), (SELECT count(*) FROM usage_5m), "
                        "(SELECT count(*) FROM usage_1h WHERE slot % 3600 = 0)")
    assert counts[0][:2] == (0, 0) and counts[0][2] > 0


def test_young_data_keeps_its_minutes(tmp_path):
    import time
    start = time.time() // 60 * 60 - 7200
    store = import_into(tmp_path, Tool().fill(1, start=start).write(tmp_path / "old.db"))
    assert ask(store, "SELECT min(slot), count(DISTINCT slot) FROM usage_1m") == [(start, 150)]


def test_the_same_file_is_refused(tmp_path):
    file = Tool().fill(1).write(tmp_path / "old.db")
    store = import_into(tmp_path, file)
    before = card_seconds(store)
    again = gua("import", file, "--db", store)
    assert again.returncode == 1
    assert "is in the store already (imported at 20" in again.stderr
    assert again.stdout == ""
    assert card_seconds(store) == before
    moved = shutil.copy(file, tmp_path / "elsewhere.db")
    assert gua("import", moved, "--db", store).returncode == 1


def test_a_file_that_has_grown_adds_what_is_new(tmp_path):
    tool = Tool().fill(1, ticks=120)  # an hour: whole slots
    store = import_into(tmp_path, tool.write(tmp_path / "old.db"))
    tool.fill(2, ticks=120, start=START + 3600)
    result = gua("import", tool.write(tmp_path / "grown.db"), "--db", store)
    assert result.returncode == 0, result.stderr
    assert "360 samples from 2026-05-01T11:00:00Z" in result.stdout
    assert "skipped: 360 samples already recorded" in result.stdout
    assert card_seconds(store) == tool.says()[1]


def test_recorded_time_of_other_cards_is_no_obstacle(tmp_path):
    one = Tool()
    one.gpus = [(START, "GPU-0", 50, None)]
    store = import_into(tmp_path, one.write(tmp_path / "one.db"))
    two = Tool()
    two.gpus = [(START + 10, "GPU-0", 50, None), (START + 10, "GPU-1", 50, None)]
    result = gua("import", two.write(tmp_path / "two.db"), "--db", store)
    assert "1 cards, 1 ticks, 1 samples" in result.stdout
    assert "skipped: 1 samples already recorded" in result.stdout
    elsewhere = Tool(host="other")  # the same UUIDs on another host are other cards
    elsewhere.gpus = two.gpus
    result = gua("import", elsewhere.write(tmp_path / "three.db"), "--db", store)
    assert "2 samples" in result.stdout
    assert ask(store, "SELECT count(*) FROM gpu") == [(4,)]


def test_a_live_recorder_is_left_alone(tmp_path):
    """What is imported is about the past: the run that is going on, its holders and its newer facts stay."""
    store = import_into(tmp_path, Tool().fill(1).write(tmp_path / "old.db"))
    db = sqlite3.connect(store)
    db.executescript("""
        UPDATE host SET driver = '999';
        UPDATE gpu SET name = 'new name', last_seen_ms = 9000000000000;
        INSERT INTO run (id, host, version, source, boot_id, started_ms, last_tick_ms, ended_ms, how_ended,
            interval_ms, drain_ms, active_util_pct, held_mem_bytes, count_graphics, glance_ms)
            SELECT 77, host, version, 'nvml', boot_id, 8000000000000, 9000000000000, NULL, NULL,
            30000, 5000, 10, 100000000, 0, 0 FROM run;
        INSERT INTO holder VALUES (1, 1, 1, 5, 5, 5);""")
    db.commit()
    db.close()
    import_into(tmp_path, Tool().fill(2, start=START - 86400).write(tmp_path / "older.db"))
    assert ask(store, "SELECT ended_ms, how_ended FROM run WHERE id = 77") == [(None, None)]
    assert ask(store, "SELECT count(*) FROM holder") == [(1,)]
    assert ask(store, "SELECT driver FROM host") == [("999",)]
    assert ask(store, "SELECT DISTINCT name, last_seen_ms FROM gpu") == [("new name", 9000000000000)]


def malformed(path):
    tool = Tool("0.4").fill(1, ticks=5, cards=1)
    tool.write(path)
    db = sqlite3.connect(path)
    at = stamp(START + 5)
    gpus = [(None, "GPU-0", 1), ("soon", "GPU-0", 1), ("2026-02-30T00:00:00", "GPU-0", 1), (5, "GPU-0", 1),
            (at, None, 1), (at, "", 1), (at, "GPU-0", "fast"), (at, "GPU-0", -1), (at, "GPU-0", 101),
            (at, "GPU-0", None), (at, "G" * 5000, 1), (at, b"\0\xff", 1), (at, "GPU-0", 1e308)]
    db.executemany("INSERT INTO gpu_sample VALUES (?,?,?)", gpus)
    at = stamp(START)
    processes = [(None, None, None, None, None), (at, "GPU-0", "x", 1, "u"), (at, "GPU-0", -5, 1, "u"),
                 (at, "GPU-0", 1, "much", "u"), (at, "GPU-0", 1, -1, "u"), (at, "GPU-0", 2 ** 40, 1, "u"),
                 (at, "GPU-0", 1, 1e300, "u"), (stamp(START - 1), "GPU-0", 1, 1, "u"),
                 (stamp(START + 1e6), "GPU-9", 1, 1, "u")]
    db.executemany("INSERT INTO proc_sample VALUES (?,?,?,?,?)", processes)
    db.commit()
    db.close()
    return tool, len(gpus) + len(processes)


def test_malformed_rows_are_counted(tmp_path):
    tool, bad = malformed(tmp_path / "old.db")
    result = gua("import", tmp_path / "old.db", "--db", tmp_path / "store.db")
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(f" {bad} malformed rows\n")
    assert card_seconds(tmp_path / "store.db") == tool.says()[1]


def test_names_are_escaped(tmp_path):
    tool = Tool(host="lab\x1b[31m\n")
    tool.gpus = [(START, "GPU-\x070", 50, None)]
    tool.processes = [(START, "GPU-\x070", 1, 500, "ann\x1b]0;x\x07", None, "evil\n", "compute")]
    file = tool.write(tmp_path / "old\x1b.db")
    result = gua("import", file, "--db", tmp_path / "store.db")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout and "host lab\\x1B[31m\\x0A," in result.stdout
    assert ask(tmp_path / "store.db", "SELECT user, command FROM process") == [
        ("ann\\x1B]0;x\\x07", "evil\\x0A")]


def refused(path, *words, status=1, db="/nonexistent/store.db"):
    result = gua("import", path, "--db", db)
    assert result.returncode == status
    assert result.stdout == ""
    assert result.stderr.startswith("gua import: ") and result.stderr.count("\n") == (1 if status == 1 else 2)
    for word in words:
        assert word in result.stderr


def test_a_file_that_makes_work_is_refused(tmp_path):
    """Each of many cards looks for its device among as many: 19 MB took 82 s."""
    path = Tool().write(tmp_path / "work.db")
    with sqlite3.connect(path) as db:
        db.executemany("INSERT INTO gpu_device (gpu_uuid) VALUES (?)", ((f"GPU-other-{i}",) for i in range(60_000)))
        db.executemany("INSERT INTO gpu_sample (ts, gpu_uuid, util_pct) VALUES (?, ?, 1)",
                       ((stamp(START), f"GPU-{i}") for i in range(2000)))
    db.close()
    refused(path, "more work than a file of this size can need", db=tmp_path / "store.db")


def test_what_is_not_such_a_file_is_refused(tmp_path):
    refused(tmp_path / "missing", "No such file")
    refused(tmp_path, "cannot")
    (tmp_path / "text").write_text("hello " * 100)
    refused(tmp_path / "text", "is not a SQLite database")
    (tmp_path / "empty").write_text("")
    refused(tmp_path / "empty", "is not a database of the Python gpu-usage-audit")
    db = sqlite3.connect(tmp_path / "other.db")
    db.execute("CREATE TABLE gpu_sample (ts, gpu_uuid, util_pct)")
    db.close()
    refused(tmp_path / "other.db", "it has no proc_sample.ts")
    store = import_into(tmp_path, Tool().fill(1, ticks=2).write(tmp_path / "old.db"))
    refused(store, "is a store of gua already")
    refused(Tool().write(tmp_path / "none.db"), "holds no samples", db=tmp_path / "new.db")
    assert gua("import").returncode == 2
    assert gua("import", "a", "b").returncode == 2
    assert gua("import", "a", "--interval", "0s").returncode == 2


def test_damage_is_a_sentence_and_leaves_nothing(tmp_path):
    file = Tool().fill(1).write(tmp_path / "old.db")
    data = bytearray(file.read_bytes())
    data[len(data) // 2:len(data) // 2 + 8192] = b"\xa5" * 8192
    file.write_bytes(data)
    result = gua("import", file, "--db", tmp_path / "store.db")
    assert result.returncode == 1 and "cannot read" in result.stderr
    assert not (tmp_path / "store.db").exists()


def nothing_imported(store):
    for table in ("host", "run", "gpu", "process", "import", "usage_1m", "usage_5m", "usage_1h", "usage_1d",
                  "usage_hour", "heat_1h", "total_gpu"):
        assert ask(store, f"SELECT count(*) FROM {table}") == [(0,)]


def test_the_file_is_not_touched(tmp_path):
    (tmp_path / "old").mkdir()
    file = Tool().fill(1).write(tmp_path / "old" / "a?b%20#c.db")
    before = file.read_bytes()
    stat = file.stat()
    import_into(tmp_path, file)
    assert file.read_bytes() == before
    assert file.stat().st_mtime_ns == stat.st_mtime_ns
    assert os.listdir(tmp_path / "old") == [file.name]


def test_a_file_in_use_is_read_with_its_log(tmp_path):
    tool = Tool().fill(1, ticks=60)
    file = tool.write(tmp_path / "old.db")
    db = sqlite3.connect(file)  # the tool is running: its newest rows are in the log only
    db.execute("PRAGMA wal_autocheckpoint = 0")
    tool.gpus.append((START + 9000, "GPU-0", 77, None))
    db.execute("INSERT INTO gpu_sample (ts, gpu_uuid, util_pct) VALUES (?, 'GPU-0', 77)", (stamp(START + 9000),))
    db.commit()
    before = file.read_bytes(), (tmp_path / "old.db-wal").read_bytes()
    assert card_seconds(import_into(tmp_path, file)) == tool.says()[1]
    assert (file.read_bytes(), (tmp_path / "old.db-wal").read_bytes()) == before
    # ... and after it was killed: file and log alone.
    killed = tmp_path / "killed"
    killed.mkdir()
    shutil.copy(file, killed / "old.db")
    shutil.copy(tmp_path / "old.db-wal", killed / "old.db-wal")
    db.close()
    assert card_seconds(import_into(tmp_path, killed / "old.db", name="b.db")) == tool.says()[1]
    assert ((killed / "old.db").read_bytes(), (killed / "old.db-wal").read_bytes()) == before


def test_interrupted(tmp_path):
    """Ctrl-C is waiting from the start, so that it comes at the first moment that looks."""
    file = Tool().fill(1).write(tmp_path / "old.db")

    def interrupt():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)
    result = gua("import", file, "--db", tmp_path / "store.db", preexec_fn=interrupt)
    assert result.returncode == 1
    assert result.stderr == "gua import: interrupted: nothing was imported\n"
    nothing_imported(tmp_path / "store.db")
    import_into(tmp_path, file)


@pytest.mark.same_path
@pytest.mark.parametrize("killed", [True, False])
def test_no_space_in_the_middle(tmp_path, killed):
    """The store may not grow beyond a size: the import dies in the middle, or says why it ended."""
    tool = Tool().fill(1, ticks=400, step=600)
    file = tool.write(tmp_path / "old.db")
    size = import_into(tmp_path, file, name="whole.db").stat().st_size

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size * 2 // 3, size * 2 // 3))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
    result = gua("import", file, "--db", tmp_path / "store.db", preexec_fn=limit)
    if killed:
        assert result.returncode == -signal.SIGXFSZ
    else:
        assert result.returncode == 1 and "gua import: " in result.stderr
    nothing_imported(tmp_path / "store.db")
    assert card_seconds(import_into(tmp_path, file)) == tool.says()[1]


def test_progress_on_a_terminal_only(tmp_path):
    file = Tool().fill(1, ticks=1000).write(tmp_path / "old.db")
    ours, theirs = pty.openpty()
    child = subprocess.Popen([GUA, "import", file, "--db", tmp_path / "store.db"], stdout=subprocess.PIPE,
                             stderr=theirs, env=clean_environment(), text=True)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:  # the other end was closed
        pass
    out, _ = child.communicate()
    os.close(ours)
    assert child.returncode == 0
    assert seen.startswith(b"\r[") and b" rows" in seen
    assert seen.endswith(b"\r\x1b[K")
    assert out.startswith("imported ") and out.count("\n") == 1


def test_what_a_card_did_later_counts(tmp_path):
    """A recorder that was killed has left behind up to when it accounted each card; an import of newer data says more."""
    store = import_into(tmp_path, Tool().fill(1, ticks=120).write(tmp_path / "old.db"))
    db = sqlite3.connect(store)
    db.execute("INSERT INTO reading (gpu, at_ms, seen_ms) SELECT id, last_seen_ms, last_seen_ms FROM gpu")
    db.commit()
    db.close()
    import_into(tmp_path, Tool().fill(2, ticks=120, start=START + 7200).write(tmp_path / "newer.db"))
    whole = report(store, "--card", "GPU-0")["window"]
    assert whole["until"] == report(store)["window"]["until"], whole


def report(store, *options):
    result = gua("report", "--json", "--since", "1000w", "--utc", "--top", "100", "--db", store, *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def exactly(value):
    return pytest.approx(value, rel=0, abs=1e-6)  # the last place that JSON gives


@pytest.mark.large
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_report_says_what_the_tool_said(tmp_path, layout):
    tool = Tool(layout).fill(layout + "report", ticks=1440, step=300)  # five days
    store = import_into(tmp_path, tool.write(tmp_path / "old.db"))
    samples, cards, people, heat = tool.says()
    says = report(store)
    states = ("active", "idle_held", "truly_idle")
    for state in states:
        assert says["headline"][state] == exactly(samples[state] / samples.total())
        assert says["gpu_seconds"][state] == exactly(samples[state] * 30)
    for state in ("idle_held", "truly_idle"):
        assert says["waste"][state + "_gpu_hours"] == exactly(samples[state] * 30 / 3600)
    share = samples["idle_held"] / samples.total()
    assert says["waste"]["equivalent_gpus_unavailable"] == exactly(share * len(cards))
    assert {card["uuid"]: {state: card["gpu_seconds"][state] for state in states} for card in says["gpus"]} \
        == {uuid: {state: exactly(cards[uuid][state]) for state in states} for uuid in cards}
    assert {person["identity"]: (person["gpu_seconds"], person["idle_held_gpu_seconds"])
            for person in says["identities"]} == \
        {user: (exactly(people[user]["all"]), exactly(people[user]["idle_held"])) for user in people}
    assert {(cell["dow"], cell["hour"]): [cell[state] for state in states] for cell in says["heatmap"]
            if any(cell[state] for state in states)} == \
        {place: [exactly(heat[place][state]) for state in states] for place in heat}


def test_the_report_names_the_way_to_import(tmp_path):
    file = Tool().fill(1, ticks=2).write(tmp_path / "old.db")
    before = file.read_bytes()
    for command in (["report", "--db", file], ["import", file, "--db", file]):
        result = gua(*command)
        assert result.returncode == 1
        assert f"gua import {file}" in result.stderr
    assert file.read_bytes() == before


def test_a_store_that_others_wrote_to_meanwhile_stays(tmp_path):
    """A recorder waits for its driver in vain; what somebody brought into the new store is not its own to remove."""
    db, old, answer = tmp_path / "x.db", tmp_path / "old.db", tmp_path / "answer"
    Tool().fill(1, ticks=10).write(old)
    env = fake_driver(tmp_path, "card 0 uuid GPU-aaaa name A memory 80GiB\n"
                      "at 0s hang nvmlInit_v2\nat 0s fail nvmlInit_v2 code 9\n",
                      FAKENVML_RELEASE=answer)
    with subprocess.Popen([GUA, "daemon", "--ticks", "1", "--db", db, "--driver-timeout", "10m"],
                          stderr=subprocess.DEVNULL, env={**clean_environment(), **env}) as recorder:
        wait_for((tmp_path / "x.db.lock").exists)
        assert gua("import", old, "--db", db).returncode == 0
        answer.touch()
        assert recorder.wait() == 1
    with sqlite3.connect(db) as store:
        assert store.execute("SELECT count(*) FROM run WHERE source = 'import'").fetchone() == (1,)
    assert not (tmp_path / "x.db.lock").exists()


def quiet_lab(seed, start=START, ticks=600):
    """Cards that are idle or busy for a while, processes that come, go, release memory and move, and gaps."""
    pick, tool = random.Random(seed), Tool()
    for card in range(3):
        util, pids, left, skip = 0, {}, 0, 0
        for tick in range(ticks):
            if left == 0:
                left, util = pick.choice([3, 9, 10, 11, 25, 60]), pick.choice([0, 0, 9, 10, 80])
            left -= 1
            if pick.random() < 0.03:
                pids[pick.randrange(100, 104)] = pick.choice([99, 100, 101, 8000, None])
            if pick.random() < 0.02 and pids:
                pids.pop(pick.choice(list(pids)))
            skip = pick.choice([2, 9, 11, 40]) if pick.random() < 0.005 else max(0, skip - 1)
            if skip:  # the tool was not running
                continue
            at = start + tick * 30
            tool.gpus.append((at, f"GPU-{card}", util, None))
            for pid, memory in pids.items():
                tool.processes.append((at, f"GPU-{card}", pid, memory, "ann", None, "python", "compute"))
    return tool


def true_spells(tool, least=300):
    """By the definitions: {(card, pid, begin): (end, idle seconds, how)}. A pid that was not seen for ten intervals on any
    card is another process when it comes back."""
    seen, at_all = collections.defaultdict(dict), collections.defaultdict(set)
    for at, uuid, pid, memory, *_ in tool.processes:
        seen[uuid, at][pid] = memory
        at_all[pid].add(at)
    found = {}

    def life(pid, at):
        """When the life began that was there at this moment."""
        moments = sorted(moment for moment in at_all[pid] if moment <= at)
        while len(moments) > 1 and moments[-1] - moments[-2] <= 300:
            moments.pop()
        return moments[-1]

    def last_seen(pid, begun):
        moments = [moment for moment in sorted(at_all[pid]) if moment >= begun]
        last = moments[0]
        for moment in moments[1:]:
            if moment - last > 300:
                break
            last = moment
        return last + 30

    for uuid in sorted({uuid for _, uuid, *_ in tool.gpus}):
        open_spells = {}

        def end(key, how):
            begin, until, idle = open_spells.pop(key)
            if how == "gone":
                how = "released" if last_seen(*key) > until else "exited"
            if idle >= least:
                found[uuid, key[0], begin] = (until, idle, how)

        for at, util in sorted((at, util) for at, card, util, _ in tool.gpus if card == uuid):
            here = {(pid, life(pid, at)): memory for pid, memory in seen[uuid, at].items()}
            for key, memory in here.items():
                if util >= 10 or (memory is not None and memory <= 100):
                    if key in open_spells:
                        end(key, "active" if util >= 10 else "released")
                elif key in open_spells:
                    begin, _, idle = open_spells[key]
                    open_spells[key] = begin, at + 30, idle + 30
                else:
                    open_spells[key] = at, at + 30, 30
            for key in [key for key in open_spells if key not in here]:
                end(key, "gone")
        end_of_all = max(at for at, *_ in tool.gpus)
        for key in list(open_spells):
            end(key, "exited" if last_seen(*key) + 270 < end_of_all else "stopped")
    return found


@pytest.mark.parametrize("seed", range(6))
def test_spells_are_made_of_the_samples(tmp_path, seed):
    tool = quiet_lab(seed)
    store = import_into(tmp_path, tool.write(tmp_path / "py.db"))
    hows = ["active", "released", "exited", "stopped"]
    found = {(uuid, pid, begin / 1000): (end / 1000, idle / 1000, hows[how]) for uuid, pid, begin, end, idle, how in ask(
        store, "SELECT uuid, pid, begin_ms, end_ms, idle_held_ms, how_ended FROM spell JOIN gpu ON gpu.id = spell.gpu "
        "JOIN process ON process.id = spell.process")}
    expected = true_spells(tool)
    assert len(expected) > 10 and found == expected
    longest = json.loads(gua("report", "--db", store, "--since", "1000w", "--json", "--longest", "1000").stdout)["longest"]
    assert len(longest) == len(expected)


def test_rules_are_rehearsed_on_the_past(tmp_path):
    """An hour of work, and then idle for five hours; it ended of itself. The rule would have ended it after two."""
    tool = Tool()
    for tick in range(6 * 120 + 60):
        at = START + 30 * tick
        tool.gpus.append((at, "GPU-0", 80 if tick < 120 else 0, None))
        if tick < 720:
            tool.processes.append((at, "GPU-0", 100, 9000, "ann", None, "python", "compute"))
    store = import_into(tmp_path, tool.write(tmp_path / "py.db"))
    conf = tmp_path / "gua.conf"
    conf.write_text("[rule idle]\nwarn = 1h\nend = 2h\n")
    run = gua("enforce", "simulate", "--db", store, "--config", conf, "--json")
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["sessions_idle"] == said["sessions_warned"] == said["sessions_ended"] == 1
    assert {"own_use", "sessions", "between_samples"} <= set(said["not_known"])
    text = gua("enforce", "simulate", "--db", store, "--config", conf).stdout
    assert "imported from another tool" in text and "each process is a session" in text

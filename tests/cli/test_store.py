"""The store as people see it: the views, the manual page, and the files that gua refuses."""
import json
import re
import sqlite3

import pytest

from conftest import ROOT, gua
from handmade import SCHEMA, VIEWS

PAGE = (ROOT / "man" / "gua-store.5.scd").read_text()
HOUR = 3_600_000
DAY_S = 1793491200  # 2026-11-01 00:00 UTC
VERSION = int(re.search(r"PRAGMA user_version = (\d+)", SCHEMA).group(1))


@pytest.fixture
def store(tmp_path):
    """A store with known rows: one card, two users, three slot widths on two days."""
    path = tmp_path / "gua.db"
    db = sqlite3.connect(path)
    db.executescript(SCHEMA + VIEWS)
    start = DAY_S * 1000
    db.executescript(f"""
        INSERT INTO host VALUES (1, 'lab', '', 'bare', '550', {start}, {start});
        INSERT INTO run (id, host, version, source, boot_id, started_ms, last_tick_ms, interval_ms,
            drain_ms, active_util_pct, held_mem_bytes, count_graphics)
            VALUES (1, 1, '0', 'nvml', 'b', {start}, {start + 30 * HOUR}, 30000, 5000, 10, 100000000, 0);
        INSERT INTO gpu VALUES (1, 1, 'GPU-1', 'A100', '', '', 3, NULL, NULL, NULL, NULL, 'ok', {start}, {start}, 'nvml');
        INSERT INTO process (id, host, run, pid, start_ticks, user, command, first_seen_ms, last_seen_ms) VALUES
            (1, 1, 1, 10, 1, 'alice', 'train', {start}, {start}),
            (2, 1, 1, 20, 1, 'bob', 'jupyter', {start}, {start}),
            (3, 1, 1, 21, 1, 'bob', 'jupyter', {start}, {start});
        INSERT INTO usage_1h VALUES ({DAY_S}, 1, 0, {HOUR // 2}, {HOUR // 2 * 80}, 1800000000, 0, 0, 0),
                                    ({DAY_S}, 1, 1, {HOUR // 2}, 0, 0, {HOUR // 2}, {HOUR // 100}, 0);
        INSERT INTO usage_5m VALUES ({DAY_S + 7200}, 1, 2, {HOUR // 4}, 0, 1800000000, 0, 0, 0);
        INSERT INTO usage_1m VALUES ({DAY_S + 86400}, 1, 3, {HOUR}, 0, 0, {HOUR}, 0, 0);
        INSERT INTO holding_1h VALUES ({DAY_S}, 1, 1, {HOUR // 2}, 0, 0, 0, 0, 0, 0, 0, {HOUR // 2}, 0, NULL, 2048, 0, 0, 0, 3);
        INSERT INTO holding_5m VALUES
            ({DAY_S}, 1, 2, 0, {HOUR // 2}, 0, {HOUR // 4}, 0, 0, 0, 0, 0, {HOUR // 4}, NULL, NULL, 0, 0, 0, NULL),
            ({DAY_S}, 1, 3, 0, {HOUR // 2}, 0, 0, 0, {HOUR // 2}, 0, 0, 0, {HOUR // 4}, NULL, NULL, 0, 0, 0, NULL);
        INSERT INTO holding_1d SELECT * FROM holding_1h UNION ALL SELECT * FROM holding_5m;
        INSERT INTO holder VALUES (1, 1, 1, 5000000, {start}, {start + 30 * HOUR}),
                                  (1, 2, 1, NULL, {start}, {start + HOUR}),
                                  (1, 3, 1, 4000000, {start + 2 * HOUR}, NULL);
    """)
    yield db
    db.close()


def test_day_cards(store):
    assert store.execute("SELECT * FROM day_cards").fetchall() == [
        ("2026-11-01", "lab", 3, None, "GPU-1", 0.5, 0.5, 0.25, 0.0, 0.0, 0.01, 32.0, 1.0, 0.0),
        ("2026-11-02", "lab", 3, None, "GPU-1", 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, None, None, 0.0)]


def test_day_users_counts_presence_once(store):
    """bob's second process is on the card at the same time: it is time of his once."""
    assert store.execute("SELECT * FROM day_users").fetchall() == [
        ("2026-11-01", "lab", "alice", 0.5, 0.5, 0.0, 0.0, 0.0, 0.5),
        ("2026-11-01", "lab", "bob", 0.75, 0.0, 0.5, 0.25, 0.0, 0.5)]


def test_now_holders(store):
    """Active now: no idle_since. Never active: idle since it came."""
    assert store.execute("SELECT * FROM now_holders").fetchall() == [
        ("lab", 3, None, "alice", 10, "train", 4, "2026-11-01 00:00:00", None, "2026-11-02 06:00:00"),
        ("lab", 3, None, "bob", 21, "jupyter", 3, "2026-11-01 02:00:00", "2026-11-01 02:00:00", "2026-11-02 06:00:00"),
        ("lab", 3, None, "bob", 20, "jupyter", None, "2026-11-01 00:00:00", "2026-11-01 01:00:00", "2026-11-02 06:00:00")]


def test_usage_and_holding_join_the_widths(store):
    assert store.execute("SELECT seconds, sum(ms) FROM usage GROUP BY 1").fetchall() == [
        (60, HOUR), (300, HOUR // 4), (3600, HOUR)]
    assert store.execute("SELECT seconds, sum(idle_held_ms), sum(idle_held_presence_ms) FROM holding"
                         " GROUP BY 1").fetchall() == [(300, HOUR, HOUR // 2), (3600, 0, 0)]


def test_state_names(store):
    names = {of: [name for (name,) in store.execute("SELECT name FROM state WHERE of = ? ORDER BY state", (of,))]
             for of in ("card", "holder")}
    assert names == {"card": ["active", "idle_held", "truly_idle", "unobserved", "use_unknown", "reserved"],
                     "holder": ["active", "idle_held", "truly_idle", "squatting", "use_unknown", "reserved"]}


def test_every_table_and_column_is_in_the_manual(store):
    """Ids aside, each name of the schema is in gua-store(5), in the paragraph of its table."""
    paragraphs = re.split(r"\n(?=\*)", PAGE)
    for name, kind in store.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') UNION ALL "
                                    "SELECT name, type FROM sqlite_temp_schema").fetchall():
        mine = [p for p in paragraphs if f"*{name}*" in p.split("\n")[0]]
        assert mine, f"{name} is not in gua-store(5)"
        for column in [row[1] for row in store.execute(f"PRAGMA table_info({name})")]:
            if column != "id" and name not in ("holding_hour", "holding_1d"):
                assert any(f"_{column}_" in p for p in mine), f"{kind} {name}: {column} is not in gua-store(5)"


def test_the_manual_names_the_version():
    assert f"is the version of the schema, {VERSION}." in PAGE


def test_the_manual_has_ten_examples():
    assert len(re.findall(r"^\$ sqlite3 -readonly", PAGE, re.MULTILINE)) >= 10


def refused(path):
    """What `gua report` says of a file that it must not touch."""
    before = path.read_bytes()
    done = gua("report", "--db", path)
    assert done.returncode == 1 and done.stdout == ""
    assert path.read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]
    return done.stderr


def test_newer_store(tmp_path):
    path = tmp_path / "gua.db"
    db = sqlite3.connect(path)
    db.executescript(SCHEMA + "PRAGMA user_version = 99;")
    db.close()
    assert f"has schema version 99 and this gua knows up to {VERSION}: use a newer gua" in refused(path)


def test_python_tool(tmp_path):
    path = tmp_path / "old.db"
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE gpu_sample (ts TEXT);"
                     "CREATE TABLE proc_sample (ts TEXT)")
    db.close()
    assert f"is a database of the Python tool; take it over with: gua import {path}" in refused(path)


@pytest.mark.parametrize("content, says", [
    (b"hello\n", "is not a store of gua (not a database)"),
    (b"SQLite format 3\0" + b"\xff" * 2000, "cannot read the store"),
    (b"", "is empty: nothing was recorded yet"),
])
def test_not_a_store(tmp_path, content, says):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert says in refused(path)


@pytest.mark.parametrize("name, says", [("a\x1b31mb", "there is no store at"), ("a\x1b[31mb", "no file matches")])
def test_escapes_in_a_path_stay_escaped(tmp_path, name, says):
    done = gua("report", "--db", tmp_path / name)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr and says in done.stderr


@pytest.fixture
def version_4(tmp_path):
    """A store that an older gua wrote."""
    path = tmp_path / "old.db"
    db = sqlite3.connect(path)
    db.executescript((ROOT / "tests" / "stores" / "version-4.sql").read_text())
    db.close()
    return path


def report_of(path):
    done = gua("report", "--db", path, "--since", "@1793606400", "--until", "@1793619000", "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# What the older gua's report said of its store.
OLD_REPORT = {"active": 1260, "idle_held": 23639.789, "truly_idle": 300.211, "unobserved": 0, "use_unknown": 0}


def check_old_report(document):
    assert {name: document["gpu_seconds"][name] for name in OLD_REPORT} == OLD_REPORT
    assert document["waste"]["energy_kwh"] == pytest.approx(0.405613)
    assert {who["identity"]: who["gpu_seconds"] for who in document["identities"]} == {"bob": 12299.789, "alice": 12600}


def test_an_older_store_is_read_as_it_is(version_4):
    """Without a right to write, and without a change."""
    before = version_4.read_bytes()
    check_old_report(report_of(version_4))
    for command in (["status"], ["export", "--what", "holding"], ["export", "--what", "process"], ["who", "--source", "sim"]):
        done = gua(*command, "--db", version_4)
        assert "schema" not in done.stderr and "no such" not in done.stderr, done.stderr
    assert version_4.read_bytes() == before


def columns_of(db):
    """Names of the columns of every table and view."""
    return {name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")}


@pytest.mark.waits
def test_an_older_store_is_brought_up_to_date(version_4, store):
    """By the first command that writes: the tables of a new store, and the same sums."""
    before = report_of(version_4)
    sums = "SELECT sum(ms), sum(unsure_ms) FROM usage WHERE gpu < 3"
    with sqlite3.connect(version_4) as old:
        wanted = old.execute(sums).fetchone()
    done = gua("daemon", "--source", "sim", "--ticks", "1", "--interval", "1s", "--db", version_4)
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(version_4)
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert columns_of(db) == columns_of(store)
    assert db.execute(sums).fetchone() == wanted and wanted[0] > 0
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    after = report_of(version_4)
    check_old_report(after)
    assert after["gpus"][:2] == before["gpus"] and after["identities"] == before["identities"]


@pytest.mark.waits
def test_an_early_store_of_this_version_is_brought_up_to_date(tmp_path):
    """Its holders, open spells and totals of users were in tables without row numbers, which the recorder needs now."""
    path = tmp_path / "early.db"
    words = ["daemon", "--source", "sim", "--ticks", "1", "--interval", "1s", "--db", path]
    assert gua(*words).returncode == 0
    db = sqlite3.connect(path)
    new = {}
    for name in "holder", "open_spell", "total_user":
        (new[name],) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
        key = "" if "PRIMARY KEY" in new[name] else ", PRIMARY KEY (gpu, process)"
        db.executescript(f"CREATE TABLE kept AS SELECT * FROM {name}; DROP TABLE {name}; {new[name][:-1]}{key}) WITHOUT ROWID;"
                         f"INSERT INTO {name} SELECT * FROM kept; DROP TABLE kept;")
    (before,) = db.execute("SELECT sum(presence_ms) FROM total_user").fetchone()
    db.close()
    done = gua(*words)
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%WITHOUT ROWID' AND name IN (?, ?, ?)",
                      tuple(new)).fetchone() == (0,)
    assert db.execute("SELECT sum(presence_ms) FROM total_user").fetchone()[0] > before > 0
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)

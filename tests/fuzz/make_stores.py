#!/usr/bin/python3
"""Makes small stores for the fuzz target `store` from the one schema, whatever its tables are now:
one whole, one empty, one full of values that no recorder writes, some that are not quite stores.

usage: make_stores.py SCHEMA DIRECTORY STAMP OLDER..."""
import pathlib
import sqlite3
import sys

T = 1793952000  # the target asks for the days around this second
MAX = 2**63 - 1
ODD = [MAX, -MAX - 1, -1, 0, "many", 1e300, b"\x1b[2J\xff\0", "\x1b]0;x\x07" + "é" * 100]
TEXTS = {"source": "nvml", "status": "ok", "environment": "bare", "user": "alice", "kind": "gap"}


def usual(table, column, kind, row):
    """A value that a recorder could have written."""
    moments = table in ("host", "run", "gpu", "process", "holder", "event", "action", "import")
    if column in ("id", "gpu", "process", "parent"):
        return row
    if column == "host":
        return 1
    if column in ("begin_ms", "end_ms"):
        return (T + row) * 1000 + (column == "end_ms") * 1000 * row
    if column == "spell_ms":
        return 0
    if column == "slot":
        step = {"_1m": 60, "_5m": 300, "_1h": 3600}.get(table[-3:], 60)
        return (T // step - row) * step
    if column == "state":
        return row % 4
    if kind == "TEXT":
        return TEXTS.get(column, f"{column}-{row}")
    if column in ("ended_ms", "mig_index", "energy_mj"):
        return None
    if column in ("interval_ms", "drain_ms"):
        return 30000
    if column.endswith("_ms") and moments:
        return (T + row) * 1000
    return 1000 * row


def tables(db):
    """Names of the tables, those that others refer to first."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
    return [name for name, in rows.fetchall()]


def fill(db, table, value, rows):
    """Adds rows with value(table, column, type, row) in each column; what is refused is left out."""
    columns = [(c[1], c[2]) for c in db.execute(f"PRAGMA table_info({table})")]
    marks = ", ".join("?" * len(columns))
    for row in rows:
        values = [value(table, name, kind, row) for name, kind in columns]
        db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)


def odd(table, column, kind, row):
    """Mostly usual, with something impossible here and there."""
    if column not in ("id", "slot") and (row + len(column)) % 3 == 0:
        return ODD[(row * 7 + len(table) + 3 * len(column)) % len(ODD)]
    return usual(table, column, kind, row)


def make(schema, path, *steps):
    """Makes a file of small pages, so that mutations reach every part of it."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA page_size = 512")
    db.executescript(schema)
    for step in steps:
        step(db)
    db.execute("VACUUM")
    db.close()


def filled(db):
    for table in tables(db):
        fill(db, table, usual, range(1, 5))


def with_odd(db):
    for table in tables(db):
        try:
            fill(db, table, odd, range(1, 16))
        except (OverflowError, sqlite3.Error):
            pass  # a type that this column refuses


def with_far_slots(db):
    for slot in (MAX, -MAX - 1, -1, "x"):
        fill(db, "usage_1m", lambda *cell: slot if cell[1] == "slot" else usual(*cell), [1])


def with_a_view(db):
    db.executescript("ALTER TABLE usage_1h RENAME TO other; CREATE VIEW usage_1h AS SELECT * FROM other")


def main():
    schema = pathlib.Path(sys.argv[1]).read_text()
    directory = pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    make(schema, directory / "empty")
    make(schema, directory / "whole", filled)
    make(schema, directory / "odd", filled, with_odd)
    make(schema, directory / "far", filled, with_far_slots)
    make(schema, directory / "view", filled, with_a_view)
    make(schema, directory / "missing", filled, lambda db: db.execute("DROP TABLE holding_5m"))
    for older in map(pathlib.Path, sys.argv[4:]):
        make(older.read_text(), directory / older.stem)
    make(schema, directory / "newer", lambda db: db.execute("PRAGMA user_version = 99"))
    pathlib.Path(sys.argv[3]).touch()


main()

"""Makes databases in the layout of the Python gpu-usage-audit, for the bench: a lab of some cards at
30 s, row after row, with that tool's indexes."""
import datetime
import random
import sqlite3

SCHEMA = """
CREATE TABLE host (hostname TEXT PRIMARY KEY, env_kind TEXT NOT NULL, driver_version TEXT,
    first_seen TEXT NOT NULL, last_seen TEXT NOT NULL);
CREATE TABLE daemon_run (id INTEGER PRIMARY KEY AUTOINCREMENT, started_at TEXT NOT NULL,
    interval_seconds REAL NOT NULL);
CREATE TABLE gpu_sample (ts TEXT NOT NULL, gpu_uuid TEXT NOT NULL, util_pct INTEGER NOT NULL,
    run_id INTEGER, gpu_index INTEGER, memory_used_mb INTEGER, temperature_c INTEGER, power_w REAL,
    usage_state TEXT);
CREATE TABLE proc_sample (ts TEXT NOT NULL, gpu_uuid TEXT NOT NULL, pid INTEGER NOT NULL,
    mem_used_mb INTEGER, loginuid_user TEXT, run_id INTEGER, gpu_index INTEGER, process_name TEXT,
    process_type TEXT DEFAULT 'compute');
CREATE TABLE gpu_device (gpu_uuid TEXT PRIMARY KEY, name TEXT, memory_total_mb INTEGER,
    first_seen TEXT, last_seen TEXT);
CREATE INDEX idx_gpu_sample_uuid_ts ON gpu_sample (gpu_uuid, ts);
CREATE INDEX idx_proc_sample_uuid_ts ON proc_sample (gpu_uuid, ts);
"""
USERS = ["ann", "bob", "chen", "dora", "emil", "fay", "gus", "hana", None]
COMMANDS = ["python3 train.py", "python3 -m ipykernel", "python3 serve.py", "julia fit.jl", "gmx mdrun"]


class Card:
    """One card: jobs come and go (minutes to days), about 1.5 at a time."""

    def __init__(self, number, pick):
        self.uuid = f"GPU-{number:08x}-1111-2222-3333-{number:012x}"
        self.index = number
        self.pick = pick
        self.jobs = []  # [end, pid, memory, user, command, busy]

    def step(self, now):
        """Ends and starts jobs; returns the utilisation."""
        self.jobs = [job for job in self.jobs if job[0] > now]
        if len(self.jobs) < 4 and self.pick.random() < 0.0015:
            length = 30 * int(2 ** self.pick.uniform(2, 12.6))  # two minutes to two days
            self.jobs.append([now + length, self.pick.randrange(1000, 4000000),
                              self.pick.choice([400, 900, 8192, 20480, 40960]), self.pick.choice(USERS),
                              self.pick.choice(COMMANDS), self.pick.random() < 0.5])
        busy = any(job[5] for job in self.jobs)
        return self.pick.randrange(30, 101) if busy and self.pick.random() < 0.9 else self.pick.randrange(0, 8)


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="microseconds")


def make(path, end, days, cards=12, interval=30, seed=1):
    """Writes the file; returns (gpu rows, process rows)."""
    pick = random.Random(seed)
    lab = [Card(number, pick) for number in range(cards)]
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;" + SCHEMA)
    start = end - days * 86400 + 0.25
    db.execute("INSERT INTO host VALUES ('lab', 'bare', '550.54.14', ?, ?)", (stamp(start), stamp(end)))
    db.execute("INSERT INTO daemon_run VALUES (1, ?, ?)", (stamp(start), interval))
    for card in lab:
        db.execute("INSERT INTO gpu_device VALUES (?, 'NVIDIA H100 80GB HBM3', 81559, ?, ?)",
                   (card.uuid, stamp(start), stamp(end)))
    ticks = int(days * 86400 / interval)
    counts = [0, 0]
    for first in range(0, ticks, 2000):
        gpus, processes = [], []
        for tick in range(first, min(first + 2000, ticks)):
            now = start + tick * interval
            ts = stamp(now)
            for card in lab:
                util = card.step(now)
                used = sum(job[2] for job in card.jobs)
                gpus.append((ts, card.uuid, util, 1, card.index, used + 500, 55, 250.0, None))
                processes.extend((ts, card.uuid, job[1], job[2], job[3], 1, card.index, job[4], "compute")
                                 for job in card.jobs)
        db.executemany("INSERT INTO gpu_sample VALUES (?,?,?,?,?,?,?,?,?)", gpus)
        db.executemany("INSERT INTO proc_sample VALUES (?,?,?,?,?,?,?,?,?)", processes)
        db.commit()
        counts[0] += len(gpus)
        counts[1] += len(processes)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return tuple(counts)

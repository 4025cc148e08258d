"""What a report over many stores costs: one store as a recorder leaves it after a month, copied with other names of the host
and the cards. Where the disk has no room for all, fewer are made, and the figures say so."""
import os
import shutil
import sqlite3
import statistics
import time

MB = 1e6
CARDS, DAYS = 8, 30


def vary(made, path, number):
    """A copy that is another host."""
    shutil.copyfile(made, path)
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN")
        db.execute("UPDATE host SET hostname = ?, machine_id = ?", (f"node{number:05}", f"{number:032x}"))
        db.execute("UPDATE gpu SET uuid = substr(uuid, 1, 4) || ? || substr(uuid, 9)", (f"{number:04x}",))
        db.execute("COMMIT")
    db.close()


def make(bench, count):
    folder, made = bench.folder / "stores", bench.folder / "one.db"
    folder.mkdir()
    bench.output(bench.tool("year"), made, int(time.time()), DAYS, CARDS)
    size = made.stat().st_size
    fits = int(shutil.disk_usage(folder).free * 0.8 // size)
    for number in range(min(count, fits)):
        vary(made, folder / f"node{number:05}.db", number)
    os.sync()  # nothing is written any more when reading is measured
    return folder, min(count, fits), size


def rows(bench, say):
    wanted = 40 if bench.quick else 2000
    say(f"making {wanted} stores of {CARDS} cards and {DAYS} days")
    folder, count, size = make(bench, wanted)
    processors = len(os.sched_getaffinity(0))
    full = count == 2000
    for since, name, goal in (("lastweek", "last week", 3), ("30d", "30 days", 4), ("1h", "an hour", 2)):
        wall, cpu, peak = bench.runs_of(bench.build / "gua", "report", "--db", folder, "--since", since,
                                        runs=3 if not bench.quick else 2)
        bench.table.row(f"{count} stores, {name}: time", min(wall) / 1e3, "s", goal,
                        f"wall, the fastest of {len(wall)}, {processors} processors, load {os.getloadavg()[0]:.1f}; CPU "
                        f"{statistics.median(cpu) / 1e3:.1f} s, {statistics.median(cpu) / count:.1f} ms a store of "
                        f"{size / MB:.1f} MB", judged=full)
        bench.table.row(f"{count} stores, {name}: peak memory", max(peak), "MB", 60, judged=full)
    few = sorted(folder.iterdir())[:20]
    out = bench.folder / "merged.db"
    began = time.monotonic()
    bench.output(bench.build / "gua", "merge", out, *few)
    print(f"  merge of {len(few)} stores: {time.monotonic() - began:.1f} s, {out.stat().st_size / MB:.0f} MB", flush=True)
    shutil.rmtree(folder)
    out.unlink()

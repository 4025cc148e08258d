"""What `gua enforce` costs: a pass over many sessions, and the service while nothing is due."""
import os
import signal
import sqlite3
import subprocess
import time

MB = 1e6
TICKS = os.sysconf("SC_CLK_TCK")
HOLDERS, PASSES = 30, 20


def make_store(build, folder):
    """The demo's store, with a recorder that seems to be running now and holders that are idle for a while."""
    store = folder / "policy" / "gua.db"
    store.parent.mkdir(exist_ok=True)
    subprocess.run([build / "gua", "demo", "--db", store], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return store


def freshen(store):
    """A tick a moment ago: what a recorder would have written."""
    now = int(time.time() * 1000)
    with sqlite3.connect(store) as db:
        run, host, boot = db.execute("SELECT id, host, boot_id FROM run ORDER BY id DESC LIMIT 1").fetchone()
        db.execute("UPDATE run SET ended_ms = NULL, last_tick_ms = ? WHERE id = ?", (now, run))
        db.execute("DELETE FROM holder")
        db.execute("DELETE FROM open_spell")
        gpu, = db.execute("SELECT id FROM gpu WHERE host = ? LIMIT 1", (host,)).fetchone()
        processes = [row[0] for row in db.execute("SELECT id FROM process WHERE host = ? LIMIT ?", (host, HOLDERS))]
        for process in processes:
            db.execute("INSERT INTO holder VALUES (?, ?, 1, ?, ?, NULL)", (gpu, process, 8 << 30, now - 3_000_000))
            db.execute("INSERT INTO open_spell VALUES (?, ?, ?, ?, ?, 0, ?, NULL)",
                       (gpu, process, now - 1_800_000, now, 1_800_000, 8 << 20))


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid):
    status = open(f"/proc/{pid}/status").read()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024 / MB


def shared_out_mb(pid):
    """The same with pages that other programs have, too, divided among them."""
    return int(open(f"/proc/{pid}/smaps_rollup").read().split("\nPss:")[1].split()[0]) * 1024 / MB


def rows(bench, say):
    histories = 20_000 if bench.quick else 1_000_000
    say(f"checking {histories} random histories of sessions")
    checked, ends, would = map(int, bench.output(bench.tool("policy"), histories, 1_000_001).split())
    bench.table.row("policy: random histories without a wrong end", checked, "", histories,
                    f"{ends} sessions ended, {would} on paper; simulate says the same", at_least=True)
    judged, steps = map(int, bench.output(bench.tool("policy"), "judge").split())
    bench.table.row("policy: 1,000 sessions judged", judged / 1e3, "ms", 50, f"CPU; 20 rules before the one that matches, "
                    f"{steps} steps")
    store = make_store(bench.build, bench.folder)
    freshen(store)
    say("a service that has nothing to do")
    service = subprocess.Popen([bench.build / "gua-enforce", "run", "--db", store, "--set", "policy.every=1s"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        before = cpu_seconds(service.pid)
        for _ in range(PASSES):
            freshen(store)
            time.sleep(1)
        spent, memory = cpu_seconds(service.pid) - before, resident_mb(service.pid)
        shared_out = shared_out_mb(service.pid)
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait()
    bench.table.row("gua enforce run: a core, at a pass a minute", spent / PASSES / 60 * 100, "%", 0.02,
                    f"{spent / PASSES * 1e3:.1f} ms a pass, {HOLDERS} idle processes")
    bench.table.row("gua enforce run: resident memory", memory, "MB", 8,
                    f"{shared_out:.1f} MB where shared pages are divided among their users")

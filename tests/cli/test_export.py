"""gua export: every row of a store, in order, as CSV and JSON, in constant memory."""
import contextlib
import csv
import io
import json
import os
import sqlite3
import subprocess

import pytest

from conftest import GUA, clean_environment, gua
from handmade import ACTIVE, HOUR, IDLE_HELD, SQUATTING, UNOBSERVED, Store

T = 1793620800  # Mon 2026-11-02 12:00 UTC


def export(path, *args):
    run = gua("export", "--db", path, *args)
    assert run.returncode == 0, run.stderr
    return run.stdout


def rows(path, *args):
    """The rows as CSV gives them; JSON must say the same."""
    table = list(csv.DictReader(io.StringIO(export(path, *args), newline=""), strict=True))
    document = json.loads(export(path, "--format", "json", *args))
    array = document["rows"]
    assert document["schema"] == "gua-export-1"
    assert len(array) == len(table)
    for line, item in zip(table, array):
        assert list(line) == list(item)
        for key, value in item.items():
            if value is None or not isinstance(value, str):
                assert line[key] == "" if value is None else float(line[key]) == value
            else:
                assert line[key].removeprefix("'") == value.removeprefix("'")
    return table


@pytest.fixture
def store(tmp_path):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T - 2 * HOUR, T + 120)
    gpu = s.card(host, 0, T - 2 * HOUR, T + 120, uuid="GPU-a")
    second = s.card(host, 1, T - 2 * HOUR, T + 120, uuid="GPU-b")
    life = s.process(host, 42, "=alice", 'say "hi", now', started=T - 60.5, job="slurm:7", tag="=grant", login="ssh",
                     seen=(T - 2 * HOUR, T - HOUR), last_active=T - 3000)
    old = s.process(host, 41, "bob", seen=(T - 9 * HOUR, T - 8 * HOUR))
    s.insert("holder", gpu=gpu, process=life, kind=1, mem_bytes=1, since_ms=0,
             last_active_ms=(T + 60) * 1000)
    # Written out of order, and by the minute before the hour is full.
    for slot in (T + 60, T):
        s.usage(slot, gpu, IDLE_HELD, 30, joules=1.5)
        s.usage(slot, gpu, ACTIVE, 30, util=80, joules=None)
        s.usage(slot, second, UNOBSERVED, 60)
    s.usage(T - 300, gpu, ACTIVE, 300, util=50, width=300)
    s.usage(T - 2 * HOUR, gpu, ACTIVE, HOUR, util=12.5, joules=1e6, width=HOUR)
    s.holding(T, gpu, life, ACTIVE, 30, share=30, mem_mb=2048)
    s.holding(T, gpu, life, SQUATTING, 20, presence=5)
    s.holding(T - 2 * HOUR, gpu, old, IDLE_HELD, HOUR, share=HOUR, width=HOUR)
    s.insert("event", host=host, at_ms=T * 1000, gpu=second, kind="card-lost", value=15,
             text="GPU is lost\x1b[31m")
    s.insert("event", host=host, at_ms=(T + 1) * 1000, gpu=None, kind="gap", value=3, text="")
    return s.save()


def test_usage(store, expect):
    table = rows(store)
    assert table == rows(store, "--what", "usage")
    assert [(r["slot"], r["slot_seconds"], r["gpu"], r["state"]) for r in table] == [
        ("2026-11-02T10:00:00Z", "3600", "GPU-a", "active"),
        ("2026-11-02T11:55:00Z", "300", "GPU-a", "active"),
        ("2026-11-02T12:00:00Z", "60", "GPU-a", "active"),
        ("2026-11-02T12:00:00Z", "60", "GPU-a", "idle_held"),
        ("2026-11-02T12:00:00Z", "60", "GPU-b", "unobserved"),
        ("2026-11-02T12:01:00Z", "60", "GPU-a", "active"),
        ("2026-11-02T12:01:00Z", "60", "GPU-a", "idle_held"),
        ("2026-11-02T12:01:00Z", "60", "GPU-b", "unobserved")]
    assert table[0]["mean_util_pct"] == "12.5" and table[0]["energy_joules"] == "1000000"
    assert table[2]["energy_joules"] == "" and table[4]["mean_util_pct"] == ""
    expect("export/usage.csv", export(store))
    expect("export/usage.json", export(store, "--format", "json"))


def test_json_is_a_document_like_the_others(store, tmp_path):
    """--json is --format json; its host is that of all rows."""
    text = export(store, "--json")
    assert text == export(store, "--format", "json")
    document = json.loads(text)
    assert (document["schema"], document["host"], document["what"]) == ("gua-export-1", "lab-a100", "usage")
    other = Store(tmp_path / "other.db")
    other.host(hostname="lab-h100", machine_id="m2")
    document = json.loads(export(store, "--db", other.save(), "--json"))
    assert document["host"] is None and {row["host"] for row in document["rows"]} == {"lab-a100"}
    run = gua("export", "--db", store, "--json", "--format", "csv")
    assert run.returncode == 2 and "--json and --format csv exclude each other" in run.stderr


def test_holding(store):
    first, second = rows(store, "--what", "holding")
    assert (first["pid"], first["idle_held_share_seconds"], first["peak_mem_bytes"]) == \
        ("41", "3600", "")
    assert second["user"] == "'=alice" and second["command"] == 'say "hi", now'
    assert (second["active_seconds"], second["squatting_seconds"],
            second["presence_seconds"]) == ("30", "20", "35")
    assert second["active_share_seconds"] == "30" and second["mean_sm_pct"] == ""


def test_process(store):
    bob_and_alice = {r["pid"]: r for r in rows(store, "--what", "process")}
    alice = bob_and_alice["42"]
    assert alice["started"] == "2026-11-02T11:58:59.500Z" and alice["job"] == "slurm:7"
    assert (alice["tag"], alice["login"], alice["account"]) == ("'=grant", "ssh", "")
    # It holds now: the last tick and `holder` are newer than its own row.
    assert alice["last_seen"] == "2026-11-02T12:02:00Z"
    assert alice["last_active"] == "2026-11-02T12:01:00Z"
    assert bob_and_alice["41"]["last_active"] == "" and bob_and_alice["41"]["started"] == ""
    assert [r["pid"] for r in rows(store, "--what", "process", "--since", f"@{T}")] == ["42"]


def test_event(store):
    assert [(r["kind"], r["gpu"], r["text"]) for r in rows(store, "--what", "event")] == [
        ("card-lost", "GPU-b", "GPU is lost\\x1B[31m"), ("gap", "", "")]
    assert len(rows(store, "--what", "event", "--since", f"@{T + 1}")) == 1


@pytest.mark.same_path
@pytest.mark.parametrize("since, until, n", [
    ("@0", "now", 8), (f"@{T}", "now", 6), (f"@{T - 1}", "now", 7), (f"@{T + 59}", "now", 6),
    (f"@{T + 60}", "now", 3), (f"@{T - 2 * HOUR + 3599}", f"@{T - HOUR}", 1),
    (f"@{T - 10 * HOUR}", f"@{T - 9 * HOUR}", 0)])
def test_window(store, since, until, n):
    """Slots that the window cuts are given, those that only touch it are not."""
    assert len(rows(store, "--since", since, "--until", until, "--now", f"@{T + 200}")) == n


def test_several_stores_are_one_table(store, tmp_path):
    other = Store(tmp_path / "other.db")
    host = other.host("second")
    other.usage(T, other.card(host, 0, T, T + 60), ACTIVE, 60)
    path = other.save()
    both = json.loads(gua("export", "--db", store, "--db", path, "--format", "json").stdout)["rows"]
    assert [item["host"] for item in both] == 8 * ["lab-a100"] + ["second"]


def test_no_rows_are_still_a_document(tmp_path):
    path = Store(tmp_path / "empty.db").save()
    assert json.loads(export(path, "--format", "json")) == {
        "schema": "gua-export-1", "host": None, "what": "usage", "rows": []}
    assert export(path).startswith("slot,") and export(path).count("\n") == 1


def test_simulated_data_is_said(store, tmp_path):
    db = tmp_path / "demo.db"
    gua("demo", "--ticks", 1, "--db", db)
    assert gua("export", "--db", db).stderr == f"gua: {db}: simulated data, invented and not measured on a GPU\n"
    assert gua("export", "--db", store).stderr == ""
    # A later run of a real source makes it no less invented; a time without it has nothing to say.
    with contextlib.closing(sqlite3.connect(db)) as file, file:
        columns = [row[1] for row in file.execute("PRAGMA table_info(run)") if row[1] not in ("id", "source")]
        file.execute(f"INSERT INTO run (source, {', '.join(columns)}) SELECT 'nvml', {', '.join(columns)} FROM run")
    assert "simulated data" in gua("export", "--db", db).stderr
    assert gua("export", "--db", db, "--since", "2001-01-01", "--until", "2001-02-01").stderr == ""


@pytest.mark.large
def test_memory_does_not_grow_with_the_store(tmp_path):
    def peak_kib(slots):
        s = Store(tmp_path / f"{slots}.db")
        gpu = s.card(s.host(), 0, T, T)
        s.db.executemany("INSERT INTO usage_1h VALUES (?, ?, ?, 1, 1, 1, 0, 0, 0)",
                         ((T + HOUR * i, gpu, k) for i in range(slots) for k in range(4)))
        command = ["/usr/bin/python3", "-c", "import resource, subprocess, sys; "
                   "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                   GUA, "export", "--db", s.save(), "--format", "json"]
        # A sanitizer keeps what was freed for a while: that is not what is measured here.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
        return int(subprocess.run(command, env=clean_environment(ASAN_OPTIONS=asan), check=True,
                                  capture_output=True).stdout)
    assert peak_kib(20000) < peak_kib(1000) + 4096


def test_wrong_usage_and_missing_files(store, tmp_path):
    for args in (("--what", "moon"), ("--format", "xml"), ("--since", "now", "--until", "1h"),
                 ("--since", "never"), ("operand",)):
        run = gua("export", "--db", store, *args)
        assert run.returncode == 2 and run.stdout == "" and "usage: gua export" in run.stderr
    run = gua("export", "--db", tmp_path / "nowhere.db")
    assert run.returncode == 1 and "nowhere.db" in run.stderr


def test_a_full_disk_is_said(store):
    with open("/dev/full", "w") as full:
        run = subprocess.run([GUA, "export", "--db", store], stdout=full, stderr=subprocess.PIPE,
                             env=clean_environment())
    assert run.returncode == 1 and b"cannot write the output" in run.stderr


def test_a_reader_that_goes_away(store):
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run([GUA, "export", "--db", store], stdout=write, stderr=subprocess.PIPE,
                         env=clean_environment())
    os.close(write)
    assert run.returncode in (-13, 1)

"""gua merge: the new store says what the stores said, nothing is counted twice, and it is whole or not there."""
import json
import os
import signal
import sqlite3
import subprocess

import pytest

from conftest import BUILD, GUA, ROOT, gua
from handmade import ACTIVE, IDLE_HELD, Store
from test_stores import HOUR, T, asked_for, damage, host_store, report

FORMS = [(), ("--json", "--longest", "50"), ("--format", "html"), ("--by", "process", "--top", "0"), ("--by", "host"),
         ("--by", "user,notebook", "--json"), ("--user", "ann", "--json"), ("--compare", f"@{T - HOUR}"),
         ("--format", "csv", "--table", "timeline"), ("--cost", "2", "--energy-price", "0.3"), ("--digest",)]


KILLER = BUILD / "tests" / "libkiller.so"


def merge(*words):
    return gua("merge", *words)


def rows(path, sql):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def same_reports(out, paths):
    for form in FORMS:
        one, many = report("--db", out, *form), report(*asked_for(paths), *form)
        assert (one.returncode, one.stdout) == (many.returncode, many.stdout), form
        assert one.returncode == 0, one.stderr


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Two measured hosts, a simulated one, and one of three days with all widths of slots."""
    folder = tmp_path_factory.mktemp("lab")
    paths = [host_store(folder / f"{i}.db", i, source="sim" if i == 2 else "nvml", idle=0.1 + i / 5) for i in range(3)]
    s = Store(folder / "week.db")
    host = s.host(hostname="week", machine_id="w")
    s.run(host, T - 3 * 24 * HOUR, T + HOUR)  # killed, or still running
    card = s.card(host, 0, T - 3 * 24 * HOUR, T + HOUR, uuid="GPU-week")
    ann = s.process(host, 7, "ann", started=T, seen=(T, T + HOUR), notebook="w.ipynb")
    for width, start in ((HOUR, T - 3 * 24 * HOUR), (300, T - 24 * HOUR), (60, T)):
        for i in range(12):
            s.usage(start + i * width, card, IDLE_HELD, width, joules=width * 60, width=width)
            s.holding(start + i * width, card, ann, IDLE_HELD, width, share=width, mem_mb=3000, width=width)
    s.spell(card, ann, T, T + 900, how=None)
    s.insert("holder", gpu=card, process=ann, kind=1, mem_bytes=3 << 30, since_ms=T * 1000)
    s.insert("open_life", pid=7, process=ann)
    s.insert("total_gpu", gpu=card, state=IDLE_HELD, ms=77)
    s.insert("total_user", host=host, user="ann", state=IDLE_HELD, presence_ms=77, share_ms=70, moved_ms=T * 1000)
    s.insert("identity", host=host, user="ann", place=1, first_ms=T * 1000)
    s.insert("reading", gpu=card, at_ms=T * 1000, util_pct=3.5)
    lease = s.insert("lease", host=host, kind=0, name="4", owner="ann", share=1, since_ms=T * 1000,
                     first_seen_ms=T * 1000, last_seen_ms=T * 1000)
    for width in ("1m", "5m", "1h"):
        s.insert(f"reserved_{width}", slot=T - HOUR, gpu=card, lease=lease, reserved_ms=9, unknown_ms=0)
    s.insert("leased_1d", slot=T // 86400 * 86400, gpu=card, lease=lease, active_ms=0, idle_held_ms=0, use_unknown_ms=0, untouched_ms=9)
    s.insert("import", host=host, first_ms=1, last_ms=2, samples=3, imported_ms=4, path="old.db")
    s.sums(T)
    s.save()
    other = Store.open(paths[1])
    other.sums(T + HOUR)
    other.save()
    return [*paths, s.path]


# Sums of complete hours: those of some stores end earlier.
SUMS = ("usage_hour", "usage_1d", "holding_hour", "holding_1d", "heat_1h")


def test_sums_of_hours_end_where_the_last_of_the_stores_do(lab, tmp_path):
    out = tmp_path / "out.db"
    assert merge(out, *lab).returncode == 0
    made = {table: sorted(rows(out, f"SELECT * FROM {table}")) for table in SUMS}
    assert all(made.values()) and max(made["heat_1h"])[0] + HOUR == T + HOUR
    with sqlite3.connect(out) as db:
        for table in SUMS:
            db.execute(f"DELETE FROM {table}")
    again = Store.open(out)
    again.sums(T + HOUR)
    again.save()
    assert made == {table: sorted(rows(out, f"SELECT * FROM {table}")) for table in SUMS}


def test_a_report_over_it_is_that_over_the_stores(lab, tmp_path):
    out = tmp_path / "out.db"
    run = merge(out, *lab)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"merged 4 stores into {out}: 4 hosts, 7 GPUs, from 2026-10-30T12:00:00Z to "
                                 "2026-11-02T13:00:00Z, ")
    assert run.stderr == "gua: some of the data is simulated or captured; the new store says so\n"
    same_reports(out, lab)
    assert "SIMULATED DATA" in report("--db", out).stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out.db"] and out.stat().st_mode & 0o777 == 0o640
    assert rows(out, "PRAGMA integrity_check") == [("ok",)]


def test_every_table_is_carried(lab, tmp_path):
    """A table that the merge does not know would lose its rows: all have some here, but that of GPM."""
    out = tmp_path / "out.db"
    assert merge(out, *lab).returncode == 0
    tables = [name for name, in rows(out, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    assert len(tables) > 20
    for table in tables:
        n = sum(rows(path, f"SELECT count(*) FROM {table}")[0][0] for path in lab)
        found = rows(out, f"SELECT count(*) FROM {table}")[0][0]
        if table in SUMS:
            continue
        assert found == n and (n > 0 or table == "sm_active"), table
    assert rows(out, "SELECT hostname, user, command FROM process JOIN host ON host.id = process.host JOIN open_life "
                "ON process = process.id") == [("week", "ann", "python train.py")]
    assert rows(out, "SELECT hostname FROM host JOIN gpu ON gpu.host = host.id JOIN event ON gpu = gpu.id ORDER BY 1") == \
        [("node000",), ("node001",), ("node002",)]


def second_store(path, machine="m1", started=T + HOUR, uuid="GPU-00010"):
    """The next hour of node001's first card, by a recorder with a new store."""
    s = Store(path)
    host = s.host(hostname="node001", machine_id=machine, driver="570.1")
    s.run(host, started, started + HOUR, ended=started + HOUR)
    card = s.card(host, 0, started, started + HOUR, uuid=uuid, name="NVIDIA new name")
    bob = s.process(host, 9, "bob", started=T, seen=(T, T + HOUR))
    for slot in range(started, started + HOUR, 300):
        s.usage(slot, card, ACTIVE, 60, util=50)
        s.holding(slot, card, bob, ACTIVE, 60, share=60, mem_mb=5000)
    for user, place in (("bob", 1), ("ann", 2)):
        s.insert("identity", host=host, user=user, place=place, first_ms=started * 1000)
    s.insert("total_gpu", gpu=card, state=ACTIVE, ms=5)
    return s.save()


@pytest.mark.parametrize("swap", [False, True])
def test_two_stores_of_a_host(tmp_path, swap):
    """The cards are one each, whatever the order; users keep different places."""
    paths = [host_store(tmp_path / "1.db", 1), second_store(tmp_path / "2.db")]
    with sqlite3.connect(paths[0]) as db:
        db.execute("INSERT INTO identity (host, user, place, first_ms, named_ms) VALUES (1, 'ann', 1, ?, 8)", (T * 1000,))
        db.execute("INSERT INTO total_gpu (gpu, state, ms) VALUES (1, 0, 7)")
    paths = paths[::-1] if swap else paths
    out = tmp_path / "out.db"
    run = merge(out, *paths)
    assert run.returncode == 0 and ": 1 host, 2 GPUs, from" in run.stdout
    same_reports(out, paths)
    assert rows(out, "SELECT user, place, first_ms, named_ms FROM identity ORDER BY place") == \
        [("ann", 1, T * 1000, 8), ("bob", 2, (T + HOUR) * 1000, 0)]
    assert rows(out, "SELECT ms FROM total_gpu") == [(12,)]
    assert rows(out, "SELECT name, first_seen_ms, last_seen_ms FROM gpu WHERE uuid = 'GPU-00010'") == \
        [("NVIDIA new name", (T - 2 * HOUR) * 1000, (T + 2 * HOUR) * 1000)]


def test_two_machines_of_one_name(tmp_path):
    paths = [host_store(tmp_path / "1.db", 1), second_store(tmp_path / "2.db", machine="other", uuid="GPU-x")]
    assert merge(tmp_path / "out.db", *paths).returncode == 0
    assert rows(tmp_path / "out.db", "SELECT hostname FROM host ORDER BY id") == [("node001",), ("node001#2",)]
    same_reports(tmp_path / "out.db", paths)


def test_a_machine_that_got_another_name_in_a_merged_store(tmp_path):
    """It is the same machine: not counted twice, and it keeps its place when the store is merged again."""
    first, second = host_store(tmp_path / "1.db", 1), second_store(tmp_path / "2.db", machine="other", uuid="GPU-x")
    third = second_store(tmp_path / "3.db", machine="third", uuid="GPU-y")
    later = second_store(tmp_path / "4.db", machine="other", uuid="GPU-x", started=T + 3 * HOUR)
    merged, out = tmp_path / "merged.db", tmp_path / "out.db"
    assert merge(merged, first, second).returncode == 0
    for command in (lambda *paths: report(*asked_for(paths)), lambda *paths: merge(out, *paths)):
        run = command(merged, second)
        assert run.returncode == 2 and "both have what was recorded on node001#2 from" in run.stderr, run.stderr
    run = merge(out, merged, third, later)
    assert run.returncode == 0, run.stderr
    assert rows(out, "SELECT hostname, machine_id FROM host ORDER BY id") == \
        [("node001", "m1"), ("node001#2", "other"), ("node001#3", "third")]
    same_reports(out, [first, second, third, later])


def test_nothing_is_counted_twice(lab, tmp_path):
    copy, merged, out = tmp_path / "copy.db", tmp_path / "merged.db", tmp_path / "out.db"
    copy.write_bytes(lab[0].read_bytes())
    assert merge(merged, *lab[:2]).returncode == 0
    overlap = second_store(tmp_path / "overlap.db", started=T + HOUR // 2)
    for words, why in (((lab[0], lab[0]), "are the same store"), ((lab[0], copy), "both have what was recorded on node000 from"),
                       ((merged, lab[1]), "both have what was recorded on node001 from"),
                       ((lab[1], overlap), "both recorded the cards of node001 from Mon 2026-11-02 12:30")):
        run = gua("merge", out, *words, env={"TZ": "UTC"})
        assert run.returncode == 2 and why in run.stderr and "--since" not in run.stderr, run.stderr
        assert not out.exists()
    assert merge(out, merged, lab[2]).returncode == 0  # a merged store can be merged again
    same_reports(out, lab[:3])


@pytest.mark.parametrize("table", ["gpu", "process", "usage_1m", "holding_1m", "spell"])
def test_a_damaged_store_leaves_nothing(tmp_path, table):
    paths = [host_store(tmp_path / f"{i}.db", i) for i in range(2)]
    damage(paths[1], table)
    run = merge(tmp_path / "out.db", *paths)
    assert run.returncode == 1 and str(paths[1]) in run.stderr and "damaged" in run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.db", "1.db"]


def test_wrong_use(lab, tmp_path):
    out = tmp_path / "out.db"
    out.write_text("mine")
    run = merge(out, *lab)
    assert run.returncode == 1 and run.stderr.startswith(f"gua merge: {out} exists already; ") and out.read_text() == "mine"
    (tmp_path / "text.db").write_text("no store\n")
    for words, why in (((tmp_path / "a.db", tmp_path, lab[0]), f"{out} is not a store of gua (not a database)"),
                       ((tmp_path / "a.db", lab[0].parent, tmp_path / "text.db"), "text.db is not a store of gua"),
                       ((tmp_path / "a.db", tmp_path / "none.db"), "there is no store at"),
                       ((tmp_path / "none" / "a.db", lab[0]), "cannot make")):
        run = merge(*words)
        assert run.returncode == 1 and why in run.stderr, run.stderr
    for words in ((), (tmp_path / "a.db",)):
        assert merge(*words).returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.db", "text.db"]


def test_stores_of_older_versions(tmp_path):
    """They become part of a store of the present version."""
    for script in (ROOT / "tests/stores").glob("*.sql"):
        old, new, out = (tmp_path / f"{name}-{script.stem}.db" for name in ("old", "new", "out"))
        with sqlite3.connect(old) as db:
            db.executescript(script.read_text())
        run = merge(out, old, host_store(new, 1))
        assert run.returncode == 0, run.stderr
        when = ("--since", "1000w", "--now", f"@{T + 99 * 24 * HOUR}", "--json")
        one, many = (gua("report", *asked_for(paths), *when) for paths in ([out], [old, new]))
        assert one.returncode == 0 and json.loads(one.stdout) == json.loads(many.stdout)
        assert rows(out, "PRAGMA user_version") == rows(new, "PRAGMA user_version")


def test_a_signal_leaves_nothing(lab, tmp_path):
    """Between two stores; until then it waits."""
    for i in range(40):
        (tmp_path / f"{i:02}.db").write_bytes(lab[0].read_bytes().replace(b"node000", b"hst%04d" % i).replace(
            b"GPU-0000", b"GPU-%04d" % i))
    process = subprocess.Popen([GUA, "merge", tmp_path / "out", tmp_path], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob("out.merge-*")):
        pass
    process.send_signal(signal.SIGTERM)
    said = process.communicate()[1]
    done = (tmp_path / "out").exists()  # it was quicker
    assert done or (process.returncode == 1 and said == "gua merge: interrupted: no store was made\n")
    assert not list(tmp_path.glob("out.merge-*")) and len(os.listdir(tmp_path)) == 40 + done


@pytest.mark.parametrize("writes", [65, 80])
def test_what_a_killed_merge_leaves_is_not_a_store(lab, tmp_path, writes):
    """A report over the directory passes it over, also when most of it was written."""
    folder = tmp_path / "stores"
    folder.mkdir()
    for path in lab:
        (folder / path.name).write_bytes(path.read_bytes())
    before = report("--json", "--db", folder)
    run = gua("merge", folder / "out", folder,
              env={"LD_PRELOAD": str(KILLER), "KILLER_FILE": ".merge-", "KILLER_WRITES": str(writes),
                   "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
    left, = folder.glob("out.merge-*")
    assert run.returncode == -9 and left.read_bytes().startswith(b"SQLite format 3")
    after = report("--json", "--db", folder)
    assert (after.returncode, after.stdout, after.stderr) == (0, before.stdout, "")
    assert report("--db", left).returncode == 1


def test_slots_at_both_ends_of_time(tmp_path):
    """Sums are not made for every hour between them: that would take days."""
    s = Store(tmp_path / "damaged.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    for slot in (0, 1 << 39):
        s.usage(slot, card, IDLE_HELD, 60)
    s.save()
    other = Store.open(host_store(tmp_path / "other.db", 1))
    other.sums((1 << 39) // HOUR * HOUR)
    other.save()
    assert merge(tmp_path / "out.db", tmp_path / "damaged.db", other.path).returncode == 0
    assert rows(tmp_path / "out.db", "SELECT count(*) FROM usage WHERE gpu = 1") == [(2,)]

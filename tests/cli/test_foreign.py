"""Files from outside: damaged or hostile stores, Python databases and tracking files, pipes and devices. Each command
that reads one ends soon, with a sentence and exit status 1, and does not fill the memory."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import time

import pytest

from conftest import BUILD, GUA, clean_environment, gua
from fake import fake_driver
from handmade import ACTIVE, Store
from test_import import LAYOUTS, Tool

NOW = 1793952000
MEMORY_MIB = 128
SANITIZED = "asan" in BUILD.name


def store(path):
    made = Store(path)
    host = made.host()
    made.run(host, NOW - 3600, NOW)
    card = made.card(host, 0, NOW - 3600, NOW)
    process = made.process(host, 100, "ann", seen=(NOW - 3600, NOW))
    made.usage(NOW - 3600, card, ACTIVE, 60, util=50)
    made.holding(NOW - 3600, card, process, ACTIVE, 60, share=60)
    made.db.commit()
    return made.db


def rewrite(db, *statements):
    """Changes the schema behind SQLite's back, as one who makes a hostile file does."""
    db.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        db.execute(statement)
    db.execute("PRAGMA writable_schema = OFF")
    db.commit()
    db.close()


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS id"


def recursive_view(path, table="run"):
    """A table that is a view without end."""
    db = store(path)
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    db.execute(f"DROP TABLE {table}")
    db.execute(f"CREATE VIEW {table} AS {ENDLESS}, {', '.join(f'x AS {name}' for name in columns[1:])} FROM c")
    db.commit()
    db.close()


def large_view(path):
    """A process whose command is a gigabyte."""
    db = store(path)
    db.execute("ALTER TABLE process RENAME TO p")
    columns = [row[1] for row in db.execute("PRAGMA table_info(p)")]
    wanted = ", ".join("hex(zeroblob(500000000)) AS command" if name == "command" else name for name in columns)
    db.execute(f"CREATE VIEW process AS SELECT {wanted} FROM p")
    db.commit()
    db.close()


def upper_case_view(path):
    recursive_view(path)
    rewrite(sqlite3.connect(path), "UPDATE sqlite_schema SET name = 'RUN', tbl_name = 'RUN' WHERE name = 'run'")


def virtual_table(path):
    db = store(path)
    db.execute("DROP TABLE run")
    try:
        db.execute("CREATE VIRTUAL TABLE run USING fts5(id, host, version, source)")
    except sqlite3.OperationalError:
        pytest.skip("Python's SQLite has no virtual table to make one with")
    db.commit()
    db.close()


def computed_column(path):
    db = store(path)
    db.execute("ALTER TABLE run ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))")
    db.commit()
    db.close()


def trigger(path):
    db = store(path)
    db.execute("CREATE TRIGGER t AFTER INSERT ON gpu BEGIN DELETE FROM usage_1h; END")
    db.commit()
    db.close()


PAGE = 4096


def pages_in_a_ring(path):
    """A table whose inner pages name one page hundreds of times, in three levels: more rows than memory."""
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA page_size = {PAGE}")
    db.execute("VACUUM")
    db.close()
    db = store(path)
    for name in ("one", "two", "three"):
        db.execute(f"CREATE TABLE {name} (x)")
    db.commit()
    pages = [db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
             for name in ("run", "one", "two", "three")]
    db.close()
    data = bytearray(open(path, "rb").read())

    def inner(page, child):
        cells = 500
        body = bytearray(PAGE)
        start = PAGE - 5 * cells
        struct.pack_into(">BHHHBI", body, 0, 5, 0, cells, start, 0, child)
        for i in range(cells):
            struct.pack_into(">H", body, 12 + 2 * i, start + 5 * i)
            struct.pack_into(">IB", body, start + 5 * i, child, 1)
        data[(page - 1) * PAGE:page * PAGE] = body

    data[(pages[-1] - 1) * PAGE:pages[-1] * PAGE] = data[(pages[0] - 1) * PAGE:pages[0] * PAGE]
    for page, child in zip(pages, pages[1:]):
        inner(page, child)
    with open(path, "wb") as file:
        file.write(data)


STORES = {"recursive view": recursive_view, "large view": large_view, "view in upper case": upper_case_view,
          "virtual table": virtual_table, "computed column": computed_column, "trigger": trigger,
          "pages in a ring": pages_in_a_ring}

READERS = {
    "report": ["report", "--by", "process"],
    "report json": ["report", "--format", "json"],
    "export": ["export"],
    "export sums": ["export", "--format", "json"],
    "status": ["status"],
    "stat": ["stat"],
    "who": ["who"],
    "pick": ["pick"],
    "doctor": ["doctor"],
    "daemon": ["daemon", "--ticks", "1", "--source", "sim"],
}


def bounded(*args, env=None):
    """Runs gua and returns (exit status, stderr)."""
    child = subprocess.Popen([str(GUA), *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, env=clean_environment(**(env or {})))
    try:
        _, errors = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        pytest.fail(f"gua {' '.join(map(str, args))} did not end")
    return child.returncode, errors


def peak_mib(*args, env=None):
    """The most memory that gua had, in MiB: measured by a parent of its own."""
    script = ("import resource, subprocess, sys\n"
              "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)\n"
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)")
    return int(subprocess.run(["/usr/bin/python3", "-c", script, str(GUA), *map(str, args)], check=True,
                              env=clean_environment(**(env or {})), capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    where = tmp_path_factory.mktemp("hostile")
    made = {}

    def get(name):
        if name not in made:
            made[name] = where / f"{name.replace(' ', '-')}.db"
            STORES[name](made[name])
        return made[name]
    return get


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", STORES)
@pytest.mark.both_builds
def test_every_reader_ends_with_a_sentence(hostile, name, reader, tmp_path):
    if name == "pages in a ring" and reader == "daemon":
        pytest.skip("a recorder trusts that the pages of its own store are whole: only its user can write there")
    path = tmp_path / "store.db"
    shutil.copy(hostile(name), path)
    env = {**fake_driver(tmp_path, "card 0 uuid GPU-aaaa name A memory 80GiB\n"), "XDG_RUNTIME_DIR": str(tmp_path)}
    args = [*READERS[reader], "--db", path]
    status, errors = bounded(*args, env=env)
    live = reader in ("stat", "who", "pick", "doctor")  # these go on without the store, and doctor prints what it found
    if name == "pages in a ring":  # a command that does not read this table does not notice
        assert status in (0, 1) and "\n" in errors + "\n"
    elif not live:
        assert status == 1 and errors.startswith("gua ") and len(errors.splitlines()) == 1, (status, errors)
    else:
        assert status in (0, 1, 3), (status, errors)
    if not SANITIZED and reader in ("report", "export"):
        assert peak_mib(*args, env=env) < MEMORY_MIB


def test_pages_in_a_ring_are_too_much_work(hostile):
    result = gua("report", "--since", "2026-11-01", "--db", hostile("pages in a ring"))
    assert result.returncode == 1
    assert "more work than a file of this size can need" in result.stderr


@pytest.mark.large
def test_holes_do_not_count_as_size(hostile, tmp_path):
    """A file of a tebibyte with nothing in it was given days of work."""
    path = shutil.copy(hostile("pages in a ring"), tmp_path / "store.db")
    os.truncate(path, 1 << 40)
    status, errors = bounded("report", "--since", "2026-11-01", "--db", path)
    assert status == 1 and "more work than a file of this size can need" in errors


def python_file(path, change=""):
    Tool().fill(1, ticks=20).write(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = DELETE")
    db.executescript(change)
    db.commit()
    db.close()
    return path


@pytest.mark.parametrize("table", ["gpu_sample", "host", "daemon_run"])
def test_import_reads_tables_only(tmp_path, table):
    path = python_file(tmp_path / "old.db")
    db = sqlite3.connect(path)
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    db.execute(f"DROP TABLE {table}")
    names = ", ".join(f"x AS {name}" for name in columns)
    db.execute(f"CREATE VIEW {table} AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
               f" SELECT {names} FROM c")
    db.commit()
    db.close()
    status, errors = bounded("import", path, "--db", tmp_path / "store.db")
    assert status == 1 and "is not a table" in errors
    assert not (tmp_path / "store.db").exists()


def test_import_leaves_out_what_cannot_be_dated(tmp_path):
    rows = "".join(f"INSERT INTO gpu_sample (ts, gpu_uuid, util_pct) VALUES ('{when}', 'GPU-9', 50);"
                   for when in ("9999-12-31T00:00:00Z", "1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z"))
    path = python_file(tmp_path / "old.db", rows)
    result = gua("import", path, "--db", tmp_path / "store.db")
    assert result.returncode == 0, result.stderr
    assert "3 samples dated before 2007 or in the future" in result.stdout
    db = sqlite3.connect(tmp_path / "store.db")
    assert db.execute("SELECT count(*) FROM gpu WHERE uuid = 'GPU-9'").fetchone() == (0,)
    assert db.execute("SELECT last_ms FROM import").fetchone()[0] < 1893456000000


def test_import_of_nothing_but_the_future(tmp_path):
    db = sqlite3.connect(tmp_path / "old.db")
    db.executescript(LAYOUTS["0.4"])
    db.execute("INSERT INTO gpu_sample VALUES ('9999-01-01T00:00:00Z', 'GPU-0', 1)")
    db.commit()
    db.close()
    result = gua("import", tmp_path / "old.db", "--db", tmp_path / "store.db")
    assert result.returncode == 1 and "no samples between 2007 and now" in result.stderr


ODD = {"pipe": lambda path: os.mkfifo(path), "directory": lambda path: path.mkdir(),
       "device": lambda path: path.symlink_to("/dev/zero")}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("args", [
    ["import", "ODD"], ["report", "--db", "ODD"], ["export", "--db", "ODD"],
    ["sub-track", "analyze", "--tf", "ODD", "--stf", "ODD"],
    ["sub-track", "compare", "-m", "a=ODD", "-m", "b=ODD"],
    ["sub-track", "compare", "--cconfig", "ODD"],
    ["sub-track", "combine", "-p", "ODD", "-p", "ODD", "--stf", "new.sqlite"]], ids=lambda args: " ".join(args[:2]))
def test_only_regular_files_are_read(tmp_path, kind, args):
    for ending in ("csv", "sqlite"):
        odd = tmp_path / f"odd.{ending}"
        ODD[kind](odd)
        given = [word.replace("ODD", str(odd)).replace("new.sqlite", str(tmp_path / f"new.{ending}")) for word in args]
        status, errors = bounded(*given)
        assert status in (1, 2) and len(errors) > 20, errors
        if kind == "directory":
            odd.rmdir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_import_can_be_stopped_while_it_opens(tmp_path, number):
    """A lock that another program holds keeps the import in its opening; a signal ends it there."""
    path = tmp_path / "old.db"
    Tool().fill(1, ticks=5).write(path)  # in WAL, so that SQLite looks at the lock
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA journal_mode = DELETE")
    holder.execute("PRAGMA journal_mode = PERSIST")
    holder.execute("CREATE TABLE other (x)")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("INSERT INTO other VALUES (1)")
    child = subprocess.Popen([str(GUA), "import", str(path), "--db", str(tmp_path / "store.db")],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())

    def is_path(fd):
        with contextlib.suppress(FileNotFoundError):  # the program may close it meanwhile
            return os.path.samefile(f"/proc/{child.pid}/fd/{fd}", path)
        return False
    deadline = time.monotonic() + 60
    while child.poll() is None and not any(map(is_path, os.listdir(f"/proc/{child.pid}/fd"))):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    if child.poll() is None:
        child.send_signal(number)
    assert child.wait(timeout=60) in (-number, 1)
    assert not (tmp_path / "store.db").exists()
    holder.close()


def test_subtrack_reads_tables_only(tmp_path):
    db = sqlite3.connect(tmp_path / "marks.sqlite")
    db.execute("CREATE VIEW data AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT"
               " 1 AS process_id, 'a' AS code_block_name, 0 AS position, x AS timestamp FROM c")
    db.commit()
    db.close()
    shutil.copy(tmp_path / "marks.sqlite", tmp_path / "two.sqlite")
    for args in (["combine", "-p", tmp_path / "marks.sqlite", "-p", tmp_path / "two.sqlite", "--stf",
                  tmp_path / "new.sqlite"],
                 ["analyze", "--tf", tmp_path / "marks.sqlite", "--stf", tmp_path / "marks.sqlite"]):
        status, errors = bounded("sub-track", *args)
        assert status == 1 and "is not a table" in errors


@pytest.mark.parametrize("args", [["sub-track", "analyze", "--tf", "FILE.csv", "--stf", "FILE.csv"],
                                  ["sub-track", "combine", "--stf", "new.csv", "-p", "FILE.csv", "-p", "FILE.csv"],
                                  ["sub-track", "compare", "-m", "a=FILE.csv"],
                                  ["stat", "--source", "sim", "--scenario", "FILE.csv"]], ids=lambda args: args[1])
@pytest.mark.both_builds
def test_holes_take_no_memory(tmp_path, args):
    """A file of 900 MiB with nothing in it was read whole: a gigabyte of memory and 14 s."""
    path = tmp_path / "FILE.csv"
    path.write_bytes(b"timestamp,position\n")
    os.truncate(path, 900 << 20)
    words = [word.replace("FILE.csv", str(path)).replace("new.csv", str(tmp_path / "new.csv")) for word in args]
    status, errors = bounded(*words)
    assert status == 1 and "NUL" in errors.splitlines()[0], errors
    assert SANITIZED or peak_mib(*words) < 30


@pytest.mark.parametrize("statistic", ["min|max", "|", "", "mea"])
def test_a_statistic_is_one_word(tmp_path, statistic):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"file_path_map": {"a": "x", "b": "y"}, "statistic": statistic}))
    result = gua("sub-track", "compare", "--cconfig", config)
    assert result.returncode == 2 and "is not a statistic" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_in_a_sticky_directory_the_log_of_another_user_is_refused(tmp_path, suffix):
    """SQLite would copy the pages of a planted -journal file into the store."""
    path = tmp_path / "g.db"
    assert gua("daemon", "--db", path, "--once", "--source", "sim").returncode == 0
    planted, before = tmp_path / f"g.db{suffix}", path.read_bytes()
    planted.write_bytes(b"\0" * 1024)
    tmp_path.chmod(0o1777)
    for owner in (54321, 0):
        os.chown(planted, owner, owner)
        for words in (["report"], ["export"], ["daemon", "--once", "--source", "sim"]):
            r = gua(*words, "--db", path)
            assert ("54321, who does not own the store" in r.stderr) == (owner != 0), r.stderr
            assert owner == 0 or (r.returncode == 1 and path.read_bytes() == before)

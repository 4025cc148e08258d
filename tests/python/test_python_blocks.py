"""SubTracker and sub_track: names, files, several processes, what is overwritten."""
import csv
import os
import sqlite3

import pytest

from pyrun import python

# In Python alone: libgua is loaded, and not asked.
pytestmark = pytest.mark.any_build

HEADER = ["process_id", "code_block_name", "position", "timestamp"]


def rows(path):
    """The rows of a sub-tracking file, in its order: (process id, block, position, time)."""
    if path.suffix == ".sqlite":
        with sqlite3.connect(path) as connection:
            cursor = connection.execute("SELECT * FROM data ORDER BY rowid")
            assert [column[0] for column in cursor.description] == HEADER
            return cursor.fetchall()
    with open(path, newline="") as file:
        header, *lines = csv.reader(file)
    assert header == HEADER
    return [(int(pid), name, int(position), float(at)) for pid, name, position, at in lines]


def shape(path):
    return [(name, position) for _, name, position, _ in rows(path)]


def test_the_default_file_and_names(python, tmp_path):
    pid = int(python("""
        import os, time
        import gua as gput
        with gput.SubTracker():
            pass
        with gput.SubTracker(code_block_attribute="part"):
            pass
        with gput.SubTracker(code_block_name="mine"):
            before = time.time()
        @gput.sub_track()
        def work():
            return 7
        @gput.sub_track(code_block_attribute="other")
        def more(x, *, y):
            "what it does"
            return x + y
        assert (work(), more(1, y=2), more.__name__, more.__doc__) == (7, 3, "more", "what it does")
        print(os.getpid())
        """))
    found = rows(tmp_path / f"{pid}.csv")
    assert {row[0] for row in found} == {pid}
    assert [(name, position) for _, name, position, _ in found] == [
        (name, position) for name in ("program.py:4", "program.py:part", "mine", "program.py:work", "program.py:other")
        for position in (0, 1)]
    times = [row[3] for row in found]
    assert times == sorted(times)


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_an_error_in_a_block_still_stops_it(python, tmp_path, kind):
    python(f"""
        import gua
        block = gua.SubTracker('a, "quoted"\\nname', sub_tracking_file="blocks.{kind}")
        try:
            with block:
                with block:
                    raise RuntimeError
        except RuntimeError:
            pass
        """)
    assert shape(tmp_path / f"blocks.{kind}") == [('a, "quoted"\nname', position) for position in (0, 0, 1, 1)]


def test_a_coroutine_is_tracked_until_it_ends(python, tmp_path):
    python("""
        import asyncio
        import gua
        @gua.sub_track("wait", sub_tracking_file="blocks.csv")
        async def wait():
            await asyncio.sleep(0.05)
        asyncio.run(wait())
        """)
    (*_, start), (*_, stop) = rows(tmp_path / "blocks.csv")
    assert stop - start >= 0.05


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_a_file_of_an_earlier_run(python, tmp_path, kind):
    program = f"""
        import sys
        import gua
        overwrite = sys.argv[1] == "overwrite"
        for name in sys.argv[2:]:
            with gua.SubTracker(name, sub_tracking_file="blocks.{kind}", overwrite=overwrite):
                pass
        """
    path = tmp_path / f"blocks.{kind}"
    python(program, "keep", "first")
    run = python.run(program, "keep", "second")
    assert run.returncode == 1 and "FileExistsError: " in run.stderr and f"blocks.{kind} already exists" in run.stderr
    assert shape(path) == [("first", 0), ("first", 1)]
    python(program, "overwrite", "third", "fourth")
    assert shape(path) == [("third", 0), ("third", 1), ("fourth", 0), ("fourth", 1)]


@pytest.mark.parametrize("content", ["", ",".join(HEADER) + "\n"])
@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_an_empty_file_is_not_ours(python, tmp_path, kind, content):
    path = tmp_path / f"blocks.{kind}"
    path.write_text(content)
    run = python.run(f"import gua\ngua.SubTracker('a', sub_tracking_file='blocks.{kind}')")
    assert run.returncode == 1 and "FileExistsError: " in run.stderr and f"blocks.{kind} already exists" in run.stderr
    assert path.read_text() == content
    python(f"import gua\nwith gua.SubTracker('a', sub_tracking_file='blocks.{kind}', overwrite=True): pass")
    assert shape(path) == [("a", 0), ("a", 1)]


@pytest.mark.parametrize("place", ["None", "'blocks.csv'", "'blocks.sqlite'"])
def test_a_file_that_is_removed_is_an_error(python, tmp_path, place):
    """Rows are not lost in silence; an object that is created later starts a new file."""
    name = python(f"""
        import os
        import gua
        block = gua.SubTracker("a", sub_tracking_file={place})
        @gua.sub_track("b", sub_tracking_file={place})
        def work():
            pass
        def refused(call):
            try:
                call()
            except FileNotFoundError as error:
                assert "was removed in the middle of writing data to it" in str(error), error
            else:
                raise AssertionError
        with block:
            work()
        file = block.sub_tracking_file
        os.unlink(file)
        refused(work)
        refused(block.__enter__)
        assert not os.path.exists(file)
        with gua.SubTracker("c", sub_tracking_file={place}):
            work()
        os.rename(file, "kept." + file)  # another file has its name
        open(file, "w").close()
        refused(work)
        print(file)
        """).strip()
    assert (tmp_path / name).read_text() == ""
    (tmp_path / f"kept.{name}").rename(tmp_path / name)
    assert shape(tmp_path / name) == [("c", 0), ("b", 0), ("b", 1), ("c", 1)]


def test_a_link_to_a_file_that_is_not_there(python, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "blocks.csv").symlink_to("data/real")
    python("import gua\nwith gua.SubTracker('a', sub_tracking_file='blocks.csv'): pass")
    assert shape(tmp_path / "blocks.csv") == [("a", 0), ("a", 1)] and os.listdir(tmp_path / "data") == ["real"]


def test_a_journal_of_an_earlier_run_does_not_come_back(python, tmp_path):
    """A journal that a killed process left would be rolled back into the new file."""
    (tmp_path / "blocks.sqlite").write_bytes(b"x" * 4096)
    (tmp_path / "blocks.sqlite-journal").write_bytes(b"x" * 4096)
    python("""
        import gua
        with gua.SubTracker("a", sub_tracking_file="blocks.sqlite", overwrite=True):
            pass
        """)
    assert shape(tmp_path / "blocks.sqlite") == [("a", 0), ("a", 1)]
    assert not (tmp_path / "blocks.sqlite-journal").exists()


POOL = """
    import multiprocessing
    import os
    import sys
    import gua
    kind, method, overwrite = sys.argv[1:]
    file = None if kind == "default" else "blocks." + kind

    @gua.sub_track("work", sub_tracking_file=file, overwrite=overwrite == "overwrite")
    def work(number):
        return os.getpid()

    if __name__ == "__main__":
        work(0)
        context = multiprocessing.get_context(method)
        with context.Pool(2, maxtasksperchild=20) as pool:
            pids = pool.map(work, range(60), chunksize=1)
        print(os.getpid(), *sorted(set(pids)))
    """


@pytest.mark.parametrize("overwrite", ["keep", "overwrite"])
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_processes_share_a_file(python, tmp_path, kind, method, overwrite):
    """Nobody removes what another process of the run has written, and no row is torn."""
    pids = list(map(int, python(POOL, kind, method, overwrite).split()))
    assert len(pids) >= 3
    found = rows(tmp_path / f"blocks.{kind}")
    assert len(found) == 2 * 61 and {row[0] for row in found} == set(pids)
    for pid in pids:
        positions = [position for process, _, position, _ in found if process == pid]
        assert positions == [0, 1] * (len(positions) // 2)


def test_each_process_has_a_default_file_of_its_own(python, tmp_path):
    pids = python(POOL, "default", "fork", "keep").split()
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == sorted(f"{pid}.csv" for pid in pids)
    for pid in pids:
        assert {row[0] for row in rows(tmp_path / f"{pid}.csv")} == {int(pid)}


def test_threads_share_a_file(python, tmp_path):
    for kind in ("csv", "sqlite"):
        python(f"""
            import threading
            import gua
            def work():
                for _ in range(50):
                    with gua.SubTracker("work", sub_tracking_file="blocks.{kind}"):
                        pass
            threads = [threading.Thread(target=work) for _ in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            """)
        found = shape(tmp_path / f"blocks.{kind}")
        assert sorted(found) == [("work", 0)] * 200 + [("work", 1)] * 200


def test_a_wrong_name_of_a_file(python, tmp_path):
    run = python.run("import gua\ngua.SubTracker(sub_tracking_file='blocks.txt')")
    assert run.returncode == 1 and run.stderr.splitlines()[-1].startswith('ValueError: Invalid file name: "blocks.txt"')
    assert os.listdir(tmp_path) == ["program.py"]


def test_a_cell_of_a_notebook_has_a_short_name(python, tmp_path):
    python("""
        import gua
        cell = compile("with gua.SubTracker(sub_tracking_file='blocks.csv'): pass", "/tmp/ipykernel_1/22.py", "exec")
        exec(cell)
        """)
    assert shape(tmp_path / "blocks.csv") == [("22.py:1", 0), ("22.py:1", 1)]

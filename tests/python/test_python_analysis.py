"""SubTrackingAnalyzer and TrackingComparison: the statistics, and that they are those of `gua sub-track`."""
import json
import pickle
import random
import statistics
import sys

import pytest

from conftest import ROOT, gua
from pyrun import python

sys.path.insert(0, str(ROOT / "tests" / "cli"))
from test_subtrack import STATIC_VALUES, sub_file, tracking_file  # noqa: E402

# In Python alone; test_subtrack.py has the program under sanitizers.
pytestmark = pytest.mark.any_build

RESULTS = """
    import json, sys
    import gua
    analyzer = gua.SubTrackingAnalyzer(*sys.argv[1:])
    print(json.dumps(analyzer.sub_tracking_results().to_json(), allow_nan=False))
    """
# f calls itself twice: 10..13, 10.5..12.5, 11..12; another process runs it meanwhile; h never stops.
MARKS = [(1, "f", 0, 10.0), (1, "f", 0, 10.5), (1, "f", 0, 11.0), (1, "f", 1, 12.0), (1, "f", 1, 12.5),
         (1, "f", 1, 13.0), (2, "f", 0, 10.0), (2, "f", 1, 10.25), (1, "g", 0, 20.0), (1, "g", 1, 21.0),
         (1, "h", 0, 9.0)]


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_nested_and_recursive_blocks(python, tmp_path, kind):
    track = tracking_file(tmp_path / f"t.{kind}", [(t, t) for t in range(9, 16)])
    sub = sub_file(tmp_path / f"s.{kind}", MARKS)
    result = json.loads(python(RESULTS, track, sub))
    f, g, h = result["code_block_results"]
    assert (f["name"], f["num_calls"], f["num_timepoints"], f["num_non_empty_calls"]) == ("f", 4, 4, 4)
    assert f["compute_time"] == pytest.approx({"min": 0.25, "max": 3, "mean": 1.5625,
                                               "std": statistics.pstdev([3, 2, 1, 0.25]), "total": 6.25})
    assert f["resource_usage"]["main_ram"] == pytest.approx({"min": 10, "max": 13, "mean": 11.5, "std": 1.25 ** 0.5})
    assert g["num_timepoints"] == 0 and set(g["resource_usage"]["main_ram"].values()) == {None}
    assert h["num_calls"] == 0 and set(h["compute_time"].values()) == {None} and result["unfinished_calls"] == 1
    assert list(result["static_data"].values()) == STATIC_VALUES
    assert "timestamp" not in result["overall"] and result["overall"]["system_ram"]["mean"] == 12


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_the_same_as_the_programs(python, tmp_path, kind):
    """Random blocks, nested and in several processes, in any order of processes; unknown readings."""
    chance = random.Random(3)
    marks = []
    for process in range(1, 5):
        at, stack = 100.0 + chance.random(), []
        while len(stack) or at < 120:
            at += chance.random()
            if stack and (at > 120 or chance.random() < 0.5):
                marks.append((process, stack.pop(), 1, round(at, 6)))
            else:
                stack.append(chance.choice(["a", "b", "x.py:10", 'with "quotes", and comma']))
                marks.append((process, stack[-1], 0, round(at, 6)))
    points = [(100 + i * 0.37, None if chance.random() < 0.1 else chance.random()) for i in range(60)]
    track, sub = tracking_file(tmp_path / f"t.{kind}", points), sub_file(tmp_path / f"s.{kind}", marks)
    ours = json.loads(python(RESULTS, track, sub))
    run = gua("sub-track", "analyze", "--tf", track, "--stf", sub, "-f", "json")
    theirs = json.loads(run.stdout)
    assert theirs.pop("schema") == "gua-sub-track-1"
    assert ours.keys() == theirs.keys() and ours["static_data"] == theirs["static_data"]
    assert [b["name"] for b in ours["code_block_results"]] == [b["name"] for b in theirs["code_block_results"]]
    for mine, other in zip([ours["overall"], *(b["resource_usage"] for b in ours["code_block_results"])],
                           [theirs["overall"], *(b["resource_usage"] for b in theirs["code_block_results"])]):
        assert list(mine) == list(other)
        for measurement in mine:
            assert mine[measurement] == pytest.approx(other[measurement], rel=1e-6, abs=1e-8)
    for mine, other in zip(ours["code_block_results"], theirs["code_block_results"]):
        assert mine["compute_time"] == pytest.approx(other["compute_time"], rel=1e-6, abs=1e-8)
        for count in ("num_timepoints", "num_calls", "num_non_empty_calls"):
            assert mine[count] == other[count]


def test_the_parts(python, tmp_path):
    track = tracking_file(tmp_path / "t.csv", [(t, t) for t in range(9, 16)])
    sub = sub_file(tmp_path / "s.csv", MARKS)
    printed = python("""
        import sys
        import gua
        a = gua.SubTrackingAnalyzer(*sys.argv[1:])
        print(a.read_static_data()["ram_unit"], a.load_code_block_names(), a.load_timestamp_pairs("f"))
        print([point["timestamp"] for point in a.load_timepoints([(10, 11.5), (11, 12)])])
        print(a.overall_timepoint_results()["main_ram"]["max"])
        print(a.sub_tracking_results())
        """, track, sub)
    lines = printed.removesuffix("\n").split("\n")
    assert lines[0] == ("gigabytes ['f', 'g', 'h'] [(10.0, 10.25), (10.0, 13.0), (10.5, 12.5), (11.0, 12.0)]")
    assert lines[1] == "[10, 11, 12]" and lines[2] == "15"
    assert "\n".join(lines[3:]) == gua("sub-track", "analyze", "--tf", track, "--stf", sub).stdout
    assert lines[-2:] == ["1 calls never stopped and were left out.", ""]


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_combine(python, tmp_path, kind):
    parts = [sub_file(tmp_path / f"{i}.{kind}", [(i, "f, and g", 0, i), (i, "f, and g", 1, i + 1)]) for i in (2, 1)]
    program = """
        import sys
        import gua
        target, *parts = sys.argv[1:]
        a = gua.SubTrackingAnalyzer(None, target)
        a.combine_sub_tracking_files(parts)
        print(a.load_code_block_names(), a.load_timestamp_pairs("f, and g"))
        """
    assert python(program, f"all.{kind}", *parts) == "['f, and g'] [(1.0, 2.0), (2.0, 3.0)]\n"
    again = python.run(program, f"all.{kind}", *parts)
    assert f"ValueError: Cannot create sub-tracking file all.{kind}. File already exists." in again.stderr
    other = "csv" if kind == "sqlite" else "sqlite"
    mixed = python.run(program, f"new.{other}", *parts)
    assert f'Must end in ".{other}".' in mixed.stderr and not (tmp_path / f"new.{other}").exists()


@pytest.mark.parametrize("text, says", [
    ("process_id,code_block_name,position,timestamp\n1,f,1,10\n", "process ID 1 at 10.0 without a start"),
    ("process_id,code_block_name,position,timestamp\n1,f,7,10\n", "is not a process id"),
    ("process_id,code_block_name,position,timestamp\n1,f,0\n", "a row has 3 of 4 values"),
    ("process_id,name,position,timestamp\n", "no column code_block_name"),
    ("", "no column process_id"),
])
def test_wrong_files(python, tmp_path, text, says):
    (tmp_path / "s.csv").write_text(text)
    run = python.run(RESULTS, tracking_file(tmp_path / "t.csv", [(1, 1)]), "s.csv")
    assert run.returncode == 1 and "ValueError: " in run.stderr and says in run.stderr.splitlines()[-1]


def write_results(tmp_path, name, value, blocks):
    track = tracking_file(tmp_path / f"{name}-t.csv", [(1, value), (2, value)])
    sub = sub_file(tmp_path / f"{name}-s.csv", [(1, b, position, 3 * position) for b in blocks for position in (0, 1)])
    run = gua("sub-track", "analyze", "--tf", track, "--stf", sub, "-f", "json", "-o", tmp_path / f"{name}.json")
    assert run.returncode == 0, run.stderr
    return f"{name}={name}.json"


COMPARE = """
    import json, sys
    import gua
    comparison = gua.TrackingComparison(dict(pair.split("=") for pair in sys.argv[2:]))
    results = comparison.compare(*filter(None, sys.argv[1:2]))
    print(json.dumps(results.to_json(), allow_nan=False))
    print(results, end="")
    """


def test_compare_is_the_same_as_the_programs(python, tmp_path):
    sessions = [write_results(tmp_path, "slow", 2, ["x.py:9", "x.py:100", "f"]),
                write_results(tmp_path, "fast", 1, ["x.py:10", "x.py:90", "f"])]
    run = python.run(COMPARE, "max", *sessions)
    assert run.returncode == 0, run.stderr
    assert 'Code block "x.py:9" of "slow" is taken for "x.py:10" of "fast".' in run.stderr
    document, text = run.stdout.split("\n", 1)
    ours = json.loads(document)
    command = ("sub-track", "compare", "-m", sessions[0], "-m", sessions[1], "--stat", "max")
    theirs = json.loads(gua(*command, "-f", "json", cwd=tmp_path).stdout)
    assert theirs.pop("schema") == "gua-sub-track-compare-1"
    assert json.dumps(ours).replace(".0,", ",").replace(".0}", "}") == json.dumps(theirs)
    assert text == gua(*command, cwd=tmp_path).stdout
    assert list(ours["overall_resource_usage"]["main_ram"].items()) == [("fast", 1), ("slow", 2)]
    assert list(ours["code_block_compute_time"]) == ["f", "x.py:10 -> x.py:9", "x.py:100 -> x.py:90"]


def test_compare_refuses(python, tmp_path):
    one, other = write_results(tmp_path, "one", 1, ["f"]), write_results(tmp_path, "other", 1, ["g"])
    more = write_results(tmp_path, "more", 1, ["f", "g"])
    (tmp_path / "r.pkl").write_bytes(pickle.dumps({"overall": 1}))
    (tmp_path / "old.pkl").write_bytes(pickle.dumps({"overall": 1}, protocol=0))
    (tmp_path / "r.json").write_text("[1]")
    for args, says in ((["", "a=r.pkl"], "r.pkl is a pickle, and loading one runs the code in it. Write the results as JSON"),
                       (["", "a=old.pkl"], "is a pickle"), (["", "a=r.json"], "is not a result of sub-tracking"),
                       (["", one, other], 'Code block "f" of "one" has no match in "other"'),
                       (["", one, more], "The number of code blocks differs"), ([""], "nothing to compare"),
                       (["median", one], '"median" is not a valid statistic. Valid values are min, max, mean, std')):
        run = python.run(COMPARE, *args)
        assert run.returncode == 1 and "ValueError: " in run.stderr and says in run.stderr, run.stderr


def test_what_the_package_writes_it_reads(python, tmp_path):
    """From SubTracker over the analysis to a comparison, as JSON."""
    track = tracking_file(tmp_path / "t.csv", [(1, 5)])
    assert python("""
        import json, sys
        import gua
        with gua.SubTracker("a", sub_tracking_file="s.csv"):
            pass
        results = gua.SubTrackingAnalyzer("t.csv", "s.csv").sub_tracking_results()
        with open("r.json", "w") as file:
            json.dump(results.to_json(), file)
        comparison = gua.TrackingComparison({"x": "r.json"})
        print(comparison.results_map["x"] == results, comparison.compare().overall_resource_usage["main_ram"])
        """) == "True {'x': 5.0}\n" and track.exists()

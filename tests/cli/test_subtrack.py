"""gua sub-track: code blocks joined to samples, on files as gpu-tracker writes them."""
import json
import math
import pickle
import sqlite3
import statistics

import pytest

from conftest import gua

STATIC = ("ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,system_core_count,"
          "n_expected_cores,system_gpu_count,n_expected_gpus")
STATIC_VALUES = ["gigabytes", "gigabytes", "hours", 67.2, 16.0, 12, 12, 1, 1]
CPU = [f"cpu_{who}_{what}_utilization_percent" for who in ("system", "main", "descendants", "combined")
       for what in ("sum", "hardware")]
COLUMNS = ["main_ram", "descendants_ram", "combined_ram", "system_ram", "main_gpu_ram", "descendants_gpu_ram",
           "combined_gpu_ram", "system_gpu_ram", "gpu_sum_utilization_percent",
           "gpu_hardware_utilization_percent", "main_n_threads", "descendants_n_threads",
           "combined_n_threads", *CPU, "timestamp"]


def tracking_file(path, rows):
    """rows: (timestamp, value for every column, or None)."""
    values = [[v] * 21 + [t] for t, v in rows]
    if path.suffix == ".sqlite":
        with sqlite3.connect(path) as db:
            db.execute(f"CREATE TABLE static_data ({STATIC})")
            db.execute(f"INSERT INTO static_data VALUES ({','.join('?' * 9)})", STATIC_VALUES)
            db.execute(f"CREATE TABLE data ({','.join(COLUMNS)})")
            db.executemany(f"INSERT INTO data VALUES ({','.join('?' * 22)})", values)
    else:
        lines = [STATIC, ",".join(map(str, STATIC_VALUES)), ",".join(COLUMNS)]
        lines += [",".join("" if v is None else str(v) for v in row) for row in values]
        path.write_text("\n".join(lines) + "\n")
    return path


def sub_file(path, marks):
    """marks: (process id, block, position, timestamp)."""
    if path.suffix == ".sqlite":
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE data (process_id, code_block_name, position, timestamp)")
            db.executemany("INSERT INTO data VALUES (?,?,?,?)", marks)
    else:
        quoted = ['{},"{}",{},{}'.format(p, b.replace('"', '""'), s, t) for p, b, s, t in marks]
        path.write_text("\n".join(["process_id,code_block_name,position,timestamp", *quoted]) + "\n")
    return path


def analyze(track, sub):
    run = gua("sub-track", "analyze", "--tf", track, "--stf", sub, "-f", "json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_recursive_and_nested_blocks(tmp_path, kind):
    # f calls itself twice: 0..3, 0.5..2.5, 1..2. Another process runs the same block meanwhile.
    marks = [(1, "f", 0, 10.0), (1, "f", 0, 10.5), (1, "f", 0, 11.0), (1, "f", 1, 12.0), (1, "f", 1, 12.5),
             (1, "f", 1, 13.0), (2, "f", 0, 10.0), (2, "f", 1, 10.25), (1, "g", 0, 20.0), (1, "g", 1, 21.0)]
    track = tracking_file(tmp_path / f"t.{kind}", [(t, t) for t in range(9, 16)])
    result = analyze(track, sub_file(tmp_path / f"s.{kind}", marks))
    f, g = result["code_block_results"]
    assert f["name"] == "f" and f["num_calls"] == 4
    assert f["compute_time"] == pytest.approx({"min": 0.25, "max": 3, "mean": 1.5625,
                                               "std": statistics.pstdev([3, 2, 1, 0.25]), "total": 6.25}, rel=1e-6)
    assert f["num_timepoints"] == 4 and f["num_non_empty_calls"] == 4
    assert f["resource_usage"]["main_ram"] == pytest.approx(
        {"min": 10, "max": 13, "mean": 11.5, "std": math.sqrt(1.25)})
    assert g["num_timepoints"] == 0
    assert g["resource_usage"]["main_ram"] == {"min": None, "max": None, "mean": None, "std": None}
    assert result["overall"]["system_ram"] == pytest.approx({"min": 9, "max": 15, "mean": 12, "std": 2})
    assert result["static_data"]["n_expected_cores"] == 12


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_times_are_exact(tmp_path, kind):
    """A unix time with microseconds has 16 digits."""
    start, stop, value = 1747776123.361256, 1747776126.973819, 1 / 3
    assert stop - start not in (3.61256, 3.612563)
    track = tracking_file(tmp_path / f"t.{kind}", [(start + 1, value), (stop, value)])
    result = analyze(track, sub_file(tmp_path / f"s.{kind}", [(1, "f", 0, start), (1, "f", 1, stop)]))
    block, = result["code_block_results"]
    assert block["compute_time"]["total"] == stop - start and block["num_timepoints"] == 2
    assert result["overall"]["main_ram"]["max"] == value


def test_a_block_that_never_stopped_is_left_out(tmp_path):
    marks = [(1, "f", 0, 10.0), (1, "f", 1, 11.0), (1, "f", 0, 12.0)]
    track = tracking_file(tmp_path / "t.csv", [(10.5, 1)])
    result = analyze(track, sub_file(tmp_path / "s.csv", marks))
    assert result["unfinished_calls"] == 1
    assert result["code_block_results"][0]["num_calls"] == 1


def test_unknown_values_are_left_out_of_statistics(tmp_path):
    track = tracking_file(tmp_path / "t.csv", [(1, 4), (2, None), (3, 8)])
    result = analyze(track, sub_file(tmp_path / "s.csv", [(1, "f", 0, 0), (1, "f", 1, 9)]))
    assert result["overall"]["main_gpu_ram"]["mean"] == 6


@pytest.mark.parametrize("marks, message", [
    ([(1, "f", 1, 10.0)], "without having started"),
    ([(1, "f", 7, 10.0)], "row 1"),
    ([("x", "f", 0, 10.0)], "row 1"),
])
def test_wrong_marks(tmp_path, marks, message):
    track = tracking_file(tmp_path / "t.csv", [(1, 1)])
    run = gua("sub-track", "analyze", "--tf", track, "--stf", sub_file(tmp_path / "s.csv", marks))
    assert run.returncode == 1 and message in run.stderr


def test_text_has_the_known_headings_and_safe_names(tmp_path):
    track = tracking_file(tmp_path / "t.csv", [(1, 1)])
    sub = sub_file(tmp_path / "s.csv", [(1, 'evil\x1b[31m,"x"', 0, 0), (1, 'evil\x1b[31m,"x"', 1, 2)])
    run = gua("sub-track", "analyze", "--tf", track, "--stf", sub)
    assert run.returncode == 0
    assert "\x1b" not in run.stdout and '\tName:                evil\\x1B[31m,"x"\n' in run.stdout


def usage_table(indent, head, cells):
    """The table of gpu-tracker: names on the left; every row has the same cells."""
    longest = max(map(len, COLUMNS))
    return "".join(f"{indent}{name:{longest}}{line}\n" for name, line in
                   [("", head), *((name, cells) for name in COLUMNS[:-1])])


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_text_is_that_of_gpu_tracker(tmp_path, kind):
    """Its labels, its columns and its numbers: at most 8 decimals, at least one, small ones with an exponent."""
    track = tracking_file(tmp_path / f"t.{kind}", [(1, 12.3456789012), (2, 12.345686), (9, 100)])
    sub = sub_file(tmp_path / f"s.{kind}", [(1, "x.py:7", 0, 0), (1, "x.py:7", 1, 2.5), (1, "late", 0, 5),
                                            (1, "late", 1, 5.25)])
    run = gua("sub-track", "analyze", "--tf", track, "--stf", sub)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "Overall:\n"
        + usage_table("\t", "        min   max       mean         std", " 12.3456789 100.0 41.5637883 41.32064156")
        + "Static Data:\n"
        "\t   ram_unit gpu_ram_unit time_unit ram_system_capacity gpu_ram_system_capacity system_core_count "
        "n_expected_cores system_gpu_count n_expected_gpus\n"
        "\t  gigabytes    gigabytes     hours                67.2                    16.0                12 "
        "              12                1               1\n"
        "Code Block Results:\n"
        "\tName:                late\n\tNum Timepoints:      0\n\tNum Calls:           1\n\tNum Non Empty Calls: 0\n"
        "\tCompute Time:\n\t\t  min  max  mean  std  total\n\t\t 0.25 0.25  0.25  0.0   0.25\n\tResource Usage:\n"
        + usage_table("\t\t", "  min  max  mean  std", "    -    -     -    -")
        + "\n\tName:                x.py:7\n\tNum Timepoints:      2\n\tNum Calls:           1\n"
        "\tNum Non Empty Calls: 1\n"
        "\tCompute Time:\n\t\t  min  max  mean  std  total\n\t\t  2.5  2.5   2.5  0.0    2.5\n\tResource Usage:\n"
        + usage_table("\t\t", "        min       max        mean      std",
                      " 12.3456789 12.345686 12.34568245 3.55e-06")
        + "\n")


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_combine(tmp_path, kind):
    folder = tmp_path / "parts"
    folder.mkdir()
    sub_file(folder / f"b.{kind}", [(2, "g", 0, 3), (2, "g", 1, 4)])
    sub_file(folder / f"a.{kind}", [(1, "f, with comma", 0, 1), (1, "f, with comma", 1, 2)])
    target = tmp_path / f"all.{kind}"
    run = gua("sub-track", "combine", "--stf", target, "-p", folder)
    assert run.returncode == 0, run.stderr
    result = analyze(tracking_file(tmp_path / "t.csv", [(1.5, 1), (3.5, 2)]), target)
    assert [b["name"] for b in result["code_block_results"]] == ["f, with comma", "g"]
    again = gua("sub-track", "combine", "--stf", target, "-p", folder)
    assert again.returncode == 1 and "exists" in again.stderr
    one = tmp_path / f"one.{kind}"
    run = gua("sub-track", "combine", "--stf", one, "-p", folder / f"a.{kind}")
    assert run.returncode == 0 and one.exists(), run.stderr


def test_combine_refuses_before_it_writes(tmp_path):
    good, other = sub_file(tmp_path / "a.csv", [(1, "f", 0, 1)]), sub_file(tmp_path / "b.sqlite", [(1, "f", 0, 1)])
    bad = tmp_path / "bad.csv"
    bad.write_text("nothing,here\n")
    for files in ((good, other), (good, bad)):
        run = gua("sub-track", "combine", "--stf", tmp_path / "out.csv", "-p", files[0], "-p", files[1])
        assert run.returncode in (1, 2)
        assert not (tmp_path / "out.csv").exists()


def result_file(tmp_path, name, value, blocks):
    track = tracking_file(tmp_path / f"{name}-t.csv", [(1, value), (2, value)])
    marks = [(1, b, position, 3 * position) for b in blocks for position in (0, 1)]
    out = tmp_path / f"{name}.json"
    run = gua("sub-track", "analyze", "--tf", track, "--stf", sub_file(tmp_path / f"{name}-s.csv", marks), "-f",
              "json", "-o", out)
    assert run.returncode == 0, run.stderr
    return out


def test_compare_puts_values_in_order(tmp_path):
    fast, slow = result_file(tmp_path, "fast", 2, ["x.py:9", "f"]), result_file(tmp_path, "slow", 1, ["x.py:7", "f"])
    run = gua("sub-track", "compare", "-m", f"slow={slow}", "-m", f"fast={fast}", "-f", "json")
    assert run.returncode == 0, run.stderr
    assert "code block x.py:7 of slow is compared with x.py:9 of fast" in run.stderr
    result = json.loads(run.stdout)
    assert list(result["overall_resource_usage"]["main_ram"].items()) == [("slow", 1), ("fast", 2)]
    # The names in gpu-tracker's order, whatever the order of the sessions.
    assert result["code_block_resource_usage"]["main_ram"]["x.py:7 -> x.py:9"] == {"slow": 1, "fast": 2}
    # Equal values are as given.
    assert list(result["code_block_compute_time"]["f"].items()) == [("slow", 3), ("fast", 3)]
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"file_path_map": {"fast": str(fast), "slow": str(slow)}, "statistic": "max"}))
    assert gua("sub-track", "compare", "--cconfig", config).returncode == 0


def test_blocks_are_in_the_order_of_their_lines(tmp_path):
    names = ["b.py:9", "b.py:100", "b.py:20", "b", "b2.py:1", "a:b.py:3"]
    one, two = result_file(tmp_path, "one", 1, names), result_file(tmp_path, "two", 1, names[::-1])
    run = gua("sub-track", "compare", "-m", f"one={one}", "-m", f"two={two}", "-f", "json")
    assert (run.returncode, run.stderr) == (0, "")
    assert list(json.loads(run.stdout)["code_block_compute_time"]) == [
        "a:b.py:3", "b", "b.py:9", "b.py:20", "b.py:100", "b2.py:1"]


def test_each_warning_has_its_own_line(tmp_path):
    one = result_file(tmp_path, "one", 1, ["x.py:7", "x.py:20", "f"])
    two = result_file(tmp_path, "two", 1, ["x.py:8", "x.py:21", "f"])
    run = gua("sub-track", "compare", "-m", f"one={one}", "-m", f"two={two}")
    assert run.returncode == 0
    assert run.stderr.splitlines() == ["gua: warning: code block x.py:8 of two is compared with x.py:7 of one",
                                       "gua: warning: code block x.py:21 of two is compared with x.py:20 of one"]


def title(column):
    return " ".join(word.capitalize() for word in column.split("_"))


def test_text_of_a_comparison_is_that_of_gpu_tracker(tmp_path):
    a, b = result_file(tmp_path, "a", 1.23456789123, ["x.py:9", "my_block"]), \
        result_file(tmp_path, "b", 0.5, ["x.py:7", "my_block"])
    run = gua("sub-track", "compare", "-m", f"A={a}", "-m", f"B={b}")
    assert run.returncode == 0, run.stderr
    values = "\t\t   B          A\n\t\t 0.5 1.23456789\n"
    blocks = "".join(f"\t\t{block}:\n" + values.replace("\t\t", "\t\t\t") for block in ("my_block", "x.py:7 -> x.py:9"))
    assert run.stdout == (
        "Overall Resource Usage:\n" + "".join(f"\t{title(name)}:\n{values}" for name in COLUMNS[:-1])
        + "Code Block Resource Usage:\n" + "".join(f"\t{title(name)}:\n{blocks}" for name in COLUMNS[:-1])
        + "Code Block Compute Time:\n\tmy_block:\n\t\t   A   B\n\t\t 3.0 3.0\n"
          "\tx.py:7 -> x.py:9:\n\t\t   A   B\n\t\t 3.0 3.0\n")
    assert "\tMain Gpu Ram:\n" in run.stdout and "\tCpu System Sum Utilization Percent:\n" in run.stdout


def test_results_without_blocks(tmp_path):
    one, two = result_file(tmp_path, "one", 1, []), result_file(tmp_path, "two", 2, [])
    run = gua("sub-track", "compare", "-m", f"one={one}", "-m", f"two={two}", "-f", "json")
    result = json.loads(run.stdout)
    assert result["overall_resource_usage"]["main_ram"] == {"one": 1, "two": 2}
    assert result["code_block_resource_usage"] == {} and result["code_block_compute_time"] == {}


def test_compare_refuses_pickles_and_strangers(tmp_path):
    path = tmp_path / "r.pkl"
    path.write_bytes(pickle.dumps({"overall": 1}))
    run = gua("sub-track", "compare", "-m", f"a={path}")
    assert run.returncode == 1 and "runs the code" in run.stderr
    assert "analyze -f json" in run.stderr and "gua-sub-track(1)" in run.stderr
    path.write_text('{"overall": NaN}')
    run = gua("sub-track", "compare", "-m", f"a={path}")
    assert run.returncode == 1 and "is not JSON: line 1" in run.stderr
    one, other = result_file(tmp_path, "one", 1, ["f"]), result_file(tmp_path, "other", 1, ["g"])
    run = gua("sub-track", "compare", "-m", f"a={one}", "-m", f"b={other}")
    assert run.returncode == 1 and "no match" in run.stderr


@pytest.mark.parametrize("args", [[], ["explode"], ["analyze"], ["combine"], ["compare"],
                                  ["compare", "-m", "x"], ["analyze", "-f", "pickle"],
                                  ["compare", "--stat", "median"]])
def test_wrong_usage(args):
    run = gua("sub-track", *args)
    assert run.returncode == 2 and "usage: gua sub-track" in run.stderr

"""gpu_tracker 5 as its documentation uses it: every option of the program in its documented form, and the way from a
tracked program with marked blocks over the analysis to a comparison. Where gpu_tracker stores pickles, here is JSON."""
import json
import os
import re
import subprocess

import pytest

from conftest import BUILD, ROOT
from fake import fake_driver
from pyrun import python, python_environment

# What they ask of libgua is tested under sanitizers by test_python_tracker.py.
pytestmark = pytest.mark.any_build

SCENARIO = """
card 0 uuid gpu-uuid1 name "A" memory 2GiB idle-power 20W max-power 100W
card 1 uuid gpu-uuid2 name "B" memory 2GiB idle-power 20W max-power 100W
"""
# A session: a block in a loop and a function with the decorator, both in one file.
SESSION = """
import gua as gput
import json
import sys

result_file, kind = sys.argv[1:]
overwrite = result_file != 'results.json'

def example_function():
    return sum(range(100_000))

tracker = gput.Tracker(sleep_time=0.1, tracking_file='tracking.' + kind, overwrite=overwrite)
tracker.start()
for _ in range(5):
    with gput.SubTracker(code_block_name='my-code-block', sub_tracking_file='sub-tracking.' + kind, overwrite=overwrite):
        example_function()

@gput.sub_track(code_block_name='my-function', sub_tracking_file='sub-tracking.' + kind, overwrite=overwrite)
def my_function(*args, **kwargs):
    example_function()

for _ in range(3):
    my_function()
tracker.stop()

analyzer = gput.SubTrackingAnalyzer(tracking_file='tracking.' + kind, sub_tracking_file='sub-tracking.' + kind)
results = analyzer.sub_tracking_results()
[my_code_block_results, my_function_results] = results.code_block_results
assert type(results) is gput.sub_tracker.SubTrackingResults
assert type(my_code_block_results) is gput.sub_tracker.CodeBlockResults
assert (my_code_block_results.name, my_code_block_results.num_calls) == ('my-code-block', 5)
assert (my_function_results.name, my_function_results.num_calls) == ('my-function', 3)
assert list(my_code_block_results.compute_time) == ['min', 'max', 'mean', 'std', 'total']
assert list(results.static_data)[:3] == ['ram_unit', 'gpu_ram_unit', 'time_unit']
assert list(results.overall['main_ram']) == ['min', 'max', 'mean', 'std']
with open(result_file, 'w') as file:
    json.dump(results.to_json(), file)
print(results, end='')
"""
COMPARISON = """
import gua as gput
import pickle as pkl
comparison = gput.TrackingComparison(file_path_map={'A': 'results.json', 'B': 'results2.json'})
results = comparison.compare(statistic='max')
assert type(results) is gput.sub_tracker.ComparisonResults
assert list(results.overall_resource_usage)[:2] == ['main_ram', 'descendants_ram']
assert sorted(results.overall_resource_usage['main_ram']) == ['A', 'B']
assert list(results.code_block_resource_usage['main_ram']) == ['my-code-block', 'my-function']
assert list(results.code_block_compute_time) == ['my-code-block', 'my-function']
times = list(results.code_block_compute_time['my-code-block'].values())
assert times == sorted(times)
assert list(results.to_json()) == ['overall_resource_usage', 'code_block_resource_usage', 'code_block_compute_time']
print(results, end='')
with open('results.pkl', 'wb') as file:
    pkl.dump(comparison.results_map['A'], file)
"""


@pytest.fixture
def shell(tmp_path):
    """Runs a line with gpu-tracker in the path; returns the completed process."""
    (tmp_path / "example-script.sh").write_text("sleep 0.3\n")
    environment = {**python_environment(), **fake_driver(tmp_path, SCENARIO)}
    environment["PATH"] = f"{BUILD}:{environment['PATH']}"

    def run(line, status=0):
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done.stderr
        return done
    return run


COMPLETE = "Resource tracking complete. Process completed with status code: 0\n"


@pytest.mark.waits
def test_every_option_of_tracking(shell, tmp_path):
    line = ('gpu-tracker --execute="bash example-script.sh" --output=out.json --format=json --st=0.2 --ru=megabytes '
            '--gru=kilobytes --tu=seconds --nec=3 --guuids=gpu-uuid1,gpu-uuid2 --disable-logs --gb=nvidia '
            '--tf=tracking.csv --overwrite')
    for _ in range(2):
        run = shell(line)
        assert (run.stdout, run.stderr) == (COMPLETE, "")
    values = json.loads((tmp_path / "out.json").read_text())
    assert list(values)[:5] == ["max_ram", "max_gpu_ram", "cpu_utilization", "gpu_utilization", "compute_time"]
    assert [values[key]["unit"] for key in ("max_ram", "max_gpu_ram", "compute_time")] == [
        "megabytes", "kilobytes", "seconds"]
    assert values["cpu_utilization"]["n_expected_cores"] == 3 and values["gpu_utilization"]["n_expected_gpus"] == 2
    units, header = (tmp_path / "tracking.csv").read_text().splitlines()[1:3]
    assert units.startswith("megabytes,kilobytes,seconds,") and header.startswith("main_ram,descendants_ram,")
    # Blanks instead of =, and the beginning of a long name.
    run = shell("gpu-tracker --exec 'bash example-script.sh' --st 0.2 --output out.txt")
    assert run.stdout == COMPLETE and (tmp_path / "out.txt").read_text().startswith("Max RAM:\n   Unit: gigabytes\n")


def test_settings_from_a_file(shell, tmp_path):
    settings = {"sleep_time": 0.2, "ram_unit": "megabytes", "gpu_ram_unit": "megabytes", "time_unit": "minutes"}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    printed = shell("gpu-tracker -e 'bash example-script.sh' --tconfig=config.json --tu=seconds").stdout
    assert printed.startswith(COMPLETE + "Max RAM:\n   Unit: megabytes\n")
    assert "Compute time:\n   Unit: seconds\n" in printed


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_sessions_are_analysed_and_compared(shell, python, tmp_path, kind):
    env = fake_driver(tmp_path, SCENARIO)
    first = python(SESSION, "results.json", kind, env=env)
    assert shell(f"gpu-tracker sub-track analyze --tf=tracking.{kind} --stf=sub-tracking.{kind}").stdout == first
    again = python.run(SESSION, "results.json", kind, env=env)
    assert again.returncode == 1 and "FileExistsError: " in again.stderr
    python(SESSION, "results2.json", kind, env=env)
    shell(f"gpu-tracker sub-track analyze --tf=tracking.{kind} --stf=sub-tracking.{kind} --format=json "
          "--output=my-results.json")
    text = python(COMPARISON)
    assert text.startswith("Overall Resource Usage:\n\tMain Ram:\n\t\t")
    compare = "gpu-tracker sub-track compare -m A=results.json -m B=results2.json"
    assert shell(f"{compare} --stat=max").stdout == text
    shell(f"{compare} --stat=max --format=json --output=comparison.json")
    config = {"file_path_map": {"A": "results.json"}, "statistic": "std"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    printed = shell("gpu-tracker sub-track compare --cconfig=config.json -m B=my-results.json --stat=max --format=json")
    ours, written = json.loads(printed.stdout), json.loads((tmp_path / "comparison.json").read_text())
    assert ours.keys() == written.keys()
    for block, values in written["code_block_compute_time"].items():
        assert ours["code_block_compute_time"][block] == pytest.approx(values)


def test_files_are_combined(shell, tmp_path):
    (tmp_path / "parts").mkdir()
    head = "process_id,code_block_name,position,timestamp\n"
    for number in (1, 2):
        rows = "".join(f"{number},f,{position},{number + position}\n" for position in (0, 1))
        (tmp_path / f"sub-tracking{number}.csv").write_text(head + rows)
        (tmp_path / "parts" / f"{number}.csv").write_text(head + rows)
    shell("gpu-tracker sub-track combine --stf=combined-file.csv -p sub-tracking1.csv -p sub-tracking2.csv")
    shell("gpu-tracker sub-track combine --stf=other.csv -p parts")
    combined = (tmp_path / "combined-file.csv").read_text()
    assert combined == (tmp_path / "other.csv").read_text() == head + "1,f,0,1\n1,f,1,2\n2,f,0,2\n2,f,1,3\n"


def test_pickles_have_a_way_out(shell, python, tmp_path):
    """They are refused; the command of the manual converts them."""
    env = fake_driver(tmp_path, SCENARIO)
    python(SESSION, "results.json", "csv", env=env)
    os.link(tmp_path / "results.json", tmp_path / "results2.json")
    python(COMPARISON)
    refused = shell("gpu-tracker sub-track analyze --tf=tracking.csv --stf=sub-tracking.csv --format=pickle "
                    "--output=my-results.pkl", status=2)
    assert "use -f json, which compare reads" in refused.stderr and not (tmp_path / "my-results.pkl").exists()
    refused = shell("gpu-tracker sub-track compare -m A=results.pkl -m B=results2.json", status=1)
    assert "convert the pickle as gua-sub-track(1) shows" in refused.stderr
    raised = python.run("import gua\ngua.TrackingComparison({'A': 'results.pkl'})")
    assert "gua-sub-track(1) shows how to convert a pickle" in raised.stderr
    page = (ROOT / "man" / "gua-sub-track.1.scd").read_text()
    command, = re.findall(r"```\n(python3 -c .*?)\n```", page, re.DOTALL)
    written = (tmp_path / "results.json").read_text()
    (tmp_path / "results.json").unlink()
    shell(command.replace("python3", "/usr/bin/python3"))
    assert json.loads((tmp_path / "results.json").read_text()) == json.loads(written)
    shell("gpu-tracker sub-track compare -m A=results.json -m B=results2.json")

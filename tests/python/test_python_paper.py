"""The examples of the gpu-tracker paper (Huckvale and Moseley, "gpu_tracker: Python package for tracking and profiling
GPU utilization"), unchanged but for the import line, on a fake card. example_module is what the paper leaves open: a
function that takes memory, a card and a processor for a known while."""
import json
import re
import subprocess

import pytest

from conftest import BUILD, clean_environment
from fake import fake_driver
from layout import layout, number_at, without_numbers
from pyrun import overhead_bytes, python

# What they ask of libgua is tested under sanitizers by test_python_tracker.py.
pytestmark = pytest.mark.any_build

SCENARIO = """
card 0 uuid GPU-a name "Card" memory 2GiB idle-power 20W max-power 100W
process us pid env EXAMPLE_PID user alice uid 1001 command "python"
process other pid 999999 user bob uid 1002 command "python"
at 0s hold us card 0 memory 277MB
at 0s hold other card 0 memory 50MB
at 0s load us card 0 sm 40
"""
# Touches every page of 120 MB, then computes until it has had 0.1 s of a processor, and keeps the memory for longer than
# a tracker on a busy machine takes to look twice.
MODULE = """
import os
import time
os.environ.setdefault("EXAMPLE_PID", str(os.getpid()))

def example_function():
    memory = bytearray(120_000_000)
    for at in range(0, len(memory), 4096):
        memory[at] = 1
    end, long_enough = time.process_time() + 0.1, time.monotonic() + 1.5
    while time.process_time() < end:
        sum(range(1000))
    time.sleep(max(0, long_enough - time.monotonic()))
"""
IMPORTS = """\
import gua as gput
from example_module import example_function
"""
# The paper's print(tracker) shows the text; here each ends with a line that the test splits at.
SHOW = "print('=' * 20)\n"


@pytest.fixture
def paper(python, tmp_path):
    """Runs a program of the paper; returns what it printed between the marks."""
    (tmp_path / "example_module.py").write_text(MODULE)

    def run(program):
        return python(IMPORTS + program, env=fake_driver(tmp_path, SCENARIO, PYTHONDONTWRITEBYTECODE=1)).split("=" * 20 + "\n")
    return run


def test_start_and_stop(paper):
    text, = paper("""
tracker = gput.Tracker(n_expected_cores=1, sleep_time=0.1)

tracker.start()

example_function()

tracker.stop()

print(tracker)
""")
    assert without_numbers(text) == layout()
    assert 0.12 < number_at(text, "Max RAM", "Main", "Total RSS") < 0.16 + overhead_bytes() / 1e9
    assert number_at(text, "Max RAM", "Descendants", "Total RSS") == 0
    assert number_at(text, "Max GPU RAM", "Main") == 0.277
    assert number_at(text, "Max GPU RAM", "System capacity") == 2.147
    assert number_at(text, "CPU utilization", "Number of expected cores") == 1
    assert 0 < number_at(text, "CPU utilization", "Main", "Mean sum percent") < 200  # it samples in a thread of its own
    assert number_at(text, "CPU utilization", "Main number of threads") == 1
    assert number_at(text, "GPU utilization", "GPU percentages", "Max sum percent") > 0


def test_a_context_manager(paper):
    text, = paper("""
with gput.Tracker() as tracker:
    example_function()
print(tracker)
""")
    assert without_numbers(text) == layout()


def test_units_json_and_data_classes(paper):
    text, document, *shown = paper(f"""
with gput.Tracker(ram_unit='megabytes', gpu_ram_unit='megabytes', time_unit='seconds', sleep_time=0.1) as tracker:
    example_function()
print(tracker)
{SHOW}
import json
print(json.dumps(tracker.to_json(), indent=1))
{SHOW}
print(repr(tracker.resource_usage.max_ram))
{SHOW}
print(repr(tracker.resource_usage.max_ram.unit))
{SHOW}
print(repr(tracker.resource_usage.max_ram.main))
{SHOW}
print(repr(tracker.resource_usage.max_ram.main.total_rss))
{SHOW}
print(repr(tracker.resource_usage.max_gpu_ram))
{SHOW}
print(repr(tracker.resource_usage.compute_time))
""")
    assert without_numbers(text) == layout("megabytes", "megabytes", "seconds")
    values = json.loads(document, parse_constant=lambda name: pytest.fail(name))
    assert list(values) == ["max_ram", "max_gpu_ram", "cpu_utilization", "gpu_utilization", "compute_time"]
    assert list(values["max_ram"]) == ["unit", "system_capacity", "system", "main", "descendants", "combined"]
    assert list(values["max_ram"]["main"]) == ["total_rss", "private_rss", "shared_rss"]
    assert list(values["cpu_utilization"]) == [
        "system_core_count", "n_expected_cores", "system", "main", "descendants", "combined", "main_n_threads",
        "descendants_n_threads", "combined_n_threads"]
    percent = ["max_sum_percent", "max_hardware_percent", "mean_sum_percent", "mean_hardware_percent"]
    assert list(values["cpu_utilization"]["main"]) == percent
    assert list(values["gpu_utilization"]) == ["system_gpu_count", "n_expected_gpus", "gpu_percentages"]
    assert list(values["gpu_utilization"]["gpu_percentages"]) == percent
    max_ram, unit, main, total, max_gpu_ram, compute_time = (line.strip() for line in shown)
    rss = "RSSValues(total_rss={total_rss}, private_rss={private_rss}, shared_rss={shared_rss})"
    ram = values["max_ram"]
    assert max_ram == (f"MaxRAM(unit='megabytes', system_capacity={ram['system_capacity']}, system={ram['system']}, "
                       f"main={rss.format(**ram['main'])}, descendants={rss.format(**ram['descendants'])}, "
                       f"combined={rss.format(**ram['combined'])})")
    assert (unit, main, total) == ("'megabytes'", rss.format(**ram["main"]), str(ram["main"]["total_rss"]))
    assert 120 < ram["main"]["total_rss"] < 160 + overhead_bytes() / 1e6 and ram["main"]["private_rss"] <= ram["main"]["total_rss"]
    assert max_gpu_ram == ("MaxGPURAM(unit='megabytes', system_capacity=2147.483648, system="
                           f"{values['max_gpu_ram']['system']}, main=277.0, descendants=0.0, combined=277.0)")
    assert compute_time == f"ComputeTime(unit='seconds', time={values['compute_time']['time']})"
    assert values["compute_time"]["time"] >= 0.4


def test_code_that_fails(paper):
    printed, = paper("""
try:
    with gput.Tracker() as tracker:
        example_function()
        raise RuntimeError('AN ERROR')
except Exception as error:
    print(f'The following error occured while tracking: {error}')
finally:
    print(tracker.resource_usage.max_gpu_ram.main)
""")
    assert printed == "The following error occured while tracking: AN ERROR\n0.277\n"


def test_a_child_process(paper):
    """As the paper's, with the guard that spawning from a file needs."""
    text, = paper("""
if __name__ == '__main__':
    import multiprocessing as mp
    ctx = mp.get_context(method='spawn')
    child_process = ctx.Process(target=example_function)
    with gput.Tracker(n_expected_cores=2, sleep_time=0.2) as tracker:
        child_process.start()
        example_function()
        child_process.join()
    child_process.close()
    print(tracker)
""")
    assert without_numbers(text) == layout()
    assert 0.12 < number_at(text, "Max RAM", "Main", "Total RSS") < 0.16 + overhead_bytes() / 1e9
    # The child, and the process that multiprocessing itself starts.
    assert 0.12 < number_at(text, "Max RAM", "Descendants", "Total RSS") < 0.18 + 2 * overhead_bytes() / 1e9
    assert number_at(text, "CPU utilization", "Number of expected cores") == 2
    assert number_at(text, "CPU utilization", "Descendants", "Mean sum percent") > 0
    assert number_at(text, "CPU utilization", "Descendants number of threads") >= 1


SCRIPT = """
/usr/bin/python3 -c 'from example_module import example_function; example_function()'
echo done >/dev/null
"""


@pytest.fixture
def shell(tmp_path):
    """Runs a line of the paper's terminal with gpu-tracker in the path."""
    (tmp_path / "example_module.py").write_text(MODULE)
    (tmp_path / "example-script.sh").write_text(SCRIPT)
    assert (BUILD / "gpu-tracker").exists()
    environment = clean_environment(**fake_driver(tmp_path, SCENARIO, EXAMPLE_PID=999998), PYTHONPATH=str(tmp_path),
                                    PYTHONDONTWRITEBYTECODE="1")
    environment["PATH"] = f"{BUILD}:{environment['PATH']}"

    def run(line):
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def report_in(printed, *units):
    """The known part of a report; the program's own figures follow it."""
    start = printed.index("Max RAM:\n")
    end = re.compile(r"Compute time:\n   Unit: .*\n   Time: .*\n").search(printed).end()
    text = printed[start:end]
    assert without_numbers(text) == layout(*units)
    return text


def test_help(shell):
    printed = shell("gpu-tracker -h")
    for option in ("--execute", "--output", "--format", "--st", "--ru", "--gru", "--tu", "--nec", "--guuids",
                   "--disable-logs"):
        assert option in printed


def test_execute(shell):
    text = report_in(shell('gpu-tracker -e "bash example-script.sh" --st=0.3'))
    assert 0.12 < number_at(text, "Max RAM", "Descendants", "Total RSS") < 0.16
    assert number_at(text, "Max RAM", "Main", "Total RSS") < 0.01
    assert number_at(text, "CPU utilization", "Descendants", "Mean sum percent") > 0


def test_units_of_the_program(shell):
    text = report_in(shell("gpu-tracker -e 'bash example-script.sh' --tu=seconds --gru=megabytes --ru=megabytes --st=0.2"),
                     "megabytes", "megabytes", "seconds")
    assert 120 < number_at(text, "Max RAM", "Descendants", "Total RSS") < 160
    assert number_at(text, "Compute time", "Time") >= 0.4


def test_output_to_a_file(shell):
    assert "Max RAM" not in shell("gpu-tracker -e 'bash example-script.sh' -o out.txt --st=0.2")
    report_in(shell("cat out.txt"))


def check_document(text):
    values = json.loads(text[text.index("{"):], parse_constant=lambda name: pytest.fail(name))
    assert list(values)[:5] == ["max_ram", "max_gpu_ram", "cpu_utilization", "gpu_utilization", "compute_time"]
    assert values["max_ram"]["unit"] == "gigabytes" and values["compute_time"]["unit"] == "hours"
    assert 0.12 < values["max_ram"]["descendants"]["total_rss"] < 0.16


def test_json(shell):
    check_document(shell("gpu-tracker -e 'bash example-script.sh' -f json --st=0.2"))


def test_json_to_a_file(shell):
    assert "{" not in shell("gpu-tracker -e 'bash example-script.sh' -f json -o out.json --st=0.3")
    check_document(shell("cat out.json"))

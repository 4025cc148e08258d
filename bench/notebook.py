"""The cost of %load_ext gua: what a cell pays for being measured, and the processor time of the watch between cells, in a
real IPython on the fake driver with 8 cards and 64 processes."""
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CELLS, IDLE_S = 300, 30
PROGRAM = """
import os, sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
with open(os.environ["FAKENVML_PIDS"] + "/k", "w") as file:
    file.write(str(os.getpid()))
def cells():
    began = time.process_time()
    for i in range(%d):
        shell.run_cell(f"x = {i}", store_history=True)
    return (time.process_time() - began) / %d
cells()
without = cells()
shell.run_cell("%%load_ext gua\\n%%gua")
measured = cells()
began = time.process_time()
time.sleep(%d)
print(1e3 * (measured - without), 100 * (time.process_time() - began) / %d)
"""


def scenario():
    lines = [f'card {i} uuid GPU-{i} name "NVIDIA A100" memory 80GiB idle-power 60W max-power 400W' for i in range(8)]
    lines += [f'process p{i} pid {4000 + i} user alice uid 1001 command "python"\nat 0s hold p{i} card {i % 8} memory 1GB'
              for i in range(64)]
    return "\n".join([*lines, 'process k pid file k user alice uid 1001 command "python"', "at 0s hold k card 1 memory 8GB", ""])


def measure(build):
    """(CPU ms that a cell takes longer, percent of a core between cells)"""
    with tempfile.TemporaryDirectory() as where:
        (pathlib.Path(where) / "a.scenario").write_text(scenario())
        (pathlib.Path(where) / "program.py").write_text(PROGRAM % (CELLS, CELLS, IDLE_S, IDLE_S))
        env = {**os.environ, "FAKENVML_SCENARIO": f"{where}/a.scenario", "FAKENVML_PIDS": where, "HOME": where,
               "GUA_NVML": str(build / "tests" / "libnvidia-ml.so.1"), "GUA_LIBRARY": str(build / "libgua.so.0"),
               "PYTHONPATH": str(HERE.parent / "python")}
        done = subprocess.run(["/usr/bin/python3", f"{where}/program.py"], env=env, capture_output=True, text=True, check=True)
    cell_ms, idle_pct = map(float, done.stdout.split()[-2:])
    return cell_ms, idle_pct


def rows(table, say, build):
    say("a notebook whose cells are measured")
    cell_ms, idle_pct = measure(build)
    table.row("notebook: CPU of a cell's measurement", cell_ms, "ms", 2, f"mean of {CELLS} cells, 8 cards, 65 processes")
    table.row("notebook: between cells", idle_pct, "%", 0.1, f"of a core, over {IDLE_S} s")

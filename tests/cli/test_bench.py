"""The bench says what it could not measure, instead of ending."""
import subprocess

import pytest

from conftest import ROOT

pytestmark = pytest.mark.any_build

# In a process of its own: the tests have other modules with the names of the bench's.
TRY = """
import importlib.machinery, importlib.util, os
loader = importlib.machinery.SourceFileLoader("bench_run", "bench/run")
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
loader.exec_module(run)
live = run.live

assert live.screen(["true"], dict(os.environ), 0, settle=0.2) is None
cpu, resident = live.screen(["sleep", "60"], dict(os.environ), 0.1, settle=0.1)
assert cpu >= 0 and resident > 0

table = run.Table()
live.shutil.which = lambda name: f"/usr/bin/{name}"
live.screen = lambda command, *_: None if command[0] == "nvtop" else (0.1, 7000)
live.compare(table, lambda text: None, "gua", {}, 1, 2)
assert table.left_out == ["top: CPU at 1 s, part of nvtop's"] and table.missed == 0
print("all was tried")
"""


def test_a_program_that_ends_by_itself_has_no_figures_and_is_listed():
    done = subprocess.run(["/usr/bin/python3", "-c", TRY], cwd=ROOT, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "bench"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nvtop ended by itself" in done.stdout and done.stdout.endswith("all was tried\n")

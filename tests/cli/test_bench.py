"""The bench says what it could not measure, instead of ending."""
import importlib.machinery
import importlib.util
import os
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import live  # noqa: E402

pytestmark = pytest.mark.any_build


def run_module():
    loader = importlib.machinery.SourceFileLoader("bench_run", str(ROOT / "bench/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    return module


def test_a_program_that_ends_by_itself_has_no_figures():
    assert live.screen(["true"], dict(os.environ), 0, settle=0.2) is None
    cpu, resident = live.screen(["sleep", "60"], dict(os.environ), 0.1, settle=0.1)
    assert cpu >= 0 and resident > 0


def test_what_was_not_measured_is_listed_and_not_judged(capsys, monkeypatch):
    table = run_module().Table()
    monkeypatch.setattr(live.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(live, "screen", lambda command, *_: None if command[0] == "nvtop" else (0.1, 7000))
    live.compare(table, lambda text: None, "gua", {}, 1, 2)
    assert table.left_out == ["top: CPU at 1 s, part of nvtop's"] and table.missed == 0
    assert "nvtop ended by itself" in capsys.readouterr().out

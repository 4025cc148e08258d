"""WSL2, Jetson, containers and vGPU guests: live commands try the library, gua doctor names the place."""
import json
import os
import shutil

import pytest

from conftest import FAKE_NVML, ROOT, gua
from fake import fake_driver

PLACES = ROOT / "tests" / "places"
HEAD = "driver 550.54.15 nvml 12.550.54.15\n"
HOLDER = """
process train pid 4194242
at 0s hold train card 0 memory {memory}
at 0s load train card 0 sm 80
"""
CARD = 'card 0 uuid GPU-aaaa name "{name}" memory 24GB\n'
NO_SAMPLES = "".join(f"at 0s fail {call} code 3\n" for call in (
    "nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetProcess*Utilization*",
    "nvmlDeviceGetMemoryInfo*"))
NO_POWER = "".join(f"at 0s fail {call} code 3\n" for call in (
    "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTemperature"))
SCENARIOS = {
    "wsl2": HEAD + CARD.format(name="NVIDIA GeForce RTX 4090") + HOLDER.format(memory="unknown"),
    "jetson-orin": HEAD + CARD.format(name="Orin (nvgpu)") + HOLDER.format(memory="1GB") + NO_SAMPLES,
    "container": HEAD + CARD.format(name="NVIDIA A100") + HOLDER.format(memory="10GB"),
    "vgpu-guest": HEAD + CARD.format(name="GRID A100-10C") + HOLDER.format(memory="4GB") + NO_POWER,
}


@pytest.fixture
def place(tmp_path, clock_file):
    """place(NAME) copies the tree; run(WORDS) asks gua there. The library is found as in that place."""
    def make(name, library=True, scenario=None):
        root = tmp_path / name
        shutil.copytree(PLACES / name, root)
        env = fake_driver(tmp_path, scenario or SCENARIOS[name], clock=clock_file(1_700_000_000, 3610))
        if library and name == "wsl2":
            (root / "usr/lib/wsl/lib").mkdir(parents=True)
            (root / "usr/lib/wsl/lib/libnvidia-ml.so.1").symlink_to(FAKE_NVML)
        if name == "wsl2" or not library:
            env.pop("GUA_NVML")

        def run(*words):
            clock = ["--clock", env["FAKENVML_CLOCK"], "--root", root]
            return gua(*words, *clock, env=env)
        return run
    return make


def rows(run, name):
    answer = json.loads(run.stdout)
    return [check for check in answer["checks"] if check["check"] == name]


@pytest.mark.parametrize("name, word, gap", [
    ("wsl2", "WSL2", "memory of a process"), ("jetson-orin", "Jetson", "no samples"),
    ("container", "a container", "not audited"), ("vgpu-guest", "vGPU", "no power")])
def test_the_doctor_names_the_place_and_what_is_missing_there(place, tmp_path, name, word, gap):
    run = place(name)("doctor", "--json", "--db", tmp_path / "no.db")
    row, = rows(run, "place")
    assert word in row["text"] and gap in row["advice"] and row["result"] == "ok"
    assert rows(run, "module")[0]["result"] == "ok" and rows(run, "device nodes")[0]["result"] == "ok"
    assert run.returncode == 0, run.stdout


def test_a_plain_host_has_no_such_row(tmp_path):
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    run = gua("doctor", "--json", "--root", root, "--db", tmp_path / "no.db")
    assert rows(run, "place") == [] and rows(run, "module")[0]["result"] == "problem"


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_live_commands_ask_the_library(place, name):
    run = place(name)
    stat = run("stat", "--json", "--no-store")
    assert stat.returncode == 0, stat.stderr
    card, = json.loads(stat.stdout)["gpus"]
    # A Jetson has no samples: its use is unknown, not 0.
    expected = {"jetson-orin": None}.get(name, 80)
    assert card["utilization.gpu"] == expected
    who = run("who", "--no-store")
    assert who.returncode == 0 and "4194242" in who.stdout


def test_jetson_says_that_there_are_no_samples(place, tmp_path):
    run = place("jetson-orin")("doctor", "--json", "--db", tmp_path / "no.db")
    row, = rows(run, "utilisation")
    assert row["result"] == "warning" and "use unknown" in row["advice"]


@pytest.mark.parametrize("name, advice", [
    ("wsl2", "wsl --update"), ("jetson-orin", "JetPack 6"), ("container", "--gpus all")])
def test_without_a_library_the_advice_fits_the_place(place, tmp_path, name, advice):
    run = place(name, library=False)("doctor", "--json", "--db", tmp_path / "no.db")
    row, = rows(run, "place")
    assert advice in row["advice"] and run.returncode == 1
    assert [check["check"] for check in json.loads(run.stdout)["checks"] if check["result"] == "problem"][-1] == "driver"


def test_dxg_that_may_not_be_opened(place, tmp_path):
    run = place("wsl2")
    os.remove(tmp_path / "wsl2/dev/dxg")
    os.symlink("nowhere", tmp_path / "wsl2/dev/dxg")
    answer = run("doctor", "--json", "--db", tmp_path / "no.db")
    row, = rows(answer, "device nodes")
    assert row["result"] == "problem" and row["text"].startswith("/dev/dxg may not be opened")
    os.remove(tmp_path / "wsl2/dev/dxg")
    row, = rows(run("doctor", "--json", "--db", tmp_path / "no.db"), "device nodes")
    assert row["result"] == "warning" and "no /dev/dxg" in row["text"]

"""gua.gpus() and gua.processes() on both sources; how the package finds its library."""
import json
import re
import shutil
import subprocess

import pytest

from conftest import clean_environment, gua
from fake import fake_driver
from pyrun import PACKAGE, python, python_environment, sanitizers

pytestmark = pytest.mark.other_programs

SCENARIO = """
card 0 uuid GPU-a name "Card A" memory 80GiB idle-power 60W max-power 400W
card 1 uuid GPU-b name "Card B" memory 48GiB idle-power 20W max-power 300W
process train pid 4001 user alice uid 1001 command "python train.py"
process screen pid 4002 user root uid 0 command "Xorg" kind graphics
at 0s hold train card 0 memory 8GB
at 0s load train card 0 sm 90
at 0s hold train card 1 memory 1GB
at 0s hold screen card 1 memory 300MB
"""
SHOW = """
import dataclasses, json, sys
import gua
cards = gua.gpus(*sys.argv[1:2], scenario=(sys.argv[2:] or [None])[0])
print(json.dumps([[dataclasses.asdict(card) for card in cards], [card.mem_free_bytes for card in cards]]))
"""


@pytest.mark.parametrize("source", ["sim", "nvml"])
def test_cards_and_their_processes(python, tmp_path, source):
    env = fake_driver(tmp_path, SCENARIO)
    args = ["sim", tmp_path / "driver.scenario"] if source == "sim" else []
    cards, free = json.loads(python(SHOW, *args, env={} if source == "sim" else env))
    a, b = cards
    assert (a["index"], a["uuid"], a["name"], a["status"]) == (0, "GPU-a", "Card A", "ok")
    assert a["mem_total_bytes"] == 80 * 2**30 and 8e9 <= a["mem_used_bytes"] < 9e9
    assert free[0] == a["mem_total_bytes"] - a["mem_used_bytes"]
    assert a["parent_uuid"] is None and a["mig_index"] is None and a["power_w"] > 0 and a["temperature_c"] > 20
    assert [(p["pid"], p["kinds"], p["mem_bytes"]) for p in a["processes"]] == [(4001, ["compute"], 8000000000)]
    assert sorted((p["pid"], p["kinds"][0], p["gpu_uuid"]) for p in b["processes"]) == [
        (4001, "compute", "GPU-b"), (4002, "graphics", "GPU-b")]


@pytest.mark.parametrize("call", ["", "at 0s fail nvmlDeviceGetMemoryInfo_v2 code 3\n"])
@pytest.mark.parametrize("source", ["sim", "nvml"])
def test_memory_that_the_driver_reserves_is_not_free(python, tmp_path, source, call):
    """As `gua query memory.free` and nvidia-smi say, with the newer and with the older call of the driver."""
    scenario = ('card 0 uuid GPU-a name "Card A" memory 6144MiB reserved 613MiB\n'
                'process p pid 4001 user alice uid 1001 command "x"\nat 0s hold p card 0 memory 500MiB\n' + call)
    env = fake_driver(tmp_path, scenario)
    path = tmp_path / "driver.scenario"
    args = ["sim", path] if source == "sim" else []
    (card,), (free,) = json.loads(python(SHOW, *args, env={} if source == "sim" else env))
    options = ["--source", "sim", "--scenario", path] if source == "sim" else ["--nvml", env["GUA_NVML"]]
    asked = gua("query", "--query-gpu=memory.free", "--format=csv,noheader,nounits", *options,
                env=clean_environment(**env))
    assert asked.returncode == 0, asked.stderr
    assert free == (6144 - 613) * 2**20 - 500 * 2**20 == int(asked.stdout) * 2**20
    reserved = 613 * 2**20 if call else 0
    assert card["mem_used_bytes"] == 500 * 2**20 + reserved


def test_processes_of_all_cards(python, tmp_path):
    printed = python("import gua\nfor p in gua.processes(): print(p.pid, p.gpu_index, p.mem_bytes)",
                     env=fake_driver(tmp_path, SCENARIO))
    assert sorted(printed.splitlines()) == ["4001 0 8000000000", "4001 1 1000000000", "4002 1 300000000"]


def test_what_the_driver_does_not_give_is_none(python, tmp_path):
    env = fake_driver(tmp_path, SCENARIO + "at 0s fail nvmlDeviceGetMemoryInfo code 3\n"
                      "at 0s fail nvmlDeviceGetMemoryInfo_v2 code 3\nat 0s fail nvmlDeviceGetPowerUsage code 3\n")
    (card, _), free = json.loads(python(SHOW, env=env))
    assert card["power_w"] is None and free[0] is None
    # What the card does not say is the sum over its processes.
    assert card["mem_used_bytes"] == 8 * 10**9


def test_no_driver_is_an_error_with_a_sentence(python):
    run = python.run("""
        import gua
        try:
            gua.gpus(nvml_path="/nonexistent/libnvidia-ml.so.1")
        except gua.GuaError as error:
            print(error.code, error)
        """)
    assert run.stdout.startswith("-2 ") and "/nonexistent/libnvidia-ml.so.1" in run.stdout and run.stderr == ""
    assert run.stdout.endswith("or name it with nvml_path\n")


def test_a_missing_library_is_a_sentence(python):
    run = python.run("import gua", env={"GUA_LIBRARY": "/nonexistent/libgua.so.0"})
    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ") and "/nonexistent/libgua.so.0" in last and "GUA_LIBRARY" in last


@pytest.mark.parametrize("source, says", [
    ('const char *gua_version(void) { return "0.0.1"; }', "has no gua_"),
    ("", "has no gua_version()"),
    (None, "libgua 7.2.0; the Python package gua needs 0.x"),
])
def test_another_library_is_refused(python, tmp_path, source, says):
    if source is None:
        names = re.findall(r'"(gua_\w+)": \(', (PACKAGE / "gua" / "_lib.py").read_text())
        source = 'const char *gua_version(void) { return "7.2.0"; }\n' + "".join(
            f"void {name}(void) {{}}\n" for name in names if name != "gua_version")
    (tmp_path / "l.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "l.so", "l.c"], cwd=tmp_path, check=True)
    run = python.run("import gua", env={"GUA_LIBRARY": tmp_path / "l.so"})
    assert run.returncode == 1 and says in run.stderr.splitlines()[-1]


def test_it_is_installed_and_finds_its_library(installed, tmp_path):
    package, = installed.glob("lib/python3*/dist-packages/gua")
    looked_in = subprocess.run(["/usr/bin/python3", "-S", "-c", "import site; print(*site.getsitepackages(), sep='\\n')"],
                               env=clean_environment(), capture_output=True, text=True).stdout.splitlines()
    if installed.parts[-1] == "usr" or installed.parts[-2:] == ("usr", "local"):
        assert any(str(package.parent).endswith(path) for path in looked_in)
    assert sorted(p.name for p in package.glob("*.py")) == sorted(p.name for p in (PACKAGE / "gua").glob("*.py"))
    env = {**clean_environment(PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1"), **sanitizers()}
    run = subprocess.run(["/usr/bin/python3", "-W", "error", "-c",
                          "import gua; from gua import _lib; print(gua.__version__, _lib.lib._name)"],
                         cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    version, library = run.stdout.split()
    assert version.startswith("0.") and library == str(installed / "lib" / "libgua.so.0")


def test_it_compiles_without_a_warning(tmp_path):
    shutil.copytree(PACKAGE / "gua", tmp_path / "gua", ignore=shutil.ignore_patterns("__pycache__"))
    run = subprocess.run(["/usr/bin/python3", "-W", "error", "-m", "compileall", "-q", "gua"], cwd=tmp_path,
                         env=python_environment(PYTHONPYCACHEPREFIX=tmp_path / "pycache"), capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")

"""The wheel of the Python package: installed into an environment of its own, it brings libgua along."""
import json
import re
import shutil
import subprocess
import zipfile

import pytest

from conftest import BUILD, ROOT, clean_environment
from pyrun import sanitizers

pytestmark = [pytest.mark.any_build, pytest.mark.skipif("'asan' in str(BUILD)", reason="what is packed is the same code")]


@pytest.fixture(scope="module")
def wheel():
    done = subprocess.run([ROOT / "tools" / "wheel", BUILD], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def environment(tmp_path_factory, wheel):
    """The python of a venv with the wheel in it, installed without a network and outside the tree."""
    where = tmp_path_factory.mktemp("venv")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", where], check=True, timeout=120)
    done = subprocess.run(["/usr/bin/python3", "-m", "pip", "--python", where / "bin" / "python", "install", "--no-index",
                           "--no-deps", "--quiet", wheel], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return where / "bin" / "python"


def run(python, program, tmp_path):
    return subprocess.run([python, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          env={**clean_environment(), **sanitizers()})


def test_it_uses_the_library_that_it_carries(environment, tmp_path):
    done = run(environment, "import gua, gua._lib; print(gua.__version__, gua._lib.lib._name, gua.__file__)", tmp_path)
    assert done.returncode == 0, done.stderr
    version, library, package = done.stdout.split()
    assert version == re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text()).group(1)
    assert library == package.replace("__init__.py", "libgua.so.0")


def test_it_tracks(environment, tmp_path):
    """In an environment without gua on the host: the tracker works, and says that there are no cards."""
    done = run(environment, "import gua\nwith gua.Tracker(sleep_time=0.1) as tracker: sum(range(10**6))\nprint(tracker)",
               tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Slurm" in done.stdout


def test_it_is_for_every_python_3_of_the_platform(wheel):
    assert re.search(r"/gua-[0-9.]+-py3-none-linux_\w+\.whl$", wheel)
    names = zipfile.ZipFile(wheel).namelist()
    assert "gua/libgua.so.0" in names
    assert {name for name in names if name.endswith(".py")} == {
        f"gua/{path.name}" for path in (ROOT / "python" / "gua").glob("*.py")}


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_the_same_tree_gives_the_same_bytes(wheel, umask):
    """Whoever builds it: the modes of its files are not those of a umask."""
    first = open(wheel, "rb").read()
    done = subprocess.run([ROOT / "tools" / "wheel", BUILD], capture_output=True, text=True, timeout=120, umask=umask)
    assert done.returncode == 0 and done.stdout.strip() == wheel
    assert open(wheel, "rb").read() == first
    modes = {entry.external_attr >> 16 & 0o777 for entry in zipfile.ZipFile(wheel).infolist()}
    assert modes <= {0o644, 0o664}, [oct(mode) for mode in modes]


def test_a_package_without_a_library_finds_that_of_its_prefix(tmp_path):
    """As conda lays out an environment: PREFIX/lib/libgua.so.0 and PREFIX/lib/pythonX.Y/site-packages/gua."""
    lib = tmp_path / "lib"
    package = lib / "python3.11" / "site-packages"
    shutil.copytree(ROOT / "python" / "gua", package / "gua", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(BUILD / "libgua.so.0", lib / "libgua.so.0")
    done = run("/usr/bin/python3", f"import sys; sys.path.insert(0, {str(package)!r})\n"
               "import gua._lib; print(gua._lib.lib._name)", tmp_path)
    assert (done.stdout.strip(), done.stderr) == (str(lib / "libgua.so.0"), "")


def test_it_works_in_a_notebook(environment, tmp_path):
    """A kernel as a notebook server starts it, with the wheel among its packages."""
    packages = next((environment.parent.parent / "lib").glob("python3*/site-packages"))
    code = ["import gua\n", "with gua.Tracker(sleep_time=0.1) as tracker: sum(range(10**6))\n",
            "with open('result', 'w') as out: print(gua.__file__, tracker, file=out)"]
    cell = {"cell_type": "code", "execution_count": None, "id": "1", "metadata": {}, "outputs": [], "source": code}
    (tmp_path / "use.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    done = subprocess.run(["/usr/bin/python3", shutil.which("jupyter-execute"), "use.ipynb"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120, env={**clean_environment(), **sanitizers(), "HOME": str(tmp_path),
                                                       "PYTHONPATH": str(packages)})
    assert done.returncode == 0, done.stderr
    result = (tmp_path / "result").read_text()
    assert result.startswith(str(packages)) and "Slurm" in result


def test_pip_installs_the_folder(tmp_path):
    """pip install ./python, with the setuptools of the system. The library is that of the build beside it."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "python", tree / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    shutil.copyfile(ROOT / "meson.build", tree / "meson.build")
    (tree / "build").mkdir()
    shutil.copyfile(BUILD / "libgua.so.0", tree / "build" / "libgua.so.0")
    done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps",
                           "--quiet", "--target", tmp_path / "packages", tree / "python"], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    done = run("/usr/bin/python3", f"import sys; sys.path.insert(0, {str(tmp_path / 'packages')!r})\n"
               "import gua._lib; print(gua._lib.lib._name)", tmp_path)
    assert done.stdout.strip() == str(tmp_path / "packages" / "gua" / "libgua.so.0"), done.stderr

"""`python -m gua` is gpu-tracker, as `python -m gpu_tracker` is."""
import subprocess

import pytest

from conftest import BUILD, clean_environment, gua
from pyrun import PACKAGE, python_environment, sanitizers

# Python that runs a program, which other tests run under sanitizers.
pytestmark = pytest.mark.any_build


def module(*args, cwd, **env):
    environment = {key: value for key, value in python_environment(**env).items() if value}
    return subprocess.run(["/usr/bin/python3", "-W", "error", "-m", "gua", *map(str, args)], cwd=cwd, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def test_it_is_gpu_tracker(tmp_path):
    for args in (["--version"], ["-h"], ["sub-track", "--help"], ["--st=1"], ["sub-track", "analyze"]):
        run = module(*args, cwd=tmp_path)
        same = gua(*args, binary=BUILD / "gpu-tracker")
        assert (run.returncode, run.stdout, run.stderr) == (same.returncode, same.stdout, same.stderr)
        assert run.stdout or run.stderr
    run = module("-e", "sh -c exit", "--st=0.1", "-o", "out.txt", cwd=tmp_path)
    assert run.stdout == "Resource tracking complete. Process completed with status code: 0\n"
    assert (tmp_path / "out.txt").read_text().startswith("Max RAM:\n")


def test_it_finds_the_program_of_its_installation(installed, tmp_path):
    package, = installed.glob("lib/python3*/dist-packages/gua")
    env = {**clean_environment(PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1"), **sanitizers()}
    run = subprocess.run(["/usr/bin/python3", "-c", "from gua import commands; print(commands.find('gpu-tracker'))"], cwd=tmp_path,
                         env=env, capture_output=True, text=True)
    assert run.stdout == f"{installed / 'bin' / 'gpu-tracker'}\n", run.stderr


def test_another_program_of_that_name_is_not_taken(tmp_path):
    """gpu_tracker installs a program of the same name."""
    other = tmp_path / "gpu-tracker"
    other.write_text("#!/bin/sh\necho other\n")
    other.chmod(0o755)
    alone = tmp_path / "libgua.so.0"
    alone.symlink_to(BUILD / "libgua.so.0")
    copy = tmp_path / "gua"
    copy.mkdir()
    for file in (PACKAGE / "gua").glob("*.py"):
        (copy / file.name).write_bytes(file.read_bytes())
    run = module("--version", cwd=tmp_path, GUA_LIBRARY=alone, PATH=f"{tmp_path}:/usr/bin", PYTHONPATH=tmp_path)
    if run.returncode == 0:  # a gua that is installed on this host
        assert run.stdout.startswith("gpu-tracker (gua ")
    else:
        assert run.stderr == ("python -m gua runs the program gpu-tracker, which is not installed. Install gua, or add "
                              "its directory to PATH.\n")

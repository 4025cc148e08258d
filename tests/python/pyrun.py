"""What the tests of the Python package share: Debian's python3 in a process of its own, with the built library.

The package is run as users run it. A library with sanitizers needs their runtime first in the process, and python
itself is not free of leaks."""
import functools
import os
import subprocess
import textwrap

import pytest

from conftest import BUILD, ROOT, clean_environment

PACKAGE = ROOT / "python"
LIBRARY = BUILD / "libgua.so.0"


@functools.cache
def sanitizers():
    """The environment in which a python can load the library."""
    if b"__asan_init" not in LIBRARY.read_bytes():
        return {}
    runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return {"LD_PRELOAD": runtime.stdout.strip(),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def overhead_bytes():
    """What the sanitizers' own memory may add to a python's."""
    return 150e6 if sanitizers() else 0


def python_environment(**env):
    """The environment of a python that has the package, which is compiled once, and not beside its source."""
    environment = clean_environment(PYTHONPATH=str(PACKAGE), PYTHONPYCACHEPREFIX=str(BUILD / "pycache"), PYTHONHASHSEED="0",
                                    GUA_LIBRARY=str(LIBRARY))
    return {**environment, **sanitizers(), **{key: str(value) for key, value in env.items()}}


class Python:
    """Runs programs in a directory of their own."""

    def __init__(self, where):
        self.where = where

    def run(self, program, *args, name="program.py", env=None, timeout=120):
        """Runs a program; the completed process, whatever it was."""
        path = self.where / name
        path.write_text(textwrap.dedent(program))
        environment = {key: value for key, value in python_environment(**(env or {})).items() if value}
        return subprocess.run(["/usr/bin/python3", "-W", "error", str(path), *map(str, args)], cwd=self.where,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, env=environment)

    def __call__(self, program, *args, **options):
        """Runs a program that must succeed and say nothing on standard error; returns what it printed."""
        run = self.run(program, *args, **options)
        assert run.returncode == 0, run.stderr
        assert run.stderr == ""
        return run.stdout


@pytest.fixture
def python(tmp_path):
    return Python(tmp_path)

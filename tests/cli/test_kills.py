"""A recorder that is killed at any moment, also while its disk is full, damages nothing and counts no second twice."""
import os
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, clean_environment

CAN_MOUNT = os.geteuid() == 0 and subprocess.run(
    ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0


def kills(*options):
    if not CAN_MOUNT:
        pytest.skip("needs root, and the right to mount")
    run = subprocess.run([sys.executable, ROOT / "tests" / "kills.py", *options], capture_output=True, text=True,
                         env=clean_environment(GUA_BUILD=str(BUILD)), timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.large
@pytest.mark.same_path
@pytest.mark.parametrize("seed", ["1", "2"])
def test_kills_in_virtual_time(seed):
    kills("--kills", "30", "--full", "6", "--seed", seed)


@pytest.mark.waits
def test_kills_in_real_time():
    """The first look of a recorder that cannot read its store is at a moment, and that moment passes."""
    kills("--real", "--kills", "6", "--full", "5", "--check-every", "1")

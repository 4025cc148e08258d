"""The library as it is installed: the example is built with pkg-config and run on both sources."""
import os
import subprocess

import pytest

from conftest import BUILD, clean_environment
from fake import fake_driver

pytestmark = pytest.mark.other_programs

SCENARIO = """
card 0 uuid GPU-a name "Card A" memory 80GiB idle-power 60W max-power 400W
card 1 uuid GPU-b name "Card B" memory 48GiB idle-power 20W max-power 300W
process train pid 4001 user alice uid 1001 command "python train.py"
process screen pid 4002 user root uid 0 command "Xorg" kind graphics
at 0s hold train card 0 memory 8GB
at 0s load train card 0 sm 90
at 0s hold screen card 1 memory 300MB
at 0s lost card 1 code 15 until 1000h
"""


class Example:
    """A program of dist/examples, built against what `make install` installed."""

    def __init__(self, installed, where, name):
        pc = next(installed.rglob("libgua.pc"))
        self.libraries = pc.parent.parent
        prefix = next(line[7:] for line in pc.read_text().splitlines() if line.startswith("prefix="))
        root = str(installed)[:-len(prefix)]
        environment = {**os.environ, "PKG_CONFIG_LIBDIR": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": root}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libgua"], env=environment, check=True,
                               capture_output=True, text=True).stdout.split()
        if b"__asan_init" in (self.libraries / "libgua.so.0").read_bytes():
            flags.append("-fsanitize=address,undefined")
        self.program = where / name
        subprocess.run(["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
                        installed / "share" / "doc" / "gua" / "examples" / f"{name}.c", "-o", self.program, *flags],
                       check=True)

    def __call__(self, *args, **env):
        return subprocess.run([self.program, *map(str, args)], capture_output=True, text=True, timeout=60,
                              env=clean_environment(LD_LIBRARY_PATH=str(self.libraries), **env))


@pytest.fixture(scope="module")
def example(installed, tmp_path_factory):
    return Example(installed, tmp_path_factory.mktemp("example"), "cards")


@pytest.fixture(scope="module")
def tracker(installed, tmp_path_factory):
    return Example(installed, tmp_path_factory.mktemp("tracker"), "track")


def check_cards(run):
    """What both faces of the scenario must show. The library itself has said nothing."""
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0] == "0 GPU-a Card A ok"
    assert "of 81920 MiB" in lines[1] and " W" in lines[1]
    assert lines[2].startswith("    pid 4001  memory 7629 MiB") and "graphics" not in lines[2]
    assert lines[3].startswith("1 GPU-b Card B") and lines[3].endswith("lost")
    assert lines[4].split() == "use - memory - of 49152 MiB power -".split()
    assert len(lines) == 5


def test_the_simulated_source(example, tmp_path):
    path = tmp_path / "a.scenario"
    path.write_text(SCENARIO)
    check_cards(example("sim", path))


def test_the_built_in_lab(example):
    run = example("sim")
    assert (run.returncode, run.stderr) == (0, "")
    assert "NVIDIA A100-SXM4-80GB" in run.stdout


def test_the_drivers_library(example, tmp_path):
    env = fake_driver(tmp_path, SCENARIO.replace("at 0s lost", "at 1h lost"))
    run = example("nvml", env["GUA_NVML"], **env)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0] == "0 GPU-a Card A ok" and "of 81920 MiB" in lines[1]
    assert lines[2].startswith("    pid 4001  memory 7629 MiB")
    assert lines[3] == "1 GPU-b Card B ok"
    assert lines[5].startswith("    pid 4002  memory 286 MiB") and lines[5].endswith("(graphics)")


def test_the_environment_is_not_asked(example, tmp_path):
    """GUA_NVML is for the program; a library has options."""
    env = fake_driver(tmp_path, SCENARIO)
    run = example("nvml", "/nonexistent/libnvidia-ml.so.1", **env)
    assert run.returncode == 1 and run.stdout == ""
    assert "/nonexistent/libnvidia-ml.so.1" in run.stderr


def test_a_broken_driver_is_a_sentence(example, tmp_path):
    env = fake_driver(tmp_path, SCENARIO + "at 0s fail nvmlInit_v2 code 9\n")
    run = example("nvml", env["GUA_NVML"], **env)
    assert run.returncode == 1 and run.stderr.startswith("cards: ") and run.stderr.count("\n") == 1


# User and system time, each cut to the kernel's ticks of 10 ms, at both ends.
TICKS_S = 4 * 0.01


def check_tracked(run, threads):
    """The program counts half a second of CPU over all its threads, a helper thread among them."""
    assert (run.returncode, run.stderr) == (0, "")
    words = run.stdout.splitlines()[0].split()
    wall, cpu = float(words[0]), float(words[2])
    assert 0.5 - TICKS_S <= cpu <= threads * wall + TICKS_S
    assert words[8:] == ["1", "process(es)"]
    return float(words[6])


@pytest.mark.both_builds
@pytest.mark.parametrize("helper", ["thread", "process"])
def test_a_tracker(tracker, tmp_path, helper):
    """Either way: the numbers of the program, and the helper is not in them."""
    env = fake_driver(tmp_path, SCENARIO.replace("at 0s lost", "at 1h lost"))
    run = tracker(helper, env["GUA_NVML"], **env)
    megabytes = check_tracked(run, threads=2 if helper == "thread" else 1)
    if "asan" not in BUILD.name:
        assert megabytes == pytest.approx(50, rel=0.1)
    assert [line.split(":")[0] for line in run.stdout.splitlines()[1:]] == ["card 0 GPU-a", "card 1 GPU-b"]
    assert "card 0 GPU-a: 90 % used on average" in run.stdout


def test_a_tracker_without_a_driver(tracker):
    run = tracker("thread", "/nonexistent/libnvidia-ml.so.1")
    check_tracked(run, threads=2)
    assert run.stdout.splitlines()[1].startswith("no GPU: ") and "/nonexistent" in run.stdout

"""What the tests of the shipped binary share: running it, expected files, the fake driver, clocks.

GUA_BUILD names the build directory that is tested (default: build). `pytest --update` rewrites the
expected files instead of comparing with them."""
import fcntl
import itertools
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("GUA_BUILD", ROOT / "build")).resolve()
GUA = BUILD / "gua"
FAKE_NVML = BUILD / "tests" / "libnvidia-ml.so.1"
SCENARIOS = ROOT / "tests" / "scenarios"
pytest_plugins = ["workers"]


MARKS = {
    "waits": "spends most of its time waiting: runs in one build only, beside the others",
    "any_build": "tests a script, a document or the release build itself: runs with the release build",
    "both_builds": "asks more of the release build, such as how much memory it takes: runs in both builds",
    "large": "a large case of what smaller tests run, too: sanitizers leave it out",
    "other_programs": "spends most of its time in other programs than gua's: runs under sanitizers, all of its cases",
    "same_path": "all cases take the same way through the code: sanitizers see the first of them",
}


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite the expected files")
    parser.addoption("--build", choices=("release", "sanitizers"), help="only the tests that make test runs in this build")
    parser.addoption("--release-only", default=ROOT / "tests" / "release_only", type=pathlib.Path,
                     help="the list of tests that the sanitizers leave out")


def pytest_configure(config):
    for name, what in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {what}")


def adds_something(item, seen):
    """Whether a case is the first of its function (same_path), or the first with one of its rows: of a product of two
    parametrisations, each row of each once. `seen` is what was there before."""
    if not hasattr(item, "callspec"):
        return True
    function = item.nodeid.partition("[")[0]
    same = item.get_closest_marker("same_path")
    rows = {(function,)} if same else {(function, *row) for row in enumerate(item.callspec._idlist)}
    new = not rows <= seen
    seen |= rows
    return new


def runs_in(build, item, release_only, seen):
    """Whether make test runs a test in a build: in one of the two, but for those with the mark both_builds."""
    if item.get_closest_marker("both_builds"):
        return True
    if any(map(item.get_closest_marker, ("any_build", "large"))):
        return build == "release"
    if item.get_closest_marker("other_programs"):
        return build == "sanitizers"
    listed = f"{item.path.name}::{item.originalname}" in release_only
    return (adds_something(item, seen) and not listed) == (build == "sanitizers")


def pytest_collection_modifyitems(config, items):
    build = config.getoption("--build")
    if build:
        release_only, seen = set(config.getoption("--release-only").read_text().split()), set()
        kept = [item for item in items if runs_in(build, item, release_only, seen)]
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept


# A runner in the background, or under nohup, ignores signals, and what it starts would, too.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL),
                        (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


def clean_environment(**extra):
    """The environment of every run: no locale, no colour, no terminal, UTC, nothing of the user's or the host's."""
    keep = {k: os.environ[k] for k in ("PATH", "ASAN_OPTIONS") if k in os.environ}
    return {**keep, "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/nonexistent", "GUA_CONFIG": "/dev/null", **extra}


def gua(*args, env=None, timeout=120, binary=GUA, before=(), **options):
    """Runs gua, with the words `before` in front, and returns the completed process; stdout and stderr are text."""
    return subprocess.run([*before, str(binary), *map(str, args)], env=clean_environment(**(env or {})),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="surrogateescape", timeout=timeout, **options)


MEASURE = """import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def measured(*args):
    """Runs gua: its exit status, standard error, and the most memory that it had, in KiB. It has a small parent of its own:
    the kernel counts what the parent had at the fork."""
    run = subprocess.run(["/usr/bin/python3", "-c", MEASURE, str(GUA), *map(str, args)], env=clean_environment(), check=True,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    status, peak_kib = map(int, run.stdout.split())
    return status, run.stderr, peak_kib


directories = itertools.count()


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """A directory of its own for each test, as pytest's fixture of this name makes it. That one reads the names of all
    directories there are, each time."""
    name = re.sub(r"\W", "_", request.node.name)[:27]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(directories)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def own_var_lib():
    """own_var_lib(SCRIPT, *ARGUMENTS, **ENVIRONMENT) runs a shell script, as root, for which /var/lib is empty and its
    own: the system's store is tested there, and the host's is left alone."""
    empty = ["unshare", "-m", "sh", "-e", "-c"]
    mount = "mount -t tmpfs none /var/lib\n"
    if os.geteuid() != 0 or subprocess.run([*empty, mount], capture_output=True).returncode != 0:
        pytest.skip("needs root, and the right to mount")

    def run(script, *arguments, **env):
        return subprocess.run([*empty, mount + script, "sh", *map(str, arguments)], env=clean_environment(**env),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return run


@pytest.fixture
def expect(request):
    """expect(NAME, TEXT): compares TEXT with tests/cli/expected/NAME."""
    def check(name, text):
        path = ROOT / "tests" / "cli" / "expected" / name
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest --update and look at it"
        assert text == path.read_text()
    return check


def cases(count, sanitized):
    """How many random cases a test plays: `count` in make test-all, else a fifth, and `sanitized` under sanitizers."""
    return count if os.environ.get("GUA_TEST_ALL") else sanitized if "asan" in BUILD.name else count // 5


def write_clock(path, wall_seconds, boot_seconds=3600):
    """Makes a virtual clock that gua and the fake driver share."""
    boot_us = int(boot_seconds * 1e6)
    path.write_bytes(struct.pack("=8sqqq", b"GUACLCK1", boot_us, int(wall_seconds * 1e6) - boot_us, 0))
    return path


@pytest.fixture
def clock_file(tmp_path):
    """clock_file(WALL_SECONDS) makes a virtual clock that gua and the fake driver share."""
    def make(wall_seconds, boot_seconds=3600, name="clock"):
        return write_clock(tmp_path / name, wall_seconds, boot_seconds)
    return make


def advance(clock, seconds):
    """Moves a clock file."""
    with open(clock, "r+b") as file:
        file.seek(8)
        boot_us, = struct.unpack("=q", file.read(8))
        file.seek(8)
        file.write(struct.pack("=q", boot_us + int(seconds * 1e6)))


def children(pid):
    """The pids of a process's children."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


def wait_for(condition, what=lambda: "it never happened", seconds=240):
    """Returns as soon as the condition holds; fails when it never does. The limit is for faults, not for slow
    machines: `what()` says what was there instead."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def made_once(tmp_path_factory, name, make):
    """A directory for all workers, filled with make(DIRECTORY) by the first that needs it. Nobody may change it."""
    base = tmp_path_factory.getbasetemp()
    where = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / name
    where.mkdir(exist_ok=True)
    with open(where / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (where / "made").exists():
            make(where)
            (where / "made").touch()
    return where


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """What `gua demo --now 2026-11-11T12:00Z` (a Wednesday) prints, and its store."""
    def make(where):
        (where / "gua.db").unlink(missing_ok=True)
        run = gua("demo", "--db", where / "gua.db", "--now", "2026-11-11T12:00Z")
        assert run.returncode == 0, run.stderr
        (where / "stdout").write_text(run.stdout)
    where = made_once(tmp_path_factory, "demo", make)
    return types.SimpleNamespace(db=where / "gua.db", stdout=(where / "stdout").read_text())


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """What `make install` puts below PREFIX, as a directory."""
    where = made_once(tmp_path_factory, "installed", lambda where: subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", where / "tree"], check=True, capture_output=True))
    return next(path.parent.parent for path in (where / "tree").rglob("bin/gua"))

"""tools/test and the marks that it uses: what runs where, and that no process stays behind."""
import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import MARKS, ROOT, wait_for

pytestmark = pytest.mark.any_build
DRIVER = """
import importlib.machinery, importlib.util, os, subprocess, sys, time
loader = importlib.machinery.SourceFileLoader("tools_test", {tool!r})
suite = importlib.util.module_from_spec(importlib.util.spec_from_loader("tools_test", loader))
loader.exec_module(suite)
suite.ENDING_SECONDS = {seconds}
def work():
    {work}
    return 3, 0
print(*suite.watched(work))
"""
ORPHAN = """subprocess.run(["setsid", "-f", "sh", "-c", "echo $$ >{pid}; exec sleep {seconds}"])
    while not os.path.exists("{pid}") or not open("{pid}").read():
        time.sleep(0.01)
    pid = open("{pid}").read().strip()"""


def watched(work, seconds=1):
    """What watched() of tools/test says about a function with this body."""
    code = DRIVER.format(tool=str(ROOT / "tools" / "test"), work=work, seconds=seconds)
    return subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, timeout=120)


def test_a_process_that_stays_is_a_failure_and_is_ended(tmp_path):
    pid = tmp_path / "pid"
    run = watched(ORPHAN.format(pid=pid, seconds=1000))
    orphan = int(pid.read_text())
    assert f"still alive: {orphan} sleep 1000\n" in run.stdout
    assert run.stdout.endswith("0 passed, 1 failed\n3 1\n")
    wait_for(lambda: not pathlib.Path(f"/proc/{orphan}/cmdline").exists() or
             not pathlib.Path(f"/proc/{orphan}/cmdline").read_bytes())


def test_a_process_that_is_about_to_end_is_none(tmp_path):
    run = watched(ORPHAN.format(pid=tmp_path / "pid", seconds=0.3), seconds=60)
    assert (run.stdout, run.stderr) == ("3 0\n", "")


def test_orphans_are_waited_for_meanwhile(tmp_path):
    """A test that looks whether a process has ended must not see it for ever."""
    look = "\n    while os.path.exists(f'/proc/{pid}'):\n        time.sleep(0.01)"
    run = watched(ORPHAN.format(pid=tmp_path / "pid", seconds=0.1) + look)
    assert run.stdout == "3 0\n"


@pytest.mark.parametrize("work", ["raise SystemExit(0)", "os.kill(os.getpid(), 9)", "os._exit(0)", "1 / 0"])
def test_a_suite_that_breaks_off_has_failed(work):
    assert watched(work).stdout == "0 1\n"


STEPS = """
passes, fails = (1, 0, 0, ""), (0, 1, 0, "why\\n")
steps = [("build, a", [], lambda: fails), ("unit, a", ["build, b", "build, a"], lambda: passes),
         ("build, b", [], lambda: passes), ("unit, b", ["build, b"], lambda: passes), ("lint", [], lambda: 1 / 0)]
print(*suite.run_steps(steps, sys.argv[1:]))
"""


@pytest.mark.parametrize("wanted, counts, ran", [
    ([], "2 2", ["build, a", "build, b", "lint", "unit, b"]),  # nothing is tested that was not built
    (["unit"], "2 0", ["unit, a", "unit, b"]),
    (["nothing"], "0 0", []),
])
def test_steps(wanted, counts, ran):
    code = DRIVER.partition("suite.ENDING")[0].format(tool=str(ROOT / "tools" / "test")) + STEPS
    run = subprocess.run(["/usr/bin/python3", "-c", code, *wanted], capture_output=True, text=True, timeout=120)
    assert run.stdout.splitlines()[-1] == counts
    assert sorted(re.findall(r"^(?:ok    |FAILED) (.*): \d", run.stdout, re.MULTILINE)) == ran
    assert ("ZeroDivisionError" in run.stdout) == (not wanted)


UNITS = """
suite.run = lambda command, env: print(env.get("GUA_TEST_ALL"))
suite.junit = lambda log, result: (1, 0, 0, "")
for all_tests in (False, True):
    steps = {name: function for name, _, function in suite.steps_of(all_tests)}
    steps["unit tests, release"]()
"""


def test_random_tests_play_all_of_their_cases_when_asked():
    code = DRIVER.partition("suite.ENDING")[0].format(tool=str(ROOT / "tools" / "test")) + UNITS
    run = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["None", "1"], run.stderr


def pytest_of(folder, text, *words):
    """Runs pytest, as tools/test does, on a file of tests with this text."""
    for name in ("conftest.py", "workers.py"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / "tests" / name)
    (folder / "test_x.py").write_text(text)
    return subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", *words],
                          cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTEST_ADDOPTS": ""}, timeout=120)


CHANGED = """
import pathlib
suite.ROOT, settings, stamp = pathlib.Path("."), pathlib.Path("settings"), pathlib.Path("stamp")
for path, at in ("a", 10), ("b", 30), ("settings", 5), ("stamp", 20):
    pathlib.Path(path).touch()
    os.utime(path, (at, at))
print(*suite.changed(["a", "b"], stamp, settings))
os.utime("settings", (25, 25))
print(*suite.changed(["a", "b"], stamp, settings))
os.utime("settings", (5, 5))
stamp.unlink()
print(*suite.changed(["a", "b"], stamp, settings))
"""


def test_files_that_have_not_changed_are_not_checked_again(tmp_path):
    code = DRIVER.partition("suite.ENDING")[0].format(tool=str(ROOT / "tools" / "test")) + CHANGED
    run = subprocess.run(["/usr/bin/python3", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.stdout.splitlines() == ["b", "a b", "a b"], run.stderr


CASES = """
import pytest
@pytest.mark.same_path
@pytest.mark.parametrize("a", [1, 2, 3])
def test_same(a): pass
@pytest.mark.other_programs
@pytest.mark.same_path
@pytest.mark.parametrize("a", [1, 2])
def test_others(a): pass
@pytest.mark.parametrize("a, b", [(1, 1), (1, 2), (2, 1)])
def test_cases(a, b): pass
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("a", [1, 2, 3])
def test_product(a, b): pass
def test_alone(): pass
@pytest.mark.any_build
def test_script(): pass
@pytest.mark.large
def test_large(): pass
@pytest.mark.both_builds
@pytest.mark.parametrize("a", [1, 2])
def test_both(a): pass
@pytest.mark.parametrize("a", [1, 2])
def test_listed(a): pass
"""
SANITIZERS = {"same[1]", "others[1]", "others[2]", "cases[1-1]", "cases[1-2]", "cases[2-1]", "product[1-1]", "product[1-2]",
              "product[2-1]", "product[3-1]", "alone", "both[1]", "both[2]"}
RELEASE = {"same[2]", "same[3]", "product[2-2]", "product[3-2]", "script", "large", "listed[1]", "listed[2]", "both[1]", "both[2]"}


@pytest.mark.parametrize("words, names", [
    ([], SANITIZERS | RELEASE), (["--build", "sanitizers"], SANITIZERS), (["--build", "release"], RELEASE)])
def test_where_each_test_runs(tmp_path, words, names):
    (tmp_path / "list").write_text("test_x.py::test_listed\ntest_y.py::test_alone\n")
    run = pytest_of(tmp_path, CASES, "--collect-only", "--release-only", tmp_path / "list", *words)
    assert sorted(re.findall(r"::test_(\S+)", run.stdout)) == sorted(names)


def test_the_list_names_tests_that_there_are():
    """So that a test which gets another name is not left out under sanitizers for ever by its old one."""
    listed = (ROOT / "tests" / "release_only").read_text().split()
    there = {f"{path.name}::{name}" for path in (ROOT / "tests").rglob("test_*.py")
             for name in re.findall(r"^\s*def (test_\w+)\(", path.read_text(), re.MULTILINE)}
    assert set(listed) <= there
    assert listed == sorted(set(listed))


def test_marks_have_one_meaning():
    used = {mark for path in (ROOT / "tests").rglob("test_*.py")
            for mark in re.findall(r"pytest\.mark\.(\w+)", path.read_text())}
    assert used - set(MARKS) <= {"parametrize", "skipif"}


# How a test asks which build it sees; not as the index of what it uses there.
WHICH_BUILD = re.compile(r"(?<!\[)'asan'|overhead_bytes\(\)|if sanitizers\(\)")


def definitions(tree):
    """Functions and variables of a file of tests: {name: node}."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node


def judges_the_build(nodes, name):
    """Whether a test, or what it uses of its file, asserts or skips something in one build only."""
    todo, seen = [name], set()
    while todo:
        name = todo.pop()
        seen.add(name)
        if WHICH_BUILD.search(ast.unparse(nodes[name])):
            return True
        todo += {node.id if isinstance(node, ast.Name) else node.arg for node in ast.walk(nodes[name])
                 if isinstance(node, (ast.Name, ast.arg))} & nodes.keys() - seen
    return False


def test_what_holds_in_one_build_runs_there():
    """A test that looks which build it sees and has no mark runs in one of them: what it asserts in the other is lost."""
    lost = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        nodes = dict(definitions(ast.parse(path.read_text())))
        chosen = [ast.unparse(nodes["pytestmark"])] if "pytestmark" in nodes else []
        for name, node in nodes.items():
            marks = " ".join([*chosen, *map(ast.unparse, getattr(node, "decorator_list", []))])
            if name.startswith("test_") and not re.search("any_build|both_builds", marks) and judges_the_build(nodes, name):
                lost.append(f"{path.name}::{name}")
    assert lost == []


AGAIN = """
import pathlib
def try_alone(where, *cases):
    return (len(cases), 0, 0, "") if "steady" in cases[0] else (0, len(cases), 0, "why")
print(*suite.once_more((7, {failed}), [(pathlib.Path("build-asan"), case) for case in sys.argv[1:]], try_alone))
"""


@pytest.mark.parametrize("failed, cases, lines", [
    (0, [], ["7 0"]),
    (3, ["steady", "broken"],  # the third is a sanitizer's report, which nothing takes back
     ["unsteady steady (build-asan): failed beside other work, and passed alone", "FAILED broken (build-asan): alone, too",
      "8 2"]),
    (6, [f"steady[{case}]" for case in range(6)],  # one play, judged six times
     ["unsteady steady (build-asan): failed beside other work, and passed alone", "13 0"]),
    (6, [f"steady{test}" for test in range(6)], ["7 6"]),  # so many are no accident
])
def test_what_failed_is_tried_once_more_alone(failed, cases, lines):
    code = DRIVER.partition("suite.ENDING")[0].format(tool=str(ROOT / "tools" / "test")) + AGAIN.format(failed=failed)
    run = subprocess.run(["/usr/bin/python3", "-c", code, *cases], capture_output=True, text=True, timeout=120)
    assert run.stdout.splitlines() == lines


FAILED_UNITS = """
import pathlib
print(*suite.failed_programs(sys.argv[1]))
suite.one = lambda command, env: print(*command) or (1, 0, 0, "")
print(*suite.alone(pathlib.Path("build-asan"), "apart", "apart")[:2])
"""


def test_the_program_of_a_unit_test_that_failed_runs_alone(tmp_path):
    log = tmp_path / "log.xml"
    log.write_text('<testsuites><testsuite name="gua.answer"><testcase name="1 - a" classname="gua.answer"/></testsuite>'
                   '<testsuite name="gua.apart"><testcase name="1 - b" classname="gua.apart"/>'
                   '<testcase name="2 - c" classname="gua.apart"><failure/></testcase></testsuite></testsuites>')
    code = DRIVER.partition("suite.ENDING")[0].format(tool=str(ROOT / "tools" / "test")) + FAILED_UNITS
    run = subprocess.run(["/usr/bin/python3", "-c", code, log], capture_output=True, text=True, timeout=120)
    assert run.stdout.splitlines() == ["apart", "meson test -C build-asan --no-rebuild apart", "2 0"], run.stderr


SHARED_OUT = """
import os, pathlib, pytest
@pytest.fixture(scope="session")
def whole():
    yield
    pathlib.Path(f"ended.{os.getpid()}").touch()
@pytest.mark.parametrize("x", ["a b", "-"])
def test_fails(x, whole): print("said", x); assert x == "-"
@pytest.fixture(scope="module")
def costly(): pass
@pytest.mark.parametrize("x", [1, 2, 3])
def test_together(x, tmp_path, costly, whole): pathlib.Path(f"together.{os.getpid()}").touch()
@pytest.mark.skipif(True, reason="not here")
def test_skipped(): pass
def test_ends_its_worker(whole): os._exit(0)
def test_after(whole): pass
"""


def test_workers(tmp_path):
    """Each test runs once; one that ends its worker has failed; failures have names that pytest takes."""
    log = tmp_path / "log.xml"
    run = pytest_of(tmp_path, SHARED_OUT, "--workers", "3", f"--junitxml={log}")
    assert run.returncode == 1 and "2 failed, 5 passed, 1 skipped" in run.stdout, run.stdout + run.stderr
    assert "said a b" in run.stdout and "said -" not in run.stdout and "its worker ended" in run.stdout
    assert len(list(tmp_path.glob("together.*"))) == 1
    assert 1 <= len(list(tmp_path.glob("ended.*"))) <= 2  # each worker but the one that did not come so far
    code = DRIVER.partition("suite.ENDING")[0].format(tool=str(ROOT / "tools" / "test")) + "print(*suite.failures_in(sys.argv[1]), sep='\\n')"
    run = subprocess.run(["/usr/bin/python3", "-c", code, log], capture_output=True, text=True, timeout=120)
    assert sorted(run.stdout.splitlines()) == ["test_x.py::test_ends_its_worker", "test_x.py::test_fails[a b]"]


IN_ORDER = """
import time, pytest
def note(name): print(name, file=open("order", "a"))
def test_first(): note("first")
@pytest.mark.parametrize("x", [1, 2])
def test_short(x): note("short")
def test_long(): note("long"); time.sleep(0.3)
def test_new(): note("new")
"""


def test_the_longest_come_first(tmp_path):
    """So that the last test is a short one, and no worker waits for another at the end. A test that is not known yet may be long."""
    order = tmp_path / "order"
    assert pytest_of(tmp_path, IN_ORDER, "--workers", "1", "--times", "times", "-k", "not new").returncode == 0
    assert order.read_text().split() == ["first", "short", "short", "long"]
    order.unlink()
    assert pytest_of(tmp_path, IN_ORDER, "--workers", "1", "--times", "times").returncode == 0
    assert order.read_text().split()[:2] == ["new", "long"]


WRONG = "int main(int argc, char **argv)\n{\n\t(void)argv;\n\treturn 0x7fffffff +\n\t\targc;\n}\n"
REPORTED = """
def step(where, env):
    return (int(subprocess.run([where], env=env).returncode != 0), 0, 0, "")
print(*suite.sanitized(step)(sys.argv[1]))
"""


def test_undefined_behaviour_is_reported_with_its_place(tmp_path):
    """With the words that the sanitized build is made with: a trap must not end a program silently."""
    words = subprocess.run(["make", "-C", ROOT, "-s", "--eval", "words: ; @echo $(SANITIZE_TESTS)", "words"],
                           capture_output=True, text=True, check=True).stdout
    flags = re.findall(r"-[fg][\w=-]+", words.partition("-Dc_args=")[2])
    assert "-fsanitize=undefined" in flags and "-Db_sanitize=address " in words
    (tmp_path / "wrong.c").write_text(WRONG)
    subprocess.run(["cc", "-O1", "-fsanitize=address", *flags, "wrong.c", "-o", "wrong"], cwd=tmp_path, check=True)
    code = DRIVER.partition("suite.ENDING")[0].format(tool=str(ROOT / "tools" / "test")) + REPORTED
    run = subprocess.run(["/usr/bin/python3", "-c", code, tmp_path / "wrong"], capture_output=True, text=True, timeout=120)
    assert run.stdout.startswith("1 1 0 "), run.stdout  # it failed, and so does the step
    assert "ERROR: AddressSanitizer: ILL" in run.stdout and re.search(r"#0 \S+ in main \S*wrong\.c:4\n", run.stdout)

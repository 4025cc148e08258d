"""The front door: set-up, counting of tests, make run, installation."""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import stat
import subprocess

import pytest

from conftest import ROOT, clean_environment, gua

pytestmark = pytest.mark.any_build


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


# tools/setup

TOOLS = ("cc meson ninja pkg-config scdoc ccache clang-format cppcheck readelf sqlite3 chromium chromedriver openssl prometheus "
         "victoria-metrics jupyter-notebook podman crun kubectl git tmux zsh fish abidiff").split()


@pytest.fixture
def machine(tmp_path):
    """A PATH of its own in which every tool of the set-up table is there; apt-get only writes down
    what it was asked for, and makes cppcheck appear."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in ["sh", "mktemp", "rm", "cat", "env", "touch", "chmod"]:
        (path / name).symlink_to(shutil.which(name))
    for name in TOOLS:
        script(path / name, "exit 0")
    script(path / "id", "echo 0")
    script(path / "apt-get", f'echo "$@" >>{tmp_path}/asked\n'
           f'case "$*" in *install*) touch {path}/cppcheck; chmod +x {path}/cppcheck;; esac')
    return path


def set_up(machine, *args):
    run = subprocess.run(["/bin/sh", ROOT / "tools" / "setup", *args], capture_output=True, text=True,
                         env={"PATH": str(machine)})
    asked = machine.parent / "asked"
    return run, asked.read_text().splitlines() if asked.exists() else []


def test_setup_is_quiet_when_all_is_there(machine):
    run, asked = set_up(machine, "test")
    assert (run.returncode, run.stdout, run.stderr, asked) == (0, "", "", [])


def test_setup_installs_the_fuzzer_only_for_fuzzing(machine):
    assert set_up(machine, "test")[1] == []
    assert set_up(machine, "fuzz")[1] == ["-q update", "-q -y --no-install-recommends install clang"]


def test_setup_installs_only_what_is_missing(machine):
    (machine / "cppcheck").unlink()
    run, asked = set_up(machine, "test")
    assert run.returncode == 0 and run.stderr == "Installing cppcheck: this may take a minute or two\n"
    assert asked == ["-q update", "-q -y --no-install-recommends install cppcheck"]


def test_setup_for_building_wants_no_test_tools(machine):
    (machine / "cppcheck").unlink()
    assert set_up(machine, "build")[0].returncode == 0
    (machine / "meson").unlink()
    run, asked = set_up(machine, "--check", "build")
    assert run.returncode == 1 and asked == []
    assert "missing: meson\n" in run.stderr and "apt-get install meson\n" in run.stderr


def test_setup_reads_the_lists_of_packages_only_if_it_must(machine):
    (machine / "cppcheck").unlink()
    script(machine / "apt-cache", "exit 0")
    assert set_up(machine, "test")[1] == ["-q -y --no-install-recommends install cppcheck"]


def test_setup_reads_old_lists_of_packages_again(machine):
    """What they name is gone from the mirror."""
    (machine / "cppcheck").unlink()
    script(machine / "apt-cache", "exit 0")
    asked, install = machine.parent / "asked", (machine / "apt-get").read_text()
    (machine / "apt-get").write_text(f'{install}\n[ "$2" = update ] || grep -q update {asked} || exit 100\n')
    (machine / "grep").symlink_to(shutil.which("grep"))
    run, asked = set_up(machine, "test")
    assert run.returncode == 0
    assert asked == ["-q -y --no-install-recommends install cppcheck", "-q update",
                     "-q -y --no-install-recommends install cppcheck"]


def test_setup_says_when_installing_did_not_help(machine):
    (machine / "meson").unlink()
    run, _ = set_up(machine, "build")
    assert run.returncode == 1 and "still not found: meson" in run.stderr


def test_setup_on_another_distribution_names_the_packages(machine):
    for name in ("cppcheck", "scdoc", "apt-get"):
        (machine / name).unlink()
    run, _ = set_up(machine)
    assert run.returncode == 1
    assert run.stderr == "This is not Debian: install what Debian calls scdoc cppcheck, then try again.\n"


def test_setup_without_root_and_sudo_says_what_to_run(machine):
    (machine / "cppcheck").unlink()
    script(machine / "id", "echo 1000")
    run, asked = set_up(machine)
    assert run.returncode == 1 and asked == []
    assert run.stderr == "As root, run: apt-get install cppcheck\n"


def test_setup_uses_sudo(machine):
    (machine / "cppcheck").unlink()
    script(machine / "id", "echo 1000")
    script(machine / "sudo", f'echo sudo >>{machine.parent}/asked; "$@"')
    run, asked = set_up(machine)
    assert run.returncode == 0 and asked[:2] == ["sudo", "-q update"]


def test_make_says_what_is_missing(machine, tmp_path):
    tree = tmp_path / "tree"
    (tree / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tree)
    shutil.copy(ROOT / "tools" / "setup", tree / "tools")
    (machine / "make").symlink_to(shutil.which("make"))
    (machine / "meson").unlink()
    run = subprocess.run(["make", "SHELL=/bin/sh"], cwd=tree, capture_output=True, text=True,
                         env={"PATH": str(machine)})
    assert run.returncode == 2
    assert "missing: meson" in run.stderr and "apt-get install meson" in run.stderr


# tools/test

def counter():
    """junit() of tools/test, which is a program without the name of a module."""
    loader = importlib.machinery.SourceFileLoader("tools_test", str(ROOT / "tools" / "test"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tools_test", loader))
    loader.exec_module(module)
    return module.junit


@pytest.mark.parametrize("cases, status, counted", [
    ("<testcase/><testcase/>", 0, (2, 0, 0)),
    ("<testcase/><testcase><failure/></testcase>", 1, (1, 1, 0)),
    ("<testcase/><testcase><error/></testcase>", 1, (1, 1, 0)),
    ("<testcase/><testcase><skipped/></testcase>", 0, (1, 0, 1)),
    ("<testcase/>", 139, (1, 1, 0)),  # crashed after what it wrote
    ("", 0, (0, 1, 0)),  # ran nothing
])
def test_counting_is_honest(tmp_path, cases, status, counted):
    path = tmp_path / "junit.xml"
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    result = subprocess.CompletedProcess([], status, stdout="")
    assert counter()(path, result)[:3] == counted


def test_a_runner_without_a_result_has_failed(tmp_path):
    result = subprocess.CompletedProcess([], 0, stdout="")
    assert counter()(tmp_path / "none.xml", result)[:3] == (0, 1, 0)
    (tmp_path / "half.xml").write_text("<testsuites><testcase/>")
    assert counter()(tmp_path / "half.xml", result)[:3] == (0, 1, 0)


# make run

def run_script(tmp_path, driver_answers):
    fake = tmp_path / "gua"
    script(fake, f"""case "$*" in
daemon*--once*) {'exit 0' if driver_answers else 'echo "gua daemon: no driver" >&2; exit 1'} ;;
*) echo "gua $1" ;;
esac""")
    run = subprocess.run([ROOT / "tools" / "run", fake], capture_output=True, text=True,
                         env=clean_environment(TMPDIR=str(tmp_path)))
    assert run.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gua"], "left something behind"
    return run.stdout.splitlines()


def test_run_says_first_what_it_records(tmp_path):
    real = run_script(tmp_path, True)
    assert real[0].startswith("Recording this host's cards") and real[1:] == ["gua daemon", "gua report"]
    simulated = run_script(tmp_path, False)
    assert simulated[0].startswith("SIMULATED:") and simulated[1:] == ["gua demo"]


def fake_ninja(tmp_path, failing):
    script(tmp_path / "ninja", """echo "ninja: Entering directory 'build'"
for i in 1 2 3 4 5 6 7 8 9 10; do
	eval "echo \\"$(echo "$NINJA_STATUS" | sed "s/%f/$i/; s/%t/10/")Compiling\\""
done
""" + ("echo FAILED: main.c.o; exit 3" if failing else ""))
    return {"PATH": f"{tmp_path}:/usr/bin:/bin"}


@pytest.mark.parametrize("failing", [False, True])
def test_building_shows_how_far_it_is(tmp_path, failing):
    run = subprocess.run([ROOT / "tools" / "build", "build", "gua"], capture_output=True, text=True,
                         env=fake_ninja(tmp_path, failing), timeout=60)
    assert run.returncode == (3 if failing else 0)
    shown = "".join(f"building {n} of 10\n" for n in (2, 4, 6, 8, 10))
    assert (run.stdout, run.stderr) == ("", shown + "FAILED: main.c.o\n" * failing)


def test_building_shows_a_terminal_every_step(tmp_path):
    ours, theirs = os.openpty()
    run = subprocess.run([ROOT / "tools" / "build", "build", "gua"], stdout=theirs, stderr=theirs,
                         env=fake_ninja(tmp_path, False), timeout=60)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)
    assert run.returncode == 0 and "building 3 of 10: Compiling" in shown


def test_run_says_what_it_does_meanwhile():
    run = subprocess.run(["make", "-n", "-C", ROOT, "run"], capture_output=True, text=True, env=clean_environment())
    assert run.returncode == 0 and "Building gua" in run.stdout and "tools/build build gua\n" in run.stdout


# make release

STUBS = """dist:
	@mkdir -p build && echo source >build/gua-1.2.3.tar.xz
wheel:
	@mkdir -p build/wheel && echo wheel >build/wheel/gua-1.2.3.whl
deb:
	@mkdir -p build-deb/gua/DEBIAN build-deb/gua/usr/bin && echo program >build-deb/gua/usr/bin/gua
	@printf 'Package: gua\\nVersion: 1.2.3\\nArchitecture: all\\nMaintainer: m <m@example.org>\\nDescription: d\\n' >build-deb/gua/DEBIAN/control
	@dpkg-deb --build build-deb/gua build-deb/gua_1.2.3.deb
rpm:
	@mkdir -p build-rpm && echo rpm >build-rpm/gua-1.2.3.rpm
dist-bin:
	@mkdir -p build-bin/gua-1.2.3-linux-any/share/doc/gua && echo bill >build-bin/gua-1.2.3-linux-any/share/doc/gua/gua.spdx.json
	@tar -C build-bin -cJf build-bin/gua-1.2.3-linux-any.tar.xz gua-1.2.3-linux-any
"""


@pytest.fixture
def release(tmp_path):
    """release(): runs tools/release in a repository of its own, in which every step only writes a file; `.tree` is that
    repository, and `.commit(PATH, TEXT)` changes it."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    tree = tmp_path / "tree"
    environment = clean_environment(HOME=str(tmp_path), GIT_CONFIG_NOSYSTEM="1")

    def git(*words):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words], cwd=tree, env=environment, check=True,
                       capture_output=True)

    def commit(path, text):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", path)

    def run(*words):
        return subprocess.run([tree / "tools" / "release", *words], cwd=tmp_path, capture_output=True, text=True, env=environment,
                              timeout=120)
    (tree / "tools").mkdir(parents=True)
    git("init", "-q")
    shutil.copy(ROOT / "tools" / "release", tree / "tools")
    script(tree / "tools" / "sbom", 'cat "$1/usr/bin/gua" >"$2"')
    commit(".gitignore", "/build/\n__pycache__/\n")
    commit("meson.build", "project('gua', 'c',\n  version: '1.2.3',\n)\n")
    commit("tests/cli/test_install.py", "def test_all_say_the_same_version():\n    pass\n")
    commit("Makefile", STUBS)
    commit("CHANGELOG.md", "# Changelog\n\n## [1.2.3] - 2026-11-19\n\n## [1.2.2] - 2026-11-01\n")
    run.tree, run.commit, run.git = tree, commit, git
    return run


def test_a_release_is_made_of_what_is_committed(release):
    done = release()
    assert done.returncode == 0, done.stderr
    made = release.tree / "build" / "release"
    assert sorted(path.name for path in made.iterdir()) == [
        "SHA256SUMS", "gua-1.2.3-debian.spdx.json", "gua-1.2.3-linux-any.spdx.json", "gua-1.2.3-linux-any.tar.xz", "gua-1.2.3.rpm",
        "gua-1.2.3.tar.xz", "gua-1.2.3.whl", "gua_1.2.3.deb"]
    assert (made / "gua-1.2.3-debian.spdx.json").read_text() == "program\n"
    assert (made / "gua-1.2.3-linux-any.spdx.json").read_text() == "bill\n"
    check = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=made, capture_output=True, text=True, check=True)
    assert check.stdout.count(": OK") == 7
    assert [path.name for path in (release.tree / "build").iterdir()] == ["release"], "left something behind"


def test_a_release_replaces_no_folder_that_is_named(release, tmp_path):
    (tmp_path / "mine").mkdir()
    done = release("mine")
    assert done.returncode == 1 and f"{tmp_path}/mine is there already" in done.stderr
    assert (tmp_path / "mine").exists()
    assert release("new").returncode == 0 and (tmp_path / "new" / "SHA256SUMS").exists()


@pytest.mark.parametrize("path, text, why", [
    ("CHANGELOG.md", "# Changelog\n\n## [Unreleased]: 1.2.3\n", "that must be '## [1.2.3] - YEAR-MONTH-DAY'"),
    ("CHANGELOG.md", "# Changelog\n\n## [1.2.2] - 2026-11-19\n", "that must be '## [1.2.3] - YEAR-MONTH-DAY'"),
    ("tests/cli/test_install.py", "def test_all_say_the_same_version():\n    assert 0, 'differs'\n", "differs"),
    ("Makefile", STUBS.replace("rpm:\n", "rpm:\n\t@echo no compiler; false\n"), "no compiler"),
    ("Makefile", STUBS.replace("wheel:\n", "wheel:\n\t@true\nother:\n"), "'build/wheel/*.whl'"),
])
def test_a_release_that_fails_leaves_nothing_to_publish(release, path, text, why):
    release.commit(path, text)
    old = release.tree / "build" / "release" / "old"
    old.parent.mkdir(parents=True)
    old.touch()
    done = release()
    assert done.returncode != 0 and why in done.stderr, done.stderr
    assert old.exists() == (path == "CHANGELOG.md"), "what was there before is gone once something is made"
    assert not old.with_name("SHA256SUMS").exists()


@pytest.mark.parametrize("spoil, why", [
    (lambda release: (release.tree / "Makefile").write_text("all:\n"), " M Makefile"),
    (lambda release: (release.tree / "new.c").touch(), "?? new.c"),
    (lambda release: [release.git("tag", "v1.2.3"), release.commit("README.md", "later\n")], "names another commit"),
])
def test_a_release_is_refused_from_a_tree_that_is_not_it(release, spoil, why):
    spoil(release)
    done = release()
    assert done.returncode == 1 and why in done.stderr, done.stderr
    assert not (release.tree / "build").exists()


# What is installed

def test_install_puts_everything_in_its_place(installed):
    names = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if not path.is_dir()}
    library = next(name for name in names if name.endswith("/libgua.so.0")).rsplit("/", 1)[0]
    assert {"bin/gua", "bin/gpu-usage-audit", "include/gua.h", f"{library}/libgua.so",
            f"{library}/pkgconfig/libgua.pc", "lib/systemd/system/gua.service", "lib/sysusers.d/gua.conf",
            "share/man/man1/gua.1", "share/man/man3/libgua.3", "share/doc/gua/README.md"} <= names
    assert os.readlink(installed / "bin" / "gpu-usage-audit") == "gua"
    run = gua("version", binary=installed / "bin" / "gpu-usage-audit")
    assert run.returncode == 0 and run.stdout.startswith("gua ")


@pytest.mark.parametrize("uid, destdir, called", [(0, "", True), (0, "/somewhere", False), (1000, "", False)])
def test_install_makes_the_library_known_to_the_linker(tmp_path, uid, destdir, called):
    script(tmp_path / "id", f"echo {uid}")
    script(tmp_path / "ldconfig", f"touch {tmp_path}/called")
    run = subprocess.run(["/bin/sh", ROOT / "dist" / "after-install"], capture_output=True, text=True,
                         env={"PATH": f"{tmp_path}:/usr/bin:/bin", "DESTDIR": destdir})
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert (tmp_path / "called").exists() == called


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_finds_its_completion(installed, tmp_path):
    """Where fish looks when nothing of the environment leads it."""
    paths = subprocess.run(["fish", "-c", "printf '%s\\n' $fish_complete_path"], capture_output=True, text=True,
                           env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, check=True).stdout.split()
    root = installed.parents[1]  # DESTDIR; the prefix is /usr/local
    assert any(os.path.lexists(root / path.lstrip("/") / "gua.fish") for path in paths), paths


def test_the_service_starts_the_installed_program(installed):
    unit = (installed / "lib" / "systemd" / "system" / "gua.service").read_text()
    start = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    program = pathlib.PurePath(start.split("=", 1)[1].split()[0])
    assert "@" not in unit.replace("@system-service", "").replace("@privileged", "").replace("@resources", "")
    assert program.is_absolute() and program.name == "gua"

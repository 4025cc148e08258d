"""Installing from the tree and removing it again, and what the packages of Debian are made of."""
import hashlib
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT

pytestmark = pytest.mark.any_build


@pytest.fixture
def tools(tmp_path):
    """tools(NAME, *ARGS, DESTDIR=...): a script of tools/, on a build directory of its own, without the list of what
    was installed from the real one: the test must not remove that."""
    build = tmp_path / "build"
    left_out = shutil.ignore_patterns("*.o", "*.p", "tests", "bench", "installed")
    shutil.copytree(BUILD, build, symlinks=True, ignore=left_out)

    def run(name, *args, **env):
        return subprocess.run([ROOT / "tools" / name, build, *args], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **env})
    return run


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_what_was_installed_is_removed_again(tools, tmp_path):
    """All of it, also after a second time, and nothing else."""
    into = tmp_path / "into"
    kept = into / "usr" / "local" / "bin" / "other"
    kept.parent.mkdir(parents=True)
    kept.write_text("somebody's own\n")
    before = tree(into)
    for _ in range(2):
        done = tools("install", "/usr/local", DESTDIR=str(into))
        assert done.returncode == 0, done.stderr
        assert f"Installed below {into}/usr/local" in done.stdout and "Next:" not in done.stdout
    installed = tree(into)
    outside = {path for path in installed if not path.startswith("usr/local") and (into / path).is_symlink()}
    assert outside == set(re.findall(rf"(?m)^  and +{into}/(.*)$", done.stdout))
    for name in ("bin/gua", "bin/gpu-tracker", "lib/libgua.so.0", "lib/systemd/system/gua.service",
                 "share/man/man1/gua.1", "share/man/man1/gpu-tracker.1"):
        assert f"usr/local/{name}" in installed
    done = tools("uninstall")
    assert done.returncode == 0 and "/var/lib/gua" in done.stdout, done.stderr
    assert tree(into) == before
    done = tools("uninstall")
    assert done.returncode == 1 and "make install" in done.stderr


def test_only_the_prefix_that_is_named_is_removed(tools, tmp_path):
    """make uninstall PREFIX=/other removed what was installed elsewhere."""
    roots = [str(tmp_path / name) for name in ("one", "two")]
    for root in roots:
        assert tools("install", "/usr/local", DESTDIR=root).returncode == 0
    before = tree(tmp_path / "one")
    done = tools("uninstall", "/opt/other")
    assert done.returncode == 1 and "Nothing was installed below /opt/other" in done.stderr
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == before
    done = tools("uninstall", "/usr/local/", DESTDIR=roots[1])
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "one") == before and not any(path.startswith("usr/local/") for path in tree(tmp_path / "two"))
    assert tools("uninstall", "/usr/local", DESTDIR=roots[0]).returncode == 0
    assert tree(tmp_path / "one") == []
    # The rest of the list: what is outside of the prefix.
    tools("uninstall")
    assert not any((tmp_path / "two" / path).is_symlink() for path in tree(tmp_path / "two"))


def installed_places():
    """Where everything that is installed is in a package: below usr, whatever the prefix, the library and the Python."""
    done = subprocess.run(["meson", "introspect", "--installed", BUILD], capture_output=True, text=True, check=True)
    options = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], capture_output=True, text=True, check=True)
    prefix = re.search(r'"name": "prefix", "value": "([^"]*)"', options.stdout).group(1)
    for path in re.findall(r': "([^"]*)"', done.stdout):
        if path.startswith(prefix + "/"):  # others are links for a prefix that is not a package's
            place = "usr/" + path[len(prefix) + 1:]
            place = re.sub(r"^usr/lib/(libgua|pkgconfig)", r"usr/lib/any/\1", place)
            yield re.sub(r"python3\.\d+", "python3", place)


def test_every_file_is_in_one_package():
    """dh_missing would say what is in none only when a package is built, and dpkg what is in two when both are installed."""
    lists = {name.stem: [line.split()[0] for line in name.read_text().splitlines()] for name in ROOT.glob("debian/*.install")}
    lists["not installed"] = (ROOT / "debian" / "not-installed").read_text().split()
    for place in installed_places():
        found = [package for package, wanted in lists.items()
                 if any(re.match(w.replace(".", r"\.").replace("*", "[^/]*") + "(/|$)", place) for w in wanted)]
        assert len(found) == 1, f"{place} is in {found or 'no package'}"


def test_the_library_exports_what_the_symbols_file_says():
    named = {line.split("@")[0].strip() for line in (ROOT / "debian" / "libgua0.symbols").read_text().splitlines()[1:]}
    listed = subprocess.run(["readelf", "-W", "--dyn-syms", BUILD / "libgua.so.0"], capture_output=True, text=True,
                            check=True).stdout
    exported = set(re.findall(r"\b(gua_\w+|GUA_\d+)@@GUA_\d+", listed)) | set(re.findall(r"ABS (GUA_\d+)", listed))
    assert {name for name in named if name.startswith("gua_")} == {name for name in exported if name.startswith("gua_")}


def test_all_say_the_same_version():
    meson = re.search(r"version: '([^']*)'", (ROOT / "meson.build").read_text()).group(1)
    for name, pattern in (("debian/changelog", r"\Agua \(([^)-]*)"), ("dist/gua.spec", r"(?m)^Version: +(\S+)"),
                          ("dist/gua.spec", r"(?m)^\* .* - ([0-9.]+)-1$"), ("CITATION.cff", r"(?m)^version: (\S+)"),
                          ("CHANGELOG.md", r"(?m)^## \[.*?(\d+\.\d+\.\d+)")):
        assert re.search(pattern, (ROOT / name).read_text()).group(1) == meson, name


def test_the_rpm_packages_leave_out_nothing():
    """The same files as the packages of Debian, each in one package."""
    spec = (ROOT / "dist" / "gua.spec").read_text()
    macros = {"_bindir": "usr/bin", "_libexecdir": "usr/libexec", "_unitdir": "usr/lib/systemd/system", "_libdir": "usr/lib/any",
              "_sysusersdir": "usr/lib/sysusers.d", "_tmpfilesdir": "usr/lib/tmpfiles.d", "_datadir": "usr/share",
              "_mandir": "usr/share/man", "_docdir": "usr/share/doc", "_includedir": "usr/include",
              "python3_sitelib": "usr/lib/python3/dist-packages"}
    listed = re.findall(r"(?m)^%\{(\w+)\}(/\S+)$", spec[spec.index("\n%files\n"):])
    patterns = [re.escape(macros[macro] + rest).replace(r"\*", "[^/]*") + "(/|$)" for macro, rest in listed]
    unlisted = [place for place in installed_places() if not any(re.match(pattern, place) for pattern in patterns)]
    assert not unlisted


def test_reports_of_faults_are_asked_for_a_capture():
    for path in (ROOT / ".github").rglob("*.md"):
        assert "gua doctor --capture host.capture" in path.read_text(), path.name


@pytest.mark.skipif("'asan' in str(BUILD)", reason="what sanitizers link is not in a release")
def test_the_bill_of_materials(tmp_path):
    """Every program is in it with its digest, and everything that it is linked with."""
    made = tmp_path / "gua.spdx.json"
    done = subprocess.run([ROOT / "tools" / "sbom", BUILD, made], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    document = json.loads(made.read_text())
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    names = {entry["SPDXID"]: entry.get("fileName", entry["name"] if "name" in entry else "")
             for entry in document["packages"] + document["files"]}
    for entry in document["files"]:
        path = BUILD / entry["fileName"]
        digests = {digest["algorithm"]: digest["checksumValue"] for digest in entry["checksums"]}
        assert digests["SHA256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert {"./gua", "./gua-end", "./libgua.so.0"} <= set(names.values())
    links = {(names[row["spdxElementId"]], names[row["relatedSpdxElement"]])
             for row in document["relationships"] if row["relationshipType"] == "DYNAMIC_LINK"}
    assert ("./gua", "SQLite") in links and ("./gua-end", "SQLite") not in links
    assert {right for left, right in links if left == "./libgua.so.0"} == {"GNU C Library"}
    assert all(entry["versionInfo"] for entry in document["packages"])


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-sysusers"), reason="only root can make users")
def test_the_users_of_the_services_can_be_made(tmp_path):
    (tmp_path / "etc").mkdir()
    for name in ("gua", "gua-enforce", "gua-lease"):
        lines = [line for line in (ROOT / "dist" / f"{name}.sysusers").read_text().splitlines() if line[0] != "#"]
        done = subprocess.run(["systemd-sysusers", f"--root={tmp_path}", "--inline", *lines], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0 and "not a valid" not in done.stderr, done.stderr
    made = (tmp_path / "etc" / "passwd").read_text()
    assert re.findall(r"(?m)^(gua\S*?):", made) == ["gua", "gua-enforce", "gua-lease"]
    assert re.search(r"(?m)^gua:.*:gua-enforce,gua-lease$", (tmp_path / "etc" / "group").read_text())


def test_packages_make_users_before_the_directories_that_are_theirs():
    assert "execute_before_dh_installtmpfiles:\n\tdh_installsysusers\n" in (ROOT / "debian" / "rules").read_text()


@pytest.mark.skipif("'asan' in str(BUILD)", reason="sanitizers need more")
def test_what_the_programs_need_of_glibc_is_measured():
    check = [ROOT / "tools" / "glibc-needs", BUILD / "gua", BUILD / "libgua.so.0"]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert re.match(r"gua +glibc 2\.\d+ +\(.*\); libsqlite3\.so\.0, libjansson\.so\.4\nlibgua\.so\.0 +glibc ", done.stdout)
    done = subprocess.run([*check, "--most", "2.2.5"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "newer glibc than 2.2.5" in done.stderr

"""gua install and gua uninstall, on a system image: what they make, and that all of it goes away again."""
import os
import pathlib
import pty
import re
import subprocess

import pytest

from conftest import GUA, clean_environment

TOP = pathlib.Path(__file__).resolve().parents[2]
ACCOUNTS = {"passwd": "root:x:0:0:root:/root:/bin/bash\n", "group": "root:x:0:\n", "shadow": "root:*:1:0:9:7:::\n",
            "gshadow": "root:*::\n"}
# Whoever changes accounts leaves these.
BACKUPS = {f"etc/{name}-" for name in ACCOUNTS} | {"etc/.pwd.lock"}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make users, also in an image")


@pytest.fixture
def image(tmp_path):
    """A small system image, with the accounts that every system has."""
    root = tmp_path / "image"
    (root / "etc").mkdir(parents=True)
    (root / "var" / "lib").mkdir(parents=True)
    for name, text in ACCOUNTS.items():
        (root / "etc" / name).write_text(text)
    return root


def run(*args, stdin=subprocess.DEVNULL):
    return subprocess.run([GUA, *map(str, args)], stdin=stdin, capture_output=True, text=True, timeout=60,
                          env=clean_environment())


def ok(*args):
    done = run(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tree(root):
    """Every path below the root, and the content of the files."""
    found = {str(path.relative_to(root)): path.read_text() if path.is_file() else None for path in root.rglob("*")}
    return {path: text for path, text in found.items() if path not in BACKUPS}


def test_nothing_to_uninstall(image):
    for more in ((), ("--dry-run",), ("--purge", "--yes")):
        assert ok("uninstall", "--root", image, *more).startswith("Nothing to remove: 'gua install' has made no service")


def test_a_dry_run_does_nothing(image):
    before = tree(image)
    printed = ok("install", "--root", image, "--dry-run")
    assert all(line.startswith("would ") for line in printed.splitlines())
    for step in (f"write    {image}/etc/gua/gua.conf", f"write    {image}/etc/systemd/system/gua.service",
                 f"run      systemd-sysusers --root={image} gua.conf", f"systemctl --root={image} enable gua.service"):
        assert step in printed
    assert tree(image) == before


@as_root
def test_it_makes_the_service_and_removes_it_again(image):
    before = tree(image)
    ok("install", "--root", image)
    made = tree(image)
    assert re.search(r"^gua:x:\d+:\d+:GPU usage audit:/var/lib/gua:", made["etc/passwd"], re.MULTILINE)
    assert f"ExecStart={GUA} daemon --foreground" in made["etc/systemd/system/gua.service"]
    assert "@" not in re.sub("@system-service|@privileged|@resources", "", made["etc/systemd/system/gua.service"])
    assert (image / "etc/systemd/system/multi-user.target.wants/gua.service").is_symlink()
    assert made["etc/gua/gua.conf"] == ok("config", "--example")
    data = (image / "var/lib/gua").stat()
    assert (data.st_mode & 0o777, str(data.st_uid)) == (0o750, re.search(r"^gua:x:(\d+)", made["etc/passwd"],
                                                                        re.MULTILINE).group(1))
    again = ok("install", "--root", image)
    assert "write" not in again and "make " not in again
    assert tree(image) == made
    ok("uninstall", "--root", image)
    assert tree(image) == before


@as_root
def test_data_stays_until_it_is_purged(image):
    before = tree(image)
    ok("install", "--root", image)
    (image / "var/lib/gua/gua.db").write_text("recorded")
    printed = ok("uninstall", "--root", image)
    assert f"The data stays in {image}/var/lib/gua" in printed and "kept     user gua" in printed
    left = tree(image)
    assert set(left) - set(before) == {"var/lib/gua", "var/lib/gua/gua.db"}
    done = run("uninstall", "--root", image, "--purge")
    assert done.returncode == 2 and "add --yes" in done.stderr
    assert tree(image) == left
    ok("uninstall", "--root", image, "--purge", "--yes")
    assert tree(image) == before


@as_root
@pytest.mark.parametrize("answer, status", [("n", 1), ("", 1), ("y", 0)])
def test_purge_asks_on_a_terminal(image, answer, status):
    ok("install", "--root", image, "--no-start")
    (image / "var/lib/gua/gua.db").write_text("recorded")
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode() + b"\n")
    done = run("uninstall", "--root", image, "--purge", stdin=theirs)
    assert done.returncode == status, done.stderr
    assert "cannot be undone. [y/N]" in done.stdout
    assert (image / "var/lib/gua/gua.db").exists() == bool(status)
    os.close(ours)
    os.close(theirs)


@as_root
def test_what_others_made_or_changed_stays(image):
    (image / "etc/gua").mkdir()
    (image / "etc/gua/gua.conf").write_text("[record]\ninterval = 10s\n")
    (image / "usr/lib/systemd/system").mkdir(parents=True)
    (image / "usr/lib/systemd/system/gua.service").write_text("[Install]\nWantedBy=multi-user.target\n")
    before = tree(image)
    printed = ok("install", "--root", image)
    assert f"kept     {image}/etc/gua/gua.conf (it was there before)" in printed
    assert f"kept     {image}/usr/lib/systemd/system/gua.service (installed with the program)" in printed
    (image / "etc/tmpfiles.d/gua.conf").write_text("# the administrator's own\n")
    printed = ok("uninstall", "--root", image)
    assert f"kept     {image}/etc/tmpfiles.d/gua.conf (it was changed)" in printed
    after = tree(image)
    assert after.pop("etc/tmpfiles.d/gua.conf") == "# the administrator's own\n" and after.pop("etc/tmpfiles.d", 1) is None
    assert after == before


@as_root
def test_uninstall_also_disables_what_was_enabled_beside_the_recorder(image):
    units = image / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    (units / "gua-enforce.service").write_text("[Install]\nWantedBy=multi-user.target\n")
    (units / "gua-lease@.service").write_text("[Install]\nWantedBy=multi-user.target\n")
    (image / "usr/lib/sysusers.d").mkdir()
    (image / "usr/lib/sysusers.d/gua.conf").write_bytes((TOP / "dist/gua.sysusers").read_bytes())
    ok("install", "--root", image)
    assert not (image / "etc/sysusers.d").exists()
    subprocess.run(["systemctl", f"--root={image}", "enable", "gua-enforce", "gua-lease@slurm"], check=True,
                   capture_output=True)
    printed = ok("uninstall", "--root", image)
    assert "disable gua.service gua-enforce.service gua-lease@slurm.service" in printed
    assert not [path for path in image.rglob("*.wants/gua*")]


@as_root
def test_a_file_of_an_earlier_version_is_replaced(image):
    ok("install", "--root", image)
    unit = image / "etc/systemd/system/gua.service"
    now = unit.read_text()
    older = "# an older unit\n"
    total = 0xcbf29ce484222325
    for byte in older.encode():
        total = (total ^ byte) * 0x100000001b3 % 2**64
    listed = image / "etc/gua/installed"
    listed.write_text(re.sub(r"file \w+ (?=/etc/systemd)", f"file {total:x} ", listed.read_text()))
    unit.write_text(older)
    assert f"write    {unit}" in ok("install", "--root", image)
    assert unit.read_text() == now


@as_root
def test_a_list_cannot_name_other_files(image):
    ok("install", "--root", image)
    other = image / "etc" / "other"
    other.write_text("")
    listed = image / "etc/gua/installed"
    listed.write_text(listed.read_text() + "file cbf29ce484222325 /etc/other\nfile 0 /etc/passwd\ndirectory 0 /etc\n")
    ok("uninstall", "--root", image)
    assert other.exists() and (image / "etc/passwd").exists()


@as_root
def test_a_failed_step_can_be_undone(image):
    (image / "etc/systemd").mkdir()
    (image / "etc/systemd/system").write_text("a file where a directory should be")
    before = tree(image)
    done = run("install", "--root", image)
    assert done.returncode == 1 and "systemd/system" in done.stderr
    ok("uninstall", "--root", image)
    assert tree(image) == before


def test_wrong_use(image):
    assert run("install", "word").returncode == 2
    assert run("uninstall", "--root").returncode == 2
    done = run("uninstall", "--root", image)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_is_told_to_use_sudo(tmp_path):
    for command in ("install", "uninstall"):
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", GUA, command],
                              capture_output=True, text=True, timeout=60)
        nothing = command == "uninstall" and done.returncode == 0 and done.stdout.startswith("Nothing to remove")
        assert nothing or (done.returncode == 1 and f"sudo gua {command}" in done.stderr)

"""gua pick among users who do not trust each other: nobody blocks, misleads or robs another.

As root the other user is a real one; otherwise the same attacks come from the user's own processes, as far as the
kernel lets one attack oneself."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

import pytest

from conftest import GUA, clean_environment, wait_for
from test_pick import CARDS, UUIDS

ROOT = os.geteuid() == 0
ALICE, BOB = 54321, 54322  # users without names
needs_root = pytest.mark.skipif(not ROOT, reason="only root can be two users")
# Runs as somebody: opens or creates a file, locks it, says so, and keeps it.
LOCKER = """
import fcntl, os, sys, time
# fs.protected_regular denies O_CREAT for a file of another user that is there.
fd = os.open(sys.argv[1], os.O_RDONLY | (0 if os.path.exists(sys.argv[1]) else os.O_CREAT), 0o444)
fcntl.flock(fd, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(600)
"""


class Host:
    """A directory that all users may enter, with gua, a scenario and a directory of locks."""

    def __init__(self, path):
        self.path, self.locks, self.gua = path, path / "locks", path / "gua"
        shutil.copy(GUA, self.gua)
        (path / "cards").write_text(CARDS)
        self.locks.mkdir()
        self.locks.chmod(0o1777)

    def words(self, *args, lock_dir=True):
        return [str(word) for word in [
            self.gua, "pick", "--source", "sim", "--scenario", self.path / "cards", "--no-store",
            *(["--lock-dir", self.locks] if lock_dir else []), *args]]

    def pick(self, *args, user=None, lock_dir=True, **env):
        hold = [] if "--" in args else ["--hold", "0s"]
        return subprocess.run(self.words(*hold, *args, lock_dir=lock_dir), text=True, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, env=clean_environment(**env), **identity(user))

    @contextlib.contextmanager
    def running(self, words, user=None):
        """A process that says one line and stays."""
        process = subprocess.Popen([str(word) for word in words], text=True, stdout=subprocess.PIPE, cwd="/",
                                   stdin=subprocess.DEVNULL, env=clean_environment(), **identity(user))
        try:
            assert process.stdout.readline().strip()
            yield process
        finally:
            process.kill()
            process.communicate()

    def locking(self, name, user=None):
        return self.running(["/usr/bin/python3", "-c", LOCKER, self.locks / name], user)

    def command(self, *args, user=None):
        return self.running(self.words(*args, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 600"), user)


def identity(user):
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


@pytest.fixture
def host():
    with tempfile.TemporaryDirectory(prefix="gua-pick-", dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        yield Host(pathlib.Path(name))


# From oneself, and from another user, where that is possible.
others = pytest.mark.parametrize("attacker, victim", [
    pytest.param(None, None, id="own"), pytest.param(ALICE, BOB, id="other", marks=needs_root)])


def said(user):
    return "you" if user is None else f"uid:{user}"


@pytest.mark.waits
@others
def test_who_keeps_the_turn_is_named_and_left_behind(host, attacker, victim):
    with host.locking("choosing", attacker) as locker:
        run = host.pick("-i", "2", user=victim)
    assert (run.returncode, run.stdout) == (0, f"{UUIDS[2]}\n")
    assert re.fullmatch(rf'gua pick: {said(attacker)} \(pid {locker.pid}, python3[^)]*\) has kept the lock "choosing" '
                        r"for too long; choosing without it\n", run.stderr), run.stderr


def strange(kind, path):
    """Something that is called like a lock and is none."""
    if kind == "fifo":
        os.mkfifo(path, 0o666)
    elif kind == "link":
        target = path.parent.parent / "victim"
        target.write_text("precious")
        path.symlink_to(target)
    elif kind == "dangling":
        path.symlink_to(path.parent.parent / "nothing")
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "device":
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    else:
        path.touch()
        path.chmod(0)


KINDS = ["fifo", "link", "dangling", "directory", "socket", "unreadable",
         pytest.param("device", marks=needs_root)]


@pytest.mark.parametrize("name", [UUIDS[1], f"{UUIDS[1]}.{BOB}", "choosing", "waiting.7"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_strange_file_is_skipped(host, kind, name):
    victim = BOB if ROOT else None
    strange(kind, host.locks / name)
    run = host.pick("-i", "1", "--wait=1m", user=victim)
    assert (run.returncode, run.stdout) == (0, f"{UUIDS[1]}\n"), run.stderr
    why = "Permission denied" if kind == "unreadable" else "it is not a regular file"
    assert run.stderr == f"gua pick: the lock file {name} is skipped: {why}\n"
    assert not (host.path / "nothing").exists()
    if kind == "link":
        assert (host.path / "victim").read_text() == "precious"
    with host.command("-i", "1", user=victim):  # and the reservation holds all the same
        run = host.pick("-i", "1", user=victim)
        assert run.returncode == 1 and "1 reserved by another gua pick" in run.stderr


def test_thousands_of_strange_files_are_a_few_messages(host):
    for i in range(3000):
        (host.locks / f"{UUIDS[1]}.{i}").symlink_to("/")
    run = host.pick("-i", "1")
    assert run.stdout == f"{UUIDS[1]}\n" and run.stderr.count("is skipped") == 8
    assert len(run.stderr.splitlines()) == 9


@needs_root
def test_a_million_files_hide_only_their_owner(host):
    """Each takes time. Beyond some, those of one user are not looked at; a reservation of another user counts."""
    for i in range(500):
        (host.locks / f"{UUIDS[1]}.{BOB}.{i}").touch()  # under the name of another
        os.chown(host.locks / f"{UUIDS[1]}.{BOB}.{i}", ALICE, ALICE)
    run = host.pick("-i", "1", user=BOB)
    assert run.stdout == f"{UUIDS[1]}\n" and "is skipped: its owner has too many of them" in run.stderr
    with host.command("-i", "1", user=BOB):
        for user in (BOB, ALICE, ALICE + 2):
            run = host.pick("-i", "1", user=user)
            assert run.returncode == 1 and f"reserved by {'you' if user == BOB else said(BOB)}" in run.stderr, run.stderr


@pytest.fixture
def full(host):
    """The directory of the locks is full: whoever fills it cannot stop the others."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=3,mode=1777", "none", host.locks],
                      capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    with contextlib.suppress(OSError):
        for i in range(9):
            (host.locks / str(i)).touch()
    yield host
    subprocess.run(["umount", host.locks], check=True)


@pytest.mark.parametrize("words", [[], ["--wait=1m"], ["--format", "env"], ["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]],
                         ids=" ".join)
def test_a_full_directory_stops_nobody(full, words):
    run = full.pick("-i", "1", *words, user=BOB)
    assert run.returncode == 0 and run.stdout.endswith(f"{UUIDS[1]}\n")
    assert run.stderr == ("gua pick: cannot create a lock file: No space left on device; the cards are not reserved, and "
                          "other picks may choose them too\n")
    run = full.pick("-i", "1", "--min-free", "900G", "--wait=1ms", user=BOB)
    assert run.returncode == 1 and "waiting without a place in the queue" in run.stderr


@others
def test_who_reserves_is_named(host, attacker, victim):
    """To lock a card's file is to reserve the card. Whoever does so has a name and a pid."""
    with host.locking(f"{UUIDS[2]}.forged", attacker) as locker:
        run = host.pick("-i", "2", user=victim)
        assert (run.returncode, run.stdout) == (1, "")
        assert re.match(rf"gua pick: card 2 is reserved by {said(attacker)} \(pid {locker.pid}, python3[^)]*\)\n",
                        run.stderr), run.stderr
        run = host.pick("-i", "2", "--ignore-reservations", user=victim)
        assert run.returncode == (1 if attacker is None else 0)  # one's own reservations count
    assert host.pick("-i", "2", user=victim).returncode == 0


@needs_root
def test_who_locks_the_file_of_another_is_named(host):
    """Lock files are readable for all, so that all can see the locks. So anybody can lock them."""
    assert host.pick("-i", "2", user=BOB).returncode == 0
    with host.locking(f"{UUIDS[2]}.{BOB}", ALICE) as locker:
        run = host.pick("-i", "2", user=BOB)
        assert f"card 2 is reserved by uid:{ALICE} (pid {locker.pid}, " in run.stderr
        assert "; the lock file belongs to you)" in run.stderr
        assert host.pick("-i", "2", "--ignore-reservations", user=BOB).returncode == 0


@needs_root
def test_nobody_can_remove_the_reservation_of_another(host):
    """Not even who made the first file of the card."""
    for name in (UUIDS[2], f"{UUIDS[2]}.{ALICE}", f"{UUIDS[2]}.{BOB}"):
        subprocess.run(["touch", host.locks / name], check=True, **identity(ALICE))
    with host.command("-i", "2", user=BOB):
        subprocess.run(["sh", "-c", f"rm -f {host.locks}/*"], capture_output=True, **identity(ALICE))
        assert not (host.locks / UUIDS[2]).exists()
        run = host.pick("-i", "2", user=ALICE)
        assert run.returncode == 1 and f"card 2 is reserved by uid:{BOB} (pid " in run.stderr
    assert host.pick("-i", "2", user=ALICE).returncode == 0


def test_a_lock_on_a_removed_file_does_not_count(host):
    with host.locking(UUIDS[2]) as locker:
        assert host.pick("-i", "2").returncode == 1
        (host.locks / UUIDS[2]).unlink()
        assert host.pick("-i", "2").returncode == 0
        assert locker.poll() is None


@needs_root
def test_users_share_a_directory(host):
    with host.command("-i", "0", user=ALICE), host.command("-i", "1", user=BOB):
        run = host.pick("-n", "3")
        assert run.returncode == 1 and "2 free; 2 reserved by another gua pick" in run.stderr
        assert f"card 0 is reserved by uid:{ALICE} (pid " in run.stderr
        assert host.pick("-n", "4", "--ignore-reservations").returncode == 0


@pytest.mark.waits
def test_picks_without_a_turn_never_get_the_same_card(host):
    """Somebody keeps `choosing`, so that all choose at the same time."""
    users = [ALICE, BOB] if ROOT else [None]
    words = host.words("-i", "0", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 600")
    with host.locking("choosing"):
        running = [subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    stdin=subprocess.DEVNULL, env=clean_environment(), **identity(user))
                   for user in users * 4]
        try:
            assert sum(bool(process.stdout.readline()) for process in running) <= 1
        finally:
            for process in running:
                process.kill()
                process.communicate()


def place(host, mode=None, owner=None, user=None):
    """Makes ROOT/run/lock/gua, and picks with ROOT instead of the host's directories. Returns what was said, and
    where the lock is."""
    shared, private = host.path / "run/lock/gua", host.path / "tmp"
    (host.path / "proc").mkdir(exist_ok=True)
    shared.parent.mkdir(parents=True, exist_ok=True)
    private.mkdir(exist_ok=True)
    private.chmod(0o1777)
    if mode is not None:
        shared.mkdir(exist_ok=True)
        shared.chmod(mode)
        if owner is not None:
            os.chown(shared, owner, owner)
    run = host.pick("-i", "1", "--root", host.path, user=user, lock_dir=False)
    found = sorted(str(path.parent.relative_to(host.path)) for path in host.path.rglob(f"{UUIDS[1]}*"))
    return run, found


@needs_root
@pytest.mark.parametrize("user", [None, BOB])
def test_the_shared_directory(host, user):
    run, found = place(host, 0o1777, 0, user)
    assert (run.returncode, run.stderr, found) == (0, "", ["run/lock/gua"])


@needs_root
def test_root_makes_the_shared_directory(host):
    run, found = place(host)
    assert (run.returncode, run.stderr, found) == (0, "", ["run/lock/gua"])
    assert (host.path / "run/lock/gua").stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize("mode, owner, why", [
    (None, None, "No such file or directory"),
    (0o1777, ALICE, "does not belong to root"),
    pytest.param(0o777, 0, "does not have mode 1777", marks=needs_root),
    pytest.param(0o755, 0, "does not have mode 1777", marks=needs_root),
])
def test_a_directory_that_cannot_be_trusted(host, mode, owner, why):
    """The locks are then in one of the user's own, and that is said."""
    user = BOB if ROOT else None
    run, found = place(host, mode, owner if ROOT else None, user)
    assert (run.returncode, found) == (0, [f"tmp/gua-pick-{user or os.getuid()}"])
    assert run.stderr.startswith("gua pick: picks of other users are not seen (") and why in run.stderr
    assert (host.path / found[0]).stat().st_mode & 0o7777 == 0o700
    runtime = host.path / "runtime"
    runtime.mkdir(mode=0o700)
    if user:
        os.chown(runtime, user, user)
    run = host.pick("-i", "2", "--root", host.path, user=user, lock_dir=False, XDG_RUNTIME_DIR=str(runtime))
    assert run.returncode == 0 and list((runtime / "gua/pick").glob(f"{UUIDS[2]}*"))


@pytest.mark.parametrize("kind", ["link", "open", pytest.param("foreign", marks=needs_root)])
def test_a_private_directory_that_is_not(host, kind):
    user = BOB if ROOT else None
    uid = user or os.getuid()
    private = host.path / "tmp" / f"gua-pick-{uid}"
    private.parent.mkdir()
    if kind == "link":
        (host.path / "elsewhere").mkdir()
        os.chown(host.path / "elsewhere", uid, uid if ROOT else -1)
        private.symlink_to(host.path / "elsewhere")
    else:
        private.mkdir()
        os.chown(private, uid if kind == "open" else ALICE, -1)
        private.chmod(0o777)
    run, found = place(host, user=user)
    assert (run.returncode, run.stdout, found) == (0, f"{UUIDS[1]}\n", []), run.stderr
    assert run.stderr.startswith("gua pick: the cards are not reserved") and "--lock-dir" in run.stderr


@needs_root
def test_a_named_directory_of_another_user(host):
    os.chown(host.locks, ALICE, ALICE)
    run = host.pick("-i", "1", user=BOB)
    assert run.returncode == 0 and f"belongs to uid {ALICE}, who can remove" in run.stderr


@others
def test_a_stopped_pick_holds_nobody_up(host, attacker, victim):
    """It has a ticket, a file or the turn, and does nothing."""
    busy = subprocess.Popen(host.words("-n", "4", "--min-free", "200G", "--wait"), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, env=clean_environment(), **identity(attacker))
    try:
        wait_for(lambda: list(host.locks.glob("waiting.*")))
        busy.send_signal(signal.SIGSTOP)
        assert host.pick("-i", "2", "--wait=1m", user=victim).stdout == f"{UUIDS[2]}\n"
    finally:
        busy.kill()
        busy.wait()

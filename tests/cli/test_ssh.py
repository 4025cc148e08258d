"""gua report --ssh: what hosts send is reported as their own stores would be, and no host can spoil it. `ssh` is a
script in PATH that plays the hosts."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess

import jsonschema
import pytest

from conftest import BUILD, GUA, ROOT, clean_environment, gua, wait_for

pytestmark = pytest.mark.skipif(not (BUILD / "gua-fleet").exists(), reason="built without libcurl")

SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())
NOW = 1794182400  # when the demo ends
SSH = r"""#!/bin/sh
# Plays ssh: the hosts that have a store run their command here; the others are in trouble.
echo "$@" >> "$PLAY/calls"
while [ "$1" != -- ]; do
	shift
done
host=${2#*@}
shift 3
case $host in
hang) echo $$ > "$PLAY/pid"; exec sleep 1000 ;;
refused) echo "$host: Permission denied (publickey,password)." >&2; exit 255 ;;
stranger) echo "Host key verification failed." >&2; exit 255 ;;
unknown) printf 'ssh: Could not resolve hostname unknown: Name or service not known\r\n' >&2; exit 255 ;;
absent) echo "sh: 1: gua: not found" >&2; exit 127 ;;
older) echo "gua export: --format store is not known" >&2; exit 2 ;;
empty) exit 0 ;;
banner) echo "Welcome!"; exec "$GUA_HERE" "$@" --db "$PLAY/one.db" ;;
garbage) printf '\033[2Jno store'; exit 0 ;;
endless) head -c 2M /dev/zero | dd bs=1M seek=255 conv=notrunc iflag=fullblock; exit 0 ;;
half) "$GUA_HERE" "$@" --db "$PLAY/one.db" | head -c 100000; exit 0 ;;
broken) "$GUA_HERE" "$@" --db "$PLAY/one.db" | head -c 100000; exit 255 ;;
newer) cat "$PLAY/newer.db" ;;
password) echo "Password:" >&2; read -r answer < /dev/tty || echo "no terminal" >&2; exit 255 ;;
*) exec "$GUA_HERE" "$@" --db "$PLAY/$host.db" ;;
esac
"""


def rename(db, host):
    """Makes the store that of another host."""
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE host SET hostname = ?, machine_id = ?", (host, host))
        connection.execute("UPDATE gpu SET uuid = uuid || ?", (host,))
        connection.execute("UPDATE process SET user = user || 2 WHERE id % 3 = 0")
    connection.close()


@pytest.fixture(scope="module")
def play(tmp_path_factory, demo):
    """A directory with the stores of the hosts one, two and three, and `ssh`."""
    where = tmp_path_factory.mktemp("hosts")
    shutil.copyfile(demo.db, where / "one.db")
    for name in ("two", "three", "newer"):
        with sqlite3.connect(where / "one.db") as source, sqlite3.connect(where / f"{name}.db") as copy:
            source.backup(copy)
        copy.close()
        source.close()
        rename(where / f"{name}.db", name)
    (where / "alias.db").symlink_to(where / "one.db")
    newer = sqlite3.connect(where / "newer.db")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    (where / "bin").mkdir()
    (where / "bin/ssh").write_text(SSH)
    (where / "bin/ssh").chmod(0o755)
    (where / "tmp").mkdir()
    return where


def environment(play):
    return {"PATH": f"{play}/bin:{os.environ['PATH']}", "PLAY": str(play), "GUA_HERE": str(GUA), "TMPDIR": f"{play}/tmp"}


def report(play, hosts, *args, since="3d"):
    (play / "list").write_text(hosts)
    run = gua("report", "--ssh", play / "list", "--since", since, "--now", f"@{NOW}", "--utc", *args,
              env=environment(play))
    assert not list((play / "tmp").iterdir())  # nothing is left behind
    return run


def own(play, *args, since="3d", hosts=("one", "two", "three")):
    stores = [word for host in hosts for word in ("--db", play / f"{host}.db")]
    return gua("report", *stores, "--since", since, "--now", f"@{NOW}", "--utc", *args)


@pytest.mark.same_path
@pytest.mark.parametrize("since,args", [("1h", []), ("26h", ["--by", "process"]), ("3d", ["--compare"]), ("2026-11-01", []),
                                        ("lastweek", ["--by", "user,host", "--compare"]), ("90d", ["--by", "model"])])
def test_the_same_numbers_as_the_stores(play, since, args):
    run = report(play, "# the lab\none\n\ttwo  # new\r\n\nops@three\n", "--json", *args, since=since)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    found = json.loads(run.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert found.pop("ssh") == {"hosts_asked": 3, "hosts_answered": 3, "failed": []}
    assert found == json.loads(own(play, "--json", *args, since=since).stdout)


@pytest.mark.parametrize("change", ["started_ms = started_ms + 1", "version = 'of another user'"])
def test_a_host_that_sends_what_another_has_sent(play, change):
    """By mistake (two users of a host record its cards) or with intent: it is left out and named, whatever its first
    run says, and the others are reported."""
    copy = play / "copy.db"
    with sqlite3.connect(play / "one.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        target.execute(f"UPDATE run SET {change}")
        target.execute("INSERT INTO run SELECT 99, host, version, source, boot_id, 1000, 2000, 2000, 'stopped', interval_ms,"
                       " drain_ms, active_util_pct, held_mem_bytes, count_graphics, 0, 'normal', 300000, 0 FROM run WHERE id = 1")
    source.close()
    target.close()
    run = report(play, "one\ntwo\ncopy\n", "--json", "--compare")
    assert run.returncode == 1, run.stderr
    found = json.loads(run.stdout)
    found.pop("ssh")
    why, = found.pop("stores")["not_read"]
    assert why.startswith("one.store and copy.store both ") and str(play) not in run.stdout + run.stderr
    assert found == json.loads(own(play, "--json", "--compare", hosts=("one", "two")).stdout)


def test_other_formats(play):
    for args in (["--format", "html"], ["--format", "csv", "--table", "timeline"], ["--digest"]):
        assert report(play, "one\ntwo\nthree\n", *args, since="lastweek").stdout.splitlines()[:20] == \
            own(play, *args, since="lastweek").stdout.splitlines()[:20]


def test_hosts_in_trouble_are_named(play):
    trouble = "refused stranger unknown absent older empty banner garbage endless half broken newer password".split()
    run = report(play, "\n".join(["one", *trouble, "two"]) + "\n", "--json")
    assert run.returncode == 1
    found = json.loads(run.stdout)
    assert len(found["hosts"]) == 2
    assert found["ssh"]["hosts_answered"] == 2
    reasons = {failed["host"]: failed["reason"] for failed in found["ssh"]["failed"]}
    assert list(reasons) == trouble
    for host, words in {
            "refused": "ssh failed: refused: Permission denied (publickey,password); gua never asks for a password: "
                       "'ssh-copy-id refused' installs a key",
            "stranger": "run 'ssh stranger' once",
            "unknown": "ssh failed: Could not resolve hostname unknown: Name or service not known; try 'ssh unknown gua "
                       "version'",
            "absent": "gua is not installed there",
            "older": "install the version there that is here",
            "empty": "it sent nothing",
            "banner": "it sent something else than a store: Welcome!",
            "garbage": "it sent something else than a store: \\x1B[2Jno store",
            "endless": "it sent more than 256 MiB",
            "half": "what it sent cannot be read",
            "broken": "the connection broke",
            "newer": "what it sent cannot be read: its store has schema version 99",
            "password": "no terminal"}.items():
        assert words in reasons[host], (host, reasons[host])
        assert f"gua: {host}: {reasons[host]}\n" in run.stderr


def test_a_host_that_hangs(play):
    run = report(play, "hang\n", "--timeout", "500ms")
    assert run.returncode == 1 and "gua: hang: no answer within " in run.stderr and "or --timeout\n" in run.stderr
    assert run.stderr.endswith("gua report: none of the hosts could be read\n")
    # ssh is ended.
    wait_for(lambda: not pathlib.Path(f"/proc/{(play / 'pid').read_text().strip()}").exists())


def test_the_foot_names_them(play):
    run = report(play, "one\nrefused\n")
    text = " ".join(run.stdout.split())
    assert run.returncode == 1
    assert "Hosts asked by ssh: 2; 1 answered. Not in this report: refused (ssh failed:" in text


def test_no_host_is_counted_twice(play):
    run = report(play, "one\nalias\none\ntwo\nroot@one\nthree\n", "--json")
    assert run.returncode == 0
    assert run.stderr == ("gua: one is in the list twice and is asked once\n"
                          "gua: alias: it is the same host as one and is counted once\n"
                          "gua: root@one: it is the same host as one and is counted once\n")
    found = json.loads(run.stdout)
    assert found.pop("ssh") == {"hosts_asked": 5, "hosts_answered": 5, "failed": []}
    assert found == json.loads(own(play, "--json").stdout)


def test_nothing_but_hosts_reaches_ssh(play):
    for line in ("-oProxyCommand=id", "me@-x", "a b", "a;id", "$(id)", "a'b", "h\u00f6st", "@one", "me@", "x" * 300):
        (play / "calls").write_text("")
        run = report(play, f"one\n{line}\n")
        assert run.returncode == 2 and "--ssh: line 2: '" in run.stderr, line
        assert (play / "calls").read_text() == ""
    report(play, "ops@two\n", since="2h")
    assert (play / "calls").read_text().split() == (
        "-T -a -x -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ClearAllForwardings=yes -o "
        "PermitLocalCommand=no -o RemoteCommand=none -o LogLevel=ERROR -o Compression=yes -- ops@two gua export --format "
        f"store --since @{NOW - 7200} --until @{NOW}").split()


def test_wrong_use(play):
    (play / "none").write_text("# nobody\n")
    assert "--ssh: the list has no hosts" in gua("report", "--ssh", play / "none").stderr
    assert gua("report", "--ssh", play / "no-such-file").returncode == 1
    run = gua("report", "--ssh", play / "none", "--db", play / "one.db")
    assert run.returncode == 2 and "--from, --ssh and --db exclude each other" in run.stderr
    run = report(play, "refused\nabsent\n")
    assert run.returncode == 1 and run.stdout == ""
    run = gua("report", "--ssh", play / "list", env={"PATH": "/nonexistent", "TMPDIR": f"{play}/tmp"})
    assert run.returncode == 1 and "cannot run ssh: No such file or directory; install ssh on this host" in run.stderr
    run = subprocess.run([GUA, "report", "--ssh", "-", "--since", "1h", "--now", f"@{NOW}"], input="two\n", text=True,
                         capture_output=True, env=clean_environment(**environment(play)), timeout=60)
    assert run.returncode == 0 and "Hosts asked by ssh: 1; 1 answered." in run.stdout


@pytest.mark.waits
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_it_is_ended(play, number):
    (play / "list").write_text("hang\n")
    (play / "pid").unlink(missing_ok=True)
    run = subprocess.Popen([GUA, "report", "--ssh", play / "list", "--since", "1h", "--now", f"@{NOW}"],
                           env=clean_environment(**environment(play)), stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: (play / "pid").exists() and (play / "pid").read_text().strip())
        assert [path.stat().st_mode & 0o777 for path in (play / "tmp").iterdir()] == [0o700]
        run.send_signal(number)
        assert run.wait(30) == -number
    finally:
        run.kill()
        run.wait()
    wait_for(lambda: not list((play / "tmp").iterdir()))
    pid = int((play / "pid").read_text())
    wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists())


def test_export_of_a_store(play, tmp_path):
    """It has the window and nothing else of holders, and is a store for every command."""
    old = tmp_path / "old.db"
    with sqlite3.connect(old) as connection:
        connection.executescript((ROOT / "tests/stores/version-4.sql").read_text())
    connection.close()
    (tmp_path / "new.db").write_bytes(export("--db", old))
    last = int(rows(old, "SELECT max(last_tick_ms) FROM run") / 1000)
    args = ["--since", "30d", "--now", f"@{last}", "--json"]
    assert gua("report", "--db", tmp_path / "new.db", *args).stdout == gua("report", "--db", old, *args).stdout
    assert rows(tmp_path / "new.db", "PRAGMA user_version") == 5
    short = tmp_path / "short.db"
    short.write_bytes(export("--db", play / "one.db", "--since", f"@{NOW - 3600}", "--until", f"@{NOW}"))
    assert short.stat().st_size < (play / "one.db").stat().st_size / 4
    assert 0 < rows(short, "SELECT count(*) FROM process") < rows(play / "one.db", "SELECT count(*) FROM process")
    for table in ("total_user", "identity", "import"):
        assert rows(short, f"SELECT count(*) FROM {table}") == 0
    assert gua("events", "--db", short, "--since", "30d", "--now", f"@{NOW}").returncode == 0


def rows(db, sql):
    with sqlite3.connect(db) as connection:
        found = connection.execute(sql).fetchone()[0]
    connection.close()
    return found


def export(*args):
    run = subprocess.run([GUA, "export", "--format", "store", *args], env=clean_environment(), capture_output=True,
                         timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_export_of_a_store_wrongly(play, tmp_path):
    run = gua("export", "--format", "store", "--db", play / "one.db", "--what", "event")
    assert run.returncode == 2 and "--what does not go with --format store" in run.stderr
    run = gua("export", "--format", "store", "--db", play / "one.db", "--db", play / "two.db")
    assert run.returncode == 2 and "about one store" in run.stderr
    run = gua("export", "--format", "store", "--db", play / "one.db", env={"TMPDIR": "/dev/null/none"})
    assert run.returncode == 1 and "cannot make a temporary file in /dev/null/none" in run.stderr and not run.stdout

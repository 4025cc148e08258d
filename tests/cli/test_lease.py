"""gua lease: files of schedulers, written, listed and checked; and what gua doctor says about them."""
import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

from conftest import BUILD, GUA, ROOT, clean_environment, gua

A, B = (f"GPU-{letter * 8}-0000-0000-0000-000000000000" for letter in "ab")
NOW = "2026-11-18T10:00:00"
NOW_S = 1794996000


@pytest.fixture(scope="module", autouse=True)
def this_host():
    """This host without the cards that `gua pick` has reserved meanwhile, perhaps for another test."""
    with tempfile.TemporaryDirectory() as folder:
        lease.root = pathlib.Path(folder)
        lease.root.chmod(0o755)
        (lease.root / "proc").symlink_to("/proc")
        yield


def lease(place, *args, **options):
    root = [] if "--root" in args else ["--root", lease.root]
    return gua("lease", *args, "--leases", place, "--now", NOW, "--utc", *root, **options)


def listed(place, *args):
    return json.loads(lease(place, "list", "--json", *args).stdout)


@pytest.fixture
def host(tmp_path):
    """The tree of a host with two cards, whose minor numbers are in another order than their addresses."""
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/stat").write_text("cpu  1\nbtime 1700000000\n")
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("this-boot\n")
    for pci, uuid, minor in (("0000:17:00.0", A, 1), ("0000:65:00.0", B, 0)):
        folder = tmp_path / "proc/driver/nvidia/gpus" / pci
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"GPU UUID: \t {uuid}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n")
    return tmp_path


def test_add_list_end(tmp_path):
    place = tmp_path / "run" / "leases"
    none = lease(place, "list")
    assert (none.returncode, none.stdout) == (0, "no scheduler writes leases here\n")
    added = lease(place, "add", "--id", 4, "--user", "alice", "--uid", 1000, "--cards", f"{A},{B}", "--since", f"@{NOW_S - 60}",
                  "--until", f"@{NOW_S + 60}", "--name", 'a "b" # \x1b[1m', "--account", "vision", "--share", 2)
    assert (added.returncode, added.stdout, added.stderr) == (0, "", "")
    lease(place, "add", "--kind", "pod", "--id", "ns/p", "--user", "ns", "--cards", f"{A}::3", "--set", "leases.private=yes")
    # A job without a card, as a prolog passes it.
    assert lease(place, "add", "--id", 5, "--user", "bob", "--cards", "").returncode == 0
    found = listed(place)
    assert found["has_source"] and found["not_readable"] == 0
    assert found["leases"] == [
        {"kind": "slurm", "id": "4", "task": None, "sluid": None, "owner": "alice", "uid": 1000, "job_name": 'a "b" # \\x1B[1m', "account": "vision", "share": 2,
         "since": "2026-11-18T09:59:00Z", "until": "2026-11-18T10:01:00Z", "unknown_since": None, "cards": f"{A},{B}"},
        {"kind": "pod", "id": "ns/p", "task": None, "sluid": None, "owner": "ns", "uid": None, "job_name": None, "account": None, "share": 1,
         "since": "2026-11-18T10:00:00Z", "until": None, "unknown_since": None, "cards": A}]
    assert [oct(path.stat().st_mode) for path in (place, place / "slurm", place / "slurm/4", place / "pod/ns%2Fp")] == [
        "0o40755", "0o40755", "0o100644", "0o100640"]
    assert lease(place, "list").stdout == (
        "  kind   id    owner        since        until  cards\n"
        f"  slurm  4     alice  11-18 09:59  11-18 10:01  {A},{B}\n"
        f"  pod    ns/p  ns     11-18 10:00            -  {A}\n")
    # Replaced, also with a configuration that has an error, and ended twice.
    (tmp_path / "broken.conf").write_text("[leases]\nprivate = maybe\n")
    assert lease(place, "list", "--config", tmp_path / "broken.conf").returncode == 2
    lease(place, "add", "--id", 4, "--user", "carol", "--cards", A, "--config", tmp_path / "broken.conf")
    assert [row["owner"] for row in listed(place)["leases"]] == ["carol", "ns"]
    assert [lease(place, "end", *which).returncode for which in (("--id", 4), ("--id", 4), ("--kind", "pod", "--id", "ns/p"))] == [0] * 3
    assert lease(place, "list").stdout == "no lease\n"
    assert set(place.rglob("*")) == {place / "pod", place / "slurm"}


@pytest.mark.parametrize("words, why", [
    ((), "say what to do: add|end|list|check|watch"),
    (("add", "--id", "4"), "add needs --id and --cards"),
    (("add", "--id", "4", "--cards", A), "add needs --user or --uid"),
    (("add", "--id", "4", "--cards", A, "--user", "a", "--since", "tomorrow"), "--since: "),
    (("end",), "end needs --id"),
    (("end", "--id", "4", "--set", "leases.private=7"), "--set: private"),
    (("list", "slurm"), "unexpected argument 'slurm'"),
    (("watch", "pbs"), "say which scheduler to watch: slurm"),
], ids=lambda value: None)
@pytest.mark.same_path
def test_wrong_usage(tmp_path, words, why):
    wrong = lease(tmp_path, *words)
    assert wrong.returncode == 2 and wrong.stderr.startswith(f"gua lease: {why}"), wrong.stderr


def test_what_is_added_is_believed(tmp_path):
    """A text that is too long is cut, and what a reader would leave out is refused."""
    place = tmp_path / "leases"
    assert lease(place, "add", "--id", 4, "--user", "alice", "--cards", A, "--name", "\\" * 20000, "--account", "\x1b" * 20000).returncode == 0
    row, = listed(place)["leases"]
    assert row["job_name"] == "\\" * 127 and row["account"].startswith("\\x1B" * 15)
    for words, why in (("a\nb", A), "'a\\x0Ab' is not the id of a lease"), ((5, ",".join([A] * 1000)), "the lease has too many cards"):
        wrong = lease(place, "add", "--id", words[0], "--user", "alice", "--cards", words[1])
        assert wrong.returncode == 2 and wrong.stderr.startswith(f"gua lease: {why}"), wrong.stderr
    assert [path.name for path in (place / "slurm").iterdir()] == ["4"]


def test_a_writer_follows_nothing(tmp_path):
    """Root's prolog writes into a directory of the watcher's user: what that user has put there is replaced, not written to."""
    place = tmp_path / "leases"
    (place / "slurm").mkdir(parents=True)
    (tmp_path / "victim").write_text("before")
    (place / "slurm/4").symlink_to(tmp_path / "victim")
    os.mkfifo(place / "slurm/5")
    (place / "slurm/6").write_text("mine")
    (place / "slurm/6").chmod(0o666)
    for number in (4, 5, 6):
        assert lease(place, "add", "--id", number, "--user", "alice", "--cards", A, timeout=20).returncode == 0
    assert (tmp_path / "victim").read_text() == "before"
    assert [row["id"] for row in listed(place)["leases"]] == ["4", "5", "6"]


@pytest.mark.same_path
def test_a_flood_of_files(host):
    """Any user may make files beside the locks of picks, and nobody but a scheduler those of leases: neither takes long."""
    picks, leases = host / "run/lock/gua", host / "run/gua/leases/slurm"
    for folder in (picks, leases):
        folder.mkdir(parents=True)
    (host / "proc/locks").symlink_to("/proc/locks")
    for i in range(30000):
        os.close(os.open(picks / f"GPU-{i:08x}-0000-0000-0000-000000000000.{os.getuid()}", os.O_CREAT | os.O_WRONLY))
    for i in range(5000):
        (leases / str(i)).write_text(f"id = {i}\nuser = a\ncards = {A}\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = listed(host / "run/gua/leases", "--root", host)["leases"]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert 4000 < len(found) <= 4096 and {row["kind"] for row in found} == {"slurm"}
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    assert "left out: slurm: it has too many files" in lease(host / "run/gua/leases", "check", "--root", host).stdout


def test_check_and_doctor(host):
    def doctor():
        rows = json.loads(gua("doctor", "--root", host, "--source", "sim", "--json").stdout)["checks"]
        return [(row["result"], row["text"]) for row in rows if row["check"] == "leases"]

    place = host / "run/gua/leases"
    at = ("--root", host)
    assert doctor() == []
    (host / "etc/slurm").mkdir(parents=True)
    (host / "etc/slurm/slurm.conf").write_text("")
    assert [row[0] for row in doctor()] == ["warning"] and "Slurm is here" in doctor()[0][1]
    lease(place, "add", "--id", 1, "--user", "alice", "--cards", "0", *at)
    assert "boot = \"this-boot\"\n" in (place / "slurm/1").read_text()
    lease(place, "add", "--id", 2, "--user", "alice", "--cards", "0", "--numbering", "nvml", *at)
    assert [row["cards"] for row in listed(place, *at)["leases"]] == ["?", A]
    assert [row["cards"] for row in listed(place, *at, "--set", "leases.numbering=minor")["leases"]] == [B, A]
    (place / "slurm/3").write_text("id = 3\ncards = 0\nshare = many\n")
    (place / "slurm/4").symlink_to(place / "slurm/1")
    (place / "slurm/5").write_text(f"id = 5\nuser = alice\ncards = {A}\nwatched = yes\n")
    os.utime(place / "slurm/5", (1700000500, 1700000500))
    checked = lease(place, "check", *at)
    lines = checked.stdout.splitlines()
    assert checked.returncode == 1 and lines[0] == "leases: 3 now"
    assert sorted(lines[1:3]) == ["left out: slurm/3: line 3: share takes a whole number, not 'many'",
                                  "left out: slurm/4: not a regular file"]
    assert lines[3].startswith("1 with a card that is not known: the minor numbers of the cards are not in the order")
    assert lines[4].startswith("1 may have ended: their watcher is silent")
    assert [row[1] for row in doctor()[:1]] == ["3 now"] and len(doctor()) == 5
    for name in "1345":
        (place / "slurm" / name).unlink()
    assert lease(place, "check", *at).stdout == "leases: 1 now\n"


@pytest.mark.other_programs
def test_prolog_and_epilog(tmp_path):
    """Slurm's variables become a lease; and whatever happens, the scripts end with 0."""
    place = tmp_path / "leases"

    def slurm(script, program=GUA, **variables):
        text = (ROOT / "dist/slurm" / script).read_text().replace("@bindir@/gua lease", f"{program} lease --leases {place}")
        ran = subprocess.run(["/bin/sh", "-c", text], env={f"SLURM_JOB_{key}": str(value) for key, value in variables.items()},
                             capture_output=True, timeout=60)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")

    slurm("prolog", ID=4, USER="alice", UID=1000, ACCOUNT="vision", GPUS="0,2", START_TIME=NOW_S - 10, END_TIME=NOW_S + 10,
          SLUID="s0123456789ABC")
    slurm("prolog", ID=5, USER="bob", UID=1001)
    slurm("prolog", program="/nonexistent", ID=6, USER="bob", UID=1001, GPUS="1")
    slurm("prolog", ID=7, USER="b; touch x", GPUS="$(touch x)", START_TIME="soon")
    row, = listed(place)["leases"]
    assert (row["id"], row["owner"], row["uid"], row["account"], row["cards"]) == ("4", "alice", 1000, "vision", "?,?")
    assert (row["since"], row["until"]) == ("2026-11-18T09:59:50Z", "2026-11-18T10:00:10Z")
    slurm("epilog", ID=4)
    slurm("epilog", program="/nonexistent", ID=4)
    assert listed(place)["leases"] == []


@pytest.fixture
def slurm(tmp_path):
    """slurm(JOBS, json=True) makes scontrol and squeue of a Slurm with these jobs: {id: (user, uid, cards)}. None: it does
    not answer."""
    def make(jobs, json_too=True, timeout="5s", program="scontrol"):
        everything = {"jobs": [{"job_id": number, "user_name": user, "user_id": uid, "name": f"job {number}", "account": "vision",
                                "job_state": ["RUNNING"], "start_time": NOW_S - 60, "end_time": NOW_S + 60, "nodes": "n[1-2]",
                                "gres_detail": ["", f"gpu:1(IDX:{cards})"]} for number, (user, uid, cards) in (jobs or {}).items()]}
        (tmp_path / "all.json").write_text(json.dumps(everything))
        for number, (user, uid, cards) in (jobs or {}).items():
            (tmp_path / f"{number}.txt").write_text(
                f"JobId={number} JobName=job {number}\n   UserId={user}({uid}) GroupId=g(1)\n   Nice=0 Account=vision QOS=q\n"
                f"   JobState=RUNNING Reason=None\n   StartTime={NOW_S - 60} EndTime={NOW_S + 60}\n"
                f"     Nodes=n[1-2] CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:{cards})\n   WorkDir=/\n")
        answer = f"cat {tmp_path}/all.json" if json_too else "echo \"scontrol: unrecognized option '--json'\" >&2; exit 1"
        scontrol = f'case "$*" in "-d --json show job") {answer};; "-d show job 99") echo "Invalid job id specified" >&2; exit 1;; "-d show job "*) cat {tmp_path}/$4.txt;; *) exit 9;; esac'
        # One more, which has ended by now.
        squeue = "[ \"$*\" = '-h -w n2 -t R,S,CG,CF -o %A' ] || exit 9; echo " + "; echo ".join(map(str, [*(jobs or {}), 99]))
        for name, text in (("scontrol", scontrol), ("squeue", squeue)):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text if jobs is not None else 'exec sleep 600'}\n")
            (tmp_path / name).chmod(0o755)
        return ("--set", f"leases.slurm={tmp_path}/{program}", "--set", "leases.node=n2", "--set", f"leases.timeout={timeout}")
    return make


@pytest.mark.other_programs
@pytest.mark.parametrize("json_too", [True, False], ids=["json", "text"])
def test_watch(tmp_path, slurm, json_too):
    place = tmp_path / "leases"
    settings = slurm({4: ("alice", 1000, "0,2"), 5: ("bob", 1001, "1")}, json_too)
    first = lease(place, "watch", "slurm", "--once", *settings)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    rows = [tuple(row[key] for key in ("id", "owner", "uid", "job_name", "account", "since", "until", "cards"))
            for row in listed(place, "--set", "leases.numbering=nvml")["leases"]]
    when = ("2026-11-18T09:59:00Z", "2026-11-18T10:01:00Z")
    assert rows == [("4", "alice", 1000, "job 4", "vision", *when, "?,?"), ("5", "bob", 1001, "job 5", "vision", *when, "?")]
    assert (place / "slurm/.heartbeat").read_text() == "every = 30s\n"
    # Nothing is written again that has not changed; what Slurm does not name any more is removed.
    os.utime(place / "slurm/.heartbeat", (1700000000, 1700000000))
    before = [(place / "slurm" / name).stat().st_ino for name in ("5", ".heartbeat")]
    slurm({5: ("bob", 1001, "1")}, json_too)
    lease(place, "watch", "slurm", "--once", *settings)
    assert sorted(path.name for path in (place / "slurm").iterdir()) == [".heartbeat", "5"]
    assert [(place / "slurm" / name).stat().st_ino for name in ("5", ".heartbeat")] == before
    assert (place / "slurm/.heartbeat").stat().st_mtime > 1700000000


def test_watch_a_slurm_that_does_not_answer(tmp_path, slurm):
    """Its leases stay, and become unknown after three missed answers."""
    place = tmp_path / "leases"
    lease(place, "watch", "slurm", "--once", *slurm({4: ("alice", 1000, "0")}))
    os.utime(place / "slurm/.heartbeat", (NOW_S - 90, NOW_S - 90))
    halfway = slurm({4: ("alice", 1000, "0")}, json_too=False)  # it goes while it is asked
    (tmp_path / "4.txt").unlink()
    for make in (lambda: halfway, lambda: slurm(None, timeout="100ms"), lambda: slurm(None, program="nonexistent")):
        silent = lease(place, "watch", "slurm", "--once", *make())
        assert silent.returncode == 1 and silent.stderr.startswith("gua lease: "), silent.stderr
    assert listed(place)["leases"][0]["unknown_since"] is None
    os.utime(place / "slurm/.heartbeat", (NOW_S - 91, NOW_S - 91))
    assert listed(place)["leases"][0]["unknown_since"] == "2026-11-18T09:58:29Z"
    assert "  unknown  " in lease(place, "list").stdout


@pytest.mark.waits
def test_watch_goes_on_until_it_is_stopped(tmp_path, slurm):
    place = tmp_path / "leases"
    settings = slurm({4: ("alice", 1000, "0")})
    with subprocess.Popen([BUILD / "gua-lease", "watch", "slurm", "--leases", place, *settings, "--set", "leases.every=1s"],
                          env=clean_environment(), stderr=subprocess.PIPE, text=True) as watcher:
        deadline = time.monotonic() + 60
        while not (place / "slurm/.heartbeat").exists():
            assert time.monotonic() < deadline and watcher.poll() is None
            time.sleep(0.05)
        slurm({})
        while (place / "slurm/4").exists():
            assert time.monotonic() < deadline and watcher.poll() is None
            time.sleep(0.05)
        watcher.send_signal(signal.SIGTERM)
        assert watcher.wait(60) == 0
        assert watcher.stderr.read() == ""


@pytest.mark.any_build
def test_the_unit_fits_its_user_and_its_directory():
    unit = (ROOT / "dist/gua-lease@.service").read_text()
    for line in ("User=gua-lease", "Group=gua", "RuntimeDirectory=gua/leases/%i", "RuntimeDirectoryPreserve=yes", "PrivateDevices=yes",
                 "CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict"):
        assert f"\n{line}\n" in unit
    assert "\nu gua-lease " in (ROOT / "dist/gua-lease.sysusers").read_text()
    assert "\nd /run/gua/leases 2755 root gua -\n" in (ROOT / "dist/gua.tmpfiles").read_text()


def test_the_recorder_follows_the_numbering_of_the_configuration(host):
    scenario, db = host / "two.scenario", host / "gua.db"
    scenario.write_text("start 2026-11-18T10:00:00Z\n" + "".join(
        f'card {i} uuid {uuid} name "NVIDIA A100" memory 80GiB\n' for i, uuid in enumerate((A, B))))
    lease(host / "run/gua/leases", "add", "--id", 4, "--user", "alice", "--cards", "0", "--root", host)
    run = gua("daemon", "--foreground", "--ticks", 2, "--source", "sim", "--scenario", scenario, "--clock", "virtual", "--db", db,
              "--root", host, "--leases", host / "run/gua/leases", "--set", "leases.numbering=minor")
    assert run.returncode == 0, run.stderr
    with sqlite3.connect(db) as store:
        assert store.execute("SELECT uuid, sum(ms) FROM usage_1m JOIN gpu ON gpu.id = gpu WHERE state = 5").fetchall() == [(B, 60000)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_private_leases_of_others(tmp_path):
    """Who may not read them is told how many there are, also by a pick."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "leases"
        place.parent.chmod(0o755)
        lease(place, "add", "--id", 4, "--user", "alice", "--cards", A, "--set", "leases.private=yes")
        lease(place, "add", "--id", 5, "--user", "bob", "--cards", B)
        nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        found = lease(place, "list", "--json", before=nobody)
        document = json.loads(found.stdout)
        assert (document["not_readable"], [row["id"] for row in document["leases"]]) == (1, ["5"])
        assert found.stderr == "gua lease: leases that this user may not read: 1\n"
        picked = gua("pick", "--source", "sim", "--no-store", "--hold", "0s", "--leases", place, "--lock-dir", folder, before=nobody)
        assert "gua pick: leases that this user may not read: 1; their cards look free\n" in picked.stderr
        denied = lease(place, "add", "--id", 6, "--user", "eve", "--cards", A, before=nobody)
        assert denied.returncode == 1 and "Permission denied" in denied.stderr

"""Rules about leases (reserved_for): over a store that is made by hand minute by minute, and live with a fake scancel."""
import json
import socket
import sqlite3
import time

import pytest
from conftest import gua, wait_for
from handmade import ACTIVE, IDLE_HELD, RESERVED
from enforcing import IN_ORDER, ROOT, UID, hosts, needs_enforce  # noqa: F401
from test_enforce import Work, World, ask_service, conf, iso, service, simulate

pytestmark = needs_enforce[0]

RULES = """
[rule unused]
reserved_for = 10m
warn_again = 20m
final_notice = 5m
end = 30m
[policy]
ends_per_hour = 9
ends_per_user = 9
breaker_pct = 100
"""


class Lease(Work):
    """A letter a minute: L leased, ? leased as far as is known, - not leased. On all cards in `cards`."""

    def __init__(self, number, user, cards, does, kind=0, uid=20001):
        super().__init__(number, user, cards[0], does)
        self.kind, self.uid, self.on = kind, uid, cards


class LeaseWorld(World):
    """`unlisted` are {(card, minute): state} of cards that somebody used whom the driver does not list."""
    unlisted = {}

    def state_of(self, card, minute):
        there = any(work.card == card and not isinstance(work, Lease) and work.does[minute:minute + 1] not in ("-", "") for work in self.works)
        return super().state_of(card, minute) if there else self.unlisted.get((card, minute), RESERVED)

    def write_work(self, store, host, gpu, work, n):
        if not isinstance(work, Lease):
            super().write_work(store, host, gpu, work, n)
            return
        does = work.does[:n]
        if not does.strip("-"):
            return
        first = len(does) - len(does.lstrip("-"))
        last = len(does.rstrip("-"))
        ended = last < len(does)
        row = store.insert("lease", host=host, kind=work.kind, name=str(work.pid), owner=work.user, uid=work.uid, share=1,
                           since_ms=(self.at(first) - 99999) * 1000, first_seen_ms=self.at(first) * 1000,
                           last_seen_ms=self.at(last) * 1000, ended_ms=self.at(last) * 1000 if ended else None)
        for card in work.on:
            cards = [number for number, in store.db.execute("SELECT id FROM gpu ORDER BY idx")]
            store.insert("leased_1d", slot=self.start // 86400 * 86400, gpu=cards[card], lease=row, active_ms=0, idle_held_ms=0,
                         use_unknown_ms=0, untouched_ms=60000 * (last - first))
            for i, letter in enumerate(does):
                if letter == "?" and (card, i) not in self.blind:
                    store.insert("reserved_1m", slot=self.at(i), gpu=cards[card], lease=row, reserved_ms=0, unknown_ms=60000)


def judged(world, minute, *config):
    """{session: (minute of the first warning, minute of the end)}"""
    said = simulate(world, minute, *config, "--set", "policy.every=60s")
    moments = {iso(world.at(i)): i for i in range(minute + 1)} | {None: None}
    return {row["session"]: (moments[row["first_warning"]], moments[row["ended"]]) for row in said["sessions"]}


def test_when_leases_are_warned_and_ended(tmp_path):
    works = [
        Lease(1, "alice", [0], "L" * 60),                       # never touched; it began long before it was seen
        Lease(2, "bob", [1], "L" * 60),                         # touched by its job
        Work(100, "bob", 1, "-" * 5 + "I" * 10 + "-" * 45, job="slurm:2"),
        Lease(3, "carol", [2], "L" * 60),                       # only another job of the same user is there
        Work(101, "carol", 2, "-" * 5 + "I" * 40 + "-" * 15, job="slurm:33"),
        Lease(4, "dave", [3], "L" * 60),                        # a process of the same user, whose job is not known
        Work(102, "dave", 3, "-" * 5 + "I" * 10 + "-" * 45),
        Lease(5, "erin", [4], "L" * 5 + "?" * 20 + "L" * 35),   # the watcher was silent
        Lease(6, "fay", [5], "L" * 25 + "-" * 35),              # ends before it is ended
        Lease(7, "gil", [6, 7], "L" * 60),                      # one of its two cards is used
        Work(103, "gil", 7, "A" * 60, job="slurm:7"),
        Lease(8, "root", [8], "L" * 60, uid=0),                 # of the system
        Lease("ns/p", "ns", [9], "L" * 60, kind=1),             # nothing that could end it
        Lease(9, "hal", [10], "L" * 60),                        # its card was not seen for a while
        Lease(10, "ivy", [11], "L" * 60),                       # its card is busy, and the driver lists no process
        Lease(12, "kim", [13], "L" * 60),                       # a process of its user whose cgroup has a SLUID
        Work(104, "kim", 13, "I" * 60, job="slurm:sABCDEFGHIJKLM"),
        Lease(11, "joe", [12], "L" * 60),                       # its card was held for a while, and the driver lists no process
    ]
    w = LeaseWorld(tmp_path, works, cards=14, blind={(10, i) for i in range(15, 25)})
    w.unlisted = {(11, i): ACTIVE for i in range(60)} | {(12, i): IDLE_HELD for i in range(5, 16)}
    w.write(60)
    config = conf(tmp_path, RULES)
    assert judged(w, 60, *config) == {
        "lease slurm:1 of alice": (10, 30), "lease slurm:2 of bob": (25, 45), "lease slurm:3 of carol": (10, 30),
        "lease slurm:4 of dave": (25, 45), "lease slurm:5 of erin": (30, 50), "lease slurm:6 of fay": (10, None),
        "lease pod:ns/p of ns": (10, None), "lease slurm:9 of hal": (10, 40), "lease slurm:11 of joe": (26, 46), "slurm:sABCDEFGHIJKLM of kim": (60, None)}
    # An exemption, by job and by user; and without such a rule nothing of it.
    exempt = conf(tmp_path, RULES + "[exempt a]\njob = slurm:1\nowner = x\nuntil = 2099-01-01\n[exempt b]\nuser = bob carol dave erin fay gil hal joe kim\n"
                  "owner = x\nuntil = 2099-01-01\n")
    assert judged(w, 60, *exempt) == {"lease pod:ns/p of ns": (10, None)}
    assert all("lease" not in key for key in judged(w, 60, *conf(tmp_path, RULES.replace("reserved_for", "warn"))))


def test_simulate_is_what_a_live_run_does(tmp_path):
    """The live run starts afresh for each pass."""
    works = [Lease(1, "alice", [0], "L" * 70), Lease(2, "bob", [1], "L" * 70),
             Work(100, "bob", 1, "-" * 22 + "I" * 6 + "-" * 42, job="slurm:2"), Lease(3, "carol", [2], "L" * 12 + "?" * 10 + "L" * 48),
             Lease(4, "root", [3], "L" * 70, uid=0), Lease("kube-system/p", "kube-system", [4], "L" * 70, kind=1)]  # both exempt
    w = LeaseWorld(tmp_path, works, cards=5)
    config = (*conf(tmp_path, RULES), "--set", "policy.every=300s")
    live = {}
    for minute in range(5, 71, 5):
        w.write(minute)
        run = w.run(minute, *config)
        assert run.returncode == 0, run.stderr
    for row in w.log():
        if row["step"] in ("warn", "end"):
            assert row["kind"] == "lease" and not row["pids"] and row["held_bytes"] is None
            assert row["evidence"].startswith("not on its cards since ")
            live.setdefault(row["session"], []).append((row["at"], row["step"]))
    said = simulate(w, 70, *config)
    assert {s["session"]: (s["first_warning"], s["ended"]) for s in said["sessions"]} == \
        {key: (steps[0][0], next((at for at, step in steps if step == "end"), None)) for key, steps in live.items()}
    assert len(live) == 3 and said["sessions_ended"] == 3


@needs_enforce[1]
def test_a_lease_is_explained_and_kept(tmp_path):
    """By its number, or by that of its task, and only for whom it belongs to."""
    works = [Lease(1, "alice", [0], "L" * 70), Lease(2, "bob", [1], "L" * 70, uid=20002), Lease("ns/p", "ns", [2], "L" * 70, kind=1),
             Work(100, "bob", 1, "-" * 5 + "I" * 4 + "-" * 61, job="slurm:2")]
    w = LeaseWorld(tmp_path, works, cards=4)
    config = conf(tmp_path, RULES)

    def write(minute):
        w.write(minute)
        with sqlite3.connect(w.db) as db:
            db.execute("UPDATE lease SET task = '3_2', job_name = 'sweep' WHERE name = '1'")

    def explain(name, *options):
        return gua("enforce", "explain", name, "--db", w.db, "--now", iso(w.at(15)), "--utc", *config, *options)

    write(15)
    assert w.run(15, *config).returncode == 0
    for name in "slurm:1", "slurm:3_2":
        said = explain(name)
        assert said.returncode == 0 and said.stdout.startswith("Lease: slurm:3_2 sweep\nSession: lease slurm:1 of alice (lease, batch)\n")
        assert "  it has GPU 0, seen since Wed 2026-11-04 08:00 UTC\n  no process of it on its cards for 15 min, since " in said.stdout
        assert "yes  [rule unused]: warn after 10 min and 20 min, end after 30 min; level observe\n" in said.stdout
        assert "then: the end" in said.stdout or "next: the second warning at 20 min" in said.stdout
    assert "no process of it on its cards for 6 min" in explain("slurm:2").stdout
    document = json.loads(explain("pod:ns/p", "--json").stdout)
    assert (document["lease"], document["pid"], document["kind"], document["idle_seconds"]) == ("pod:ns/p", None, "lease", 900)
    assert (document["rule"], document["most_sm_pct"]) == ("unused", None)
    missing = explain("slurm:9")
    assert missing.returncode == 1 and "slurm:9: no lease of this name is judged: " in missing.stderr
    assert "'job:9' is not a pid, nor a lease such as slurm:4" in explain("job:9").stderr
    common = ("--db", w.db, "--utc")
    with service(w.directory, w.db, iso(w.at(16)), *config):
        kept = gua("keep", "slurm:3_2", "--for", "30m", "--reason", "data comes", *common)
        assert kept.stdout == "lease slurm:1: kept until Wed 2026-11-04 08:46 UTC: data comes\n", kept.stderr
        assert json.loads(gua("keep", "--json", *common).stdout)["kept"] == [
            {"pid": None, "lease": "slurm:1", "kept": True, "until": iso(w.at(46)), "reason": "data comes", "why_not": None}]
        if ROOT:
            request = {"ask": "keep", "lease": "slurm:2", "pid": 0, "start_ticks": 0, "for_ms": 60000, "reason": "x"}
            for uid, ok in (20001, False), (20002, True):
                answer = ask_service(w.directory, uid=uid, **request)
                assert answer["ok"] is ok and (ok or answer["why"].startswith("no lease of this name is judged")), answer
                answer = ask_service(w.directory, uid=uid, **dict(request, ask="explain"))
                assert answer["ok"] is ok and ("no process of it" in answer["text"]) is ok, answer
    for minute in range(17, 70):
        write(minute)
        assert w.run(minute, *config).returncode == 0
    # Kept until minute 46; then it begins again with the first warning.
    alice = [(row["at"], row["step"]) for row in w.log() if row["session"] == "lease slurm:1 of alice"]
    assert [at for at, step in alice if step == "warn"][:3] == [iso(w.at(15)), iso(w.at(46)), iso(w.at(56))]
    assert ("kept" in (step for _, step in alice)) and alice[0][1] == "warn"
    with service(w.directory, w.db, iso(w.at(20)), *config):
        assert gua("keep", "--drop", "slurm:1", *common).stdout == "lease slurm:1: it is no longer kept\n"
        assert gua("keep", *common).stdout == "You keep no session.\n" or ROOT


LIVE = """[rule leases]
reserved_for = 2s
warn_again = 4s
final_notice = 2s
end = 7s
level = end
"""


def lease_notices(host):
    return [json.loads(line) for line in host.told_path.read_text().splitlines()]


@needs_enforce[1]
@pytest.mark.waits
@pytest.mark.parametrize("touched", [False, True], ids=["ended", "spared"])
def test_live(hosts, touched):
    """A job that never touches its card is ended by its manager; nothing is signalled. One whose process comes at the last
    moment is spared."""
    host = hosts({"late": (0, "8GiB")}, more=LIVE)
    leases = host.where / "leases" / "slurm"
    leases.mkdir(parents=True)
    scancel = host.where / "scancel"
    scancel.write_text(f"#!/bin/sh\necho \"$@\" >>{host.where}/scancelled\nrm {leases}/$1\n")
    scancel.chmod(0o755)
    text = host.config.read_text().replace("[end]\n", f"[end]\nslurm = {scancel}\n").replace("confirm = 1s", "confirm = 6s")
    host.config.write_text(text)
    bystander = host.start("bystander")     # of the same user, on no card
    (leases / "4").write_text(f"id = 4\nuser = uid:{UID}\nuid = {UID}\ncards = GPU-0\nsince = {time.time() - 9999}\n")
    host.service("daemon", "--foreground", "--db", host.db, "--interval", "1s", "--drain", "500ms", "--leases", leases.parent,
                 name="recorder")
    host.arm()
    host.enforce()
    
    def steps():
        return [row[0] for row in host.steps()[1:]]     # without that it was armed


    wait_for(lambda: "end" in steps(), host.log, 90)
    if touched:
        late = host.start("late")
        wait_for(lambda: "spared" in steps(), host.log, 90)
        assert late.poll() is None and not (host.where / "scancelled").exists()
        assert [result for step, _, result in host.steps() if step == "spared"][0] == f"its process {late.pid} is on a card"
        return
    wait_for(lambda: "ended" in steps(), lambda: f"{host.steps()}\n{host.log()}", 90)
    wait_for(lambda: [notice["kind"] for notice in lease_notices(host)] == IN_ORDER, host.log)
    assert (host.where / "scancelled").read_text() == "4\n" and bystander.poll() is None
    assert steps() == ["warn", "warn", "warn", "end", "signal", "ended"]
    assert f"{scancel} 4" in [result for step, _, result in host.steps() if step == "signal"]
    first, *_, last = lease_notices(host)
    assert first["lease"] == "job 4" and first["release"] == "scancel 4" and first["pid"] is None and first["cards"] == "0"
    assert f"Your job 4 keeps card 0 of {socket.gethostname()} from others\nand has not used it since " in first["text"]
    assert "holds" not in first["text"] and "Keep it:    gua keep slurm:4 --for 4h --reason TEXT\n" in first["text"]
    assert "'gua enforce explain slurm:4' shows the evidence\n" in first["text"]
    assert f"Your job 4 on {socket.gethostname()} was ended: it had card 0\nwithout using it since " in last["text"]
    assert "Result: its manager has ended it (not on its cards in " in last["text"]

"""gua enforce and gua keep: the rules over a store that a test has made by hand, minute by minute."""
import json
import os
import signal
import sqlite3
import stat
import subprocess
import time

import pytest

from conftest import BUILD, GUA, clean_environment, gua, wait_for
from handmade import ENDED_ACTIVE, ENDED_RELEASED, IDLE_HELD, Store

MINUTE = 60
START = 1793779200  # Wed 2026-11-04 08:00:00 UTC
GIB = 1 << 30
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def iso(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


class Work:
    """What one process does on one card: a letter a minute. A active, l a little, e encodes, I idle,
    - absent."""

    def __init__(self, pid, user, card, does, memory=8 * GIB, **labels):
        self.pid, self.user, self.card, self.does, self.memory = pid, user, card, does, memory
        self.peak = None if memory is None else memory // 1024
        self.labels = labels


class World:
    """A host in which each process does what its letters say; `blind` are (card, minute) that nobody saw."""

    def __init__(self, directory, works, blind=(), start=START, cards=2):
        self.directory, self.works, self.blind, self.start, self.cards = directory, works, set(blind), start, cards
        self.db = directory / "gua.db"

    def at(self, minute):
        return self.start + minute * MINUTE

    def stretches(self, work, n):
        """(begin, end, seen, how) in minutes; how None: it goes on."""
        found, begin, end, seen = [], None, None, 0
        for i in range(n):
            if (work.card, i) in self.blind:
                continue
            letter = work.does[i] if i < len(work.does) else "-"
            if letter in "Ile":
                begin, end, seen = (i if begin is None else begin), i + 1, (0 if begin is None else seen) + 1
            elif begin is not None:
                found.append((begin, end, seen, ENDED_ACTIVE if letter == "A" else ENDED_RELEASED))
                begin = None
        return found + ([(begin, end, seen, None)] if begin is not None else [])

    def write(self, n, running=True):
        """The store as a recorder leaves it after n minutes."""
        for name in ("gua.db", "gua.db-wal", "gua.db-shm"):
            (self.directory / name).unlink(missing_ok=True)
        store = Store(":memory:")
        host = store.host("lab")
        store.run(host, self.start, self.at(n), ended=None if running else self.at(n), interval=60)
        cards = [store.card(host, i, self.start, self.at(n)) for i in range(self.cards)]
        for card, gpu in enumerate(cards):
            for i in range(n):
                if (card, i) not in self.blind:
                    store.usage(self.at(i), gpu, IDLE_HELD, 60)
        for work in self.works:
            self.write_work(store, host, cards[work.card], work, n)
        store.db.commit()
        self.db.write_bytes(store.db.serialize())
        store.db.close()
        return self.db

    def write_work(self, store, host, gpu, work, n):
        seen = [i for i in range(min(n, len(work.does))) if work.does[i] != "-" and (work.card, i) not in self.blind]
        if not seen:
            return
        process = store.process(host, work.pid, work.user, seen=(self.at(seen[0]), self.at(seen[-1] + 1)), **work.labels)
        for i in seen:
            busy = {"A": (60000, 90), "l": (0, 3)}.get(work.does[i], (0, 0))
            store.insert("holding_1m", slot=self.at(i), gpu=gpu, process=process, active_ms=busy[0],
                         idle_held_ms=60000 - busy[0], truly_idle_ms=0, squatting_ms=0, active_double_ms=0,
                         idle_held_double_ms=0, truly_idle_double_ms=0, squatting_double_ms=0, active_share_ms=0,
                         idle_share_ms=0, sm_pct_ms=60000 * busy[1], mem_peak_kib=work.peak,
                         engine_ms=2000 if work.does[i] == "e" else 0)
        last = [i for i in range(n) if (work.card, i) not in self.blind][-1]
        if last < len(work.does) and work.does[last] != "-":
            store.insert("holder", gpu=gpu, process=process, kind=1, mem_bytes=work.memory,
                         since_ms=self.at(seen[0]) * 1000, last_active_ms=None)
        for begin, end, minutes, how in self.stretches(work, n):
            values = {"gpu": gpu, "process": process, "begin_ms": self.at(begin) * 1000, "end_ms": self.at(end) * 1000,
                      "idle_held_ms": minutes * 60000, "squatting_ms": 0, "mem_peak_kib": work.peak}
            if how is None:
                store.insert("open_spell", **values)
            elif minutes >= 5:
                store.insert("spell", how_ended=how, **values)

    def run(self, minute, *args, **options):
        return gua("enforce", "run", "--once", "--db", self.db, "--now", iso(self.at(minute)), *args, **options)

    def log(self, minute=10**6):
        out = gua("enforce", "log", "--db", self.db, "--now", iso(self.at(minute)), "--last", "2000d", "--json")
        assert out.returncode == 0, out.stderr
        return json.loads(out.stdout)["actions"]


@pytest.fixture
def world(tmp_path):
    return lambda works, **options: World(tmp_path, works, **options)


def conf(tmp_path, text):
    path = tmp_path / "gua.conf"
    path.write_text(text)
    path.chmod(0o644)
    return ("--config", path)


def simulate(world, minute, *args, **options):
    out = gua("enforce", "simulate", "--db", world.db, "--now", iso(world.at(minute)), "--since", iso(world.start - 600),
              "--json", *args, **options)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


FAST = """
[rule all]
warn = 10m
warn_again = 20m
final_notice = 5m
end = 30m
"""


def test_simulate_is_what_a_live_run_does(world, tmp_path):
    """The live run starts afresh for each pass. The recorder is silent for a while; one process uses its card a
    little now and then; another of the same session has ended."""
    works = [Work(100, "alice", 0, "AAAAA" + "I" * 95),
             Work(200, "bob", 1, "I" * 14 + "l" + "I" * 85, login="ssh"),
             Work(300, "carol", 1, "I" * 100, posix_session=300),
             Work(301, "carol", 0, "-" * 20 + "A" * 10 + "-" * 70, posix_session=300),
             Work(400, "dave", 0, "I" * 37 + "A" + "I" * 62, notebook="jupyter:x")]
    w = world(works, blind={(1, i) for i in range(50, 62)})
    config = conf(tmp_path, FAST + "[policy]\nends_per_hour = 9\nbreaker_pct = 100\n")
    for minute in range(5, 101, 5):
        w.write(minute)
        result = w.run(minute, *config, "--set", "policy.every=300s")
        assert result.returncode == 0, result.stderr
    live = {}
    for row in w.log():
        if row["step"] in ("warn", "end"):
            live.setdefault(row["session"], []).append((row["at"], row["step"]))
    w.write(100)
    said = simulate(w, 100, *config, "--set", "policy.every=300s")
    assert {s["session"]: (s["first_warning"], s["ended"]) for s in said["sessions"]} == \
        {key: (steps[0][0], next((at for at, step in steps if step == "end"), None)) for key, steps in live.items()}
    assert len(live) == 4 and said["sessions_ended"] >= 3
    assert {s["user"]: s["wrong"] for s in said["sessions"]}["dave"] is True  # idle at 35, used at 37


def test_encoding_is_use(world, tmp_path):
    """The report calls it idle. It counts for policy, live and in simulate, also in the minute in which the process
    stops computing."""
    w = world([Work(100, "alice", 0, "A" + "I" * 29 + "e" + "I" * 9), Work(200, "bob", 1, "e" * 40)])
    for minute in 10, 11, 20, 21, 26, 31, 40:
        w.write(minute)
        assert w.run(minute, *conf(tmp_path, FAST)).returncode == 0
    steps = [(row["user"], row["at"], row["step"]) for row in w.log()]
    assert steps == [("alice", iso(w.at(11)), "warn"), ("alice", iso(w.at(21)), "warn"), ("alice", iso(w.at(26)), "warn"),
                     ("alice", iso(w.at(31)), "recovered")]
    said = simulate(w, 40, *conf(tmp_path, FAST))
    assert [(s["user"], s["warnings"], s["ended"]) for s in said["sessions"]] == [("alice", 3, None)]
    with sqlite3.connect(w.db) as db:
        db.execute("UPDATE holding_1m SET active_ms = 1000, engine_ms = 1000 WHERE slot = ?", (w.at(30),))
    assert simulate(w, 40, *conf(tmp_path, FAST))["sessions"][0]["ended"] is None


def test_a_session_that_begins_again_after_its_end(world, tmp_path):
    """A Jupyter server starts a kernel of the same name; no pass saw the time between."""
    w = world([Work(100, "alice", 0, "A" + "I" * 34 + "-" * 65, notebook="jupyter:x", started=START),
               Work(101, "alice", 0, "-" * 35 + "I" * 65, notebook="jupyter:x", started=START + 35 * 60)])
    config = conf(tmp_path, FAST)
    for minute in 11, 21, 26, 31, 36, 45, 55, 60, 65:
        w.write(minute)
        assert w.run(minute, *config).returncode == 0
    ends = [(row["at"], row["step"]) for row in w.log() if row["step"] == "end"]
    assert ends == [(iso(w.at(31)), "end"), (iso(w.at(65)), "end")]
    w.write(70)
    said = simulate(w, 70, *config)
    assert [(s["session"], s["warnings"], s["ended"]) for s in said["sessions"]] == \
        [("jupyter:x of alice", 3, iso(w.at(31))), ("jupyter:x of alice", 3, iso(w.at(65)))]
    assert said["sessions_ended"] == 2


def test_simulate_counts_what_is_given_back(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 99), Work(101, "alice", 1, "A" + "I" * 79 + "-" * 20)], cards=3)
    w.write(100)
    said = simulate(w, 100, *conf(tmp_path, FAST + "[policy]\nbreaker_pct = 100\n"))
    first, second = said["sessions"]
    assert (said["since"], said["until"]) == (iso(w.start), iso(w.at(100)))  # nothing was recorded before
    assert said["sessions_ended"] == 2 and said["sessions_ended_wrongly"] == 0
    assert first["ended"] == second["ended"] == iso(w.at(31))
    assert (first["given_back_gpu_seconds"], second["given_back_gpu_seconds"]) == (69 * 60, 49 * 60)
    assert said["given_back_gpu_seconds"] == said["users"][0]["given_back_gpu_seconds"] == 118 * 60
    text = gua("enforce", "simulate", "--db", w.db, "--now", iso(w.at(100)), "--since", iso(w.start))
    # It says what a live run knows and the store does not.
    assert said["not_known"] == ["cpu_use", "power", "programs", "graphics", "memory_now", "fine_use"]
    assert "The store does not have:\n  - the CPU use" in text.stdout and "  - which processes only draw\n" in text.stdout
    assert "2 sessions held a card idle. The rules would have warned 2 and ended 0" in text.stdout


def test_a_driver_that_is_silent_stops_the_clock(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 60)], blind={(0, i) for i in range(6, 18)})
    config = conf(tmp_path, FAST)
    for minute in range(2, 40):
        w.write(minute)
        assert w.run(minute, *config).returncode == 0
    steps = [(row["at"], row["step"], row["stage"]) for row in w.log()]
    # Idle from minute 1 on; ten minutes of that were seen at minute 23.
    assert steps == [(iso(w.at(23)), "warn", "warning"), (iso(w.at(33)), "warn", "second warning"),
                     (iso(w.at(38)), "warn", "final notice")]
    w.write(17)
    explained = gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(17)), *config).stdout
    assert "the clock stands still" in explained


def test_nothing_is_judged_without_a_recorder(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    config = conf(tmp_path, FAST)
    w.write(20)
    assert w.run(40, *config).returncode == 0  # suspended, or the recorder was killed
    w.write(20, running=False)
    run = w.run(20, *config)
    assert run.returncode == 0 and "nothing was judged: no recorder has written" in run.stderr
    assert w.log() == []
    assert "no recorder has written" in gua("enforce", "status", "--db", w.db).stdout


def test_a_recorder_that_was_started_again(world, tmp_path):
    """Before its first tick it has no holders, and a card that it has not listed yet has none either: a session keeps its
    stage meanwhile."""
    config = conf(tmp_path, FAST)
    w = world([Work(100, "alice", 0, "A" + "I" * 60), Work(200, "bob", 1, "A" + "I" * 60)])
    for minute in 11, 12, 13, 14, 21:
        w.write(minute)
        with sqlite3.connect(w.db) as db:
            if minute == 12:
                db.execute("DELETE FROM holder")
                db.execute("UPDATE run SET started_ms = last_tick_ms")
            if minute == 13:
                db.execute("DELETE FROM holder WHERE gpu = 1")
            if minute == 14:    # bob has really gone
                db.execute("DELETE FROM holder WHERE gpu = 2")
                db.execute("DELETE FROM open_spell WHERE gpu = 2")
        assert w.run(minute, *config).returncode == 0
        if minute == 13:
            said = gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(13)), *config).stdout
            assert "the clock stands still" in said, said
    steps = [(row["user"], row["step"], row["stage"]) for row in w.log()]
    assert steps[:2] == [("alice", "warn", "warning"), ("bob", "warn", "warning")]
    assert [step for step in steps if step[0] == "alice"][1:] == [("alice", "warn", "second warning")]
    assert [step[:2] for step in steps if step[0] == "bob"][1] == ("bob", "released"), steps


def test_the_first_rule_that_matches_counts(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 60, login="ssh")])
    config = conf(tmp_path, """
[rule batch]
kind = batch
warn = 5m
[rule alice]
user = alice
warn = 15m
[rule everybody]
warn = 10m
""")
    w.write(20)
    assert w.run(20, *config).returncode == 0
    assert [(row["rule"], row["mode"]) for row in w.log()] == [("alice", "observe")]
    said = gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(20)), *config).stdout
    assert "no   [rule batch]: its kind is interactive" in said
    assert "yes  [rule alice]: warn after 15 min" in said and "[rule everybody]: not asked" in said
    data = json.loads(gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(20)), *config, "--json").stdout)
    assert data["rule"] == "alice" and data["idle_seconds"] == 19 * 60
    assert [rule["matches"] for rule in data["rules"]] == [False, True, True, True]


def test_sessions_below_a_gibibyte_and_services_are_not_ended(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 99, memory=GIB - 1024),
               Work(200, "bob", 1, "A" + "I" * 99, container="docker:0123456789ab")])
    w.write(100)
    said = simulate(w, 100, "--set", "rule.x.warn=10m")
    assert [(s["user"], s["use"], s["ended"]) for s in said["sessions"]] == [("bob", "service", None)]
    two = "--set", "rule.x.warn=10m", "--set", "rule.y.warn=20m", "--set", "rule.x.container=docker:*"
    assert {s["rule"] for s in simulate(w, 100, *two)["sessions"]} == {"x"}
    # Not even by a rule with an end, unless it speaks of them.
    assert simulate(w, 100, *conf(tmp_path, FAST))["sessions_ended"] == 0
    for key in "kind = service", "container = docker:*":
        assert simulate(w, 100, *conf(tmp_path, FAST + key + "\n"))["sessions_ended"] == 1


def test_memory_that_the_driver_cannot_report_matches_no_rule(world, tmp_path):
    """It may be below the limit of the rule. A rule without a limit matches, and so do exemptions."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99, memory=None)])
    w.write(100)
    said = gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(100)), *conf(tmp_path, FAST)).stdout
    why = "how much memory it holds is not known, and the rule is for 1024 MiB or more"
    assert f"no   [rule all]: {why}" in said and f"no   the built-in rule 'default': {why}" in said, said
    assert "nothing happens now: no rule matches" in said
    assert simulate(w, 100, *conf(tmp_path, FAST))["sessions_warned"] == 0
    every = FAST + "min_memory = 0\n"
    assert simulate(w, 100, *conf(tmp_path, every))["sessions_ended"] == 1
    exempt = "[exempt deadline]\nuser = alice\nowner = carol\nuntil = 2026-11-04\n"
    assert simulate(w, 100, *conf(tmp_path, every + exempt))["sessions_warned"] == 0


def test_the_breaker_and_the_limits(world, tmp_path):
    works = [Work(100 + i, f"user{i % 2}", i % 4, "A" + "I" * 99) for i in range(6)]
    w = world(works, cards=5)
    config = conf(tmp_path, FAST)
    w.write(100)
    said = simulate(w, 100, *config)
    assert said["sessions_ended"] == 0 and said["breaker_passes"] == 70
    loose = ("--set", "policy.breaker_pct=100", "--set", "policy.ends_per_hour=3", "--set", "policy.ends_per_user=2")
    said = simulate(w, 100, *config, *loose)
    assert [user["sessions_ended"] for user in said["users"]] == [2, 2]
    ended = sorted(s["ended"] for s in said["sessions"] if s["ended"])
    assert ended == [iso(w.at(31))] * 3 + [iso(w.at(96))]  # with a new final notice, after an hour


def test_quiet_hours_on_the_night_of_a_clock_change(world, tmp_path):
    """In Berlin the clocks go back on 2026-10-25 at 01:00 UTC: seven o'clock is 06:00 UTC, not 05:00."""
    start = 1792872000  # 2026-10-24 20:00 UTC, 22:00 in Berlin
    w = world([Work(100, "alice", 0, "A" + "I" * 700)], start=start)
    w.write(700)
    config = conf(tmp_path, FAST + "[calendar]\nquiet_hours = Mon-Sun 22:00-24:00, Mon-Sun 00:00-07:00\n")
    said = simulate(w, 700, *config, env={"TZ": "Europe/Berlin"})
    session, = said["sessions"]
    assert session["first_warning"] == "2026-10-25T06:00:00Z"
    assert session["ended"] == "2026-10-25T06:20:00Z"  # the stages stay as far apart as the rule says
    holiday = conf(tmp_path, FAST + "[calendar]\nholidays = 2026-10-24 2026-10-25\n")
    assert simulate(w, 700, *holiday, env={"TZ": "Europe/Berlin"})["sessions_warned"] == 0


def test_a_final_notice_that_is_out_of_date_is_sent_again(world, tmp_path):
    """Quiet hours, or a limit, come between the final notice (minute 26) and the end (minute 31)."""
    w = world([Work(100, "alice", 0, "A" + "I" * 199), Work(200, "bob", 1, "A" + "I" * 199)], cards=3)
    loose = "[policy]\nbreaker_pct = 100\n"
    w.write(200)
    quiet = conf(tmp_path, FAST + loose + "[calendar]\nquiet_hours = Mon-Sun 08:28-09:00\n")
    for session in simulate(w, 200, *quiet, env={"TZ": "UTC"})["sessions"]:
        assert (session["warnings"], session["ended"]) == (4, iso(w.at(65)))
    short = conf(tmp_path, FAST + loose + "[calendar]\nquiet_hours = Mon-Sun 08:28-08:34\n")
    for session in simulate(w, 200, *short, env={"TZ": "UTC"})["sessions"]:
        assert (session["warnings"], session["ended"]) == (3, iso(w.at(34)))
    limit = simulate(w, 200, *conf(tmp_path, FAST + loose + "ends_per_hour = 1\n"))
    # Within the hour, bob is not told again and again.
    assert sorted((s["ended"], s["warnings"]) for s in limit["sessions"]) == [(iso(w.at(31)), 3), (iso(w.at(96)), 4)]


def test_passes_that_are_further_apart_than_the_final_notice(world, tmp_path):
    """A pass that comes in its time is not a reason for another notice."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99)])
    w.write(100)
    seldom = conf(tmp_path, FAST.replace("5m", "1m") + "[policy]\nevery = 5m\n")
    session, = simulate(w, 100, *seldom)["sessions"]
    assert (session["warnings"], session["ended"]) == (3, iso(w.at(40)))


def test_an_attempt_that_was_spared_does_not_count(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    config = conf(tmp_path, FAST + "[policy]\nends_per_hour = 1\n")
    for minute in 11, 21, 26:
        w.write(minute)
        assert w.run(minute, *config).returncode == 0

    def attempt(*steps):
        with sqlite3.connect(w.directory / "policy.db") as db:
            db.execute("DELETE FROM action WHERE user = 'bob'")
            for step in steps:
                db.execute("INSERT INTO action (at_ms, step, stage, mode, rule, session, kind, user, pids, cards, evidence,"
                           " result, config, actor) VALUES (?, ?, '', 'observe', '', 'x', '', 'bob', '', '', '', '', '', '')",
                           (w.at(25) * 1000, step))
        assert w.run(31, *config).returncode == 0
        return [row["step"] for row in w.log() if row["user"] == "alice"][3:]
    w.write(31)
    assert attempt("end") == attempt("end", "signal", "spared") == attempt("end", "spared", "end") == []
    assert attempt("end", "spared") == ["end"]


def test_an_exemption_that_comes_in_the_middle(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    exempt = "[exempt deadline]\nuser = alice\nowner = carol\nuntil = {}\n"
    for minute in range(10, 26):
        w.write(minute)
        assert w.run(minute, *conf(tmp_path, FAST)).returncode == 0
    for minute in range(26, 40):
        w.write(minute)
        assert w.run(minute, *conf(tmp_path, FAST + exempt.format("2026-11-04"))).returncode == 0
    assert [row["step"] for row in w.log()] == ["warn", "warn", "exempt"]
    expired = conf(tmp_path, FAST + exempt.format("2026-11-03"))
    assert w.run(39, *expired).returncode == 0
    assert [row["step"] for row in w.log()] == ["warn", "warn", "exempt", "warn"]
    said = gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(39)), *expired).stdout
    assert "no   [exempt deadline]: it has expired" in said


def test_warnings_wait_for_their_delivery(world, tmp_path):
    """A warning that nobody received delays everything after it."""
    config = conf(tmp_path, FAST + "level = warn\n[policy]\nmode = enforce\n[notices]\nchannels = command\n"
                  "command = /bin/false\ncommand_user = root\n")
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    for minute in (12, 25, 40):
        w.write(minute)
        result = w.run(minute, *config)
        assert result.returncode == 0, result.stderr
    assert [(row["step"], row["mode"]) for row in w.log()] == [("warn", "enforce")]
    said = gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(40)), *config).stdout
    assert "its last notice has not been delivered yet" in said


def test_a_notice_names_the_time_that_was_seen_idle(world, tmp_path):
    """From minute 6 on nobody saw the card for twelve minutes."""
    place = tmp_path / "motd"
    place.mkdir()
    config = conf(tmp_path, FAST + "level = warn\n[policy]\nmode = enforce\n[notices]\nchannels = login\n"
                  f"login_directory = {place}\n")
    w = world([Work(100, "alice", 0, "A" + "I" * 60)], blind={(0, i) for i in range(6, 18)})
    w.write(25)
    assert w.run(25, *config).returncode == 0
    assert "idle for 12 min" in (place / "alice").read_text()


def test_a_late_notice_names_times_to_come(world, tmp_path):
    """It can be delivered eight minutes after it was written."""
    place = tmp_path / "motd"
    config = conf(tmp_path, FAST + "level = warn\n[policy]\nmode = enforce\n[notices]\nchannels = login\n"
                  f"login_directory = {place}\n")
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    tries = []
    for minute in 12, 20:
        w.write(minute)
        assert w.run(minute, *config).returncode == 0
        place.mkdir(exist_ok=True)
        with sqlite3.connect(w.directory / "policy.db") as db:
            tries.append(db.execute("SELECT tries FROM notice").fetchone()[0])
            db.execute("UPDATE notice SET due_ms = 0")
    assert tries == [1, 2]
    text = (place / "alice").read_text()
    assert "idle for 19 min" in text, text
    assert time.strftime("another notice at %a %Y-%m-%d %H:%M", time.localtime(w.at(30))) in text, text


@ROOT_ONLY
def test_arm_disarm_and_whom_the_configuration_belongs_to(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    w.write(20)
    config = conf(tmp_path, FAST + "level = end\n[policy]\nmode = enforce\n")
    now = ("--db", w.db, "--now", iso(w.at(20)), "--utc")
    tmp_path.chmod(0o755)
    armed = gua("enforce", "arm", "--until", "2026-11-30", *now, *config)
    assert armed.returncode == 0 and "until Tue 2026-12-01 00:00 UTC" in armed.stdout
    assert "But" not in armed.stdout
    status = json.loads(gua("enforce", "status", *now, *config, "--json").stdout)
    assert status["armed_until"] == "2026-12-01T00:00:00Z" and status["config_untrusted"] is None
    tmp_path.chmod(0o777)
    status = json.loads(gua("enforce", "status", *now, *config, "--json").stdout)
    assert "can be written by others" in status["config_untrusted"]
    tmp_path.chmod(0o755)
    os.chown(tmp_path / "gua.conf", 1234, 0)
    assert "belongs to uid 1234" in gua("enforce", "status", *now, *config).stdout
    assert gua("enforce", "disarm", *now, *config).returncode == 0
    assert "armed      no" in gua("enforce", "status", *now, *config).stdout
    assert [row["step"] for row in w.log()] == ["armed", "disarmed"]
    assert all(row["actor"] for row in w.log())


def test_several_programs_make_the_file_at_once(world, tmp_path):
    """As the service and an administrator who arms it."""
    w = world([Work(100, "alice", 0, "I" * 9)])
    w.write(9)
    words = [GUA, "enforce", "arm", "--until", "1d", "--db", w.db, "--now", iso(w.at(9)), *conf(tmp_path, FAST)]
    for i in range(3):
        children = [subprocess.Popen([*map(str, words), "--policy-db", str(tmp_path / f"{i}.db")], env=clean_environment(),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(8)]
        ends = [(child.communicate(timeout=60)[1], child.returncode) for child in children]
        assert ends == [("", 0)] * 8


@ROOT_ONLY
def test_what_root_makes_belongs_to_the_service(world, tmp_path):
    """The service could not write it otherwise. A link is not followed."""
    w = world([Work(100, "alice", 0, "I" * 9)])
    w.write(9)
    place = tmp_path / "service"
    place.mkdir()
    os.chown(place, 1234, 1235)
    (place / "link.db").symlink_to(tmp_path / "elsewhere.db")
    arm = ("enforce", "arm", "--until", "1d", "--db", w.db, "--now", iso(w.at(9)), *conf(tmp_path, FAST), "--policy-db")
    assert gua(*arm, place / "policy.db").returncode == 0
    made = (place / "policy.db").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (1234, 1235, 0o640)
    assert gua(*arm, place / "link.db").returncode == 1 and not (tmp_path / "elsewhere.db").exists()


def test_short_times_are_said(world, tmp_path):
    """Sixty minutes are not 60s: such rules work, and the log and `arm` say what they do."""
    w = world([Work(100, "alice", 0, "A" + "I" * 9)])
    w.write(9)
    short = "[rule x]\nwarn = 60s\n[rule y]\nlevel = end\nfinal_notice = 1m\n[rule z]\nfinal_notice = 1m\n"
    for told in (w.run(9, *conf(tmp_path, short)).stderr,
                 gua("enforce", "arm", "--until", "7d", "--db", w.db, "--now", iso(w.at(9)), *conf(tmp_path, short)).stdout):
        assert "[rule x] warns sessions that are idle for less than 5 min" in told
        assert "[rule y] ends sessions less than 2 min after the final notice" in told
        assert "[rule z]" not in told
    assert w.run(9, *conf(tmp_path, FAST)).stderr == "gua: sessions that hold a card: 1, idle: 1; gua enforce log has the steps\n"


def test_the_configuration_is_read_again(world, tmp_path):
    """At SIGHUP: one with a fault, and one that has gone, are left alone; whose the new one is counts."""
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    w.write(25)
    late = FAST.replace("10m", "40m").replace("20m", "45m").replace("30m", "60m") + "[policy]\nevery = 1s\n"
    path = tmp_path / "etc" / "gua" / "gua.conf"
    path.parent.mkdir(parents=True)
    path.write_text(late)
    with open(tmp_path / "log", "w") as log:
        service = subprocess.Popen([BUILD / "gua", "enforce", "run", "--db", w.db, "--now", iso(w.at(25)), "--root", tmp_path],
                                   env=clean_environment(GUA_CONFIG="", HOME=tmp_path), stdin=subprocess.DEVNULL,
                                   stderr=log)
    said = (tmp_path / "log").read_text
    try:
        wait_for(lambda: (w.directory / "policy.db").exists() and "sessions" in gua("enforce", "status", "--db", w.db).stdout)

        def again(text, words):
            before = said().count(words)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
            service.send_signal(signal.SIGHUP)
            wait_for(lambda: said().count(words) > before, said)
        again("[rule x]\nwarn = soon\n", "stays in force")
        assert f"{path}:2:" in said()
        again(None, "stays in force")
        assert "is not there any more" in said() and w.log() == []
        again(late, "was read again")
        again(late.replace("40m", "10m"), "was read again")
        wait_for(w.log)
        assert [row["step"] for row in w.log()] == ["warn"]
        path.chmod(0o666)
        again(late + "mode = enforce\n", "gua.conf can be written by others than root" if os.geteuid() == 0 else "was read again")
        # What was read is what counts, not what the name means now.
        path.chmod(0o644)
        again(late + "mode = enforce\n", "was read again")
        path.write_text("[policy]\nmode = nonsense\n")
        time.sleep(1.5)
        assert service.poll() is None
    finally:
        service.terminate()
        assert service.wait(60) == 0, said()


@pytest.mark.parametrize("until, why", [("2026-11-03", "in the past"), ("2029-01-01", "within a year"),
                                        ("soon", "--until"), (None, "needs --until")])
def test_arm_refuses(world, until, why):
    w = world([Work(100, "alice", 0, "I" * 9)])
    w.write(9)
    result = gua("enforce", "arm", "--db", w.db, "--now", iso(w.at(9)), *(["--until", until] if until else []))
    assert result.returncode == 2 and why in result.stderr
    assert not (w.directory / "policy.db").exists()


def test_what_only_draws_is_exempt(world, tmp_path):
    """It is a holder only where the configuration says so."""
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    for kind, steps in (2, []), (3, ["warn"]):
        w.write(15)
        with sqlite3.connect(w.db) as db:
            db.execute("UPDATE holder SET kind = ?", (kind,))
        assert w.run(15, *conf(tmp_path, FAST)).returncode == 0
        assert [row["step"] for row in w.log()] == steps


@pytest.fixture
def kept(world, tmp_path):
    """A process of this test's own that holds a card, and what keeps it."""
    # Root's own processes are exempt.
    process = subprocess.Popen(["sleep", "300"], **({"user": 4000} if os.getuid() == 0 else {}))
    ticks = int(open(f"/proc/{process.pid}/stat").read().rsplit(")")[1].split()[19])
    w = world([Work(process.pid, "alice", 0, "A" + "I" * 60)])
    w.pid = process.pid

    def write(minute):
        w.write(minute)
        with sqlite3.connect(w.db) as db:
            db.execute("UPDATE process SET start_ticks = ?, uid = ?", (ticks, os.getuid() or 4000))
    w.write_kept = write

    def ask(uid=None, **more):
        request = {"pid": process.pid, "start_ticks": ticks, "for_ms": 60000, "reason": "x", "drop": False}
        path = w.directory / "keep" / f"{uid}-{process.pid}-1.json"
        path.write_text(json.dumps(dict(request, **more)))
        if uid is not None:
            os.chown(path, uid, uid)
    w.ask = ask

    def answer(uid):
        return json.loads((w.directory / "keep" / f"{uid}-{process.pid}.answer").read_text())
    w.answer = answer
    yield w
    process.kill()
    process.wait()


def test_a_user_keeps_a_session(kept, tmp_path):
    config = conf(tmp_path, FAST + "[policy]\nkeep_longest = 40m\n")
    kept.write_kept(15)
    assert kept.run(15, *config).returncode == 0
    spool = kept.directory / "keep"
    assert stat.S_IMODE(spool.stat().st_mode) == 0o3733
    asked = gua("keep", kept.pid, "--for", "20m", "--reason", "waiting for data", "--db", kept.db)
    assert asked.returncode == 0, asked.stderr
    for minute in range(16, 50):
        kept.write_kept(minute)
        assert kept.run(minute, *config).returncode == 0
    steps = [(row["at"], row["step"], row["evidence"]) for row in kept.log()]
    assert [step[1] for step in steps] == ["warn", "kept", "kept", "warn", "warn"]
    assert "waiting for data" in steps[1][2]
    # Kept until minute 36; then it begins again with the first warning.
    assert [step[0] for step in steps if step[1] == "warn"] == [iso(kept.at(15)), iso(kept.at(36)), iso(kept.at(46))]
    said = json.loads(gua("keep", "--json", "--db", kept.db).stdout)
    assert said["kept"][0]["kept"] is True and said["kept"][0]["reason"] == "waiting for data"
    assert gua("keep", "--drop", kept.pid, "--db", kept.db).returncode == 0
    kept.run(49, *config)
    assert "not kept any more" in gua("keep", "--db", kept.db).stdout
    assert list(spool.glob("*.json")) == []


def test_a_keep_follows_its_process(kept, tmp_path):
    """The name of the user, or of a notebook, becomes known later: the session has another name then."""
    config = conf(tmp_path, FAST)
    kept.write_kept(8)
    kept.run(8, *config)
    assert gua("keep", kept.pid, "--for", "20m", "--reason", "data", "--db", kept.db).returncode == 0

    def run(minute, change):
        kept.write_kept(minute)
        with sqlite3.connect(kept.db) as db:
            db.execute(f"UPDATE process SET {change}")
        assert kept.run(minute, *config).returncode == 0
    run(9, "user = 'uid:4000'")
    run(16, "user = 'bob'")
    run(20, "notebook = 'jupyter:1234'")
    assert [row["step"] for row in kept.log()] == ["kept"]
    run(35, "notebook = 'jupyter:1234'")
    assert [row["step"] for row in kept.log()] == ["kept", "warn"]


@ROOT_ONLY
def test_requests_of_others_and_other_files_are_refused(kept, tmp_path):
    config = conf(tmp_path, FAST)
    kept.write_kept(15)
    kept.run(15, *config)
    spool = kept.directory / "keep"
    kept.ask(uid=4321)
    secret = tmp_path / "secret"
    ticks = sqlite3.connect(kept.db).execute("SELECT start_ticks FROM process").fetchone()[0]
    secret.write_text(json.dumps({"pid": kept.pid, "start_ticks": ticks, "for_ms": 60000, "reason": "x"}))
    (spool / "0-1-1.json").symlink_to(secret)
    os.link(secret, spool / "0-2-1.json")
    os.mkfifo(spool / "0-3-1.json")
    (spool / "0-4-1.json").write_text("x" * 5000)
    (spool / "0-5-1.json").write_text('{"pid": -1}')
    assert kept.run(15, *config, timeout=20).returncode == 0
    assert [row["step"] for row in kept.log()] == ["warn"]
    assert secret.exists() and not list(spool.glob("*.json"))
    assert kept.answer(4321)["kept"] is False and "another user" in kept.answer(4321)["why"]


def test_nothing_is_in_the_way_of_a_request(kept, tmp_path):
    """Directories cannot be removed as files are; absurd lengths are not added to a moment; gua enforce reads requests
    as a user of its own."""
    config = conf(tmp_path, FAST)
    kept.write_kept(15)
    assert kept.run(15, *config).returncode == 0
    spool = kept.directory / "keep"
    for i in range(300):
        (spool / f"{i}.json").mkdir()
        if i < 40:    # these stay, and take no place of a request
            (spool / f"{i}.json" / "x").mkdir()
    for drop in False, True:
        kept.ask(for_ms=2**63 - 1, drop=drop)
        run = kept.run(15, *config)
        assert run.returncode == 0 and "removed" not in run.stderr
    assert gua("keep", kept.pid, "--for", "20m", "--reason", "data", "--db", kept.db).returncode == 0
    request, = [path for path in spool.glob("*.json") if path.is_file()]
    assert stat.S_IMODE(request.stat().st_mode) == 0o640 and request.stat().st_gid == spool.stat().st_gid
    assert kept.run(15, *config).returncode == 0
    assert kept.answer(os.getuid())["kept"] is True and not request.exists()


@ROOT_ONLY
def test_limits_of_keep(kept, tmp_path):
    config = conf(tmp_path, FAST + "[policy]\nkeep_longest = 10m\nkeep_per_week = 15m\n")
    kept.write_kept(15)
    for for_ms, why in ((660000, "for 10 min at most"), (600000, ""), (600000, "for 15 min in seven days")):
        kept.run(15, *config)
        kept.ask(uid=4000, for_ms=for_ms)
        kept.run(15, *config)
        assert kept.answer(4000)["kept"] is (why == "") and why in kept.answer(4000)["why"]
    kept.ask(uid=0, for_ms=86400000)
    kept.run(15, *config)
    assert kept.answer(0)["kept"] is True
    assert [row["actor"] for row in kept.log() if row["step"] == "kept" and "until" in row["evidence"]] == ["alice", "root"]


def test_the_report_says_what_was_done(world, tmp_path):
    """Six sessions stayed idle for 10 to 60 minutes longer than one that is ended after 30: the median is 40."""
    works = [Work(200 + i, "zoe", 1, "A" + "I" * (30 + 10 * i) + "-" * 200) for i in range(1, 7)]
    w = world([*works, Work(100, "alice", 0, "A" + "I" * 199)], cards=3)
    config = conf(tmp_path, FAST.replace("[rule all]", "[rule all]\nuser = alice"))
    for minute in (99, 109, 119, 129):
        w.write(minute)
        assert w.run(minute, *config).returncode == 0
    w.write(150)
    window = ("--db", w.db, "--now", iso(w.at(150)), "--last", "3h", "--utc")
    row, = json.loads(gua("report", *window, "--json").stdout)["policy"]
    assert (row["user"], row["mode"], row["warnings"], row["ended"], row["kept"]) == ("alice", "observe", 3, 1, 0)
    assert row["given_back_gpu_seconds"] is None  # no past spell was as long
    text = gua("report", *window).stdout
    assert "What was done" in text and "gua enforce would have sent 3 warnings and ended 1 session" in text
    assert "gua enforce would have sent 3 warnings" in gua("report", *window, "--digest").stdout
    assert "What was done" in gua("report", *window, "--format", "html").stdout
    assert "policy" not in json.loads(gua("report", *window, "--user", "zoe", "--json").stdout)
    (w.directory / "policy.db").unlink()
    assert "What was done" not in gua("report", *window).stdout


def test_given_back_is_the_median_of_what_was_left(world, tmp_path):
    works = [Work(200 + i, "zoe", 1, "A" + "I" * (30 + 10 * i) + "-" * 200) for i in range(1, 7)]
    w = world([*works, Work(100, "alice", 0, "A" * 99 + "I" * 101)], cards=3)
    config = conf(tmp_path, FAST.replace("[rule all]", "[rule all]\nuser = alice"))
    for minute in (109, 119, 124, 129):
        w.write(minute)
        assert w.run(minute, *config).returncode == 0
    w.write(150)
    report = json.loads(gua("report", "--db", w.db, "--now", iso(w.at(150)), "--last", "3h", "--json").stdout)
    assert report["policy"][0]["given_back_gpu_seconds"] == 40 * 60


@pytest.mark.parametrize("words, why", [
    ((), "say what to do"), (("fly",), "there is no 'gua enforce fly'"), (("explain",), "needs a pid"),
    (("explain", "x"), "'x' is not a pid"), (("log", "more"), "unexpected argument 'more'"),
    (("simulat",), "there is no 'gua enforce simulat'; did you mean 'simulate'?")])
def test_wrong_words(world, words, why):
    w = world([Work(100, "alice", 0, "I" * 9)])
    w.write(9)
    result = gua("enforce", *words, "--db", w.db)
    assert result.returncode == 2 and why in result.stderr


@pytest.mark.parametrize("text, why", [
    ("[rule x]\nwarn = 10ms\n", "out of range"), ("[rule x]\nkind = big\n", "interactive, batch and service"),
    ("[rule x]\nend = soon\n", "or never"), ("[exempt x]\nuntil = later\n", "a date as"),
    ("[policy]\nmode = kill\n", "mode")])
def test_wrong_rules(world, tmp_path, text, why):
    w = world([Work(100, "alice", 0, "I" * 9)])
    w.write(9)
    result = gua("enforce", "simulate", "--db", w.db, *conf(tmp_path, text))
    assert result.returncode == 2 and why in result.stderr, result.stderr


def test_two_services_do_not_work_on_one_file(world, tmp_path):
    w = world([Work(100, "alice", 0, "I" * 9)])
    w.write(9)
    import fcntl
    with open(f"{w.directory}/policy.db.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = w.run(9)
    assert result.returncode == 1 and "another 'gua enforce run'" in result.stderr

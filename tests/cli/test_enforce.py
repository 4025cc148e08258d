"""gua enforce and gua keep: the rules over a store that a test has made by hand, minute by minute."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import time

import pytest

from asking import ask as ask_service, service
from conftest import BUILD, GUA, clean_environment, gua, wait_for
from handmade import ACTIVE, ENDED_ACTIVE, ENDED_RELEASED, IDLE_HELD, Store

MINUTE = 60
START = 1793779200  # Wed 2026-11-04 08:00:00 UTC
GIB = 1 << 30
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def iso(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


class Work:
    """What one process does on one card: a letter a minute. A active, m moderate (7 %), l little (3 %), e encodes,
    I idle, u its use is not known, - absent."""

    def __init__(self, pid, user, card, does, memory=8 * GIB, **labels):
        self.pid, self.user, self.card, self.does, self.memory = pid, user, card, does, memory
        self.peak = None if memory is None else memory // 1024
        self.labels = labels


class World:
    """A host in which each process does what its letters say; `blind` are (card, minute) that nobody saw."""

    def __init__(self, directory, works, blind=(), start=START, cards=2, coarse=False):
        self.directory, self.works, self.blind, self.start, self.cards = directory, works, set(blind), start, cards
        self.coarse = coarse  # slots of five minutes, as after a day
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
            if letter in "Imleu":
                begin, end, seen = (i if begin is None else begin), i + 1, (0 if begin is None else seen) + 1
            elif begin is not None:
                found.append((begin, end, seen, ENDED_ACTIVE if letter == "A" else ENDED_RELEASED))
                begin = None
        return found + ([(begin, end, seen, None)] if begin is not None else [])

    def state_of(self, card, minute):
        return ACTIVE if any(work.card == card and work.does[minute:minute + 1] == "A" for work in self.works) else IDLE_HELD

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
                    store.usage(self.at(i), gpu, self.state_of(card, i), 60)
        for work in self.works:
            self.write_work(store, host, cards[work.card], work, n)
        if self.coarse:
            store.db.executescript("""
                INSERT INTO usage_5m SELECT slot / 300 * 300, gpu, state, sum(ms), sum(util_pct_ms), 0, 0, 0, 0
                FROM usage_1m GROUP BY 1, 2, 3;
                INSERT INTO holding_5m (slot, gpu, process, active_ms, idle_held_ms, truly_idle_ms, squatting_ms,
                active_double_ms, idle_held_double_ms, truly_idle_double_ms, squatting_double_ms, active_share_ms,
                idle_share_ms, sm_pct_ms, mem_peak_kib, engine_ms, own_use) SELECT slot / 300 * 300, gpu, process,
                sum(active_ms), sum(idle_held_ms), 0, 0, 0, 0, 0, 0, 0, 0, sum(sm_pct_ms), max(mem_peak_kib),
                sum(engine_ms), max(own_use & 255) + 256 * sum(own_use >> 8) FROM holding_1m GROUP BY 1, 2, 3;
                DELETE FROM usage_1m; DELETE FROM holding_1m""")
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
            busy = {"A": (60000, 90), "m": (0, 7), "l": (0, 3)}.get(work.does[i], (0, 0))
            store.insert("holding_1m", slot=self.at(i), gpu=gpu, process=process, active_ms=busy[0],
                         idle_held_ms=60000 - busy[0], truly_idle_ms=0, squatting_ms=0, active_double_ms=0,
                         idle_held_double_ms=0, truly_idle_double_ms=0, squatting_double_ms=0, active_share_ms=0,
                         idle_share_ms=0, sm_pct_ms=60000 * busy[1], mem_peak_kib=work.peak,
                         engine_ms=2000 if work.does[i] == "e" else 0, own_use=busy[1] + 256 * (60000 if work.does[i] == "u" else 0))
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
             Work(200, "bob", 1, "I" * 14 + "m" + "I" * 50 + "l" * 35, login="ssh"),
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
    assert "2 sessions held a card idle. The rules would have warned 2, with 2 notices, and ended 0" in text.stdout


def test_only_card_time_that_becomes_free_is_given_back(world, tmp_path):
    w = world([Work(1, "ann", 0, "A" + "I" * 99), Work(2, "bob", 0, "-" * 41 + "I" * 29 + "-" * 30),  # held by another
               Work(3, "carl", 1, "A" + "I" * 99), Work(4, "dan", 1, "-" * 10 + "A" + "I" * 89),     # both are ended
               Work(5, "eve", 2, "A" + "I" * 99), Work(6, "finn", 2, "-" * 50 + "AAA" + "-" * 47)],  # used for 3 minutes
              blind=[(2, minute) for minute in range(60, 65)], cards=4)
    w.write(100)
    config = conf(tmp_path, FAST + "[policy]\nbreaker_pct = 100\nends_per_hour = 100\n")
    said = simulate(w, 100, *config)
    found = {s["user"]: (s["ended"], (s["given_back_gpu_seconds"] or 0) / 60) for s in said["sessions"]}
    assert found == {"ann": (iso(w.at(31)), 40), "bob": (None, 0), "carl": (iso(w.at(31)), 0), "dan": (iso(w.at(41)), 59),
                     "eve": (iso(w.at(31)), 69 - 3 - 5)}
    assert said["given_back_gpu_seconds"] == sum(user["given_back_gpu_seconds"] for user in said["users"]) == 60 * 160


def test_sessions_warned_and_notices_sent_are_two_words(world, tmp_path):
    w = world([Work(1, "ann", 0, "A" + "I" * 25 + "A" + "I" * 73)])
    w.write(100)
    config = conf(tmp_path, FAST)
    said = simulate(w, 100, *config)
    user, session = said["users"][0], said["sessions"][0]
    assert (user["sessions_warned"], user["warnings"], session["warnings"]) == (1, 6, 6)
    assert (said["sessions_warned"], said["warnings"]) == (1, 6)
    text = gua("enforce", "simulate", "--db", w.db, "--now", iso(w.at(100)), "--since", iso(w.start), *config).stdout
    assert "warned 1, with 6 notices, and ended 1:" in text
    heads = re.findall(r"^ .*\n  (?:rule|user) .*", text, re.M)
    assert len(heads) == 3 and all("notices" in head and " sent " in head for head in heads)
    assert [head.count("warned") for head in heads] == [1, 1, 0]


@pytest.mark.parametrize("does,line,pct,engine", [
    ("A" + "m" * 60, "7 % of the multiprocessors; use counts from 5 % on", 7, False),
    ("A" * 20, "90 % of the multiprocessors; use counts from 5 % on", 90, False),
    ("A" + "e" * 60, "an encoder or decoder; any use of these counts", None, True)])
def test_explain_shows_the_use_that_reset_the_clock(world, tmp_path, does, line, pct, engine):
    w = world([Work(100, "alice", 0, does)])
    w.write(15)
    # Seen at the end of the slot, and within it.
    for now, begin, until in ((w.at(15), 14, "08:15"), (w.at(15) - 20, 14, "08:15"), (w.at(15) + 60, 14, "08:15")):
        words = ("enforce", "explain", "100", "--db", w.db, "--now", iso(now), "--utc", *conf(tmp_path, FAST))
        said, data = gua(*words).stdout, json.loads(gua(*words, "--json").stdout)
        assert f"  last use, between Wed 2026-11-04 08:{begin} UTC and Wed 2026-11-04 {until} UTC: {line}\n" in said, said
        assert (data["last_use"], data["last_use_sm_pct"], data["last_use_engine"]) == (iso(w.at(begin)), pct, engine)
    # What never used a card has no such line.
    w = world([Work(100, "alice", 0, "I" * 60)])
    w.write(15)
    assert "last use, between" not in gua(*words).stdout and json.loads(gua(*words, "--json").stdout)["last_use"] is None


def test_the_use_of_several_processes_is_named_as_their_sum(world, tmp_path):
    w = world([Work(pid, "alice", 0, "A" + "l" * 60, job="slurm:1") for pid in (100, 101)])
    w.write(15)
    words = ("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(15)), *conf(tmp_path, FAST))
    assert ": 6 % of the multiprocessors; use counts from 5 % on\n" in gua(*words).stdout


def test_moderate_use_counts_in_coarse_slots(world):
    """7 % is idle for the report and use for policy, beside real work in the same five minutes as well. Where in the
    slot it was is not stored, so it counts until the end."""
    made = world([Work(1, "ann", 0, "AAmmm" + "I" * 60), Work(2, "bob", 1, "AAIII" + "I" * 60)], coarse=True)
    made.write(65)
    config = conf(made.directory, FAST)
    ends = {s["user"]: s["idle_since"] for s in simulate(made, 65, *config)["sessions"]}
    assert ends == {"ann": iso(made.at(5)), "bob": iso(made.at(5))}


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
    assert "the idle clock is stopped" in explained


def test_nothing_is_judged_without_a_recorder(world, tmp_path):
    w = world([Work(100, "alice", 0, "A" + "I" * 60)])
    config = conf(tmp_path, FAST)
    w.write(20)
    assert w.run(40, *config).returncode == 0  # suspended, or the recorder was killed
    w.write(20, running=False)
    run = w.run(20, *config)
    assert run.returncode == 0 and "no session was judged: the recorder has written nothing" in run.stderr
    assert w.log() == []
    assert "the recorder has written nothing" in gua("enforce", "status", "--db", w.db).stdout


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
            assert "the idle clock is stopped" in said, said
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
    assert "yes  [rule alice]: warn after 15 min" in said and "[rule everybody]: not checked" in said
    data = json.loads(gua("enforce", "explain", "100", "--db", w.db, "--now", iso(w.at(20)), *config, "--json").stdout)
    assert data["rule"] == "alice" and data["idle_seconds"] == 19 * 60
    assert [rule["matches"] for rule in data["rules"]] == [False, True, True, True]


@ROOT_ONLY
def test_explain_names_the_stages_that_come(world, tmp_path):
    """Before, between and after stages; also what stands in the way."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99), Work(200, "bob", 1, "A" + "I" * 99, container="docker:1")])
    tmp_path.chmod(0o755)
    text = FAST + "level = end\n[policy]\nmode = enforce\n[notices]\nchannels = mail\nsendmail = {}\n"
    good, bad = text.format("/bin/true"), text.format("/bin/false")
    arm = ("enforce", "arm", "--until", "7d", "--db", w.db, "--now", iso(w.at(1)))
    assert gua(*arm, *conf(tmp_path, good)).returncode == 0

    def explain(minute, pid=100):
        said = gua("enforce", "explain", pid, "--db", w.db, "--now", iso(w.at(minute)), "--utc", *config)
        assert said.returncode == 0, said.stderr
        return [line.strip() for line in said.stdout.split("What happens\n")[1].splitlines()]

    def stages(*times):
        names = {10: "the first warning", 20: "the second warning", 25: "the final notice", 30: "the end"}
        return [f"{'then' if i else 'next'}: {names[idle]} at {idle} min of idle time: Wed 2026-11-04 08:{idle + 1} UTC, in "
                f"{wait} min, if it stays idle" for i, (idle, wait) in enumerate(times)]
    config = conf(tmp_path, good)
    w.write(5)
    assert explain(5) == ["stage: none yet", "nothing happens now: it has not been idle for long enough",
                          *stages((10, 6), (20, 16), (25, 21), (30, 26))]
    assert explain(5, 200)[2:] == [*stages((10, 6), (20, 16)), "then: nothing: the rule never ends a session of the kind 'service'"]
    for minute in 11, 12, 22, 23:
        w.write(minute)
        assert w.run(minute, *config).returncode == 0
    # Between two stages: that the second warning came a minute after its time delays nothing.
    said = explain(23)
    assert said[1] == "nothing happens now: it has not been idle for long enough"
    assert [re.sub(r" \d+ min| 08:\d+", "", line) for line in said[2:]] == [
        "next: the final notice at of idle time: Wed 2026-11-04 UTC, in, if it stays idle",
        "then: the end at of idle time: Wed 2026-11-04 UTC, in, if it stays idle"]
    final, end = (int(re.search(r"at (\d+) min", line)[1]) for line in said[2:])
    assert (final, end) == (25, 30)
    assert gua("enforce", "disarm", "--db", w.db, "--now", iso(w.at(23)), *config).returncode == 0
    assert explain(23)[1:] == ["nothing happens now: the rule does nothing further",
                               "next: nothing, until an administrator allows ending with 'gua enforce arm'"]
    (w.directory / "policy.db").unlink()
    config = conf(tmp_path, bad)
    assert w.run(23, *config).returncode == 0
    said = explain(23)
    assert said[0] == "stage: warning, since Wed 2026-11-04 08:23 UTC; not delivered yet"
    assert said[2:] == ["next: the second warning, 10 min after that notice is delivered",
                        "not delivered: mail: /bin/false ended with status 1"]


def what_happens(w, minute, pid, config):
    """The last part of gua enforce explain, without the last line, which is about the mode."""
    said = gua("enforce", "explain", pid, "--db", w.db, "--now", iso(w.at(minute)), "--utc", *config, env={"TZ": "UTC"})
    assert said.returncode == 0, said.stderr
    return [line.strip() for line in said.stdout.split("What happens\n")[1].splitlines()][:-1]


def test_explain_names_no_time_within_quiet_hours(world, tmp_path):
    """Each stage is as far from the one before as the rule says, wherever that one came to lie."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99)])
    config = conf(tmp_path, FAST + "[calendar]\nquiet_hours = Mon-Sun 08:05-08:40\n")
    moved = [f"{word}: {stage} at {idle} min of idle time: Wed 2026-11-04 {at} UTC, in {{}} min, if it stays idle"
             for word, stage, idle, at in (("next", "the first warning", 39, "08:40"), ("then", "the second warning", 49, "08:50"),
                                           ("then", "the final notice", 54, "08:55"), ("then", "the end", 59, "09:00"))]
    for minute, why in (3, "it has not been idle for long enough"), (15, "it is within quiet hours or on a holiday"):
        w.write(minute)
        assert what_happens(w, minute, 100, config) == [
            "stage: none yet", f"nothing happens now: {why}",
            *(line.format(at - minute) for line, at in zip(moved, (40, 50, 55, 60)))]


def test_explain_names_no_time_while_the_clock_stands(world, tmp_path):
    """Use that is not known is not said to be 0 %, and does not bring the next stage nearer."""
    w = world([Work(100, "alice", 0, "A" + "u" * 99), Work(200, "bob", 0, "A" + "I" * 11 + "u" * 99)])
    config = conf(tmp_path, FAST)
    w.write(33)
    explain = ("enforce", "explain", 100, "--db", w.db, "--now", iso(w.at(33)), *config)
    text = gua(*explain).stdout
    assert "  what it did in 32 min of that time is not known\n  it is idle below 5 %\n" in text, text
    assert json.loads(gua(*explain, "--json").stdout)["most_sm_pct"] is None
    stands = "nothing happens now: the driver does not report which process uses its card, so its idle clock is stopped"
    assert what_happens(w, 33, 100, config) == [
        "stage: none yet", stands, "next: the first warning at 10 min of idle time",
        "then: the second warning at 20 min of idle time", "then: the final notice at 25 min of idle time",
        "then: the end at 30 min of idle time"]
    assert what_happens(w, 33, 200, config) == [
        "stage: none yet", stands, "next: the first warning, as soon as this is over: it is already due"]


def test_every_exemption_that_holds_is_named(world, tmp_path):
    """Also in the first minutes of idle time, by which no process of the system may be warned."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99, posix_session=5), Work(101, "alice", 1, "A" + "I" * 99, posix_session=5)])
    config = conf(tmp_path, FAST.replace("warn = 10m", "warn = 1m") + "[exempt a]\nuser = al*\nowner = carol\nuntil = "
                  "2026-11-30\n[exempt b]\nuser = alice\nowner = dave\nuntil = 2026-11-29\n")
    w.write(3)
    with sqlite3.connect(w.db) as db:
        db.execute("UPDATE process SET uid = 33 WHERE pid = 101")
        db.execute("UPDATE holder SET kind = 2")
    explain = ("enforce", "explain", 100, "--db", w.db, "--now", iso(w.at(3)), *config)
    draws = "built-in: process {}: it uses the card for graphics only"
    holds = [draws.format(100), "built-in: process 101: its uid is below UID_MIN: it belongs to the system", draws.format(101),
             "[exempt a]: asked for by carol, until 2026-11-30", "[exempt b]: asked for by dave, until 2026-11-29"]
    assert json.loads(gua(*explain, "--json").stdout)["exemptions"] == holds
    text = gua(*explain).stdout
    assert all(f"  yes  {line}\n" in text for line in holds) and "no   built-in" not in text, text
    # Without those of the configuration, the built-in ones hold from the first minute on.
    assert w.run(3, *conf(tmp_path, FAST.replace("warn = 10m", "warn = 1m"))).returncode == 0
    assert w.log() == []


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


@pytest.mark.parametrize("unit, use, ended", [("cron.service", "batch", 1), ("crond.service", "batch", 1),
                                              ("ollama.service", "service", 0), ("xcron.service", "service", 0)])
def test_a_job_of_cron_is_batch(world, tmp_path, unit, use, ended):
    """cron leaves jobs of users in its own cgroup: they are the users', not the service."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99, unit=unit)])
    w.write(100)
    said = simulate(w, 100, *conf(tmp_path, FAST))
    assert [(s["use"], said["sessions_ended"]) for s in said["sessions"]] == [(use, ended)]


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


def test_limits_of_a_pass_an_hour_and_a_user(world, tmp_path):
    """Of six sessions, 30 % is one in a pass; the others follow, the longest idle first."""
    works = [Work(100 + i, f"user{i % 2}", i % 4, "A" * (3 - i % 3) + "I" * 99) for i in range(6)]
    w = world(works, cards=5)
    config = conf(tmp_path, FAST)
    w.write(100)
    said = simulate(w, 100, *config, "--set", "policy.ends_per_hour=100", "--set", "policy.ends_per_user=100")
    assert said["breaker_passes"] == 0 and said["breaker_since"] is None
    ended = sorted((s["ended"], s["session"].split()[1]) for s in said["sessions"])
    # Idle since minute 1 (102, 105), 2 (101, 104) and 3 (100, 103); the first ends at minute 31.
    assert ended == [(iso(w.at(31 + i)), pid) for i, pid in enumerate(("102", "105", "101", "104", "100", "103"))]
    for work in works:
        work.does = "A" + "I" * 99
    w.write(100)
    loose = ("--set", "policy.breaker_pct=100", "--set", "policy.ends_per_hour=3", "--set", "policy.ends_per_user=2")
    said = simulate(w, 100, *config, *loose)
    assert [user["sessions_ended"] for user in said["users"]] == [2, 2]
    ended = sorted(s["ended"] for s in said["sessions"] if s["ended"])
    assert ended == [iso(w.at(31))] * 3 + [iso(w.at(96))]  # with a new final notice, after an hour


def test_two_idle_sessions_of_one_user_do_not_stop_the_others(world, tmp_path):
    """On a small host they are a large part of all sessions; each is ended in its turn."""
    w = world([Work(100 + i, "mallory", i, "A" + "I" * 99) for i in range(2)] +
              [Work(200 + i, f"user{i}", 2 + i, "A" * 30 + "I" * 70) for i in range(4)], cards=6)
    config = conf(tmp_path, FAST + "[policy]\nends_per_hour = 100\nends_per_user = 1\n")
    w.write(100)
    ended = {s["session"].split()[1]: s["ended"] for s in simulate(w, 100, *config)["sessions"]}
    assert ended == {"100": iso(w.at(31)), "101": None, **{f"20{i}": iso(w.at(60 + i)) for i in range(4)}}


def test_the_breaker_stops_everything_until_it_is_released(world, tmp_path):
    """The clocks of two sessions say at minute 43 that they were idle since minute 1, not 30: nobody is warned or ended
    until somebody has looked. One session alone does not stop the others."""
    w = world([Work(100 + i, f"user{i}", i, "A" * 30 + "I" * 90) for i in range(2)] +
              [Work(200, "bob", 2, "A" * 36 + "I" * 90)], cards=4)
    config = conf(tmp_path, FAST + "[policy]\nends_per_hour = 100\n")
    common = ("--db", w.db, *config)

    def run(*minutes):
        for minute in minutes:
            w.write(minute)
            assert w.run(minute, *config).returncode == 0
        return [(row["step"], row["user"]) for row in w.log()]
    assert run(41, 42) == [("warn", "user0"), ("warn", "user1")]
    released = gua("enforce", "release", *common)
    assert released.returncode == 0 and released.stdout.startswith("Nothing to release"), released
    w.works[0].does = "A" + "I" * 119
    assert run(43) == [("warn", "user0"), ("warn", "user1"), ("warn", "user0")]
    w.works[0].does, w.works[1].does = "A" * 30 + "I" * 90, "A" * 30 + "I" * 90
    (w.directory / "policy.db").unlink()
    run(41, 42)
    w.works[0].does = w.works[1].does = "A" + "I" * 119
    stopped = ["stage: none yet", "nothing happens now: the breaker has stopped everything, until 'gua enforce release'"]
    assert run(43, 44)[2:] == [("breaker", "")]
    assert what_happens(w, 44, 200, config) == [*stopped, "next: the first warning at 10 min of idle time",
                                                "then: the second warning at 20 min of idle time",
                                                "then: the final notice at 25 min of idle time",
                                                "then: the end at 30 min of idle time"]
    assert run(48)[2:] == [("breaker", "")]    # bob's warning is held, too
    assert what_happens(w, 48, 200, config) == [*stopped, "next: the first warning, as soon as this is over: it is already due"]
    status = gua("enforce", "status", *common, "--now", iso(w.at(49)), "--utc").stdout
    assert status.startswith("STOPPED    since Wed 2026-11-04 08:43 UTC: the idle time of 2 sessions grew by more than "
                             "the time since the last pass: the data must be wrong"), status
    assert json.loads(gua("enforce", "status", *common, "--json").stdout)["stopped_since"] == iso(w.at(43))
    said = gua("enforce", "explain", "200", *common, "--now", iso(w.at(48)))
    assert "the breaker has stopped everything, until 'gua enforce release'" in said.stdout, said
    released = gua("enforce", "release", *common, "--now", iso(w.at(49)), "--utc")
    assert released.returncode == 0 and released.stdout.startswith("Released: sessions are warned and ended again"), released
    assert run(50)[3:] == [("resumed", ""), ("warn", "user0"), ("warn", "user1"), ("warn", "bob")]
    assert json.loads(gua("enforce", "status", *common, "--json").stdout)["stopped_since"] is None


def test_another_limit_of_use_does_not_trip_the_breaker(world, tmp_path):
    """By the new limit, both sessions were idle since minute 1, not 30: so they were, and the data are right. What does
    not fit to the same limit still stops everything."""
    w = world([Work(100 + i, f"user{i}", i, "A" + "m" * 29 + "I" * 90) for i in range(2)])
    for minute, limit in ((41, 5), (42, 5), (43, 10), (44, 10)):
        w.write(minute)
        assert w.run(minute, *conf(tmp_path, FAST.replace("[rule all]", f"[rule all]\nidle_below = {limit}", 1))).returncode == 0
    assert "breaker" not in [row["step"] for row in w.log()]
    w.works[0].does = w.works[1].does = "I" * 120
    w.start -= 600  # they came ten minutes earlier
    w.write(55)
    assert w.run(55, *conf(tmp_path, FAST.replace("[rule all]", "[rule all]\nidle_below = 10", 1))).returncode == 0
    assert w.log()[-1]["step"] == "breaker"


def test_an_end_is_never_earlier_than_the_final_notice_says(world, tmp_path):
    """The final notice came in minute 55, for minute 60. By the limit of minute 56 the session has been idle for longer."""
    w = world([Work(100, "alice", 0, "A" + "m" * 29 + "I" * 90)])
    for minute in (40, 50, 55, 56, 59, 60):
        w.write(minute)
        limit = 5 if minute < 56 else 10
        assert w.run(minute, *conf(tmp_path, FAST.replace("[rule all]", f"[rule all]\nidle_below = {limit}", 1))).returncode == 0
    assert [(row["step"], row["at"]) for row in w.log()] == [(step, iso(w.at(minute))) for step, minute in (
        ("warn", 40), ("warn", 50), ("warn", 55), ("end", 60))]


@pytest.mark.parametrize("pragma, words", [
    ("application_id = 0x47554150; PRAGMA user_version = 3", "was written by gua enforce before 0.1.0"),
    ("application_id = 0x47554150; PRAGMA user_version = 1", "was written by gua enforce before 0.1.0"),
    ("user_version = 2", "is not a policy database, or another version wrote it"),
])
def test_a_policy_db_of_another_version_is_refused(world, tmp_path, pragma, words):
    """By what reads it and by what writes it, with a sentence; the file stays as it is."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99)])
    config = conf(tmp_path, FAST)
    w.write(12)
    w.run(12, *config)
    path = w.directory / "policy.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        db.executescript(f"PRAGMA {pragma}")
    before = path.read_bytes()
    for run in (w.run(13, *config), gua("enforce", "log", "--db", w.db, *config)):
        assert run.returncode == 1 and f"policy.db {words}" in run.stderr
    assert path.read_bytes() == before


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
    """A pass that comes in its time is not a reason for another notice, and the end is not later than a pass."""
    w = world([Work(100, "alice", 0, "A" + "I" * 99)])
    w.write(100)
    seldom = conf(tmp_path, FAST.replace("5m", "1m") + "[policy]\nevery = 5m\n")
    session, = simulate(w, 100, *seldom)["sessions"]
    assert (session["warnings"], session["ended"]) == (3, iso(w.at(35)))


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


def test_users_that_cannot_be_reached_are_named(world, tmp_path):
    """By arm, status and doctor, with the channel that would reach them; nothing is said where one does."""
    w = world([Work(100, "alice", 0, "A" + "I" * 60, job="slurm:1")])
    text = FAST + "level = end\n[policy]\nmode = enforce\n[notices]\nsendmail = {}\nlogin_directory = " + str(tmp_path / "motd") + "\n"
    now = ("--db", w.db, "--now", iso(w.at(12)))
    missed = "users without a terminal cannot be reached ([notices] channels = terminal login), so nothing happens to their sessions; "

    def said(*more):
        config = conf(tmp_path, text.format(*more))
        arm = gua("enforce", "arm", "--until", "7d", *now, *config).stdout
        status = gua("enforce", "status", *now, *config).stdout
        doctor = gua("doctor", "--nvml", "/no/library", "--db", w.db, "--json", env={"GUA_CONFIG": str(config[1])}).stdout
        rows = [row for row in json.loads(doctor)["checks"] if row["check"] == "notices"]
        return arm, status, [(row["result"], row["text"]) for row in rows]
    w.write(12)
    assert w.run(12, *conf(tmp_path, text.format("/bin/true"))).returncode == 0
    for program, advice in (("/bin/true", "add mail there, or webhook or command"),
                            ("/no/mail", "add webhook or command there, or mail once /no/mail works: No such file or directory")):
        arm, status, doctor = said(program)
        assert f"But {missed}{advice}.\n" in arm and f"notices    {missed}{advice}\n" in status, (arm, status)
        assert doctor == [("warning", missed + advice)]
    assert "untold     slurm:1 of alice has not been told by terminal: alice has no terminal that accepts messages\n" in status, status
    arm, status, doctor = said("/bin/true\nchannels = mail")
    assert "reached" not in arm + status and doctor == [("ok", "gua enforce has a channel that reaches every user")]


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
    config = conf(tmp_path, FAST + "level = end\n[policy]\nmode = enforce\n[notices]\nchannels = mail\nsendmail = /bin/true\n")
    now = ("--db", w.db, "--now", iso(w.at(20)), "--utc")
    tmp_path.chmod(0o755)
    armed = gua("enforce", "arm", "--until", "2026-11-30", *now, *config)
    assert armed.returncode == 0 and "until Tue 2026-12-01 00:00 UTC" in armed.stdout
    assert "But" not in armed.stdout
    status = json.loads(gua("enforce", "status", *now, *config, "--json").stdout)
    assert status["armed_until"] == "2026-12-01T00:00:00Z" and status["config_untrusted"] is None
    tmp_path.chmod(0o777)
    status = json.loads(gua("enforce", "status", *now, *config, "--json").stdout)
    assert "users other than root can write to" in status["config_untrusted"]
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
    link = gua(*arm, place / "link.db")
    assert link.returncode == 1 and "it is a link; start the service" in link.stderr
    assert not (tmp_path / "elsewhere.db").exists()


def test_short_times_are_said(world, tmp_path):
    """Sixty minutes are not 60s: such rules work, and the log and `arm` say what they do."""
    w = world([Work(100, "alice", 0, "A" + "I" * 9)])
    w.write(9)
    short = ("[rule x]\nwarn = 60s\n[rule y]\nlevel = end\nfinal_notice = 1m\n[rule z]\nfinal_notice = 1m\n"
             "[rule late]\nend = 30m\n")
    for told in (w.run(9, *conf(tmp_path, short)).stderr,
                 gua("enforce", "arm", "--until", "7d", "--db", w.db, "--now", iso(w.at(9)), *conf(tmp_path, short)).stdout):
        assert "[rule x] warns about sessions that are idle for less than 5 min" in told
        assert "[rule y] ends sessions less than 2 min after the final notice" in told
        assert "[rule z]" not in told
        assert "[rule late] has its end at 30 min, but ends no session before 1 h 55 min" in told
    assert w.run(9, *conf(tmp_path, FAST)).stderr == "gua: sessions that hold a card: 1, idle: 1; gua enforce log has the steps\n"


@pytest.mark.waits
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
        again(late + "mode = enforce\n", "users other than root can write to" if os.geteuid() == 0 else "was read again")
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

    def ask(uid=None, what="keep", **more):
        request = {"ask": what, "pid": process.pid, "start_ticks": ticks, "for_ms": 60000, "reason": "x"}
        return ask_service(w.directory, uid=uid, **dict(request, **more))
    w.ask = ask
    w.service = lambda minute, *arguments: service(w.directory, w.db, iso(w.at(minute)), *arguments)
    yield w
    process.kill()
    process.wait()


def test_a_user_keeps_a_session(kept, tmp_path):
    config = conf(tmp_path, FAST + "[policy]\nkeep_longest = 40m\n")
    kept.write_kept(15)
    assert kept.run(15, *config).returncode == 0
    down = gua("keep", kept.pid, "--for", "20m", "--reason", "waiting for data", "--db", kept.db)
    assert down.returncode == 1 and down.stdout == ""
    assert f"gua enforce is not running here: nothing listens on {kept.directory}/enforce.sock" in down.stderr
    with kept.service(16, *config):
        asked = gua("keep", kept.pid, "--for", "20m", "--reason", "waiting for data", "--db", kept.db, "--utc")
        assert asked.returncode == 0 and asked.stdout.startswith(f"process {kept.pid}: kept until "), asked.stderr
        said = json.loads(gua("keep", "--json", "--db", kept.db).stdout)
        assert said == {"schema": "gua-keep-1", "kept": [{"pid": kept.pid, "lease": None, "kept": True, "until": iso(kept.at(36)),
                                                          "reason": "waiting for data", "why_not": None}]}
        long = gua("keep", kept.pid, "--for", "22d", "--reason", "x" * 127, "--db", kept.db)
        assert (long.returncode == 0) == (os.getuid() == 0)
        assert gua("keep", kept.pid, "--for", "20m", "--reason", "waiting for data", "--db", kept.db).returncode == 0
    assert not (kept.directory / "enforce.sock").exists()
    for minute in range(17, 50):
        kept.write_kept(minute)
        assert kept.run(minute, *config).returncode == 0
    steps = [(row["at"], row["step"], row["evidence"]) for row in kept.log() if "x" * 127 not in (row["evidence"] or "")]
    assert [step[1] for step in steps] == ["warn", "kept", "kept", "kept", "warn", "warn"]
    assert "waiting for data" in steps[1][2]
    # Kept until minute 36; then it begins again with the first warning.
    assert [step[0] for step in steps if step[1] == "warn"] == [iso(kept.at(15)), iso(kept.at(36)), iso(kept.at(46))]
    with kept.service(30, *config):
        assert gua("keep", "--drop", kept.pid, "--db", kept.db).stdout == f"process {kept.pid}: it is no longer kept\n"
        assert gua("keep", "--db", kept.db).stdout == "You keep no session.\n"


def test_a_keep_follows_its_process(kept, tmp_path):
    """The name of the user, or of a notebook, becomes known later: the session has another name then."""
    config = conf(tmp_path, FAST)
    kept.write_kept(8)
    kept.run(8, *config)
    with kept.service(9, *config):
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
def test_requests_of_others_are_refused(kept, tmp_path):
    config = conf(tmp_path, FAST)
    kept.write_kept(15)
    with kept.service(15, *config):
        for what in "keep", "drop":
            assert kept.ask(uid=4321, what=what) == {"ok": False, "why": "this process belongs to another user", "text": "",
                                                     "kept": []}
        assert kept.ask(uid=4321, start_ticks=1)["why"] == "this process holds no card at the recorder's last tick"
        other = kept.ask(uid=4321, what="explain")
        assert (other["ok"], other["text"]) == (False, "") and "of yours holds a card" in other["why"]
        assert kept.ask(uid=4000, what="list")["kept"] == []
        assert kept.ask(uid=4000)["ok"] and kept.ask(uid=4321, what="list")["kept"] == []
    assert [row["actor"] for row in kept.log() if row["step"] == "kept" and "until" in row["evidence"]] == ["alice"]


@ROOT_ONLY
def test_a_user_asks_why(kept, tmp_path):
    """Who may not read the store is told about sessions of their own, and of nobody else's rules."""
    config = conf(tmp_path, FAST + "[exempt thesis]\nuser = bob\nowner = carol\nuntil = 2099-12-31\n")
    kept.write_kept(15)
    kept.db.chmod(0o600)
    with kept.service(15, *config):
        words = ("enforce", "explain", kept.pid, "--db", "gua.db", "--config", "gua.conf")
        alice = {"user": 4000, "group": 4000, "extra_groups": [], "cwd": tmp_path}
        mine = gua(*words, **alice)
        assert mine.returncode == 0, mine.stderr
        assert "Session: process " in mine.stdout and "yes  [rule all]: warn after 10 min" in mine.stdout
        assert "What happens" in mine.stdout and "if it stays idle" in mine.stdout
        assert "thesis" not in mine.stdout and "default" not in mine.stdout and "bob" not in mine.stdout
        data = json.loads(gua(*words, "--json", **alice).stdout)
        assert data["rule"] == "all" and data["pid"] == kept.pid and [rule["rule"] for rule in data["rules"]][0] == "all"
        other = gua(*words, **dict(alice, user=4321, group=4321))
        assert other.returncode == 1 and other.stdout == "" and f"no process {kept.pid} of yours" in other.stderr
        assert "thesis" in gua(*words, cwd=tmp_path).stdout
    down = gua(*words, **alice)
    assert down.returncode == 1 and "gua enforce is not running here" in down.stderr


@ROOT_ONLY
def test_a_user_is_told_the_limit_of_the_rule(kept, tmp_path):
    """Use of 7 % in the last minutes is below the limit of the rule: who asks hears of it what the pass judges by."""
    config = conf(tmp_path, FAST.replace("[rule all]", "[rule all]\nidle_below = 10", 1))
    kept.works[0].does = "A" + "I" * 10 + "m" * 50
    kept.write_kept(15)
    kept.db.chmod(0o600)
    with kept.service(15, *config):
        words = ("enforce", "explain", kept.pid, "--db", "gua.db", "--config", "gua.conf", "--json")
        mine = json.loads(gua(*words, user=4000, group=4000, extra_groups=[], cwd=tmp_path).stdout)
        roots = json.loads(gua(*words, "--now", iso(kept.at(15)), cwd=tmp_path).stdout)
    assert (roots["idle_below_pct"], roots["idle_seconds"]) == (10, 14 * 60)
    assert (mine["idle_below_pct"], mine["idle_seconds"]) == (10, 14 * 60)


@ROOT_ONLY
def test_limits_of_keep(kept, tmp_path):
    config = conf(tmp_path, FAST + "[policy]\nkeep_longest = 10m\nkeep_per_week = 15m\n")
    kept.write_kept(15)
    with kept.service(15, *config):
        for for_ms, why in ((660000, "for 10 min at most"), (600000, ""), (600000, "for 15 min in seven days")):
            answer = kept.ask(uid=4000, for_ms=for_ms)
            assert answer["ok"] is (why == "") and why in answer["why"]
        assert kept.ask(uid=0, for_ms=86400000)["ok"]
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
    assert "What was done" in text and "gua enforce would have sent 3 notices and ended 1 session" in text
    assert "gua enforce would have sent 3 notices" in gua("report", *window, "--digest").stdout
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


def test_a_policy_file_without_tables_is_no_fault_of_status(tmp_path):
    """gua enforce run makes the file first and its tables a moment later."""
    (tmp_path / "gua.db").touch()
    (tmp_path / "policy.db").touch()
    told = json.loads(gua("enforce", "status", "--json", "--db", tmp_path / "gua.db").stdout)
    assert told["last_pass"] is None and told["sessions"] == []
    with contextlib.closing(sqlite3.connect(tmp_path / "policy.db")) as file:
        file.execute("CREATE TABLE session (key TEXT)")
    refused = gua("enforce", "status", "--db", tmp_path / "gua.db")
    assert refused.returncode == 1 and "is not a policy database" in refused.stderr

"""Idle spells against the truth of random scenarios, with recorders that are killed, stopped and started again."""
import os
import random
import signal
import sqlite3
import struct

import pytest

from conftest import BUILD, advance, gua
from handmade import VIEWS
from recorded import WALL, rows
from truth import Scenario

KILLER = BUILD / "tests" / "libkiller.so"
LEAST, LENGTH = 30, 900
SHARED = "SIM-2"
# What a moment can be off by, in seconds. Moments are kept in milliseconds; the edge of a burst of one or two samples
# (0.17 s each), whose level is not known, is off by up to a third of a sample.
EXACT = 0.06
# Who came or went between two glances did so in the middle.
GLANCE = 0.7
# Who of several computes is known by the drain.
DRAIN = 5.4
# What the driver has not given yet when a card is lost.
UNREAD = 5.4
# The first drain of a recorder is what the driver's ring holds.
RING = 10.2
CARDS = """
start 2026-11-02T08:00:00Z
driver 560.35.05
""" + "".join(f'card {i} uuid SIM-{i} name "Card {i}" memory 80GiB idle-power 50W max-power 400W\n' for i in range(3))


def life(rng, name, card, lost=None):
    """A process that holds, idles, computes, grows, releases, comes back, and exits or stays: (time, event).
    Nothing happens while the card is lost, nor shortly before, when nobody will know it, nor shortly after."""
    at, events, there = rng.uniform(0, 60), [], False

    def add(what):
        if not lost or at < lost[0] - UNREAD - 3 or at > lost[1] + 3:
            events.append((at, what))
            return True
        return False
    while at < LENGTH:
        what = rng.choice(["work", "work", "bursts", "grow", "release", "exit"]) if there else "hold"
        if what == "hold" or what == "grow":
            # Each size is there once: what one process frees and another takes at once, nobody notices.
            small = card < 2 and rng.random() < 0.3
            there |= add(f"hold {name} card {card} memory {40 if small else rng.randrange(101, 9000)}MB")
        elif what == "exit" and rng.random() < 0.3 and add(f"exit {name}"):
            return events
        elif what == "release":
            there &= not add(f"release {name} card {card}")
        elif what == "work" or (what == "bursts" and not lost):
            turn = " on 1500ms off 1s" if what == "bursts" else ""
            if add(f"load {name} card {card} sm {rng.randrange(35, 60)}{turn}"):
                at += rng.uniform(4, 40)
                while not add(f"load {name} card {card} sm 0"):
                    at += 10
        at += rng.choice([rng.uniform(5, 30), rng.uniform(30, 200)])
    return events


def random_scenario(seed):
    """Three cards; one is lost for a while, and one is shared by four processes."""
    rng = random.Random(seed)
    since = rng.uniform(100, 700)
    lost = (since, since + rng.uniform(15, 90))
    lines, events = [CARDS], [(since, f"lost card 1 until {lost[1]:.3f}s")]
    for p, card in enumerate([0, 1, 2, 2, 2, 2]):
        user = rng.choice(["ann", "ben", "cem"])
        lines.append(f"process p{p} pid {900 + p} user {user} uid {ord(user[0])} command p{p} started -1h")
        events += life(rng, f"p{p}", card, lost if card == 1 else None)
    lines += [f"at {int(at * 1000)}ms {what}" for at, what in sorted(events)]
    return "\n".join(lines) + "\n"


class Recorder:
    """A recorder in virtual time that is killed, stopped and started again."""

    def __init__(self, tmp_path, clock, text):
        self.clock, self.db, self.scenario = clock, tmp_path / "gua.db", tmp_path / "s.scenario"
        self.scenario.write_text(text)
        self.watched, self.totals, self.starts = {}, {}, []

    def now(self):
        """Seconds since the start of the scenario."""
        _, boot_us, offset_us, _ = struct.unpack("=8sqqq", self.clock.read_bytes())
        return (boot_us + offset_us) / 1e6 - WALL

    def command(self, *args):
        self.starts.append(self.now())
        return ["daemon", "--source", "sim", "--scenario", self.scenario, "--clock", self.clock, "--db", self.db,
                "--spell", f"{LEAST}s", "--retry", "1s", *args]

    def run(self, ticks):
        """Runs to the end."""
        done = gua(*self.command("--ticks", ticks))
        assert done.returncode == 0, done.stderr
        self.note()

    def kill(self, writes):
        """A recorder that is killed at that write to the store."""
        env = {"LD_PRELOAD": str(KILLER), "KILLER_WRITES": str(writes),
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        done = gua(*self.command("--ticks", 60), env=env)
        assert done.returncode == -signal.SIGKILL, done.stderr
        self.note()

    def note(self):
        """From when until when each card was accounted by the run that has ended."""
        for uuid, seen_ms, ms in rows(self.db, "SELECT uuid, coalesce(seen_ms, last_seen_ms), sum(ms)"
                                      " FROM gpu JOIN reading ON reading.gpu = gpu.id JOIN total_gpu ON gpu.id = total_gpu.gpu GROUP BY gpu.id"):
            end = seen_ms / 1000 - WALL
            length = ms / 1000 - self.totals.get(uuid, 0)
            self.totals[uuid] = ms / 1000
            # The moment of the first sample is cut to a millisecond, and must not be before the sample.
            self.watched.setdefault(uuid, []).append((end - length + 0.001, end, self.starts[-1]))

    def spells(self):
        """All spells, times in seconds of the scenario; the store has each once."""
        return spells_of(self.db)


def spells_of(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        found = [dict(row) for row in connection.execute("""
            SELECT uuid, command, begin_ms / 1000.0 - :wall AS begin, end_ms / 1000.0 - :wall AS end, how,
                (idle_held_ms + squatting_ms) / 1000.0 AS idle, squatting_ms / 1000.0 AS squatting, mem_peak_kib,
                (end_ms - begin_ms - idle_held_ms - squatting_ms) / 1000.0 AS unobserved, energy_mj FROM
                (SELECT gpu, process, begin_ms, end_ms, idle_held_ms, squatting_ms, mem_peak_kib, energy_mj,
                    CASE how_ended WHEN 0 THEN 'active' WHEN 1 THEN 'released' WHEN 2 THEN 'exited'
                    WHEN 3 THEN 'stopped' END AS how FROM spell)
            JOIN process ON process.id = process JOIN gpu ON gpu.id = gpu ORDER BY begin_ms""", {"wall": WALL})]
        connection.executescript(VIEWS)
        shown, = connection.execute("SELECT count(*) FROM idle_spells").fetchone()
    assert shown == len(found)
    return found


class Judge:
    """Compares what a recorder found with what is true."""

    def __init__(self, recorder, text):
        self.recorder, self.scenario = recorder, Scenario(text)
        times = recorder.watched[SHARED]
        self.pauses = [(before[1], after[2]) for before, after in zip(times, times[1:])]
        self.changes = [t / 1e6 for t in self.scenario.changes(LENGTH * 10**6)]
        self.lost, self.back = (
            [(event.at / 1e6, f"SIM-{event.words[1]}") for event in self.scenario.events if event.verb == verb]
            for verb in ("lost", "back-lost"))

    def slack(self, uuid, us):
        """How far the begin or end of a spell can be off."""
        moment = us / 1e6
        if any(abs(moment - at) < 0.2 and uuid == card for at, card in self.lost):
            return UNREAD
        if any(abs(moment - at) < 0.2 and uuid == card for at, card in self.back):
            return DRAIN
        if uuid == SHARED:
            return max([DRAIN, *(start - before + RING for before, start in self.pauses
                                 if before - DRAIN < moment < start + DRAIN)])
        return GLANCE if any(abs(moment - at) < 0.01 for at in self.changes) else EXACT

    def is_same(self, got, true):
        begin, end = self.slack(true.uuid, true.begin), self.slack(true.uuid, true.end)
        unread = sum(UNREAD for at, card in self.lost if card == true.uuid and true.begin / 1e6 < at < true.end / 1e6)
        return (got["command"], got["uuid"]) == (true.process, true.uuid) and \
            abs(got["begin"] - true.begin / 1e6) <= begin and abs(got["end"] - true.end / 1e6) <= end and \
            abs(got["idle"] - true.idle / 1e6) <= begin + end + unread and self.is_end(got["how"], true)

    def is_end(self, how, true):
        """At the end of a run it may be that nobody saw how it ended. Who exits soon after a release has exited."""
        cut = any(abs(true.end / 1e6 - until) < UNREAD for _, until, _ in self.recorder.watched[true.uuid])
        soon = how == "exited" and true.how == "released" and any(
            process == true.process and true.end < t < true.end + 60 * 10**6
            for t, process in self.scenario.exits(LENGTH * 10**6))
        return cut or soon or how == true.how

    def works(self, process, since, until):
        """Whether the process has a load at some time between the two."""
        loads = [event for event in self.scenario.events if event.verb == "load" and event.words[0] == process]
        ends = [event.at / 1e6 for event in loads[1:]] + [LENGTH]
        return any(event.at / 1e6 < until and since < end and event.words[4] != "0" for event, end in zip(loads, ends))

    def is_clear(self, process, uuid, begin, end):
        """Of the time in the ring it is known what a shared card did, and what each process did in the mean of it
        all: who computed a little may be taken for idle, and who computed at the end for busy all along."""
        return uuid != SHARED or not any(
            begin < start + DRAIN and before - DRAIN < end and self.works(process, start - RING, start)
            for before, start in self.pauses)

    def check(self):
        """Each true spell was recorded, and each recorded one is true; those of about LEAST may be either."""
        found, true = self.recorder.spells(), self.scenario.spells(self.recorder.watched, 1)
        for got in found:
            assert any(self.is_same(got, spell) for spell in true) or not self.is_clear(
                got["command"], got["uuid"], got["begin"], got["end"]), (got, self.recorder.watched)
        must = [spell for spell in true
                if spell.idle / 1e6 > LEAST + self.slack(spell.uuid, spell.begin) + self.slack(spell.uuid, spell.end)
                and self.is_clear(spell.process, spell.uuid, spell.begin / 1e6, spell.end / 1e6)]
        for spell in must:
            assert len([got for got in found if self.is_same(got, spell)]) == 1, (spell, self.recorder.watched)
        return len(must)


@pytest.mark.same_path
@pytest.mark.parametrize("seed", range(10))
def test_random_scenarios(tmp_path, clock_file, seed):
    rng = random.Random(1000 + seed)
    text = random_scenario(seed)
    recorder = Recorder(tmp_path, clock_file(WALL), text)
    recorder.kill(rng.randrange(60, 250))
    advance(recorder.clock, rng.choice([0, 4, 45]))
    if rng.random() < 0.5:
        recorder.run(rng.randrange(1, 8))
    else:
        recorder.kill(rng.randrange(20, 150))
    advance(recorder.clock, rng.choice([0, 4, 45]))
    recorder.run(int(LENGTH - recorder.now()) // 30)
    assert Judge(recorder, text).check() > 3


@pytest.mark.same_path
@pytest.mark.parametrize("seed", range(100, 104))
def test_random_scenarios_without_a_pause(tmp_path, clock_file, seed):
    text = random_scenario(seed)
    recorder = Recorder(tmp_path, clock_file(WALL), text)
    recorder.run(LENGTH // 30)
    assert Judge(recorder, text).check() > 3


ALONE = CARDS + """
process book pid 900 user ann uid 1000 command "python -m ipykernel_launcher" started -1h
at 0s hold book card 0 memory 2GiB
at 60s load book card 0 sm 50
at 90s load book card 0 sm 0
"""


def test_energy_and_memory(tmp_path, clock_file):
    """A process that is alone has all of the card's idle-held energy."""
    recorder = Recorder(tmp_path, clock_file(WALL), ALONE + "at 200s hold book card 0 memory 3GiB\n")
    recorder.run(20)
    first, second = recorder.spells()
    assert (first["how"], second["how"]) == ("active", "stopped")
    assert (first["mem_peak_kib"], second["mem_peak_kib"]) == (2 << 20, 3 << 20)
    for spell in first, second:
        assert abs(spell["energy_mj"] - 50 * 1000 * spell["idle"]) < 0.01 * spell["energy_mj"]
    (known,), = rows(recorder.db, "SELECT sum(energy_mj) FROM usage WHERE state = 1"),
    assert abs(first["energy_mj"] + second["energy_mj"] - known[0]) <= 2


def test_no_energy_is_not_zero(tmp_path, clock_file):
    silent = "".join(f"at 0s fail {call} code 3\n"
                     for call in ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage"))
    recorder = Recorder(tmp_path, clock_file(WALL), ALONE + silent)
    recorder.run(20)
    assert [spell["energy_mj"] for spell in recorder.spells()] == [None, None]


def test_the_rule_is_stored_with_the_run(tmp_path, clock_file):
    recorder = Recorder(tmp_path, clock_file(WALL), ALONE)
    recorder.run(2)
    assert rows(recorder.db, "SELECT spell_ms FROM run") == [(LEAST * 1000,)]
    done = gua("daemon", "--spell", "0.5s", "--db", tmp_path / "x.db")
    assert done.returncode == 2 and "--spell" in done.stderr

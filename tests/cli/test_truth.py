"""The recorder against the truth of random scenarios, through both faces of the engine."""
import random
import sqlite3
import statistics

import pytest

from conftest import gua
from fake import fake_driver
from judge import Store
from lives import DRIVERS, make_lives, scenario
from truth import Scenario

WALL = 1793606400
TICKS, INTERVAL = 20, 30
STATES = ["active", "idle_held", "truly_idle", "unobserved"]
# Moments are kept in milliseconds: each change of state can be off by one.
CLOSE = 0.1
# Between two glances: a second and a fifth at most, of which the middle counts.
EDGE = 0.65
# Where use begins just before that of another process, its level is not known.
LEVEL = 0.003


def random_scenario(seed):
    """Four cards, five people, processes that come, go, compute in bursts and hold. Bursts below half a second read low:
    gua(1), DEFINITIONS, sample."""
    rng = random.Random(seed)
    lines = ["start 2026-11-02T08:00:00Z", "driver 560.35.05"]
    cards = range(4)
    lines += [f'card {i} uuid GPU-{i} name "Card {i}" memory 80GiB idle-power 50W max-power 400W' for i in cards]
    people = ["ann", "ben", "cem", "dot", "eve"]
    for p in range(12):
        kind = rng.choice(["compute", "compute", "compute", "graphics", "both"])
        lines.append(f"process p{p} pid {4194200 + p} user {people[p % 5]} uid {1000 + p % 5} command c{p} kind {kind}")
    events = []
    for p in range(12):
        on = sorted(rng.sample(range(0, TICKS * INTERVAL, 7), 6))
        card = rng.choice(cards)
        size = rng.choice(["40MB", "90MB", "101MB", "8GiB", "unknown"])
        events.append((on[0], f"hold p{p} card {card} memory {size}"))
        events.append((on[1], f"load p{p} card {card} sm {rng.randrange(1, 60)}"))
        events.append((on[2], f"load p{p} card {card} sm {rng.randrange(20, 90)} on {rng.randrange(5, 15)}00ms off 1s"))
        events.append((on[3], f"load p{p} card {card} sm 0"))
        events.append((on[4], f"hold p{p} card {card} memory 2GiB"))
        events.append((on[5], rng.choice([f"exit p{p}", f"release p{p} card {card}"])))
    events.append((rng.randrange(600), f"load card {rng.choice(cards)} util 30"))
    lines += [f"at {t}s {what}" for t, what in sorted(events)]
    return "\n".join(lines) + "\n"


def recorded(db):
    """Seconds of cards and users by state, shares, millijoules, and how unsure each card is."""
    with sqlite3.connect(db) as connection:
        cards = {}
        for uuid, state, ms in connection.execute(
                "SELECT uuid, state, ms FROM total_gpu JOIN gpu ON gpu.id = gpu"):
            cards.setdefault(uuid, dict.fromkeys(STATES, 0))[STATES[state]] += ms / 1000
        users = {}
        for user, state, ms in connection.execute("SELECT user, state, presence_ms FROM total_user"):
            users.setdefault(user, {})[state] = ms / 1000
        shares, = connection.execute("SELECT sum(share_ms) / 1000.0 FROM total_user").fetchone()
        energy = dict(connection.execute(
            "SELECT uuid, sum(energy_mj) FROM total_gpu JOIN gpu ON gpu.id = gpu GROUP BY uuid"))
        unsure = dict(connection.execute(
            "SELECT uuid, (sum(unsure_ms) + sqrt(sum(unsure_ms2))) / 1000.0 FROM usage JOIN gpu ON gpu.id = gpu"
            " GROUP BY uuid"))
    return cards, users, shares, energy, unsure


def compare(db, truth, edges, with_users):
    """A card is as exact as the store says; a user is off by at most half a glance per edge."""
    cards, users, shares, energy, unsure = recorded(db)
    for uuid, states in truth.cards.items():
        for state in STATES:
            assert abs(cards[uuid][state] - states[state]) <= unsure[uuid] + CLOSE + LEVEL * states["active"], \
                (uuid, state, cards[uuid], states)
        assert unsure[uuid] <= edges[uuid] * EDGE + CLOSE, (uuid, unsure[uuid], edges[uuid])
        joules = sum(truth.energy_mj[uuid].values())
        assert abs(energy[uuid] - joules) <= 1000 + joules / 10_000, uuid
    if not with_users:
        return
    slack = CLOSE + EDGE * sum(edges.values())
    for user, states in truth.users.items():
        mine = users[user]
        # Who computes is found from the means of drains, and not for processes that only draw: active and squatting
        # together are exact. test_users_of_shared_cards judges them apart.
        assert abs(mine.get(1, 0) - states["idle_held"]) <= slack, (user, mine, states)
        assert abs(mine.get(2, 0) - states["truly_idle"]) <= slack, (user, mine, states)
        assert abs(mine.get(0, 0) + mine.get(3, 0) - states["active"] - states["squatting"]) <= slack
    held = sum(card["active"] + card["idle_held"] for card in truth.cards.values())
    assert shares <= held + sum(unsure.values()) + CLOSE


def edges_of(text):
    """How often a process comes, goes or changes its memory on each card; an exit may be on any card."""
    found = {f"GPU-{i}": 1 for i in range(4)}
    for line in text.splitlines():
        words = line.split()
        if words[0] == "at" and words[2] in ("hold", "release", "exit"):
            for uuid in [f"GPU-{words[5]}"] if "card" in words else found:
                found[uuid] += 1
    return found


@pytest.mark.same_path
@pytest.mark.parametrize("seed", range(6))
def test_simulated_source(tmp_path, seed):
    text = random_scenario(seed)
    (tmp_path / "s.scenario").write_text(text)
    run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual",
              "--db", tmp_path / "gua.db", "--ticks", TICKS)
    assert run.returncode == 0, run.stderr
    compare(tmp_path / "gua.db", Scenario(text).truth(0, TICKS * INTERVAL), edges_of(text), True)


@pytest.mark.same_path
@pytest.mark.parametrize("seed", range(6, 10))
def test_real_driver_interface(tmp_path, clock_file, seed):
    text = random_scenario(seed)
    clock = clock_file(WALL)
    env = fake_driver(tmp_path, text, clock=clock)
    run = gua("daemon", "--clock", clock, "--db", tmp_path / "gua.db", "--ticks", TICKS, env=env)
    assert run.returncode == 0, run.stderr
    # The scenario's pids are nobody's here, so that users cannot be told; cards can.
    compare(tmp_path / "gua.db", Scenario(text).truth(0, TICKS * INTERVAL), edges_of(text), False)


@pytest.mark.same_path
@pytest.mark.parametrize("seed", [201, 202, 205])
def test_users_of_shared_cards(tmp_path, seed):
    """An hour of random lives of five users on four cards. The driver reports the use of a process as one mean since a
    moment; asked for several moments of a drain, it shows who stops or begins, also on a full card. Begins and ends of
    holding are known to half a second, and here no process is seen to exit: that leaves some seconds for each user."""
    lives = make_lives(seed, 3600, 72)
    text = "start 2026-11-02T08:00:00Z\n" + scenario(lives, DRIVERS["full"], real=False)
    # A process starts some time before it has memory.
    text += "".join(f"at {life.start}ms load {life.key} card {life.card} sm 0\n" for life in lives)
    (tmp_path / "s.scenario").write_text(text)
    run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual",
              "--db", tmp_path / "gua.db", "--ticks", 120)
    assert run.returncode == 0, run.stderr
    store, truth = Store(tmp_path / "gua.db"), Scenario(text).truth(0, 3600)
    errors = {(user, state): store.presence(user, [state]) - truth.users[user][state]
              for user in truth.users for state in ("active", "idle_held", "truly_idle", "squatting")}
    assert max(map(abs, errors.values())) <= 4, errors
    assert statistics.mean(map(abs, errors.values())) <= 0.9, errors


@pytest.mark.same_path
@pytest.mark.parametrize("period, held", [(30, 7), (30, 25), (5, 2), (1, 0.4), (29, 10)])
def test_jobs_in_step_with_ticks_are_seen_as_others_are(tmp_path, period, held):
    """A process that holds for `held` of every `period` seconds, for an hour: 30 s and 5 s are the steps of
    ticks and drains, and jobs in step with them used to be seen always or never."""
    text = "\n".join([
        "start 2026-11-02T08:00:00Z", f"repeat {period}s",
        'card 0 uuid GPU-0 name "Card 0" memory 80GiB idle-power 50W max-power 400W',
        "process job pid 4194200 user ann uid 1000 command job started -1h",
        "at 0s hold job card 0 memory 8GiB",
        f"at {int(held * 1000)}ms release job card 0"]) + "\n"
    (tmp_path / "s.scenario").write_text(text)
    run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual",
              "--db", tmp_path / "gua.db", "--ticks", 120)
    assert run.returncode == 0, run.stderr
    cards, users, _, _, unsure = recorded(tmp_path / "gua.db")
    true = 3600 * held / period
    if period > 1:  # in step with glances, errors depend on each other for minutes
        assert abs(cards["GPU-0"]["idle_held"] - true) <= unsure["GPU-0"] + CLOSE
    # What is shorter than a glance is seen by chance, and is right in the mean.
    assert abs(cards["GPU-0"]["idle_held"] - true) <= max((0.08 if period == 1 else 0.03) * true, 3), (cards, true)
    assert abs(users["ann"][1] - cards["GPU-0"]["idle_held"]) <= 1


@pytest.mark.same_path
@pytest.mark.parametrize("on, off", [(2, 8), (3, 4), (1, 1)])
def test_the_energy_of_bursts_is_not_that_of_the_time_between(tmp_path, on, off):
    text = "\n".join([
        "start 2026-11-02T08:00:00Z",
        'card 0 uuid GPU-0 name "Card 0" memory 80GiB idle-power 50W max-power 400W',
        "process job pid 4194200 user ann uid 1000 command job started -1h",
        "at 0s hold job card 0 memory 8GiB", "at 20s hold job card 0 memory 9GiB",
        f"at 20s load job card 0 sm 100 on {on}s off {off}s"]) + "\n"
    (tmp_path / "s.scenario").write_text(text)
    run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual",
              "--db", tmp_path / "gua.db", "--ticks", 20)
    assert run.returncode == 0, run.stderr
    with sqlite3.connect(tmp_path / "gua.db") as connection:
        mj, ms = connection.execute("SELECT sum(energy_mj), sum(ms - energy_unknown_ms) FROM usage WHERE state = 1").fetchone()
    assert abs(mj / ms - 50) <= 1.5

"""The recorder against the truth of random scenarios, through both faces of the engine."""
import random
import sqlite3

import pytest

from conftest import gua
from fake import fake_driver
from truth import Scenario

WALL = 1793606400
TICKS, INTERVAL = 20, 30
STATES = ["active", "idle_held", "truly_idle", "unobserved"]
# Moments are kept in milliseconds: each change of state can be off by one.
CLOSE = 0.1


def random_scenario(seed):
    """Four cards, five people, processes that come, go, compute in bursts and hold."""
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
        events.append((on[2], f"load p{p} card {card} sm {rng.randrange(20, 90)} on {rng.randrange(1, 9)}00ms off 1s"))
        events.append((on[3], f"load p{p} card {card} sm 0"))
        events.append((on[4], f"hold p{p} card {card} memory 2GiB"))
        events.append((on[5], rng.choice([f"exit p{p}", f"release p{p} card {card}"])))
    events.append((rng.randrange(600), f"load card {rng.choice(cards)} util 30"))
    lines += [f"at {t}s {what}" for t, what in sorted(events)]
    return "\n".join(lines) + "\n"


def recorded(db):
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
    return cards, users, shares, energy


def compare(db, truth, with_users):
    cards, users, shares, energy = recorded(db)
    for uuid, states in truth.cards.items():
        for state in STATES:
            assert abs(cards[uuid][state] - states[state]) <= CLOSE, (uuid, state, cards[uuid], states)
        used = sum(truth.energy_mj[uuid].values())
        assert abs(energy[uuid] - used) <= 0.01 * used + 400_000 * CLOSE
    if not with_users:
        return
    for user, states in truth.users.items():
        mine = users[user]
        # Who computes is known per drain, not per sample: active and squatting together are exact.
        assert abs(mine.get(1, 0) - states["idle_held"]) <= CLOSE, (user, mine, states)
        assert abs(mine.get(2, 0) - states["truly_idle"]) <= CLOSE, (user, mine, states)
        assert abs(mine.get(0, 0) + mine.get(3, 0) - states["active"] - states["squatting"]) <= CLOSE
    held = sum(card["active"] + card["idle_held"] for card in truth.cards.values())
    assert shares <= held + CLOSE


@pytest.mark.parametrize("seed", range(6))
def test_simulated_source(tmp_path, seed):
    text = random_scenario(seed)
    (tmp_path / "s.scenario").write_text(text)
    run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual",
              "--db", tmp_path / "gua.db", "--ticks", TICKS)
    assert run.returncode == 0, run.stderr
    end = TICKS * INTERVAL
    compare(tmp_path / "gua.db", Scenario(text).truth(0, end, range(0, end, INTERVAL)), True)


@pytest.mark.parametrize("seed", range(6, 10))
def test_real_driver_interface(tmp_path, clock_file, seed):
    text = random_scenario(seed)
    clock = clock_file(WALL)
    env = fake_driver(tmp_path, text, clock=clock)
    run = gua("daemon", "--clock", clock, "--db", tmp_path / "gua.db", "--ticks", TICKS, env=env)
    assert run.returncode == 0, run.stderr
    end = TICKS * INTERVAL
    # The scenario's pids are nobody's here, so that users cannot be told; cards can.
    compare(tmp_path / "gua.db", Scenario(text).truth(0, end, range(0, end, INTERVAL)), False)


def states_of(text):
    """The states of the first second: of the card, of users, of processes."""
    truth = Scenario("card 0 uuid GPU-0 name A memory 80GiB\n" + text).truth(0, 1)
    return [{who: max(states, key=states.get) for who, states in level.items()}
            for level in (truth.cards, truth.users, truth.processes)]


PEOPLE = """
process train pid 1 user ann
process notebook pid 2 user ann
process other pid 3 user ben
"""


@pytest.mark.parametrize("events, expected", [
    # Idle beside a busy one of the same user: the process is idle, the user is not.
    (["hold train card 0 memory 4GB", "load train card 0 sm 80", "hold notebook card 0 memory 4GB"],
     [{"GPU-0": "active"}, {"ann": "active"}, {"train": "active", "notebook": "idle_held"}]),
    # Idle beside somebody else's busy one.
    (["hold train card 0 memory 4GB", "load train card 0 sm 80", "hold other card 0 memory 40MB"],
     [{"GPU-0": "active"}, {"ann": "active", "ben": "squatting"}, {"train": "active", "other": "squatting"}]),
    # Together they hold what counts as held.
    (["hold train card 0 memory 60MB", "hold other card 0 memory 60MB"],
     [{"GPU-0": "idle_held"}, {"ann": "idle_held", "ben": "idle_held"},
      {"train": "idle_held", "other": "idle_held"}]),
    # Each uses a little, together they keep the card active.
    (["hold train card 0 memory 4GB", "load train card 0 sm 6", "hold other card 0 memory 4GB",
      "load other card 0 sm 6"],
     [{"GPU-0": "active"}, {"ann": "active", "ben": "active"}, {"train": "active", "other": "active"}]),
])
def test_states_on_three_levels(events, expected):
    assert states_of(PEOPLE + "".join(f"at 0s {event}\n" for event in events)) == expected

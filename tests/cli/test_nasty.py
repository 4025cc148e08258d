"""The recorder against lives that are hard to record, in virtual time: ten minutes on twelve cards. `make truth`
plays hours of it, and with real processes."""
import statistics

import pytest

from judge import CARD, Figure, judge_slots, table
from lives import DRIVERS, GIB, PLAIN, Life, Setting, make_lives
from nasty import NASTY, interruptions, nasty_lives
from recording import VIRTUAL_START, record_virtually
from virtual import Virtual, is_possible

SECONDS, SEED = 600, 21


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    lives = nasty_lives(SEED, SECONDS)
    db = record_virtually(tmp_path_factory.mktemp("nasty"), lives, NASTY, DRIVERS["full"], SECONDS)
    return judge_slots(db, lives, DRIVERS["full"], NASTY, VIRTUAL_START, SECONDS)


def test_energy_of_idle_held_time(figures):
    """Cards draw 60 W while they are held and 35 W while they are empty, and cool down after use."""
    energy = next(figure for figure in figures if "energy" in figure.name)
    assert energy.ok and energy.true > 0, table(figures)


def test_the_stated_uncertainty_covers_the_error_and_is_not_wide(figures):
    cards = [figure for figure in figures if figure.kind == CARD]
    assert len(cards) == NASTY.cards
    assert sum(figure.ok for figure in cards) >= NASTY.cards - 1, table(figures)
    error = statistics.median(abs(figure.error) for figure in cards)
    assert statistics.median(figure.goal for figure in cards) <= max(1, 5 * error), table(figures)


def test_states_of_all_cards(figures):
    for figure in figures:
        if figure.name in ("active", "idle_held", "truly_idle"):
            assert abs(figure.error) <= 0.02 * figure.true, table(figures)


def test_a_driver_without_a_ring_of_samples(tmp_path):
    """An hour of random lives: a reading is a mean, so that use seems longer than it is unless that is accounted for."""
    driver, lives = DRIVERS["no-samples"], make_lives(31, 3600, 72)
    found = judge_slots(record_virtually(tmp_path, lives, PLAIN, driver, 3600), lives, driver, PLAIN, VIRTUAL_START, 3600)
    assert all(figure.ok for figure in found if figure.kind == CARD), table(found)
    assert all(abs(figure.error) <= 0.005 * figure.true for figure in found if figure.name == "idle_held"), table(found)


@pytest.mark.skipif(not is_possible(), reason="only root may have a /proc of its own")
def test_a_recorder_that_was_stopped(tmp_path):
    """Processes exit while it is stopped, and one takes and gives back memory all the time."""
    stops = [(20 + 12.3 * i, 22.2 + 12.3 * i + 5 * (i % 3 == 2), "stop") for i in range(9)]
    lives = []
    for card, (begin, end, _) in enumerate(stops):
        exits = begin + 0.11 * card * (end - begin)
        lives.append(Life(f"p{card}", 0, card, 1000, round(1000 * exits), False, events=[(2550, "hold", GIB)]))
    lives.append(Life("away", 1, 9, 1000, 140000, False, events=[
        (at + later, verb, size) for at in range(3000, 130000, 4100) for later, verb, size in
        ((0, "hold", GIB), (1900, "release", None))]))
    db = Virtual(tmp_path / "play", lives, Setting(cards=10)).run(135, stops)
    found = judge_slots(db, lives, DRIVERS["full"], Setting(cards=10), VIRTUAL_START, 135)
    assert all(figure.ok for figure in found if figure.kind == CARD), table(found)


def test_a_store_has_whole_milliseconds():
    assert Figure("held all the time", 60, 59.9996, goal=0).ok and not Figure("", 60, 59.998, goal=0).ok


def test_lives_come_from_their_seed():
    assert nasty_lives(1, 120) == nasty_lives(1, 120) != nasty_lives(2, 120)
    assert interruptions(1, 600) == interruptions(1, 600)
    assert {how for _, _, how in interruptions(1, 3600)} == {"stop", "kill"}

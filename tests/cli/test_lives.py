"""The recorder against the truth of real processes that come and go: a minute of lives, a recorder with
default options for each kind of driver. `make truth` plays hours of it."""
import pytest

from judge import GOALS_SHORT, table
from lives import DRIVERS, GIB, make_lives, scenario
from recording import Play, recorders
from truth import Scenario

pytestmark = pytest.mark.waits

SECONDS = 60
SEED, LIVES = 3, 24


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """What each kind of driver led to: {driver: figures}."""
    play = Play(tmp_path_factory.mktemp("lives"), make_lives(SEED, SECONDS, LIVES), recorders())
    play.run(SECONDS)
    assert not play.faults()
    return dict(play.judge(GOALS_SHORT))


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_store_is_true(judged, driver):
    assert all(figure.ok for figure in judged[driver]), "\n" + table(judged[driver])


def test_lives_are_of_all_sorts():
    lives = make_lives(SEED, SECONDS, LIVES)
    lengths = [life.end - life.start for life in lives]
    assert min(lengths) < 5000 and any(5000 < ms < 30000 for ms in lengths) and max(lengths) > 30000
    assert {life.card for life in lives} == {0, 1, 2, 3} and len({life.user for life in lives}) == 5
    assert any(life.killed for life in lives) and any(life.pid_of for life in lives)
    assert any(verb == "release" for life in lives for _, verb, _ in life.events)
    assert any(value > GIB for life in lives for _, verb, value in life.events if verb == "hold")
    truth = Scenario(scenario(lives, DRIVERS["full"])).truth(0, SECONDS)
    assert sum(states["idle_held"] for states in truth.cards.values()) > SECONDS / 2


def test_lives_come_from_their_seed():
    assert make_lives(1, 600, 20) == make_lives(1, 600, 20) != make_lives(2, 600, 20)

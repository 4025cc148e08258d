"""The readings of the last tick in the store: each card's, unknown where the driver says nothing, and who came when."""
import pytest

from conftest import wait_for
from recorded import ONE_CARD, TWO_CARDS, WALL, background, record, rows  # noqa: F401

READINGS = ("SELECT idx, (at_ms - {wall}000) / 1000.0, round(util_pct, 1), mem_used_bytes, round(power_w, 1), power_limit_w,"
            " temperature_c, idle_held_since_ms - {wall}000 FROM reading JOIN gpu ON gpu.id = gpu ORDER BY idx"
            ).format(wall=WALL)
HELD = TWO_CARDS + """
process train pid 100 user alice uid 1000 command "python3 train.py"
at 0s hold train card 0 memory 8GiB
at 100s load train card 0 sm 80
at 160s load train card 0 sm 0
"""


def readings(run):
    return rows(run.db, READINGS)


def test_each_tick_replaces_the_readings(record):
    run = record(HELD, "--interval", "10s", "--ticks", 15)
    first, second = readings(run)
    index, at, util, used, power, limit, celsius, since = first
    assert index == 0 and 150 <= at < 151
    assert util == pytest.approx(80, abs=1) and used >= 8 << 30
    assert 300 < power < 400 and limit == 400 and celsius > 30
    assert since is None
    assert second[2] == 0 and second[7] is None and second[3] < 1 << 30


@pytest.mark.waits
def test_the_second_tick_has_readings_too(background):
    """The look at the start does not stand for the look before the next tick."""
    run = background(HELD, "--interval", "1s")
    first = readings(run)[0]
    wait_for(lambda: readings(run)[0][1] > first[1], lambda: readings(run))
    assert readings(run)[0][3] == first[3] and readings(run)[0][6] is not None


def test_idle_held_since(record):
    run = record(HELD, "--interval", "10s", "--ticks", 10)
    assert readings(run)[0][7] == pytest.approx(0, abs=1000)
    # The next recorder goes on, because it comes at once; activity ends it.
    run = record(HELD, "--interval", "10s", "--ticks", 4, at=103)
    assert readings(run)[0][7] is None
    run = record(HELD, "--interval", "10s", "--ticks", 10, at=200)
    began = readings(run)[0][7]
    assert 189900 <= began <= 200500
    run = record(HELD, "--interval", "10s", "--ticks", 3, at=305)
    assert readings(run)[0][7] == began
    # After a pause nobody knows what happened in it.
    run = record(HELD, "--interval", "10s", "--ticks", 3, at=400)
    assert readings(run)[0][7] >= 385000


def test_a_lost_card_has_no_readings(record):
    run = record(HELD + "at 20s lost card 0\n", "--interval", "10s", "--ticks", 6)
    first, second = readings(run)
    assert first[2:] == (None,) * 6 and 60 <= first[1] < 61
    assert second[3] is not None


def test_what_the_driver_does_not_report_is_unknown(record):
    missing = ["nvmlDeviceGetTemperature", "nvmlDeviceGetEnforcedPowerLimit",
               "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues",
               "nvmlDeviceGetSamples"]
    run = record(ONE_CARD, "--interval", "10s", "--ticks", 6, missing=missing)
    (_, at, _, used, power, limit, celsius, _), = readings(run)
    assert (power, limit, celsius) == (None, None, None) and used is not None


def test_users_get_places_in_the_order_in_which_they_come(record, tmp_path):
    scenario = tmp_path / "two.scenario"
    scenario.write_text(ONE_CARD + """
process a pid 101 user zoe uid 1001 command "a"
process b pid 102 user adam uid 1002 command "b"
at 0s hold a card 0 memory 1GiB
at 40s hold b card 0 memory 1GiB
""")
    run = record(ONE_CARD, "--ticks", 3, "--source", "sim", "--scenario", scenario)
    assert rows(run.db, "SELECT user, place FROM identity ORDER BY place") == [("zoe", 1), ("adam", 2)]
    first = dict(rows(run.db, f"SELECT user, (first_ms - {WALL}000) / 1000 FROM identity"))
    assert first["zoe"] <= 1 and first["adam"] == 60
    moved = dict(rows(run.db, f"SELECT user, max(moved_ms - {WALL}000) / 1000 FROM total_user GROUP BY user"))
    assert moved == {"zoe": 90, "adam": 90}

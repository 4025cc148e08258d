"""The real driver's source, through the fake library: each fallback and each fault by itself."""
import os
import sqlite3

import pytest

from conftest import gua
from fake import calls, fake_driver
from readings import WALL, Paused, readings

TWO_CARDS = """
driver 550.54.15 nvml 12.550.54.15
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 40GB reserved 600MB idle-power 100W max-power 300W
card 1 uuid GPU-bbbb name "NVIDIA RTX 3090" memory 24GB
process train pid 1001
process note pid 1002
at 0s hold train card 0 memory 10GB
at 0s load train card 0 sm 80
at 0s hold note card 0 memory 2GB
at 0s hold note card 1 memory 1GB
"""
ONE_CARD = """
driver 550.54.15 nvml 12.550.54.15
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 40GB reserved 600MB idle-power 100W max-power 300W
"""


@pytest.fixture
def driver(tmp_path, clock_file):
    """driver(SCENARIO, missing=[...]) makes the environment; calls are logged to tmp_path/log."""
    def make(scenario, **options):
        return fake_driver(tmp_path, scenario, clock=clock_file(WALL), log=tmp_path / "log", **options)
    return make


def names(tmp_path, card=None):
    """Names of the calls that were made, of one card or of all."""
    return [name for _, name, unit, _ in calls(tmp_path / "log") if card in (None, unit)]


# ---- utilisation ----

def test_each_sample_of_the_ring_is_given_once_in_order(driver):
    run = readings(driver(TWO_CARDS), "+10000 drain +5000 drain +5000 drain facilities")
    stamps = [sample[0] for line in run.of("drain") for sample in line["cards"][0]["samples"]]
    assert stamps == sorted(set(stamps))
    assert len(stamps) == 20 * 6
    assert {sample[1] for sample in run.card("drain")["samples"]} == {80}
    assert run.card("drain")["util_kind"] == "ring"
    assert [row["how"] for row in run.facility("utilisation")] == ["nvmlDeviceGetSamples"]


def test_a_ring_larger_than_the_buffer_is_read_whole(driver):
    scenario = ONE_CARD + "samples-per-second 50\nring 30s\nat 0s load card 0 util 40\n"
    run = readings(driver(scenario), "+30000 drain")
    assert len(run.card("drain")["samples"]) == 30 * 50


@pytest.mark.parametrize("how", ["missing", "not supported"])
def test_without_a_ring_the_rates_are_polled(driver, tmp_path, how):
    scenario, missing = TWO_CARDS, ["nvmlDeviceGetSamples"]
    if how == "not supported":
        scenario, missing = TWO_CARDS + "at 0s fail nvmlDeviceGetSamples code 3\n", []
    run = readings(driver(scenario, missing=missing), "+10000 drain +5000 drain +5000 drain facilities")
    for number, line in enumerate(run.of("drain")):
        assert line["cards"][0]["util_kind"] == "polled"
        assert line["cards"][0]["samples"] == [[(WALL + 10 + 5 * number) * 1_000_000, 80]]
    row, = run.facility("utilisation")
    assert row["fallback"] and row["works"] and row["how"] == "nvmlDeviceGetUtilizationRates"
    assert run.stderr.count("utilisation on GPU 0 by nvmlDeviceGetUtilizationRates") == 1
    # What is not supported is asked once a card, not each drain.
    assert names(tmp_path).count("nvmlDeviceGetSamples") == (2 if how == "not supported" else 0)


def test_a_ring_that_stands_still_is_helped_out_by_one_polled_reading(driver):
    scenario = TWO_CARDS + "at 12s fail nvmlDeviceGetSamples code 6 until 17s\n"
    run = readings(driver(scenario), "+10000 drain +5000 drain facilities +5000 drain")
    first, still, after = (line["cards"][0] for line in run.of("drain"))
    assert (first["util_kind"], still["util_kind"], after["util_kind"]) == ("ring", "polled", "ring")
    assert still["samples"] == [[(WALL + 15) * 1_000_000, 80]]
    assert after["samples"][0][0] > still["samples"][0][0]
    # It is for this drain only: the ring is still the way.
    assert [row["how"] for row in run.facility("utilisation")] == ["nvmlDeviceGetSamples"]
    assert "utilisation" not in run.stderr


def test_utilisation_that_is_not_supported_is_unknown_at_each_drain_and_glance(driver):
    run = readings(driver(TWO_CARDS, missing=["nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates"]),
                   "+10000 drain +2000 glance +3000 drain facilities")
    assert run.card("drain")["util_kind"] == "unknown"
    assert [line["cards"][0]["samples"] for line in run.of("drain")] == [
        [[(WALL + 10) * 1_000_000, None]], [[(WALL + 12) * 1_000_000, None], [(WALL + 15) * 1_000_000, None]]]
    row, = run.facility("utilisation")
    assert not row["works"]


def test_utilisation_that_fails_is_none(driver):
    scenario = TWO_CARDS + ("at 12s fail nvmlDeviceGetSamples code 999 until 17s\n"
                            "at 12s fail nvmlDeviceGetUtilizationRates code 999 until 17s\n")
    run = readings(driver(scenario), "+10000 drain +5000 drain +5000 drain")
    _, failed, after = (line["cards"][0] for line in run.of("drain"))
    assert (failed["util_kind"], failed["samples"]) == ("none", [])
    assert len(after["samples"]) == 10 * 6  # the ring has them still
    assert after["uses"] == [[1001, (WALL + 20) * 1_000_000, 80]]


def test_glances_poll_where_there_is_no_ring(driver):
    scenario = TWO_CARDS + "at 12s load train card 0 sm 20\nat 14s load train card 0 sm 80\n"
    run = readings(driver(scenario, missing=["nvmlDeviceGetSamples"]),
                   "glance +10000 drain +2500 glance +2500 drain" + " +100 glance" * 70 + " drain")
    drains = [line["cards"][0] for line in run.of("drain")]
    assert [card["util_kind"] for card in drains] == ["polled"] * 3
    assert drains[1]["samples"] == [[(WALL * 10 + 125) * 100_000, 20], [(WALL + 15) * 1_000_000, 80]]
    stamps = [stamp for stamp, _ in drains[2]["samples"]]
    assert len(stamps) == 64 and stamps == sorted(stamps)
    assert stamps[-1] == (WALL + 22) * 1_000_000


def test_glances_do_not_poll_where_the_ring_runs(driver, tmp_path):
    readings(driver(TWO_CARDS), "+10000 drain +1000 glance +1000 glance +3000 drain")
    assert "nvmlDeviceGetUtilizationRates" not in names(tmp_path)


def test_glances_poll_while_the_ring_is_dry(driver):
    scenario = TWO_CARDS + "at 12s fail nvmlDeviceGetSamples card 0 code 6 until 22s\n"
    run = readings(driver(scenario), "+10000 drain +5000 drain +1000 glance +4000 drain",
                   "+1000 glance +4000 drain +1000 glance +4000 drain")
    kinds = [line["cards"][0]["util_kind"] for line in run.of("drain")]
    assert kinds == ["ring", "polled", "polled", "ring", "ring"]
    polled, back, after = (line["cards"][0]["samples"] for line in run.of("drain")[2:])
    assert polled == [[(WALL + 16) * 1_000_000, 80], [(WALL + 20) * 1_000_000, 80]]
    assert back[0][0] > (WALL + 20) * 1_000_000 and len(back) >= 5 * 6
    assert [stamp for stamp, _ in back] == sorted(stamp for stamp, _ in back)
    assert len(after) == 5 * 6


def test_the_ring_is_discovered(driver, tmp_path):
    scenario = ONE_CARD + "samples-per-second 5\nring 14s\nat 0s load card 0 util 40\n"
    run = readings(driver(scenario), "+20000 drain +5000 drain" + " +5000 drain" * 12)
    assert [line["ring_us"] for line in run.of("drain")[:2]] == [0, 14_000_000]
    assert run.of("drain")[0]["period_us"] == 200_000
    assert all(len(line["cards"][0]["samples"]) == 25 for line in run.of("drain")[1:])
    asked = [(at, text.split()[1]) for at, name, _, text in calls(tmp_path / "log")
             if name == "nvmlDeviceGetSamples"]
    assert [at for at, since in asked if since == "last=0"] == [20, 25, 55, 85]


def test_a_ring_that_was_started_just_now_is_not_taken_for_a_short_one(driver):
    run = readings(driver(ONE_CARD + "ring 12s\n"), "+2000 drain +2000 drain" + " +5000 drain" * 8)
    spans = [line["ring_us"] for line in run.of("drain")]
    assert spans[0] == spans[1] == 0  # it grew in between
    assert spans[-1] == pytest.approx(12_000_000, rel=0.01)


def test_a_drain_that_comes_too_late_says_what_was_lost(driver):
    run = readings(driver(TWO_CARDS), "+10000 drain +5000 drain +20000 drain +20000 drain +5000 drain")
    lost = [line["cards"][0]["lost"] for line in run.of("drain")]
    assert lost == [0, 0, 60, 60, 0]
    assert run.stderr.count("card 0: 60 samples were lost") == 1


def test_stamps_that_count_from_boot(driver, tmp_path):
    scenario = TWO_CARDS + "stamps boot\n"
    run = readings(driver(scenario), "+10000 drain look +5000 drain step+7000 +5000 drain")
    for number, line in enumerate(run.of("drain")):
        card, now = line["cards"][0], WALL + 10 + 5 * number + 7 * (number == 2)
        assert len(card["samples"]) == (60 if number == 0 else 30)
        assert card["samples"][-1] == [now * 1_000_000, 80]
        assert card["uses"] == [[1001, now * 1_000_000, 80]]
    # It is asked by its own clock, which is at an hour when the scenario begins.
    asked = [int(text.split("last=")[1].split()[0]) for _, name, card, text in calls(tmp_path / "log")
             if name == "nvmlDeviceGetProcessUtilization" and card == 0]
    assert asked == [0, 3610_000_000, 3615_000_000]


def test_stamps_that_count_from_boot_without_a_ring(driver):
    run = readings(driver(TWO_CARDS + "stamps boot\n", missing=["nvmlDeviceGetSamples"]),
                   "+10000 drain look +5000 drain +5000 drain")
    assert run.card("drain")["uses"] == [[1001, (WALL + 20) * 1_000_000, 80]]


def test_a_clock_step_forward_is_not_a_loss(driver):
    run = readings(driver(TWO_CARDS), "+10000 drain +5000 drain step+3600000 +5000 drain +5000 drain")
    assert [line["cards"][0]["lost"] for line in run.of("drain")] == [0] * 4


def test_a_clock_that_is_set_back_does_not_make_every_sample_old(driver):
    run = readings(driver(TWO_CARDS), "+10000 drain step-3600000 +5000 drain +5000 drain")
    _, stepped, after = (line["cards"][0] for line in run.of("drain"))
    now = (WALL + 20 - 3600) * 1_000_000
    assert len(after["samples"]) == 5 * 6
    assert all(now - 5_000_000 <= stamp <= now for stamp, _ in after["samples"])
    assert all(stamp <= now - 5_000_000 for stamp, _ in stepped["samples"])  # none from the future
    assert after["uses"] == [[1001, now, 80]]


def test_a_clock_that_is_set_back_does_not_make_the_ring_short(driver):
    run = readings(driver(TWO_CARDS), "+10000 drain" + " +5000 drain" * 6 + " step-3600000" + " +5000 drain" * 9)
    spans = {line["ring_us"] for line in run.of("drain")}
    assert max(spans) == pytest.approx(10_000_000, rel=0.01) and min(spans - {0}) == max(spans)
    assert run.of("drain")[-1]["ring_us"] and not any(line["cards"][0]["lost"] for line in run.of("drain"))


# ---- process utilisation ----

def test_process_utilisation_and_its_idle_answer(driver):
    scenario = TWO_CARDS + "at 12s load train card 0 sm 0\n"
    run = readings(driver(scenario), "+10000 drain +5000 drain +15000 drain +5000 drain")
    busy, _, _, idle = (line["cards"][0] for line in run.of("drain"))
    assert busy["uses_known"] and [use[0] for use in busy["uses"]] == [1001]
    assert busy["uses"][0][2] == 80
    assert idle["uses_known"] and idle["uses"] == []
    assert run.of("drain")[0]["cards"][1]["uses_known"]  # NOT_FOUND from the start: idle, not unknown


def asked_since(tmp_path, call="nvmlDeviceGetProcessUtilization"):
    """From when on process utilisation of card 0 was asked, in seconds after WALL."""
    texts = [text for _, name, card, text in calls(tmp_path / "log") if name == call and card == 0]
    stamps = [int(text.split("last=")[1].split()[0]) for text in texts]
    return [stamp and stamp / 1e6 - WALL for stamp in stamps]


def test_process_utilisation_is_of_the_time_of_the_samples(driver, tmp_path):
    """After a pause of all processes it is not a mean over the pause."""
    scenario = TWO_CARDS + "at 10500ms load train card 0 sm 0\nat 40s load train card 0 sm 90\n"
    run = readings(driver(scenario), "+10000 drain look" + " +5000 drain" * 7)
    assert asked_since(tmp_path) == [0, 10, 15, 20, 25, 30, 35, 40]
    assert run.card("drain")["uses"][0][2] == 90


def test_without_a_ring_process_utilisation_is_asked_from_the_drain_before(driver, tmp_path):
    readings(driver(TWO_CARDS, missing=["nvmlDeviceGetSamples"]),
             "+10000 drain +2000 glance +3100 drain +5000 drain")
    assert asked_since(tmp_path) == pytest.approx([0, 10, 15.1])


def test_garbage_records_are_dropped(driver):
    scenario = TWO_CARDS + "at 0s garbage card 0\nat 0s garbage card 1\n"
    run = readings(driver(scenario), "+10000 drain look +5000 drain")
    card, other = run.of("drain")[-1]["cards"]
    assert card["uses"] == [[1001, (WALL + 15) * 1_000_000, 80]]
    assert other["uses_known"] and other["uses"] == []


def test_a_process_that_started_since_the_last_look_is_not_taken_for_garbage(driver, tmp_path):
    scenario = TWO_CARDS + ("process late pid 1003\nat 12s hold late card 1 memory 1GB\n"
                            "at 12s load late card 1 sm 30\n")
    run = readings(driver(scenario), "+10000 drain look +5000 drain look +5000 drain")
    before, started, listed = (line["cards"][1] for line in run.of("drain"))
    assert [use[0] for use in started["uses"]] == [1003]
    assert [card["stranger"] for card in (before, started, listed)] == [False, True, False]
    # A drain does not read the lists: that is left to the caller.
    assert names(tmp_path, 1).count("nvmlDeviceGetComputeRunningProcesses_v2") == 2


def test_a_stranger_that_a_look_does_not_find_is_garbage(driver):
    scenario = TWO_CARDS + "at 12s garbage card 1\n"
    run = readings(driver(scenario), "+10000 look drain +5000 drain +5000 drain look +5000 drain look",
                   "+5000 drain")
    cards = [line["cards"][1] for line in run.of("drain")]
    assert [card["stranger"] for card in cards] == [False, True, True, False, False]
    assert [[use[0] for use in card["uses"]] for card in cards] == [[], [4100001], [4100001], [], []]


@pytest.mark.parametrize("fault", ["fail nvmlDeviceGetProcessUtilization card 0 code 6",
                                   "zero-use card 0 call nvmlDeviceGetProcessUtilization"])
def test_use_of_zero_for_all_on_a_busy_card_is_asked_by_the_other_call(driver, tmp_path, fault):
    scenario = TWO_CARDS + f"at 0s {fault}\n"
    run = readings(driver(scenario), "+10000 look drain +5000 drain +5000 drain facilities")
    assert [use[0::2] for use in run.card("drain")["uses"]] == [[1001, 80]]
    assert all(line["cards"][0]["uses_known"] for line in run.of("drain"))
    assert names(tmp_path, 0).count("nvmlDeviceGetProcessUtilization") == 1  # the other is kept to
    rows = {row["how"]: row["note"] for row in run.facility("process utilisation")}
    assert rows == {"nvmlDeviceGetProcessUtilization": "GPU 1", "nvmlDeviceGetProcessesUtilizationInfo": "GPU 0"}


def test_use_of_zero_for_all_by_both_calls_is_unknown(driver):
    scenario = TWO_CARDS + ("at 0s fail nvmlDeviceGetProcess* card 0 code 6 until 17s\n"
                            "at 22s load train card 0 sm 0\n")
    run = readings(driver(scenario), "+10000 look drain +5000 drain +5000 drain +5000 drain +5000 drain")
    assert [line["cards"][0]["uses_known"] for line in run.of("drain")] == [False, False, True, True, True]


def test_a_card_that_is_hardly_used_may_have_use_of_zero(driver):
    scenario = TWO_CARDS + ("at 0s fail nvmlDeviceGetProcess* card 0 code 6\nat 0s load train card 0 sm 0\n"
                            "at 12s load train card 0 sm 80\nat 12500ms load train card 0 sm 0\n")
    run = readings(driver(scenario), "+10000 look drain +5000 drain")
    assert max(pct for _, pct in run.card("drain")["samples"]) == 80
    assert run.card("drain")["uses_known"]


def test_the_newer_call_for_process_utilisation_is_a_fallback(driver):
    run = readings(driver(TWO_CARDS, missing=["nvmlDeviceGetProcessUtilization"]),
                   "+10000 drain +5000 drain facilities")
    assert [use[0::2] for use in run.card("drain")["uses"]] == [[1001, 80]]
    row, = run.facility("process utilisation")
    assert row["fallback"] and row["how"] == "nvmlDeviceGetProcessesUtilizationInfo"


def test_without_both_calls_process_utilisation_is_unknown(driver):
    missing = ["nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo"]
    run = readings(driver(TWO_CARDS, missing=missing), "+10000 drain")
    assert not run.card("drain")["uses_known"]


@pytest.mark.parametrize("missing", [[], ["nvmlDeviceGetProcessUtilization"]])
def test_more_records_than_the_buffer_holds(driver, missing):
    scenario = ONE_CARD + "".join(f"process p{i} pid {5000 + i}\nat 0s hold p{i} card 0 memory 10MB\n"
                                  f"at 0s load p{i} card 0 sm 1\n" for i in range(300))
    run = readings(driver(scenario, missing=missing), "+10000 look drain facilities")
    assert len(run.card("drain")["uses"]) == 300 and len(run.card("look")["processes"]) == 300
    assert run.facility("process utilisation")[0]["fallback"] == bool(missing)


# ---- process lists ----

LISTS = [f"nvmlDeviceGet{kind}RunningProcesses{version}"
         for kind in ("Compute", "Graphics", "MPSCompute") for version in ("", "_v2", "_v3")]


@pytest.mark.parametrize("missing, layout, how", [
    ((), "", "_v2"),
    (("_v2",), "", "_v3"),
    (("_v2",), "layout v3 32", "_v3"),  # 535.43 to 535.86
    (("_v2",), "layout v3 16", "_v3"),  # an interposer
    (("_v2", "_v3"), "", ""),
    ((), "layout v2 32", "_v2"),
    ((), "layout v2 16", "_v2"),
])
def test_every_layout_of_the_process_lists(driver, missing, layout, how):
    absent = [name for name in LISTS if any(name.endswith(version) for version in missing)]
    run = readings(driver(TWO_CARDS + layout + "\n", missing=absent), "+1000 look facilities")
    assert run.card("look")["processes"] == [[1001, 1, 10_000_000_000], [1002, 1, 2_000_000_000]]
    row, = run.facility("compute processes")
    assert row["how"] == "nvmlDeviceGetComputeRunningProcesses" + how
    assert row["fallback"] == bool(missing)


def test_kinds_are_merged_and_unknown_memory_is_unknown(driver):
    scenario = ONE_CARD + """
process both pid 11 kind both
process draw pid 12 kind graphics
process mps pid 13 kind mps
process wsl pid 14
at 0s hold both card 0 memory 300MB
at 0s hold draw card 0 memory 50MB
at 0s hold mps card 0 memory 1GB
at 0s hold wsl card 0 memory unknown
"""
    run = readings(driver(scenario), "+1000 look")
    assert run.card("look")["processes_known"]
    assert sorted(run.card("look")["processes"]) == [
        [11, 3, 300_000_000], [12, 2, 50_000_000], [13, 4, 1_000_000_000], [14, 1, -1]]


def test_a_list_that_grows_while_it_is_read(driver):
    run = readings(driver(TWO_CARDS + "at 0s grow card 0 by 200 to 600\n"
                          + "".join(f"process p{i} pid {6000 + i}\nat 0s hold p{i} card 0 memory 1MB\n"
                                    for i in range(70))), "+1000 look")
    pids = [process[0] for process in run.card("look")["processes"]]
    assert {1001, 1002} <= set(pids) and len(pids) == 72 + 600


def test_a_list_that_never_stops_growing_is_given_up(driver, tmp_path):
    run = readings(driver(TWO_CARDS + "at 0s fail nvmlDeviceGetComputeRunningProcesses* code 7\n"), "look")
    assert not run.card("look")["processes_known"]
    assert 0 < names(tmp_path, 0).count("nvmlDeviceGetComputeRunningProcesses_v2") < 20


def test_lists_that_cannot_be_read_are_unknown_not_empty(driver):
    run = readings(driver(TWO_CARDS, missing=LISTS), "look")
    assert not run.card("look")["processes_known"]


# ---- accounting mode ----

ACCOUNTING = "accounting on\n" + ONE_CARD + """
process train pid 1001
process short pid 1002
process again pid 1003
process old pid 1004
at 0s hold train card 0 memory 1GB
at 0s hold old card 0 memory 1GB
at 3s exit old
at 11s hold short card 0 memory 3GB
at 13s exit short
at 21s hold again card 0 memory 2GB
at 24s exit again
at 31s hold again card 0 memory 5GB
at 36s exit again
at 52s exit train
"""


def ended(run, wall=WALL):
    """What each drain said of processes that ended: pid, from and to in seconds, peak in GB."""
    return [[(pid, start / 1000 - wall, end / 1000 - wall, peak / 1e9) for pid, start, end, peak in
             line["cards"][0]["ended"]] for line in run.of("drain")]


def stats_asked(tmp_path):
    return [(at, int(text.split("=")[1])) for at, name, _, text in calls(tmp_path / "log")
            if name == "nvmlDeviceGetAccountingStats"]


def test_processes_that_ended_are_given_once(driver, tmp_path):
    run = readings(driver(ACCOUNTING), "+5000 reopen look drain +5000 drain +10000 drain +10000 drain look",
                   "+5000 drain look +5000 drain look +20000 look drain drain facilities")
    assert ended(run) == [[], [], [(1002, 11, 13, 3)], [(1003, 21, 24, 2)], [], [(1003, 31, 36, 5)],
                          [(1001, 0, 52, 1)], []]
    assert stats_asked(tmp_path) == [(5, 1001), (5, 1004), (20, 1002), (30, 1003), (40, 1003), (60, 1001)]
    row, = run.facility("ended processes")
    assert row["how"] == "accounting mode is on" and row["note"] == "GPU 0"


def test_a_pid_that_comes_again_is_another_process(driver, tmp_path):
    run = readings(driver(ACCOUNTING), "+22000 look drain +10000 look drain +8000 look drain")
    assert ended(run) == [[(1002, 11, 13, 3), (1004, 0, 3, 1)], [], [(1003, 31, 36, 5)]]


def test_accounting_mode_that_is_off_is_not_asked(driver, tmp_path):
    run = readings(driver(ACCOUNTING.replace("accounting on", "")), "+22000 look drain facilities")
    assert ended(run) == [[]] and "nvmlDeviceGetAccountingPids" not in names(tmp_path)
    row, = run.facility("ended processes")
    assert row["how"] == "accounting mode is off" and row["works"]


def test_records_of_many_processes(driver, tmp_path):
    many = "".join(f"process p{i} pid {5000 + i}\nat {11000 + i}ms hold p{i} card 0 memory 1MB\n"
                   + (f"at {14000 + i}ms exit p{i}\n" if i < 100 else "") for i in range(700))
    run = readings(driver("accounting on\n" + ONE_CARD + many), "+10000 look drain +10000 drain +5000 drain look drain")
    assert [len(drain) for drain in ended(run)] == [0, 100, 0, 0]
    assert len(stats_asked(tmp_path)) == 700


# ---- memory ----

@pytest.mark.parametrize("code", [3, 13, 25, 999])
def test_memory_falls_back_to_the_older_call_on_any_failure(driver, tmp_path, code):
    scenario = TWO_CARDS + f"at 0s fail nvmlDeviceGetMemoryInfo_v2 code {code}\n"
    run = readings(driver(scenario), "look look facilities")
    assert run.card("look")["mem_used"] == 12_000_000_000 + 600_000_000  # with what is reserved
    row, = run.facility("memory")
    assert row["fallback"] and row["how"] == "nvmlDeviceGetMemoryInfo"
    asked = names(tmp_path, 0).count("nvmlDeviceGetMemoryInfo_v2")
    assert asked == (3 if code == 999 else 1)


def test_memory_without_what_is_reserved(driver):
    run = readings(driver(TWO_CARDS + 'card 2 uuid GPU-c name X memory 24GB reserved 1GB memory-info v1\n'), "look glance")
    cards = run.of("glance")[0]["cards"]
    assert [card["mem_used"] for card in cards] == [12_000_000_000, 1_000_000_000, 1_000_000_000]
    assert [card["mem_includes_reserved"] for card in cards] == [False, False, True]


def test_memory_that_fails_is_unknown(driver):
    run = readings(driver(TWO_CARDS + "at 1s fail nvmlDeviceGetMemoryInfo* code 999\n"),
                   "look +2000 look glance")
    assert [card["mem_used"] for card in run.of("look")[1]["cards"]] == [-1, -1]
    assert [card["mem_total"] for card in run.of("look")[1]["cards"]] == [40_000_000_000, 24_000_000_000]
    assert run.card("glance")["mem_used"] == -1


def test_memory_that_the_driver_does_not_know_is_the_sum_over_processes(driver, tmp_path):
    scenario = """
card 0 uuid GPU-aaaa name "NVIDIA GB10" memory 120GB memory-info none
process train pid 1001
process draw pid 1002 kind graphics
process both pid 1003 kind both
process new pid 1004
at 0s hold train card 0 memory 10GB
at 0s hold draw card 0 memory 2GB
at 0s hold both card 0 memory 1GB
at 12s hold new card 0 memory 5GB
"""
    run = readings(driver(scenario), "+5000 drain look +5000 glance +5000 glance scan facilities look")
    assert run.of("look")[0]["cards"][0]["mem_used"] == 13_000_000_000
    assert [line["cards"][0]["mem_used"] for line in run.of("glance")] == [13_000_000_000, 18_000_000_000]
    assert len(run.of("glance")[1]["cards"][0]["processes"]) == 3  # glances leave the lists alone
    assert run.card("look")["mem_used"] == 18_000_000_000 and run.card("look")["mem_total"] == -1
    assert run.card("look")["mem_is_sum"]
    assert names(tmp_path).count("nvmlDeviceGetComputeRunningProcesses_v2") == 4
    assert names(tmp_path).count("nvmlDeviceGetMemoryInfo_v2") == 1
    row, = run.facility("memory")
    assert row["works"] and row["fallback"] and row["how"] == "sum over processes"


# ---- energy ----

def test_energy_counts_and_a_reset_neither_goes_back_nor_jumps(driver):
    scenario = ONE_CARD + "at 0s load card 0 util 50\nat 12s energy-reset card 0\n"
    run = readings(driver(scenario), "+10000 drain +5000 drain +5000 drain +5000 drain")
    energy = [line["cards"][0]["energy_mj"] for line in run.of("drain")]
    used = [after - before for before, after in zip(energy, energy[1:])]
    assert energy[0] == pytest.approx(10 * 200_000)
    assert used[0] == 0  # what was used around the reset is not known
    assert used[1:] == pytest.approx([5 * 200_000] * 2)


def test_energy_without_a_counter_is_integrated_power(driver):
    scenario = ONE_CARD.replace("memory 40GB", "memory 40GB energy no") + (
        "at 0s load card 0 util 50\nat 20s load card 0 util 100\n")
    run = readings(driver(scenario), "+10000 drain +5000 drain +10000 drain facilities")
    first, second, third = (line["cards"][0]["energy_mj"] for line in run.of("drain"))
    assert second - first == pytest.approx(5 * 200_000)
    assert third - second == pytest.approx(10 * (200_000 + 300_000) / 2)
    row, = run.facility("energy")
    assert row["fallback"] and "integrated" in row["how"]


def test_power_is_read_only_where_it_is_wanted(driver, tmp_path):
    run = readings(driver(ONE_CARD), "+10000 drain +1000 glance +4000 drain")
    assert run.card("drain")["power_mw"] is None and run.card("drain")["energy_mj"] is not None
    assert "nvmlDeviceGetPowerUsage" not in names(tmp_path)
    run = readings(driver(ONE_CARD), "power +10000 drain +1000 glance")
    assert run.of("drain")[0]["cards"][0]["power_mw"] == 100_000
    assert names(tmp_path).count("nvmlDeviceGetPowerUsage") == 1


def test_power_above_what_the_board_can_draw_is_not_counted(driver):
    scenario = ONE_CARD.replace("memory 40GB", "memory 40GB energy no") + (
        "at 0s load card 0 util 50\nat 12s power-factor card 0 6 until 22s\n")
    run = readings(driver(scenario), "power +10000 drain" + " +5000 drain" * 5)
    power = [line["cards"][0]["power_mw"] for line in run.of("drain")]
    energy = [line["cards"][0]["energy_mj"] for line in run.of("drain")]
    assert power == [200_000, None, None, 200_000, 200_000, 200_000]
    assert energy == [0, None, None, 0, pytest.approx(1_000_000), pytest.approx(2_000_000)]
    assert run.stderr.count("its power counts as unknown") == 2  # when it starts and when it ends


def test_a_board_without_a_limit_is_believed(driver):
    scenario = ONE_CARD + "at 0s load card 0 util 50\nat 5s power-factor card 0 6\n"
    run = readings(driver(scenario, missing=["nvmlDeviceGetEnforcedPowerLimit"]), "power +10000 drain")
    assert run.card("drain")["power_mw"] == 1_200_000


def test_a_counter_that_fails_for_a_while_is_bridged(driver):
    scenario = ONE_CARD + ("at 0s load card 0 util 50\n"
                           "at 12s fail nvmlDeviceGetTotalEnergyConsumption code 999 until 22s\n")
    run = readings(driver(scenario), "+10000 drain" + " +5000 drain" * 5)
    energy = [line["cards"][0]["energy_mj"] for line in run.of("drain")]
    used = [after - before for before, after in zip(energy, energy[1:])]
    assert all(0 <= joule <= 5 * 200_000 * 1.001 for joule in used)
    assert used[1] == pytest.approx(5 * 200_000)  # both ends by power
    assert used[-1] == pytest.approx(5 * 200_000)  # both ends by the counter


def test_neither_counter_nor_power_is_unknown_not_zero(driver):
    missing = ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage"]
    run = readings(driver(TWO_CARDS, missing=missing), "+10000 drain")
    assert run.card("drain")["energy_mj"] is None and run.card("drain")["power_mw"] is None


# ---- MIG ----

MIG = """
driver 550.54.15 nvml 12.550.54.15
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 40GB
card 1 uuid GPU-bbbb name "NVIDIA RTX 3090" memory 24GB
mig 0 index 0 gi 7 ci 0 uuid MIG-0 name "NVIDIA A100 MIG 1g.5gb" memory 5GB
mig 0 index 3 gi 9 ci 1 uuid MIG-3 name "NVIDIA A100 MIG 2g.10gb" memory 10GB
process train pid 1001
at 0s hold train mig 0/3 memory 3GB
at 0s load train mig 0/3 sm 50
"""


def test_mig_instances_are_the_cards_and_holes_are_skipped(driver):
    run = readings(driver(MIG), "+10000 drain look facilities")
    cards = run.of("look")[-1]["cards"]
    assert [card["uuid"] for card in cards] == ["MIG-0", "MIG-3", "GPU-bbbb"]
    third = cards[1]
    assert (third["parent"], third["index"], third["mig_index"], third["gi"], third["ci"]) == (
        "GPU-aaaa", 0, 3, 9, 1)
    assert third["name"] == "NVIDIA A100 MIG 2g.10gb" and third["mem_total"] == 10_000_000_000
    assert third["processes"] == [[1001, 1, 3_000_000_000]] and third["mem_used"] == 3_000_000_000
    assert cards[0]["processes_known"] and cards[0]["processes"] == []
    assert third["util_kind"] == "unknown" and not third["uses_known"]
    assert third["energy_mj"] is None and third["power_mw"] is None
    assert cards[2]["util_kind"] == "ring"
    assert any(not row["works"] and "0/0 0/3" in row["note"] for row in run.facility("utilisation"))


def test_a_mig_card_that_is_lost_takes_its_instances_and_brings_them_back(driver):
    run = readings(driver(MIG + "at 20s lost card 0 until 40s\n"),
                   "look +25000 look scan look +20000 scan look drain")
    states = [[card["status"] for card in line["cards"]] for line in run.of("look")]
    assert states == [["ok"] * 3, ["lost", "lost", "ok"], ["lost", "lost", "ok"], ["ok"] * 3]
    assert [card["uuid"] for card in run.of("look")[-1]["cards"]] == ["MIG-0", "MIG-3", "GPU-bbbb"]


def test_instances_are_looked_for_at_each_look(driver):
    """They are destroyed and made again while the recorder runs."""
    scenario = MIG + "at 12s fail nvmlDeviceGetMigDeviceHandleByIndex card 0 code 6 until 17s\n"
    run = readings(driver(scenario), "+10000 look +5000 look drain +5000 look drain")
    states = [[(card["status"], card["code"]) for card in line["cards"]] for line in run.of("look")]
    assert states == [[("ok", 0)] * 3, [("lost", 6), ("lost", 6), ("ok", 0)], [("ok", 0)] * 3]
    assert run.card("look", 1)["processes"] == [[1001, 1, 3_000_000_000]]


def test_an_instance_that_is_destroyed_while_it_is_asked(driver):
    scenario = MIG + "at 12s fail nvmlDeviceGetComputeRunningProcesses_v2 mig 0/3 code 2 until 17s\n"
    run = readings(driver(scenario), "+10000 look +5000 look +5000 look")
    states = [[card["status"] for card in line["cards"]] for line in run.of("look")]
    assert states == [["ok"] * 3, ["ok", "lost", "ok"], ["ok"] * 3]


# ---- GPM ----

GPM = """
card 0 uuid GPU-aaaa name "NVIDIA H100" memory 80GB gpm yes sm-active 25
card 1 uuid GPU-bbbb name "NVIDIA H100" memory 80GB gpm yes sm-active 50
mig 0 index 0 gi 7 ci 0 uuid MIG-0 name "NVIDIA H100 MIG 1g.10gb" memory 10GB
mig 0 index 1 gi 9 ci 0 uuid MIG-1 name "NVIDIA H100 MIG 1g.10gb" memory 10GB
process train pid 1001
process other pid 1002
at 0s hold train mig 0/0 memory 3GB
at 0s load train mig 0/0 sm 80
at 12s load train mig 0/0 sm 0
at 0s hold other card 1 memory 3GB
at 0s load other card 1 sm 60
"""


def test_use_of_instances_by_gpm(driver, tmp_path):
    run = readings(driver(GPM), "+10000 drain +2000 glance +3000 drain look +50 glance +4950 drain facilities")
    first, second, third = (line["cards"][0] for line in run.of("drain"))
    assert [card["util_kind"] for card in (first, second, third)] == ["mean"] * 3
    assert first["samples"] == [] and first["sm_active"] is None
    assert second["samples"] == [[(WALL + 12) * 1_000_000, pytest.approx(80)],
                                 [(WALL + 15) * 1_000_000, pytest.approx(0)]]
    assert second["sm_active"] == pytest.approx(80 * 2 / 5 / 4)
    assert third["samples"] == [[(WALL + 20) * 1_000_000, 0]]  # 50 ms are too short
    whole = run.of("drain")[1]["cards"][2]
    assert whole["util_kind"] == "ring" and whole["sm_active"] == pytest.approx(30)
    sampled = [(at, name) for at, name, *_ in calls(tmp_path / "log") if "SampleGet" in name]
    assert [at for at, name in sampled if name == "nvmlGpmSampleGet"] == [10, 15, 20]
    assert [at for at, name in sampled if name == "nvmlGpmMigSampleGet"] == [10, 10, 12, 12, 15, 15, 20, 20]
    assert {row["how"]: row["note"] for row in run.facility("utilisation")} == {
        "nvmlDeviceGetSamples": "GPU 1", "nvmlGpmMigSampleGet": "GPU 0/0 0/1"}
    row, = run.facility("SM activity")
    assert row["works"] and row["note"] == "GPU 0/0 0/1 1"


def test_gpm_comes_last_in_a_round(driver, tmp_path):
    readings(driver(GPM), "+10000 drain +2000 glance")
    after = [name for at, name, *_ in calls(tmp_path / "log") if at == 12]
    first = min(i for i, name in enumerate(after) if "Gpm" in name)
    assert first > 0 and not any(name.startswith("nvmlDevice") for name in after[first:])


def test_gpm_that_breaks_the_memory_of_instances_is_not_used_again(driver, tmp_path):
    run = readings(driver(GPM.replace("gpm yes sm-active 25", "gpm breaks")),
                   "look +10000 drain +2000 glance +3000 drain +5000 scan drain look facilities")
    assert [line["cards"][0]["util_kind"] for line in run.of("drain")] == ["mean", "unknown", "unknown"]
    assert run.of("drain")[1]["cards"][0]["samples"] == [[(WALL + 12) * 1_000_000, None],
                                                         [(WALL + 15) * 1_000_000, None]]
    assert run.of("glance")[0]["cards"][0]["mem_used"] == -1
    assert run.card("look")["mem_used"] == 3_000_000_000  # the scan started the library anew
    sampled = [at for at, name, *_ in calls(tmp_path / "log") if "Gpm" in name and name != "nvmlGpmSampleFree"]
    assert max(sampled) == 10
    assert run.stderr.count("GPM") == 1
    row, = run.facility("SM activity")
    assert not row["works"]


def test_compute_instances_that_share_a_gpu_instance_have_no_use_of_their_own(driver):
    run = readings(driver(GPM.replace("gi 9 ci 0", "gi 7 ci 1")), "+10000 drain +5000 drain")
    assert [card["util_kind"] for card in run.of("drain")[1]["cards"]] == ["unknown", "unknown", "ring"]


def test_gpm_that_fails_for_a_while(driver):
    scenario = GPM + "at 12s fail nvmlGpmMigSampleGet code 999 until 17s\n"
    run = readings(driver(scenario), "+10000 drain" + " +5000 drain" * 3)
    assert [line["cards"][0]["util_kind"] for line in run.of("drain")] == ["mean", "unknown", "mean", "mean"]
    assert run.card("drain")["samples"] == [[(WALL + 25) * 1_000_000, 0]]


def test_a_lost_card_with_gpm_comes_back(driver):
    scenario = GPM + "at 12s lost card 0 until 17s\n"
    run = readings(driver(scenario), "+10000 drain +5000 drain +5000 scan drain +5000 drain reopen drain")
    assert [line["cards"][0]["util_kind"] for line in run.of("drain")] == ["mean", "none", "mean", "mean", "mean"]


# ---- faults of a card ----

@pytest.mark.parametrize("code", [15, 16])
def test_a_lost_card_is_left_alone_and_comes_back_as_itself(driver, tmp_path, code):
    scenario = TWO_CARDS + f"at 12s lost card 0 code {code} until 33s\n"
    run = readings(driver(scenario), "+10000 drain look +5000 drain +5000 drain look scan drain",
                   "+15000 scan drain look")
    lost = run.of("drain")[1]["cards"]
    assert (lost[0]["status"], lost[0]["code"]) == ("lost", code)
    assert lost[0]["samples"] == [] and lost[0]["energy_mj"] is None and not lost[0]["uses_known"]
    assert lost[0]["processes"] == [] and not lost[0]["processes_known"]
    assert lost[1]["status"] == "ok" and lost[1]["samples"]
    while_lost = [name for at, name, card, _ in calls(tmp_path / "log") if 12 < at < 33 and card == 0]
    assert len(while_lost) == 1  # the call that found out
    assert names(tmp_path).count("nvmlInit_v2") == 3  # each scan with a card lost starts anew
    back = run.of("drain")[-1]["cards"]
    assert [(card["uuid"], card["status"]) for card in back] == [("GPU-aaaa", "ok"), ("GPU-bbbb", "ok")]
    assert back[0]["samples"] and run.card("look")["processes"]
    assert all(line["error"] is None for line in run.lines if "error" in line)


def test_energy_goes_on_where_it_was_after_a_loss(driver):
    scenario = ONE_CARD + ("card 1 uuid GPU-bbbb name X memory 1GB\nat 0s load card 0 util 50\n"
                           "at 12s lost card 0 until 33s\n")
    run = readings(driver(scenario), "+10000 drain +5000 drain +20000 scan drain +5000 drain")
    before, _, back, after = (line["cards"][0]["energy_mj"] for line in run.of("drain"))
    assert back == before and after - back == pytest.approx(5 * 200_000)


def test_a_card_that_vanishes_keeps_its_place(driver):
    run = readings(driver(TWO_CARDS + "at 12s vanish card 0 until 33s\n"),
                   "+10000 drain look +5000 drain scan drain look +25000 scan drain look")
    gone, back = run.of("look")[1]["cards"], run.of("look")[2]["cards"]
    assert [card["uuid"] for card in gone] == ["GPU-aaaa", "GPU-bbbb"]
    assert [card["status"] for card in gone] == ["lost", "ok"]
    assert [card["status"] for card in back] == ["ok", "ok"]
    assert back[0]["processes"][0][0] == 1001 and back[1]["processes"][0][0] == 1002


def test_a_card_that_is_no_longer_counted_is_lost(driver):
    scenario = TWO_CARDS + "at 12s lost card 0\nat 16s vanish card 1 until 30s\n"
    run = readings(driver(scenario), "+10000 drain +5000 drain +2000 scan drain +20000 scan drain")
    states = [[(card["status"], card["code"]) for card in line["cards"]] for line in run.of("drain")]
    assert states[1:] == [[("lost", 15), ("ok", 0)], [("lost", 15), ("lost", 15)], [("lost", 15), ("ok", 0)]]


def test_a_card_that_may_not_be_opened_is_denied(driver):
    run = readings(driver(TWO_CARDS + "at 0s fail nvmlDeviceGetHandleByIndex_v2 card 0 code 4 until 20s\n"),
                   "+10000 drain look +15000 scan drain look")
    first, then = run.of("look")[0]["cards"], run.of("look")[1]["cards"]
    assert (first[0]["uuid"], first[0]["status"], first[0]["code"]) == ("index-0", "denied", 4)
    assert first[1]["status"] == "ok" and first[1]["processes"]
    assert [(card["uuid"], card["status"]) for card in then] == [("GPU-aaaa", "ok"), ("GPU-bbbb", "ok")]


def test_one_card_that_only_says_unknown_error_is_lost(driver):
    run = readings(driver(TWO_CARDS + "at 12s fail nvmlDevice* card 0 code 999 until 20s\n"),
                   "+10000 drain +5000 drain +10000 scan drain")
    broken = run.of("drain")[1]
    assert broken["error"] is None
    assert [card["status"] for card in broken["cards"]] == ["lost", "ok"]
    assert broken["cards"][0]["code"] == 999
    assert [card["status"] for card in run.of("drain")[2]["cards"]] == ["ok", "ok"]


def test_xids_come_with_the_drain(driver):
    run = readings(driver(TWO_CARDS + "at 12s xid 79 card 1\nat 13s xid 31 card 0\n"),
                   "+10000 drain +5000 drain +5000 drain")
    assert [line["xids"] for line in run.of("drain")] == [[], [[1, 79], [0, 31]], []]


def test_the_xid_of_a_card_that_is_lost_is_not(driver):
    """The card fails a glance, and the library is initialised again, before a drain collects the XID."""
    run = readings(driver(TWO_CARDS + "at 12s xid 79 card 1\nat 12s lost card 1 code 15 until 40s\n"),
                   "+10000 drain +2500 glance +500 scan drain +5000 scan drain +30000 scan drain")
    assert [line["xids"] for line in run.of("drain")] == [[], [[1, 79]], [], []]
    assert [line["cards"][1]["status"] for line in run.of("drain")] == ["ok", "lost", "lost", "ok"]
    run = readings(driver(TWO_CARDS + "at 12s xid 79 card 1\nat 12s lost card 1 code 15\n"),
                   "+10000 drain +2500 glance +500 drain drain")
    assert [line["xids"] for line in run.of("drain")] == [[], [[1, 79]], []]


def test_xids_are_recorded_as_events(tmp_path, clock_file):
    clock, db = clock_file(WALL), tmp_path / "gua.db"
    env = fake_driver(tmp_path, TWO_CARDS + "at 42s xid 79 card 1\n", clock=clock)
    run = gua("daemon", "--db", db, "--clock", clock, "--root", "/", "--ticks", 2, env=env)
    assert run.returncode == 0, run.stderr
    with sqlite3.connect(db) as connection:
        events = connection.execute("SELECT uuid, value FROM event JOIN gpu ON gpu.id = event.gpu"
                                    " WHERE kind = 'xid'").fetchall()
    assert events == [("GPU-bbbb", 79)]


# ---- faults of the driver ----

@pytest.mark.parametrize("code, words", [
    (9, "not loaded"), (17, "blocks access"), (999, "unknown error"), (28, "no GPU"), (4, "no permission")])
def test_an_init_that_fails_says_why(driver, code, words):
    run = readings(driver(TWO_CARDS + f"at 0s fail nvmlInit_v2 code {code}\n"))
    assert run.status == 1
    assert words in run.lines[0]["error"] and f"code {code}" in run.lines[0]["error"]


@pytest.mark.parametrize("code, words", [(9, "not loaded"), (17, "blocks access"), (999, "unknown error")])
@pytest.mark.parametrize("call", ["nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"])
def test_a_driver_that_gives_no_card_at_all_is_gone(driver, call, code, words):
    run = readings(driver(TWO_CARDS + f"at 0s fail {call} code {code}\n"))
    assert run.status == 1 and words in run.lines[0]["error"]


def test_a_version_mismatch_names_both_versions(driver, tmp_path):
    version = tmp_path / "root/proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  545.23.08  Release Build\n")
    run = readings(driver(TWO_CARDS + "at 0s fail nvmlInit_v2 code 18\n"), root=tmp_path / "root")
    assert "545.23.08" in run.lines[0]["error"] and "550.54.15" in run.lines[0]["error"]
    assert "reboot" in run.lines[0]["error"]


@pytest.mark.parametrize("code, words", [(1, "initialised"), (9, "not loaded"), (18, "do not match"),
                                         (999, "unknown error"), (17, "blocks access")])
def test_a_driver_that_goes_away_is_opened_anew_by_the_next_scan(driver, tmp_path, code, words):
    scenario = TWO_CARDS + f"at 12s fail nvmlDevice* code {code} until 30s\n"
    run = readings(driver(scenario), "+10000 drain look +5000 drain look scan drain +20000 drain scan drain look")
    ok, gone, still, waiting, back = run.of("drain")
    assert ok["error"] is None
    assert words in gone["error"] and gone["error_code"] == -2
    assert run.of("look")[1]["error"] == gone["error"]
    assert words in run.of("scan")[0]["error"]
    assert still["error"] and waiting["error"]  # only a scan opens it again
    assert run.of("scan")[1]["error"] is None and back["error"] is None
    assert [card["uuid"] for card in back["cards"]] == ["GPU-aaaa", "GPU-bbbb"]
    assert [card["status"] for card in back["cards"]] == ["ok", "ok"] and back["cards"][0]["samples"]
    assert run.card("look")["processes"]
    assert names(tmp_path).count("nvmlInit_v2") == 3


def test_while_the_driver_is_gone_nothing_is_asked(driver, tmp_path):
    readings(driver(TWO_CARDS + "at 12s fail nvmlDevice* code 9\n"), "+10000 drain +5000 drain drain look")
    after = [name for at, name, *_ in calls(tmp_path / "log") if at > 12]
    assert len([name for name in after if name.startswith("nvmlDevice")]) == 1


def test_optional_symbols_may_all_be_missing(driver):
    required = {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
                "nvmlDeviceGetUUID"}
    optional = [*LISTS, "nvmlSystemGetNVMLVersion", "nvmlSystemGetDriverVersion", "nvmlDeviceGetName",
                "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetMemoryInfo_v2",
                "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetSamples",
                "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo",
                "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMigMode",
                "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetAccountingMode", "nvmlDeviceGetAccountingPids",
                "nvmlDeviceGetAccountingStats", "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc",
                "nvmlGpmSampleFree", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet",
                "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
                "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlEventSetCreate",
                "nvmlEventSetFree", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents",
                "nvmlEventSetWait_v2"]
    assert not required & set(optional)
    run = readings(driver(TWO_CARDS, missing=optional), "+10000 drain look")
    assert [card["uuid"] for card in run.of("look")[-1]["cards"]] == ["GPU-aaaa", "GPU-bbbb"]
    card = run.card("look")
    assert (card["util_kind"], card["processes_known"], card["mem_used"]) == ("unknown", False, -1)


def test_a_required_symbol_is_named(driver):
    run = readings(driver(TWO_CARDS, missing=["nvmlDeviceGetUUID"]))
    assert run.status == 1 and "nvmlDeviceGetUUID" in run.lines[0]["error"]


def test_a_library_that_is_none(driver, tmp_path):
    env = driver(TWO_CARDS)
    (tmp_path / "text").write_text("hello")
    run = readings({**env, "GUA_NVML": str(tmp_path / "text")})
    assert run.status == 1 and "cannot load" in run.lines[0]["error"]


# ---- the host ----

def test_a_recorded_tree_without_a_module_has_no_driver(driver, tmp_path):
    """The library of this host is not touched then; with a module it is found by its name."""
    env = driver(TWO_CARDS)
    env["LD_LIBRARY_PATH"] = os.path.dirname(env["GUA_NVML"])
    root = tmp_path / "root"
    root.mkdir()
    run = readings(env, root=root, named=False)
    assert run.status == 1 and "no NVIDIA driver is loaded" in run.lines[0]["error"]
    assert not (tmp_path / "log").exists()
    (root / "sys/module/nvidia").mkdir(parents=True)
    run = readings(env, root=root, named=False)
    assert run.status == 0 and len(run.lines[0]["cards"]) == 2


def by_its_name(env):
    """The environment in which the fake library is found by its name, as the real one is."""
    return {**env, "LD_LIBRARY_PATH": os.path.dirname(env["GUA_NVML"]), "GUA_NVML": ""}


@pytest.mark.parametrize("words", [["stat"], ["query", "--query-gpu=uuid"], ["doctor", "--db", "no.db"]])
def test_a_library_may_work_without_a_module(driver, tmp_path, words):
    """As in WSL2 and in some containers: its answer decides."""
    run = gua(*words, env=by_its_name(driver(TWO_CARDS)), cwd=tmp_path)
    assert "no NVIDIA driver" not in run.stdout + run.stderr
    assert run.returncode == 0 or words[0] == "doctor"
    assert "A100" in run.stdout or "GPU-" in run.stdout


def test_a_library_without_a_driver_says_how_to_load_it(driver):
    run = gua("stat", env=by_its_name(driver(TWO_CARDS + "at 0s fail nvmlInit_v2 code 9\n")))
    module = os.path.exists("/sys/module/nvidia") or os.path.exists("/proc/driver/nvidia/version")
    assert run.returncode == 1
    assert ("modprobe" if module else "no NVIDIA driver is loaded") in run.stderr


def sleeping_root(tmp_path, *addresses, known="GPU-bbbb"):
    """A root with two cards, of which `addresses` sleep and the module knows the second one's UUID."""
    root = tmp_path / "root"
    for address in ("0000:10:00.0", "0000:11:00.0"):
        power = root / "sys/bus/pci/devices" / address / "power"
        power.mkdir(parents=True)
        (power / "runtime_status").write_text("suspended\n" if address in addresses else "active\n")
        information = root / "proc/driver/nvidia/gpus" / address / "information"
        information.parent.mkdir(parents=True)
        uuid = known if address == "0000:11:00.0" else "GPU-????????"
        information.write_text(f"Model: \t\t NVIDIA Sleeper\nIRQ:   \t\t 77\nGPU UUID: \t {uuid}\n")
    return root


def runtime_status(root, address):
    return root / "sys/bus/pci/devices" / address / "power/runtime_status"


def test_a_card_that_falls_asleep_is_left_alone_and_wakes(driver, tmp_path):
    root = sleeping_root(tmp_path)
    run = Paused(driver(TWO_CARDS), "+10000 drain look pause +5000 drain look pause +5000 drain look",
                 root=root)
    assert [card["status"] for card in run.go()[-1]["cards"]] == ["ok", "ok"]
    runtime_status(root, "0000:11:00.0").write_text("suspended\n")
    drain, look = run.go()
    assert [card["status"] for card in drain["cards"]] == ["ok", "asleep"]
    assert drain["cards"][1]["samples"] == [] and look["cards"][1]["processes_known"] is False
    assert drain["cards"][0]["samples"]
    runtime_status(root, "0000:11:00.0").write_text("active\n")
    drain, look = run.go()
    assert [card["status"] for card in look["cards"]] == ["ok", "ok"]
    assert drain["cards"][1]["samples"] and look["cards"][1]["processes"]
    asleep = [name for at, name, card, _ in calls(tmp_path / "log") if 12 < at < 17 and card == 1]
    assert asleep == []


def test_a_card_that_sleeps_from_the_start_is_not_woken(driver, tmp_path):
    root = sleeping_root(tmp_path, "0000:10:00.0", "0000:11:00.0")
    run = Paused(driver(TWO_CARDS), "+10000 scan drain look pause +5000 drain look", root=root)
    cards = run.go()[-1]["cards"]
    assert [(card["uuid"], card["status"]) for card in cards] == [
        ("pci-0000:10:00.0", "asleep"), ("GPU-bbbb", "asleep")]
    assert cards[0]["name"] == "NVIDIA Sleeper"
    assert "nvmlDeviceGetHandleByIndex_v2" not in names(tmp_path)
    runtime_status(root, "0000:10:00.0").write_text("active\n")
    cards = run.go()[-1]["cards"]
    assert [(card["uuid"], card["status"]) for card in cards] == [
        ("GPU-aaaa", "ok"), ("GPU-bbbb", "asleep")]
    assert cards[0]["processes"]


def test_a_driver_that_does_not_count_by_address(driver, tmp_path):
    """Which card sleeps is guessed from the order of addresses; a wrong guess loses no card."""
    scenario = TWO_CARDS.replace("GPU-aaaa", "GPU-aaaa pci 0000:11:00.0").replace(
        "GPU-bbbb", "GPU-bbbb pci 0000:10:00.0")
    root = sleeping_root(tmp_path, "0000:10:00.0", known="GPU-aaaa")
    run = readings(driver(scenario), "+10000 drain look +5000 scan drain look", root=root)
    for line in run.of("drain"):
        assert [(card["uuid"], card["status"]) for card in line["cards"]] == [
            ("GPU-aaaa", "ok"), ("GPU-bbbb", "asleep")]
    assert run.card("look")["processes"]


# ---- habits ----

def test_the_steady_state_takes_no_memory(driver):
    run = readings(driver(TWO_CARDS + "repeat 60s\nat 30s lost card 1 until 50s\n"),
                   "+10000 drain look" + " +5000 drain look" * 3)
    assert [line["heap_grown"] for line in run.lines[3:]] == [0] * 6


def test_names_from_the_driver_are_escaped(driver):
    run = readings(driver('card 0 uuid GPU-a name "A\x1b[31mB" memory 1GB\n'))
    assert run.lines[0]["cards"][0]["name"] == "A\\x1B[31mB"

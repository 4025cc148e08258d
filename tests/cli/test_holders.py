"""Which processes held a card and whether it was used, on realistic hosts: processes that come and go, drivers
that report less, cards that report what cannot be true. The fake driver in virtual time, unless said otherwise."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import GUA, children, clean_environment, gua, wait_for
from fake import fake_driver
from recorded import ONE_CARD, TWO_CARDS, card_seconds, record, rows  # noqa: F401
from truth import Scenario

JOB = 'process job pid 4194242 user alice uid 1001 command "python train.py"\n'


def presence(db):
    """{user: {state: seconds}} by the view."""
    names = ["active", "idle_held", "truly_idle", "squatting", "use_unknown"]
    sums = ", ".join(f"sum({name}_presence_ms)" for name in names)
    found = rows(db, f"SELECT user, {sums} FROM holding JOIN process ON process.id = process GROUP BY user")
    return {user: {name: ms / 1000 for name, ms in zip(names, values) if ms} for user, *values in found}


def unsure(db):
    (seconds,), = rows(db, "SELECT (sum(unsure_ms) + sqrt(sum(unsure_ms2))) / 1000.0 FROM usage")
    return seconds


@pytest.fixture
def simulate(tmp_path):
    """simulate(SCENARIO, *ARGS) records the simulated source, which knows users; returns the store."""
    def run(scenario, *args):
        (tmp_path / "s.scenario").write_text(scenario)
        result = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", "virtual",
                     "--db", tmp_path / "gua.db", *args)
        assert result.returncode == 0, result.stderr
        return tmp_path / "gua.db"
    return run


# ---- processes that come and go ----

def test_a_process_between_two_ticks_is_seen(record):
    run = record(ONE_CARD + JOB + "at 33s hold job card 0 memory 8GiB\nat 51s exit job\n", "--ticks", 3)
    seconds = card_seconds(run.db)
    assert abs(seconds["idle_held"] - 18) <= unsure(run.db) + 0.01 and unsure(run.db) <= 1.3
    assert sum(seconds.values()) == 90


def test_memory_without_a_listed_process_is_not_free(simulate):
    db = simulate(ONE_CARD + "at 10s orphan card 0 memory 5GiB\nat 40s orphan card 0 memory 0B\n"
                  "at 50s orphan card 0 memory 90MB\n", "--ticks", 2)
    held = card_seconds(db)["idle_held"]
    assert abs(held - 30) <= unsure(db) + 0.01 and unsure(db) <= 1.3
    assert presence(db) == {"_unknown": {"idle_held": held}}


def test_memory_that_the_driver_reserves_has_no_holder(record):
    """The older memory call counts the driver's own reserve."""
    reserved = ONE_CARD.replace("memory 80GiB", "memory 80GiB reserved 900MiB memory-info v1")
    run = record(reserved + JOB + "at 10s hold job card 0 memory 5GiB\nat 20s exit job\n", "--ticks", 1)
    seconds = card_seconds(run.db)
    assert abs(seconds["idle_held"] - 10) <= unsure(run.db) + 0.01
    assert seconds["truly_idle"] > 18


@pytest.mark.parametrize("accounting", [True, False])
def test_a_process_between_two_glances_is_in_the_drivers_records(record, accounting):
    mode = "accounting on\n" if accounting else ""
    run = record(ONE_CARD + mode + JOB + "at 12100ms hold job card 0 memory 5GiB\nat 12300ms exit job\n",
                 "--glance", "8s", "--ticks", 1)
    held = card_seconds(run.db).get("idle_held", 0)
    assert held == (0.2 if accounting else 0)
    assert presence(run.db) == ({"_unknown": {"idle_held": 0.2}} if accounting else {})


def test_a_record_that_ends_in_the_future_is_nobodys(record):
    """The driver's record has the start by the clock as it was before somebody set it back."""
    run = record(ONE_CARD + "accounting on\n" + JOB + "at 5s hold job card 0 memory 5GiB\nat 20s step -1h\n"
                 "at 40s exit job\n", "--ticks", 4)
    assert rows(run.db, "SELECT user FROM process WHERE user = '_unknown'") == []


def test_a_sole_user_is_never_a_squatter(simulate):
    db = simulate(ONE_CARD + JOB + "at 0s hold job card 0 memory 5GiB\nat 1s load job card 0 sm 80 on 4s off 16s\n",
                  "--ticks", 6)
    alice = presence(db)["alice"]
    assert set(alice) == {"active", "idle_held"} and abs(alice["active"] - 36) <= 0.5


def test_an_idle_process_beside_its_owners_training(simulate):
    """The process is idle, its user is not; another user with an idle process there squats."""
    db = simulate(ONE_CARD + JOB + """
        process left pid 4194243 user alice uid 1001 command "left"
        process other pid 4194244 user bob uid 1002 command "other"
        at 0s hold job card 0 memory 5GiB
        at 0s load job card 0 sm 90
        at 0s hold left card 0 memory 4GB
        at 0s hold other card 0 memory 1GB
        """, "--ticks", 2)
    assert presence(db) == {"alice": {"active": 60.0}, "bob": {"squatting": 60.0}}
    assert rows(db, "SELECT command, sum(active_ms), sum(idle_held_ms), sum(squatting_ms) FROM holding JOIN process"
                " ON process.id = process GROUP BY command ORDER BY command") == [
        ("left", 0, 60000, 0), ("other", 0, 0, 60000), ("python train.py", 60000, 0, 0)]


def test_two_users_with_little_hold_the_card_together(simulate):
    db = simulate(ONE_CARD + JOB + """
        process other pid 4194244 user bob uid 1002 command "other"
        at 0s hold job card 0 memory 60MB
        at 0s hold other card 0 memory 60MB
        """, "--ticks", 2)
    assert card_seconds(db) == {"idle_held": 60.0}
    assert presence(db) == {"alice": {"idle_held": 60.0}, "bob": {"idle_held": 60.0}}


# ---- faults cost what they last ----

@pytest.mark.parametrize("fault, lasts", [
    ("at 33s lost card 0 until 43s", 10), ("at 33s fail nvmlDevice* code 999 until 36s", 0.2),
    ("at 33s lost card 0 until 35s", 2)])
def test_a_fault_costs_what_it_lasts(record, fault, lasts):
    """A lost card takes no samples, and its samples from before may be gone when it is back. A driver that fails
    goes on sampling, and its ring still has those samples."""
    run = record(TWO_CARDS + JOB + f"at 0s hold job card 0 memory 5GiB\n{fault}\n", "--ticks", 4)
    seconds = card_seconds(run.db)
    undrained = 5 if lasts > 5 else 0
    assert lasts - 0.5 <= seconds.get("unobserved", 0) <= lasts + 0.5 + undrained
    assert seconds["idle_held"] + seconds.get("unobserved", 0) == 120
    # Who came to the other card and went while nothing could be read is not known.
    unread = 4.5 if "nvmlDevice*" in fault else 0.5
    assert card_seconds(run.db, "GPU-bbbb").get("unobserved", 0) <= unread


@pytest.mark.parametrize("retry, most", [("1s", 1.5), ("30s", 32)])
def test_retry_is_the_longest_wait(record, tmp_path, retry, most):
    log = tmp_path / "calls"
    run = record(ONE_CARD + "at 10s lost card 0 until 200s\n", "--retry", retry, "--ticks", 8, log=log)
    assert run.returncode == 0
    tries = [float(line.split()[0]) for line in log.read_text().splitlines() if " nvmlInit_v2 " in line]
    waits = [b - a for a, b in zip(tries, tries[1:]) if 10 < a and b < 200]
    assert len(waits) >= 4 and waits[0] <= 2.5 and max(waits) <= most
    # The driver answers: every second for the first minute.
    eager = [round(b - a) for a, b in zip(tries, tries[1:]) if 10 < a and b < 70]
    assert len(eager) >= 55 and set(eager) == {1}
    later = [round(wait) for wait in waits if round(wait) > 1]
    assert later[:4] == ([] if retry == "1s" else [2, 4, 8, 16])


@pytest.mark.parametrize("knows", ["", "at 0s fail nvmlDeviceGetSamples code 3\n"])
def test_a_clock_that_is_set_back_costs_a_drain_at_most(record, knows):
    """What was read before, and not drained, has stamps of a time that is still to come."""
    run = record(ONE_CARD + JOB + knows + "at 0s hold job card 0 memory 5GiB\nat 33s step -2h\n", "--ticks", 4)
    seconds = card_seconds(run.db)
    assert sum(seconds.values()) == 120 and seconds["unobserved"] <= 6


def test_a_simulated_clock_that_is_set_back(simulate):
    seconds = card_seconds(simulate(ONE_CARD + "at 33s step -2h\n", "--ticks", 4))
    assert sum(seconds.values()) == 120 and seconds["unobserved"] <= 6


@pytest.mark.parametrize("begins, ends, idle", [(0, 0, "hold"), (10, 12, "hold"), (10, 12, "exit")])
def test_lists_that_cannot_be_read(simulate, begins, ends, idle):
    """Somebody came or went, by the card's memory, and nobody knows who."""
    before = "" if idle == "hold" else "at 0s hold job card 0 memory 5GiB\n"
    event = "hold job card 0 memory 5GiB" if idle == "hold" else "exit job"
    db = simulate(ONE_CARD + JOB + f"{before}at {ends}s {event}\n"
                  f"at {begins}s fail nvmlDeviceGetComputeRunningProcesses* code 999 until 100s\n", "--ticks", 4)
    seconds = card_seconds(db)
    assert abs(seconds["unobserved"] - (100 - ends)) <= 2.5 and sum(seconds.values()) == 120
    free = seconds.get("truly_idle", 0)
    assert abs(free - ends if idle == "hold" else free - 20) <= 2.5 and unsure(db) <= 1.3


def test_lists_that_fail_while_nobody_comes_or_goes(simulate):
    db = simulate(ONE_CARD + JOB + "at 0s hold job card 0 memory 5GiB\n"
                  "at 10s fail nvmlDeviceGetComputeRunningProcesses* code 999 until 100s\n", "--ticks", 4)
    assert card_seconds(db) == {"idle_held": 120.0} and unsure(db) == 0


def test_memory_that_two_exchange_is_held_for_sure(simulate):
    db = simulate(ONE_CARD + JOB + """
        process other pid 4194244 user bob uid 1002 command "other"
        at 0s hold job card 0 memory 4GiB
        at 0s hold other card 0 memory 6GiB
        at 17s hold job card 0 memory 6GiB
        at 17s hold other card 0 memory 4GiB
        """, "--ticks", 2)
    assert card_seconds(db) == {"idle_held": 60.0} and unsure(db) == 0


def test_slow_calls_do_not_move_energy(record):
    """Joules belong to the time at which the counter was read, not to the end of the round."""
    run = record(ONE_CARD + JOB + "at 0s hold job card 0 memory 5GiB\nat 0s load job card 0 sm 100 on 5s off 5s\n"
                 "at 22s slow nvmlDeviceGetMemoryInfo* 300ms\n", "--ticks", 4)
    (mw,), = rows(run.db, "SELECT sum(energy_mj) * 1.0 / sum(ms - energy_unknown_ms) FROM usage WHERE state = 1")
    assert abs(mw - 50) <= 2


# ---- drivers that report less, or what cannot be true ----

def test_utilisation_without_anybody_is_suspect(record):
    run = record(ONE_CARD + JOB + "at 0s hold job card 0 memory 5GiB\nat 0s load card 0 util 100\n"
                 "at 30s exit job\n", "--ticks", 4)
    seconds = card_seconds(run.db)
    assert abs(seconds["active"] - 30) <= 2 and abs(seconds["unobserved"] - 90) <= 2
    (text,), = rows(run.db, "SELECT text FROM event WHERE kind = 'suspect-use'")
    assert text == "card 0 reports 100% use with no process and no memory on it; this time counts as unobserved"


def test_use_of_zero_for_all_makes_nobody_a_squatter(record):
    run = record(ONE_CARD + JOB + """
        process other pid 4194244 user bob uid 1002 command "other"
        at 0s hold job card 0 memory 5GiB
        at 0s load job card 0 sm 90
        at 0s hold other card 0 memory 1GB
        at 0s zero-use card 0
        """, "--ticks", 2)
    assert rows(run.db, "SELECT sum(squatting_ms), sum(active_ms) FROM holding") == [(0, 120000)]


def test_a_board_without_memory_of_its_own(record):
    """As GB10: no memory of the card, stamps since boot, a ring that is empty while no process computes."""
    board = ONE_CARD.replace("memory 80GiB", "memory 80GiB memory-info none") + "stamps boot\nsamples-per-second 5\n"
    run = record(board + JOB + """
        at 0s fail nvmlDeviceGetSamples code 6
        at 20s hold job card 0 memory 5GiB
        at 40s exit job
        """, "--ticks", 2)
    seconds = card_seconds(run.db)
    assert abs(seconds["idle_held"] - 20) <= unsure(run.db) + 0.1 and unsure(run.db) <= 6
    assert seconds.get("unobserved", 0) == 0


def test_gpm_knows_the_use_of_instances(record):
    run = record(ONE_CARD.replace("max-power 400W", "max-power 400W gpm yes sm-active 40") + JOB + """
        mig 0 index 0 gi 7 ci 0 uuid MIG-1 name "Test A MIG 1g.10gb" memory 10GiB gpm yes
        at 0s hold job mig 0/0 memory 5GiB
        at 20s load job mig 0/0 sm 80
        at 50s load job mig 0/0 sm 0
        """, "--ticks", 3)
    seconds = card_seconds(run.db, "MIG-1")
    assert abs(seconds["active"] - 30) <= 2.5 and abs(seconds["idle_held"] - 60) <= 5
    ((ms, pct_ms),) = rows(run.db, "SELECT sum(ms), sum(pct_ms) FROM sm_active")
    assert abs(pct_ms / ms - 0.4 * 80 * 30 / 90) <= 2


# ---- in real time ----

def has_begun(db):
    with contextlib.suppress(sqlite3.OperationalError):
        return rows(db, "SELECT count(*) FROM run") == [(1,)]
    return False


@contextlib.contextmanager
def running(*command, **options):
    """A process that is gone afterwards, whatever happens."""
    child = subprocess.Popen(command, **options)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@pytest.mark.waits
def test_a_recorder_that_was_stopped_counts_only_what_it_knows(tmp_path):
    """A process that left during the stop counts until the stop; one that was there before and after counts for all. All
    its processes are stopped, as by a freezer: the one that asks the driver glances by itself."""
    scenario = """
        card 0 uuid GPU-aaaa name "Test A" memory 80GiB
        card 1 uuid GPU-bbbb name "Test B" memory 80GiB
        process leaver pid env LEAVER user a uid 0 command "a"
        process stayer pid env STAYER user b uid 0 command "b"
        at 0s hold leaver card 0 memory 5GiB
        at 0s hold stayer card 1 memory 5GiB
        at 7s exit leaver
        """
    db = tmp_path / "gua.db"
    with running("sleep", "60") as leaver, running("sleep", "60") as stayer:
        env = {**clean_environment(), **fake_driver(tmp_path, scenario, LEAVER=leaver.pid, STAYER=stayer.pid)}
        begin = time.time()
        with running(GUA, "daemon", "--foreground", "--db", db, env=env, stderr=subprocess.DEVNULL) as recorder:
            wait_for(lambda: has_begun(db))
            time.sleep(max(0, begin + 3 - time.time()))
            everybody = [recorder.pid, *children(recorder.pid)]
            for pid in everybody:
                os.kill(pid, signal.SIGSTOP)
            stopped = time.time()
            time.sleep(max(0, begin + 7 - time.time()))
            leaver.kill()
            leaver.wait()
            time.sleep(4)
            woken = time.time()
            for pid in everybody:
                os.kill(pid, signal.SIGCONT)
            time.sleep(2)
            ended = time.time()  # it may take its time to end
            recorder.terminate()
            recorder.wait()
    by_pid = dict(rows(db, "SELECT pid, sum(idle_held_ms) / 1000.0 FROM holding JOIN process ON process.id = process"
                       " WHERE command = 'sleep' GROUP BY pid"))
    (recording,), = rows(db, "SELECT started_ms / 1000.0 FROM run")
    assert by_pid[leaver.pid] <= stopped - begin + 1.5
    assert by_pid[stayer.pid] >= ended - max(begin, recording) - 1.5
    assert card_seconds(db)["unobserved"] >= woken - stopped - 2
    assert card_seconds(db, "GPU-bbbb").get("unobserved", 0) <= 1


@pytest.mark.parametrize("pause, close", [(0, 0.15), (400, 0.1)])
def test_two_that_take_turns_with_as_much_memory(record, pause, close):
    """One gives its memory back when the other takes as much, and works: used memory never changes. The record of what
    it did last comes after a list without it, and must not silence it when it is back. Without a pause the card's
    samples do not show the change of hands: it is known to about a second, of 11 s."""
    text = ONE_CARD + "".join(f"process {name} pid {pid} user {name} uid 1 command {name}\n"
                              for name, pid in (("p", 4194243), ("q", 4194244)))
    text += "at 0s hold p card 0 memory 2GiB\nat 1s load p card 0 sm 50\n"
    for i, at in enumerate(range(7000, 590000, 11300)):
        old, new = ("p", "q") if i % 2 == 0 else ("q", "p")
        text += f"at {at - pause}ms load {old} card 0 sm 0\nat {at}ms release {old} card 0\n"
        text += f"at {at}ms hold {new} card 0 memory 2GiB\nat {at + pause + 1}ms load {new} card 0 sm 50\n"
    run = record(text, "--ticks", 20)
    truth = Scenario(text).truth(0, 600).processes
    active = dict(rows(run.db, "SELECT pid, sum(active_ms) / 1000.0 FROM holding JOIN process ON process.id = process GROUP BY pid"))
    for name, pid in (("p", 4194243), ("q", 4194244)):
        assert abs(active[pid] - truth[name]["active"]) <= close * truth[name]["active"], (active, truth)

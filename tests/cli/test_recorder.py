"""The recorder on the fake driver and a virtual clock: every second is accounted, none invented."""
import contextlib
import fcntl
import json
import os
import pathlib
import signal
import socket
import sqlite3
import struct
import subprocess
import time

import pytest

from conftest import GUA, advance, clean_environment, gua, wait_for
from fake import fake_driver
from recorded import (ONE_CARD, TWO_CARDS, WALL, background, card_seconds, record,  # noqa: F401
                      recorder_pid, rows)


def report(db, *args):
    run = gua("report", "--db", db, "--since", "1000w", "--json", *args)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_burst_between_two_ticks_is_seen(record):
    run = record(ONE_CARD + """
        process job pid 4194242 user alice uid 1001 command "python train.py"
        at 0s hold job card 0 memory 8GiB
        at 31s load job card 0 sm 90
        at 33s load job card 0 sm 0
        """, "--ticks", 4)
    seconds = card_seconds(run.db)
    # 31 s and 33 s are both sample instants: exactly two seconds.
    assert seconds == {"active": 2.0, "idle_held": 118.0}


def test_each_sample_is_classified_by_itself(record):
    # 300 ms of every second: in some samples there is use for a part of their period.
    run = record(ONE_CARD + """
        process job pid 4194242 user alice uid 1001 command "python"
        at 0s hold job card 0 memory 8GiB
        at 0s load job card 0 sm 100 on 300ms off 700ms
        """, "--ticks", 2)
    seconds = card_seconds(run.db)
    assert abs(seconds["active"] - 18) <= 0.06 and sum(seconds.values()) == 60


def test_memory_thresholds(record):
    run = record(ONE_CARD + """
        process small pid 4194101 user alice uid 1001 command "python"
        at 0s hold small card 0 memory 100MB
        at 30s hold small card 0 memory 101MB
        """, "--ticks", 2)
    # When the memory changed lies between two glances.
    seconds = card_seconds(run.db)
    assert abs(seconds["idle_held"] - 30) <= 0.7 and sum(seconds.values()) == 60
    (unsure,), = rows(run.db, "SELECT (sum(unsure_ms) + sqrt(sum(unsure_ms2))) / 1000.0 FROM usage")
    assert abs(seconds["idle_held"] - 30) <= unsure + 0.01 <= 0.7


def test_unknown_memory_counts_as_held(record):
    run = record(ONE_CARD + """
        process wsl pid 4194101 user alice uid 1001 command "python"
        at 0s hold wsl card 0 memory unknown
        """, "--ticks", 1)
    assert card_seconds(run.db) == {"idle_held": 30.0}
    assert rows(run.db, "SELECT mem_peak_kib FROM holding_1m") == [(None,)]


def test_graphics_are_holders_only_on_request(record, tmp_path):
    scenario = ONE_CARD + """
        process x pid 4194101 user root uid 0 command "Xorg" kind graphics
        at 0s hold x card 0 memory 900MB
        """
    run = record(scenario, "--ticks", 1)
    assert card_seconds(run.db) == {"truly_idle": 30.0}
    run.db.unlink()
    run = record(scenario, "--ticks", 1, "--count-graphics")
    assert card_seconds(run.db) == {"idle_held": 30.0}


def test_own_thresholds_are_stored_and_used(record):
    run = record(ONE_CARD + "at 0s load card 0 util 30\n", "--ticks", 1, "--active-util", 50,
                 "--held-mem", "5MB")
    assert card_seconds(run.db) == {"truly_idle": 30.0}
    rules = report(run.db, "--now", "2026-11-02T08:00:30Z")["rules"]
    assert rules["active_util_pct"] == 50 and rules["held_mem_bytes"] == 5000000


def test_squatting_by_user(record, tmp_path):
    root = tmp_path / "root"
    for pid, uid in ((4194101, 1001), (4194102, 1002)):
        proc = root / "proc" / str(pid)
        proc.mkdir(parents=True)
        (proc / "stat").write_text(f"{pid} (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 0 0\n")
        (proc / "status").write_text(f"Name:\tpython\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (proc / "loginuid").write_text("4294967295")
        (proc / "cmdline").write_bytes(b"python\0work.py\0")
        (proc / "cgroup").write_text("0::/\n")
    (root / "proc" / "stat").write_text("btime 1793600000\n")
    (root / "etc").mkdir()
    (root / "etc" / "passwd").write_text("alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n")
    run = record(ONE_CARD + """
        process work pid 4194101 user alice uid 1001 command "python work.py"
        process squat pid 4194102 user bob uid 1002 command "python squat.py"
        at 0s hold work card 0 memory 8GiB
        at 0s hold squat card 0 memory 8GiB
        at 0s load work card 0 sm 95
        """, "--ticks", 2, root=root)
    people = {i["identity"]: i for i in report(run.db, "--now", "2026-11-02T08:01:00Z")["identities"]}
    assert people["bob"]["squatting_gpu_seconds"] == 60
    assert people["bob"]["share_gpu_seconds"] == 0
    assert people["alice"]["squatting_gpu_seconds"] == 0
    assert people["alice"]["share_gpu_seconds"] == 60
    assert people["alice"]["gpu_seconds"] == people["bob"]["gpu_seconds"] == 60


def test_a_lost_card_comes_back_and_the_other_goes_on(record):
    run = record(TWO_CARDS + """
        at 0s load card 0 util 50
        at 0s load card 1 util 50
        at 60s lost card 0 code 15 until 120s
        """, "--ticks", 8, "--retry", "5s")
    assert card_seconds(run.db, "GPU-bbbb") == {"active": 240.0}
    lost = card_seconds(run.db)
    assert lost["active"] + lost["unobserved"] == 240
    # Readings stop with the last drain before the loss, and start again with the first scan after.
    assert 60 <= lost["unobserved"] <= 60 + 5 + 35
    events = [kind for kind, in rows(run.db, "SELECT kind FROM event ORDER BY id")]
    assert events == ["card-new", "card-new", "card-lost", "card-back"]
    assert run.stderr.count("is lost") == 2  # when it starts, and when it is over
    assert rows(run.db, "SELECT status FROM gpu ORDER BY idx") == [("ok",), ("ok",)]


def test_a_card_that_is_lost_when_the_recorder_starts_is_no_other_card(tmp_path, clock_file):
    """The driver cannot name it, but the store can; one that it never saw gets its name when it answers."""
    clock, db = clock_file(WALL), tmp_path / "gua.db"
    words = ("daemon", "--db", db, "--clock", clock, "--retry", "5s", "--ticks")
    first = fake_driver(tmp_path, TWO_CARDS + "at 0s lost card 0 code 15 until 40s\nat 70s lost card 1 code 15 until 130s\n",
                        clock=clock)
    assert gua(*words, 2, env=first).returncode == 0
    assert rows(db, "SELECT idx, uuid, status FROM gpu ORDER BY idx") == [(0, "GPU-aaaa", "ok"), (1, "GPU-bbbb", "ok")]
    advance(clock, 20)  # the second one is lost now
    run = gua(*words, 3, env=first)
    assert run.returncode == 0 and "card 1 (GPU-bbbb) is lost" in run.stderr
    assert rows(db, "SELECT idx, uuid, status FROM gpu ORDER BY idx") == [(0, "GPU-aaaa", "ok"), (1, "GPU-bbbb", "ok")]
    assert [kind for kind, in rows(db, "SELECT kind FROM event ORDER BY id")].count("card-new") == 2


def test_a_card_that_answers_again_when_the_recorder_starts_is_back(tmp_path, clock_file):
    """Else the events would say for ever that it is lost."""
    clock, db = clock_file(WALL), tmp_path / "gua.db"
    words = ("daemon", "--db", db, "--clock", clock, "--retry", "5s", "--ticks")
    env = fake_driver(tmp_path, TWO_CARDS + "at 40s lost card 1 code 15 until 100s\n", clock=clock)
    assert gua(*words, 2, env=env).returncode == 0
    assert rows(db, "SELECT status FROM gpu ORDER BY idx") == [("ok",), ("lost",)]
    advance(clock, 60)
    for _ in range(2):
        run = gua(*words, 1, env=env)
        assert run.returncode == 0, run.stderr
    assert [kind for kind, in rows(db, "SELECT kind FROM event WHERE gpu = 2 ORDER BY id")] == [
        "card-new", "card-lost", "card-back"]


def test_a_short_loss_costs_no_more_than_it_lasts(record):
    """A lost card is tried every second while the other one answers, and the ring has the seconds before a try."""
    run = record(TWO_CARDS + """
        at 0s load card 0 util 50
        at 0s load card 1 util 50
        at 62s lost card 0 code 15 until 82s
        """, "--ticks", 5)
    assert card_seconds(run.db, "GPU-bbbb") == {"active": 150.0}
    lost = card_seconds(run.db)
    assert lost["active"] + lost["unobserved"] == 150
    assert lost["unobserved"] <= 20 + 5 + 1.5  # the last drain before it was up to 5 s earlier
    (back_ms,), = rows(run.db, "SELECT at_ms FROM event WHERE kind = 'card-back'")
    assert 82 <= back_ms / 1000 - WALL <= 82 + 1.5


def test_a_clock_step_is_unobserved_and_an_event(record):
    run = record(ONE_CARD + """
        at 0s load card 0 util 50
        at 70s step +1h
        """, "--ticks", 4)
    seconds = card_seconds(run.db)
    assert sum(seconds.values()) == 120  # measured time: the hour is not in it
    assert 0 < seconds["unobserved"] <= 6
    assert rows(run.db, "SELECT kind, value FROM event WHERE kind = 'clock-step'") == [
        ("clock-step", 3600000)]


def test_a_clock_step_back_counts_nothing_twice(record):
    run = record(ONE_CARD + """
        at 0s load card 0 util 50
        at 70s step -1h
        """, "--ticks", 4)
    seconds = card_seconds(run.db)
    assert sum(seconds.values()) == 120
    assert seconds["active"] >= 114


def test_a_suspend_is_unobserved_and_an_event(record):
    run = record(ONE_CARD + """
        at 0s load card 0 util 50
        at 62s suspend 2h
        """, "--ticks", 4)
    seconds = card_seconds(run.db)
    assert 7190 <= seconds["unobserved"] <= 7205
    # Ticks after the suspend are not caught up back to back.
    assert len(rows(run.db, "SELECT 1 FROM event WHERE kind = 'suspend'")) == 1
    assert sum(seconds.values()) - seconds["unobserved"] <= 125


def test_without_utilisation_held_time_is_of_its_own_kind(record):
    """Where the driver reports no utilisation, a held card is use unknown, and a card without holders is free."""
    run = record(TWO_CARDS + """
        process job pid 4194101 user alice uid 1001 command "python"
        at 0s hold job card 0 memory 5GiB
        at 0s fail nvmlDeviceGetSamples code 3
        at 0s fail nvmlDeviceGetUtilizationRates code 3
        """, "--ticks", 2)
    assert card_seconds(run.db) == {"use_unknown": 60.0}
    assert card_seconds(run.db, "GPU-bbbb") == {"truly_idle": 60.0}
    assert rows(run.db, "SELECT sum(use_unknown_presence_ms) FROM holding") == [(60000,)]


def test_without_an_answer_all_is_unobserved(record):
    run = record(ONE_CARD + """
        at 0s fail nvmlDeviceGetSamples code 17
        at 0s fail nvmlDeviceGetUtilizationRates code 17
        """, "--ticks", 2)
    assert card_seconds(run.db) == {"unobserved": 60.0}


def test_polled_readings_account_for_all_time(record):
    run = record(ONE_CARD + "at 0s load card 0 util 50\n", "--ticks", 4,
                 missing=["nvmlDeviceGetSamples"])
    assert card_seconds(run.db) == {"active": 120.0}


def test_mig_instances_are_cards(record):
    run = record(ONE_CARD + """
        mig 0 index 0 gi 7 ci 0 uuid MIG-1 name "Test A MIG 1g.10gb" memory 10GiB
        mig 0 index 3 gi 9 ci 0 uuid MIG-2 name "Test A MIG 2g.20gb" memory 20GiB
        process job pid 4194101 user alice uid 1001 command "python"
        at 0s hold job mig 0/3 memory 5GiB
        """, "--ticks", 1)
    assert rows(run.db, "SELECT uuid, parent_uuid, mig_index, gpu_instance FROM gpu ORDER BY uuid") == [
        ("MIG-1", "GPU-aaaa", 0, 7), ("MIG-2", "GPU-aaaa", 3, 9)]
    assert card_seconds(run.db, "MIG-1") == {"truly_idle": 30.0}
    # The holder of an instance is known; whether it uses the instance is not.
    assert card_seconds(run.db, "MIG-2") == {"use_unknown": 30.0}
    assert rows(run.db, "SELECT pid, use_unknown_presence_ms FROM process JOIN holding ON process = id") == [
        (4194101, 30000)]


def test_energy_of_idle_held_time(record):
    run = record(ONE_CARD + """
        process job pid 4194101 user alice uid 1001 command "python"
        at 0s hold job card 0 memory 5GiB
        """, "--ticks", 20)
    (mj,), = rows(run.db, "SELECT sum(energy_mj) FROM usage_1m WHERE state = 1")
    # 50 W for 600 s, less what was used before the first reading and after the last sample.
    assert abs(mj - 50 * 600 * 1000) <= 50 * 1000


def test_once_records_the_ring(tmp_path, clock_file):
    clock = clock_file(WALL, boot_seconds=3600 + 60)
    env = fake_driver(tmp_path, ONE_CARD + "at 0s load card 0 util 50\n", clock=clock)
    run = gua("daemon", "--db", tmp_path / "gua.db", "--clock", clock, "--once", env=env)
    assert run.returncode == 0, run.stderr
    assert 9.5 <= card_seconds(tmp_path / "gua.db")["active"] <= 10.5


def test_a_ring_that_reaches_back_before_the_last_run_is_counted_once(tmp_path, clock_file):
    clock, db = clock_file(WALL), tmp_path / "gua.db"
    env = fake_driver(tmp_path, ONE_CARD + "ring 20s\nat 0s load card 0 util 50\n", clock=clock)
    assert gua("daemon", "--db", db, "--clock", clock, "--ticks", 2, env=env).returncode == 0
    advance(clock, 15)
    assert gua("daemon", "--db", db, "--clock", clock, "--ticks", 2, env=env).returncode == 0
    assert card_seconds(db) == {"active": 135.0}


def test_a_quick_restart_leaves_no_gap(tmp_path, clock_file):
    clock = clock_file(WALL)
    env = fake_driver(tmp_path, ONE_CARD + "at 0s load card 0 util 50\n", clock=clock)
    for _ in range(3):
        run = gua("daemon", "--db", tmp_path / "gua.db", "--clock", clock, "--ticks", 2, env=env)
        assert run.returncode == 0, run.stderr
        advance(clock, 4)
    seconds = card_seconds(tmp_path / "gua.db")
    assert seconds == {"active": 3 * 60 + 2 * 4.0}


@pytest.mark.parametrize("started, memory, expected", [
    ("-1h", "8GiB", {"idle_held": 128.0}),
    ("-1h", "50MB", {"truly_idle": 120.0, "unobserved": 8.0}),
    (None, None, {"truly_idle": 120.0, "unobserved": 8.0}),
], ids=["held", "little", "empty"])
def test_idle_time_before_the_first_list_of_a_run(tmp_path, clock_file, started, memory, expected):
    """The driver's ring has that time, but says nothing of those that came and went in it."""
    db = tmp_path / "gua.db"
    scenario = "start 2026-11-02T08:00:00Z\n" + ONE_CARD
    if started:
        scenario += f"process job pid 4194200 user ann uid 1000 command job started {started}\n"
        scenario += f"at 0s hold job card 0 memory {memory}\n"
    (tmp_path / "s.scenario").write_text(scenario)
    clock = clock_file(WALL)
    for _ in range(2):
        run = gua("daemon", "--source", "sim", "--scenario", tmp_path / "s.scenario", "--clock", clock, "--db", db, "--ticks", 2)
        assert run.returncode == 0, run.stderr
        advance(clock, 8)
    assert card_seconds(db) == expected


def test_no_driver(tmp_path):
    db = tmp_path / "gua.db"
    (tmp_path / "proc").mkdir()
    for args in (["--once"], ["--ticks", 1], []):
        run = gua("daemon", "--db", db, "--root", tmp_path, *args)
        assert run.returncode == 1
        assert "no NVIDIA driver" in run.stderr


def test_the_source_is_never_invented_silently(tmp_path):
    run = gua("daemon", "--db", tmp_path / "gua.db", "--once", "--scenario", "x")
    assert run.returncode == 2 and "--scenario goes with --source sim" in run.stderr


@pytest.mark.parametrize("args, message", [
    (["--interval", "soon"], "not a duration"),
    (["--interval", "0s"], "out of range"),
    (["--drain", "9s"], "out of range"),
    (["--ticks", "0"], "out of range"),
    (["--once", "--ticks", "1"], "do not go together"),
    (["--source", "cuda"], "unknown source 'cuda'; there are auto ("),
    (["--db", ""], "needs a path"),
    (["--active-util", "0"], "out of range"),
    (["extra"], "unexpected argument"),
])
def test_wrong_options(args, message):
    run = gua("daemon", *args)
    assert run.returncode == 2
    assert message in run.stderr and "usage: gua daemon" in run.stderr


# Real time from here: the shipped binary in the background, on the fake driver.

def test_start_status_stop(background):
    run = background(ONE_CARD)
    assert run.returncode == 0, run.stderr
    assert f"recording into {run.db} (pid " in run.stdout
    assert run.stdout.endswith(f"; stop with: gua stop --db {run.db}\n")
    status = gua("status", "--db", run.db)
    assert status.returncode == 0
    assert "running (pid" in status.stdout and "1 ok" in status.stdout and "faults     none" in status.stdout
    stop = gua("stop", "--db", run.db)
    assert stop.returncode == 0, stop.stderr
    assert not pathlib.Path(str(run.db) + "-wal").exists()
    status = gua("status", "--db", run.db)
    assert status.returncode == 1 and "not running; stopped" in status.stdout
    assert gua("stop", "--db", run.db).returncode == 1


def test_a_recorder_outside_of_the_container_is_running(background):
    """Seen from processes that have pids of their own, as in a container."""
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("name spaces cannot be made here")
    run = background(ONE_CARD)

    def within(command, *args):
        return subprocess.run([*inside, GUA, command, "--db", run.db, *args], capture_output=True, text=True,
                              env=clean_environment())
    status = within("status")
    assert status.returncode == 0 and "recorder   running, outside of this container\n" in status.stdout
    stop = within("stop")
    assert stop.returncode == 1 and "outside of this container; stop it there" in stop.stderr
    assert "a recorder outside of this container is already writing" in within("daemon", "--once").stderr
    assert "running (pid" in gua("status", "--db", run.db).stdout


def test_a_second_recorder_is_refused(background, tmp_path):
    run = background(ONE_CARD)
    link = tmp_path / "link.db"
    link.symlink_to(run.db)
    for db in (run.db, link):
        second = gua("daemon", "--db", db, "--once", "--source", "sim")
        assert second.returncode == 1
        assert "already writing" in second.stderr and "gua status --db" in second.stderr


def test_a_second_recorder_through_a_hard_link_is_refused(background, tmp_path):
    """Beside the hard link there is no lock file, but the store itself is locked."""
    run = background(ONE_CARD)
    other = tmp_path / "other" / "same.db"
    other.parent.mkdir()
    os.link(run.db, other)
    second = gua("daemon", "--db", other, "--once", "--source", "sim")
    assert second.returncode == 1
    assert f"another recorder is already writing {other}" in second.stderr
    assert "running (pid" in gua("status", "--db", run.db).stdout


def test_a_reader_cannot_keep_the_recorder_out(tmp_path):
    """A program that may only read the store can lock the same byte for reading: recording goes on."""
    db = tmp_path / "gua.db"
    once = ["daemon", "--db", db, "--once", "--source", "sim"]
    assert gua(*once).returncode == 0
    with open(db, "rb") as held:
        lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 2**62, 1, 0)
        fcntl.fcntl(held, 37, lock)  # F_OFD_SETLK, which this Python does not name
        again = gua(*once)
    assert again.returncode == 0 and "is not a recorder has locked" in again.stderr


@pytest.mark.parametrize("how", [["daemon"], ["start"], ["daemon", "--once"]])
def test_a_scenario_that_cannot_be_read_leaves_nothing(tmp_path, how):
    (tmp_path / "bad.scenario").write_text("card 0\nnonsense\n")
    for scenario, said in (("none.scenario", "none.scenario: No such file"), ("bad.scenario", "bad.scenario:")):
        run = gua(*how, "--db", tmp_path / "x.db", "--source", "sim", "--scenario", tmp_path / scenario)
        assert run.returncode in (1, 2) and said in run.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.scenario"]


@pytest.mark.parametrize("how", [["daemon"], ["start"], ["daemon", "--once"], ["daemon", "--ticks", "2"]])
def test_no_driver_leaves_nothing_that_was_not_there(tmp_path, how):
    new = tmp_path / "new"
    log = ["--log-file", new / "logs" / "gua.log"] if len(how) == 1 else []
    run = gua(*how, "--db", new / "deep" / "x.db", *log, "--nvml", tmp_path / "none.so")
    assert run.returncode == 1 and "cannot load the NVIDIA management library" in run.stderr
    assert list(tmp_path.iterdir()) == []
    # What was there stays as it was.
    old = tmp_path / "old"
    old.mkdir()
    (old / "x.db.log").write_text("an earlier word\n")
    assert gua(*how, "--db", old / "x.db", "--nvml", tmp_path / "none.so").returncode == 1
    assert [path.name for path in old.iterdir()] == ["x.db.log"]
    assert (old / "x.db.log").read_text().startswith("an earlier word\n")
    assert gua("daemon", "--once", "--source", "sim", "--db", old / "x.db").returncode == 0
    before = gua("report", "--db", old / "x.db", "--json", "--since", "1d", "--now", "2026-11-03").stdout
    assert gua(*how, "--db", old / "x.db", "--nvml", tmp_path / "none.so").returncode == 1
    assert gua("report", "--db", old / "x.db", "--json", "--since", "1d", "--now", "2026-11-03").stdout == before


def test_a_recorder_that_is_refused_leaves_the_pid_file_of_the_other(background, tmp_path):
    pid_file = tmp_path / "pid"
    run = background(ONE_CARD, "--pid-file", pid_file)
    assert pid_file.read_text().strip() == str(recorder_pid(run.db))
    assert background(ONE_CARD, "--pid-file", pid_file).returncode == 1
    assert pid_file.exists()
    assert gua("stop", "--db", run.db).returncode == 0
    wait_for(lambda: not pid_file.exists())


def test_looks_from_a_timer_are_one_run(tmp_path):
    """A row for each would be most of the file; another rule is another run."""
    db = tmp_path / "x.db"

    def runs():
        with contextlib.closing(sqlite3.connect(db)) as file:
            return file.execute("SELECT started_ms, last_tick_ms, ended_ms, how_ended FROM run").fetchall()

    def look(*options):
        assert gua("daemon", "--once", "--source", "sim", "--db", db, *options).returncode == 0
        return runs()
    (first,), (last,) = look(), look()
    assert last[0] == first[0] and last[1] > first[1] and last[2] > first[2] and last[3] == "finished"
    assert len(look("--active-util", "20")) == 2
    assert len(look()) == 3


def test_start_tells_why_it_cannot(tmp_path, background):
    run = background(ONE_CARD + "at 0s fail nvmlInit_v2 code 9\n")
    assert run.returncode == 1
    assert "gua start: " in run.stderr and "river" in run.stderr
    assert gua("status", "--db", run.db).returncode == 1


def test_kill_9_leaves_no_stale_pid_and_loses_no_tick(background):
    run = background(ONE_CARD)
    wait_for(lambda: sum(card_seconds(run.db).values()) > 1)
    os.kill(recorder_pid(run.db), signal.SIGKILL)
    wait_for(lambda: gua("status", "--db", run.db).returncode == 1)
    assert "not running; killed" in gua("status", "--db", run.db).stdout
    before = sum(card_seconds(run.db).values())
    assert before > 1
    again = background(ONE_CARD)
    assert again.returncode == 0, again.stderr
    wait_for(lambda: sum(card_seconds(run.db).values()) > before)
    assert rows(run.db, "PRAGMA integrity_check") == [("ok",)]


def open_files(pid):
    """What a process has open."""
    found = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(fd))
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


@pytest.mark.waits
def test_a_process_that_ends_is_seen_at_once(background):
    began_ms = time.time() * 1000
    with subprocess.Popen(["sleep", "60"]) as child:
        run = background(ONE_CARD + """
            process job pid env JOB user ignored uid 0 command "ignored"
            at 0s hold job card 0 memory 5GiB
            """, "--interval", "10m", JOB=child.pid)
        assert run.returncode == 0, run.stderr
        found = rows(run.db, "SELECT pid, command FROM process")
        assert found == [(child.pid, "sleep")]
        time.sleep(0.3)
        watched = open_files(recorder_pid(run.db)).count("anon_inode:[pidfd]")
        child.kill()
        child.wait()
    # It is watched until its end was seen, and that is long before the next look.
    wait_for(lambda: open_files(recorder_pid(run.db)).count("anon_inode:[pidfd]") < watched)
    seen_ms = time.time() * 1000
    time.sleep(1)
    assert gua("stop", "--db", run.db).returncode == 0
    # The fake driver still lists it: that is a process which no longer exists (_dead).
    ours = "process WHERE command = 'sleep'"
    (ms,), = rows(run.db, f"SELECT sum(idle_held_ms) FROM holding_1m WHERE process IN (SELECT id FROM {ours})")
    (last,), = rows(run.db, f"SELECT last_seen_ms FROM {ours}")
    assert last <= seen_ms
    # A sample accounts for the sixth of a second until the next, at both ends. The driver's ring reaches back to
    # before the first look.
    assert 200 <= ms <= seen_ms - began_ms + 400


@pytest.mark.waits
def test_a_driver_that_hangs(background, tmp_path):
    hang = tmp_path / "hang"
    run = background(ONE_CARD + "at 0s hang nvmlDeviceGetSamples\nat 0s load card 0 util 50\n", "--driver-timeout", "200ms",
                     FAKENVML_HANG=hang)
    assert run.returncode == 0, run.stderr
    hang.touch()
    wait_for(lambda: "does not answer" in gua("status", "--db", run.db).stdout)
    assert "cards      1: 1 ok when last read\n" in gua("status", "--db", run.db).stdout
    assert set(json.loads(gua("status", "--db", run.db, "--json").stdout)["cards"].values()) == {None}
    time.sleep(1.5)
    hang.unlink()
    wait_for(lambda: "faults     none" in gua("status", "--db", run.db).stdout)
    assert gua("stop", "--db", run.db).returncode == 0
    kinds = [kind for kind, in rows(run.db, "SELECT kind FROM event ORDER BY id")]
    assert "driver-down" in kinds and "driver-up" in kinds
    # It has gone on sampling, and its ring reaches back that far: nothing is lost.
    assert sum(card_seconds(run.db).values()) >= 1.5 and card_seconds(run.db).get("unobserved", 0) <= 0.5
    # Its start and its end, and nothing at each tick; a machine that is slow enough makes the driver late by itself.
    log = pathlib.Path(str(run.db) + ".log").read_text()
    assert log.count("does not answer") == kinds.count("driver-down") + kinds.count("driver-up")


def test_stop_while_the_driver_hangs(background, tmp_path):
    hang = tmp_path / "hang"
    run = background(ONE_CARD + "at 0s hang nvmlDeviceGetSamples\n", "--driver-timeout", "200ms", FAKENVML_HANG=hang)
    hang.touch()
    wait_for(lambda: "does not answer" in gua("status", "--db", run.db).stdout)
    stop = gua("stop", "--db", run.db)
    assert stop.returncode == 0, stop.stderr


def test_service_manager_protocol(tmp_path):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))
        server.settimeout(60)
        env = fake_driver(tmp_path, ONE_CARD)
        env["NOTIFY_SOCKET"] = str(path)
        with subprocess.Popen([GUA, "daemon", "--foreground", "--db", tmp_path / "gua.db", "--interval",
                               "200ms", "--drain", "100ms"], env=clean_environment(**env)) as child:
            assert server.recv(100) == b"READY=1"
            assert server.recv(100) == b"WATCHDOG=1"
            child.terminate()
            words = [server.recv(100)]
            while words[-1] != b"STOPPING=1":
                words.append(server.recv(100))
            assert child.wait(60) == 0


def test_foreground_waits_for_a_driver(tmp_path, clock_file):
    """The driver's clock stands until the recorder has tried."""
    clock, said, db = clock_file(time.time()), tmp_path / "said", tmp_path / "gua.db"
    env = fake_driver(tmp_path, ONE_CARD + "at 0s fail nvmlInit_v2 code 9 until 1s\n", clock=clock)
    with open(said, "w") as errors, subprocess.Popen(
            [GUA, "daemon", "--foreground", "--db", db, "--interval", "200ms", "--drain", "100ms", "--retry", "100ms",
             "--ticks", "3"], env=clean_environment(**env), stderr=errors) as child:
        wait_for(lambda: "trying again" in said.read_text(), said.read_text)
        advance(clock, 2)
        assert child.wait(60) == 0, said.read_text()
    assert said.read_text().count("trying again") == 2  # its start and its end
    # The recorder ran while it waited, and what it waited for is stored.
    (run,), (down, up) = rows(db, "SELECT started_ms FROM run"), rows(db, "SELECT kind, at_ms FROM event WHERE gpu IS NULL")
    assert (down[0], up[0]) == ("driver-down", "driver-up") and run[0] <= down[1] < up[1]
    assert card_seconds(db)["truly_idle"] > 0


def test_files_left_open(background):
    with subprocess.Popen(["sleep", "60"]) as child:
        run = background(ONE_CARD + """
            process job pid env JOB user ignored uid 0 command "ignored"
            at 0s hold job card 0 memory 5GiB
            """, JOB=child.pid)
        wait_for(lambda: sum(card_seconds(run.db).values()) > 1)
        kinds = sorted(name.replace(str(run.db), "DB") for name in open_files(recorder_pid(run.db)))
        child.kill()
    allowed = {"/dev/null", "/proc", "DB", "DB-wal", "DB-shm", "DB.lock", "DB.status", "DB.log", "anon_inode:[pidfd]",
               "anon_inode:[signalfd]", "anon_inode:[eventpoll]", "anon_inode:[eventfd]"}
    # Two sockets: to the process that asks the driver, and to the one that reads other processes.
    strange = [k for k in kinds if k not in allowed and not k.startswith("socket:")]
    assert not strange and sum(k.startswith("socket:") for k in kinds) == 2, kinds


@pytest.mark.waits
def test_a_full_disk_loses_nothing(tmp_path):
    """A file size limit that is lifted again: the sums of the time in between are there."""
    import resource
    env = fake_driver(tmp_path, ONE_CARD, FAKENVML_START=time.time() - 60)  # its ring is full
    db = tmp_path / "gua.db"
    gua("daemon", "--db", db, "--once", env=env)
    once = sum(card_seconds(db).values())
    with subprocess.Popen([GUA, "daemon", "--foreground", "--db", db, "--interval", "100ms", "--drain", "100ms"],
                          env=clean_environment(**env), stderr=subprocess.PIPE, text=True) as child:
        try:
            wait_for(lambda: sum(card_seconds(db).values()) > once + 1)
            unlimited = resource.prlimit(child.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
            wait_for(lambda: "keeping what fits in memory" in gua("status", "--db", db).stdout)
            first, begun = card_seconds(db), time.monotonic()
            time.sleep(0.5)
            assert card_seconds(db) == first
            full = time.monotonic() - begun
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, unlimited)
            wait_for(lambda: "faults     none" in gua("status", "--db", db).stdout)
        finally:
            child.terminate()
        assert child.wait(60) == 0
    seconds = card_seconds(db)
    assert sum(seconds.values()) >= sum(first.values()) + full
    # Between the two recorders there is time that nobody saw.
    assert seconds.get("unobserved", 0) < first.get("unobserved", 0) + 1


MIG = ONE_CARD + """mig 0 index 0 gi 1 ci 0 uuid MIG-1111 name "Test A MIG 1g.10gb" memory 10GiB
mig 0 index 1 gi 2 ci 0 uuid MIG-2222 name "Test A MIG 1g.10gb" memory 10GiB
"""


def test_an_instance_that_was_destroyed_has_no_time(record):
    """Neither it nor a card that is instances now is a fault, or unobserved for ever."""
    run = record(MIG + "at 100s fail nvmlDeviceGetMigDeviceHandleByIndex code 6 until 400s\n", "--foreground",
                 "--ticks", "20", "-v")
    seen = dict(rows(run.db, "SELECT uuid, sum(ms) FROM gpu JOIN usage_1m ON gpu = gpu.id GROUP BY uuid"))
    assert set(seen) == {"MIG-1111", "MIG-2222"}
    assert all(290_000 <= ms <= 370_000 for ms in seen.values())  # of 600 s
    assert "is lost (driver code" not in run.stderr


def test_the_service_is_up_while_it_waits_for_a_driver(tmp_path):
    """systemd would end it after its start timeout, and hold up the boot until then."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))
        server.settimeout(60)
        env = clean_environment(NOTIFY_SOCKET=str(path), GUA_NVML=str(tmp_path / "none"))
        with subprocess.Popen([GUA, "daemon", "--foreground", "--db", tmp_path / "gua.db", "--retry", "100ms"],
                              env=env, stderr=subprocess.DEVNULL) as child:
            words = [server.recv(100) for _ in range(4)]
            child.terminate()
            assert child.wait(60) == 0
    assert words == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1", b"WATCHDOG=1"]

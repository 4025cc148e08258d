"""gua report on stores made by hand: every format, every kind of window, every kind of bad input."""
import csv
import fcntl
import io
import itertools
import json
import re
import os
import pty
import shutil
import sqlite3
import struct
import subprocess
import termios

import jsonschema
import pytest

from conftest import GUA, ROOT, clean_environment, gua
from handmade import ACTIVE, HOUR, IDLE_HELD, SQUATTING, TRULY_IDLE, UNOBSERVED, USE_UNKNOWN, Store

T = 1793620800  # Mon 2026-11-02 12:00 UTC
SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())


def report(*stores, now=T + HOUR + 5, **options):
    """Runs the report as of `now` and checks that it went well."""
    run = gua("report", *[x for s in stores for x in ("--db", s)], "--now", f"@{now}",
              *options.pop("args", ()), **options)
    assert run.returncode == 0, run.stderr
    return run.stdout


def report_json(*stores, args=(), **options):
    """The report as JSON, checked against the schema; NaN and Infinity are refused."""
    def refuse(word):
        raise AssertionError(word)
    text = report(*stores, args=(*args, "--json"), **options)
    document = json.loads(text, parse_constant=refuse)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def report_csv(*stores, args=(), **options):
    text = report(*stores, args=(*args, "--format", "csv"), **options)
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def widest(text):
    """The widest line, in characters: no test below uses wide characters unless it says so."""
    return max(map(len, text.splitlines()))


def fails(status, *args, **options):
    run = gua("report", *args, **options)
    assert run.returncode == status, run.stderr
    assert run.stdout == ""
    return run.stderr


@pytest.fixture
def store(tmp_path):
    return lambda name="gua.db": Store(tmp_path / name)


@pytest.fixture
def lab(store):
    """An hour of three cards: a training run, a forgotten notebook with a squatter beside a busy
    process, and a card that is lost after half an hour."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    busy, held = (s.card(host, i, T, T + HOUR) for i in range(2))
    lost = s.card(host, 2, T, T + HOUR / 2, status="lost", name="NVIDIA RTX A6000")
    alice = s.process(host, 100, "alice", started=T, last_active=T + 1650)
    bob = s.process(host, 200, "bob", "jupyter-lab", notebook="thesis.ipynb")
    carol = s.process(host, 300, "carol", "python idle.py")
    for minute in range(60):
        t = T + 60 * minute
        active = minute < 28
        s.usage(t, busy, ACTIVE if active else IDLE_HELD, 60, util=90 if active else 0,
                joules=60 * (300 if active else 80))
        s.holding(t, busy, alice, ACTIVE if active else IDLE_HELD, 60,
                  share=60 if active else 40, mem_mb=20000)
        s.holding(t, busy, carol, SQUATTING if active else IDLE_HELD, 60,
                  share=0 if active else 20, mem_mb=2000)
        s.usage(t, held, IDLE_HELD, 60, joules=60 * 70)
        s.holding(t, held, bob, IDLE_HELD, 60, share=60, mem_mb=8200)
        s.usage(t, lost, TRULY_IDLE if minute < 30 else UNOBSERVED, 60,
                joules=60 * 20 if minute < 30 else None)
    return s.save()


# The report that people know.

def test_text(lab, expect):
    expect("report/lab.txt", report(lab, args=("--cost", "2.5", "--currency", "EUR")))


def test_text_by_process(lab, expect):
    expect("report/lab-process.txt", report(lab, args=("--by", "process")))


def test_by_card_has_no_holders(lab):
    text = report(lab, args=("--by", "card"))
    assert "§3 Per-GPU" in text and "By " not in text


def test_json(lab, expect):
    report_json(lab)
    expect("report/lab.json", report(lab, args=("--json", "--by", "process", "--cost", "2.5")))


@pytest.mark.parametrize("by", ["user", "process", "card"])
def test_csv(lab, expect, by):
    text = report(lab, args=("--format", "csv", "--by", by))
    assert len(list(csv.reader(io.StringIO(text, newline="")))) == 4
    expect(f"report/lab-{by}.csv", text)


def test_json_two_ways(lab):
    assert report(lab, args=("--json",)) == report(lab, args=("--format", "json"))


def test_formats_agree(lab):
    document = report_json(lab, args=("--by", "process"))
    cards = report_csv(lab, args=("--by", "card"))
    for state in ("active", "idle_held", "truly_idle", "unobserved"):
        in_csv = sum(float(row[f"{state}_gpu_seconds"]) for row in cards)
        in_json = sum(card["gpu_seconds"][state] for card in document["gpus"])
        assert in_csv == in_json == document["gpu_seconds"][state]
    for state in ("active", "idle_held", "truly_idle"):
        assert sum(cell[state] for cell in document["heatmap"]) == \
            document["gpu_seconds"][state]
    users = report_csv(lab)
    assert [row["identity"] for row in users] == \
        [who["identity"] for who in document["identities"]]
    for row, who in zip(users, document["identities"]):
        assert float(row["gpu_seconds"]) == who["gpu_seconds"]
    assert sum(p["idle_held_gpu_seconds"] for p in document["breakdown"]["rows"]) == \
        sum(who["idle_held_gpu_seconds"] for who in document["identities"])


def test_shares_add_up_to_the_cards_time(lab):
    document = report_json(lab)
    shares = sum(who["share_gpu_seconds"] for who in document["identities"])
    used = document["gpu_seconds"]["active"] + document["gpu_seconds"]["idle_held"]
    assert shares + document["unattributed_share_gpu_seconds"] == used
    assert document["unattributed_share_gpu_seconds"] == 0


def test_numbers(lab):
    document = report_json(lab, args=("--cost", "2"))
    assert document["gpu_seconds"] == {"active": 1680, "idle_held": 1920 + 3600,
                                       "truly_idle": 1800, "unobserved": 1800, "use_unknown": 0, "reserved": None}
    assert document["window"]["observed"] == pytest.approx(9000 / 10800, abs=1e-6)
    assert document["headline"]["idle_held"] == pytest.approx(5520 / 9000, abs=1e-6)
    waste = document["waste"]
    assert waste["equivalent_gpus_unavailable"] == pytest.approx(3 * 5520 / 9000, abs=1e-5)
    assert waste["energy_kwh"] == pytest.approx((1920 * 80 + 3600 * 70) / 3.6e6, abs=1e-6)
    assert waste["cost"] == pytest.approx(2 * 5520 / 3600, abs=1e-4)
    assert waste["currency"] == "USD" and waste["verdict"] == "allocation_policy"
    carol = next(w for w in document["identities"] if w["identity"] == "carol")
    assert carol["squatting_gpu_seconds"] == 1680 and carol["gpu_seconds"] == 3600
    assert carol["share_gpu_seconds"] == 32 * 20 and carol["last_active"] is None


# Windows.

def one_card(store, slots, name="gua.db", width=60, run=None, first=None, last=None, **card):
    """A store with one card and idle-held slots."""
    s = store(name)
    host = s.host()
    start, end = min(slots), max(slots) + width
    s.run(host, *(run or (start, end)))
    gpu = s.card(host, 0, start if first is None else first, end if last is None else last,
                 **card)
    for slot in slots:
        s.usage(slot, gpu, IDLE_HELD, width, width=width)
    return s.save()


def minutes(start, n):
    return [start + 60 * i for i in range(n)]


def test_default_window_is_an_hour(store):
    path = one_card(store, minutes(T - 2 * HOUR, 180))
    window = report_json(path)["window"]
    assert window["since"] == "2026-11-02T12:00:00Z" and window["seconds"] == 3600


def test_since_beyond_the_data_is_all_data(store):
    path = one_card(store, minutes(T, 60), first=T + 20)
    document = report_json(path, args=("--since", "1000d"))
    assert document["window"]["since"] == "2026-11-02T12:00:20Z"
    assert document["window"]["until"] == "2026-11-02T13:00:00Z"
    assert document["gpu_seconds"]["idle_held"] == 3600


def test_a_live_recorder_ends_the_window_at_its_last_tick(store):
    path = one_card(store, minutes(T, 60))
    document = report_json(path, now=T + HOUR + 69)  # 2 x 30 s + 10 s
    assert document["window"]["until"] == "2026-11-02T13:00:00Z"
    assert document["gpu_seconds"]["unobserved"] == 0
    assert document["hosts"][0]["recording"] is True


def test_an_absent_recorder_is_unobserved_time(store):
    path = one_card(store, minutes(T, 60))
    document = report_json(path, now=T + 3 * HOUR, args=("--since", "1d"))
    assert document["window"]["until"] == "2026-11-02T15:00:00Z"
    assert document["gpu_seconds"]["unobserved"] == 2 * HOUR
    assert document["window"]["observed"] == pytest.approx(1 / 3, abs=1e-6)
    assert "No recorder on lab-a100 since Mon 2026-11-02 13:00." in \
        report(path, now=T + 3 * HOUR, args=("--since", "1d"))


def test_a_gap_is_unobserved_time(store):
    path = one_card(store, minutes(T, 10) + minutes(T + 3000, 10))
    document = report_json(path)
    assert document["gpu_seconds"] == {"active": 0, "idle_held": 1200, "truly_idle": 0,
                                       "unobserved": 2400, "use_unknown": 0, "reserved": None}


def test_slots_are_taken_whole(store):
    path = one_card(store, [T, T + HOUR], width=HOUR)
    document = report_json(path, now=T + 2 * HOUR + 5,
                           args=("--since", "2026-11-02T12:30Z", "--until", "2026-11-02T12:40Z"))
    assert document["window"]["since"] == "2026-11-02T12:00:00Z"
    assert document["window"]["until"] == "2026-11-02T13:00:00Z"
    assert document["window"]["resolution_seconds"] == 3600
    assert document["gpu_seconds"]["idle_held"] == 3600
    assert document["gpu_seconds"]["unobserved"] == 0


def test_until_in_the_past(store):
    path = one_card(store, minutes(T, 120))
    document = report_json(path, now=T + 2 * HOUR + 5,
                           args=("--since", "2026-11-02T12:10Z", "--until", "2026-11-02T12:30Z"))
    assert document["window"]["seconds"] == 1200
    assert document["gpu_seconds"]["idle_held"] == 1200


def test_slots_of_every_width_are_one_report(store):
    s = store()
    host = s.host()
    s.run(host, T - 2 * HOUR, T + HOUR)
    gpu = s.card(host, 0, T - 2 * HOUR, T + HOUR)
    s.usage(T - 2 * HOUR, gpu, ACTIVE, 3600, width=3600)
    s.usage(T - HOUR, gpu, ACTIVE, 3600, width=3600)
    for i in range(6):
        s.usage(T + 300 * i, gpu, IDLE_HELD, 300, width=300)
    for slot in minutes(T + 1800, 30):
        s.usage(slot, gpu, TRULY_IDLE, 60)
    path = s.save()
    whole = report_json(path, args=("--since", "1d"))["gpu_seconds"]
    assert whole == {"active": 7200, "idle_held": 1800, "truly_idle": 1800, "unobserved": 0, "use_unknown": 0, "reserved": None}
    part = report_json(path, args=("--since", "2026-11-02T12:17Z"))
    assert part["window"]["since"] == "2026-11-02T12:15:00Z"
    assert part["gpu_seconds"]["idle_held"] == 900


def test_a_new_card_is_not_unobserved_before_it_came(store):
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    old, new = s.card(host, 0, T, T + HOUR), s.card(host, 1, T + 1800, T + HOUR)
    for i, slot in enumerate(minutes(T, 60)):
        s.usage(slot, old, TRULY_IDLE, 60)
        if i >= 30:
            s.usage(slot, new, TRULY_IDLE, 60)
    document = report_json(s.save())
    assert [card["gpu_seconds"]["unobserved"] for card in document["gpus"]] == [0, 0]


def test_more_time_than_the_window_is_not_negative(store):
    s = store()
    host = s.host()
    s.run(host, T, T + 60)
    gpu = s.card(host, 0, T, T + 60)
    s.usage(T, gpu, ACTIVE, 90)  # the wall clock was set back
    assert report_json(s.save(), now=T + 61)["gpu_seconds"]["unobserved"] == 0


def test_what_is_not_accounted_yet_is_not_unobserved(store):
    path = one_card(store, minutes(T, 60), run=(T, T + HOUR + 4), last=T + HOUR)
    assert report_json(path)["gpu_seconds"]["unobserved"] == 0


def test_a_recorder_that_sees_no_card_is_unobserved_time(store):
    path = one_card(store, minutes(T, 30), run=(T, T + HOUR), last=T + 1800)
    assert report_json(path)["gpu_seconds"]["unobserved"] == 1800


# Cards and hosts.

def test_a_lost_card_without_slots_is_shown(store):
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    here, gone = s.card(host, 0, T, T + HOUR), s.card(host, 1, T - 7200, T - 60, status="lost")
    retired = s.card(host, 2, T - 7200, T - 60)
    for slot in minutes(T, 60):
        s.usage(slot, here, TRULY_IDLE, 60)
    for gpu in (gone, retired):
        s.usage(T - 7200, gpu, TRULY_IDLE, 60)
    path = s.save()
    document = report_json(path)
    assert [card["index"] for card in document["gpus"]] == [0, 1]
    assert document["gpus"][1]["gpu_seconds"] == {"active": 0, "idle_held": 0, "truly_idle": 0,
                                                  "unobserved": 3600, "use_unknown": 0, "reserved": None}
    assert document["gpus"][1]["mean_util_pct"] is None
    assert "* GPU 1 is lost; accounted up to Mon 2026-11-02 11:59" in report(path)
    assert document["waste"]["equivalent_gpus_free"] == 1


def test_nothing_observed_is_not_nothing(store):
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR, status="asleep")
    for slot in minutes(T, 60):
        s.usage(slot, gpu, UNOBSERVED, 60)
    path = s.save()
    document = report_json(path)
    assert set(document["headline"].values()) == {"observed", None}
    assert document["waste"]["verdict"] is None
    text = report(path)
    assert "No time was observed." in text and "nan" not in text
    assert "* GPU 0 is asleep" in text


def test_mig_instances_are_cards_and_their_parent_is_not(store):
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    s.card(host, 0, T, T + HOUR, uuid="GPU-parent", status="denied")
    instances = [s.card(host, 0, T, T + HOUR, uuid=f"MIG-{i}aaaaaaa-1", parent="GPU-parent",
                        mig=i, name="NVIDIA A100 MIG 3g.40gb") for i in (0, 2)]
    for slot in minutes(T, 60):
        for gpu in instances:
            s.usage(slot, gpu, UNOBSERVED, 60)
    path = s.save()
    cards = report_json(path)["gpus"]
    assert [(c["index"], c["mig_index"], c["parent_uuid"]) for c in cards] == \
        [(0, 0, "GPU-parent"), (0, 2, "GPU-parent")]
    text = report(path)
    assert "  0:0  0aaaaaaa  A100 MIG" in text and "  0:2  2aaaaaaa" in text


def two_hosts(store, names=("alpha", "beta"), machines=("m1", "m2"), source=("nvml", "nvml"), in_turn=False):
    paths = []
    for i, name in enumerate(names):
        s = store(f"{i}.db")
        host = s.host(name, machines[i], driver=f"{550 + i}.1")
        begin, end = (T + 1800 * i, T + 1800 * (i + 1)) if in_turn else (T + i, T + HOUR)
        s.run(host, begin, end, source=source[i])
        # The same UUID on both: cards belong to hosts.
        gpu = s.card(host, 0, T, T + HOUR)
        user = s.process(host, 10 + i, "alice")
        for slot in minutes(T + 1800 * i, 30):
            s.usage(slot, gpu, IDLE_HELD, 60)
            s.holding(slot, gpu, user, IDLE_HELD, 60, share=60, mem_mb=500)
        paths.append(s.save())
    return paths


def test_hosts_are_merged_and_named(store, expect):
    paths = two_hosts(store)
    document = report_json(*paths, args=("--by", "process"))
    assert [h["host"] for h in document["hosts"]] == ["alpha", "beta"]
    assert [c["host"] for c in document["gpus"]] == ["alpha", "beta"]
    assert [(w["identity"], w["gpu_seconds"]) for w in document["identities"]] == \
        [("alice", 3600)]
    assert [p["host"] for p in document["breakdown"]["rows"]] == ["alpha", "beta"]
    expect("report/hosts.txt", report(*paths, args=("--by", "process")))


def test_two_machines_of_one_name(store):
    document = report_json(*two_hosts(store, names=("node", "node")))
    assert [h["host"] for h in document["hosts"]] == ["node", "node#2"]
    assert [c["host"] for c in document["gpus"]] == ["node", "node#2"]


def test_one_machine_in_two_files(store):
    document = report_json(*two_hosts(store, names=("node", "node"), machines=("m", "m"), in_turn=True))
    assert [h["host"] for h in document["hosts"]] == ["node"]
    assert len(document["gpus"]) == 1
    assert document["gpu_seconds"] == {"active": 0, "idle_held": 3600, "truly_idle": 0,
                                       "unobserved": 0, "use_unknown": 0, "reserved": None}


def test_two_recorders_of_one_card_at_one_time_are_refused(store):
    """Their time would be counted twice; other cards, other hosts, other times are fine."""
    def recorder(name, begin, end, card=0, machine="m"):
        s = store(name)
        host = s.host("node", machine)
        s.run(host, begin, end)
        s.usage(begin, s.card(host, card, begin, end), ACTIVE, 60)
        return s.save()
    now = "--now", f"@{T + 2 * HOUR}", "--since", "4h"
    first = recorder("a.db", T, T + HOUR)
    later = recorder("b.db", T + HOUR - 30, T + 2 * HOUR)
    same = recorder("c.db", T + 1800, T + 2 * HOUR)
    said = fails(2, "--db", later, "--db", first, "--db", same, *now)
    assert f"{later} and {same} both recorded the cards of node from Mon 2026-11-02 1" in said and "counted twice" in said
    assert f"{first} and {same} both" in fails(2, "--db", first, "--db", same, *now)
    report_json(first, later)
    report_json(first, recorder("d.db", T + 1800, T + HOUR, card=1))
    report_json(first, recorder("e.db", T + 1800, T + HOUR, machine="other"))
    report_json(first, same, args=("--until", "2026-11-02T12:20Z"))


def test_the_same_file_twice_is_refused(store, tmp_path):
    path = one_card(store, minutes(T, 60))
    link = tmp_path / "link.db"
    link.symlink_to(path)
    assert "are the same store" in fails(2, "--db", path, "--db", link)


def test_a_copy_of_a_store_is_refused(store, tmp_path):
    """Given beside its original it would be counted twice; also a copy from before its end."""
    path = one_card(store, minutes(T, 60))
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE run SET last_tick_ms = last_tick_ms - 60000")
    assert f"{path} and {copy} both have what was recorded on" in fails(2, "--db", path, "--db", copy)
    other = two_hosts(store, machines=("m3", "m2"))[0]
    assert f"{path} and {copy} both" in fails(2, "--db", other, "--db", path, "--db", copy)


def test_who_keeps_no_store_reads_the_systems(own_var_lib, store, tmp_path):
    """And learns which group may, where he may not."""
    path = one_card(store, minutes(T, 60))
    script = f"""mkdir /var/lib/gua
        cp {path} /var/lib/gua/gua.db
        chmod 640 /var/lib/gua/gua.db
        chgrp 1234 /var/lib/gua/gua.db
        cp {GUA} /var/lib/gua-program
        exec setpriv --reuid 65534 --regid "$1" --clear-groups /var/lib/gua-program report --now @{T + HOUR + 5}"""
    for group, status, said in ((1234, 0, "1.00 GPU-hours"), (1235, 1, "members of the group 1234 may read it")):
        run = own_var_lib(script, group, XDG_STATE_HOME=str(tmp_path / "none"))
        assert (run.returncode, said in run.stdout + run.stderr) == (status, True), run.stdout + run.stderr


def test_one_and_many_cards(store):
    for n in (1, 64):
        s = store(f"{n}.db")
        host = s.host()
        s.run(host, T, T + HOUR)
        for i in range(n):
            gpu = s.card(host, i, T, T + HOUR, name="NVIDIA H100 80GB HBM3 with a long name")
            s.usage(T, gpu, ACTIVE, 60, util=100)
        path = s.save()
        text = report(path)
        assert len(report_json(path)["gpus"]) == n
        assert f"on {n} GPU{'s' if n > 1 else ''}\n" in text
        assert widest(text) <= 80


def test_zero_identities(store):
    path = one_card(store, minutes(T, 60))
    assert "Nobody held a GPU." in report(path)
    assert "1.00 GPU-hours of active or idle-held time are in nobody's share." in report(path)
    assert report_json(path)["unattributed_share_gpu_seconds"] == 3600
    assert report_csv(path) == []


def test_simulated_and_imported_data_are_said(store):
    paths = two_hosts(store, source=("sim", "import"))
    text = report(*paths)
    assert text.startswith("SIMULATED DATA")
    assert "simulated: alpha" in text and "imported from another tool" in text
    hosts = report_json(*paths)["hosts"]
    assert [(h["simulated"], h["imported"]) for h in hosts] == [(True, False), (False, True)]
    assert "SIMULATED" not in report(paths[1])
    run = gua("report", "--db", paths[0], "--db", paths[1], "--format", "csv", "--now", f"@{T + HOUR}")
    assert run.stderr == "gua: alpha: simulated data, invented and not measured on a GPU\n"


def test_mixed_rules_are_said(store):
    s = store()
    host = s.host()
    s.run(host, T - 600, T - 300, ended=T - 300, util=5)
    s.run(host, T, T + 1800, ended=T + 1800, util=20, mem=250_000_000)
    s.run(host, T + 1800, T + HOUR, util=15)
    gpu = s.card(host, 0, T, T + HOUR)
    for slot in minutes(T, 60):
        s.usage(slot, gpu, TRULY_IDLE, 60)
    path = s.save()
    text = report(path)
    assert "Rules: active from 15% utilisation; held above 100 MB." in text
    assert "Other rules were in force" in text.replace("\n", " ")
    assert report_json(path)["rules"] == {"active_util_pct": 15, "held_mem_bytes": 100000000,
                                          "count_graphics": False, "spell_seconds": 300, "mixed": True,
                                          "privacy": "normal"}
    late = report_json(path, args=("--since", "30m"))
    assert late["rules"]["mixed"] is True  # a run that ends where the window starts
    assert report_json(path, args=("--since", "20m"))["rules"]["mixed"] is False


# Energy, money, the rule.

def test_unknown_energy(store):
    path = one_card(store, minutes(T, 60))
    assert "energy      - (the driver reported no energy for this time)" in report(path)
    document = report_json(path)
    assert document["waste"]["energy_kwh"] is None
    assert document["gpus"][0]["energy_kwh"] == {"active": 0, "idle_held": None, "truly_idle": 0,
                                                 "use_unknown": 0, "reserved": None}


def test_partly_known_energy(store):
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    for i, slot in enumerate(minutes(T, 60)):
        s.usage(slot, gpu, IDLE_HELD, 60, joules=60_000 if i < 45 else None)
    path = s.save()
    assert "0.75 kWh went into idle-held time (known for 75.0% of it)" in report(path)
    assert report_json(path)["waste"]["energy_known"] == 0.75


def test_a_little_energy_is_not_shown_as_none(store):
    s = store()
    host = s.host()
    s.run(host, T, T + 60)
    s.usage(T, s.card(host, 0, T, T + 60), IDLE_HELD, 60, joules=3600)
    assert "energy      1.00 Wh went into idle-held time\n" in report(s.save())


def test_energy_that_is_known_for_part_of_a_slot(store):
    """After a kill a slot is known in part, and counts with that part."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    s.usage(T, gpu, IDLE_HELD, HOUR, joules=360_000, joules_known=HOUR / 4, width=3600)
    path = s.save()
    assert "0.10 kWh went into idle-held time (known for 25.0% of it)" in report(path)
    assert report_json(path)["waste"]["energy_known"] == 0.25


@pytest.mark.same_path
@pytest.mark.parametrize("unsure, says, share", [
    (0, "▒  50.0%  ←", 0), (6, "▒  50.0% ± 0.2  ←", 0.001667), (7.2, "▒  50.0% ± 0.2  ←", 0.002),
    (7.3, "▒  50.0% ± 0.3  ←", 0.002028), (0.1, "▒  50.0% ± 0.1  ←", 0.000028)])
def test_how_exact_idle_held_is(store, unsure, says, share):
    """Rounded up to a tenth of a percent: what is printed covers what is stored."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    s.usage(T, gpu, IDLE_HELD, HOUR / 2, width=3600, unsure=unsure / 4)
    s.usage(T, gpu, TRULY_IDLE, HOUR / 2, width=3600, unsure=unsure * 3 / 4)
    path = s.save()
    assert says in report(path)
    assert says.replace("▒", "=").replace("±", "+-").replace("←", "<-") in report(path, args=("--ascii",))
    document = report_json(path)
    assert document["headline"]["idle_held_uncertainty"] == pytest.approx(share, abs=1e-6)
    assert document["gpus"][0]["idle_held_uncertainty"] == pytest.approx(share, abs=1e-6)
    card, = report_csv(path, args=("--by", "card"))
    assert float(card["idle_held_uncertainty"]) == pytest.approx(share, abs=1e-6)


@pytest.fixture
def mig(store):
    """A card, and an instance whose utilisation is not known: one user on it with two processes."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    whole = s.card(host, 0, T, T + HOUR)
    part = s.card(host, 1, T, T + HOUR, uuid="MIG-1", parent="GPU-parent", mig=0)
    s.usage(T, whole, ACTIVE, HOUR / 2, util=90, width=3600)
    s.usage(T, whole, IDLE_HELD, HOUR / 2, width=3600)
    s.usage(T, part, USE_UNKNOWN, HOUR / 2, width=3600, joules=3600)
    s.usage(T, part, TRULY_IDLE, HOUR / 2, util=2, width=3600)
    s.db.execute("INSERT INTO sm_active VALUES (?, ?, ?, ?)", (T, whole, HOUR * 500, HOUR * 500 * 37))
    for pid, presence in ((10, HOUR / 2), (11, 0)):
        s.holding(T, part, s.process(host, pid, "alice"), USE_UNKNOWN, HOUR / 2, presence=presence, width=3600)
    s.holding(T, whole, s.process(host, 20, "bob"), IDLE_HELD, HOUR / 2, share=HOUR / 2, width=3600)
    return s.save()


def test_use_unknown_is_held_time_of_its_own(mig):
    """It is observed time, but in no identity's idle-held time and in no share."""
    document = report_json(mig, args=("--by", "process"))
    assert document["gpu_seconds"] == {"active": 1800, "idle_held": 1800, "truly_idle": 1800, "unobserved": 0,
                                       "use_unknown": 1800, "reserved": None}
    headline = document["headline"]
    assert headline["use_unknown"] == headline["idle_held"] == 0.25 and document["window"]["observed"] == 1
    assert document["gpus"][1]["mean_util_pct"] == 2  # of the half that has one
    assert document["gpus"][1]["energy_kwh"]["use_unknown"] == pytest.approx(0.001)
    alice = next(who for who in document["identities"] if who["identity"] == "alice")
    assert alice["gpu_seconds"] == alice["use_unknown_gpu_seconds"] == 1800
    assert alice["share_gpu_seconds"] == alice["idle_held_gpu_seconds"] == 0
    assert [p["use_unknown_gpu_seconds"] for p in document["breakdown"]["rows"] if p["user"] == "alice"] == [1800, 1800]
    assert sum(cell["truly_idle"] for cell in document["heatmap"]) == 1800
    users = {row["identity"]: row for row in report_csv(mig)}
    assert users["alice"]["use_unknown_gpu_seconds"] == "1800"
    cards = report_csv(mig, args=("--by", "card"))
    assert [(row["use_unknown_gpu_seconds"], row["use_unknown"]) for row in cards] == [("0", "0"), ("1800", "0.5")]


def test_use_unknown_in_text(mig):
    text = report(mig)
    assert "  use unknown ▚  25.0%  ← held, but the driver reports no utilisation (MIG)\n" in text
    assert "Time held with use unknown (25.0% of observed time) does not count as idle-held." in \
        " ".join(text.split())
    assert re.search(r"truly-idle +use\? +util +observed", text)
    assert re.search(r"1:0 .* 50\.0% +50\.0% +2\.0% +100\.0%", text)
    assert re.search(r"idle on +use\n.* busy GPU +unknown +unused", text) and widest(text) <= 80


def test_columns_without_values_are_not_shown(lab):
    for word in ("use?", "unknown", " SM "):
        assert word not in report(lab)


def test_sm_activity(mig):
    document = report_json(mig)
    assert [card["sm_active_pct"] for card in document["gpus"]] == [37, None]
    assert [row["sm_active_pct"] for row in report_csv(mig, args=("--by", "card"))] == ["37", ""]
    db = sqlite3.connect(mig)
    db.executescript("DELETE FROM usage_1h WHERE state = 4; DELETE FROM usage_1d WHERE state = 4;")
    db.close()
    text = report(mig)
    assert re.search(r"util +SM +observed", text) and " 37.0% " in text and widest(text) <= 80


def test_a_process_has_its_own_state_and_its_user_another(store):
    """An idle process beside its owner's busy one: the process idles, the user does not."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    s.usage(T, gpu, ACTIVE, HOUR, util=90, width=3600)
    busy, idle = (s.process(host, pid, "alice") for pid in (10, 11))
    s.holding(T, gpu, idle, IDLE_HELD, HOUR, presence=0, width=3600)     # it counts for its user, ...
    s.holding(T, gpu, idle, ACTIVE, 0, presence=HOUR, width=3600)        # ... who is active
    s.holding(T, gpu, busy, ACTIVE, HOUR, presence=0, share=HOUR, width=3600)
    path = s.save()
    document = report_json(path, args=("--by", "process"))
    alice, = document["identities"]
    assert (alice["gpu_seconds"], alice["active_gpu_seconds"], alice["idle_held_gpu_seconds"]) == (HOUR, HOUR, 0)
    held = {p["pid"]: p["idle_held_gpu_seconds"] for p in document["breakdown"]["rows"]}
    assert held == {10: 0, 11: HOUR}
    assert document["unattributed_share_gpu_seconds"] == 0


@pytest.mark.parametrize("held, verdict, says", [
    (720, "within_rule", "20.0% of observed time, not above 20%"),
    (721, "allocation_policy", "20.0% of observed time, just above 20%: the problem"),
    (0, "within_rule", "0.0% of observed time, not above 20%"),
])
def test_the_20_percent_rule(store, held, verdict, says):
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    s.usage(T, gpu, IDLE_HELD, held, width=3600)
    s.usage(T, gpu, ACTIVE, HOUR - held, util=50, width=3600)
    path = s.save()
    assert report_json(path)["waste"]["verdict"] == verdict
    assert says in report(path)


def test_cost_is_asked_for(lab):
    assert report_json(lab)["waste"]["cost"] is None
    assert "  cost" not in report(lab)
    text = report(lab, args=("--cost", "1", "--currency", "\x1b[31m€"))
    assert "1.53 \\x1B[31m€ for idle-held time at 1.00 \\x1B[31m€ per GPU-hour" in text
    assert " at 0.125 USD per GPU-hour" in report(lab, args=("--cost", "0.125"))


@pytest.mark.parametrize("parts, shown", [
    ((20, 20, 20, 0), ["33.4%", "33.3%", "33.3%"]),
    ((1, 1, 58, 0), ["1.7%", "1.7%", "96.6%"]),
    ((10, 10, 10, 30), ["16.7%", "16.7%", "16.6%", "50.0%"]),
], ids=["thirds", "small", "use unknown"])
def test_printed_shares_add_up(store, parts, shown):
    """Rounded one by one, the first would be 99.9 % and the second 100.1 %."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    for state, seconds in zip((ACTIVE, IDLE_HELD, TRULY_IDLE, USE_UNKNOWN), parts):
        for slot in minutes(T, 60):
            s.usage(slot, gpu, state, seconds)
    text = report(s.save())
    headline = re.findall(r"^  (?:active|idle-held|truly-idle|use unknown) +. +([\d.]+%)", text, re.M)
    card, = re.findall(r"^  0 .*A100.*$", text, re.M)
    for found in headline, re.findall(r"[\d.]+%", card)[:len(shown)]:
        assert sorted(found) == sorted(shown), text
        assert sum(round(10 * float(share[:-1])) for share in found) == 1000
    assert f"Idle-held is {headline[1]} of observed time" in text
    observed, = re.findall(r", ([\d.]+)% of it observed", text)
    unobserved, = re.findall(r"unobserved +([\d.]+)%", text)
    assert round(10 * float(observed)) + round(10 * float(unobserved)) == 1000


def test_people_read_the_notebook_and_that_a_process_has_ended(store):
    """As in gua who; programs get the value of the store."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    s.usage(T, gpu, IDLE_HELD, 60)
    labels = [dict(notebook="thesis.ipynb"), dict(job="slurm:7"), {}]
    for pid, (user, more) in enumerate(zip(("bob", "carol", "_dead"), labels), 100):
        life = s.process(host, pid, user, "python" if more else "", **more)
        s.holding(T, gpu, life, IDLE_HELD, 60, share=20)
    path = s.save()
    text = report(path, args=("--by", "process"))
    assert re.search(r"^ +100  bob +thesis.ipynb python  ", text, re.M), text
    assert re.search(r"^ +101  carol +slurm:7 python  ", text, re.M), text
    assert re.search(r"^ +102  \(ended\)  -  ", text, re.M) and "_dead" not in text, text
    assert re.search(r"^  \(ended\)  ", report(path), re.M)
    document = report_json(path, args=("--by", "process"))
    assert {p["user"] for p in document["breakdown"]["rows"]} == {i["identity"] for i in document["identities"]} \
        == {row["identity"] for row in report_csv(path)} == {"bob", "carol", "_dead"}


# Names from outside.

EVIL = ["=cmd|'/c calc'!A0", "+1", "-1", "@sum", "a,b", 'quo"te', "<b>&amp;</b>",
        "esc\x1b[31m\x07", "new\nline", "bidi\u202eevil", "日本語の名前",
        "x" * 63, "_dead", "uid:1234", "back\\slash"]


@pytest.fixture
def evil(store):
    s = store("evil.db")
    host = s.host("host\x1b]0;title\x07" + "h" * 90, driver="9" * 70, environment="<docker>")
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR, name="GPU\x1b[2J" + "n" * 80, uuid="=HYPERLINK(1)")
    for i, name in enumerate(EVIL):
        life = s.process(host, 4_000_000_000 + i, name, command=name + " " + "c" * 200)
        s.holding(T, gpu, life, IDLE_HELD, 60, share=4, mem_mb=200)
    s.usage(T, gpu, IDLE_HELD, 60)
    return s.save()


def test_evil_names_in_text(evil, expect):
    for by in ("user", "process"):
        text = report(evil, args=("--by", by, "--top", "0"))
        assert all(c == "\n" or c.isprintable() for c in text)
        assert "\\x1B" in text
        # Wide characters take two columns.
        assert max(len(l) + sum(ord(c) > 0x2E80 for c in l) for l in text.splitlines()) <= 80
        expect(f"report/evil-{by}.txt", text)


def test_evil_names_in_csv(evil):
    for by in ("user", "process", "card"):
        for row in report_csv(evil, args=("--by", by)):
            for key, value in row.items():
                number = not value or value.replace(".", "").replace("-", "").isdigit()
                assert number or value[0] not in "=+-@\t\r", (key, value)
    names = {row["identity"] for row in report_csv(evil)}
    assert {"'=cmd|'/c calc'!A0", "'-1", "a,b", 'quo"te', "new\\x0Aline"} <= names


def test_evil_names_in_json(evil):
    names = {who["identity"] for who in report_json(evil, args=("--by", "process"))["identities"]}
    assert {"=cmd|'/c calc'!A0", 'quo"te', "<b>&amp;</b>", "esc\\x1B[31m\\x07",
            "back\\slash", "日本語の名前"} <= names


def test_rows_without_sense_are_left_out(store):
    """A damaged file makes neither a crash nor a sum that overflows."""
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    life = s.process(host, 1, "alice")
    s.usage(T, gpu, ACTIVE, 60)
    big = 2**63 - 1
    for slot in (T + 60, T + 120, T + 180):
        s.db.execute("INSERT INTO usage_1m VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)", (slot, gpu, *[big] * 6))
    s.db.execute("INSERT INTO usage_1m VALUES (?, ?, 77, 1, 1, 1, 1, 1, 1)", (T, gpu))
    s.db.execute("INSERT INTO usage_1m VALUES (?, 99, 0, 1, 1, 1, 1, 1, 1)", (T,))
    s.db.execute("INSERT INTO usage_1m VALUES (?, ?, 2, -5, -5, -5, -5, -5, -5)", (T, gpu))
    s.db.execute("INSERT INTO usage_1m VALUES (?, ?, 0, 'x', 'y', 'z', 'u', 'v', 'w')", (T + 240, gpu))
    for process in (life, -1, big, 12345):
        s.db.execute(f"INSERT INTO holding_1m VALUES (?, ?, ?, {', '.join(['?'] * 16)})",
                     (T, gpu, process, *[big] * 16))
    document = report_json(s.save(), args=("--by", "process"))
    assert document["gpu_seconds"]["active"] == 60
    assert [who["identity"] for who in document["identities"]] == ["alice"]


# Places and terminals.

def test_half_hour_zones_split_an_hour(store):
    path = one_card(store, [T], width=HOUR)  # 17:30 to 18:30 in India
    heat = report_json(path, env={"TZ": "Asia/Kolkata"})["heatmap"]
    assert [(c["dow"], c["hour"], c["idle_held"]) for c in heat] == [(1, 17, 1800), (1, 18, 1800)]
    heat = report_json(path, env={"TZ": "Asia/Kolkata"}, args=("--utc",))["heatmap"]
    assert [(c["dow"], c["hour"], c["idle_held"]) for c in heat] == [(1, 12, 3600)]


def test_hours_over_a_change_of_clocks(store):
    sunday = 1792879200  # Sun 2026-10-25 00:00 in Madrid, summer time; winter time from 01:00 UTC
    hours = [sunday - 2 * HOUR + HOUR * i for i in range(8)]
    path = one_card(store, hours, width=HOUR)
    heat = report_json(path, now=hours[-1] + HOUR + 5, env={"TZ": "Europe/Madrid"},
                       args=("--since", "2d"))["heatmap"]
    by_cell = {(c["dow"], c["hour"]): c["idle_held"] for c in heat}
    assert by_cell == {(6, 22): HOUR, (6, 23): HOUR, (0, 0): HOUR, (0, 1): HOUR,
                       (0, 2): 2 * HOUR, (0, 3): HOUR, (0, 4): HOUR}


@pytest.fixture
def hours(store):
    """Makes a store of the first `n` hours of a card: 19 % is active, 61 % idle-held."""
    def make(n, name=itertools.count()):
        s = store(f"{n}-{next(name)}.db")
        host = s.host()
        s.run(host, T, T + n * HOUR)
        card = s.card(host, 0, T, T + n * HOUR)
        for slot in range(T, T + n * HOUR, HOUR):
            for state, part in ((ACTIVE, 19), (IDLE_HELD, 61), (TRULY_IDLE, 20)):
                s.usage(slot, card, state, HOUR * part / 100, width=HOUR)
        return s.save()
    return make


def test_local_time_in_text(hours):
    four = {"now": T + 4 * HOUR + 5, "env": {"TZ": "Asia/Kolkata"}}
    text = report(hours(4), args=("--since", "5h"), **four)
    assert "Mon 2026-11-02 17:30 to Mon 2026-11-02 21:30, " in text
    assert "Hours of the week (local time)" in text
    text = report(hours(4), args=("--since", "5h", "--utc"), **four)
    assert "Mon 2026-11-02 12:00 UTC to Mon 2026-11-02 16:00 UTC" in text
    assert "Hours of the week (UTC)" in text


def test_a_map_of_the_week_needs_some_hours(hours):
    for n, shown in ((1, False), (3, False), (4, True)):
        text = report(hours(n), now=T + n * HOUR + 5, args=("--since", "5h"))
        assert ("Hours of the week" in text) is shown
        page = report(hours(n), now=T + n * HOUR + 5, args=("--since", "5h", "--format", "html"))
        assert ('id="hours"' in page) is shown


def test_the_first_minutes_are_minutes(store):
    """Of a host that has just been set up: '0.01 = 0.00 + 0.00' of GPU-hours says nothing."""
    s = store()
    host = s.host()
    s.run(host, T, T + 60)
    card = s.card(host, 0, T, T + 60)
    bob = s.process(host, 200, "bob", "jupyter-lab")
    s.usage(T, card, ACTIVE, 15)
    s.usage(T, card, IDLE_HELD, 45)
    s.holding(T, card, bob, ACTIVE, 15, share=15)
    s.holding(T, card, bob, IDLE_HELD, 45, share=45)
    path = s.save()
    text = report(path, now=T + 61)
    assert "of 1.00 GPU-minutes observed on 1 GPU\n" in text and "  idle-held   0.75 GPU-minutes = 0.75 of 1 GPU" in text
    assert "By user, in GPU-minutes\n" in text and re.search(r"  bob +1\.00 +0\.25 +0\.75 ", text)
    assert "  Minutes: presence, " in text and "GPU-hours" not in text and "Hours" not in text
    page = report(path, now=T + 61, args=("--format", "html"))
    assert "Who held the GPUs, in GPU-minutes" in page and '<td class="n">0.75</td>' in page


@pytest.mark.parametrize("args, env", [
    ((), {"LC_ALL": "C"}), (("--ascii",), {}), ((), {"LC_ALL": "no_SUCH.locale"})])
def test_ascii(lab, evil, expect, args, env):
    assert report(evil, args=args, env=env).isascii()
    expect("report/lab-ascii.txt", report(lab, args=args, env=env))


@pytest.mark.parametrize("width", [10, 60, 81, 400])
def test_width_of_the_bar(lab, width):
    text = report(lab, args=("--width", width))
    bar = text.split("Headline\n")[1].split("\n")[0]
    assert len(bar) == width and set(bar) == set("█▒░")
    assert widest(text) == max(80, width) or width <= 80
    assert widest(text) <= max(80, width)


def on_terminal(path, *args, now=T + HOUR + 5, rows=0, **env):
    """What the report writes to a terminal; its size is not known unless it has `rows`."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80 if rows else 0, 0, 0))
    run = subprocess.Popen([GUA, "report", "--db", path, "--now", f"@{now}", *args],
                           stdout=follower, env=clean_environment(**env))
    os.close(follower)
    out = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(leader)
    assert run.wait() == 0
    return out


def test_colour_on_a_terminal_only(lab):
    assert b"\x1b[1;33m" in on_terminal(lab, TERM="xterm")
    assert b"\x1b" not in on_terminal(lab, TERM="xterm", NO_COLOR="1")
    assert b"\x1b" not in on_terminal(lab, TERM="dumb")
    assert b"\x1b" not in on_terminal(lab)


def test_a_pager_keeps_the_headline_on_a_small_terminal(lab, tmp_path):
    """As git: GUA_PAGER before PAGER, none if the text fits, is not for people, or the user wants none."""
    paged = dict(TERM="xterm", GUA_PAGER="sed s/^/own:/", PAGER="sed s/^/other:/")
    plain = on_terminal(lab, TERM="xterm")
    pages = on_terminal(lab, rows=24, **paged)
    assert pages.replace(b"own:", b"") == plain and pages.count(b"own:") == plain.count(b"\r\n")
    assert on_terminal(lab, rows=24, TERM="xterm", PAGER="sed s/^/other:/").startswith(b"other:")
    for args, rows, more in (((), 100, {}), (("--no-pager",), 24, {}), ((), 24, {"GUA_PAGER": ""}), ((), 24, {"GUA_PAGER": "cat"}),
                             ((), 0, {}), (("--json",), 24, {}), (("--format", "csv"), 24, {}), ((), 24, {"TERM": "dumb"})):
        shown = on_terminal(lab, *args, rows=rows, **{**paged, **more})
        assert shown and b"own:" not in shown and b"other:" not in shown, (args, rows, more)
    missing = on_terminal(lab, rows=24, TERM="xterm", GUA_PAGER="/no/such/pager 2>/dev/null")
    assert missing.endswith(plain)
    assert on_terminal(lab, rows=24, TERM="xterm", GUA_PAGER="head -n 1").count(b"\n") == 1  # it may end before it read all


def test_colours_as_asked(lab):
    for args, coloured in (((), False), (("--color=always",), True), (("--color",), True), (("--color=never",), False),
                           (("--color=auto",), False)):
        assert ("\x1b[1;33m" in report(lab, args=args)) is coloured
    assert b"\x1b" not in on_terminal(lab, "--color=never", TERM="xterm")
    assert "auto, always or never" in fails(2, "--db", lab, "--color=blue")
    assert "exclude" in fails(2, "--db", lab, "--color=always", "--no-color")


def test_cells_of_colour_need_a_terminal_that_has_them(lab, hours):
    path, now = hours(4), T + 4 * HOUR + 5
    for env in ({"TERM": "xterm-256color"}, {"TERM": "xterm", "COLORTERM": "truecolor"}):
        shown = on_terminal(path, "--since", "5h", now=now, **env)
        assert b"\x1b[48;5;22m   \x1b[0m\r\n" in shown and b"\x1b[48;5;172m   \x1b[0m\r\n" in shown
        assert "▅▅".encode() not in shown
    for env, args in (({"TERM": "xterm"}, ()), ({"TERM": "xterm-256color", "NO_COLOR": "1"}, ()),
                      ({"TERM": "xterm-256color"}, ("--no-color",))):
        shown = on_terminal(path, "--since", "5h", *args, now=now, **env)
        assert b"48;5" not in shown and "▅▅".encode() in shown
    assert "\x1b" not in report(lab, env={"TERM": "xterm"})


def test_a_reader_that_goes_away(lab):
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run([GUA, "report", "--db", lab, "--now", f"@{T + HOUR + 5}"], stdout=write,
                         stderr=subprocess.PIPE, env=clean_environment())
    os.close(write)
    assert run.returncode in (-13, 1)


def test_a_full_disk_is_said(lab):
    with open("/dev/full", "w") as full:
        run = subprocess.run([GUA, "report", "--db", lab, "--now", f"@{T + HOUR + 5}"],
                             stdout=full, stderr=subprocess.PIPE, env=clean_environment())
    assert run.returncode == 1 and b"cannot write the output" in run.stderr


# Options.

def test_a_name_that_promises_another_format_is_refused(lab, tmp_path):
    """week.pdf would be a text that no program opens."""
    command = ["report", "--db", lab, "--now", f"@{T + HOUR + 5}", "--output"]
    for name in ("week.pdf", "week.xlsx"):
        run = gua(*command, tmp_path / name)
        assert run.returncode == 2 and f"gua does not write {name[4:]}; a browser prints .html" in run.stderr
        assert not (tmp_path / name).exists()
    for name, *options in (("week.pdf", "--format", "text"), ("week.txt",), ("week.2026-11",), ("week.pdf", "--digest", "--since", "1h")):
        assert gua(*command, tmp_path / name, *options).returncode == 0
        assert (tmp_path / name).read_text().startswith("GPU use" if "--digest" in options else "gua")


def test_top(store):
    s = store()
    host = s.host()
    s.run(host, T, T + HOUR)
    gpu = s.card(host, 0, T, T + HOUR)
    s.usage(T, gpu, IDLE_HELD, 60)
    for i in range(13):
        s.holding(T, gpu, s.process(host, i + 1, f"user{i:02}"), IDLE_HELD, 60 - i)
    path = s.save()
    text = report(path)
    assert "user09" in text and "user10" not in text
    assert "(3 more)" in text and "--top 0 shows all." in text
    assert f"(3 more) {3 * 49 / 3600:7.2f}" in text  # with what they sum up to
    assert "user12" in report(path, args=("--top", "0"))
    assert "11 more processes" in report(path, args=("--top", "2", "--by", "process"))
    assert len(report_json(path, args=("--by", "process"))["breakdown"]["rows"]) == 13
    limited = report_json(path, args=("--by", "process", "--top", "2"))
    assert [p["user"] for p in limited["breakdown"]["rows"]] == ["user00", "user01"]
    assert len(limited["identities"]) == 2


def test_interval_is_ignored_with_a_note(lab):
    run = gua("report", "--db", lab, "--now", f"@{T + HOUR + 5}", "--interval", "1s")
    assert run.returncode == 0 and "--interval is ignored" in run.stderr
    assert run.stdout == report(lab)


@pytest.mark.parametrize("args", [
    ("--since", "yesteryear"), ("--until", "5x"), ("--since", "1h", "--until", "2h"),
    ("--since", "0"), ("--width", "9"), ("--width", "401"), ("--width", "ten"), ("--top", "-1"),
    ("--cost", "nan"), ("--cost", "-1"), ("--cost", "free"), ("--format", "pdf"),
    ("--by", "moon"), ("--now", "then"), ("--json", "--format", "csv"), ("operand",), ("--no-such",), ("--since",)])
def test_wrong_usage(lab, args):
    assert "usage: gua report" in fails(2, "--db", lab, *args)


# What cannot be reported.

def test_empty_window_says_where_the_data_is(lab):
    says = fails(1, "--db", lab, "--now", f"@{T + 5 * HOUR}")
    assert "no data between Mon 2026-11-02 16:00 and Mon 2026-11-02 17:00; the store has data " \
           "from Mon 2026-11-02 12:00 to Mon 2026-11-02 13:00: try --since " in says
    hint = says.split("--since ")[1].strip()
    assert gua("report", "--db", lab, "--now", f"@{T + 5 * HOUR}", "--since", hint).returncode == 0
    says = fails(1, "--db", lab, "--now", f"@{T + 40 * 24 * HOUR}", "--json")
    hint = says.split("--since ")[1].strip()
    assert hint.endswith("d")
    assert gua("report", "--db", lab, "--now", f"@{T + 40 * 24 * HOUR}", "--since",
               hint).returncode == 0


def test_window_before_the_data(lab):
    says = fails(1, "--db", lab, "--now", f"@{T + 5 * HOUR}", "--since", "2026-10-01",
                 "--until", "2026-10-02")
    assert "no data between Thu 2026-10-01 00:00 and Fri 2026-10-02 00:00" in says


def test_a_store_without_data(store):
    assert "the store has no data yet" in fails(1, "--db", store().save())


def test_a_file_that_is_not_there(tmp_path):
    assert "nowhere.db" in fails(1, "--db", tmp_path / "nowhere.db")
    assert not (tmp_path / "nowhere.db").exists()


def test_files_that_are_not_ours(tmp_path, store):
    text = tmp_path / "notes.txt"
    text.write_text("these are notes, not a database\n" * 100)
    assert "notes.txt" in fails(1, "--db", text)
    assert str(tmp_path) in fails(1, "--db", tmp_path)

    python = sqlite3.connect(tmp_path / "python.db")
    python.executescript("CREATE TABLE host (hostname TEXT); CREATE TABLE gpu_sample (ts TEXT, "
                         "gpu_uuid TEXT, util_pct INTEGER); CREATE TABLE proc_sample (ts TEXT, "
                         "gpu_uuid TEXT, pid INTEGER, mem_used_mb INTEGER, loginuid_user TEXT);")
    python.close()
    assert "gua import" in fails(1, "--db", tmp_path / "python.db")


def test_a_damaged_store_is_said(store):
    path = one_card(store, minutes(T, 600))
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xa5" * (len(data) - 8192)
    path.write_bytes(data)
    says = fails(1, "--db", path, "--now", f"@{T + HOUR}")
    assert str(path) in says

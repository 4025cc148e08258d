"""A store for tests of pages: a week of a lab, a recorder that is running, and names that nobody should have."""
import json
import sqlite3

from conftest import ROOT
from handmade import ACTIVE, ENDED_EXITED, IDLE_HELD, TRULY_IDLE, Store

NOW = 1793606400  # Mon 2026-11-02 08:00:00 UTC
NOW_TEXT = "2026-11-02 08:00:04"
DAY = 86400

NOTEBOOK = "/home/bob/thesis/figures.ipynb"
HOSTILE_USER = "<script>window.hacked=1</script>"
HOSTILE_PATH = "/x/\"><svg onload=window.hacked=1>.ipynb"
HOSTILE_COMMAND = "\U0001f608 '\"><img src=x onerror=window.hacked=1> \u202ekcah " + "A" * 4096


def week(made, cards, processes):
    """Seven days: card 0 is used by day, card 1 is held by bob's notebook."""
    ann, bob = processes
    for slot in range(NOW - 7 * DAY, NOW - 3600, 3600):
        busy = 8 <= slot // 3600 % 24 < 18
        made.usage(slot, cards[0], ACTIVE if busy else TRULY_IDLE, 3600, util=90 if busy else 0, joules=100, width=3600)
        made.usage(slot, cards[1], IDLE_HELD, 3600, joules=100, width=3600)
        made.usage(slot, cards[2], TRULY_IDLE, 3600, joules=100, width=3600)
        if busy:
            made.holding(slot, cards[0], ann, ACTIVE, 3600, share=3600, mem_mb=4000, width=3600)
        made.holding(slot, cards[1], bob, IDLE_HELD, 3600, share=3600, mem_mb=9000, width=3600)
    for slot in range(NOW - 3600, NOW, 60):
        made.usage(slot, cards[0], ACTIVE, 60, util=90)
        made.usage(slot, cards[1], IDLE_HELD, 60)
        made.usage(slot, cards[2], TRULY_IDLE, 60)
        made.holding(slot, cards[0], ann, ACTIVE, 60, share=60, mem_mb=4000)
        made.holding(slot, cards[1], bob, IDLE_HELD, 60, share=60, mem_mb=9000)


def make_lab(path, age=4, hostile=False, source="nvml", ended=None):
    """The store; its last tick is `age` seconds before NOW_TEXT."""
    made = Store(path)
    host = made.host()
    last = NOW + 4 - age
    made.run(host, NOW - 8 * DAY, last, source=source, ended=ended)
    cards = [made.card(host, i, NOW - 8 * DAY, last, source=source) for i in range(3)]
    ann = made.process(host, 100, "ann", seen=(NOW - 3600, last), last_active=last - 5, job="slurm:77")
    bob = made.process(host, 200, "bob", "python -m ipykernel_launcher", seen=(NOW - 7 * DAY, last),
                       notebook="jupyter:1", notebook_path=NOTEBOOK)
    week(made, cards, (ann, bob))
    holders = [(cards[0], ann, 4000, last - 5), (cards[1], bob, 9000, None)]
    made.spell(cards[1], bob, NOW - 7 * DAY, last, how=None, mem_mib=9000)
    made.spell(cards[0], ann, NOW - 2 * DAY, NOW - 2 * DAY + 7200, how=ENDED_EXITED, mem_mib=4000)
    if hostile:
        evil = made.process(host, 666, HOSTILE_USER, HOSTILE_COMMAND, seen=(NOW - 3600, last), notebook="jupyter:2",
                            notebook_path=HOSTILE_PATH, job="slurm:1;rm -rf")
        for slot in range(NOW - 3600, NOW, 60):
            made.holding(slot, cards[2], evil, IDLE_HELD, 60, mem_mb=90)
        made.spell(cards[2], evil, NOW - 3600, last, how=None, mem_mib=90)
        holders.append((cards[2], evil, 90, None))
    for card, process, mem, active in holders:
        made.insert("holder", gpu=card, process=process, kind=1, mem_bytes=mem * 1000000,
                    since_ms=(NOW - 3600) * 1000, last_active_ms=active and active * 1000)
    for i, card in enumerate(cards):
        made.insert("reading", gpu=card, at_ms=last * 1000, util_pct=(90, 0, 0)[i], mem_used_bytes=(4, 9, 0)[i] << 30,
                    power_w=(310, 61, 55)[i], power_limit_w=400, temperature_c=(71, 33, 30)[i], idle_held_since_ms=None)
    return made.save()


def make_policy(path):
    """policy.db as gua enforce leaves it: a session that was warned, two steps, a simulation."""
    db = sqlite3.connect(path)
    db.executescript((ROOT / "src/store/policy/policy.sql").read_text())

    def insert(table, **values):
        db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
                   list(values.values()))
    insert("session", key="notebook jupyter:1", user="bob", rule="notebooks", level=1, stage=1,
           idle_since_ms=(NOW - 3 * 3600) * 1000, stage_ms=(NOW - 3600) * 1000, delivered_ms=(NOW - 3600) * 1000,
           next_clock_ms=4 * 3600 * 1000, round=0, clock_ms=2 * 3600 * 1000)
    for step, mode, evidence in (("warn", "enforce", "idle for 2 h <b>"), ("end", "observe", "idle for 8 h")):
        insert("action", at_ms=(NOW - 3600) * 1000, step=step, stage="warned", mode=mode, rule="notebooks",
               session="notebook jupyter:1", kind="notebook", user="bob", uid=1000, pids="200", cards="GPU-1",
               held_bytes=9 << 30, idle_since_ms=(NOW - 3 * 3600) * 1000, idle_ms=7200000, evidence=evidence, result="",
               config="", actor="")
    insert("pass", id=1, at_ms=NOW * 1000, sessions=2, idle=1, note="")
    insert("simulation", id=1, at_ms=(NOW - 86400) * 1000, json=json.dumps({
        "sessions_idle": 9, "sessions_warned": 4, "sessions_ended": 2, "sessions_ended_wrongly": 1,
        "given_back_gpu_seconds": 7200}))
    db.commit()
    db.close()

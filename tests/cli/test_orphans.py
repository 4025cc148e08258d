"""gua report names memory that no living process explains, with since when; from the store."""
import json
import re

import jsonschema
import pytest

from conftest import ROOT, gua
from handmade import HOUR, IDLE_HELD, Store
from live import forget_lock
from test_who import leave_at_work

T = 1793620800  # Mon 2026-11-02 12:00 UTC
SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())


@pytest.fixture
def db(tmp_path):
    """A recorder at work: card 0 has memory without a process, card 1 that of a process that has ended, card 2 that of
    one whose memory is not known, card 3 an ordinary holder."""
    store = Store(tmp_path / "lab.db")
    host = store.host()
    store.run(host, T - 2 * HOUR, T)
    for index, (pid, user, memory) in enumerate([(0, "_unknown", 3 << 30), (4242, "_dead", 5 << 30), (4243, "_dead", None),
                                                 (4244, "alice", 7 << 30)]):
        card = store.card(host, index, T - 2 * HOUR, T)
        process = store.process(host, pid, user, seen=(T - 2 * HOUR, T))
        for minute in range(120):
            store.usage(T - 2 * HOUR + minute * 60, card, IDLE_HELD, 60)
        store.insert("holder", gpu=card, process=process, kind=1, mem_bytes=memory,
                     since_ms=(T - HOUR - index * 60) * 1000)
    return store.save()


def report(db, *args, now=T + 5):
    forget_lock(db)
    run = gua("report", "--db", db, "--now", f"@{now}", "--since", "1h", "--utc", *args)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_line_for_each_card(db):
    text = " ".join(report(db).split())
    assert re.findall(r"GPU \d: [^.]+(?:\.\d GiB[^.]*)?\.", text) == [
        "GPU 0: 3.0 GiB held by no process that the driver lists, since Mon 2026-11-02 11:00 UTC.",
        "GPU 1: 5.0 GiB held by a process that has ended (pid 4242), since Mon 2026-11-02 10:59 UTC.",
        "GPU 2: Memory held by a process that has ended (pid 4243), since Mon 2026-11-02 10:58 UTC."]


def test_the_same_for_programs(db):
    document = json.loads(report(db, "--json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert [(row["gpu_index"], row["pid"], row["mem_bytes"], row["since"]) for row in document["orphan_memory"]] == [
        (0, None, 3 << 30, "2026-11-02T11:00:00Z"), (1, 4242, 5 << 30, "2026-11-02T10:59:00Z"),
        (2, 4243, None, "2026-11-02T10:58:00Z")]


def test_a_window_that_ended_before_says_nothing_of_now(db):
    assert "GPU 0:" not in report(db, "--since", f"@{T - 2 * HOUR}", "--until", f"@{T - HOUR}")


def test_a_report_of_one_user_does_not_name_them(db):
    text = report(db, "--user", "_dead,alice")
    assert "held by" not in text


def test_a_recorder_keeps_them(tmp_path, clock_file):
    """As it finds them: the memory came five minutes after its start."""
    scenario = tmp_path / "lab.scenario"
    scenario.write_text("host lab\nstart 2026-11-02T08:00:00Z\ncard 0 uuid GPU-a name Card memory 80GiB\n"
                        "at 5m orphan card 0 memory 3GiB\n")
    store = tmp_path / "store.db"
    start = 1793606400
    made = gua("daemon", "--foreground", "--ticks", "20", "--source", "sim", "--scenario", scenario, "--db", store,
               "--clock", clock_file(start, boot_seconds=3600))
    assert made.returncode == 0, made.stderr
    asked = ("report", "--db", store, "--now", f"@{start + 600}", "--since", "1h", "--utc")
    assert "held by no process" not in gua(*asked).stdout  # it has ended: nobody knows what is there now
    leave_at_work(store)
    text = " ".join(gua(*asked).stdout.split())
    assert "GPU 0: Memory held by no process that the driver lists, since Mon 2026-11-02 08:05 UTC." in text

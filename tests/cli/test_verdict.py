"""What a report says of the cards' use: the 20 % rule, squatting, bare contexts, and when there is too little to judge."""
import json
import re
import shlex

import pytest

from conftest import gua
from handmade import ACTIVE, HOUR, IDLE_HELD, SQUATTING, TRULY_IDLE, Store
from recorded import TWO_CARDS, WALL, record  # noqa: F401  a fixture
from test_report import report, report_json

T = 1793620800  # Mon 2026-11-02 12:00 UTC
POLICY = "the problem is the allocation policy, not the hardware."


def words(text):
    return " ".join(text.split())


@pytest.fixture
def lab(tmp_path):
    """lab(HELD, SQUATTED, minutes=60, last=T + HOUR): a card that alice computes on, except for the minutes `HELD`, in which
    her process and bob's are idle; in the minutes `SQUATTED` carol is there and does not compute."""
    def make(held, squatted=0, minutes=60, last=T + HOUR, name="gua.db"):
        s = Store(tmp_path / name)
        host = s.host()
        s.run(host, T, last)
        card = s.card(host, 0, T, min(last, T + minutes * 60))
        alice, bob, carol = (s.process(host, pid, user) for pid, user in ((1, "alice"), (2, "bob"), (3, "carol")))
        for minute in range(minutes):
            t = T + 60 * minute
            state = IDLE_HELD if minute < held else ACTIVE
            s.usage(t, card, state, 60, util=0 if state else 90)
            s.holding(t, card, alice, state, 60, share=20 if state else 60, mem_mb=9000)
            if state:
                s.holding(t, card, bob, state, 60, share=40, mem_mb=18000)
            elif minute - held < squatted:
                s.holding(t, card, carol, SQUATTING, 60, mem_mb=9000)
        return s.save()
    return make


def test_the_largest_holder_and_the_next_command(lab):
    db = lab(30)
    text = words(report(db, args=("--since", "2026-11-02 06:00", "--card", "0")))
    assert f"Idle-held is 50.0% of observed time, above 20%: {POLICY}" in text
    assert "bob has the largest part: 0.33 of 0.50 GPU-hours (share)." in text
    command = shlex.split(re.search(r"Next: (.*?) \(with the same --db\)", text).group(1))
    assert command == ["gua", "report", "--since", "2026-11-02 06:00", "--card", "0", "--user", "bob"]
    run = gua(*command[1:], "--db", db, "--now", f"@{T + HOUR + 5}")
    assert run.returncode == 0 and "Only user bob; card 0\n" in run.stdout
    own = words(gua("report", "--now", f"@{T + HOUR + 5}", env={"GUA_DB": str(db)}).stdout)
    assert "Next: gua report --user bob " in own and "same --db" not in own
    assert "largest part" not in report(lab(5, name="b.db"))


def test_squatting_is_judged(lab):
    db = lab(6, squatted=40)
    text = words(report(db))
    share = 100 * 40 / (60 + 6 + 40)
    assert f"Idle-held is 10.0% of observed time, not above 20%. But of the time that users held GPUs, {share:.1f}% was " \
        f"idle on a GPU that another user kept busy, above 20%: {POLICY}" in text
    assert "carol has the largest part: 0.67 of 0.67 GPU-hours. Next: gua report" in text and "--user carol" in text
    assert "squatting 0.67 GPU-hours idle on GPUs that another user kept busy (presence, not part of idle-held)" in text
    waste = report_json(db)["waste"]
    assert waste["verdict"] == "squatting" and waste["squatting_gpu_hours"] == pytest.approx(2 / 3, abs=1e-6)
    # A little of it is said, and judged by nobody.
    little = lab(6, squatted=3, name="little.db")
    assert report_json(little)["waste"]["verdict"] == "within_rule" and "squatting   0.0500 GPU-hours" in report(little)
    assert "squatting" not in report(lab(6, name="none.db"))


@pytest.mark.parametrize("minutes, says", [(54, "No verdict yet: 54 min observed, and a verdict needs an hour."),
                                           (55, POLICY)])
def test_an_hour_is_needed(lab, minutes, says):
    """The default window is an hour, of which the last ticks may be missing."""
    db = lab(minutes, minutes=minutes, last=T + minutes * 60)
    text = report(db, now=T + minutes * 60 + 20)
    assert says in words(text) and ("20%:" in text) == (minutes == 55)
    assert report_json(db, now=T + minutes * 60 + 20)["waste"]["verdict"] == \
        ("allocation_policy" if minutes == 55 else "too_short")


def test_what_is_missing_is_said(lab):
    young = lab(10, minutes=10, last=T + 600, name="young.db")
    assert "Ask again in 50 min." in words(report(young, now=T + 610))
    # The recorder has stopped: asking again does not help.
    assert "Ask again" not in report(young, now=T + 800)
    old = lab(60)
    assert "No verdict yet: 20 min observed, and a verdict needs an hour. A longer window has more: --since 1d." in \
        words(report(old, args=("--since", "20m"), now=T + HOUR))


def test_half_of_the_window_is_needed(lab):
    db = lab(60, last=T + HOUR)
    for hours, share, verdict in ((2, 50.0, "allocation_policy"), (3, 33.3, "too_little_observed")):
        now = T + hours * HOUR
        text = words(report(db, args=("--since", "1d"), now=now))
        assert (f"No verdict: {share}% of the window was observed, and a verdict needs half of it. 'gua status' says "
                "whether the recorder runs, and 'gua events' what was missed." in text) == (hours == 3)
        assert ("above 20%" in text) == (hours == 2)
        assert report_json(db, args=("--since", "1d"), now=now)["waste"]["verdict"] == verdict


def contexts(path, lives, mem_mb):
    """A store in which alice's large process and erin's small one are idle; as many others with a context are over."""
    s = Store(path)
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    alice, erin = s.process(host, 1, "alice"), s.process(host, 2, "erin", "python serve.py")
    for minute in range(60):
        s.usage(T + 60 * minute, card, IDLE_HELD, 60)
        s.holding(T + 60 * minute, card, alice, IDLE_HELD, 60, share=20, mem_mb=9000)
        s.holding(T + 60 * minute, card, erin, IDLE_HELD, 60, share=40, mem_mb=mem_mb)
    for life in range(lives):
        other = s.process(host, 10 + life, "ended")
        s.usage(T - 60, card, TRULY_IDLE, 1) if not life else None
        s.holding(T - 60, card, other, TRULY_IDLE, 1, mem_mb=400)
    return s.save()


@pytest.mark.parametrize("lives, mem_mb, is_context", [
    (0, 430, True), (0, 60, False), (0, 900, False), (3, 430, True), (3, 600, False)])
def test_bare_contexts_are_shown_apart(tmp_path, lives, mem_mb, is_context):
    """By what was learned of the model, or else by their size."""
    db = contexts(tmp_path / "gua.db", lives, mem_mb)
    text, who = words(report(db)), {row["identity"]: row for row in report_json(db)["identities"]}
    line = "context 0.67 of these GPU-hours are the share of processes with little more than a CUDA context: " \
        "ending them frees little memory"
    assert (line in text) == is_context
    assert ("Apart from contexts, alice has the largest part: 0.33 of 1.00" in text) == is_context
    assert ("erin has the largest part: 0.67 of 1.00" in text) == (not is_context)
    assert ("Idle with little more than a CUDA context: erin 0.67 GPU-hours (share)." in text) == is_context
    assert who["erin"]["context_share_gpu_seconds"] == (2400 if is_context else 0)
    assert who["alice"]["context_share_gpu_seconds"] == 0
    rows = report_json(db, args=("--by", "process"))["breakdown"]["rows"]
    assert {row["user"]: row["context_only"] for row in rows if row["pid"] < 10} == {"alice": False, "erin": is_context}
    by_process = report(db, args=("--by", "process"))
    assert ("[ctx] python" in by_process) == ("[ctx]: never more than" in by_process) == is_context


def test_a_verdict_that_contexts_alone_would_give(tmp_path):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    erin, alice = s.process(host, 1, "erin"), s.process(host, 2, "alice")
    for minute in range(60):
        s.usage(T + 60 * minute, card, IDLE_HELD, 60)
        s.holding(T + 60 * minute, card, erin, IDLE_HELD, 60, share=54, mem_mb=400)
        s.holding(T + 60 * minute, card, alice, IDLE_HELD, 60, share=6, mem_mb=9000)
    text = words(report(s.save()))
    assert f"Idle-held is 100.0% of observed time, above 20%: {POLICY} Without contexts it would be 10.0%, not above 20%: " \
        "those cards are nearly free. Apart from contexts, alice has the largest part: 0.10 of 1.00" in text


@pytest.mark.same_path
@pytest.mark.parametrize("ticks", [1, 2, 5])
@pytest.mark.parametrize("used", [False, True])
def test_the_first_report_does_not_contradict_itself(record, ticks, used):  # noqa: F811
    """The driver has samples from before the recorder started: the window begins with those that show use. Nobody
    knows who held an idle card then."""
    use = "".join(f"process p{n} pid 10{n}\nat 0s hold p{n} card {n} memory 1GiB\nat 0s load p{n} card {n} sm 90\n" for n in (0, 1))
    db = record(TWO_CARDS + (use if used else ""), "--ticks", ticks, "--interval", "5s", at=100).db
    now = WALL + 100 + 5 * ticks
    run = gua("report", "--db", db, "--now", f"@{now}", "--json")
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    observed = sum(document["gpu_seconds"][state] for state in ("active", "idle_held", "truly_idle"))
    assert document["window"]["seconds"] == pytest.approx(observed / 2, abs=0.01)
    assert observed > 10 * ticks + 5 if used else observed == pytest.approx(10 * ticks, abs=0.01)
    assert document["window"]["observed"] == 1 and document["waste"]["verdict"] == "too_short"
    text = gua("report", "--db", db, "--now", f"@{now}").stdout
    length = re.search(r"Window: 0:00:(\d\d)", text).group(1)
    assert int(length) == round(document["window"]["seconds"]) and "No verdict yet: " in text

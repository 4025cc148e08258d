"""gua report for some users or some cards: everything in it is theirs, and the parts add up to the whole."""
import getpass
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import GUA, gua, measured
from handmade import ACTIVE, HOUR, IDLE_HELD, SQUATTING, TRULY_IDLE, Store
from test_report_by import report, report_csv, report_json

T = 1793620800  # Mon 2026-11-02 12:00 UTC
DAY = 86400
STATES = ("active", "idle_held", "squatting", "truly_idle", "use_unknown")


@pytest.fixture
def lab(tmp_path):
    """Two hosts, three models, two days in hours and the last hour in minutes."""
    s = Store(tmp_path / "gua.db")
    start = T - 2 * DAY
    hosts = [s.host(name, machine_id=name) for name in ("alpha", "beta")]
    for host in hosts:
        s.run(host, start, T + HOUR)
    cards = [s.card(hosts[0], 0, start, T + HOUR, uuid="GPU-aaaa"),
             s.card(hosts[0], 1, start, T + HOUR, uuid="GPU-bbbb", name="NVIDIA RTX A6000"),
             s.card(hosts[1], 0, start, T + HOUR, uuid="GPU-cccc", name="NVIDIA H100 80GB HBM3")]
    alice = s.process(hosts[0], 100, "alice")
    bob = s.process(hosts[0], 200, "bob", "ipykernel", notebook="thesis.ipynb")
    carol = s.process(hosts[1], 300, "carol", "python idle.py")
    here = s.process(hosts[1], 400, "alice", "python fit.py")

    def slot(t, width):
        half = width / 2
        s.usage(t, cards[0], ACTIVE, half, util=90, width=width)
        s.usage(t, cards[0], IDLE_HELD, half, width=width)
        s.holding(t, cards[0], alice, ACTIVE, half, share=half, mem_mb=9000, width=width)
        s.holding(t, cards[0], alice, IDLE_HELD, half, share=half * 3 / 4, mem_mb=9000, width=width)
        s.holding(t, cards[0], bob, SQUATTING, half, mem_mb=3000, width=width)
        s.holding(t, cards[0], bob, IDLE_HELD, half, share=half / 4, mem_mb=3000, width=width)
        s.usage(t, cards[1], IDLE_HELD, width, width=width)
        s.holding(t, cards[1], bob, IDLE_HELD, width, share=width, mem_mb=3000, width=width)
        busy = t % DAY // HOUR < 12
        s.usage(t, cards[2], ACTIVE if busy else TRULY_IDLE, width, util=50, width=width)
        if busy:
            s.holding(t, cards[2], here, ACTIVE, width, share=width, mem_mb=9000, width=width)
            s.holding(t, cards[2], carol, SQUATTING, width, mem_mb=500, width=width)
    for hour in range(48):
        slot(start + hour * HOUR, HOUR)
    for minute in range(60):
        slot(T + minute * 60, 60)
    return s.save()


def week(db, *args):
    return report_json(db, "--since", "7d", "--utc", *args)


def heat(document, state):
    return sum(cell[state] for cell in document["heatmap"])


def test_text(lab, expect):
    expect("report/only-user.txt", report(lab, "--since", "7d", "--user", "bob", "--cost", "2"))
    expect("report/only-card.txt", report(lab, "--since", "7d", "--model", "a6000,h100"))


@pytest.mark.large
def test_thousands_of_users_take_little_memory(tmp_path):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    s.usage(T, card, IDLE_HELD, 60)
    users = [f"someone-with-a-long-name-{i:05}" for i in range(4000)]
    for i, user in enumerate(users):
        s.holding(T, card, s.process(host, 100 + i, user), IDLE_HELD, 60)
    status, _, peak_kib = measured("report", "--db", s.save(), "--now", f"@{T + HOUR}", "--user", ",".join(users))
    assert status == 0 and peak_kib < 64 << 10


@pytest.mark.parametrize("option, values", [
    ("--card", ["GPU-aaaa", "GPU-bbbb", "GPU-cccc"]), ("--host", ["alpha", "beta"]),
    ("--model", ["A100", "a6000", "h100 80gb"])])
def test_cards_add_up(lab, option, values):
    """Of cards, everything is restricted: card time, energy, users, hours of the week."""
    whole, parts = week(lab), [week(lab, option, value) for value in values]
    for state, seconds in whole["gpu_seconds"].items():
        assert sum(part["gpu_seconds"][state] or 0 for part in parts) == (seconds or 0)  # reserved is null
    for state in ("active", "idle_held", "truly_idle"):
        assert sum(heat(part, state) for part in parts) == heat(whole, state) == whole["gpu_seconds"][state]
    assert sorted(card["uuid"] for part in parts for card in part["gpus"]) == \
        sorted(card["uuid"] for card in whole["gpus"])
    for key in ("gpu_seconds", "share_gpu_seconds", "squatting_gpu_seconds"):
        of_parts = sum(who[key] for part in parts for who in part["identities"])
        assert of_parts == sum(who[key] for who in whole["identities"])
    for part, value in zip(parts, values):
        assert part["only"] == {option[2:]: [value]} and part["headline"]["of"] == "observed"
        shares = sum(who["share_gpu_seconds"] for who in part["identities"])
        assert shares == part["gpu_seconds"]["active"] + part["gpu_seconds"]["idle_held"]


def test_users_add_up(lab):
    """Of users, the headline, waste, tables and hours of the week are theirs; the cards' time is not."""
    whole = week(lab)
    assert whole["only"] == {}
    for who in whole["identities"]:
        document = week(lab, "--user", who["identity"])
        assert document["identities"] == [who]
        assert document["gpu_seconds"] == whole["gpu_seconds"] and document["gpus"] == whole["gpus"]
        assert document["headline"]["of"] == "held" and document["waste"]["verdict"] is None
        for state in STATES:
            assert document["headline"][state] == pytest.approx(who[f"{state}_gpu_seconds"] / who["gpu_seconds"], abs=1e-6)
        idle = who["idle_held_gpu_seconds"] + who["squatting_gpu_seconds"]
        assert heat(document, "active") == who["active_gpu_seconds"] and heat(document, "idle_held") == idle
        assert document["waste"]["idle_held_gpu_hours"] == pytest.approx(who["idle_held_gpu_seconds"] / HOUR)
        assert document["waste"]["squatting_gpu_hours"] == pytest.approx(who["squatting_gpu_seconds"] / HOUR)
        assert document["unattributed_share_gpu_seconds"] is None
        # Of one user, the processes are shown unless something else is asked for.
        assert document["breakdown"]["by"] == ["process"]
        assert {row["user"] for row in document["breakdown"]["rows"]} == {who["identity"]}
        rows = week(lab, "--user", who["identity"], "--by", "host,card")["breakdown"]
        assert rows["measures"] == ["presence", "presence"]
        assert sum(row["gpu_seconds"] for row in rows["rows"]) == who["gpu_seconds"]
    both = week(lab, "--user", "alice,bob", "--user", "carol", "--by", "model")
    assert both["identities"] == whole["identities"] and both["breakdown"]["measures"] == ["presence_of_users"]
    assert [row["identity"] for row in report_csv(lab, "--user", "alice,bob")] == ["bob", "alice"]


def test_both_restrictions(lab):
    document = week(lab, "--user", "alice", "--host", "beta", "--cost", "2")
    assert document["only"] == {"user": ["alice"], "host": ["beta"]}
    who, = document["identities"]
    assert who["gpu_seconds"] == who["active_gpu_seconds"] == 24 * HOUR + 0
    assert [card["uuid"] for card in document["gpus"]] == ["GPU-cccc"] and document["waste"]["cost"] == 0
    # Money is by share: bob has a quarter of the first card's idle-held time, and all of the second's.
    hours = 49 / 2 / 4 + 49
    assert week(lab, "--user", "bob", "--cost", "2")["waste"]["cost"] == pytest.approx(2 * hours)


def test_groups(lab):
    args = ("--set", "groups.vision=alice carol")
    assert week(lab, "--group", "vision", *args)["identities"] == week(lab, "--user", "alice,carol")["identities"]
    assert week(lab, "--group", "vision", "--user", "alice", *args)["identities"] == week(lab, "--user", "alice")["identities"]
    run = gua("report", "--db", lab, "--group", "visoin", *args)
    assert run.returncode == 1 and "there is no group 'visoin'" in run.stderr


@pytest.mark.parametrize("args, says", [
    (("--user", "alcie"), "the store has no user 'alcie'; did you mean 'alice'?"),
    (("--user", "alice,zoe"), "the store has no user 'zoe'"), (("--card", "7"), "the store has no card '7'"),
    (("--host", "alfa"), "the store has no host 'alfa'; did you mean 'alpha'?"),
    (("--model", "V100"), "the store has no model 'V100'")])
def test_what_is_not_there_is_said(lab, args, says):
    run = gua("report", "--db", lab, "--now", f"@{T + HOUR}", *args)
    assert run.returncode == 1 and run.stdout == "" and says in run.stderr


def test_empty_words_are_wrong_usage(lab):
    for option in ("--user", "--group", "--card", "--host", "--model"):
        run = gua("report", "--db", lab, option, "")
        assert run.returncode == 2 and f"{option} '' names nothing" in run.stderr


def test_a_user_without_time_in_the_window(lab):
    text = report(lab, "--user", "carol", "--since", "1h")
    assert "Only user carol\n" in text and "Nothing was held in this window." in text and "nan" not in text
    document = report_json(lab, "--user", "carol", "--since", "1h")
    assert document["headline"]["active"] is None and document["identities"] == []


def test_me(tmp_path):
    """The user who asks, by the name that a recorder would store."""
    try:
        name = getpass.getuser() if os.geteuid() else "root"
    except KeyError:
        name = f"uid:{os.getuid()}"
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    card = s.card(host, 0, T, T + HOUR)
    s.usage(T, card, IDLE_HELD, 60)
    for user in (name, "someone"):
        s.holding(T, card, s.process(host, 1, user), IDLE_HELD, 60, share=30, mem_mb=200)
    db = s.save()
    for args in (("--mine",), ("--user", "me"), ("--user", f"me,{name}")):
        assert [who["identity"] for who in report_json(db, *args)["identities"]] == [name]
    assert len(report_json(db, "--mine", "--user", "someone")["identities"]) == 2


@pytest.fixture
def somebody_else():
    """Words that run a command as another user, for whom the program must be within reach."""
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if os.geteuid() != 0 or subprocess.run([*words, GUA, "version"], capture_output=True).returncode != 0:
        pytest.skip("needs root, and a build that others can run")
    return words


def test_mine_without_the_right_to_read(lab, somebody_else):
    with tempfile.TemporaryDirectory() as directory:
        db = shutil.copy(lab, directory)
        os.chmod(directory, 0o711)
        os.chmod(db, 0o600)
        for args in (("--mine",), ("--user", "me")):
            run = gua("report", "--db", db, *args, before=somebody_else)
            assert run.returncode == 1 and run.stdout == ""
            assert "Permission denied. Ask your administrator for the right to read it." in run.stderr
            assert "'gua who' shows what you hold now" in run.stderr and "'gua track -- COMMAND'" in run.stderr
        assert "gua track" not in gua("report", "--db", db, before=somebody_else).stderr
        os.chown(db, 0, 4)
        os.chmod(db, 0o640)
        run = gua("report", "--db", db, "--mine", before=somebody_else)
        assert re.search(r"members of the group \w+ may read it", run.stderr) and "Ask your administrator" in run.stderr


def test_compared(lab):
    """The figures that are compared are those of the headline."""
    args = ("--since", "1h", "--compare", "1d")
    text = report(lab, *args, "--user", "alice")
    assert "used, GPU-hours" in text and "idle-held, GPU-hours" not in text
    compared = report_json(lab, *args, "--user", "alice")["compare"]
    figures = {figure["figure"]: figure for figure in compared["figures"]}
    assert figures["held_gpu_hours"]["now"] == 1 and figures["idle_held"]["now"] == 0.5
    assert [user["identity"] for user in compared["identities"]] == ["alice"]
    assert "equivalent_gpus_unavailable" not in figures and "truly_idle" not in figures


def test_html(lab):
    """The page says whose time its maps and columns are."""
    page = report(lab, "--since", "7d", "--user", "bob", "--format", "html")
    assert "used, percent of the time held" in page and "unused, percent of the time held" in page
    assert "of observed time" not in page.partition('id="hours"')[2].partition("</section>")[0]
    assert "Share of the time held; unobserved: of all time of the GPUs" in page and "nothing held" not in page
    assert 'class="unobserved" x=' not in page


def test_jobs(tmp_path):
    """A job's processes on two hosts, one of another job, a claim; and a job that has nothing but a lease."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, T, T + HOUR)
    cards = [s.card(host, i, T, T + HOUR) for i in range(2)]
    jobs = [s.process(host, 100 + i, "alice", job=job, job_name="sweep")
            for i, job in enumerate(("slurm:12", "slurm:12", "slurm:112", "claim:slurm:12", None))]
    for i, process in enumerate(jobs):
        s.usage(T + 60 * i, cards[0], ACTIVE, 60, util=90)
        s.holding(T + 60 * i, cards[0], process, ACTIVE, 60, share=60, mem_mb=100)
    s.usage(T, cards[1], 5, 60)
    s.db.execute("UPDATE run SET leases = 1")
    lease = s.insert("lease", host=host, kind=0, name="13", owner="bob", uid=1001, job_name="wait", share=1, since_ms=T * 1000,
                     first_seen_ms=T * 1000, last_seen_ms=T * 1000)
    s.insert("reserved_1m", slot=T, gpu=cards[1], lease=lease, reserved_ms=60000, unknown_ms=0)
    db = s.save()

    def of(*args):
        document = week(db, *args)
        return [(row["identity"], row["active_gpu_seconds"], row["reserved_gpu_seconds"]) for row in document["identities"]]

    assert of("--job", "12") == [("alice", 180, 0)]
    assert of("--job", "slurm:12") == [("alice", 180, 0)]
    assert of("--job", "claim:slurm:12,112") == [("alice", 120, 0)]
    assert of("--job", "13") == [("bob", 0, 60)]
    assert week(db, "--job", "12")["only"] == {"job": ["12"]}
    assert {row["job_name"] for row in week(db, "--by", "job_name,user")["breakdown"]["rows"]} == {"wait", "sweep"}
    missing = gua("report", "--db", db, "--now", f"@{T + HOUR}", "--job", "2")
    assert missing.returncode == 1 and "the store has no job '2' of these users" in missing.stderr

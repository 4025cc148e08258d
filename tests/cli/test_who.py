"""gua who: holders now, idle since when by the store, filters, exit status; and gua-memory(7)."""
import csv
import contextlib
import fcntl
import io
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import termios

import pytest

from conftest import GUA, ROOT, clean_environment, gua
from fake import fake_driver
from live import forget_lock

START = 1793606400  # 2026-11-02T08:00:00Z
LAB = """host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000-1111-2222-3333-444455556666 name "NVIDIA A100-SXM4-80GB" memory 80GiB
card 1 uuid GPU-bbbb0000-1111-2222-3333-444455556666 name "NVIDIA A100-SXM4-80GB" memory 80GiB
card 2 uuid GPU-cccc0000-1111-2222-3333-444455556666 name "NVIDIA A100-SXM4-80GB" memory 80GiB
process notebook pid 4242 user alice uid 1001 command "jupyter kernel with a long and telling name" started -1h
process train pid 4300 user bob uid 1002 command "python train.py" started -2h
process context pid 4301 user bob uid 1002 command "python idle.py" started -2h
process screen pid 900 user gdm uid 120 command "Xorg" kind graphics started -5h
process blind pid 5000 user carol uid 1003 command "blind" started -3h
at 0s hold notebook card 0 memory 8GB
at 0s hold context card 0 memory 400MiB
at 0s hold screen card 0 memory 200MB
at 0s load notebook card 0 sm 85
at 1m load notebook card 0 sm 0
at 0s hold train card 1 memory 20GB
at 0s load train card 1 sm 90
at 0s hold blind card 2 memory unknown
"""


def leave_at_work(path):
    """The store as it is while the newest recorder is at work: one that ends takes its holders away."""
    forget_lock(path)
    with sqlite3.connect(path) as db:
        newest, started = db.execute("SELECT id, started_ms FROM run ORDER BY id DESC").fetchone()
        db.execute("UPDATE run SET ended_ms = NULL, how_ended = '' WHERE id = ?", (newest,))
        db.execute("INSERT INTO holder (gpu, process, kind, since_ms, last_active_ms) "
                   "SELECT DISTINCT holding.gpu, process.id, 1, max(first_seen_ms, ?1), "
                   "iif(last_active_ms >= ?1, last_active_ms, NULL) FROM process "
                   "JOIN holding ON holding.process = process.id", (started,))


def end_runs(path):
    """As if somebody had stopped the recorders."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE run SET how_ended = 'stopped' WHERE how_ended = 'finished'")


@pytest.fixture
def who(tmp_path, clock_file):
    """who(SECONDS, *ARGS): gua who at that time of the scenario; recorded=True: with a recorder at work that
    ran from its beginning up to then; or recorders that ran one after the other, [(FROM, TO), ...], the last
    of which is at work when it ran up to then."""
    scenario = tmp_path / "lab.scenario"
    scenario.write_text(LAB)
    db = tmp_path / "store.db"

    def run(seconds, *args, recorded=(), text=LAB):
        scenario.write_text(text)
        source = ["--source", "sim", "--scenario", scenario, "--db", db]
        runs = [(0, seconds)] if recorded is True else recorded
        for begin, end in runs:
            clock = clock_file(START + begin, boot_seconds=3600 + begin, name="recorder")
            made = gua("daemon", "--foreground", "--ticks", (end - begin) // 30, *source, "--clock", clock)
            assert made.returncode == 0, made.stderr
            end_runs(db)
        if runs and runs[-1][1] == seconds:
            leave_at_work(db)
        clock = clock_file(START + seconds, boot_seconds=3600 + seconds)
        return gua("who", *source, "--clock", clock, *args)
    return run


def users(run):
    return [line.split()[0] for line in run.stdout.splitlines()[1:]]


def test_holders_as_text(who, expect):
    run = who(600, recorded=True)
    assert (run.returncode, run.stderr) == (0, "")
    expect("who.txt", run.stdout)
    assert run.stdout == "".join(line.rstrip() + "\n" for line in run.stdout.splitlines())
    assert "Xorg" not in run.stdout


def test_a_letter_names_no_command_that_ends_work(who):
    """One process of the job is idle, the other computes: scancel would end both."""
    text = LAB + "".join(f'process job{i} pid {4700 + i} user zoe uid 1009 command "python job.py" job slurm:9 started -1h\n'
                         f"at 0s hold job{i} card {i} memory 2GB\n" for i in (0, 1)) + "at 0s load job0 card 0 sm 50\n"
    assert users(who(600, "--job", "9", text=text)) == users(who(600, "--job", "8,slurm:9", text=text)) == ["zoe", "zoe"]
    assert users(who(600, "--job", "8", text=text)) == []
    letter = who(600, "--idle", "5m", "--message", "--user", "zoe", recorded=True, text=text).stdout
    assert "pid 4701" in letter and "scancel" not in letter and "please release it in your program" in " ".join(letter.split())


def test_a_letter_names_the_whole_notebook(who):
    path = "/home/zoe/" + "experiments/" * 12 + "a.ipynb"
    text = LAB + f'process note pid 4700 user zoe uid 1009 command "ipykernel" notebook_path {path} started -1h\n' \
                 "at 0s hold note card 0 memory 2GB\n"
    letter = who(600, "--idle", "5m", "--message", "--user", "zoe", recorded=True, text=text).stdout
    assert f" on lab: {path}\n" in letter.splitlines(keepends=True)[1] and f"\n    {path}\n" in letter


def test_letters_to_holders(who, expect):
    text = LAB + 'process second pid 4244 user alice uid 1001 command "python second.py" started -1h\n' \
                 "at 0s hold second card 1 memory 2GB\n"
    run = who(600, "--idle", "5m", "--message", recorded=True, text=text)
    assert run.returncode == 0
    expect("who-message.txt", run.stdout)
    assert max(map(len, run.stdout.splitlines())) <= 72
    assert run.stdout.count("To: ") == len(set(users(who(600, "--idle", "5m", text=text))))
    nobody = who(600, "--idle", "5h", "--message", text=text)
    assert (nobody.returncode, nobody.stdout) == (1, "") and "no process matches" in nobody.stderr


@pytest.mark.parametrize("args, says", [
    (("--message",), "--message needs --idle D"),
    (("--message", "--json", "--idle", "1h"), "--message, --json and --csv exclude each other")])
def test_letters_need_to_know_to_whom(who, args, says):
    run = who(600, *args)
    assert run.returncode == 2 and says in run.stderr


def test_idle_since_comes_from_the_store(who):
    run = who(600, "--json", recorded=True)
    found = {holder["command"]: holder for holder in json.loads(run.stdout)["holders"]}
    notebook = found["jupyter kernel with a long and telling name"]
    assert 535 <= notebook["idle_seconds"] <= 541 and not notebook["idle_is_lower_bound"]
    assert found["python train.py"]["active"] and found["python train.py"]["idle_since"] is None
    assert found["blind"]["mem_bytes"] is None
    assert {h["command"]: h["context"] for h in found.values() if h["context"]} == {"python idle.py": "about a context"}


MODELS = """host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000 name "NVIDIA H100 80GB HBM3" memory 80GiB
card 1 uuid GPU-bbbb0000 name "Tesla T4" memory 15GiB
card 2 uuid GPU-cccc0000 name "NVIDIA A100-SXM4-80GB" memory 80GiB
card 3 uuid GPU-dddd0000 name "NVIDIA L40S" memory 48GiB
"""
# (card, MB, what is said with a store and without it)
CONTEXTS = [
    (0, 580, "context only", "about a context"), (0, 590, "context only", "about a context"),
    (0, 600, "context only", "about a context"), (0, 700, "context only", "about a context"),
    (0, 730, "about a context", "about a context"), (0, 100, "context only", "about a context"),
    (1, 110, "context only", "about a context"), (1, 112, "context only", "about a context"),
    (1, 115, "context only", "about a context"), (1, 400, "about a context", "about a context"),
    (1, 600, "about a context", "about a context"),
    # Two alike are a coincidence, and what is this large is no context.
    (2, 300, "about a context", "about a context"), (2, 305, "about a context", "about a context"),
    (3, 900, None, None), (3, 900, None, None), (3, 900, None, None), (3, 20, None, None),
]


def test_a_bare_context_is_learned_for_each_model(who):
    text = MODELS + "".join(
        f'process p{i} pid {6000 + i} user u uid 1001 command "{card} {size}" started -1h\n'
        f"at 0s hold p{i} card {card} memory {size}MB\n" for i, (card, size, _, _) in enumerate(CONTEXTS))
    text += 'process mps pid 7000 user u uid 1001 command "mps" kind mps started -1h\nat 0s hold mps card 0 memory 300MB\n'

    def said(**options):
        return {holder["pid"]: holder["context"] for holder in json.loads(
            who(600, "--json", text=text, **options).stdout)["holders"]}
    expected = [said_with for _, _, said_with, _ in CONTEXTS], [without for _, _, _, without in CONTEXTS]
    before, after = said(), said(recorded=True)
    assert [after[6000 + i] for i in range(len(CONTEXTS))] == expected[0]
    assert [before[6000 + i] for i in range(len(CONTEXTS))] == expected[1]
    assert before[7000] is None and after[7000] is None
    assert "(context only) 0 600" in who(600, text=text).stdout


def test_a_life_counts_by_the_most_that_it_had(who):
    """Who is caught while it starts has not yet its whole context."""
    text = MODELS + "".join(
        f'process p{i} pid {6000 + i} user u uid 1001 command "p" started -1h\n'
        f"at 0s hold p{i} card 0 memory 100MB\nat 90s hold p{i} card 0 memory 40GB\n" for i in range(3))
    text += 'process late pid 7000 user u uid 1001 command "late"\nat 5m hold late card 0 memory 120MB\n'
    late, = [h for h in json.loads(who(600, "--json", recorded=True, text=text).stdout)["holders"] if h["pid"] == 7000]
    assert late["context"] == "about a context"


def test_after_the_recorder_stopped_it_is_said_what_was_known_then(who, expect):
    """Nobody watched the hour since: no idle time is claimed over it."""
    run = who(4200, recorded=[(0, 600)])
    assert run.returncode == 0
    assert run.stderr == "gua who: the recorder stopped 1 h 0 min ago: nothing has been recorded since; " \
        "in brackets: how long it was idle then\n"
    expect("who-stopped.txt", run.stdout)
    answer = json.loads(who(4200, "--json").stdout)
    assert answer["schema"] == "gua-who-1" and answer["host"]
    assert answer["recorded_until"] == "2026-11-02T08:10:00Z" and "stopped" in answer["note"]
    found = {holder["pid"]: holder for holder in answer["holders"]}
    notebook = found[4242]
    assert notebook["idle_seconds"] < 15 and notebook["idle_is_lower_bound"]
    assert notebook["was_idle_since"] == notebook["last_active"] and notebook["last_active"][:16] == "2026-11-02T08:01"
    assert found[4301]["was_idle_since"] == "2026-11-02T08:00:00Z" and found[4301]["last_active"] is None
    assert found[4301]["was_idle_is_lower_bound"] and not notebook["was_idle_is_lower_bound"]
    assert found[4300]["active"] and found[4300]["was_idle_since"] is None
    assert who(4200, "--idle", "5m").returncode == 1


def test_who_was_active_when_the_recorder_stopped_was_not_idle(who):
    run = who(4200, "--json", recorded=[(0, 600)], text=LAB + "at 20m load train card 1 sm 0\n")
    train, = [holder for holder in json.loads(run.stdout)["holders"] if holder["pid"] == 4300]
    assert train["idle_seconds"] < 15 and train["idle_is_lower_bound"] and train["was_idle_since"] is None
    assert train["last_active"][:16] == "2026-11-02T08:10"


def test_a_recorder_that_was_killed_is_not_at_work_either(who, tmp_path):
    assert who(600, recorded=True).returncode == 0
    run = who(4200, "--json")
    found = {holder["pid"]: holder for holder in json.loads(run.stdout)["holders"]}
    assert "has written nothing for 1 h" in run.stderr
    assert found[4242]["idle_seconds"] < 15 and found[4242]["was_idle_since"] == found[4242]["last_active"]
    assert found[4242]["held_since"] == "2026-11-02T08:00:00Z"


@pytest.mark.parametrize("begin, idle_since, longer", [
    (305, 60, False),  # the driver's samples reach back over the pause
    (330, 330, True),  # and over this one they do not
])
def test_idle_time_does_not_go_over_a_pause_of_the_recorder(who, begin, idle_since, longer):
    now = begin + 900
    run = who(now, "--json", recorded=[(0, 300), (begin, now)])
    notebook, = [holder for holder in json.loads(run.stdout)["holders"] if holder["pid"] == 4242]
    assert idle_since <= now - notebook["idle_seconds"] <= idle_since + 6
    assert notebook["idle_is_lower_bound"] == longer and notebook["last_active"][:16] == "2026-11-02T08:01"


@pytest.mark.parametrize("recorded, now", [(True, 900), ([(0, 900)], 4200)])
def test_idle_time_does_not_go_over_what_the_recorder_could_not_see(who, recorded, now):
    run = who(now, "--json", recorded=recorded, text=LAB + "at 5m lost card 0 until 8m\n")
    found = {holder["pid"]: holder for holder in json.loads(run.stdout)["holders"]}
    key = "idle_since" if now == 900 else "was_idle_since"
    for pid in (4242, 4301):
        assert "2026-11-02T08:08:00" <= found[pid][key][:19] <= "2026-11-02T08:08:31"
        assert found[pid]["idle_is_lower_bound"]
    assert found[5000][key] == "2026-11-02T08:00:00Z"  # on another card


def test_looks_from_a_timer_do_not_watch(who, tmp_path, clock_file):
    """They are one run; what happens between them nobody sees."""
    for seconds in (90, 390, 690):
        clock = clock_file(START + seconds, boot_seconds=3600 + seconds, name="timer")
        assert gua("daemon", "--once", "--source", "sim", "--scenario", tmp_path / "lab.scenario", "--clock", clock,
                   "--db", tmp_path / "store.db").returncode == 0
    with sqlite3.connect(tmp_path / "store.db") as db:
        assert db.execute("SELECT count(*) FROM run").fetchone() == (1,)
    found = json.loads(who(700, "--json").stdout)["holders"]
    assert {holder["was_idle_since"] for holder in found} == {None}
    assert all(holder["active"] or holder["idle_seconds"] < 15 for holder in found)
    forget_lock(tmp_path / "store.db")
    with sqlite3.connect(tmp_path / "store.db") as db:  # as it is while such a look is at work
        db.execute("UPDATE run SET ended_ms = NULL, how_ended = NULL")
        db.execute("INSERT INTO holder SELECT DISTINCT gpu, process, 1, 1, ?, NULL FROM holding", ((START + 690) * 1000,))
    found = json.loads(who(700, "--json").stdout)["holders"]
    assert all(holder["active"] or holder["idle_seconds"] < 15 and holder["idle_is_lower_bound"] for holder in found)


def test_idle_since_it_holds_more(who):
    """As its idle spell, which begins when the memory does."""
    grows = 'process grows pid 4400 user dora uid 1004 command "grows" started -2h\n' \
        "at 60s hold grows card 1 memory 20MB\nat 0s release train card 1\nat 300s hold grows card 1 memory 2GB\n"
    run = who(600, "--json", recorded=True, text=LAB + grows)
    found = {holder["pid"]: holder for holder in json.loads(run.stdout)["holders"]}
    assert 299 < found[4400]["idle_seconds"] < 301 and not found[4400]["idle_is_lower_bound"]


def test_a_holder_that_was_there_before_the_recorder_may_be_idle_for_longer(who):
    came = 'process came pid 4400 user dora uid 1004 command "came" started -2h\n' \
        "at 100s hold came card 0 memory 2GB\n"
    run = who(600, "--json", recorded=True, text=LAB + came)
    found = {holder["pid"]: holder for holder in json.loads(run.stdout)["holders"]}
    assert found[4301]["idle_seconds"] == 600 and found[4301]["idle_is_lower_bound"]
    assert 450 < found[4400]["idle_seconds"] <= 500 and not found[4400]["idle_is_lower_bound"]


def test_without_a_store_only_the_last_seconds_are_known(who):
    run = who(600)
    assert run.returncode == 0 and "no store at" in run.stderr
    assert re.search(r"alice .* > \d+ s ", run.stdout)
    found = json.loads(who(600, "--json").stdout)
    assert "no store at" in found["note"]
    notebook, = [h for h in found["holders"] if h["user"] == "alice"]
    assert notebook["idle_seconds"] < 15 and notebook["idle_is_lower_bound"]


def test_nobody_is_idle_for_longer_than_it_lives(who):
    young = 'process young pid 6000 user dora uid 1004 command "young"\n' \
            "at 595s hold young card 0 memory 2GB\n"
    found = {h["user"]: h for h in json.loads(who(600, "--json", text=LAB + young).stdout)["holders"]}
    assert found["alice"]["idle_seconds"] > 9 and found["alice"]["idle_is_lower_bound"]
    assert found["dora"]["idle_since"] == found["dora"]["started"] and found["dora"]["idle_seconds"] == 5
    assert not found["dora"]["idle_is_lower_bound"]


def test_one_process_of_a_user_may_be_idle_beside_another(who):
    """A notebook that was left open is idle, also when its owner trains on the same card."""
    text = LAB + 'process left pid 6000 user bob uid 1002 command "left" started -3h\n' \
        "at 0s hold left card 1 memory 2GB\nat 0s load left card 1 sm 12\nat 2m load left card 1 sm 0\n"
    for recorded in ((), True):
        found = json.loads(who(600, "--json", "-u", "bob", "-i", "1", text=text, recorded=recorded).stdout)["holders"]
        assert [(h["command"], h["active"], h["sm_pct"]) for h in found] == [
            ("left", False, 0), ("python train.py", True, 90)]
    assert 475 <= found[0]["idle_seconds"] <= 481 and not found[0]["idle_is_lower_bound"]


def test_idle_filters(who):
    run = who(600, "--idle", "8m", recorded=True)
    assert run.returncode == 0 and "alice" in users(run) and "python train.py" not in run.stdout
    run = who(600, "--idle", "30m")
    assert (run.returncode, run.stdout) == (1, "") and "no process matches" in run.stderr


@pytest.mark.parametrize("args, found", [
    (["-u", "alice"], ["alice"]),
    (["-u", "alice,1003"], ["alice", "carol"]),
    (["-p", "4300"], ["bob"]),
    (["-i", "1"], ["bob"]),
    (["-i", "GPU-aaaa", "--min-mem", "1G"], ["alice"]),
    (["--min-mem", "20G"], ["bob", "carol"]),
    (["--min-mem", "20GiB"], ["carol"]),
    (["--state", "active"], ["bob"]),
    (["-u", "nobody"], []),
])
def test_filters(who, args, found):
    run = who(600, *args)
    assert sorted(users(run)) == found
    assert run.returncode == (0 if found else 1)
    as_json = who(600, "--json", *args)
    assert sorted(h["user"] for h in json.loads(as_json.stdout)["holders"]) == found
    assert as_json.returncode == run.returncode


def test_nobody(who):
    run = who(60, text="\n".join(line for line in LAB.splitlines() if not line.startswith(("at", "process"))))
    assert (run.returncode, run.stdout) == (1, "") and "no process holds a card" in run.stderr


def test_a_lost_or_sleeping_card_is_named(who):
    run = who(600, text=LAB + "at 5m lost card 0\nat 5m asleep card 2\n")
    assert run.returncode == 0 and users(run) == ["bob"]
    assert "card 0 is lost" in run.stderr and "card 2 is asleep" in run.stderr


def test_what_is_said_is_of_the_cards_that_were_asked_for(who):
    text = LAB + "at 5m lost card 0\nat 0s orphan card 1 memory 30GiB\n"
    said = who(600, text=text).stderr
    assert "card 0 is lost" in said and "card 1 has 30.0 GiB in use that no listed process explains" in said
    said = who(600, "-i", "2", text=text).stderr
    assert "card 0" not in said and "card 1" not in said
    assert "card 0" not in who(600, "--state", "active", text=text).stderr


def test_names_from_outside_are_escaped(tmp_path):
    scenario = tmp_path / "evil.scenario"
    scenario.write_text(LAB.replace("python train.py", "python \x1b[31m.py"))
    run = gua("who", "--source", "sim", "--scenario", scenario, "--db", tmp_path / "no.db")
    assert "\x1b" not in run.stdout + run.stderr


def test_the_driver_itself(tmp_path, clock_file):
    clock = clock_file(START + 600, boot_seconds=4200)
    env = fake_driver(tmp_path, LAB, clock=clock)
    run = gua("who", "--clock", clock, "--db", tmp_path / "no.db", "--min-mem", "10G", env=env)
    assert run.returncode == 0, run.stderr
    assert {"4300", "5000"} == {line.split()[2] for line in run.stdout.splitlines()[1:]}


@pytest.mark.parametrize("args, status, message", [
    (["--nvml", "/no/such/library"], 1, "/no/such/library"),
    (["--source", "sim", "-i", "77"], 1, "card '77' does not exist"),
    (["--source", "sim", "--state", "sleepy"], 2, "--state must be"),
    (["--source", "sim", "--min-mem", "20"], 2, "--min-mem"),
    (["--source", "sim", "--idle", "soon"], 2, "--idle"),
    (["--scenario", "x"], 2, "--source sim"),
    (["extra"], 2, "unexpected argument"),
])
def test_mistakes(args, status, message):
    run = gua("who", "--db", "/nonexistent/x.db", *args)
    assert (run.returncode, run.stdout) == (status, "") and message in run.stderr


def test_commands_in_the_manual_of_memory_exist():
    page = (ROOT / "man" / "gua-memory.7.scd").read_text()
    shown = re.findall(r"^gua ([a-z]+)(.*)$", page, re.MULTILINE)
    assert {"who", "report", "pick"} <= {name for name, _ in shown}
    for name, rest in shown:
        known = gua(name, "--help")
        assert known.returncode == 0, name
        for option in re.findall(r"(?<= )--?[a-z-]+", rest.split(" -- ")[0]):
            assert re.search(rf"{option}[ ,=\[]", known.stdout), (name, option)


def test_csv_has_the_keys_of_the_json(who):
    run = who(600, "--csv", recorded=True)
    assert (run.returncode, run.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(run.stdout, newline=""), strict=True))
    holders = json.loads(who(600, "--json").stdout)["holders"]
    assert [list(row) for row in rows] == [["host", *holder] for holder in holders]
    assert {row["host"] for row in rows} == {"lab"}
    assert [(row["user"], int(row["pid"]), row["context"]) for row in rows] == \
        [(holder["user"], holder["pid"], holder["context"] or "") for holder in holders]
    blind, = [row for row in rows if row["user"] == "carol"]
    assert blind["mem_bytes"] == ""  # not known, and not 0
    assert who(600, "--csv", "--json").returncode == 2
    nobody = who(600, "--csv", "-u", "nobody")
    assert nobody.returncode == 1 and nobody.stdout == run.stdout.splitlines(keepends=True)[0]


def test_columns_that_are_nearly_empty_go_first_at_80_columns(tmp_path):
    """What a holder is has 24 columns at least; a tag of one of them and logins make room for that."""
    scenario = tmp_path / "lab.scenario"
    scenario.write_text(LAB.replace("started -1h", "started -1h login jupyter tag thesis-of-alice"))
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    run = subprocess.Popen([GUA, "who", "--source", "sim", "--scenario", scenario, "--no-store"], stdout=follower,
                           env=clean_environment(TERM="xterm"))
    os.close(follower)
    assert run.wait() == 0
    text = b""
    with contextlib.suppress(OSError):  # EIO: all has been read
        while True:
            text += os.read(leader, 65536)
    head, *rows = text.decode().splitlines()
    os.close(leader)
    assert "tag" not in head and "login" not in head and max(map(len, rows)) <= 80
    what = [row[head.index("what"):] for row in rows]
    assert any(text.startswith("jupyter kernel with a l") for text in what) and "python train.py" in what


def test_colours_as_asked(who):
    assert who(600, "--color=never").returncode == who(600, "--color=always").returncode == 0
    assert "auto, always or never" in who(600, "--color=blue").stderr

"""The queue of notices of gua enforce run (the limit of a day, digests, what is taken back), and that of gua keep."""
import json
import os
import pathlib
import re
import sqlite3

import pytest

from conftest import BUILD, gua
from test_enforce import FAST, ROOT_ONLY, Work, conf, kept, world  # noqa: F401

pytestmark = pytest.mark.skipif(not (BUILD / "gua-enforce").exists(), reason="built without gua enforce")
DAY_MS = 86400000


class Queue:
    """A world whose notices are mails, kept one after the other."""

    def __init__(self, world, tmp_path, works, level="warn", per_day=4):
        self.world, self.mails_path = world(works), tmp_path / "mails"
        sendmail = tmp_path / "sendmail"
        self.mails_path.mkdir()
        sendmail.write_text(f"#!/bin/sh\ncat > $(mktemp {self.mails_path}/XXXXXXXX)\n")
        sendmail.chmod(0o755)
        self.config = conf(tmp_path, FAST + f"level = {level}\n[policy]\nmode = enforce\n[notices]\nchannels = mail\n"
                           f"sendmail = {sendmail}\nper_day = {per_day}\n")

    def run(self, minute):
        """One pass; returns the mails that it sent: (subject, body)."""
        before = len(self.mails())
        self.world.write(minute)
        result = self.world.run(minute, *self.config)
        assert result.returncode == 0, result.stderr
        return self.mails()[before:]

    def mails(self):
        files = sorted(self.mails_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        texts = [path.read_text() for path in files]
        return [(re.search(r"(?m)^Subject: (.*)", text)[1], text.partition("\n\n")[2]) for text in texts]

    def change(self, sql, *values):
        with sqlite3.connect(self.world.directory / "policy.db") as db:
            db.execute(sql, values)

    def steps(self):
        return [(row["step"], row["stage"], int((row["pids"] or "0").split()[0])) for row in self.world.log()]


def pids(text):
    return [int(pid) for pid in re.findall(r"\(pid (\d+)\)", text)]


def test_many_at_once_are_one_digest(world, tmp_path):  # noqa: F811
    """Six sessions go through their stages with one mail for each stage, and each is named."""
    queue = Queue(world, tmp_path, [Work(100 + i, "alice", 0, "A" + "I" * 60) for i in range(6)] +
                  [Work(200, "bob", 1, "A" + "I" * 60)])
    mails = queue.run(12)
    assert sorted(subject for subject, _ in mails) == ["[gua] lab: 6 notices in one",
                                                       "[gua] lab: you have held card 1 idle for 11 min: python train.py"]
    digest, = [body for subject, body in mails if "in one" in subject]
    assert pids(digest) == list(range(100, 106)) and "release it: kill 103" in digest
    assert queue.run(13) == []
    # The stage of each counts as delivered, so the next one comes.
    assert sorted(pids("".join(body for _, body in queue.run(25)))) == [*range(100, 106), 200]
    assert len(queue.mails()) == 4


def test_a_notice_says_what_counts_as_use(world, tmp_path):  # noqa: F811
    """bob uses the card, at 3 %: he is told from how much on that counts."""
    queue = Queue(world, tmp_path, [Work(200, "bob", 1, "A" + "l" * 60)])
    (_, body), = queue.run(12)
    assert "Use counts from 5 % of a card on, and any of an encoder or decoder\n" in body, body


@ROOT_ONLY
def test_a_late_warning_does_not_name_a_late_end(world, tmp_path):  # noqa: F811
    """A warning that waited for its pass delays nothing, so the end comes 30 minutes after the last use, not later."""
    queue = Queue(world, tmp_path, [Work(200, "bob", 1, "A" + "I" * 60)], level="end")
    queue.world.write(12)
    armed = gua("enforce", "arm", "--until", "2026-11-05", "--now", "2026-11-04T08:00Z", "--db", queue.world.db, *queue.config)
    assert armed.returncode == 0, armed.stderr
    (_, body), = queue.run(12)
    assert "the session will be ended at Wed 2026-11-04 08:31 at the earliest, unless it uses the card\n" in body, body
    for minute in range(13, 31):
        queue.run(minute)
    assert [step[1] for step in queue.steps()] == ["none", "warning", "second warning", "final notice"]


def test_a_failed_digest_delivers_nothing(world, tmp_path):  # noqa: F811
    queue = Queue(world, tmp_path, [Work(100 + i, "alice", 0, "A" + "I" * 60) for i in range(6)])
    sendmail = tmp_path / "sendmail"
    good = sendmail.read_text()
    sendmail.write_text("#!/bin/sh\nexit 75\n")
    assert queue.run(12) == [] and queue.run(25) == []
    assert {step[:2] for step in queue.steps()} == {("warn", "warning")}
    # One recovers before it is sent: it is not named.
    queue.world.works[2].does = "A" + "I" * 25 + "A" * 60
    sendmail.write_text(good)
    queue.change("UPDATE notice SET due_ms = 0")
    (_, body), = queue.run(28)
    assert pids(body) == [100, 101, 103, 104, 105]
    assert ("recovered", "none", 102) in queue.steps()


def test_the_limit_of_a_day_holds_warnings(world, tmp_path):  # noqa: F811
    """One after the other; the fifth and sixth wait until a day has gone by since the first, and come in one."""
    queue = Queue(world, tmp_path, [Work(100 + i, "alice", 0, "A" * (1 + i) + "I" * 60) for i in range(6)])
    for minute in range(11, 19):
        queue.run(minute)
    assert [pids(body)[0] for _, body in queue.mails()] == [100, 101, 102, 103]
    assert [step for step in queue.steps()] == [("warn", "warning", 100 + i) for i in range(6)]
    queue.change("UPDATE notice SET done_ms = done_ms - ? WHERE body LIKE ?", DAY_MS, '%"pid":100,%')
    (subject, body), = queue.run(19)
    assert subject == "[gua] lab: 2 notices in one" and pids(body) == [104, 105]
    # A clock that was put back does not hold anybody.
    queue.change("UPDATE notice SET done_ms = done_ms + 400 * ? WHERE state = 'delivered'", DAY_MS)
    assert [pids(body)[0] for _, body in queue.run(24)] == [100]


@ROOT_ONLY
def test_a_final_notice_waits_and_so_does_the_end(world, tmp_path):  # noqa: F811
    """At two a day, the third notice, the final one, waits: nothing is ended without it."""
    queue = Queue(world, tmp_path, [Work(100, "alice", 0, "A" + "I" * 120), Work(200, "bob", 1, "A" * 120)], level="end",
                  per_day=2)
    queue.run(5)
    assert gua("enforce", "arm", "--until", "2d", "--db", queue.world.db, "--now", "2026-11-04T08:05:00Z",
               *queue.config).returncode == 0
    for minute in (12, 13, 24, 25, 31, 45, 60):
        queue.run(minute)
    assert [subject.split(":")[1].split(",")[0] for subject, _ in queue.mails()] == [
        " you have held card 0 idle for 11 min", " second notice"]
    assert queue.steps()[-1] == ("warn", "final notice", 100)
    queue.change("UPDATE notice SET done_ms = done_ms - ? WHERE done_ms > 0", DAY_MS)
    (subject, body), = queue.run(61)
    assert "last notice" in subject and pids(body) == [100]
    queue.run(62)
    assert ("end", "ending", 100) not in [step[:3] for step in queue.steps()]
    queue.run(70)
    assert "end" in [step[0] for step in queue.steps()]


@ROOT_ONLY
def test_results_and_repeated_final_notices_do_not_count(world, tmp_path):  # noqa: F811
    """A day has room for three. Ending fails, because the process does not exist: alice is told so, and gets a new final
    notice. Twice as late the next time."""
    queue = Queue(world, tmp_path, [Work(100, "alice", 0, "A" + "I" * 199), Work(200, "bob", 1, "A" * 199)], level="end", per_day=3)
    queue.run(5)
    assert gua("enforce", "arm", "--until", "2d", "--db", queue.world.db, "--now", "2026-11-04T08:05:00Z",
               *queue.config).returncode == 0
    subjects = {minute: [subject.split(": ", 1)[1][:13] for subject, _ in queue.run(minute)] for minute in range(11, 59)}
    told = ["you have held", "second notice", "last notice, ", "your python t", "last notice, ", "your python t", "last notice, "]
    assert [words[0] for words in subjects.values() if words] == told, subjects
    finals = [minute for minute, words in subjects.items() if words == ["last notice, "]]
    results = [minute for minute, words in subjects.items() if words == ["your python t"]]
    assert [finals[i + 1] - results[i] for i in range(2)] == [5, 10]
    with sqlite3.connect(queue.world.directory / "policy.db") as db:
        rows = db.execute("SELECT stage, round, state FROM notice ORDER BY id").fetchall()
    assert rows[2:5] == [("final notice", 0, "delivered"), ("not-ended", 0, "delivered"), ("final notice", 1, "delivered")]


def test_an_administrator_is_told_that_the_breaker_has_stopped_everything(world, tmp_path):  # noqa: F811
    """Once, and nobody else is told anything until it is released."""
    queue = Queue(world, tmp_path, [Work(100 + i, f"user{i}", i, "A" * 30 + "I" * 90) for i in range(2)])
    assert len(queue.run(41)) == 2 and queue.run(42) == []
    for work in queue.world.works:
        work.does = "A" + "I" * 119
    (subject, body), = queue.run(43)
    assert subject == "[gua] " + os.uname().nodename + ": enforcement has stopped", subject
    assert "Reason: the idle time of 2 sessions grew by more than the time since the last pass" in body
    assert "until 'gua enforce release'" in body and queue.run(60) == []
    assert gua("enforce", "release", "--db", queue.world.db, *queue.config).returncode == 0
    assert len(queue.run(61)) == 2


def test_a_later_stage_replaces_what_waits(world, tmp_path):  # noqa: F811
    """Mail is delivered, the command is not: once the second warning is due, the first is not sent any more."""
    queue = Queue(world, tmp_path, [Work(100, "alice", 0, "A" + "I" * 60)])
    path = pathlib.Path(queue.config[1])
    path.write_text(path.read_text().replace("channels = mail", "channels = mail login")
                    + f"login_directory = {tmp_path}/absent\n")
    assert [len(queue.run(minute)) for minute in (12, 13, 24)] == [1, 0, 1]
    with sqlite3.connect(queue.world.directory / "policy.db") as db:
        rows = db.execute("SELECT stage, state, result FROM notice WHERE channel = 'login' ORDER BY id").fetchall()
    assert rows[0] == ("warning", "failed", "no longer needed") and rows[1][:2] == ("second warning", "waiting")


def test_earlier_keeps_are_named(world, tmp_path):  # noqa: F811
    queue = Queue(world, tmp_path, [Work(100, "alice", 0, "A" + "I" * 90, notebook="k1", notebook_path="a/b.ipynb")],
                  per_day=100)
    (subject, body), = queue.run(12)
    assert subject.endswith(" idle for 11 min: a/b.ipynb")
    assert "Kept before" not in body and "What it is: a/b.ipynb" in body and "Held idle so far: 0.2 GPU-hours" in body
    assert "Release it: kill 100, or in Jupyter: Kernel > Shut Down" in body
    add = ("INSERT INTO keep (session, user, uid, pid, from_ms, until_ms, reason) SELECT session, 'alice', 1, 100, ?, ?, ? "
           "FROM notice LIMIT 1")
    moment = [int(queue.world.at(minute) * 1000) for minute in (13, 20, 30)]
    queue.change(add, *moment[:2], "data")
    assert queue.run(14) == []
    (_, body), = queue.run(21)
    assert re.search(r"(?m)^Kept before: until .{20} \(data\); 'gua keep' lists what you keep$", body), body
    queue.change(add, int(queue.world.at(22) * 1000), moment[2], "more \x1b[2J data")
    queue.run(23)
    (_, body), = queue.run(31)
    assert re.search(r"(?m)^Kept before: 2 times, last until .{20} \(more \\x1B\[2J data\); ", body), body


@pytest.mark.parametrize("n", [1, 6])
def test_a_channel_that_is_not_configured_any_more(world, tmp_path, n):  # noqa: F811
    """What waits for it goes through the others, also a digest: else nothing could come after it."""
    queue = Queue(world, tmp_path, [Work(100 + i, "alice", 0, "A" + "I" * 60) for i in range(n)])
    path = pathlib.Path(queue.config[1])
    now = path.read_text()
    path.write_text(now.replace("channels = mail", "channels = command\ncommand = /bin/false\ncommand_user = nobody"))
    assert queue.run(12) == []
    path.write_text(now)
    queue.change("UPDATE notice SET due_ms = 0")
    queue.run(13)
    assert sorted(pids("".join(body for _, body in queue.mails()))) == list(range(100, 100 + n))
    queue.run(14)
    assert sorted(pids("".join(body for _, body in queue.run(26)))) == list(range(100, 100 + n))


def test_a_login_notice_is_about_all_sessions(world, tmp_path):  # noqa: F811
    """The second does not take the place of the first, and one that recovers goes."""
    queue = Queue(world, tmp_path, [Work(100 + i, "alice", 0, "A" * (1 + 3 * i) + "I" * 60) for i in range(3)])
    path, place = pathlib.Path(queue.config[1]), tmp_path / "motd.d"
    place.mkdir()
    path.write_text(path.read_text().replace("channels = mail", f"channels = login\nlogin_directory = {place}"))
    seen = []
    for minute in 12, 15, 18, 20:
        if minute == 20:
            queue.world.works[1].does = "A" * 4 + "I" * 14 + "A" * 60
        queue.run(minute)
        seen.append(pids((place / "alice").read_text()))
    assert seen == [[100], [100, 101], [100, 101, 102], [100, 102]]
    for work in queue.world.works:
        work.does = work.does[:20] + "A" * 60
    queue.run(22)
    assert not (place / "alice").exists()


def test_a_login_digest_lists_a_session_once(world, tmp_path):  # noqa: F811
    """However often its final notice was sent; beside a result, what was said before is left out."""
    queue = Queue(world, tmp_path, [Work(100 + i, "alice", 0, "A" + "I" * 90) for i in range(2)])
    path, place = pathlib.Path(queue.config[1]), tmp_path / "motd.d"
    place.mkdir()
    path.write_text(path.read_text().replace("channels = mail", f"channels = login\nlogin_directory = {place}"))
    queue.run(12)
    add = ("INSERT INTO notice SELECT NULL, session, idle_since_ms, ?, ?, channel, user, uid, replace(body, ?, ?), queued_ms, 0, 0, "
           "'waiting', counts, 1, NULL, '', NULL FROM notice WHERE body LIKE '%\"pid\":100,%' AND round = 0 AND stage = 'warning'")
    for round_ in range(1, 5):
        queue.change(add, round_, "warning", "", "")
        queue.run(12)
        assert pids((place / "alice").read_text()) == [101, 100], (place / "alice").read_text()
    queue.change(add, 5, "not-ended", '"kind":"warning"', '"kind":"not-ended"')
    queue.run(12)
    text = (place / "alice").read_text()
    assert sorted(pids(text)) == [100, 101] and "was to be ended, and was not" in text, text


def test_a_login_notice_has_the_results_of_all_sessions(world, tmp_path):  # noqa: F811
    """Three sessions come to their end in one pass: the last result does not take the place of the others. That one was
    spared is said until it is in use; that one was ended, for a day. Each says what its user can run."""
    queue = Queue(world, tmp_path, [Work(100 + i, "alice", 0, "A" + "I" * 90) for i in range(3)])
    path, place = pathlib.Path(queue.config[1]), tmp_path / "motd.d"
    place.mkdir()
    path.write_text(path.read_text().replace("channels = mail", f"channels = login\nlogin_directory = {place}"))
    queue.run(12)
    for pid, kind in (100, "ended"), (101, "not-ended"), (102, "ended"):
        queue.change("INSERT INTO notice SELECT NULL, session, idle_since_ms, 1, ?, channel, user, uid, replace(body, "
                     "'\"kind\":\"warning\"', ?), queued_ms + ?, 0, 0, 'waiting', counts, 1, NULL, '', NULL FROM notice WHERE "
                     f"body LIKE '%\"pid\":{pid},%'", kind, f'"kind":"{kind}"', 0 if pid == 102 else -2)
    queue.run(12)

    def said():
        text = (place / "alice").read_text()
        assert "gua enforce log" not in text    # only an administrator may read it
        return sorted(pids(text)), text.count("was ended"), text.count("was to be ended, and was not")
    assert said() == ([100, 101, 102], 2, 1)
    queue.change("UPDATE notice SET queued_ms = queued_ms - ? WHERE stage = 'ended' AND body LIKE '%\"pid\":100,%'", DAY_MS)
    queue.change("UPDATE notice SET state = 'waiting', due_ms = 0 WHERE stage = 'ended' AND body LIKE '%\"pid\":102,%'")
    queue.run(12)
    assert said()[1:] == (1, 1)
    queue.world.works[1].does = "A" + "I" * 11 + "A" * 80
    queue.run(14)
    assert said()[1:] == (1, 0)


@ROOT_ONLY
def test_keeps_do_not_grow_the_log(kept, tmp_path):  # noqa: F811
    config = conf(tmp_path, FAST)
    kept.write_kept(15)
    with kept.service(15, *config):
        assert kept.ask(uid=4000, what="drop")["ok"]
        assert "kept" not in [row["step"] for row in kept.log()]
        with sqlite3.connect(kept.directory / "policy.db") as db:
            moment = int(kept.at(10) * 1000)
            db.executemany("INSERT INTO keep (session, user, uid, pid, from_ms, until_ms, reason) VALUES "
                           "('x', 'alice', 4000, 1, ?, ?, '')", [(moment, moment + 1)] * 100)
        assert kept.ask(uid=4000)["why"] == "a user can keep sessions 100 times in 24 hours"


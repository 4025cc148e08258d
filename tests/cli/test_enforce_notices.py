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
                                                       "[gua] lab: you have held card 1 idle for 11 min"]
    digest, = [body for subject, body in mails if "in one" in subject]
    assert pids(digest) == list(range(100, 106)) and "release it: kill 103" in digest
    assert queue.run(13) == []
    # The stage of each counts as delivered, so the next one comes.
    assert sorted(pids("".join(body for _, body in queue.run(25)))) == [*range(100, 106), 200]
    assert len(queue.mails()) == 4


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
    (_, body), = queue.run(12)
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


@ROOT_ONLY
def test_a_flood_of_requests_is_in_nobodys_way(kept, tmp_path):  # noqa: F811
    """One user makes 300 requests a minute, about processes that are not there, too."""
    config = conf(tmp_path, FAST)
    kept.write_kept(15)
    assert kept.run(15, *config).returncode == 0
    spool = kept.directory / "keep"
    for i in range(300):
        path = spool / f"{i}.json"
        path.write_text(json.dumps({"pid": 2**22 + i, "start_ticks": 1 + i, "for_ms": 60000, "reason": "x"}))
        os.chown(path, 4321, 4321)
    # Somebody has taken the name of the request.
    (spool / f"0-{kept.pid}.json").write_text("{}")
    os.chown(spool / f"0-{kept.pid}.json", 4321, 4321)
    assert gua("keep", kept.pid, "--for", "20m", "--reason", "data", "--db", kept.db).returncode == 0
    run = kept.run(15, *config)
    assert run.returncode == 0 and "user 4321 made 30" in run.stderr
    assert [path.name for path in spool.iterdir()] == [f"0-{kept.pid}.answer"]
    assert kept.answer(0)["kept"] is True


@ROOT_ONLY
def test_keeps_do_not_grow_the_log(kept, tmp_path):  # noqa: F811
    config = conf(tmp_path, FAST)
    kept.write_kept(15)
    kept.run(15, *config)
    kept.ask(uid=4000, drop=True)
    kept.run(15, *config)
    assert kept.answer(4000)["why"] == "it is not kept any more"
    assert "kept" not in [row["step"] for row in kept.log()]
    with sqlite3.connect(kept.directory / "policy.db") as db:
        moment = int(kept.at(10) * 1000)
        db.executemany("INSERT INTO keep (session, user, uid, pid, from_ms, until_ms, reason) VALUES ('x', 'alice', 4000, 1, "
                       "?, ?, '')", [(moment, moment + 1)] * 100)
    kept.ask(uid=4000)
    kept.run(15, *config)
    assert kept.answer(4000)["why"] == "a user can keep sessions 100 times in 24 hours"


def test_what_is_left_in_the_directory_goes(kept, tmp_path):  # noqa: F811
    """Answers about processes that have ended, halves of files, and what nobody knows."""
    config = conf(tmp_path, FAST)
    kept.write_kept(15)
    kept.run(15, *config)
    spool = kept.directory / "keep"
    assert gua("keep", kept.pid, "--for", "20m", "--reason", "data", "--db", kept.db).returncode == 0
    assert "asked for; gua enforce has not answered yet" in gua("keep", "--db", kept.db).stdout
    kept.run(15, *config)
    answer = spool / f"{os.getuid()}-{kept.pid}.answer"
    assert "kept until" in gua("keep", "--db", kept.db).stdout
    # Another process of the same pid is not kept.
    answer.write_text(answer.read_text().replace('"start_ticks":', '"start_ticks":1'))
    assert gua("keep", "--db", kept.db).stdout == "You keep no session.\n"
    (spool / "junk").write_text("x")
    (spool / "empty").mkdir()
    (spool / "9-4194999.answer").write_text("{}")
    kept.run(15, *config)
    assert len(list(spool.iterdir())) == 4    # they are young
    kept.run(10**6, *config)
    assert [path.name for path in spool.iterdir()] == [answer.name]

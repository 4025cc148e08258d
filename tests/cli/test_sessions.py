"""The idle clocks of sessions against the truth (tests/sessions.py): recorded in virtual time, judged by gua enforce run
minute by minute beside the recorder, and by gua enforce simulate afterwards."""
import datetime
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile

import pytest

from conftest import GUA, clean_environment, gua, wait_for
from ender import start_as
from fake import fake_driver
from sessions import Process, Rule, SLOT, Session, Truth, Use, judge

UID = 12345 if os.geteuid() == 0 else os.getuid()
START = 1793606400  # Mon 2026-11-02 08:00:00 UTC
SECONDS = 6000
TICK = 30
RULE = Rule(warn=600, again=1200, final=300, end=1800, every=60)
LATE = RULE.every + SLOT


def bursts(begin, end, every, sm=80, seconds=3):
    return tuple(Use(at, at + seconds, sm) for at in range(begin, end, every))


CAST = [
    # 8 GiB at 1 %, with short bursts of work: what the product is about.
    Session("notebook", "ann", (Process("notebook", 0, uses=(Use(0, 400, 1), Use(400, 403, 80), Use(403, 1300, 1),
                                                             Use(1300, 1303, 80), Use(1303, SECONDS, 1))),)),
    # A bursty neighbour keeps nobody alive but itself.
    Session("squatter", "bob", (Process("squatter", 1),)),
    Session("neighbour", "carl", (Process("neighbour", 1, uses=bursts(30, SECONDS, 90)),)),
    # A second process that comes and does nothing sets nothing back.
    Session("slurm:3", "dan", (Process("first", 2), Process("second", 2, begin=900))),
    # What the processes of a session use together counts.
    Session("slurm:4", "dan", (Process("half", 3, uses=(Use(0, SECONDS, 3),)),
                               Process("otherhalf", 3, uses=(Use(0, SECONDS, 3),)))),
    Session("slurm:5", "dan", (Process("little", 4, uses=(Use(0, SECONDS, 2),)),
                               Process("otherlittle", 4, uses=(Use(0, SECONDS, 2),)))),
    # Idle for the report, not for policy.
    Session("moderate", "eve", (Process("moderate", 5, uses=(Use(0, 1210, 7),)),)),
    # No figures of processes: alone on its card it has the card's use; beside others nobody knows.
    Session("alone", "frank", (Process("alone", 6),)),
    Session("aloneworks", "frank", (Process("aloneworks", 7, uses=(Use(0, 1210, 60),)),)),
    Session("slurm:7", "frank", (Process("aloneboth", 8, uses=(Use(0, SECONDS, 3),)), Process("alonetoo", 8))),
    # Not from second 600 on, when the first warning is due.
    Session("shared", "gina", (Process("shared", 9),), unknown=((540, 1500),)),
    Session("sharer", "hal", (Process("sharer", 9, uses=bursts(30, SECONDS, 90)),), unknown=((540, 1500),)),
    # Workers compute and are gone before the next tick.
    Session("slurm:9", "jack", (Process("parent", 10), *(
        Process(f"worker{i}", 10, begin=300 * i + 33, end=300 * i + 39, uses=(Use(300 * i + 34, 300 * i + 38, 60),), memory=1)
        for i in range(1, 9)))),
]
WITHOUT_FIGURES = {6: (600, 1500), 7: (600, 1500), 8: (0, SECONDS), 9: (540, 1500)}


def scenario(cast, without=None):
    cards = {process.card for session in cast for process in session.processes}
    lines = ["host lab", "start 2026-11-02T08:00:00Z"]
    lines += [f'card {i} uuid GPU-{i} name "NVIDIA A100" memory 80GiB' for i in sorted(cards)]
    events = []
    for session in cast:
        label = f" job {session.name}" if session.name.startswith("slurm:") else f" notebook jupyter:{session.name}"
        for process in session.processes:
            lines.append(f"process {process.key} pid {1000 + len(lines)} user {session.user} uid 1001{label}"
                         f' command "python {process.key}.py"')
            where = f"{process.key} card {process.card}"
            events.append((process.begin, f"hold {where} memory {process.memory}GiB"))
            for use in process.uses:
                events += [(use.begin, f"load {where} sm {use.sm}"), (use.end, f"load {where} sm 0")]
            if process.end < SECONDS:
                events.append((process.end, f"exit {process.key}"))
    for card, (begin, end) in (without or {}).items():
        events.append((begin, f"fail nvmlDeviceGetProcessUtilization card {card} code 3 until {end}s"))
    # A use that begins when another one ends comes after it.
    return "\n".join(lines + [f"at {at}s {event}" for at, event in sorted(events, key=lambda e: (e[0], "sm 0" not in e[1]))
                              if at < SECONDS]) + "\n"


class Clock:
    """A clock file that stands still until gua enforce lets it go on."""

    def __init__(self, path):
        self.path = path
        boot_us = 3600 * 10**6
        path.write_bytes(struct.pack("=8sqqqq", b"GUACLCK1", boot_us, START * 10**6 - boot_us, 0, boot_us))

    def second(self):
        return struct.unpack_from("=q", self.path.read_bytes(), 8)[0] / 1e6 - 3600

    def advance(self, seconds):
        with open(self.path, "r+b") as file:
            file.seek(8)
            file.write(struct.pack("=q", int((self.second() + 3600 + seconds) * 1e6)))


class Stage:
    """A recorder and gua enforce run beside it, in the same virtual time."""

    def __init__(self, where, play):
        self.where, self.db, self.clock = where, where / "gua.db", Clock(where / "clock")
        self.config, self.scenario = where / "gua.conf", where / "play.scenario"
        self.config.write_text(RULE.text())
        self.config.chmod(0o644)
        self.scenario.write_text(play)
        self.children = []

    def service(self, *words, name):
        with open(self.where / f"{name}.log", "a") as log:
            child = subprocess.Popen([GUA, *map(str, words)], env=clean_environment(GUA_CONFIG=self.config),
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.children.append(child)
        return child

    def record(self, seconds):
        return self.service("daemon", "--foreground", "--db", self.db, "--clock", self.clock.path, "--source", "sim",
                            "--scenario", self.scenario, "--ticks", int(seconds / TICK), name="recorder")

    def enforce(self):
        return self.service("enforce", "run", "--db", self.db, "--clock", self.clock.path, name="enforce")

    def gua(self, *words):
        run = gua("enforce", *words, "--db", self.db, "--json", env={"GUA_CONFIG": self.config})
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def close(self):
        for child in self.children:
            child.terminate()
            child.wait(60)


def second_of(moment):
    return datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() - START


def name_of(session):
    return session.split(" of ")[0].removeprefix("jupyter:")


@pytest.fixture
def stage(tmp_path):
    stages = []

    def make(play):
        stages.append(Stage(tmp_path, play))
        return stages[-1]
    yield make
    for one in stages:
        one.close()


def check(cast, steps, unseen=(), late=LATE):
    wrong = {}
    for session in cast:
        found = judge(Truth(session, RULE, SECONDS, unseen), steps.get(session.name, []), late)
        if found:
            wrong[session.name] = (found, steps.get(session.name))
    assert not wrong, wrong


def count_idle(truths, at):
    """How many sessions gua must and may count as idle in a pass at this second, by the slots and ticks that it can know."""
    must = may = 0
    for truth in truths:
        lately = truth.clocks[max(0, at - SLOT - 2 * TICK):at]
        blind = any(begin + SLOT + TICK < at <= end for begin, end in truth.session.unknown)
        known = not any(begin - SLOT - 2 * TICK < at < end + SLOT + 2 * TICK for begin, end in truth.session.unknown)
        must += known and None not in lately and lately[-1] >= len(lately)
        may += not blind and any(lately[-2 * TICK:])
    return must, may


def test_every_session_is_warned_and_ended_in_its_time(stage):
    play = stage(scenario(CAST, WITHOUT_FIGURES))
    play.enforce()
    first = play.record(2010)
    passes = {}
    wait_for(lambda: '"last_pass": "2026' in gua("enforce", "status", "--db", play.db, "--json",
                                                 env={"GUA_CONFIG": play.config}).stdout)
    while first.poll() is None:
        status = play.gua("status")
        if status["last_pass"] and status["sessions_holding"]:
            passes[int(second_of(status["last_pass"]))] = status["sessions_idle"]
    assert first.returncode == 0
    truths = [Truth(session, RULE, 2100) for session in CAST]
    for at, idle in passes.items():
        must, may = count_idle(truths, at)
        assert must <= idle <= may, (at, must, idle, may)
    assert any(count_idle(truths, at)[1] < len(CAST) for at in passes), passes
    play.clock.advance(90)
    unseen = [(2010, 2100)]
    assert play.clock.second() >= 2100
    play.record(SECONDS - 2100).wait(120)
    wait_for(lambda: play.clock.second() >= SECONDS)
    taken = {}
    for action in play.gua("log", "--since", "1000w", "--now", "2026-11-03")["actions"]:
        if action["step"] in ("warn", "end"):
            stage_name = "end" if action["step"] == "end" else action["stage"]
            taken.setdefault(name_of(action["session"]), []).append((second_of(action["at"]), stage_name))
    check(CAST, taken, unseen)
    # The recorder has stopped: nothing is known, and above all no use.
    pid = re.search(r"^process squatter pid (\d+)", play.scenario.read_text(), re.M)[1]
    said = gua("enforce", "explain", pid, "--db", play.db, "--now", "2026-11-02T09:00Z", env={"GUA_CONFIG": play.config})
    assert "holds no card, as far as is known" in said.stdout and "used a card" not in said.stdout, said
    assert sum(steps[-1][1] == "end" for steps in taken.values()) == 10
    # Afterwards, the replay of the same history says the same.
    replay = {name_of(s["session"]): s for s in play.gua("simulate", "--since", "1000w", "--now", "2026-11-03")["sessions"]}
    for session in CAST:
        due, ended = Truth(session, RULE, SECONDS, unseen).due(RULE.end), replay.get(session.name, {}).get("ended")
        assert (due is None) == (ended is None), (session.name, due, ended)
        assert ended is None or due <= second_of(ended) <= due + LATE, (session.name, due, second_of(ended))


@pytest.fixture
def open_directory():
    """A directory that others may look into: the command of notices runs as nobody."""
    with tempfile.TemporaryDirectory(prefix="gua-told-") as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only a configuration of root may end sessions")
@pytest.mark.same_path  # the first has quiet hours between all stages
@pytest.mark.parametrize("quiet,ends", [("08:25-08:50", 55 * 60), ("08:29-08:34", 34 * 60), ("08:31-08:40", None), ("", None)])
def test_notices_name_the_time_of_the_end(stage, open_directory, quiet, ends):
    """Whenever the session became idle, and also if quiet hours delay the final notice or the end."""
    begins = {f"at{second}": second for second in range(0, 120, 13)}
    play = stage(scenario([Session(name, "ann", (Process(name, i, begin=begin),))
                           for i, (name, begin) in enumerate(begins.items())]))
    told, tell = open_directory / "told", open_directory / "tell"
    told.touch()
    told.chmod(0o666)
    tell.write_text(f"#!/bin/sh\ncat >> {told}\n")
    tell.chmod(0o755)
    calendar = f"[calendar]\nquiet_hours = Mon-Sun {quiet}\n" if quiet else ""
    play.config.write_text(RULE.text("mode = enforce\n") + calendar +
                           f"[notices]\nper_day = 100\nchannels = command\ncommand = {tell}\n")
    run = gua("enforce", "arm", "--until", "2026-11-03", "--now", "2026-11-02T07:00Z", "--db", play.db,
              env={"GUA_CONFIG": play.config})
    assert run.returncode == 0, run.stderr
    play.enforce()
    play.record(3600).wait(120)
    wait_for(lambda: play.clock.second() >= 3600)
    ended = {}
    for action in play.gua("log", "--since", "1000w", "--now", "2026-11-03")["actions"]:
        if action["step"] == "end":
            ended.setdefault(name_of(action["session"]), second_of(action["at"]))
    assert set(ended) == set(begins)
    notices = [json.loads(line) for line in told.read_text().splitlines()]
    for name, at in ended.items():
        named = [(notice["kind"], notice["end_ms"] / 1000 - START) for notice in notices
                 if name_of(notice["session"]) == name and notice["kind"] in ("warning", "again", "final")]
        named = [(kind, end) for kind, end in named if end <= at]
        assert [kind for kind, _ in named[:2]] == ["warning", "again"] and named[-1][0] == "final", (at, notices)
        assert all(at - RULE.every <= end <= at for _, end in named), (name, at, named)
        assert ends is None or ends <= at <= ends + 2 * RULE.every, (name, at)
    assert "at the earliest" in notices[0]["text"] and "at the earliest" not in notices[-1]["text"]


def test_engines_count_and_the_bus_of_the_memory_does_not(tmp_path, clock_file):
    """Real processes on the fake driver, in virtual time: one only encodes, one only copies memory, one does nothing."""
    pids, config = tmp_path / "pids", tmp_path / "gua.conf"
    pids.mkdir()
    config.write_text(RULE.text())
    config.chmod(0o644)
    play, children = "host lab\nstart 2026-11-02T08:00:00Z\n", {}
    keys = ("encodes", "copies", "rests")
    play += "".join(f'card {i} uuid GPU-{i} name "NVIDIA A100" memory 80GiB\n' for i in range(3))
    play += "".join(f"process {key} pid file {key}\nat 0s hold {key} card {i} memory 8GiB\n" for i, key in enumerate(keys))
    try:
        for key in keys:
            children[key] = start_as(UID, "sleep", "300", start_new_session=True)
            (pids / key).write_text(str(children[key].pid))
            (pids / f"{key}.{key}").touch()
        clock, db = clock_file(START), tmp_path / "gua.db"
        env = fake_driver(tmp_path, play, clock=clock, FAKENVML_PIDS=pids, GUA_CONFIG=config)
        run = gua("daemon", "--db", db, "--clock", clock, "--ticks", 80, env=env)
        assert run.returncode == 0, run.stderr
        run = gua("enforce", "simulate", "--db", db, "--json", "--since", "1000w", "--now", "2026-11-03", env=env)
    finally:
        for child in children.values():
            child.kill()
            child.wait()
    ended = {s["session"].split(" of ")[0]: second_of(s["ended"]) for s in json.loads(run.stdout)["sessions"] if s["ended"]}
    assert set(ended) == {f"session {children[key].pid}" for key in ("copies", "rests")}
    assert all(RULE.end <= at <= RULE.end + LATE for at in ended.values())

"""A host with a policy: real processes on the fake driver, a recorder, and gua enforce run. Times are seconds."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest
from conftest import BUILD, GUA, clean_environment, gua, wait_for
from ender import end_with_parent, start_as
from fake import fake_driver

ROOT = os.geteuid() == 0
UID = 12345 if ROOT else os.getuid()
RULES = """[thresholds]
spell = 1s
[policy]
mode = enforce
every = 1s
{policy}
[rule all]
level = end
warn = 2s
warn_again = 4s
final_notice = 2s
end = 7s
[end]
confirm = 1s
sample = 200ms
grace = 20s
[notices]
per_day = 100
{notices}
{more}
"""
TOMORROW = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))
NO_LIMITS = "breaker_pct = 100\nends_per_hour = 100\nends_per_user = 100"


class Host:
    """Keys of `holds` are processes; a value says which card, how much memory, and more keys of the scenario."""

    def __init__(self, where, holds, policy=NO_LIMITS, notices=None, more="", scenario=""):
        self.where, self.pids, self.children = where, where / "pids", []
        self.db, self.told_path = where / "gua.db", where / "told"
        self.pids.mkdir()
        where.chmod(0o755)
        # Notices go to a command, which keeps them.
        tell = where / "tell"
        tell.write_text(f"#!/bin/sh\ncat >> {self.told_path}\n")
        tell.chmod(0o755)
        self.told_path.touch()
        self.told_path.chmod(0o666)
        notices = f"channels = command\ncommand = {tell}\ntimeout = 10s" if notices is None else notices
        self.config = where / "gua.conf"
        self.config.write_text(RULES.format(policy=policy, notices=notices.format(where=where), more=more))
        self.config.chmod(0o644)
        cards = sorted({card for card, _ in holds.values()} | {9})
        lines = ["host lab"]
        lines += [f'card {i} uuid GPU-{i} name "NVIDIA A100" memory 80GiB' for i in range(len(cards))]
        index = {card: i for i, card in enumerate(cards)}
        lines += [f"process {key} pid file {key}" for key in [*holds, "other"]]
        lines += [f"at 0s hold {key} card {index[card]} memory {memory}" for key, (card, memory) in holds.items()]
        # Somebody who works: a pass that would hit every card does nothing.
        lines += [f"at 0s hold other card {index[9]} memory 4GiB", f"at 0s load other card {index[9]} sm 80"]
        self.env = {**fake_driver(where, "\n".join(lines) + "\n" + scenario, FAKENVML_PIDS=self.pids, FAKENVML_REAP=1,
                                  FAKENVML_START=repr(time.time())), "GUA_CONFIG": str(self.config)}
        self.start("other")

    def start(self, key, *argv, uid=UID, **options):
        """A process in a session of its own that holds what `holds` says."""
        child = start_as(uid, *(argv or ("sleep", "300")), start_new_session=True, **options)
        self.children.append(child)
        self.hold(key, child.pid)
        return child

    def hold(self, key, pid):
        (self.pids / f".{key}").write_text(str(pid))
        (self.pids / f".{key}").rename(self.pids / key)

    def service(self, *arguments, before=(), name="service"):
        log = open(self.where / f"{name}.log", "a")
        child = subprocess.Popen([*before, GUA, *map(str, arguments)], env=clean_environment(**self.env),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                                 preexec_fn=end_with_parent)
        log.close()
        self.children.append(child)
        return child

    def record(self):
        return self.service("daemon", "--foreground", "--db", self.db, "--interval", "1s", "--drain", "500ms",
                            name="recorder")

    def enforce(self, *arguments, before=()):
        return self.service("enforce", "run", "--db", self.db, *arguments, before=before, name="enforce")

    def gua(self, *arguments, **options):
        return gua(*arguments, env=self.env, **options)

    def arm(self):
        wait_for(self.db.exists)
        run = self.gua("enforce", "arm", "--until", TOMORROW, "--db", self.db)
        assert run.returncode == 0, run.stderr

    def told(self):
        """The notices that were delivered: (kind, pid), in order."""
        notices = [json.loads(line) for line in self.told_path.read_text().splitlines()]
        return [(notice["kind"], notice["pid"]) for notice in notices]

    def steps(self, pid=None):
        """The rows of the log: (step, stage, result), of one process or of all."""
        path = self.where / "policy.db"
        if not path.exists():
            return []
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as db:
            try:
                rows = db.execute("SELECT step, stage, result, pids FROM action ORDER BY id").fetchall()
            except sqlite3.OperationalError:    # it is being made
                rows = []
        return [(step, stage, result) for step, stage, result, pids in rows
                if pid is None or str(pid) in (pids or "").split()]

    def wait_for_step(self, pid, step, stage=None):
        def found():
            return any(row[0] == step and stage in (None, row[1]) for row in self.steps(pid))
        wait_for(found, lambda: f"{self.steps(pid)}\n{self.log()}")

    def log(self):
        return "".join(path.read_text() for path in self.where.glob("*.log"))

    def stop(self, child):
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0, self.log()

    def close(self):
        for child in reversed(self.children):
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                child.kill()
            child.wait()
            for stream in child.stdin, child.stdout:
                if stream:
                    stream.close()


@pytest.fixture
def hosts():
    """hosts(HOLDS, ...) makes a host; nothing of it survives the test. Its directory is open to all: the command of
    notices runs as nobody."""
    made = []

    def make(*arguments, **options):
        where = pathlib.Path(tempfile.mkdtemp(prefix="gua-enforce-"))
        made.append(Host(where, *arguments, **options))
        return made[-1]
    yield make
    for host in made:
        host.close()
        shutil.rmtree(host.where, ignore_errors=True)


needs_enforce = [
    pytest.mark.skipif(not (BUILD / "gua-enforce").exists(), reason="built without gua enforce"),
    pytest.mark.skipif(not ROOT, reason="a configuration that may end sessions belongs to root"),
]


# The notices of a session that is ended.
IN_ORDER = ["warning", "again", "final", "ended"]


def kinds(host, child):
    """The notices about a process, in order."""
    return [kind for kind, pid in host.told() if pid == child.pid]

"""A play of real processes with recorders beside it.

    play = Play(directory, make_lives(seed=1, seconds=60, count=24), RECORDERS)
    play.run(60)
    for recorder, figures in play.judge(GOALS_SHORT): ...

The same in virtual time, without processes: record_virtually().
"""
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

from conftest import BUILD, ROOT, clean_environment, gua, write_clock
from fake import fake_driver
from judge import judge
from lives import DRIVERS, PLAIN, Driver, scenario, write_lives


@dataclass
class Recorder:
    """A recorder with default options."""
    name: str
    driver: Driver
    build: str = BUILD          # whose gua it is; the fake driver is always that of BUILD
    interrupted: bool = False
    child: object = None        # its process
    killed: list = field(default_factory=list)

    def start(self, play):
        where = play.where / self.name
        where.mkdir(exist_ok=True)
        env = fake_driver(where, scenario(play.lives, self.driver, play.setting), FAKENVML_START=repr(play.start),
                          FAKENVML_PIDS=play.pids)
        with open(where / "log", "a") as log:
            self.child = subprocess.Popen([self.build / "gua", "daemon", "--foreground", "--db", where / "gua.db"],
                                          env=clean_environment(**env), stderr=log, start_new_session=True)

    def interrupt(self, how):
        """Stops it with all that it started, or kills it alone."""
        if how == "stop":
            os.killpg(self.child.pid, signal.SIGSTOP)
        else:
            self.child.kill()
            self.child.wait(60)

    def go_on(self, how, play):
        if how == "stop":
            os.killpg(self.child.pid, signal.SIGCONT)
        else:
            self.start(play)


def recorders(build=BUILD, label="", drivers=DRIVERS):
    """A recorder for each kind of driver."""
    return [Recorder(label + name, driver, build) for name, driver in drivers.items()]


class Play:
    def __init__(self, where, lives, recorders, setting=PLAIN, interruptions=()):
        self.where, self.pids, self.setting = where, where / "pids", setting
        self.pids.mkdir(parents=True)
        self.lives, self.recorders, self.interruptions = lives, recorders, interruptions
        write_lives(self.lives, where / "lives.json")
        self.start = time.time()
        self.player = subprocess.Popen([sys.executable, ROOT / "tests" / "player.py", where / "lives.json",
                                        self.pids, repr(self.start)])
        for recorder in recorders:
            recorder.start(self)

    def sleep_until(self, seconds):
        time.sleep(max(0, self.start + seconds - time.time()))

    def disturb(self):
        """Interrupts those recorders that are to be, as often as is planned."""
        for begin, end, how in self.interruptions:
            self.sleep_until(begin)
            for recorder in self.recorders:
                if recorder.interrupted:
                    recorder.interrupt(how)
            self.sleep_until(end)
            for recorder in self.recorders:
                if recorder.interrupted:
                    recorder.go_on(how, self)

    def run(self, seconds):
        """Plays until then."""
        try:
            self.disturb()
            self.sleep_until(seconds)
        finally:
            self.stop()

    def stop(self):
        """The recorders account for all up to now; then the processes end."""
        for children in ([recorder.child for recorder in self.recorders], [self.player]):
            for child in children:
                child.send_signal(signal.SIGTERM)
            for child in children:
                child.wait(60)

    def faults(self):
        """What went wrong with the programs, as text."""
        player = [f"the player ended with {self.player.returncode}"] if self.player.returncode else []
        return player + [f"{one.name} ended with {one.child.returncode}: {(self.where / one.name / 'log').read_text()}"
                         for one in self.recorders if one.child.returncode != 0]

    def played(self):
        return json.loads((self.pids / "played.json").read_text())

    def judge(self, goals):
        """Yields (name of the recorder, figures)."""
        for one in self.recorders:
            yield one.name, judge(self.where / one.name / "gua.db", self.lives, one.driver, self.start,
                                  self.played(), goals)


VIRTUAL_START = 1793606400      # a full hour


def record_virtually(where, lives, setting, driver, seconds, build=BUILD):
    """Records a play in virtual time, which takes no time and is the same each time: no process is real, so
    that users are not known. Scenario time 0 is VIRTUAL_START. Returns the store."""
    where.mkdir(parents=True, exist_ok=True)
    clock = write_clock(where / "clock", VIRTUAL_START)
    env = fake_driver(where, scenario(lives, driver, setting, real=False), clock=clock)
    run = gua("daemon", "--clock", clock, "--db", where / "gua.db", "--ticks", seconds // 30, env=env,
              binary=build / "gua", timeout=1200)
    assert run.returncode == 0, run.stderr
    return where / "gua.db"

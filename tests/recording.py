"""A play of real processes with a recorder for each kind of driver beside it.

    play = Play(directory, seed=1, seconds=60, count=24)
    time.sleep(60)
    play.stop()
    for name, figures in play.judge(GOALS_SHORT): ...
"""
import json
import signal
import subprocess
import sys
import time

from conftest import GUA, ROOT, clean_environment
from fake import fake_driver
from judge import judge
from lives import DRIVERS, make_lives, scenario, write_lives


class Play:
    def __init__(self, where, seed, seconds, count):
        self.where, self.pids = where, where / "pids"
        self.pids.mkdir(parents=True)
        self.lives = make_lives(seed, seconds, count)
        write_lives(self.lives, where / "lives.json")
        self.start = time.time()
        self.player = subprocess.Popen([sys.executable, ROOT / "tests" / "player.py", where / "lives.json",
                                        self.pids, repr(self.start)])
        self.recorders = {name: self.record(driver) for name, driver in DRIVERS.items()}

    def record(self, driver):
        """Starts the recorder with default options."""
        where = self.where / driver.name
        where.mkdir()
        env = fake_driver(where, scenario(self.lives, driver), FAKENVML_START=repr(self.start),
                          FAKENVML_PIDS=self.pids)
        with open(where / "log", "w") as log:
            return subprocess.Popen([GUA, "daemon", "--foreground", "--db", where / "gua.db"],
                                    env=clean_environment(**env), stderr=log)

    def stop(self):
        """The recorders account for all up to now; then the processes end."""
        for children in (self.recorders.values(), [self.player]):
            for child in children:
                child.send_signal(signal.SIGTERM)
            for child in children:
                child.wait(60)

    def faults(self):
        """What went wrong with the programs, as text."""
        player = [f"the player ended with {self.player.returncode}"] if self.player.returncode else []
        return player + [f"{name} ended with {child.returncode}: {(self.where / name / 'log').read_text()}"
                         for name, child in self.recorders.items() if child.returncode != 0]

    def judge(self, goals):
        """Yields (driver, figures)."""
        played = json.loads((self.pids / "played.json").read_text())
        for name, driver in DRIVERS.items():
            yield name, judge(self.where / name / "gua.db", self.lives, driver, self.start, played, goals)

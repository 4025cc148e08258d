"""Runs tests/tools/readings, which opens a source and prints what it says, against the fake driver."""
import json
import subprocess

from conftest import BUILD, clean_environment

READINGS = BUILD / "tests" / "readings"
WALL = 1_700_000_000


class Run:
    """What `readings` printed: `lines` in order, each the answer to one action."""

    def __init__(self, process):
        self.lines = [json.loads(line) for line in process.stdout.splitlines()]
        self.stderr = process.stderr
        self.status = process.returncode

    def of(self, action):
        return [line for line in self.lines if line["action"] == action]

    def card(self, action, card=0):
        """The card in the last answer to an action."""
        return self.of(action)[-1]["cards"][card]

    def facility(self, job):
        """The rows about one job."""
        return [row for row in self.of("facilities")[-1]["facilities"] if row["job"] == job]


def command(env, root, actions, named=True):
    words = [READINGS]
    if named:
        words += ["--nvml", env["GUA_NVML"]]
    if "FAKENVML_CLOCK" in env:
        words += ["--clock", env["FAKENVML_CLOCK"]]
    if root:
        words += ["--root", root]
    return [str(word) for word in (*words, *actions)]


def readings(env, *actions, root=None, named=True):
    """Does the actions; a string with several words is several."""
    words = [word for action in actions for word in action.split()]
    process = subprocess.run(command(env, root, words, named), env=clean_environment(**env), timeout=60,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert process.returncode in (0, 1), process.stderr
    return Run(process)


class Paused:
    """The same step by step: `go()` runs to the next pause and returns what was printed until then."""

    def __init__(self, env, *actions, root=None):
        words = [word for action in actions for word in action.split()]
        self.process = subprocess.Popen(command(env, root, words), env=clean_environment(**env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.started = False

    def go(self):
        if self.started:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        self.started = True
        lines = []
        for line in self.process.stdout:
            lines.append(json.loads(line))
            if lines[-1]["action"] == "pause":
                return lines[:-1]
        assert self.process.wait(30) == 0
        return lines

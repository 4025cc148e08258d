"""Plays sessions of known idle times, and works out from the words of gua-policy(7) alone who must be warned and ended,
and when. Times are seconds of the play.

A session is a list of processes; each holds a card from one moment to another and uses it at known times. `Truth` goes
through the play second by second: the idle clock is at 0 while the session uses a card, stands still while nobody knows,
and grows otherwise. `judge` compares the steps that gua took with it: no stage before its time, none later than one pass
and one slot after it, counted from the delivery of the notice before it; none for a session that is not due."""
import dataclasses

SLOT = 60
STAGES = ("warning", "second warning", "final notice", "end")


@dataclasses.dataclass(frozen=True)
class Use:
    """Use of the card from one moment to another: percent of its multiprocessors, of its encoder, of its memory's bus."""
    begin: float
    end: float
    sm: float = 0
    encoder: float = 0
    bus: float = 0


@dataclasses.dataclass(frozen=True)
class Process:
    key: str
    card: int
    begin: float = 0
    end: float = float("inf")
    uses: tuple = ()
    memory: int = 8


@dataclasses.dataclass(frozen=True)
class Session:
    """`unknown` are (begin, end) in which the driver has no figures of processes."""
    name: str
    user: str
    processes: tuple
    unknown: tuple = ()


@dataclasses.dataclass(frozen=True)
class Rule:
    warn: int
    again: int
    final: int  # before the end
    end: int
    every: int
    idle_below: int = 5

    def at(self, stage):
        return {"warning": self.warn, "second warning": self.again, "final notice": self.end - self.final,
                "end": self.end}[stage]

    def text(self, more=""):
        return (f"[policy]\nevery = {self.every}s\nbreaker_pct = 100\nends_per_hour = 1000\nends_per_user = 1000\n{more}"
                f"[rule all]\nlevel = end\nwarn = {self.warn}s\nwarn_again = {self.again}s\n"
                f"final_notice = {self.final}s\nend = {self.end}s\n")


def sm_at(session, card, second):
    return sum(use.sm for process in session.processes for use in process.uses
               if process.card == card and use.begin < second + 1 and use.end > second)


def uses(session, second, idle_below):
    """Whether the session uses a card: what counts, gua-policy(7), WHAT IS JUDGED."""
    return any(sm_at(session, process.card, second) >= idle_below or
               any(use.encoder > 0 and use.begin < second + 1 and use.end > second for use in process.uses)
               for process in session.processes)


class Truth:
    """The idle clock of a session at the end of each second of the play; None while it holds no card. `unseen` are (begin, end) in
    which there was no recorder."""

    def __init__(self, session, rule, seconds, unseen=()):
        self.session, self.rule, self.clocks = session, rule, []
        blind = [*session.unknown, *unseen]
        clock = None
        for second in range(seconds):
            if not any(process.begin <= second < process.end for process in session.processes):
                clock = None
            elif uses(session, second, rule.idle_below) and not any(a <= second < b for a, b in unseen):
                clock = 0
            else:
                clock = (clock or 0) + (not any(a <= second < b for a, b in blind))
            self.clocks.append(clock)

    def due(self, clock, after=0):
        """When the clock has reached this, which it does at the end of a second from `after` on; None: never."""
        return next((i + 1 for i, now in enumerate(self.clocks) if i >= after and now is not None and now >= clock), None)

    def resets(self):
        """The seconds at whose end the clock went back, or the session left its cards."""
        return [i for i, (now, then) in enumerate(zip(self.clocks, self.clocks[1:]))
                if now is not None and (then is None or then < now)]


def judge(truth, steps, late):
    """What is wrong with the steps of a session, [(second, stage)], as sentences. `late` is how much later than its time
    a step may come. The final notice may come in the last pass before its time; from its delivery, which is at once, to
    the end it is as long as the rule says."""
    rule, seconds, wrong = truth.rule, len(truth.clocks), []
    stage, since = 0, 0  # what comes next, in the idle time since then

    def missed(end):
        due = truth.due(rule.at(STAGES[stage]), since)
        return [] if due is None or due + late >= end else [f"no {STAGES[stage]}, which was due at {due}"]
    for at, name in [*steps, (seconds, None)]:
        # A session that is used again is free of all warnings, and starts from the beginning.
        for moment in truth.resets():
            if since <= moment < at:
                wrong += missed(moment)
                stage, since = 0, moment + 1
        if name is None:
            return wrong + missed(seconds)
        if name != STAGES[stage]:
            return [*wrong, f"{name} at {at}, where {STAGES[stage]} comes next"]
        due = truth.due(rule.at(name), since)
        early = rule.every if name == "final notice" else 1
        if due is None or at < due - early:
            return [*wrong, f"{name} at {at}, which is due at {due}"]
        if at > due + late:
            wrong.append(f"{name} at {at}, {at - due} s late")
        if name == "end":
            return [*wrong, f"end {at - final} s after the final notice"] if at - final < rule.final else wrong
        final = at
        stage += 1
    return wrong


# Real processes on the fake driver, in real time: a rule of minutes, so that all of it takes seven.
REAL_RULE = Rule(warn=60, again=90, final=20, end=120, every=5)
REAL_SECONDS = 400
REAL_DRAIN = 1  # use counts to the end of the drain in which it was seen
RESTART = 250


def bursts(begin, end, every, sm=80, seconds=3):
    return tuple(Use(at, at + seconds, sm) for at in range(begin, end, every))


REAL_CAST = [
    Session("rests", "", (Process("rests", 0),)),
    Session("notebook", "", (Process("notebook", 1, uses=(Use(0, 80, 1), Use(80, 83, 80), Use(83, 400, 1))),)),
    Session("squatter", "", (Process("squatter", 2),)),
    Session("neighbour", "", (Process("neighbour", 2, uses=bursts(5, REAL_SECONDS, 20)),)),
    Session("two", "", (Process("two", 3), Process("two2", 3, begin=40))),
    Session("encodes", "", (Process("encodes", 4, uses=(Use(0, 150, encoder=30),)),)),
    Session("copies", "", (Process("copies", 5, uses=(Use(0, REAL_SECONDS, bus=80),)),)),
    Session("moderate", "", (Process("moderate", 6, uses=(Use(0, 100, 7),)),)),
    Session("alone", "", (Process("alone", 7),)),
    # Not from second 60 on, when the first warning is due.
    Session("shared", "", (Process("shared", 8),), unknown=((45, 150),)),
    Session("sharer", "", (Process("sharer", 8, uses=bursts(5, REAL_SECONDS, 20)),), unknown=((45, 150),)),
    # Not on card 9, which somebody else keeps busy: that process ends before the play does.
    Session("parent", "", (Process("parent", 10), *(Process(f"worker{i}", 10, 40 * i, 40 * i + 6, (Use(40 * i + 1, 40 * i + 5, 60),), 1)
                                                   for i in range(1, 5)))),
]
# Reads "KEY SECONDS" and starts a process of its own session that lives so long.
STARTS = "import os, sys, time\nfor line in sys.stdin:\n    pid = os.fork()\n    if not pid:\n        time.sleep(float(line))\n" \
         "        os._exit(0)\n    print(pid, flush=True)\n"


def real_scenario(cast):
    lines = []
    for session in cast:
        for process in session.processes:
            where = f"{process.key} card {process.card}"
            for use in process.uses:
                if use.sm:
                    lines += [(use.begin, f"load {where} sm {use.sm}"), (use.end, f"load {where} sm 0")]
            if process.end < REAL_SECONDS:
                lines.append((process.end, f"exit {process.key}"))
        for begin, end in session.unknown:
            lines += [(begin, f"fail {call} card {session.processes[0].card} code 999 until {end}s") for call in
                      ("nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo")]
    return "".join(f"at {at}s {event}\n" for at, event in sorted(lines, key=lambda one: (one[0], "sm 0" not in one[1])))


def real_host(where):
    """A host with the processes of REAL_CAST, and what changes at which second: [(second, function)]."""
    import enforcing
    begin = {process.key: process for session in REAL_CAST for process in session.processes}
    host = enforcing.Host(where, {key: (process.card, f"{process.memory}GiB") for key, process in begin.items()},
                          scenario=real_scenario(REAL_CAST))
    host.config.write_text(REAL_RULE.text("mode = enforce\n") + "[thresholds]\nspell = 1s\n[end]\nconfirm = 2s\n"
                           f"sample = 500ms\n[notices]\nper_day = 1000\nchannels = command\ncommand = {where}/tell\n")
    children, later = {}, []
    for session in REAL_CAST:
        first, *others = session.processes
        children[session.name] = child = host.start(first.key, "/usr/bin/python3", "-c", STARTS, stdin=-1, stdout=-1, text=True)

        def start(process=None, child=child):
            child.stdin.write(f"{min(process.end - process.begin, REAL_SECONDS)}\n")
            child.stdin.flush()
            host.hold(process.key, int(child.stdout.readline()))
        later += [(process.begin, lambda process=process, start=start: start(process)) for process in others]
        for word in ("encodes", "copies"):
            if session.name == word:
                mark = host.pids / f"{word}.{word}"
                mark.touch()
                later.append((first.uses[0].end, lambda mark=mark: mark.unlink()))
    return host, children, later


def play_for_real(where):
    """Plays REAL_CAST; returns what is wrong: no session too early or too late, and none that must not."""
    import sqlite3
    import time
    host, children, later = real_host(where)
    start = time.time()
    try:
        recorder = host.service("daemon", "--foreground", "--db", host.db, "--interval", "2s", "--drain", f"{REAL_DRAIN}s", name="recorder")
        host.enforce()
        host.arm()
        later += [(RESTART, lambda: host.stop(recorder)),
                  (RESTART, lambda: host.service("daemon", "--foreground", "--db", host.db, "--interval", "2s", "--drain", f"{REAL_DRAIN}s",
                                                 name="recorder"))]
        gone = {}
        for second, change in [*sorted(later, key=lambda one: one[0]), (REAL_SECONDS, lambda: None)]:
            while time.time() < start + second:
                time.sleep(0.2)
                gone.update({name: time.time() - start for name, child in children.items()
                             if name not in gone and child.poll() is not None})
            change()
        with sqlite3.connect(where / "policy.db") as db:
            rows = db.execute("SELECT at_ms, step, stage, pids FROM action WHERE step IN ('warn', 'end') ORDER BY id").fetchall()
    finally:
        host.close()
    wrong = []
    for session in REAL_CAST:
        pid = str(children[session.name].pid)
        steps = [(at / 1000 - start, "end" if step == "end" else stage) for at, step, stage, pids in rows if pid in pids.split()]
        wrong += [f"{session.name}: {text} {steps}" for text in
                  judge(Truth(session, REAL_RULE, REAL_SECONDS, [(RESTART, RESTART + 2)]), steps,
                        REAL_RULE.every + SLOT + REAL_DRAIN)]
        ended = [at for at, stage in steps if stage == "end"]
        if ended and session.name not in gone:
            wrong.append(f"{session.name}: was to be ended at {ended[0]:.0f}, and lives")
        if not ended and session.name in gone:
            wrong.append(f"{session.name}: is gone since {gone[session.name]:.0f}")
    return wrong


if __name__ == "__main__":
    import pathlib
    import sys
    import tempfile
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cli"))
    with tempfile.TemporaryDirectory(prefix="gua-sessions-") as directory:
        faults = play_for_real(pathlib.Path(directory))
    print("\n".join(faults) or f"all {len(REAL_CAST)} sessions were warned and ended in their time")
    sys.exit(bool(faults))

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
    """The idle clock of a session at each second of the play; None while it holds no card. `unseen` are (begin, end) in
    which there was no recorder."""

    def __init__(self, session, rule, seconds, unseen=()):
        self.session, self.rule, self.clocks = session, rule, []
        blind = [*session.unknown, *unseen]
        clock = None
        for second in range(seconds):
            if not any(process.begin <= second < process.end for process in session.processes):
                clock = None
            elif clock is None:
                clock = 0
            elif uses(session, second, rule.idle_below) and not any(a <= second < b for a, b in unseen):
                clock = 0
            elif not any(a <= second < b for a, b in blind):
                clock += 1
            self.clocks.append(clock)

    def due(self, clock, after=0):
        """The first second from `after` on at which the clock has reached this; None: never."""
        return next((i for i, now in enumerate(self.clocks) if i >= after and now is not None and now >= clock), None)

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

"""Compares what a store says with the truth of the lives that were played, figure by figure.

    figures = judge(db, lives, driver, start, played, GOALS_HOUR)
    print(table(figures))
    assert all(figure.ok for figure in figures)
"""
import math
import sqlite3
import statistics
from dataclasses import dataclass

from lives import IDLE_WATTS, name_of, scenario
from truth import Scenario

CARD_STATES = ["active", "idle_held", "truly_idle", "unobserved", "use_unknown"]
HOLDER_STATES = ["active", "idle_held", "truly_idle", "squatting", "use_unknown"]
BEYOND = "error beyond the stated"
CARD = "idle-held of card"
WHOLE = "idle-held of card in whole minutes"
SLOTS = ["1m", "5m", "1h"]
SLOT_S = 60
STORED_S = 0.001    # a store has whole milliseconds: without this, a card that is held all the time is never covered


class Store:
    """The sums of a store, in seconds and millijoules. A column that the store does not have counts as 0."""

    def __init__(self, path):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            self.connection = connection
            self.gpus = {row["id"]: row for row in self.rows("gpu")}
            for row in self.rows("reading"):
                if row["seen_ms"] is not None:  # the run goes on, or was killed
                    self.gpus[row["gpu"]]["last_seen_ms"] = row["seen_ms"]
            self.lives = {row["id"]: row for row in self.rows("process")}
            self.usage = [row for slot in SLOTS for row in self.rows(f"usage_{slot}")]
            self.holding = [row for slot in SLOTS for row in self.rows(f"holding_{slot}")]

    def rows(self, table):
        return [dict(row) for row in self.connection.execute(f"SELECT * FROM {table}")]

    def window(self):
        """Begin and end (unix seconds) of what was accounted; all cards are accounted together."""
        windows = []
        for gpu, row in self.gpus.items():
            ms = sum(usage["ms"] for usage in self.usage if usage["gpu"] == gpu)
            windows.append(((row["last_seen_ms"] - ms) / 1000, row["last_seen_ms"] / 1000))
        return tuple(statistics.median(side) for side in zip(*windows))

    def of_cards(self, state, column="ms", uuid=None):
        """Sum over the slots of all cards or one, as stored."""
        return sum(row.get(column) or 0 for row in self.usage if CARD_STATES[row["state"]] == state
                   and uuid in (None, self.gpus[row["gpu"]]["uuid"]))

    def presence(self, user, states=HOLDER_STATES):
        """A user's presence in these states: time less what is counted double."""
        return sum(row.get(f"{state}_ms", 0) - row.get(f"{state}_double_ms", 0) for row in self.holding
                   for state in states if self.lives[row["process"]]["user"] == user) / 1000

    def of_process(self, process, state):
        return sum(row.get(f"{state}_ms", 0) for row in self.holding if row["process"] == process) / 1000

    def stated(self, uuid=None, slots=None):
        """The uncertainty in seconds of one card, or of all together; of all slots, or of some."""
        rows = [row for row in self.usage if uuid in (None, self.gpus[row["gpu"]]["uuid"])
                and (slots is None or row["slot"] in slots)]
        linear, squares = (sum(row.get(column) or 0 for row in rows) for column in ("unsure_ms", "unsure_ms2"))
        return (linear + math.sqrt(max(0, squares))) / 1000

    def users(self):
        return {row["user"] for row in self.lives.values()}


@dataclass
class Figure:
    name: str
    true: float
    measured: float
    goal: float = None      # the largest error that is good, None: for information

    @property
    def error(self):
        return self.measured - self.true

    @property
    def ok(self):
        return self.goal is None or abs(self.error) <= self.goal + STORED_S

    @property
    def kind(self):
        """What is compared over many plays: "presence of" is one kind, whoever it is of."""
        return self.name.partition(":")[0]


@dataclass
class Goals:
    """What is good enough. A glance finds a begin or an end within about a second, too early as often as too
    late, so that the error of many grows with the root of their number: in a short play that is more than
    the percentages of an hour."""
    edge_s: float = 0       # for the root of the number of begins and ends of holding
    burst_s: float = 0      # for the root of the number of begins and ends of use on a shared card
    held: float = 0.005
    user: float = 0.005
    user_s: float = 2
    squatting: float = 0.01
    energy: float = 0.03


GOALS_HOUR = Goals()
GOALS_SHORT = Goals(edge_s=1, burst_s=3)
STATED_EDGE_S = 1           # no begin or end is more uncertain than this, on the average


class Judge:
    def __init__(self, store, lives, driver, start, played, goals):
        self.store, self.lives, self.driver, self.played, self.goals = store, lives, driver, played, goals
        begin, end = store.window()
        self.since, self.until = begin - start, end - start
        self.truth = Scenario(scenario(lives, driver)).truth(self.since, self.until, own_use=driver.own_use)

    def edges(self, user=None):
        """How many begins and ends of holding are in the window."""
        moments = [moment for life in self.lives if user in (None, name_of(life.user))
                   for moment in (life.events[0][0], life.end)]
        return sum(self.since <= moment / 1000 <= self.until for moment in moments)

    def bursts(self):
        """How many begins and ends of use there are on cards that another user shared at that time."""
        return sum(verb == "load" for life in self.lives for at, verb, _ in life.events if any(
            other.card == life.card and other.user != life.user and other.start <= at < other.end
            for other in self.lives))

    def late(self):
        """For how long the player was late, over all processes."""
        return sum(one["late_ms"] for one in self.played.values()) / 1000

    def stated(self):
        """The uncertainty that the store states: how much time of all cards may be of another state."""
        return self.store.stated()

    def slack(self, edges):
        """How far this many begins and ends may be off together; more on a machine on which glances were rare."""
        rare = 1 + 2 * self.stated() / max(1, self.edges())
        return self.goals.edge_s * rare * math.sqrt(edges) + self.late()

    def true_card(self, state, uuid=None):
        return sum(states.get(state, 0) for card, states in self.truth.cards.items() if uuid in (None, card))

    def polled(self, goal):
        """Without samples use is only known at the moments of the readings: what is stated counts."""
        return goal if self.driver.samples else max(goal, self.stated())

    def cards(self):
        true = self.true_card("idle_held")
        goal = self.polled(max(self.goals.held * true, self.slack(self.edges())))
        yield Figure("idle-held", true, self.store.of_cards("idle_held") / 1000, goal)
        for state in CARD_STATES:
            if state != "idle_held":
                yield Figure(state, self.true_card(state), self.store.of_cards(state) / 1000)
        for uuid in self.truth.cards:
            for state in CARD_STATES:
                true, measured = self.true_card(state, uuid), self.store.of_cards(state, uuid=uuid) / 1000
                if true or measured:
                    yield Figure(f"card: {uuid} {state}", true, measured)

    def users(self):
        for user in sorted(set(self.truth.users) | self.store.users()):
            states = self.truth.users.get(user, {})
            slack = max(self.goals.user_s, self.slack(self.edges(user)))
            for name, true, measured in (
                    ("presence", sum(states.values()), self.store.presence(user)),
                    ("user's idle-held", states.get("idle_held", 0), self.store.presence(user, ["idle_held"]))):
                goal = max(self.goals.user * true, slack)
                # The truth has no _unknown: every process of the play has its user.
                goal = None if user == "_unknown" else self.polled(goal) if "idle" in name else goal
                yield Figure(f"{name}: {user}", true, measured, goal)

    def squatting(self):
        true = sum(states["squatting"] for states in self.truth.users.values())
        measured = sum(self.store.presence(user, ["squatting"]) for user in self.store.users())
        window = len(self.truth.cards) * (self.until - self.since)  # seconds of cards, as squatting is
        goal = max(self.goals.squatting * window, self.goals.burst_s * math.sqrt(self.bursts()))
        yield Figure("squatting", true, measured, goal if self.driver.samples else None)

    def energy(self):
        """Joules of idle-held time; where part of the time is without energy, of the rest."""
        ms, unknown = (self.store.of_cards("idle_held", column) for column in ("ms", "energy_unknown_ms"))
        true = sum(states["idle_held"] for states in self.truth.energy_mj.values()) / 1000
        true *= (ms - unknown) / ms if ms else 1
        measured = self.store.of_cards("idle_held", "energy_mj") / 1000
        goal = self.goals.energy * true + IDLE_WATTS * self.polled(self.slack(self.edges()))
        yield Figure("idle-held energy (J)", true, measured, goal)

    def life_of(self, row):
        """Which life a process of the store is: pids are used again."""
        same = [(key, abs((row["started_ms"] or row["first_seen_ms"]) / 1000 - one["started"]))
                for key, one in self.played.items() if one["pid"] == row["pid"]]
        return min(same, key=lambda pair: pair[1])[0] if same else None

    def processes(self):
        """The process whose own states are furthest from the truth."""
        measured = {}
        for id, row in self.store.lives.items():
            measured.setdefault(self.life_of(row), []).append(id)
        worst = []
        for key, states in self.truth.processes.items():
            for state in HOLDER_STATES:
                found = sum(self.store.of_process(id, state) for id in measured.get(key, []))
                worst.append(Figure(f"worst process: {key} {state}", states.get(state, 0), found))
        yield max(worst, key=lambda figure: abs(figure.error))

    def uncertainty(self):
        """The error of idle-held time is at most what the store states, and it does not state too much."""
        yield Figure("stated uncertainty", 0, self.stated(),
                     STATED_EDGE_S * self.edges() if self.driver.samples else None)
        error = abs(self.store.of_cards("idle_held") / 1000 - self.true_card("idle_held"))
        yield Figure(BEYOND, 0, max(0, error - self.stated()), self.slack(self.edges()) / 2)

    def figures(self):
        return [*self.cards(), *self.users(), *self.squatting(), *self.energy(), *self.processes(),
                *self.uncertainty()]


class SlotJudge:
    """Compares slot by slot, which also works where a recorder was interrupted: what was not observed may have been
    of any state, so that in each slot only what it cannot explain is an error. That forgives most errors in a slot that
    was observed in part: a recorder whose errors are exactly as likely as it states would seem to state 9 times the
    median error after interruptions, and 24 to 190 times after kills alone. How wide an uncertainty is, is therefore
    judged by slots that were observed as a whole (WHOLE)."""

    def __init__(self, store, lives, driver, setting, start, seconds):
        self.store, self.setting = store, setting
        self.first = int(start // SLOT_S * SLOT_S)
        text = scenario(lives, driver, setting)
        self.truth = Scenario(text).slots(self.first - start, seconds, SLOT_S, driver.own_use)
        self.measured = {}      # (uuid, slot number, state) -> seconds
        for row in store.usage:
            key = store.gpus[row["gpu"]]["uuid"], (row["slot"] - self.first) // SLOT_S, CARD_STATES[row["state"]]
            self.measured[key] = self.measured.get(key, 0) + row["ms"] / 1000

    def uuids(self):
        return [f"GPU-{i}" for i in range(self.setting.cards)]

    def true(self, uuid, state):
        return sum(slot.cards[uuid].get(state, 0) for slot in self.truth)

    def error_in(self, uuid, k, state):
        true, measured = self.truth[k].cards[uuid].get(state, 0), self.measured.get((uuid, k, state), 0)
        seen = sum(self.measured.get((uuid, k, one), 0) for one in CARD_STATES if one != "unobserved")
        unseen = max(0, sum(self.truth[k].cards[uuid].values()) - seen)
        if measured > true:
            return measured - true
        return min(0, measured + unseen - true)

    def error(self, uuid, state="idle_held"):
        return sum(self.error_in(uuid, k, state) for k in range(len(self.truth)))

    def whole(self, uuid):
        """The numbers of the slots that were observed as a whole."""
        seen = [sum(self.measured.get((uuid, k, one), 0) for one in CARD_STATES if one != "unobserved")
                for k in range(len(self.truth))]
        return [k for k, slot in enumerate(self.truth) if abs(sum(slot.cards[uuid].values()) - seen[k]) < 0.05]

    def in_whole_slots(self, uuid):
        numbers = self.whole(uuid)
        true, measured = (sum(of(k) for k in numbers) for of in (
            lambda k: self.truth[k].cards[uuid].get("idle_held", 0),
            lambda k: self.measured.get((uuid, k, "idle_held"), 0)))
        slots = {self.first + k * SLOT_S for k in numbers}
        return Figure(f"{WHOLE}: {uuid}", true, measured, self.store.stated(uuid, slots))

    def unseen(self):
        seen = sum(s for (_, _, state), s in self.measured.items() if state != "unobserved")
        return sum(sum(slot.cards[uuid].values()) for slot in self.truth for uuid in self.uuids()) - seen

    def energy(self):
        """Joules of idle-held time, as far as its energy is known."""
        known = self.store.of_cards("idle_held") - self.store.of_cards("idle_held", "energy_unknown_ms")
        true = self.setting.held_watts * known / 1000
        return Figure("idle-held energy (J)", true, self.store.of_cards("idle_held", "energy_mj") / 1000, 0.03 * true)

    def figures(self):
        for state in ("active", "idle_held", "truly_idle"):
            true, error = (sum(of(uuid, state) for uuid in self.uuids()) for of in (self.true, self.error))
            yield Figure(state, true, true + error)
        yield Figure("unobserved", 0, self.unseen())
        yield self.energy()
        for uuid in self.uuids():
            true = self.true(uuid, "idle_held")
            yield Figure(f"{CARD}: {uuid}", true, true + self.error(uuid), self.store.stated(uuid))
            yield self.in_whole_slots(uuid)


def judge_slots(db, lives, driver, setting, start, seconds):
    """Figures whose goal is what the store states have the kind CARD or WHOLE."""
    return list(SlotJudge(Store(db), lives, driver, setting, start, seconds).figures())


def judge(db, lives, driver, start, played, goals):
    return Judge(Store(db), lives, driver, start, played, goals).figures()


def table(figures):
    """For people: figure, true, measured, error and goal in seconds, whether it is met."""
    lines = [f"{'figure':34}{'true':>10}{'measured':>10}{'error':>9}{'goal':>8}  ok"]
    for figure in figures:
        goal = "-" if figure.goal is None else f"{figure.goal:.1f}"
        ok = "-" if figure.goal is None else "yes" if figure.ok else "NO"
        lines.append(f"{figure.name:34}{figure.true:10.1f}{figure.measured:10.1f}{figure.error:+9.1f}{goal:>8}  {ok}")
    return "\n".join(lines)

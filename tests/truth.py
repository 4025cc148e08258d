"""The truth of a scenario, computed from its text alone: who held what, what every card did, to the
microsecond. Shares no code with the engine in C; the language and what is true in it are in
gua-scenario(5), the states in gua(1).

    truth = Scenario(path.read_text()).truth(since=0, until=3600)
    truth.cards["GPU-0"]["idle_held"]      seconds of that card in that state
    truth.users["alice"]["idle_held"]      presence: once per card and moment
    truth.processes["train"]["idle_held"]  its own state, on all cards together
    truth.energy_mj["GPU-0"]["idle_held"]  what the card used in that state
    Scenario(text).spells([(0, 3600)])     the spells that somebody saw who looked then

With `lists` the holders are those that process lists read at these times show.

Faults of single calls (fail, slow, hang) are not played: they change what a program can see, not
what is true. Times are seconds outside and whole microseconds inside.
"""
import bisect
import datetime
import re
from dataclasses import dataclass, field

UNITS_US = {"ms": 10**3, "s": 10**6, "m": 60 * 10**6, "min": 60 * 10**6, "h": 3600 * 10**6,
            "d": 86400 * 10**6, "w": 7 * 86400 * 10**6}
UNITS_BYTES = {"B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
UNITS_MW = {"mW": 1, "W": 1000}
CARD_STATES = ("active", "idle_held", "truly_idle", "unobserved")
HOLDER_STATES = ("active", "idle_held", "truly_idle", "squatting")


def quantity(text, units):
    number, unit = re.fullmatch(r"[+-]?([0-9.]+)([A-Za-z]*)", text).groups()
    value = int(round(float(number) * units[unit])) if unit else int(number)
    return -value if text.startswith("-") else value


def words_of(line):
    """Blanks separate, double quotes keep together, # at the start of a word begins a comment."""
    words = []
    for quoted, plain in re.findall(r'"((?:\\["\\]|[^"])*)"|(\S+)', line):
        if plain.startswith("#"):
            break
        words.append(plain or re.sub(r'\\(["\\])', r"\1", quoted))
    return words


def pairs(words):
    """["a", "1", "b", "2"] -> {"a": "1", "b": "2"}"""
    return dict(zip(words[::2], words[1::2]))


@dataclass
class Card:
    key: tuple              # ("card", 0) or ("mig", 0, 2)
    uuid: str
    idle_mw: int
    max_mw: int
    held_mw: int = 0        # with processes that do nothing
    divided: bool = False   # has MIG instances


@dataclass
class Process:
    name: str
    user: str
    kind: str


@dataclass
class Event:
    at: int
    order: int
    verb: str
    words: list             # what follows the verb


@dataclass
class Spell:
    """A stretch in which a process held a card idle; microseconds of the scenario."""
    process: str
    uuid: str
    begin: int
    end: int                # the last moment at which it was seen idle
    idle_held: int = 0
    squatting: int = 0
    how: str = ""           # active, released, exited; "": it goes on

    @property
    def idle(self):
        return self.idle_held + self.squatting

    @property
    def unobserved(self):
        return self.end - self.begin - self.idle


@dataclass
class Truth:
    cards: dict = field(default_factory=dict)      # uuid -> state -> seconds
    users: dict = field(default_factory=dict)      # user -> state -> seconds of presence
    processes: dict = field(default_factory=dict)  # name -> state -> seconds
    energy_mj: dict = field(default_factory=dict)  # uuid -> state -> millijoules

    def presence(self, user):
        return sum(self.users.get(user, {}).values())

    def add(self, uuid, states, s, mj):
        """Adds seconds of a card in (its state, its users' states, its processes' states)."""
        of_card, of_users, of_processes = states
        for sums, who, state, value in (
                (self.cards, uuid, of_card, s), (self.energy_mj, uuid, of_card, mj),
                *((self.users, user, state, s) for user, state in of_users.items()),
                *((self.processes, process, state, s) for process, state in of_processes.items())):
            sums.setdefault(who, {})
            sums[who][state] = sums[who].get(state, 0) + value


class Scenario:
    def __init__(self, text):
        self.cards, self.processes, self.events = {}, {}, []
        self.repeat, self.start = 0, None
        for line in text.split("\n"):
            words = words_of(line)
            reader = getattr(self, "read_" + words[0].replace("-", "_"), None) if words else None
            if reader:
                reader(words[1:])
        self.events.sort(key=lambda event: (event.at, event.order))

    # ---- the language ----

    def read_repeat(self, words):
        self.repeat = quantity(words[0], UNITS_US)

    def read_start(self, words):
        self.start = datetime.datetime.fromisoformat(words[0].replace("Z", "+00:00")).timestamp()

    def read_card(self, words):
        keys = pairs(words[1:])
        idle_mw = quantity(keys.get("idle-power", "60W"), UNITS_MW)
        self.cards["card", int(words[0])] = Card(
            ("card", int(words[0])), keys["uuid"], idle_mw, quantity(keys.get("max-power", "400W"), UNITS_MW),
            quantity(keys["held-power"], UNITS_MW) if "held-power" in keys else idle_mw)

    def read_mig(self, words):
        keys = pairs(words[1:])
        card = "mig", int(words[0]), int(keys["index"])
        self.cards[card] = Card(card, keys["uuid"], 0, 0)
        self.cards["card", card[1]].divided = True

    def read_process(self, words):
        keys = pairs([word for word in words[1:] if word not in ("dead", "env", "file")])
        self.processes[words[0]] = Process(words[0], keys.get("user", words[0]), keys.get("kind", "compute"))

    def read_at(self, words):
        self.add(quantity(words[0], UNITS_US), words[1], words[2:])

    def read_on(self, words):
        """on DAYS at TIME ...: DAYS as 0-4,7; each day has its own times."""
        for days in words[0].split(","):
            first, _, last = days.partition("-")
            for day in range(int(first), int(last or first) + 1):
                begin = day * UNITS_US["d"]
                rest = [f"{(begin + quantity(word, UNITS_US)) / 10**6}s" if before == "until" else word
                        for before, word in zip(words[3:], words[4:])]
                self.add(begin + quantity(words[2], UNITS_US), words[3], rest)

    def add(self, at, verb, words):
        if verb in ("lost", "vanish", "asleep") and "until" in words:
            until = words.index("until")
            self.add(at, verb, words[:until])
            self.add(quantity(words[until + 1], UNITS_US), "back-" + verb, words[:until])
            return
        self.events.append(Event(at, len(self.events), verb, words))
        if verb == "suspend":
            self.add(at + quantity(words[0], UNITS_US), "resume", [])

    # ---- the truth ----

    def timeline(self, until):
        """(time, event), round after round."""
        first = 0
        while True:
            for event in self.events:
                if first + event.at >= until:
                    return
                yield first + event.at, event
            if not self.repeat or not self.events:
                return
            first += self.repeat

    def stretches(self, until):
        """Yields (from, to, stage) for every stretch below `until` in which nothing changes: no event happens and
        no load turns on or off. Stage is how things are then."""
        stage, events, t = Stage(self), self.timeline(until), 0
        pending = next(events, None)
        while t < until:
            while pending and pending[0] <= t:
                stage.apply(*pending)
                pending = next(events, None)
            end = min([until, *stage.turns(t)] + ([pending[0]] if pending else []))
            yield t, end, stage
            t = end

    def holders_at(self, times, exits_until=0):
        """What process lists show at `times` (microseconds): [(time, {card: {process: bytes}})]. Until
        `exits_until` a process is dropped when it exits, as it is by a program that waits for it."""
        result, times, stage = [], sorted(times), Stage(self)
        events = self.timeline(max([exits_until, *(t + 1 for t in times)]))
        moments = [(t, 1, None) for t in times] + [(t, 0, event) for t, event in events]
        for t, _, event in sorted(moments, key=lambda moment: moment[:2]):
            if event is None:
                result.append((t, {card: dict(held) for card, held in stage.held.items()}))
                continue
            stage.apply(t, event)
            if event.verb == "exit" and t < exits_until and result:
                dropped = {card: {p: size for p, size in held.items() if p != event.words[0]}
                           for card, held in result[-1][1].items()}
                result.append((t, dropped))
        return result

    def changes(self, until):
        """All times below `until` at which somebody may begin or end to hold."""
        return sorted({t for t, event in self.timeline(until) if event.verb in ("hold", "release", "exit")})

    def truth(self, since, until, lists=None, active_pct=10, held_bytes=100 * 10**6, count_graphics=False,
              exits=False, grain=1, own_use=True):
        """The sums between two scenario times.
        Holders are those that truly were, or, with `lists`, those of the last list that was read at one
        of these times, less those that have ended since when `exits`. Moments are cut down to multiples
        of `grain` microseconds. Without `own_use` nobody can tell which process uses a card."""
        since, until = int(since * 10**6), int(until * 10**6)
        known = self.holders_at([int(t * 10**6) for t in lists] if lists is not None else self.changes(until),
                                until if exits else 0)
        known = [(t // grain * grain, held) for t, held in known]
        rules = Rules(active_pct, held_bytes, count_graphics, own_use, self.processes)
        units = [card for card in self.cards.values() if not card.divided]
        sums = {card.uuid: dict.fromkeys(CARD_STATES, 0) for card in units}
        energy = {card.uuid: dict.fromkeys(CARD_STATES, 0) for card in units}
        users, processes = {}, {}
        for begin, end, stage in self.stretches(until):
            begin, end = max(begin // grain * grain, since), min(end // grain * grain, until)
            if end <= begin:
                continue
            for card in units:
                use = stage.use(card.key, begin)
                power_mw = stage.power_mw(card, use) if card.key[0] == "card" and use is not None else 0
                for a, b, held in pieces(begin, end, known):
                    state, of_users, of_processes = rules.classify(card, use, held.get(card.key, {}))
                    sums[card.uuid][state] += b - a
                    energy[card.uuid][state] += power_mw * (b - a) / 10**6
                    add_states(users, of_users, b - a)
                    add_states(processes, of_processes, b - a)
        return Truth(seconds(sums), seconds(users), seconds(processes), energy)

    def stretches_of(self, card, until):
        """Yields (from, to, stage): nothing changes on the card in that time. For scenarios without load in turns."""
        here = {event.words[0] for event in self.events
                if event.verb == "hold" and Stage.card_in(event.words)[0] == card.key}
        stage, begin = Stage(self), 0
        for t, event in self.timeline(until):
            if event.words[:1] and event.words[0] not in here and event.verb in ("hold", "load", "release", "exit"):
                continue
            if t > begin:
                yield begin, t, stage
            stage.apply(t, event)
            begin = t
        if begin < until:
            yield begin, until, stage

    def slots(self, since, until, seconds_each, own_use=True):
        """The truth of each slot between two scenario times, from the definitions alone: no samples, no lists.
        [Truth]; the first slot begins at `since`. Energy is what the cards would use in each state if they never
        were in use: what a use adds belongs to the use, also while the card cools down."""
        rules = Rules(10, 100 * 10**6, False, own_use, self.processes)
        since, until, each = (int(value * 10**6) for value in (since, until, seconds_each))
        found = [Truth() for _ in range(-(-(until - since) // each))]
        for card in self.cards.values():
            for begin, end, stage in self.stretches_of(card, until):
                held = stage.held[card.key]
                states = rules.classify(card, stage.use(card.key, begin), held)
                level_mw = card.held_mw if held else card.idle_mw
                for k in range(max(0, begin - since) // each, -(-max(0, end - since) // each)):
                    s = (min(end, since + (k + 1) * each) - max(begin, since + k * each)) / 10**6
                    found[k].add(card.uuid, states, s, level_mw * s)
        return found

    def spells(self, watched, least=300, **rules):
        """The spells with at least that many seconds of idle time, in the order of their begins. `watched` are
        the times in which somebody looks, as (from, until) in seconds, in order, for all cards, or a dictionary
        of these by uuid. Nothing is seen of the time between: it ends no spell and is no idle time. With a third
        number, (from, until, listed), processes were first listed at that moment, and those that were there then
        count as the holders of the time before."""
        watched = watched if isinstance(watched, dict) else {card.uuid: watched for card in self.cards.values()}
        watched = {uuid: [tuple(int(t * 10**6) for t in times) for times in all] for uuid, all in watched.items()}
        until = max(times[1] for all in watched.values() for times in all)
        rules = Rules(rules.get("active_pct", 10), rules.get("held_bytes", 100 * 10**6),
                      rules.get("count_graphics", False), rules.get("own_use", True), self.processes)
        known, exits = self.holders_at(self.changes(until)), self.exits(until)
        open_now, found = {}, []
        for t, next_t, stage in self.stretches(until):
            for card in self.cards.values():
                use = stage.use(card.key, t)
                for begin, end, listed in [] if card.divided else overlaps(t, next_t, watched.get(card.uuid, [])):
                    for a, b, held in first_pieces(begin, end, known, listed):
                        state, _, states = rules.classify(card, use, held.get(card.key, {}))
                        if state != "unobserved":
                            seen = Seen(card.uuid, a, b, states, exits)
                            seen.go_on(open_now, found)
        found += open_now.values()
        return sorted((spell for spell in found if spell.idle >= least * 10**6), key=lambda spell: spell.begin)

    def exits(self, until):
        """When each process that exits does so: [(time, process)]."""
        return [(t, event.words[0]) for t, event in self.timeline(until) if event.verb == "exit"]


@dataclass
class Seen:
    """What was seen of the processes on a card in a short time."""
    uuid: str
    begin: int
    end: int
    states: dict            # process -> its own state
    exits: list

    def go_on(self, open_now, found):
        """Continues the open spells, {(uuid, process): Spell}, and moves those that end to `found`."""
        for key in [key for key in open_now if key[0] == self.uuid]:
            state = self.states.get(key[1])
            if state not in ("idle_held", "squatting"):
                spell = open_now.pop(key)
                spell.how = {"active": "active", "truly_idle": "released"}.get(state) or self.how_gone(spell)
                found.append(spell)
        for process, state in self.states.items():
            if state in ("idle_held", "squatting"):
                spell = open_now.setdefault((self.uuid, process), Spell(process, self.uuid, self.begin, self.begin))
                setattr(spell, state, getattr(spell, state) + self.end - self.begin)
                spell.end = self.end

    def how_gone(self, spell):
        gone = any(process == spell.process and spell.begin < t <= self.end for t, process in self.exits)
        return "exited" if gone else "released"


def overlaps(begin, end, times):
    """The parts of a stretch that are in one of `times`, and when that began to have lists."""
    for a, b, *listed in times:
        if max(a, begin) < min(b, end):
            yield max(a, begin), min(b, end), listed[0] if listed else a


def first_pieces(begin, end, known, listed):
    """As pieces(); what is before the first list has the holders of that list."""
    if begin < listed:
        at = bisect.bisect_right(known, listed, key=lambda entry: entry[0]) - 1
        yield begin, min(end, listed), known[at][1] if at >= 0 else {}
    if end > listed:
        yield from pieces(max(begin, listed), end, known)


def add_states(sums, states, us):
    """Adds a stretch to what each user or process has in its state."""
    for who, state in states.items():
        sums.setdefault(who, dict.fromkeys(HOLDER_STATES, 0))[state] += us


def seconds(sums):
    return {who: {state: us / 10**6 for state, us in states.items()} for who, states in sums.items()}


def pieces(begin, end, known):
    """Cuts a stretch where a list was read: (from, to, holders)."""
    at = bisect.bisect_right(known, begin, key=lambda entry: entry[0]) - 1
    while begin < end:
        held = known[at][1] if at >= 0 else {}
        cut = min(end, known[at + 1][0]) if at + 1 < len(known) else end
        if begin < cut:
            yield begin, cut, held
        begin, at = cut, at + 1


@dataclass
class Rules:
    """The states of gua(1) on their three levels: a card, a user on it, a process on it."""
    active_pct: float
    held_bytes: int
    count_graphics: bool
    own_use: bool
    processes: dict

    def idle(self, sizes):
        much = None in sizes or sum(sizes) > self.held_bytes
        return "idle_held" if much else "truly_idle"

    def holders(self, held):
        """What of a process list counts: {process: bytes or None}."""
        return {process: size for process, size in held.items()
                if self.processes[process].kind != "graphics" or self.count_graphics}

    def classify(self, card, use, held):
        """The card's state, each user's and each process's; `use` is {process or None: percent}, None
        where there is no sample."""
        if use is None or card.key[0] == "mig":
            return "unobserved", {}, {}
        held = self.holders(held)
        user_of = {process: self.processes[process].user for process in held}
        active = min(100, sum(use.values())) >= self.active_pct
        if not active or not self.own_use:
            state = "active" if active else self.idle(held.values())
            return state, dict.fromkeys(user_of.values(), state), dict.fromkeys(held, state)
        by_user = {}
        for process, pct in use.items():
            user = self.processes[process].user if process else None
            by_user[user] = by_user.get(user, 0) + pct
        return "active", {user: self.of_user(user, by_user) for user in user_of.values()}, \
            {process: self.of_process(process, size, use, by_user) for process, size in held.items()}

    def of_user(self, user, by_user):
        """The state of a user on an active card."""
        others = any(pct >= self.active_pct for other, pct in by_user.items() if other != user)
        return "squatting" if others and by_user.get(user, 0) < self.active_pct else "active"

    def of_process(self, process, size, use, by_user):
        """The state of a process on an active card: idle beside a busy one of the same user, else its user's."""
        user = self.processes[process].user
        idle = use.get(process, 0) < self.active_pct <= by_user.get(user, 0)
        return self.idle([size]) if idle else self.of_user(user, by_user)


class Stage:
    """How things are at one moment of the play."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.held = {card: {} for card in scenario.cards}    # card -> process -> bytes or None
        self.loads = {card: {} for card in scenario.cards}   # card -> process or None -> (pct, on, off, since)
        self.away = {}                                       # card number -> set of reasons
        self.suspended = False

    def apply(self, t, event):
        name = event.verb.replace("-", "_")
        getattr(self, "do_" + name, lambda *_: None)(t, event.words)

    @staticmethod
    def card_in(words):
        """The card that "card N" or "mig N/I" in `words` means, and what follows."""
        at = next(i for i, word in enumerate(words) if word in ("card", "mig"))
        return (words[at], *map(int, words[at + 1].split("/"))), words[at + 2:]

    def do_hold(self, t, words):
        card, rest = self.card_in(words)
        self.held[card][words[0]] = None if rest[1] == "unknown" else quantity(rest[1], UNITS_BYTES)

    def do_load(self, t, words):
        card, rest = self.card_in(words)
        keys = pairs(rest)
        who = None if words[0] in ("card", "mig") else words[0]
        turn = [quantity(keys[key], UNITS_US) if key in keys else 0 for key in ("on", "off")]
        self.loads[card][who] = (int(keys["sm" if who else "util"]), *turn, t)

    def do_release(self, t, words):
        card, _ = self.card_in(words)
        self.held[card].pop(words[0], None)
        self.loads[card].pop(words[0], None)

    def do_exit(self, t, words):
        for card in self.held:
            self.held[card].pop(words[0], None)
            self.loads[card].pop(words[0], None)

    # `lost` and `asleep` are one status: the later event counts. `vanish` is beside it.
    def do_lost(self, t, words):
        self.away.setdefault(int(words[1]), set()).add("status")

    def do_back_lost(self, t, words):
        self.away.setdefault(int(words[1]), set()).discard("status")

    do_asleep, do_back_asleep = do_lost, do_back_lost

    def do_vanish(self, t, words):
        self.away.setdefault(int(words[1]), set()).add("vanish")

    def do_back_vanish(self, t, words):
        self.away.setdefault(int(words[1]), set()).discard("vanish")

    def do_suspend(self, t, words):
        self.suspended = True

    def do_resume(self, t, words):
        self.suspended = False

    def use(self, card, t):
        """{process or None: percent above 0} at `t`; None: the card is away."""
        if self.suspended or self.away.get(card[1]):
            return None
        result = {}
        for who, (pct, on, off, since) in self.loads[card].items():
            if pct and (not on or (t - since) % (on + off) < on):
                result[who] = pct
        return result

    def turns(self, t):
        """When each load turns on or off next."""
        for loads in self.loads.values():
            for pct, on, off, since in loads.values():
                if pct and on:
                    at = (t - since) % (on + off)
                    yield t + (on if at < on else on + off) - at

    def power_mw(self, card, use):
        util = min(100, sum(use.values()))
        return card.idle_mw + (card.max_mw - card.idle_mw) * util // 100

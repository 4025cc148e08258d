"""Random lives of processes on cards, from a seed: when each starts, loads, computes with pauses, holds
idle, releases, exits or is killed. `scenario()` writes them for the fake driver, tests/player.py plays
them with real processes, tests/truth.py computes what is true.

    lives = make_lives(seed=1, seconds=3600, count=72)
    text = scenario(lives, DRIVERS["full"])

Times are whole milliseconds of the scenario.
"""
import json
import math
import os
import pwd
import random
from dataclasses import asdict, dataclass, field, replace

CARDS = 4
USERS = 5
FIRST_UID = 20001
QUIET_MS = 2000         # at the begin: recorders start
IDLE_WATTS = 50
MB, GIB = 10**6, 2**30


@dataclass
class Life:
    key: str
    user: int               # 0 to USERS - 1
    card: int
    start: int              # of the process; its memory comes later
    end: int                # of the process
    killed: bool            # by SIGKILL
    pid_of: str = ""        # an ended life whose pid it gets, "" for any
    events: list = field(default_factory=list)  # (time, verb, rest): hold, load and release


@dataclass
class Driver:
    """What a kind of driver reports."""
    name: str
    faults: tuple = ()      # calls that are not supported
    card_keys: str = ""
    memory: bool = True     # of processes
    own_use: bool = True    # which process uses the card
    samples: bool = True    # a ring of utilisation; else it is polled


@dataclass
class Setting:
    """The cards of a play."""
    cards: int = CARDS
    idle_watts: int = IDLE_WATTS    # without a process
    held_watts: int = IDLE_WATTS    # with processes that do nothing
    cool_ms: int = 0                # after use it draws more for this long


PLAIN = Setting()

DRIVERS = {driver.name: driver for driver in (
    Driver("full"),
    Driver("no-process-use", own_use=False,
           faults=("nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo")),
    Driver("no-samples", samples=False, faults=("nvmlDeviceGetSamples",)),
    Driver("no-process-memory", memory=False),
    Driver("no-energy-counter", card_keys="energy no"),
)}


def length(rng, low, high):
    """Milliseconds between two lengths in seconds, short ones as likely as long ones."""
    return round(1000 * math.exp(rng.uniform(math.log(low), math.log(high))))


def life_length(rng, longest):
    """Some live for a few seconds, some for less than a tick, some for long."""
    low, high = rng.choices([(1, 5), (5, 30), (30, longest)], [2, 4, 5])[0]
    return length(rng, low, max(low + 1, high))


def load_memory(rng, life):
    """Memory appears in one or two steps; a few processes hold less than what counts as held. Returns
    when it is there."""
    at = life.start + min(length(rng, 0.2, 3), (life.end - life.start) // 2)
    if rng.random() < 0.08:
        life.events.append((at, "hold", rng.randrange(40, 90) * MB))
        return at
    life.events.append((at, "hold", rng.randrange(300, 500) * MB))
    later = at + length(rng, 0.1, 2)
    if rng.random() < 0.6 and later < life.end - 500:
        life.events.append((later, "hold", rng.randrange(1, 12) * GIB))
        at = later
    return at


def compute(rng, life, begin, end, bursts):
    """Bursts and pauses between two times, at most this many bursts; use is clearly above what counts as
    active. The last burst may be cut off by the end."""
    at = begin + length(rng, 0.2, 5)
    while at < end and bursts > 0:
        life.events.append((at, "load", rng.randrange(15, 101)))
        at += length(rng, 0.5, 20)
        if at < end:
            life.events.append((at, "load", 0))
        at += length(rng, 0.5, 20)
        bursts -= 1


def live(rng, life):
    """Fills in what the process does between its start and its end."""
    begin = load_memory(rng, life)
    end = life.end
    if rng.random() < 0.2 and end - begin > 4000:
        end -= length(rng, 0.5, min(10, (end - begin) / 2000))
        life.events.append((end, "release", None))
    bursts = rng.choices([0, 1, 10**6], [3, 2, 6])[0]   # sits, works once, works
    compute(rng, life, begin, end, bursts)
    life.events.sort(key=lambda event: event[0])


def companion(rng, life, key, seconds):
    """A life on the card of another one, of the same user or of another."""
    user = life.user if rng.random() < 0.4 else rng.randrange(USERS)
    start = rng.randrange(life.start, max(life.start + 1, life.end))
    return Life(key, user, life.card, start, start + life_length(rng, seconds / 4), rng.random() < 0.3)


def stranger(rng, key, seconds):
    """A life on any card. Most are on the first cards; the last card often has none."""
    card = rng.choices(range(CARDS), range(CARDS + 1, 1, -1))[0]
    start = rng.randrange(QUIET_MS, max(QUIET_MS + 1, 1000 * seconds - 2000))
    return Life(key, rng.randrange(USERS), card, start, start + life_length(rng, seconds / 4),
                rng.random() < 0.3)


def reuse_pids(rng, lives):
    """Some processes get the pid of one that has ended."""
    taken = set()
    for life in sorted(lives, key=lambda life: life.start):
        ended = [other.key for other in lives if other.end + 300 <= life.start and other.key not in taken]
        if ended and rng.random() < 0.2:
            life.pid_of = rng.choice(ended)
            taken.add(life.pid_of)


def make_lives(seed, seconds, count):
    """As many lives as asked for, in a play of that length; the last ones may outlive it."""
    rng = random.Random(seed)
    lives = []
    for i in range(count):
        beside = lives and rng.random() < 0.35
        life = companion(rng, rng.choice(lives), f"p{i}", seconds) if beside else stranger(rng, f"p{i}", seconds)
        live(rng, life)
        lives.append(life)
    reuse_pids(rng, lives)
    return lives


def write_lives(lives, path):
    path.write_text(json.dumps([asdict(life) for life in lives]))


def read_lives(path):
    return [Life(**{**life, "events": [tuple(event) for event in life["events"]]})
            for life in json.loads(path.read_text())]


def as_played(lives, played):
    """The lives as the driver saw them: a process that the player started late holds nothing before that."""
    found = []
    for life in lives:
        known = round(played[life.key]["known_ms"]) if life.key in played else 0
        events = [(max(at, known), verb, value) for at, verb, value in life.events]
        found.append(replace(life, events=[event for event in events if event[0] < life.end]))
    return found


# ---- the scenario ----

def uid_of(user):
    """The uid of a user of the play: only root can start processes of several users."""
    return FIRST_UID + user if os.geteuid() == 0 else os.geteuid()


def name_of(user):
    """The name that gua shows for a user."""
    try:
        return pwd.getpwuid(uid_of(user)).pw_name
    except KeyError:
        return f"uid:{uid_of(user)}"


def events_of(life, driver):
    """(time, event) of one life in the scenario's language."""
    for at, verb, value in life.events:
        if verb == "hold":
            size = f"{value}B" if driver.memory else "unknown"
            yield at, f"hold {life.key} card {life.card} memory {size}"
        elif verb == "load":
            yield at, f"load {life.key} card {life.card} sm {value}"
        else:
            yield at, f"release {life.key} card {life.card}"
    yield life.end, f"exit {life.key}"


def memory_of_nobody(lives, setting):
    """A driver that does not know the memory of processes still knows how much of a card is used."""
    changes = []
    for life in lives:
        sizes = [(at, value or 0) for at, verb, value in life.events if verb in ("hold", "release")]
        changes += [(at, life.card, life.key, size) for at, size in [*sizes, (life.end, 0)]]
    used = [{} for _ in range(setting.cards)]
    for at, card, key, size in sorted(changes):
        used[card][key] = size
        yield at, f"orphan card {card} memory {sum(used[card].values())}B"


def pid_of(number):
    """A pid that no process of this host has: for a play in virtual time."""
    return 4190000 + number


def scenario(lives, driver, setting=PLAIN, real=True):
    """The scenario for the fake driver; with `real` processes the player writes their pids."""
    lines = [f'card {i} uuid GPU-{i} name "Card {i}" memory 80GiB idle-power {setting.idle_watts}W'
             f' held-power {setting.held_watts}W cool-down {setting.cool_ms}ms max-power 400W {driver.card_keys}'
             for i in range(setting.cards)]
    lines += [f"process {life.key} pid {f'file {life.key}' if real else pid_of(i)} user {name_of(life.user)}"
              f" uid {uid_of(life.user)}" for i, life in enumerate(lives)]
    lines += [f"at 0s fail {call} code 3" for call in driver.faults]
    events = [event for life in lives for event in events_of(life, driver)]
    if not driver.memory:
        events += memory_of_nobody(lives, setting)
    lines += [f"at {at}ms {event}" for at, event in sorted(events, key=lambda event: event[0])]
    return "\n".join(lines) + "\n"

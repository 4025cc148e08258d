"""Lives that are hard to record, from a seed: a card for each sort of trouble, and which card has which is
random. Played as those of tests/lives.py are.

    lives = nasty_lives(seed=1, seconds=1080)
    text = scenario(lives, DRIVERS["full"], NASTY)
"""
import random

from lives import GIB, MB, USERS, Life, Setting, compute, length

NASTY = Setting(cards=12, idle_watts=35, held_watts=60, cool_ms=1000)
SOON_MS = 60            # after a process started: the player may be late
SIZES = [150 * MB, 450 * MB, 2 * GIB, 7 * GIB]


class Cast:
    """Collects the lives of one card."""

    def __init__(self, rng, card, until):
        self.rng, self.card, self.until = rng, card, until
        self.lives = []

    def add(self, start, end, size, user=None):
        """A process that has its first memory soon after `start`; it was started some time before, as programs need
        time to load."""
        user = self.rng.randrange(USERS) if user is None else user
        begin = max(500, start - length(self.rng, 0.2, 2))
        life = Life(f"c{self.card}p{len(self.lives)}", user, self.card, begin, end, self.rng.random() < 0.3)
        life.events.append((start + SOON_MS, "hold", size))
        self.lives.append(life)
        return life

    def works(self, life, begin=None):
        """Bursts of use with pauses, until the life ends."""
        compute(self.rng, life, begin or life.events[0][0], life.end, 10**6)


    def works_once(self, life, part=1.0):
        """Use that begins some time after the memory is there, and may last until the process ends."""
        rng, begin = self.rng, life.events[0][0] + length(self.rng, 0.1, 1.5)
        end = begin + round(part * (life.end - begin))
        life.events.append((begin, "load", rng.randrange(15, 101)))
        if part < 1 or rng.random() < 0.5:
            life.events.append((max(begin + 50, end - length(rng, 0.1, 1)), "load", 0))


def bursts(cast, busy=0.3):
    """Lives of 0.3 to 8 s, several at a time, with quiet times between."""
    rng, at = cast.rng, 2000 + length(cast.rng, 0.5, 10)
    while at < cast.until:
        for _ in range(rng.randrange(2, 9)):
            start = at + rng.randrange(0, 6000)
            life = cast.add(start, start + SOON_MS + length(rng, 0.3, 8), rng.choice(SIZES))
            if rng.random() < busy:
                cast.works_once(life)
        at += length(rng, 8, 60)


def computing_bursts(cast):
    bursts(cast, 0.9)


def allocation(cast):
    """A process that takes memory and gives it back every 7 s; sometimes a small one stays beside it."""
    rng = cast.rng
    life = cast.add(2000, cast.until + 5000, 450 * MB)
    if rng.random() < 0.5:
        cast.add(2500, cast.until + 5000, 60 * MB)
    held = rng.randrange(1000, 6000)
    for at in range(rng.randrange(3000, 10000), cast.until, 7000):
        life.events += [(at, "release", None), (at + 7000 - held, "hold", rng.choice(SIZES))]


def swaps(cast):
    """One process ends when the next comes, with as much memory; at times there is a gap."""
    rng, at, size = cast.rng, 2000, rng_size(cast.rng)
    while at < cast.until:
        end = at + length(rng, 3, 45)
        life = cast.add(at, end, size)
        if rng.random() < 0.4:
            cast.works(life)
        at = end - SOON_MS + (rng.randrange(100, 900) if rng.random() < 0.3 else 0)


def working_in_turn(cast):
    """Two live processes of two users with as much memory each: they take turns with the work."""
    rng, size = cast.rng, rng_size(cast.rng)
    first = rng.randrange(USERS)
    pair = [cast.add(2000, cast.until + 5000, size, first),
            cast.add(2100, cast.until + 5000, size, (first + 1) % USERS)]
    at = 4000
    while at < cast.until:
        worker, end = rng.choice(pair), at + length(rng, 0.5, 30)
        worker.events += [(at, "load", rng.randrange(15, 101)), (end, "load", 0)]
        at = end + (length(rng, 0.1, 10) if rng.random() < 0.6 else 0)


def growth(cast):
    """Processes whose memory grows slowly, one after the other."""
    rng, at = cast.rng, 2000 + length(cast.rng, 0.5, 20)
    while at < cast.until:
        life = cast.add(at, at + length(rng, 20, 180), 40 * MB)
        size, when = 40 * MB, at + 1000
        while when < life.end:
            size += rng.randrange(1, 120) * MB
            life.events.append((when, "hold", size))
            when += length(rng, 0.4, 4)
        if rng.random() < 0.5:
            cast.works(life)
        at = life.end + length(rng, 0.3, 15)


def in_step(period):
    """Jobs that start every so many seconds, and hold for a part of that."""
    def play(cast):
        rng = cast.rng
        held, busy = rng.uniform(0.2, 0.7) * period, rng.random() < 0.5
        for at in range(rng.randrange(2000, 3000), cast.until, 1000 * period):
            life = cast.add(at, at + SOON_MS + round(1000 * held), 2 * GIB)
            if busy:
                cast.works_once(life, 0.4)
    return play


def flicker(cast):
    """One process that holds the card and uses it for moments."""
    rng = cast.rng
    life = cast.add(2000, cast.until + 5000, 2 * GIB)
    at = 4000
    while at < cast.until:
        end = at + length(rng, 0.05, 3)
        life.events += [(at, "load", rng.randrange(15, 101)), (end, "load", 0)]
        at = end + length(rng, 0.2, 12)


def quiet(cast):
    """A process that holds and never works, for most of the time."""
    cast.add(2000 + length(cast.rng, 0.5, 20), cast.until - length(cast.rng, 0.5, 20), GIB)


def rng_size(rng):
    return rng.choice(SIZES[1:])


SORTS = [bursts, bursts, computing_bursts, allocation, allocation, swaps, working_in_turn, growth, in_step(5),
         in_step(30), flicker, quiet]


def nasty_lives(seed, seconds):
    rng = random.Random(seed)
    sorts = SORTS[:]
    rng.shuffle(sorts)
    lives = []
    for card, sort in enumerate(sorts):
        cast = Cast(rng, card, 1000 * seconds)
        sort(cast)
        lives += cast.lives
    for life in lives:
        life.events = sorted((event for event in life.events if event[0] < life.end), key=lambda event: event[0])
    return lives


def interruptions(seed, seconds):
    """When a recorder is stopped and goes on ("stop"), or is killed and started again ("kill"): (from, until,
    how) in seconds, in order."""
    rng, at, found = random.Random(f"{seed} interruptions"), 25.0, []
    while True:
        at += length(rng, 20, 90) / 1000
        how = rng.choice(["stop", "kill"])
        until = at + length(rng, 1.5, 25) / 1000
        if until + 15 > seconds:
            return found
        found.append((at, until, how))
        at = until

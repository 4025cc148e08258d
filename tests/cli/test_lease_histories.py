"""Random histories of leases, played to the recorder's watch and a store, against an oracle that knows only the
definitions: which state each millisecond of a card has, whose it is, and what the processes of a lease did."""
import random
import sqlite3
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction

from conftest import BUILD, cases

HISTORIES = cases(1000, sanitized=150)  # compaction needs a day of them: 144
START = 1794528000000  # a whole hour
SPACING = 600_000  # between the beginnings of two histories
DRAIN = 5000
CARDS = {"GPU-a": ["GPU-a"], "MIG-0": ["MIG-0", "GPU-b"], "MIG-1": ["MIG-1", "GPU-b"]}  # the names that mean the card
NAMES = ["GPU-a", "GPU-b", "MIG-0", "MIG-1"]
USERS = ["ann", "bob", "cem"]
STATES = ["active", "idle_held", "truly_idle", "unobserved", "use_unknown", "reserved"]
OWN = ["reserved_ms", "active_ms", "idle_held_ms", "use_unknown_ms", "untouched_ms", "unknown_ms"]


@dataclass
class Lease:
    """What counts of a lease: `spans` are (from, to, known)."""
    kind: str
    name: str
    owner: str
    cards: list
    since: int
    until: int = -1
    share: int = 1
    sluid: str = "-"  # of a Slurm job: how cgroups of its processes may be named
    seen: int = 0  # the drain that read it first
    spans: list = field(default_factory=list)
    open: int | None = None  # where the span that goes on begins
    known: bool = True
    loose: int = 0  # milliseconds by which its end may be off

    def close(self, at):
        if self.open is not None and at > self.open:
            self.spans.append((self.open, at, self.known))
        self.open = None


class History:
    """One history: a script for the player, and what is true of it."""

    def __init__(self, number, rng):
        self.rng, self.number = rng, number
        self.at = START + number * SPACING
        self.script, self.leases, self.now = [], [], []
        self.use = {card: [] for card in CARDS}  # (from, to, percent)
        self.processes = {card: [] for card in CARDS}
        self.pending = []  # use since the last tick: lost when the recorder is killed
        self.ids = 0
        self.last = number + 9 >= HISTORIES  # those whose processes are still in the store at the end
        self.sluids = "all" if self.last else rng.choice(["none", "cgroups", "all"])  # who says them: cgroups alone, or leases, too
        self.make()

    def say(self, *words):
        self.script.append(" ".join(str(word) for word in words))

    def make(self):
        self.say("alone")
        for place, card in enumerate(CARDS):
            for _ in range(self.rng.choice([0, 0, 1, 2])):
                name = f"slurm:{'s' if self.sluids != 'none' and self.rng.random() < 0.5 else ''}{self.number}.{self.rng.randrange(4)}"
                user, job = self.rng.choice(USERS), self.rng.choice([name] if self.last else ["-", name])
                pid, mem = 10 + len(self.script), self.rng.choice([50, 3000])
                self.processes[card].append((user, job, mem))
                self.say("process", place, pid, user, job, mem)
        self.begin()
        for i in range(self.rng.randrange(20, 36)):
            self.drain()
            if i % 6 == 5:
                self.tick()
            if self.rng.random() < 0.03:
                self.restart()
        self.tick()
        for lease in list(self.now):
            self.say("gone", lease.kind, lease.name)
            lease.close(self.at)
        self.say("stop")

    def begin(self):
        self.say("begin", self.at)
        for lease in self.now:  # the recorder finds what is there
            lease.open = max(lease.since, self.at)

    def tick(self):
        self.say("tick")
        for card, *stretch in self.pending:
            self.use[card].append(tuple(stretch))
        self.pending = []

    def restart(self):
        """The recorder ends, with or without a last tick. What it did not store was not seen."""
        if self.rng.random() < 0.5:
            self.tick()
            self.say("stop")
        else:
            self.say("kill")
        self.pending = []
        for lease in self.now:
            lease.close(self.at)
        self.at += DRAIN * self.rng.randrange(1, 5)
        for lease in list(self.now):
            if self.rng.random() < 0.2 or 0 <= lease.until <= self.at:
                self.drop(lease)
            elif not lease.known:
                self.tell(lease, True)
        self.begin()

    def drain(self):
        """Between two readings: leases begin, end, get lost and come back; then the recorder accounts the time."""
        before, self.at = self.at, self.at + DRAIN
        there = list(self.now)
        while self.rng.random() < 0.15 and len(self.now) < 8:
            self.add(before)
        for lease in there:
            chance = self.rng.random()
            if lease.until >= 0 and lease.until <= self.at or lease.until < 0 and chance < 0.04:
                self.end(lease, before)
            elif chance < 0.06:  # silent: since a moment ago, or for longer
                self.lose(lease, before, self.rng.choice([self.rng.randrange(before + 1, self.at), before - 7000]))
            elif not lease.known and chance < 0.5:
                self.heal(lease, before)
            elif chance < 0.09:
                self.requeue(lease, before)
        percents = [self.rng.choice([0, 0, 0, 60]) for _ in CARDS]
        self.say("drain", self.at, *percents)
        for card, percent in zip(CARDS, percents):
            self.pending.append((card, before, self.at, percent))

    def tell(self, lease, known, unknown=-1):
        lease.known = known
        self.say("lease", lease.kind, lease.name, lease.owner, lease.since, lease.until, unknown, ",".join(lease.cards),
                 lease.share, lease.sluid)

    def add(self, before):
        """Time that was accounted before a lease was said stays as it is: one that is older counts from then on."""
        since = self.rng.choice([self.rng.randrange(before, self.at), self.rng.randrange(before, self.at), before - 123456,
                                 self.at + 7000])
        self.ids += 1
        kind = self.rng.choice(["slurm", "slurm", "pod", "pick"])
        name = f"{self.number}.{self.ids}" if kind != "pod" else f"ns/{self.number}.{self.ids}"
        lease = Lease(kind, name, self.rng.choice(USERS), self.rng.sample(NAMES, self.rng.choice([1, 1, 2])), since)
        lease.share = self.rng.choice([1, 1, 1, 2, 4, 0])  # a part of a card reserves it like a whole one
        if kind == "slurm" and self.sluids == "all":
            lease.sluid = f"s{name}"
        if self.rng.random() < 0.2:
            lease.until = max(since, self.at) + self.rng.randrange(1, 60_000)
        lease.open = max(since, before)
        lease.seen = self.at
        self.leases.append(lease)
        self.now.append(lease)
        self.tell(lease, True)

    def drop(self, lease):
        self.now.remove(lease)
        self.say("gone", lease.kind, lease.name)

    def end(self, lease, before):
        """At its limit, or without a word: then a reader of files knows the drain, and the middle is its best guess."""
        if lease.until >= 0:
            lease.close(max(lease.until, before))
        elif self.rng.random() < 0.7:
            lease.close(before + DRAIN // 2)
        else:
            lease.close(self.rng.randrange(before + 1, self.at))
            lease.loose += DRAIN // 2
        self.drop(lease)

    def lose(self, lease, before, since):
        if lease.known:
            lease.close(max(since, before))
            lease.open = max(since, before, lease.since)
            self.tell(lease, False, since)

    def heal(self, lease, before):
        lease.close(before)
        lease.open = max(before, lease.since)
        self.tell(lease, True)

    def requeue(self, lease, before):
        """The same number begins again: another lease."""
        if lease.until >= 0 or lease.since >= before or lease.kind == "pick" or lease.sluid != "-":  # a pid is a pick once
            return
        since = self.rng.randrange(before + 1, self.at)
        lease.close(since)
        self.now.remove(lease)
        again = Lease(lease.kind, lease.name, lease.owner, lease.cards, since, open=since, seen=self.at)
        self.leases.append(again)
        self.now.append(again)
        self.tell(again, True)


def is_used(lease, process):
    """Whether the process is of the lease's job or, where its job is not known, of its owner. A SLUID says
    nothing about a lease whose own is not known."""
    user, job, _ = process
    if lease.kind == "slurm" and job != "-" and not (job.startswith("slurm:s") and lease.sluid == "-"):
        return job in (f"slurm:{lease.name}", f"slurm:{lease.sluid}")
    return user == lease.owner


def counting(leases):
    """Those of a moment that count: a scheduler's lease hides its owner's pick. A namespace is not a user."""
    return [lease for lease in leases if lease.kind != "pick" or
            not any(other.owner == lease.owner and other.kind == "slurm" for other in leases)]


def truth(history):
    """Sums of the cards by state, and of the leases by card."""
    cards = {card: dict.fromkeys(STATES, 0) for card in CARDS}
    own = {(number, card): dict.fromkeys(OWN, Fraction(0)) for number in range(len(history.leases)) for card in CARDS}
    for card, stretches in history.use.items():
        spans = [(number, lease, *span) for number, lease in enumerate(history.leases)
                 if set(lease.cards) & set(CARDS[card]) for span in lease.spans]
        held = sum(mem for _, _, mem in history.processes[card])
        for begin, end, percent in stretches:
            cuts = sorted({begin, end, *(at for span in spans for at in span[2:4] if begin < at < end)})
            for a, b in zip(cuts, cuts[1:]):
                here = [span for span in spans if span[2] <= a < span[3]]
                sure = [(number, lease) for number, lease, _, _, known in here if known]
                maybe = [(number, lease) for number, lease, _, _, known in here if not known]
                judge(cards[card], own, card, b - a, percent, held, history.processes[card], sure, maybe)
    return cards, own


def judge(sums, own, card, ms, percent, held, processes, sure, maybe):
    free = percent < 10 and held <= 100
    state = "active" if percent >= 10 else "idle_held" if held > 100 else "reserved" if sure else "truly_idle"
    sums[state] += ms
    for which, column in ((sure, "reserved_ms"), (maybe if not sure else [], "unknown_ms")):
        which = [(number, lease) for number, lease in which if lease in counting([lease for _, lease in which])]
        owners = {(lease.owner, lease.kind == "pod") for _, lease in which}
        for number, lease in which:
            same = sum((other.owner, other.kind == "pod") == (lease.owner, lease.kind == "pod") for _, other in which)
            if free:
                own[number, card][column] += Fraction(ms, len(owners) * same)
            if column == "reserved_ms":
                used = any(is_used(lease, process) for process in processes) and not free
                own[number, card][f"{state}_ms" if used else "untouched_ms"] += ms


def stored(db, history):
    """The same sums from the store."""
    first = START // 1000 + history.number * SPACING // 1000
    window = f"slot >= {first} AND slot < {first + SPACING // 1000}"
    cards = {card: dict.fromkeys(STATES, 0) for card in CARDS}
    for uuid, state, ms in db.execute(f"SELECT uuid, state, sum(ms) FROM usage_1m JOIN gpu ON gpu.id = gpu WHERE {window} GROUP BY 1, 2"):
        cards[uuid][STATES[state]] = ms
    return cards


def test_random_histories(tmp_path):
    rng = random.Random(28)
    histories = [History(number, rng) for number in range(HISTORIES)]
    path = tmp_path / "gua.db"
    script = "\n".join(line for history in histories for line in history.script) + "\n"
    done = subprocess.run([BUILD / "tests" / "lease_play", path], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(path)
    rows = {}
    for table in ("reserved_1m", "leased_1d"):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")][3:]
        for lease, uuid, *sums in db.execute(f"SELECT lease, uuid, {', '.join(f'sum({column})' for column in columns)} FROM {table} "
                                             "JOIN gpu ON gpu.id = gpu GROUP BY 1, 2"):
            rows.setdefault((lease, uuid), {}).update(zip(columns, sums))
    leases = {}
    for row, kind, name, since, ended in db.execute("SELECT id, kind, name, since_ms, ended_ms FROM lease ORDER BY id"):
        leases.setdefault((("slurm", "pod", "pick")[kind], name, since), []).append((row, ended))
    checked = dict.fromkeys(STATES + OWN, 0)
    for history in histories:
        check(history, stored(db, history), rows, leases, checked)
    # Nothing was proved if a kind of time never occurred.
    assert all(ms > 100 * HISTORIES for name, ms in checked.items() if name not in ("unobserved", "use_unknown", "use_unknown_ms")), checked
    said = {(lease.kind, lease.name, lease.since): lease.share for history in histories for lease in history.leases}
    stored_shares = {(("slurm", "pod", "pick")[kind], name, since): share for kind, name, since, share in db.execute(
        "SELECT kind, name, since_ms, share FROM lease")}
    assert stored_shares.items() <= said.items() and len(set(stored_shares.values())) == 4
    # A job that only its SLUID named has its number where a lease said which.
    jobs = {job.removeprefix("slurm:") for job, in db.execute("SELECT job FROM process WHERE job IS NOT NULL")}
    renamed = {name for history in histories[-9:] for name in (lease.sluid for lease in history.leases)}
    assert any(f"s{job}" in renamed for job in jobs) and any(job.startswith("s") for job in jobs) and not jobs & renamed, (jobs, renamed)
    whole = db.execute("SELECT owner, sum(reserved_ms) FROM reserved_1m JOIN lease ON lease.id = lease GROUP BY 1").fetchall()
    assert whole == db.execute("SELECT user, share_ms FROM total_user WHERE state = 5 ORDER BY user").fetchall()
    assert sum(ms for _, ms in whole) == db.execute("SELECT sum(ms) FROM usage WHERE state = 5").fetchone()[0]
    compacted(path, db, histories)


def check(history, cards, rows, leases, checked):
    expected, own = truth(history)
    changes = 2 * len(history.leases) + len(history.script) // 10
    for card in CARDS:
        loose = sum(lease.loose for lease in history.leases if set(lease.cards) & set(CARDS[card]))
        for state in STATES[:3] + ["reserved"]:
            assert abs(cards[card][state] - expected[card][state]) <= loose, (history.number, card, state)
            checked[state] += expected[card][state]
        found = dict.fromkeys(OWN, 0)
        for number, lease in enumerate(history.leases):
            found_rows = leases.get((lease.kind, lease.name, lease.since), [])  # none: never stored
            for column in OWN:
                ms = sum(rows.get((row, card), {}).get(column, 0) for row, _ in found_rows)
                found[column] += ms
                exact = column not in ("reserved_ms", "unknown_ms")
                assert abs(ms - own[number, card][column]) <= loose + (0 if exact else changes), \
                    (history.number, card, lease, column, ms, float(own[number, card][column]))
                checked[column] += float(own[number, card][column])
        assert found["reserved_ms"] == cards[card]["reserved"], history.number  # parts add up exactly


def compacted(path, db, histories):
    """Slots become coarser, and no millisecond of a lease is lost."""
    sums = "SELECT lease, gpu, sum(reserved_ms), sum(unknown_ms) FROM (SELECT * FROM reserved_1m UNION ALL SELECT * FROM reserved_5m " \
        "UNION ALL SELECT * FROM reserved_1h) GROUP BY 1, 2 ORDER BY 1, 2"
    before = db.execute(sums).fetchall()
    db.close()
    end = START + len(histories) * SPACING
    script = f"begin {end}\ncompact {end + 7 * 3600_000}\nstop\n"
    subprocess.run([BUILD / "tests" / "lease_play", path], input=script, text=True, check=True)
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM reserved_5m").fetchone()[0] > 0
    assert db.execute(sums).fetchall() == before
    db.close()

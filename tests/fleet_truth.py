"""A fleet whose truth is known: hosts with cards that change state by a fixed cycle, users, and trouble. It writes what
gua would expose at each scrape, for a back-fill of an engine, and says what a report of a window must find."""
import bisect
import math

STATES = ("active", "idle_held", "truly_idle")
TICK = 30
HOLD = 150  # a newborn identity is exposed as 0 for this long


class Cycle:
    """States that repeat: [(state, seconds), ...]."""

    def __init__(self, *parts, shift=0.0):
        self.parts = parts
        self.period = sum(seconds for _, seconds in parts)
        self.shift = shift

    def until(self, state, t):
        """Seconds in the state from time 0 to t."""
        whole, rest = divmod(t + self.shift, self.period)
        total = whole * sum(s for name, s in self.parts if name == state)
        for name, seconds in self.parts:
            part = min(rest, seconds)
            total += part if name == state else 0
            rest -= part
        return total

    def between(self, state, a, b):
        return self.until(state, b) - self.until(state, a) if b > a else 0


class Host:
    """`runs`: when the recorder ran. `scraped`: when the engine could reach it. `lost`: when its store was lost, a moment or a list.
    `users`: (name, card, from, to): who held a card."""

    def __init__(self, name, cards, runs, scraped, lost=None, users=(), phase=0.0, version="0.1.0", tick=TICK,
                 model="NVIDIA A100"):
        self.model = model
        self.name, self.cards, self.runs, self.scraped = name, cards, runs, scraped
        self.losses = [] if lost is None else lost if isinstance(lost, list) else [lost]
        self.users, self.phase, self.version, self.tick = users, phase, version, tick

    def uuid(self, card):
        return f"GPU-{self.name}-{card}"

    def accounted(self, card, state, a, b):
        """What the recorder accounted between two moments."""
        cycle = self.cards[card]
        return sum(cycle.between(state, max(a, x), min(b, y)) for x, y in self.runs)

    def of_user(self, index, state, a, b):
        _, card, since, until = self.users[index]
        return self.accounted(card, state, max(a, since), min(b, until))

    def ticked(self, t):
        """The last tick up to t; None: none yet."""
        last = None
        for x, y in self.runs:
            if t >= x:
                last = min(y, x + math.floor((min(t, y) - x) / self.tick) * self.tick) if t < y else y
        return last

    def scrapes(self, interval):
        """Moments of scrapes that succeed."""
        for x, y in self.scraped:
            first = math.ceil((x - self.phase) / interval) * interval + self.phase
            t = first
            while t < y:
                if any(a <= t < b for a, b in self.runs):
                    yield t
                t += interval

    def page(self, t):
        """(family, labels, value) at time t."""
        tick = self.ticked(t)
        base = max([moment for moment in self.losses if tick >= moment], default=-math.inf)
        first = max(base, self.runs[0][0])
        yield "gua_sample_timestamp_seconds", {}, tick
        yield "gua_gpus", {}, len(self.cards)
        yield "gua_build_info", {"version": self.version}, 1
        for card in range(len(self.cards)):
            labels = {"gpu": str(card), "uuid": self.uuid(card)}
            yield "gua_gpu_info", {**labels, "model": self.model, "driver_version": "550.1"}, 1
            for state in STATES:
                value = self.accounted(card, state, first, tick)
                yield "gua_gpu_state_seconds_total", {**labels, "state": state}, round(value)
        sums = {}
        for index, (name, _, since, _) in enumerate(self.users):
            if tick < since or (base > since and self.users[index][3] <= base):
                continue
            born = max(since, first)
            for state in ("active", "idle_held"):
                value = self.of_user(index, state, first, tick)
                entry = sums.setdefault((name, state), [born, 0])
                entry[0] = min(entry[0], born)
                entry[1] += value
        for (name, state), (born, value) in sums.items():
            held = 0 if t < born + HOLD and born > self.runs[0][0] else round(value)
            yield "gua_identity_gpu_seconds_total", {"identity": name, "state": state}, held


def label_text(labels):
    def escape(text):
        return str(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return "{" + ",".join(f'{key}="{escape(value)}"' for key, value in labels.items()) + "}"


def samples(hosts, interval, job="gua"):
    """All samples: {family: {labels: [(time, value)]}}."""
    families = {}
    for host in hosts:
        target = {"instance": host.name if ":" in host.name else f"{host.name}:9400", "job": job}
        for t in host.scrapes(interval):
            for family, labels, value in host.page(t):
                key = label_text({**labels, **target})
                families.setdefault(family, {}).setdefault(key, []).append((t, value))
    return families


def openmetrics(families):
    """For promtool tsdb create-blocks-from openmetrics."""
    lines = []
    for family, series in sorted(families.items()):
        counter = family.endswith("_total")
        lines.append(f"# TYPE {family[:-6] if counter else family} {'counter' if counter else 'gauge'}")
        for key, values in series.items():
            lines += [f"{family}{key} {value} {t}" for t, value in values]
    return "\n".join(lines) + "\n# EOF\n"


def import_text(families):
    """For /api/v1/import/prometheus of VictoriaMetrics."""
    return "".join(f"{family}{key} {value} {int(t * 1000)}\n" for family, series in families.items()
                   for key, values in series.items() for t, value in values)


def truth(hosts, a, b):
    """GPU-seconds by state that the recorders accounted."""
    return {state: sum(host.accounted(card, state, a, b) for host in hosts for card in range(len(host.cards)))
            for state in STATES}


def users_truth(hosts, a, b):
    """{name: {state: GPU-seconds}}"""
    sums = {}
    for host in hosts:
        for index, (name, *_) in enumerate(host.users):
            entry = sums.setdefault(name, {"active": 0, "idle_held": 0})
            for state in entry:
                entry[state] += host.of_user(index, state, a, b)
    return sums


def seen(host, interval, a, b):
    """The stretches of time in a..b that an engine can know of: nothing from before the first scrape of a host with a
    history, and nothing that no scrape showed before the host went or its store was lost."""
    ticks = [host.ticked(t) for t in host.scrapes(interval)]
    if not ticks:
        return []
    born = host.runs[0][0]
    start = born if ticks[0] - born <= HOLD and born > a else ticks[0]
    stretches = []
    for lost in host.losses:
        stretches.append((start, ticks[bisect.bisect_right(ticks, lost - 1e-6) - 1]))
        start = lost
    stretches.append((start, ticks[-1]))
    return [(max(a, x), min(b, y)) for x, y in stretches if min(b, y) > max(a, x)]


def seen_truth(hosts, interval, a, b):
    """GPU-seconds by state that a report over an engine must find."""
    sums = dict.fromkeys(STATES, 0)
    for host in hosts:
        for x, y in seen(host, interval, a, b):
            for state, value in truth([host], x, y).items():
                sums[state] += value
    return sums

"""A fleet that another exporter watches: what cards do second by second, what a scrape of them shows, and what an audit of
these samples must find, worked out from the definitions alone."""
import bisect
import collections
import json
import random
import re
import urllib.parse

STATES = ("active", "idle_held", "reserved", "truly_idle", "use_unknown")
MIB = 1 << 20


class Card:
    """`spans`: [(until, use in percent, memory in MiB, pod or None)], one after the other."""

    def __init__(self, host, index, spans, model="NVIDIA A100"):
        self.host, self.index, self.spans, self.model = host, index, spans, model
        self.uuid = f"GPU-{host}-{index:04d}-aaaa"
        self.scrapes = []  # moments
        self.ends = [span[0] for span in spans]

    def at(self, t):
        number = bisect.bisect_right(self.ends, t)
        return self.spans[number][1:] if number < len(self.spans) else (0, 0, None)


def state_of(use, mem_bytes, leased):
    if use is not None and use >= 10:
        return "active"
    if mem_bytes > 100e6:
        return "use_unknown" if use is None else "idle_held"
    return "reserved" if leased else "truly_idle"


def true_seconds(card, since, until):
    """What the card really did."""
    total, at = collections.Counter(), since
    for end, use, mem, pod in card.spans:
        stop = min(end, until)
        if stop > at:
            total[state_of(use, mem * MIB, pod is not None)] += stop - at
            at = stop
    return total


def judged_seconds(card, interval, since, until):
    """What an audit of its samples must find: (state, pod) -> seconds."""
    total, before = collections.Counter(), None
    for t in sorted(set(card.scrapes)):
        use, mem, pod = card.at(t)
        if before is not None and t - before <= 2.1 * interval:
            length = min(t, until) - max(before, since)
            if length > 0:
                total[state_of(use, mem * MIB, pod is not None), pod] += length
        before = t
    return total


def dcgm(card, t, renamed=False, replica=None):
    """The series that dcgm-exporter shows at a moment."""
    use, mem, pod = card.at(t)
    labels = {"instance": "10.0.0.1:9400", "gpu": str(card.index), "UUID": card.uuid, "modelName": card.model,
              "hostname" if renamed else "Hostname": card.host}
    if pod:
        labels |= {"exported_pod": pod.split("/")[1], "exported_namespace": pod.split("/")[0], "exported_container": "main",
                   "pod": "nvidia-dcgm-exporter-x7", "namespace": "gpu-operator"}
    if replica:
        labels["replica"] = replica
    yield "DCGM_FI_DEV_GPU_UTIL_RATIO" if renamed else "DCGM_FI_DEV_GPU_UTIL", labels, use
    yield "DCGM_FI_DEV_FB_USED", labels, mem
    yield "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, int(100_000 * (t % 10_000_000))


class Samples:
    """{(name, labels): [(t, value)]}."""

    def __init__(self):
        self.series = collections.defaultdict(list)

    def add(self, t, lines):
        for name, labels, value in lines:
            self.series[name, tuple(sorted(labels.items()))].append((t, value))

    def import_text(self):
        """For VictoriaMetrics."""
        return "".join(f"{name}{{{','.join(f'{k}={json.dumps(v)}' for k, v in labels)}}} {value} {round(1000 * t)}\n"
                       for (name, labels), values in self.series.items() for t, value in values)

    def openmetrics(self):
        """For a back-fill of Prometheus."""
        lines, begun = [], set()
        for (name, labels), values in sorted(self.series.items()):
            if name not in begun:
                lines.append(f"# TYPE {name} gauge")
                begun.add(name)
            lines += [f"{name}{{{','.join(f'{k}={json.dumps(v)}' for k, v in labels)}}} {value} {t:.3f}" for t, value in values]
        return "\n".join(lines + ["# EOF", ""])

    def answer(self, form):
        """What an engine answers to the queries for raw samples."""
        form = dict(urllib.parse.parse_qsl(form))
        query, at = form.get("query", ""), float(form.get("time", 0))
        names = re.search(r'__name__=~?"([^"]*)"', query)
        length = re.search(r"\[(\d+)s\]", query)
        if not names or not length:
            return {"status": "success", "data": {"resultType": "vector", "result": []}}
        found = [(dict(labels) | {"__name__": name}, [(t, v) for t, v in values if at - int(length[1]) < t <= at])
                 for (name, labels), values in self.series.items() if re.fullmatch(names[1], name)]
        found = [(labels, values) for labels, values in found if values]
        if query.startswith("max by (") and "count_over_time" in query:
            most = collections.Counter()
            for labels, values in found:
                key = tuple((name, labels[name]) for name in query[8:query.index(")")].split(",") if name in labels)
                most[key] = max(most[key], len(values))
            result = [{"metric": dict(key), "value": [at, str(n)]} for key, n in most.items()]
            return {"status": "success", "data": {"resultType": "vector", "result": result}}
        if query.startswith("count("):
            result = [{"metric": {}, "value": [at, str(len(found))]}] if found else []
            return {"status": "success", "data": {"resultType": "vector", "result": result}}
        if query.startswith("last_over_time"):
            result = [{"metric": labels, "value": [at, str(values[-1][1])]} for labels, values in found]
            return {"status": "success", "data": {"resultType": "vector", "result": result}}
        return {"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": labels, "values": [[t, str(v)] for t, v in values]} for labels, values in found]}}


def random_card(rng, host, index, since, until, shortest=20, longest=4000):
    """Bursts of use, memory that is held, and pods that come and go."""
    spans, t, pod = [], since, None
    while t < until:
        pod = rng.choice([None, f"team-{rng.randrange(3)}/job-{rng.randrange(4)}", pod])
        stop = t + rng.uniform(600, 9000)
        mem = rng.choice([0, 3, 80, 600, 20000])
        while t < stop:
            t += rng.uniform(shortest, longest)
            spans.append((t, rng.choice([0, 4, 9, 10, 55, 100]) if mem > 100 else rng.choice([0, 0, 0, 3]), mem, pod))
    return Card(host, index, spans)


def scrape_times(rng, since, until, interval):
    """With jitter, some scrapes missing, and some longer holes."""
    t = since + rng.uniform(0, interval)
    while t < until:
        yield round(t + rng.uniform(0, 0.04), 3)
        t += interval * (1 + (rng.random() < 0.02)) + (interval * rng.uniform(0.5, 9) if rng.random() < 0.02 else 0)


class Grid:
    """A card that changes its state with the scrapes: quick to write, and to judge. `use` and `mem` by number of scrape; None: none."""

    def __init__(self, rng, host, index, n):
        self.host, self.index, self.uuid = host, index, f"GPU-{host}-{index}"
        self.rows = []
        while len(self.rows) < n:
            pod, mem = rng.choice([None, "lab/a", "lab/b", "ops/c"]), rng.choice([0, 3, 900, 20000])
            hole = rng.random() < 0.05
            for _ in range(rng.randrange(1, 5)):
                row = None if hole else (rng.choice([0, 4, 55, 100]) if mem > 100 else 0, mem, pod)
                self.rows += [row] * rng.randrange(3, 300)
        del self.rows[n:]

    def add_to(self, samples, times, series):
        for t, row in zip(times, self.rows):
            if row:
                samples.add(t, series(self, *row))

    def judged(self, times, interval, since, until):
        """(state, pod) -> seconds, of samples every `interval` seconds."""
        total, before = collections.Counter(), None
        for t, row in zip(times, self.rows):
            if row and before is not None and t - before <= 2.1 * interval:
                length = min(t, until) - max(before, since)
                total[state_of(row[0], row[1] * MIB, row[2] is not None), row[2]] += max(0, length)
            before = t if row else before
        return total

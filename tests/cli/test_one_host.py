"""Which records are of one host: containers that change their name, clones of an image, recorders without a machine id."""
import itertools
import random

import pytest

from conftest import gua
from handmade import ACTIVE, HOUR, Store
from recorded import TWO_CARDS, record, rows  # noqa: F401: a fixture
from test_report import report_json

T = 1793620800  # Mon 2026-11-02 12:00 UTC
END = T + 48 * HOUR


class Record:
    """A row of a host: its name, machine id, cards and the hours in which it was recorded."""

    def __init__(self, name, machine, cards, *hours):
        self.name, self.machine, self.cards, self.hours = name, machine, set(cards), hours

    def write(self, s):
        host = s.host(self.name, self.machine, driver=f"{max(b for _, b in self.hours)}.0")
        for a, b in self.hours:
            s.run(host, T + a * HOUR, T + b * HOUR, ended=T + b * HOUR)
        first, last = min(a for a, _ in self.hours), max(b for _, b in self.hours)
        for index, uuid in enumerate(sorted(self.cards)):
            card = s.card(host, index, T + first * HOUR, T + last * HOUR, uuid=uuid)
            for hour in {hour for a, b in self.hours for hour in range(a, b)}:
                s.usage(T + hour * HOUR, card, ACTIVE, HOUR, width=HOUR)


def together(p, q):
    return any(a < d and c < b for a, b in p.hours for c, d in q.hours)


def truth(records):
    """The rule, pair by pair: lists of the records of each host."""
    groups = []
    for own in records:
        same = []
        for group in groups:
            def is_one(other):
                if not own.cards & other.cards:
                    return False
                if own.machine and other.machine:
                    return own.machine == other.machine
                return not any(together(own, member) for member in group)
            if any(is_one(other) for other in group):
                same.append(group)
        groups = [group for group in groups if group not in same] + [[*itertools.chain(*same), own]]
    return groups


def expected(records):
    """{name of a host: (cards, observed and unobserved GPU-seconds)}, for names that differ."""
    begin = min(a for record in records for a, _ in record.hours)
    end = max(b for record in records for _, b in record.hours)
    found = {}
    for group in truth(records):
        name = max(group, key=lambda r: max(b for _, b in r.hours)).name
        cards = set().union(*(record.cards for record in group))
        seen = whole = 0
        for uuid in cards:
            hours = {hour for r in group if uuid in r.cards for a, b in r.hours for hour in range(a, b)}
            first = min(min(a for a, _ in r.hours) for r in group if uuid in r.cards)
            seen += len(hours) * HOUR
            whole += (end - max(first, begin)) * HOUR
        found[name] = (len(cards), seen, whole - seen)
    return found


def write(tmp_path, records, several):
    paths = []
    for number, record_ in enumerate(records):
        if several or not paths:
            s = Store(tmp_path / f"{number}.db")
            paths.append(s.path)
        record_.write(s)
        if several:
            s.save()
    if not several:
        s.save()
    return paths


def hosts_of(*paths, args=()):
    found = report_json(*paths, now=END, args=("--since", f"@{T}", "--until", f"@{END}", "--by", "host", *args))
    return {row["host"]: (row["gpus"], row["observed_gpu_seconds"], row["unobserved_gpu_seconds"])
            for row in found["breakdown"]["rows"]}


CASES = {
    "renamed": [Record("c1", "m", "ab", (0, 10)), Record("c2", "m", "ab", (10, 48))],
    "without an id": [Record("c1", "", "ab", (0, 10)), Record("c2", "", "ab", (11, 20)), Record("c3", "", "ab", (20, 48))],
    "back and forth": [Record("c1", "", "ab", (0, 10), (20, 30)), Record("c2", "", "ab", (10, 20), (30, 48))],
    "clones": [Record("n1", "m", "ab", (0, 48)), Record("n2", "m", "cd", (0, 48))],
    "an id came": [Record("c1", "", "ab", (0, 10)), Record("c2", "m", "ab", (12, 48))],
    "two at once": [Record("c1", "", "ab", (0, 30)), Record("c2", "", "ab", (20, 48))],
    "another machine": [Record("c1", "m1", "ab", (0, 10)), Record("c2", "m2", "ab", (10, 48))],
    "a card was added": [Record("c1", "m", "a", (0, 10)), Record("c2", "m", "abc", (12, 48))],
    "joined by a third": [Record("c1", "m", "a", (0, 10)), Record("c2", "m", "b", (10, 20)), Record("c3", "m", "ab", (20, 48))],
}


@pytest.mark.parametrize("several", [True, False], ids=["stores", "one store"])
@pytest.mark.parametrize("case", CASES)
def test_one_host(tmp_path, case, several):
    records = CASES[case]
    want = expected(records)
    paths = write(tmp_path, records, several)
    assert hosts_of(*paths) == want
    run = gua("merge", tmp_path / "out.db", *paths)
    assert run.returncode == 0, run.stderr
    assert hosts_of(tmp_path / "out.db") == want
    assert {name for name, in rows(tmp_path / "out.db", "SELECT hostname FROM host")} == set(want)
    assert rows(tmp_path / "out.db", "SELECT count(*) FROM gpu") == [(sum(n for n, *_ in want.values()),)]


def test_each_name_of_a_host_finds_it(tmp_path):
    paths = write(tmp_path, CASES["renamed"] + [Record("other", "x", "z", (0, 48))], True)
    for name in ("c1", "c2"):
        assert hosts_of(*paths, args=("--host", name)) == {"c2": (2, 2 * 48 * HOUR, 0)}


def test_clones_of_one_name_are_two(tmp_path):
    paths = write(tmp_path, [Record("image", "m", "ab", (0, 48)), Record("image", "m", "cd", (0, 48))], True)
    assert set(hosts_of(*paths)) == {"image", "image#2"}


def test_what_one_host_recorded_twice_is_refused(tmp_path):
    for machine in ("m", ""):
        folder = tmp_path / f"of {machine}"
        folder.mkdir()
        paths = write(folder, [Record("c1", machine, "ab", (0, 30)), Record("c1", machine, "ab", (20, 48))], True)
        run = gua("report", "--db", paths[0], "--db", paths[1], "--now", f"@{END}", "--since", f"@{T}")
        assert run.returncode == 2 and "both recorded the cards of c1" in run.stderr


@pytest.mark.parametrize("seed", range(8))
def test_random_records(tmp_path, seed):
    """Machine ids, cards and times by chance; overlaps of one machine are not made, as they are refused."""
    chance, records, used = random.Random(seed), [], {}
    for number in range(12):
        machine, hour = chance.choice(["m1", "m2", "m3", ""]), chance.randrange(40)
        base = {"m1": "abcd", "m2": "abef", "m3": "ghij", "": "klm"}[machine]
        hours = [(a, b) for a, b in [(hour, hour + chance.randrange(2, 8))]
                 if not any(c < b and a < d for c, d in used.get(machine, []))]
        if hours:
            used.setdefault(machine, []).extend(hours)
            records.append(Record(f"h{number}", machine, chance.sample(base, 2), *hours))
    found = hosts_of(*write(tmp_path, records, True))
    end, last = 48, max(b for r in records for _, b in r.hours)
    want = {name: (n, seen, missed + n * (end - last) * HOUR) for name, (n, seen, missed) in expected(records).items()}
    assert found == want


@pytest.mark.parametrize("machine", ["0123456789abcdef0123456789abcdef\n", ""])
def test_a_recorder_goes_on_under_a_new_name(record, tmp_path, machine):  # noqa: F811
    """A container: another name at each start, the same store and cards."""
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/machine-id").write_text(machine)
    (root / "proc").symlink_to("/proc")
    for number, name in enumerate(("c1", "c2", "c3")):
        db = record(TWO_CARDS, "--ticks", "4", "--host-name", name, root=root, at=600 * number + 1).db
    assert rows(db, "SELECT hostname FROM host") == [("c3",)]
    assert rows(db, "SELECT count(*), count(DISTINCT host), count(ended_ms) FROM run") == [(3, 1, 3)]
    assert rows(db, "SELECT uuid FROM gpu ORDER BY 1") == [("GPU-aaaa",), ("GPU-bbbb",)]
    other = record(TWO_CARDS.replace("aaaa", "cccc").replace("bbbb", "dddd"), "--ticks", "1", "--host-name", "else",
                   root=root, at=3600)
    assert rows(other.db, "SELECT hostname FROM host") == [("c3",), ("else",)]

"""Strict readers of what gua exports: the text format 0.0.4 and OpenMetrics 1.0. Each refuses what its
specification does not allow, so that a test sees what an engine would only forgive."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (NaN|[+-]Inf|-?[0-9.]+(?:e[+-]?[0-9]+)?)(?: ([0-9]+(?:\.[0-9]+)?))?")
TYPES = {"counter", "gauge", "info"}
UNESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


def unescape(text):
    return re.sub(r"\\.", lambda found: UNESCAPED[found.group()], text)


class Series(dict):
    """{(name, ((label, value), ...)): value}; with timestamps a list of (seconds, value) each."""

    def of(self, name, **labels):
        """The values of one name by the rest of their labels, which must be one of each."""
        found = {}
        for (own, pairs), value in self.items():
            if own == name and all(dict(pairs).get(key) == want for key, want in labels.items()):
                rest = tuple(value for key, value in pairs if key not in labels)
                assert rest not in found
                found[rest[0] if len(rest) == 1 else rest] = value
        return found

    def value(self, name, **labels):
        value, = self.of(name, **labels).values()
        return value

    def sum(self, name, **labels):
        return sum(self.of(name, **labels).values())


def sample_of(line):
    found = SAMPLE.fullmatch(line)
    assert found, f"not a sample: {line!r}"
    pairs = tuple((key, unescape(value)) for key, value in re.findall(LABEL, found.group(2) or ""))
    assert len({key for key, _ in pairs}) == len(pairs), line
    stamp = found.groups()[-1]
    return found.group(1), pairs, float(found.groups()[-2]), None if stamp is None else float(stamp)


def lines_of(text):
    assert text.endswith("\n") and "\r" not in text
    lines = text[:-1].split("\n")
    assert all(lines), "an empty line"
    return lines


def read_text(text):
    """The text format: HELP and TYPE once for each name, before its samples, which stand together."""
    series, types, helps, name = Series(), {}, set(), None
    for line in lines_of(text):
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert name not in helps and words
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, typed, kind = line.split(" ")
            assert typed == name and typed not in types and kind in ("counter", "gauge")
            types[typed] = kind
        else:
            own, pairs, value, stamp = sample_of(line)
            assert own == name and own in types and stamp is None, line
            assert (own, pairs) not in series, line
            assert (types[own] == "counter") == own.endswith("_total"), line
            series[own, pairs] = value
    return series


def family_of(sample, kind):
    end = {"counter": "_total", "info": "_info", "gauge": ""}[kind]
    assert sample.endswith(end)
    return sample[:len(sample) - len(end)]


def read_openmetrics(text):
    """OpenMetrics 1.0: families stand together with TYPE, UNIT, HELP in this order, the series of a family too,
    a counter never falls, and the text ends with # EOF. Without timestamps a series has one value."""
    lines = lines_of(text)
    assert lines[-1] == "# EOF" and "# EOF" not in lines[:-1]
    series, stamped, seen, current, order, last = Series(), {}, set(), None, [], None
    kinds = {}
    for line in lines[:-1]:
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            if what == "TYPE":
                assert name not in seen and rest in TYPES, line
                seen.add(name)
                current, kinds[name], order, last = name, rest, ["TYPE"], None
            else:
                assert what in ("UNIT", "HELP") and name == current and what not in order, line
                assert order in ([["TYPE"]] if what == "UNIT" else [["TYPE"], ["TYPE", "UNIT"]]), line
                assert what != "UNIT" or name.endswith("_" + rest), line
                order = order + [what]
            continue
        own, pairs, value, stamp = sample_of(line)
        kind = kinds[current]
        assert family_of(own, kind) == current, line
        assert kind != "counter" or (value >= 0 and value == value), line
        key = own, pairs
        if key != last:
            assert key not in series and key not in stamped, f"twice, or torn apart: {line}"
        elif stamp is not None:
            before = stamped[key][-1]
            assert stamp > before[0] and (kind != "counter" or value >= before[1]), line
        else:
            raise AssertionError(f"twice: {line}")
        last = key
        if stamp is None:
            series[key] = value
        else:
            stamped.setdefault(key, []).append((stamp, value))
    series.update(stamped)
    return series

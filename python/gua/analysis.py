"""Analysis of blocks of code: joins a sub-tracking file with a tracking file, and compares several such results."""
import bisect
import dataclasses
import json
import logging
import math
import os
import re

from . import _blockfile, _files

STATISTICS = ("min", "max", "mean", "std")
log = logging.getLogger("gua")


def statistics_of(values, total=False):
    """min, max, mean and standard deviation (of the whole population) of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    names = STATISTICS + (("total",) if total else ())
    if not known:
        return dict.fromkeys(names)
    mean = math.fsum(known) / len(known)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    return dict(zip(names, (min(known), max(known), mean, std, math.fsum(known))))


@dataclasses.dataclass
class CodeBlockResults:
    """What one block used. Times are seconds."""
    name: str
    num_timepoints: int  # samples within any of its calls
    num_calls: int
    num_non_empty_calls: int  # calls with a sample in them
    compute_time: dict  # statistic: seconds of a call
    resource_usage: dict  # measurement: {statistic: value}


@dataclasses.dataclass
class SubTrackingResults:
    """The result of an analysis. TrackingComparison reads files that contain its to_json()."""
    overall: dict  # measurement: {statistic: value}
    static_data: dict  # units and capacities
    code_block_results: list[CodeBlockResults]
    unfinished_calls: int = 0  # calls that never stopped; they are left out

    def to_json(self) -> dict:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values):
        blocks = [CodeBlockResults(**block) for block in values["code_block_results"]]
        return cls(values["overall"], values["static_data"], blocks, values.get("unfinished_calls", 0))

    def __str__(self):
        lines = ["Overall:", *table(self.overall, "\t"), "Static Data:", *statics(self.static_data, "\t"),
                 "Code Block Results:"]
        for block in self.code_block_results:
            heads = {"Name:": printable(block.name), "Num Timepoints:": block.num_timepoints,
                     "Num Calls:": block.num_calls, "Num Non Empty Calls:": block.num_non_empty_calls}
            lines += [f"\t{head:20} {value}" for head, value in heads.items()]
            lines += ["\tCompute Time:", *table({"": block.compute_time}, "\t\t"),
                      "\tResource Usage:", *table(block.resource_usage, "\t\t"), ""]
        if self.unfinished_calls:
            lines.append(f"{self.unfinished_calls} calls never stopped and were left out.")
        return "\n".join(lines) + "\n"


def printable(name):
    """A name from a file, without characters that would move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode()
                   for letter in name)


def cell(value):
    """A number with at most 8 decimals and at least one."""
    return "-" if value is None else repr(float(f"{value:.8f}"))


def table(rows, indent):
    """Lines of a table as gpu_tracker prints it, a row for each key of {row: {column: value}}: names on the left,
    numbers right-aligned; a column is wider than its title by at least one."""
    columns = list(next(iter(rows.values()), {}))
    names = [printable(name) for name in rows]
    cells = [[cell(row.get(column)) for column in columns] for row in rows.values()]
    heads = list(map(printable, columns))
    widths = [max(len(head) + 1, *map(len, column)) for head, *column in zip(heads, *cells)]
    longest = max(map(len, names), default=0)
    for name, texts in zip(["", *names], [heads, *cells]):
        yield f"{indent}{name:{longest}}" + "".join(f" {text:>{width}}" for text, width in zip(texts, widths))


def statics(values, indent):
    """Two lines: the names, and below them the values."""
    texts = {name: cell(value) if value is None or isinstance(value, float) else printable(str(value))
             for name, value in values.items()}
    widths = {name: max(len(name), len(text) + 1) for name, text in texts.items()}
    yield indent + "".join(f" {name:>{widths[name]}}" for name in texts)
    yield indent + "".join(f" {text:>{widths[name]}}" for name, text in texts.items())


class SubTrackingAnalyzer:
    """Joins a tracking file (of Tracker or `gua track --tf`) with a sub-tracking file (of SubTracker)."""

    def __init__(self, tracking_file, sub_tracking_file):
        for path, what in ((tracking_file, "tracking file"), (sub_tracking_file, "sub-tracking file")):
            if path is not None:
                _blockfile.check_ending(path, what)
        self.tracking_file = None if tracking_file is None else os.fspath(tracking_file)
        self.sub_tracking_file = None if sub_tracking_file is None else os.fspath(sub_tracking_file)

    def read_static_data(self) -> dict:
        """Units and capacities, as a dictionary."""
        return _files.read_static(self.tracking_file)

    def load_code_block_names(self) -> list[str]:
        """The names of all blocks, sorted."""
        return sorted({name for _, name, _, _ in _files.read_marks(self.sub_tracking_file)})

    def combine_sub_tracking_files(self, files: list) -> None:
        """Creates the sub-tracking file from several others, for example of several processes. An existing file is an error."""
        target = self.sub_tracking_file
        ending = os.path.splitext(target)[1]
        if os.path.exists(target):
            raise ValueError(f"Cannot create sub-tracking file {target}. File already exists.")
        for path in map(os.fspath, files):
            if not path.endswith(ending):
                raise ValueError(f'File {path} does not end with the same extension as {target}. Must end in '
                                 f'"{ending}".')
        _files.write_marks(target, [mark for path in files for mark in _files.read_marks(os.fspath(path))])

    def load_timestamp_pairs(self, code_block_name: str) -> list:
        """(start, stop) of each finished call of a block, by start. Calls of a block may be nested: a stop belongs
        to the latest start that has no stop yet."""
        return self._pairs(code_block_name, _files.read_marks(self.sub_tracking_file))[0]

    def _pairs(self, name, marks):
        """The pairs, and how many calls never stopped."""
        pairs, open_calls = [], {}
        for process, _, position, at in sorted((mark for mark in marks if mark[1] == name),
                                               key=lambda mark: (mark[0], mark[3])):
            starts = open_calls.setdefault(process, [])
            if position == 0:
                starts.append(at)
            elif starts:
                pairs.append((starts.pop(), at))
            else:
                raise ValueError(f"Sub-tracking file is invalid. Detected a stop of process ID {process} at {at} "
                                 "without a start.")
        return sorted(pairs), sum(map(len, open_calls.values()))

    def load_timepoints(self, timestamp_pairs: list) -> list:
        """The samples within any of the pairs, each once, as dictionaries."""
        return within(_files.read_samples(self.tracking_file), timestamp_pairs)

    def overall_timepoint_results(self) -> dict:
        """Statistics of each measurement over all samples: {measurement: {statistic: value}}."""
        return usage_of(_files.read_samples(self.tracking_file))

    def sub_tracking_results(self) -> "SubTrackingResults":
        """Everything, as SubTrackingResults."""
        samples, marks = _files.read_samples(self.tracking_file), _files.read_marks(self.sub_tracking_file)
        times = [sample["timestamp"] for sample in samples]
        blocks, unfinished = [], 0
        for name in sorted({mark[1] for mark in marks}):
            pairs, left = self._pairs(name, marks)
            unfinished += left
            points = within(samples, pairs)
            blocks.append(CodeBlockResults(
                name=name, num_timepoints=len(points), num_calls=len(pairs),
                num_non_empty_calls=sum(bisect.bisect_left(times, start) < bisect.bisect_right(times, stop)
                                        for start, stop in pairs),
                compute_time=statistics_of([stop - start for start, stop in pairs], total=True),
                resource_usage=usage_of(points)))
        return SubTrackingResults(usage_of(samples), self.read_static_data(), blocks, unfinished)


def within(samples, pairs):
    """The samples (by time) that lie within any of the pairs, each once."""
    times, found, done = [sample["timestamp"] for sample in samples], [], 0
    for start, stop in sorted(pairs):
        first, last = max(done, bisect.bisect_left(times, start)), bisect.bisect_right(times, stop)
        found += samples[first:last]
        done = max(done, last)
    return found


def usage_of(samples):
    return {name: statistics_of([sample[name] for sample in samples]) for name in _files.MEASUREMENTS}


@dataclasses.dataclass
class ComparisonResults:
    """One statistic of several sessions; the sessions of a group are in ascending order of their values."""
    overall_resource_usage: dict  # measurement: {session: value}
    code_block_resource_usage: dict  # measurement: {block: {session: value}}
    code_block_compute_time: dict  # block: {session: seconds}

    def to_json(self) -> dict:
        return dataclasses.asdict(self)

    def __str__(self):
        lines = ["Overall Resource Usage:"]
        for measurement, sessions in self.overall_resource_usage.items():
            lines += [f"\t{label(measurement)}:", *table({"": sessions}, "\t\t")]
        lines.append("Code Block Resource Usage:")
        for measurement, blocks in self.code_block_resource_usage.items():
            lines += [f"\t{label(measurement)}:", *block_tables(blocks, "\t\t")]
        lines += ["Code Block Compute Time:", *block_tables(self.code_block_compute_time, "\t")]
        return "\n".join(lines) + "\n"


def block_tables(blocks, indent):
    for block, sessions in blocks.items():
        yield f"{indent}{printable(block)}:"
        yield from table({"": sessions}, indent + "\t")


def label(key):
    """The title of a measurement, as gpu_tracker writes it: "main_gpu_ram" is "Main Gpu Ram"."""
    return key.replace("_", " ").title()


class TrackingComparison:
    """Compares the results of several sessions: {name: path of a file with SubTrackingResults.to_json()}.

    Blocks are matched by name; names of the form path:LINE that differ only in the line match in their order, with
    a warning. Pickle files are refused, because loading a pickle runs the code inside it; gua-sub-track(1) shows
    how to convert one."""

    def __init__(self, file_path_map):
        if not file_path_map:
            raise ValueError("There is nothing to compare: the mapping of names to files is empty.")
        self.results_map = {name: load_results(path) for name, path in file_path_map.items()}

    def compare(self, statistic: str = "mean") -> "ComparisonResults":
        """ComparisonResults of one statistic: min, max, mean or std."""
        if statistic not in STATISTICS:
            raise ValueError(f'"{statistic}" is not a valid statistic. Valid values are {", ".join(STATISTICS)}.')
        first = min(self.results_map)  # the other sessions must have its blocks
        blocks = matched({name: in_order(results.code_block_results) for name, results in self.results_map.items()},
                         first)
        overall = {measurement: ascending({name: results.overall.get(measurement, {}).get(statistic)
                                           for name, results in self.results_map.items()})
                   for measurement in self.results_map[first].overall}
        usage = {measurement: {title: ascending({name: block.resource_usage.get(measurement, {}).get(statistic)
                                                 for name, block in row.items()})
                               for title, row in blocks.items()}
                 for measurement in (overall if blocks else ())}
        times = {title: ascending({name: block.compute_time.get(statistic) for name, block in row.items()})
                 for title, row in blocks.items()}
        return ComparisonResults(overall, usage, times)


def load_results(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:1] == b"\x80" or str(path).endswith((".pkl", ".pickle")):
        raise ValueError(f"{path} is a pickle, and loading one runs the code in it. Write the results as JSON: "
                         "json.dump(results.to_json(), file), or `gua sub-track analyze -f json`. gua-sub-track(1) "
                         "shows how to convert a pickle.")
    try:
        # gpu_tracker writes NaN for what is unknown.
        return SubTrackingResults.from_json(json.loads(data, parse_constant=lambda name: None))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a result of sub-tracking: {error}.") from None


def line_of(name):
    """A name of the form path:LINE in two parts; other names have no line."""
    found = re.fullmatch(r"(.*):([0-9]+)", name, re.DOTALL)
    return (found[1], found[2]) if found else (name, None)


def in_order(blocks):
    """The blocks by name; a line number counts as a number: all are written with as many digits as the longest."""
    digits = max((len(line_of(block.name)[1] or "") for block in blocks), default=0)

    def key(block):
        path, line = line_of(block.name)
        return path if line is None else f"{path}:{line.zfill(digits)}"
    return sorted(blocks, key=key)


def matched(sessions, first):
    """{title: {session: block}}; the blocks of the other sessions must match those of the first session by name."""
    for name, blocks in sessions.items():
        if len(blocks) != len(sessions[first]):
            raise ValueError(f'The number of code blocks differs: "{first}" has {len(sessions[first])}, "{name}" has '
                             f"{len(blocks)}.")
        for ours, theirs in zip(sessions[first], blocks):
            check_match(ours.name, first, theirs.name, name)
    result = {}
    for row in zip(*sessions.values()):
        title = " -> ".join(sorted({block.name for block in row}))
        result[title] = dict(zip(sessions, row))
    return result


def check_match(ours, first, theirs, name):
    """Raises ValueError unless the names agree; logs a warning if they differ in the line number only."""
    if ours == theirs:
        return
    (our_path, our_line), (their_path, their_line) = line_of(ours), line_of(theirs)
    if our_path != their_path or None in (our_line, their_line):
        raise ValueError(f'Code block "{ours}" of "{first}" has no match in "{name}": there it is "{theirs}".')
    log.warning('Code block "%s" of "%s" is taken for "%s" of "%s".', theirs, name, ours, first)


def ascending(values):
    """Sort key: by value, unknown values last."""
    return dict(sorted(values.items(), key=lambda item: (item[1] is None, item[1] or 0)))

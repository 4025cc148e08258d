"""Wrapper of the library's tracker, and the thread that writes files while it runs."""
import csv
import ctypes
import json
import math
import os
import sqlite3
import threading

from . import _blockfile, _files, _lib
from .units import scaled


class LibraryTracker:
    """A tracker of libgua. It belongs to the process that created it; a forked child does not touch it. Only one call
    may run at a time."""

    def __init__(self, **options):
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.handle = _lib.HANDLE()
        texts = {key: _lib.bytes_or_none(options.pop(key, None)) for key in ("uuids", "source", "nvml_path", "scenario")}
        self.check(_lib.lib.gua_tracker_new(ctypes.byref(self.handle), ctypes.byref(
            _lib.TrackerOptions(**options, **texts))))

    def check(self, code):
        if code:
            said = _lib.text(_lib.lib.gua_tracker_error(self.handle))
            raise _lib.GuaError(said or _lib.text(_lib.lib.gua_code_text(code)), code)

    def __del__(self):
        if self.handle and self.owner == os.getpid():
            _lib.lib.gua_tracker_free(self.handle)

    def start(self):
        with self.lock:
            self.check(_lib.lib.gua_tracker_start(self.handle))

    def stop(self):
        with self.lock:
            self.check(_lib.lib.gua_tracker_stop(self.handle))

    def sample(self, number):
        """The sample with this number, or the oldest kept one after it; None if there is none yet."""
        sample = _lib.TrackSample()
        with self.lock:
            code = _lib.lib.gua_tracker_sample(self.handle, number, ctypes.byref(sample))
            if code == _lib.BUSY:
                return None
            self.check(code)
        return _lib.values(sample)

    def result(self):
        """The numbers so far, with the rows of cards and processes and the warnings."""
        result = _lib.TrackResult()
        with self.lock:
            self.check(_lib.lib.gua_tracker_result(self.handle, ctypes.byref(result)))
            found = _lib.values(result)
            found["cards"] = [self._row(_lib.lib.gua_tracker_card, _lib.TrackCard, i) for i in range(result.cards)]
            found["processes"] = [self._row(_lib.lib.gua_tracker_process, _lib.TrackProcess, i)
                                  for i in range(result.processes)]
            found["warnings"] = [_lib.text(_lib.lib.gua_tracker_warning(self.handle, i) or b"")
                                 for i in range(result.warnings)]
        return found

    def _row(self, function, struct, index):
        row = struct()
        self.check(function(self.handle, index, ctypes.byref(row)))
        return _lib.values(row)


def unknown_result():
    """The result of a process that ended before it could be tracked."""
    result = _lib.TrackResult()
    for name, kind in result._fields_[1:]:
        if kind in (_lib.I64, _lib.F64):
            setattr(result, name, -1 if kind is _lib.I64 else math.nan)
        elif isinstance(getattr(result, name), ctypes.Array):
            fill = math.nan if kind._type_ is _lib.F64 else -1
            setattr(result, name, kind(fill, fill, fill))
    return {**_lib.values(result), "elapsed_s": 0.0, "exited": 1, "cards": [], "processes": [], "warnings": []}


def without_writer(threads):
    """Numbers of threads without the writing thread, which belongs to gua and not to the program."""
    main, descendants, combined = threads
    if main is None or combined is None or main < 2:
        return threads
    return [main - 1, descendants, combined - 1]


def percent_of(value, parts):
    return None if value is None or not parts else value / parts


def row_of(sample, head, factors):
    """A row of a tracking file, in the order of its columns."""
    ram, gpu_ram = factors
    cpu = [sample["cpu_system_pct"], percent_of(sample["cpu_system_pct"], head["system_core_count"])]
    for value in sample["cpu_pct"]:
        cpu += [value, percent_of(value, head["n_expected_cores"])]
    return [*(scaled(value, ram) for value in [*sample["ram_bytes"], sample["ram_system_bytes"]]),
            *(scaled(value, gpu_ram) for value in [*sample["gpu_ram_bytes"], sample["gpu_system_bytes"]]),
            sample["gpu_util_pct"], percent_of(sample["gpu_util_pct"], head["n_expected_gpus"]), *sample["threads"],
            *cpu, sample["wall_us"] / 1e6]


class TrackingFile:
    """The rows of a run: CSV or SQLite, with gpu_tracker's columns."""

    def __init__(self, path, overwrite):
        self.path = path
        if overwrite and os.path.exists(path):
            os.unlink(path)
        with open(path, "x"):
            pass

    def begin(self, head):
        if _files.is_sqlite(self.path):
            kinds = ["TEXT"] * 3 + ["REAL"] * 2 + ["INTEGER"] * 4
            self._sql([(f"CREATE TABLE static_data ({', '.join(map(' '.join, zip(_files.STATIC, kinds)))})", ()),
                       (f"INSERT INTO static_data VALUES ({', '.join('?' * 9)})", list(head.values())),
                       (f"CREATE TABLE data ({' REAL, '.join(_files.SAMPLE)} REAL)", ())])
        else:
            self._lines([_files.STATIC, head.values(), _files.SAMPLE])

    def add(self, rows):
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"The file {self.path} was removed in the middle of writing data to it.")
        if _files.is_sqlite(self.path):
            self._sql([(f"INSERT INTO data VALUES ({', '.join('?' * len(row))})", row) for row in rows])
        else:
            self._lines(rows)

    def _lines(self, rows):
        with open(self.path, "a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)

    def _sql(self, statements):
        connection = sqlite3.connect(self.path, timeout=60)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            with connection:
                for statement, values in statements:
                    connection.execute(statement, values)
        finally:
            connection.close()


class Writer(threading.Thread):
    """Writes the tracking file, and a copy of the results so far, until it is stopped. It does not prevent the
    interpreter from exiting. If it is late, no sample is lost, because the library keeps a thousand."""

    def __init__(self, tracker, period_s, own):
        super().__init__(name="gua-writer", daemon=True)
        self.tracker, self.period_s, self.own = tracker, max(period_s, 0.5), own
        self.begun, self.ending = threading.Event(), threading.Event()
        self.begin = self.add = self.write_backup = None  # set before the first sample
        self.head = None
        self.next = 1
        self.rows = 0
        self.early = None  # the newest additional sample: the only row of a short run
        self.error = None

    def run(self):
        self.begun.wait()
        while not self.ending.is_set():
            try:
                self.write()
            except Exception as error:
                self.error = error
                return
            self.ending.wait(self.period_s)

    def write(self):
        if not self.head:
            self.head = self.begin(self.ending.is_set())
        if self.head:
            self.write_rows()
        if self.write_backup:
            self.write_backup()

    def write_rows(self):
        rows = []
        while (sample := self.tracker.sample(self.next)) is not None:
            self.next = sample["number"] + 1
            if self.own:
                sample["threads"] = without_writer(sample["threads"])
            if sample["early"]:
                self.early = sample
            else:
                rows.append(sample)
        self.rows += len(rows)
        if rows:
            self.add(self.head, rows)

    def end(self):
        """After the tracker has stopped: writes the remaining samples. Raises the thread's exception, if any."""
        self.ending.set()
        self.join()
        if self.error:
            raise self.error
        self.write()
        if not self.rows and self.early:
            self.add(self.head, [self.early])


def replace_json(path, values):
    """Writes a file so that a reader sees the old one or the new one."""
    with open(f"{path}.new", "w") as file:
        json.dump(values, file, allow_nan=False)
    os.replace(f"{path}.new", path)


def check_new(path, overwrite):
    """A tracking file's name, checked before anything starts."""
    _blockfile.check_ending(path, "tracking file")
    if os.path.exists(path) and not overwrite:
        raise FileExistsError(f"File {path} already exists. Set overwrite to True to overwrite the existing file.")

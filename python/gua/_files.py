"""Reads and writes gpu-tracker's files: tracking files and sub-tracking files, CSV or SQLite."""
import csv
import math
import os
import sqlite3

from . import _blockfile

UNITS = ("ram_unit", "gpu_ram_unit", "time_unit")
STATIC = UNITS + ("ram_system_capacity", "gpu_ram_system_capacity", "system_core_count", "n_expected_cores",
                  "system_gpu_count", "n_expected_gpus")
GROUPS = ("main", "descendants", "combined")
MEASUREMENTS = tuple(
    [f"{group}_ram" for group in GROUPS + ("system",)] + [f"{group}_gpu_ram" for group in GROUPS + ("system",)]
    + ["gpu_sum_utilization_percent", "gpu_hardware_utilization_percent"]
    + [f"{group}_n_threads" for group in GROUPS]
    + [f"cpu_{group}_{what}_utilization_percent" for group in ("system",) + GROUPS for what in ("sum", "hardware")])
SAMPLE = MEASUREMENTS + ("timestamp",)


def is_sqlite(path):
    return str(path).endswith(".sqlite")


def parsed(text):
    """A text as an int if it is whole, else as a float; None if it is unknown."""
    if text in (None, ""):
        return None
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and not isinstance(text, float) and "." not in str(text) else value


def connect(path):
    """Opens a database for reading; sqlite3.connect() would create a missing one."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"The file {path} does not exist.")
    return sqlite3.connect(f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro", uri=True)


def table(path, name):
    """Header and rows of a table of an SQLite file."""
    connection = connect(str(path))
    try:
        cursor = connection.execute(f"SELECT * FROM {name} ORDER BY rowid")
        return [column[0] for column in cursor.description], cursor.fetchall()
    except sqlite3.Error as error:
        raise ValueError(f"The file {path} cannot be read: {error}.") from None
    finally:
        connection.close()


def csv_rows(path):
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.reader(file))


def named(path, header, rows, wanted):
    """The rows as dictionaries. Raises ValueError if a column is missing or a row is incomplete."""
    for column in wanted:
        if column not in header:
            raise ValueError(f"The file {path} is invalid: it has no column {column}.")
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"The file {path} is invalid: a row has {len(row)} of {len(header)} values.")
        yield dict(zip(header, row))


def read_static(path):
    """The header of a tracking file: units and capacities."""
    if is_sqlite(path):
        header, rows = table(path, "static_data")
    else:
        lines = csv_rows(path)
        header, rows = lines[0] if lines else [], lines[1:2]
    found = list(named(path, header, rows, STATIC))
    if not found:
        raise ValueError(f"The file {path} is invalid: it has no static data.")
    return {key: found[0][key] if key in UNITS else parsed(found[0][key]) for key in STATIC}


def read_samples(path):
    """The samples of a tracking file, by time."""
    if is_sqlite(path):
        header, rows = table(path, "data")
    else:
        lines = csv_rows(path)
        header, rows = lines[2] if len(lines) > 2 else [], lines[3:]
    samples = [{key: parsed(row[key]) for key in SAMPLE} for row in named(path, header, rows, SAMPLE)]
    if any(sample["timestamp"] is None for sample in samples):
        raise ValueError(f"The file {path} is invalid: a row has no timestamp.")
    return sorted(samples, key=lambda sample: sample["timestamp"])


def read_marks(path):
    """The rows of a sub-tracking file in its order: (process id, block, position, time)."""
    if is_sqlite(path):
        header, rows = table(path, "data")
    else:
        lines = csv_rows(path)
        header, rows = lines[0] if lines else [], lines[1:]
    marks = []
    for row in named(path, header, rows, _blockfile.COLUMNS):
        try:
            mark = (int(row["process_id"]), str(row["code_block_name"]), int(row["position"]), float(row["timestamp"]))
        except (TypeError, ValueError):
            mark = None
        if mark is None or mark[2] not in (0, 1):
            raise ValueError(f"The file {path} is invalid: {tuple(row.values())} is not a process id, a name, 0 or 1, "
                             "and a time.")
        marks.append(mark)
    return marks


def write_marks(path, marks):
    """Creates a sub-tracking file; an existing file is an error."""
    if is_sqlite(path):
        with open(path, "x"):
            pass
        connection = sqlite3.connect(path)
        connection.execute(_blockfile.CREATE)
        connection.executemany(_blockfile.INSERT, marks)
        connection.commit()
        connection.close()
        return
    with open(path, "x", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_blockfile.COLUMNS)
        writer.writerows(marks)

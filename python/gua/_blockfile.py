"""The sub-tracking file: one row for each start and stop of a block of code, as CSV or SQLite.

Several processes may write to one file. Who uses a file holds a shared flock(2) on it as long as it lives: a file
that somebody holds belongs to this run and is joined, also with `overwrite`; one that nobody holds is left over from
an earlier run. A CSV row is one write(2) at the end of the file, so that rows of different processes do not mix."""
import csv
import fcntl
import io
import os
import sqlite3
import threading

COLUMNS = ("process_id", "code_block_name", "position", "timestamp")
HEADER = (",".join(COLUMNS) + "\n").encode()
CREATE = "CREATE TABLE IF NOT EXISTS data (process_id INTEGER, code_block_name TEXT, position INTEGER, timestamp REAL)"
INSERT = "INSERT INTO data VALUES (?, ?, ?, ?)"
ENDINGS = (".csv", ".sqlite")


def check_ending(path, what):
    """ValueError unless the path ends as one of the two formats does."""
    if not str(path).endswith(ENDINGS):
        raise ValueError(f'Invalid file name: "{path}". The {what} must end in ".csv" or ".sqlite".')


class BlockFile:
    """An open file of this process. It stays open: other processes see that it is in use."""

    def __init__(self, path, overwrite):
        self.path = path
        self.lock = threading.Lock()
        self.connection = None
        self.descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._claim(overwrite)
        except BaseException:
            os.close(self.descriptor)
            raise
        if path.endswith(".sqlite"):
            self.connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self.connection.execute("PRAGMA synchronous = OFF")
            self.connection.execute(CREATE)

    def _claim(self, overwrite):
        alone = self._try_lock()
        # A header alone is nobody's data; it may be that of a process that shares its lock this moment.
        size = os.fstat(self.descriptor).st_size
        used = size > (len(HEADER) if self.path.endswith(".csv") else 0)
        if alone and used and not overwrite:
            raise FileExistsError(f"File {self.path} already exists. Set overwrite to True to overwrite the existing "
                                  "file.")
        if alone and size:
            for ending in ("-journal", "-wal", "-shm"):
                if os.path.exists(self.path + ending):
                    os.unlink(self.path + ending)
            os.ftruncate(self.descriptor, 0)
        if alone and self.path.endswith(".csv"):
            os.write(self.descriptor, HEADER)
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def _try_lock(self):
        """True: nobody else uses the file, and nobody can begin to until we share it."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    def add(self, *row):
        with self.lock:
            if self.connection:
                self.connection.execute(INSERT, row)
                return
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(row)
            os.write(self.descriptor, line.getvalue().encode("utf-8", "surrogateescape"))


class Files:
    """The files of a process. A forked child has none of its own yet: what it inherited is kept, not used."""

    def __init__(self):
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.by_path = {}
        self.inherited = None

    def get(self, path, overwrite):
        path = os.path.abspath(path)
        with self.lock:
            if path not in self.by_path:
                joins = self.inherited is not None and path in self.inherited.by_path
                self.by_path[path] = BlockFile(path, overwrite and not joins)
            return self.by_path[path]


files = Files()


def after_fork():
    """SQLite's connections must not be carried over a fork, nor closed behind it."""
    global files
    inherited, files = files, Files()
    files.inherited = inherited


os.register_at_fork(after_in_child=after_fork)


def open_file(path, overwrite):
    """The file of that path, opened once in a process. FileExistsError when it is left over from an earlier run."""
    return files.get(path, overwrite)

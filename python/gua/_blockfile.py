"""The sub-tracking file: one row for each start and stop of a block of code, as CSV or SQLite.

Several processes may write to one file. Each holds a shared flock(2) on the file until it ends. If another process
holds the lock, the file belongs to this run and rows are appended, also with `overwrite`. If no process holds the
lock, the file is left over from an earlier run. A CSV row is one write(2) at the end of the file, so that rows of different processes do not mix."""
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
    """Raises ValueError unless the path ends in .csv or .sqlite."""
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
        # A header alone is not data; another process may have just written it, before it shares the lock.
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
        """True: no other process uses the file, and none can start to until we share the lock."""
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
    """The files of a process. A forked child starts without files: inherited ones stay open and are not used."""

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
    """Keeps inherited SQLite connections open and unused: they must not be used or closed after a fork."""
    global files
    inherited, files = files, Files()
    files.inherited = inherited


os.register_at_fork(after_in_child=after_fork)


def open_file(path, overwrite):
    """The file with this path, opened once per process. Raises FileExistsError if it is left over from an earlier run."""
    return files.get(path, overwrite)

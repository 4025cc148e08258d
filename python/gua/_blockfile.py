"""The sub-tracking file: one row for each start and stop of a block of code, as CSV or SQLite.

Several processes may write to one file. Each holds a shared flock(2) on the file until it ends. If another process
holds the lock, the file belongs to this run and rows are appended, also with `overwrite`. If no process holds the
lock, the file is left over from an earlier run. A CSV row is one write(2) at the end of the file, so that rows of
different processes do not mix."""
import csv
import errno
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
FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


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
        self.descriptor = claim(path, overwrite)
        self.inode = inode_of(os.fstat(self.descriptor))
        if path.endswith(".sqlite"):
            self.connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self.connection.execute("PRAGMA synchronous = OFF")
            self.connection.execute(CREATE)

    def is_there(self):
        """False: the file was removed, or another file has its name now."""
        try:
            return inode_of(os.stat(self.path)) == self.inode
        except FileNotFoundError:
            return False

    def add(self, *row):
        with self.lock:
            if not self.is_there():
                raise FileNotFoundError(f"The file {self.path} was removed in the middle of writing data to it.")
            if self.connection:
                self.connection.execute(INSERT, row)
                return
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(row)
            os.write(self.descriptor, line.getvalue().encode("utf-8", "surrogateescape"))


def inode_of(status):
    return status.st_dev, status.st_ino


def claim(path, overwrite):
    """Opens the file with a shared lock on it. Creates it, joins the processes that use it, or replaces a file that no
    process uses if `overwrite` is true; otherwise raises FileExistsError."""
    while True:
        try:
            descriptor = os.open(path, FLAGS)
        except FileNotFoundError:
            if (descriptor := create(path)) is not None:
                return descriptor
            continue
        keep = False
        try:
            keep = take_existing(descriptor, path, overwrite)
        finally:
            if not keep:
                os.close(descriptor)
        if keep:
            return descriptor


def take_existing(descriptor, path, overwrite):
    """True: the file is in use, and we use it too. False: it is not there any more."""
    alone = try_lock(descriptor)
    if not alone:
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits only while a process replaces the file
    if not os.path.exists(path) or not os.path.samestat(os.stat(path), os.fstat(descriptor)):
        return False
    if not alone:
        return True
    if not overwrite:
        raise FileExistsError(f"File {path} already exists. Set overwrite to True to overwrite the existing file.")
    for ending in ("", "-journal", "-wal", "-shm"):
        if os.path.exists(path + ending):
            os.unlink(path + ending)
    return False


def try_lock(descriptor):
    """True: no other process uses the file, and none can start to while we have the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def create(path):
    """Creates the file, locked and with its header from the moment on at which others can see it. None: another process
    was faster."""
    target = os.path.realpath(path)  # of a link to a file that is not there
    folder, name = os.path.split(target)
    draft = os.path.join(folder, f".{name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(draft, FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if path.endswith(".csv"):
            os.write(descriptor, HEADER)
        os.link(draft, target)
        return descriptor
    except OSError as error:
        os.close(descriptor)
        if error.errno in NO_LINKS:
            return create_in_place(path)
        if error.errno != errno.EEXIST:
            raise
        return None
    finally:
        os.unlink(draft)


def create_in_place(path):
    """The same in a file system without hard links. Another process may see the file before it is locked."""
    try:
        descriptor = os.open(path, FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if path.endswith(".csv"):
        os.write(descriptor, HEADER)
    return descriptor


class Files:
    """The files of a process. A forked child starts without files: inherited ones stay open and are not used."""

    def __init__(self):
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.by_path = {}
        self.removed = []  # they stay open, as their users may still hold them
        self.inherited = None

    def get(self, path, overwrite):
        path = os.path.abspath(path)
        with self.lock:
            if path not in self.by_path:
                joins = self.inherited is not None and path in self.inherited.by_path
                self.by_path[path] = BlockFile(path, overwrite and not joins)
            return self.by_path[path]

    def forget_removed(self, path):
        path = os.path.abspath(path)
        with self.lock:
            if path in self.by_path and not self.by_path[path].is_there():
                self.removed.append(self.by_path.pop(path))


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


def forget_removed(path):
    """If this process used a file with this path and it was removed, the next open_file() creates it again."""
    files.forget_removed(path)

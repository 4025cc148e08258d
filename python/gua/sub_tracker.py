"""Marks blocks of code, so that a tracking file can be analysed block by block."""
import functools
import inspect
import os
import time
from collections.abc import Callable

from . import _blockfile
from .analysis import CodeBlockResults, ComparisonResults, SubTrackingAnalyzer, SubTrackingResults, TrackingComparison

__all__ = ["SubTracker", "sub_track", "SubTrackingAnalyzer", "SubTrackingResults", "CodeBlockResults",
           "TrackingComparison", "ComparisonResults"]

START, STOP = 0, 1


def relative(path):
    """The path for the name of a block: relative to the working directory; if it is not a file (a notebook's cell),
    only the name."""
    return os.path.relpath(path) if os.path.exists(path) else os.path.basename(path)


class SubTracker:
    """A context manager that records when a block of code starts and stops.

    code_block_name: the name of the block; by default the relative path of the file that creates the object, ":" and
    code_block_attribute, or the line number if there is no attribute.
    sub_tracking_file: must end in .csv or .sqlite; by default PID.csv in the working directory, with the pid of the
    process that runs the block. Several processes may write to one file.
    overwrite: replace a file that is left over from an earlier run; otherwise FileExistsError is raised, also if the
    file is empty. Rows of processes of this run are never removed.

    An object may be used many times, also nested and in several threads. If the file is removed meanwhile, the next row
    raises FileNotFoundError; a new object creates the file again."""

    def __init__(self, code_block_name: str | None = None, code_block_attribute: str | None = None,
                 sub_tracking_file: str | os.PathLike | None = None, overwrite: bool = False) -> None:
        if code_block_name is None:
            frame = inspect.currentframe().f_back
            attribute = frame.f_lineno if code_block_attribute is None else code_block_attribute
            code_block_name = f"{relative(frame.f_code.co_filename)}:{attribute}"
        self.code_block_name = code_block_name
        self.overwrite = overwrite
        self._path = None if sub_tracking_file is None else os.fspath(sub_tracking_file)
        _blockfile.check_ending(self.sub_tracking_file, "sub-tracking file")
        _blockfile.forget_removed(self.sub_tracking_file)
        if self._path is not None:
            self._file()

    @property
    def sub_tracking_file(self):
        return self._path or f"{os.getpid()}.csv"

    def _file(self):
        return _blockfile.open_file(self.sub_tracking_file, self.overwrite)

    def _add(self, position):
        self._file().add(os.getpid(), self.code_block_name, position, time.time())

    def __enter__(self):
        self._add(START)
        return self

    def __exit__(self, *_):
        self._add(STOP)


def sub_track(code_block_name: str | None = None, code_block_attribute: str | None = None,
              sub_tracking_file: str | os.PathLike | None = None, overwrite: bool = False) -> Callable:
    """A decorator: each call of the function is a block. The arguments are those of SubTracker; the default name
    is the relative path of the function's file, ":" and code_block_attribute, or the function's name."""
    def decorate(function):
        code = inspect.unwrap(function).__code__
        attribute = function.__name__ if code_block_attribute is None else code_block_attribute
        name = code_block_name
        if name is None:
            name = f"{relative(code.co_filename)}:{attribute}"
        tracker = SubTracker(name, None, sub_tracking_file, overwrite)
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def tracked(*args, **kwargs):
                with tracker:
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def tracked(*args, **kwargs):
                with tracker:
                    return function(*args, **kwargs)
        return tracked
    return decorate

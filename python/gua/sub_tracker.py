"""Marking blocks of code, so that a tracking file can be analysed block by block."""
import functools
import inspect
import os
import time

from . import _blockfile
from .analysis import CodeBlockResults, ComparisonResults, SubTrackingAnalyzer, SubTrackingResults, TrackingComparison

__all__ = ["SubTracker", "sub_track", "SubTrackingAnalyzer", "SubTrackingResults", "CodeBlockResults",
           "TrackingComparison", "ComparisonResults"]

START, STOP = 0, 1


def relative(path):
    """The path as the block's name has it: relative to the working directory; the bare name of what is no file
    (a notebook's cell)."""
    return os.path.relpath(path) if os.path.exists(path) else os.path.basename(path)


class SubTracker:
    """A context manager that writes when a block of code starts and when it stops.

    code_block_name: the block's name; by default the relative path of the file in which the object is made, ":" and
    code_block_attribute, or the line number without one.
    sub_tracking_file: ends in .csv or .sqlite; by default PID.csv in the working directory, of the process that runs
    the block. Several processes may write to one file.
    overwrite: begin anew when the file is left over from an earlier run; FileExistsError otherwise. What a process
    of this run has written is never removed.

    An object may be used many times, also within itself and by several threads."""

    def __init__(self, code_block_name=None, code_block_attribute=None, sub_tracking_file=None, overwrite=False):
        if code_block_name is None:
            frame = inspect.currentframe().f_back
            attribute = frame.f_lineno if code_block_attribute is None else code_block_attribute
            code_block_name = f"{relative(frame.f_code.co_filename)}:{attribute}"
        self.code_block_name = code_block_name
        self.sub_tracking_file = None if sub_tracking_file is None else os.fspath(sub_tracking_file)
        self.overwrite = overwrite
        if self.sub_tracking_file is not None:
            _blockfile.check_ending(self.sub_tracking_file, "sub-tracking file")
            self._file()

    def _file(self):
        path = self.sub_tracking_file or f"{os.getpid()}.csv"
        return _blockfile.open_file(path, self.overwrite)

    def _add(self, position):
        self._file().add(os.getpid(), self.code_block_name, position, time.time())

    def __enter__(self):
        self._add(START)
        return self

    def __exit__(self, *_):
        self._add(STOP)


def sub_track(code_block_name=None, code_block_attribute=None, sub_tracking_file=None, overwrite=False):
    """A decorator: each call of the function is a block. The arguments are SubTracker's; the default name is the
    relative path of the function's file, ":" and code_block_attribute, or the function's name without one."""
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

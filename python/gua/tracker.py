"""Tracker: measures what this process, or another one, and all processes below it use."""
import enum
import functools
import html
import logging
import os
import sys
import time
from collections.abc import Iterable

from . import _lib, _tracking, cards, summary, units
from .usage import (ComputeTime, CPUUtilization, Details, GPUUtilization, MaxGPURAM, MaxRAM, ProcessingUnitPercentages,
                    ResourceUsage, RSSValues, TrackedGPU, TrackedProcess)

__all__ = ["Tracker", "ResourceUsage", "MaxRAM", "MaxGPURAM", "RSSValues", "CPUUtilization", "GPUUtilization",
           "ProcessingUnitPercentages", "ComputeTime", "Details", "TrackedGPU", "TrackedProcess"]

log = logging.getLogger("gua")
DRIVER_S = 5  # how long a tracking file waits for the driver's first answer


class Tracker:
    """Measures between start() and stop(), or within a `with` block. It can be used once.

    sleep_time: seconds between samples, at least 0.1. Peaks between samples are seen too.
    ram_unit, gpu_ram_unit: bytes, kilobytes ... terabytes (powers of 1000) or kibibytes ... tebibytes (of 1024).
    time_unit: seconds, minutes, hours or days.
    n_expected_cores: the number of cores that is 100 hardware percent; by default all cores of the host.
    gpu_uuids: the cards whose utilisation counts; by default all.
    disable_logs: if true, no warnings are logged; otherwise they go to the logger "gua".
    process_id: the process to track; by default this process.
    resource_usage_file: a JSON file with the results so far, in case the program is killed; stop() removes it.
    gpu_brand: "nvidia" or None; other cards are not supported.
    tracking_file: a file with one row per sample, .csv or .sqlite; `overwrite` allows replacing an existing one.
    legacy_spelling: to_json() and str() write "descendents", as gpu_tracker before version 4.
    n_join_attempts, join_timeout: accepted for compatibility and ignored.

    After the stop, `resource_usage` contains the results, and `details` the values that gpu_tracker does not have."""

    class State(enum.Enum):
        NEW = 0
        STARTED = 1
        STOPPED = 2

    def __init__(self, sleep_time: float = 1.0, ram_unit: str = "gigabytes", gpu_ram_unit: str = "gigabytes",
                 time_unit: str = "hours", n_expected_cores: int | None = None,
                 gpu_uuids: str | Iterable[str] | None = None, disable_logs: bool = False, process_id: int | None = None,
                 resource_usage_file: str | os.PathLike | None = None, n_join_attempts: int = 5,
                 join_timeout: float = 10.0, gpu_brand: str | None = None,
                 tracking_file: str | os.PathLike | None = None, overwrite: bool = False,
                 legacy_spelling: bool = False) -> None:
        if not sleep_time >= 0.1:
            raise ValueError(f"Sleep time of {sleep_time} is invalid. Must be at least 0.1 seconds.")
        if n_expected_cores is not None and n_expected_cores < 1:
            raise ValueError(f"{n_expected_cores} expected cores are invalid. Must be at least 1.")
        if process_id is not None and process_id < 1:
            raise ValueError(f"Process ID of {process_id} is invalid. Must be at least 1.")
        if gpu_brand not in (None, "nvidia"):
            raise ValueError(f'"{gpu_brand}" is not a valid GPU brand: gua supports only NVIDIA cards. The valid value '
                             'is nvidia.')
        self._ram = (ram_unit, units.factor(ram_unit, "RAM", units.SIZES))
        self._gpu_ram = (gpu_ram_unit, units.factor(gpu_ram_unit, "GPU RAM", units.SIZES))
        self._time = (time_unit, units.factor(time_unit, "time", units.TIMES))
        self._sleep_time = sleep_time
        self._disable_logs = disable_logs
        self._uuids = None if gpu_uuids is None else self._known_uuids(gpu_uuids)
        self._process_id = process_id
        self._tracking_file = None if tracking_file is None else os.fspath(tracking_file)
        if self._tracking_file is not None:
            _tracking.check_new(self._tracking_file, overwrite)
        self._overwrite = overwrite
        self._legacy_spelling = legacy_spelling
        self._backup = None if resource_usage_file is None else os.fspath(resource_usage_file)
        self.n_join_attempts = n_join_attempts
        self.join_timeout = join_timeout
        # Whoever calls the package gput uses it as gpu_tracker, and gets that tool's text.
        self._long = sys._getframe(1).f_globals.get("gput") is sys.modules[__package__]
        self.state = Tracker.State.NEW
        self.resource_usage: ResourceUsage | None = None
        self.details: Details | None = None
        self._writer = None
        self._gone = False
        self._tracker = _tracking.LibraryTracker(
            pid=process_id or 0, interval_s=sleep_time, expected_cores=n_expected_cores or 0,
            uuids=",".join(self._uuids or ()) or None, nvml_path=_lib.driver_path())

    @staticmethod
    def _known_uuids(given):
        given = given.split(",") if isinstance(given, str) else list(given)
        if not given:
            raise ValueError("The set of GPU UUIDs is empty. Name at least one GPU, or none at all for all of them.")
        try:
            available = [gpu.uuid for gpu in cards.gpus()]
        except _lib.GuaError:
            available = []
        for uuid in given:
            if uuid not in available:
                raise ValueError(f"GPU UUID of {uuid} is not valid. Available UUIDs are: {', '.join(available) or 'none'}")
        return given

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def _warn(self, sentence):
        if not self._disable_logs:
            log.warning("%s", sentence)

    def start(self) -> None:
        """Starts to measure. Raises RuntimeError if it was started before."""
        self._refuse("start", Tracker.State.STARTED, "already started")
        self._refuse("start", Tracker.State.STOPPED, "already stopped")
        # Before anything runs, so that a file that cannot be created leaves nothing half started.
        file = _tracking.TrackingFile(self._tracking_file, self._overwrite) if self._tracking_file else None
        if file or self._backup:
            self._writer = self._new_writer(file)
            self._writer.start()
        self._begin()
        if self._writer:
            self._started_at = time.monotonic()
            self._writer.begun.set()
        self.state = Tracker.State.STARTED

    def _begin(self):
        try:
            self._tracker.start()
        except _lib.GuaError as error:
            self._end_writer()
            if error.code != _lib.FAILED or self._process_id is None or os.path.exists(f"/proc/{self._process_id}"):
                raise
            self._gone = True
            self._warn(f"The target process of ID {self._process_id} ended before tracking could begin.")

    def _head(self, file, last):
        """Writes the header of the tracking file. Waits for the driver's first answer, at most DRIVER_S."""
        result = self._tracker.result()
        waits = file and not last and time.monotonic() - self._started_at < DRIVER_S
        if waits and not result["gpu_known"]:
            return None
        head = {"ram_unit": self._ram[0], "gpu_ram_unit": self._gpu_ram[0], "time_unit": self._time[0],
                "ram_system_capacity": units.scaled(result["ram_capacity_bytes"], self._ram[1]),
                "gpu_ram_system_capacity": units.scaled(result["gpu_capacity_bytes"], self._gpu_ram[1]),
                "system_core_count": result["core_count"], "n_expected_cores": result["expected_cores"],
                "system_gpu_count": result["gpu_count"], "n_expected_gpus": result["expected_gpus"]}
        if file:
            file.begin(head)
        return head

    def _add(self, file, head, samples):
        if file:
            file.add([_tracking.row_of(sample, head, (self._ram[1], self._gpu_ram[1])) for sample in samples])

    def _new_writer(self, file):
        writer = _tracking.Writer(self._tracker, self._sleep_time, self._process_id in (None, os.getpid()))
        writer.begin = functools.partial(self._head, file)
        writer.add = functools.partial(self._add, file)
        if self._backup:
            writer.write_backup = lambda: _tracking.replace_json(
                self._backup, self._usage(self._result()).to_json(self._legacy_spelling))
        return writer

    def _end_writer(self):
        writer, self._writer = self._writer, None
        if writer:
            writer.ending.set()
            writer.begun.set()
            writer.join()

    def stop(self) -> None:
        """Stops, and sets resource_usage. Raises RuntimeError if it is not running."""
        self._refuse("stop", Tracker.State.NEW, "not started yet")
        self._refuse("stop", Tracker.State.STOPPED, "already stopped")
        if not self._gone:
            self._tracker.stop()
        self.state = Tracker.State.STOPPED
        result = self._result()
        self.resource_usage, self.details = self._usage(result), Details.of(result)
        self._summary = summary.short(result)
        self._say(result)
        writer, self._writer = self._writer, None
        try:
            if writer:
                writer.end()
        finally:
            if self._backup and os.path.exists(self._backup):
                os.unlink(self._backup)

    def _say(self, result):
        """Each warning once."""
        for warning in result["warnings"]:
            self._warn(warning)
        if not result["gpu_known"] and not self._gone:
            why = result["gpu_note"].replace("nvml_path", "the variable GUA_NVML")
            self._warn(f"The GPU RAM and GPU utilization values are unknown: {why}.")

    def _refuse(self, what, state, why):
        if self.state is state:
            raise RuntimeError(f"Cannot {what} tracking when tracking has {why}.")

    def snapshot(self) -> ResourceUsage:
        """The results so far, as ResourceUsage. Raises RuntimeError before the start."""
        self._refuse("read the results of", Tracker.State.NEW, "not started yet")
        return self._usage(self._result())

    def _result(self):
        result = _tracking.unknown_result() if self._gone else self._tracker.result()
        if self._writer and self._writer.own:
            result["threads_max"] = _tracking.without_writer(result["threads_max"])
        return result

    def _usage(self, result):
        ram_unit, ram = self._ram
        gpu_unit, gpu = self._gpu_ram

        def rss(group):
            return RSSValues(*(units.scaled(result[f"ram_{part}_bytes"][group], ram)
                               for part in ("total", "private", "shared")))

        def percentages(highest, mean, parts):
            return ProcessingUnitPercentages(highest, _tracking.percent_of(highest, parts), mean,
                                             _tracking.percent_of(mean, parts))

        def cpu(group):
            return percentages(result["cpu_max_pct"][group], result["cpu_mean_pct"][group], result["expected_cores"])

        return ResourceUsage(
            MaxRAM(ram_unit, units.scaled(result["ram_capacity_bytes"], ram),
                   units.scaled(result["ram_system_max_bytes"], ram), rss(0), rss(1), rss(2)),
            MaxGPURAM(gpu_unit, units.scaled(result["gpu_capacity_bytes"], gpu),
                      units.scaled(result["gpu_system_max_bytes"], gpu),
                      *(units.scaled(value, gpu) for value in result["gpu_ram_bytes"])),
            CPUUtilization(result["core_count"], result["expected_cores"],
                           percentages(result["cpu_system_max_pct"], result["cpu_system_mean_pct"],
                                       result["core_count"]),
                           cpu(0), cpu(1), cpu(2), *result["threads_max"]),
            GPUUtilization(result["gpu_count"], result["expected_gpus"],
                           percentages(result["gpu_util_max_pct"], result["gpu_util_mean_pct"],
                                       result["expected_gpus"])),
            ComputeTime(self._time[0], result["elapsed_s"] * self._time[1]))

    def _finished(self):
        if self.state is not Tracker.State.STOPPED:
            raise RuntimeError("Cannot display the tracker in string or JSON format before tracking completes. "
                               "Leave the `with` block or call stop() first.")
        return self.resource_usage

    def to_json(self, legacy_spelling: bool | None = None) -> dict:
        """The results as nested dictionaries with gpu_tracker's keys; unknown values are None."""
        usage = self._finished()
        return usage.to_json(self._legacy_spelling if legacy_spelling is None else legacy_spelling)

    def summary(self) -> str:
        """The results in six lines, as `gua track` prints them, the last one with the options for Slurm."""
        self._finished()
        return self._summary

    def __str__(self):
        """summary(); the long text of gpu_tracker where the package was imported as gput."""
        return self._finished().text(self._legacy_spelling) if self._long else self.summary()

    def __repr__(self):
        return f"State: {self.state.name}"

    def _repr_pretty_(self, printer, _cycle):
        """What IPython shows of a tracker on a terminal."""
        printer.text(str(self) if self.state is Tracker.State.STOPPED else repr(self))

    def _repr_html_(self):
        """The text that a notebook shows: the results, once there are any."""
        return f"<pre>{html.escape(str(self))}</pre>" if self.state is Tracker.State.STOPPED else None

"""Watches this process for the notebook: time, memory, memory on cards with peaks, and use of cards.

A thread reads while a cell runs, so that peaks are found, and rarely between cells. It reads through libgua, which
releases Python's lock meanwhile."""
import contextlib
import ctypes
import dataclasses
import os
import threading
import time

from . import _lib, cards

INTERVAL_S = 0.02   # between readings while a cell runs
MOST_OF_A_CORE = 0.05  # a slow driver is asked less often, so that asking takes at most this share of the time
BETWEEN_S = 5       # between readings while no cell runs
ACTIVE_PCT = 10     # from this use on a card is active, as gua(1) defines it
HELD_BYTES = 100_000_000  # less than this is not held
QUIET_S = 1         # the driver has a new record of use several times a second: without one for this long, it is unused
ANSWER_S = 0.5      # how long a cell waits for the driver at most
PAGE = os.sysconf("SC_PAGE_SIZE")
FIRST_PIDS = "pid:[4026531836]"  # the host's own pid namespace: the number is fixed (Linux, proc_ns.h)
NOT_LISTED = "the driver does not list this process, which has another number outside of its container"


@dataclasses.dataclass
class Reading:
    """This process at one moment. `gpu` has its memory by card: {UUID: bytes}, None where the driver does not tell.
    `active` and `idle` have seconds by card, without cards whose use the driver does not report."""
    wall_s: float
    cpu_s: float    # without that of the watch
    ram: int
    gpu: dict
    note: str       # why gpu is None
    active: dict
    idle: dict

    def held(self):
        """Memory on all cards; None if the driver cannot be read or does not tell it for one of them."""
        if self.gpu is None or None in self.gpu.values():
            return None
        return sum(self.gpu.values())


@dataclasses.dataclass
class Span:
    """What happened between two readings."""
    begin: Reading
    end: Reading
    ram_peak: int
    gpu_peak: dict  # by card; None: unknown at a moment
    held_peak: int  # on all cards at one moment

    def gpu_time(self):
        """Seconds (active, idle) on all cards; None if the use of a card is unknown."""
        if not self.gpu_peak or any(uuid not in self.end.active for uuid in self.gpu_peak):
            return None
        return tuple(sum(max(0, seconds - before.get(uuid, 0)) for uuid, seconds in after.items())
                     for before, after in ((self.begin.active, self.end.active), (self.begin.idle, self.end.idle)))


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def highest_resident():
    """The kernel's own peak since the process began; 0 if it does not tell."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def has_first_pids():
    """Whether this process has the number that the driver knows: not in a container with process numbers of its own."""
    try:
        return os.readlink("/proc/self/ns/pid") == FIRST_PIDS
    except OSError:
        return True


class Watch:
    """Without a driver `note` has the reason, and memory on cards is unknown. Only the watch's thread talks to the
    driver; others wait ANSWER_S for it, and go on without the cards if the driver is stuck."""

    def __init__(self, source=None, nvml_path=None, scenario=None):
        self.pid, self.note, self.names = os.getpid(), "", {}
        self._options, self._handle = (source, nvml_path, scenario), None
        self._card, self._process = _lib.Card(), _lib.CardProcess()
        self._card.size = _lib.Card.temperature_c.offset  # without what costs a call of the driver
        self._news, self._asked, self._answered = threading.Condition(), 0, 0
        self._running = self._closed = self._stuck = False
        self._active, self._idle = {}, {}   # UUID: seconds
        self._decided = {}          # UUID: up to when its time is judged, and the last judgement: one of these two, or None
        self._gpu, self._gpu_peaks, self._held_peak, self._ram_peak = None, {}, 0, 0
        self._begin, self._highest, self._own_s = None, 0, 0.0
        self._quiet_from = {}   # UUID: when the driver last had a record of use
        self.last_used = {}     # UUID: when, by the monotonic clock
        self._listed = has_first_pids()
        self._thread = threading.Thread(target=self._run, name="gua-notebook", daemon=True)
        self._thread.start()
        self.loaded = self.read()

    def is_alive(self):
        """Whether it watches this process: not after close(), and not in a process that was forked off."""
        return not self._closed and self.pid == os.getpid()

    def on_cards(self):
        """Whether this process is on a card, as far as is known."""
        return bool(self._gpu)

    def close(self):
        if not self.is_alive():
            return
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._thread.join(ANSWER_S)

    def read(self):
        """This process now: times are those of the call, the rest comes when the driver has answered."""
        wall, cpu = time.monotonic(), time.process_time() - self._own_s
        if not self.is_alive():
            return Reading(wall, cpu, resident(), None, "this process is not watched", {}, {})
        with self._news:
            self._asked += 1
            wanted = self._asked
            self._news.notify_all()
            # A driver that is stuck is waited for once.
            self._stuck = not self._news.wait_for(lambda: self._answered >= wanted, 0 if self._stuck else ANSWER_S)
            if self._stuck:
                self.note, self._gpu = f"the driver has not answered for {ANSWER_S} s", None
            ram = resident()
            self._ram_peak = max(self._ram_peak, ram)
            self._count_up_to(time.monotonic())
            return Reading(wall, cpu, ram, None if self._gpu is None else dict(self._gpu), self.note,
                           dict(self._active), dict(self._idle))

    def _count_up_to(self, now):
        """Counts the time since the last judgement as that went on, so that a later one only concerns what follows."""
        for uuid, (since, kind) in self._decided.items():
            if kind is not None:
                kind[uuid] += now - since
            self._decided[uuid] = now, kind

    def begin(self):
        with self._news:
            self._highest, self._ram_peak, self._gpu_peaks, self._held_peak = highest_resident(), 0, {}, 0
            self._running = True
        self._begin = self.read()
        self._begin.wall_s, self._begin.cpu_s = time.monotonic(), time.process_time() - self._own_s

    def rest(self):
        """Reads rarely from now on."""
        self._running = False

    def end(self):
        """The span since begin(). A new peak of the whole process is exact; others are those of the readings."""
        self.rest()
        end, highest = self.read(), highest_resident()
        return Span(self._begin, end, max(self._ram_peak, highest if highest > self._highest else 0),
                    dict(self._gpu_peaks), self._held_peak)

    def _run(self):
        with contextlib.ExitStack() as opened:
            found, note = None, ""
            try:
                self._handle = opened.enter_context(cards.opened(*self._options))
            except _lib.GuaError as why:
                note = str(why).replace("nvml_path", "the variable GUA_NVML")
            while not self._closed:
                asked, began = self._asked, time.thread_time()
                if self._handle:
                    found, note = self._read_cards()
                with self._news:
                    self._take(found, note)
                    self._answered, self._stuck = asked, False
                    self._news.notify_all()
                    self._own_s = time.thread_time()
                    cost = self._own_s - began
                    pause = max(INTERVAL_S, cost / MOST_OF_A_CORE) if self._running else BETWEEN_S
                    self._news.wait_for(lambda: self._closed or self._asked > asked, pause)

    def _read_cards(self):
        """{UUID: (bytes, use)} of the cards that this process is on, and ""; or None and why it is unknown."""
        library, found = _lib.lib, {}
        if library.gua_refresh(self._handle):
            return None, _lib.text(library.gua_error(self._handle))
        for index in range(library.gua_card_count(self._handle)):
            if library.gua_card(self._handle, index, ctypes.byref(self._card)):
                continue
            uuid = _lib.text(self._card.uuid)
            if not self._card.processes_known and uuid in self.names:  # it was on this card
                found[uuid] = None, None
            for row in range(self._card.processes if self._card.processes_known else 0):
                if library.gua_card_process(self._handle, index, row, ctypes.byref(self._process)):
                    continue
                if self._process.pid == self.pid:
                    self._listed = True
                    self.names[uuid] = (self._card.index, _lib.number(self._card.mig_index), _lib.text(self._card.name))
                    found[uuid] = _lib.number(self._process.mem_bytes), _lib.number(self._process.sm_pct)
        return (found, "") if found or self._listed else (None, NOT_LISTED)

    def _take(self, found, note):
        """Takes over what the driver said; called with the lock."""
        now = time.monotonic()
        self._ram_peak, self.note = max(self._ram_peak, resident()), note
        self._gpu = None if found is None else {uuid: mem for uuid, (mem, _) in found.items()}
        for uuid, (mem, use) in (found or {}).items():
            peak = self._gpu_peaks.get(uuid, 0)
            self._gpu_peaks[uuid] = None if mem is None or peak is None else max(peak, mem)
            self._judge(uuid, mem, use, now)
        self._held_peak = max(self._held_peak, sum(mem or 0 for mem in (self._gpu or {}).values()))
        for uuid in [uuid for uuid in self._decided if uuid not in (found or {})]:
            del self._decided[uuid]

    def _judge(self, uuid, mem, use, now):
        """Time on a card is judged when the driver has a new record of this process's use, and as idle when it has none
        for QUIET_S. Without records of processes (use is None) it is not judged."""
        if use is None:
            return
        idle = self._idle if mem is None or mem > HELD_BYTES else None
        for times in (self._active, self._idle):
            times.setdefault(uuid, 0.0)
        since, kind = self._decided.setdefault(uuid, (now, idle))
        if use >= ACTIVE_PCT:
            kind = self._active
            self._quiet_from[uuid], self.last_used[uuid] = now, now
        elif use > 0 or now - self._quiet_from.setdefault(uuid, now) >= QUIET_S or kind is None:
            kind = idle
        else:
            return
        if kind is not None:
            kind[uuid] += now - since
        self._decided[uuid] = now, kind

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


@dataclasses.dataclass
class Reading:
    """This process at one moment. `gpu` has its memory by card: {UUID: bytes}, None where the driver does not tell."""
    wall_s: float
    cpu_s: float
    ram: int
    gpu: dict
    active_s: float
    idle_s: float

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
    gpu_peak: dict


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
        self._active_s = self._idle_s = 0.0
        self._decided = {}          # UUID: up to when its time is judged, and whether it was active then
        self._gpu, self._gpu_peaks, self._ram_peak = None, {}, 0
        self.idle_since = time.time()   # when the cards were last used, or the watch began
        self._thread = threading.Thread(target=self._run, name="gua-notebook", daemon=True)
        self._thread.start()
        self.loaded = self.read()

    def is_alive(self):
        """Whether it watches this process: not after close(), and not in a process that was forked off."""
        return not self._closed and self.pid == os.getpid()

    def close(self):
        if not self.is_alive():
            return
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._thread.join(ANSWER_S)

    def read(self):
        """This process now."""
        with self._news:
            self._asked += 1
            wanted = self._asked
            self._news.notify_all()
            # A driver that is stuck is waited for once.
            self._stuck = not self._news.wait_for(lambda: self._answered >= wanted, 0 if self._stuck else ANSWER_S)
            if self._stuck:
                self.note, self._gpu = f"the driver has not answered for {ANSWER_S} s", None
            now, ram = time.monotonic(), resident()
            self._ram_peak = max(self._ram_peak, ram)
            pending = [(now - since, active) for since, active in self._decided.values()]
            return Reading(now, time.process_time(), ram, None if self._gpu is None else dict(self._gpu),
                           self._active_s + sum(length for length, active in pending if active),
                           self._idle_s + sum(length for length, active in pending if not active))

    def begin(self):
        with self._news:
            self._highest, self._ram_peak, self._gpu_peaks = highest_resident(), 0, {}
            self._running = True
        self._begin = self.read()

    def end(self):
        """The span since begin(). A new peak of the whole process is exact; others are those of the readings."""
        self._running = False
        end, highest = self.read(), highest_resident()
        return Span(self._begin, end, max(self._ram_peak, highest if highest > self._highest else 0),
                    dict(self._gpu_peaks))

    def _run(self):
        with contextlib.ExitStack() as opened:
            try:
                self._handle = opened.enter_context(cards.opened(*self._options))
            except _lib.GuaError as why:
                self.note = str(why)
            cost = 0
            while not self._closed:
                asked, began = self._asked, time.thread_time()
                gpu = self._read_cards() if self._handle else None
                with self._news:
                    self._take(gpu)
                    self._answered = asked
                    self._news.notify_all()
                    cost = time.thread_time() - began
                    pause = max(INTERVAL_S, cost / MOST_OF_A_CORE) if self._running else BETWEEN_S
                    self._news.wait_for(lambda: self._closed or self._asked > asked, pause)

    def _read_cards(self):
        """{UUID: (bytes, use)} of the cards that this process is on; None if the driver does not answer."""
        library, found = _lib.lib, {}
        if library.gua_refresh(self._handle):
            self.note = _lib.text(library.gua_error(self._handle))
            return None
        self.note, self._stuck = "", False
        for index in range(library.gua_card_count(self._handle)):
            if library.gua_card(self._handle, index, ctypes.byref(self._card)):
                continue
            for row in range(self._card.processes):
                if library.gua_card_process(self._handle, index, row, ctypes.byref(self._process)):
                    continue
                if self._process.pid == self.pid:
                    uuid = _lib.text(self._card.uuid)
                    self.names[uuid] = (self._card.index, _lib.number(self._card.mig_index), _lib.text(self._card.name))
                    found[uuid] = _lib.number(self._process.mem_bytes), _lib.number(self._process.sm_pct)
        return found

    def _take(self, found):
        """Takes over what the driver said; called with the lock."""
        now = time.monotonic()
        self._ram_peak = max(self._ram_peak, resident())
        self._gpu = None if found is None else {uuid: mem for uuid, (mem, _) in found.items()}
        for uuid, (mem, use) in (found or {}).items():
            self._gpu_peaks[uuid] = max(self._gpu_peaks.get(uuid, 0), mem or 0)
            self._judge(uuid, mem, use, now)
        self._decided = {uuid: decided for uuid, decided in self._decided.items() if uuid in (found or {})}

    def _judge(self, uuid, mem, use, now):
        """Time on a card is judged when the driver has a new record of this process's use, and as idle when it has none
        for QUIET_S. Without records of processes (use is None) it is not judged."""
        if use is None:
            return
        since, _ = self._decided.setdefault(uuid, (now, False))
        if use == 0 and now - since < QUIET_S:
            return
        if use >= ACTIVE_PCT:
            self._active_s += now - since
            self.idle_since = time.time()
        elif mem is None or mem > HELD_BYTES:
            self._idle_s += now - since
        self._decided[uuid] = now, use >= ACTIVE_PCT

"""The cards of this host and the processes on them, now: gua.gpus() and gua.processes()."""
import contextlib
import ctypes
import dataclasses
import os
import pwd

from . import _lib

STATUS = {0: "ok", 1: "lost", 2: "asleep", 3: "denied"}
KINDS = {1: "compute", 2: "graphics", 4: "mps"}


@dataclasses.dataclass(frozen=True)
class GPUProcess:
    """A process on a card. A value that the driver does not report is None."""
    pid: int
    gpu_uuid: str
    gpu_index: int
    kinds: tuple[str, ...]  # of "compute", "graphics", "mps"
    mem_bytes: int | None  # on this card
    sm_pct: float | None  # its own use of the card, 0 to 100
    user: str | None = None  # None: the process has ended, or is of another namespace
    command: str | None = None  # the kernel's name of the program, at most 15 characters


@dataclasses.dataclass(frozen=True)
class GPU:
    """A card. A MIG instance is a card too. A value that the driver does not report is None."""
    index: int  # the driver's number of the physical card
    uuid: str
    name: str
    pci: str
    status: str  # "ok", "lost", "asleep" or "denied"
    mem_total_bytes: int | None
    mem_used_bytes: int | None
    mem_free_bytes: int | None  # total without what is used and what the driver reserves
    util_pct: float | None  # the driver's newest sample, 0 to 100
    power_w: float | None
    energy_j: float | None  # a counter that only grows: use differences
    parent_uuid: str | None  # of a MIG instance; the next three too
    mig_index: int | None
    gpu_instance: int | None
    compute_instance: int | None
    processes: tuple[GPUProcess, ...] | None  # None: the driver does not list them
    temperature_c: float | None = None


@contextlib.contextmanager
def opened(source=None, nvml_path=None, scenario=None):
    """Opens a handle of libgua; raises GuaError with the library's message if that fails."""
    options = _lib.Options(source=_lib.bytes_or_none(source), nvml_path=_lib.bytes_or_none(_lib.driver_path(nvml_path)),
                           scenario=_lib.bytes_or_none(scenario))
    handle = _lib.HANDLE()
    code = _lib.lib.gua_open(ctypes.byref(handle), ctypes.byref(options))
    try:
        check(handle, code)
        yield handle
    finally:
        _lib.lib.gua_close(handle)


def check(handle, code):
    if code:
        raise _lib.GuaError(_lib.text(_lib.lib.gua_error(handle)) or _lib.text(_lib.lib.gua_code_text(code)), code)


def owner_and_name(pid: int) -> tuple[str | None, str | None]:
    """The user and the program of a process. Both files are read without waiting for the process."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().rstrip("\n")
    except OSError:
        return None, None
    try:
        return pwd.getpwuid(uid).pw_name, name
    except KeyError:
        return f"uid:{uid}", name


def read_process(handle, card, card_index, index, own_host):
    process = _lib.CardProcess()
    check(handle, _lib.lib.gua_card_process(handle, card_index, index, ctypes.byref(process)))
    user, command = owner_and_name(process.pid) if own_host else (None, None)
    return GPUProcess(pid=process.pid, gpu_uuid=_lib.text(card.uuid), gpu_index=card.index,
                      kinds=tuple(name for bit, name in KINDS.items() if process.kind & bit),
                      mem_bytes=_lib.number(process.mem_bytes), sm_pct=_lib.number(process.sm_pct), user=user,
                      command=command)


def read_card(handle, index, own_host=True):
    card = _lib.Card()
    check(handle, _lib.lib.gua_card(handle, index, ctypes.byref(card)))
    processes = None
    if card.processes_known:
        processes = tuple(read_process(handle, card, index, i, own_host) for i in range(card.processes))
    return GPU(index=card.index, uuid=_lib.text(card.uuid), name=_lib.text(card.name), pci=_lib.text(card.pci),
               status=STATUS.get(card.status, "unknown"), mem_total_bytes=_lib.number(card.mem_total_bytes),
               mem_used_bytes=_lib.number(card.mem_used_bytes),
               mem_free_bytes=_lib.number(card.mem_free_bytes), util_pct=_lib.number(card.util_pct),
               power_w=_lib.number(card.power_w), energy_j=_lib.number(card.energy_j),
               parent_uuid=_lib.text(card.parent_uuid) or None, mig_index=_lib.number(card.mig_index),
               gpu_instance=_lib.number(card.gpu_instance), compute_instance=_lib.number(card.compute_instance),
               processes=processes, temperature_c=_lib.number(card.temperature_c))


def gpus(source: str | None = None, nvml_path: str | None = None, scenario: str | None = None) -> list[GPU]:
    """The cards of this host with their newest readings, as a list of GPU.

    `source` is "auto" (the default), "nvml" or "sim" (a simulated lab), or several: "nvml,sim". `scenario` is a
    gua-scenario(5) file for the simulated source. `nvml_path` (or the variable GUA_NVML) is a driver library to use
    instead of libnvidia-ml.so.1. Raises GuaError if there is no driver; a driver without cards gives an empty list."""
    with opened(source, nvml_path, scenario) as handle:
        real = "sim" not in (source or "")  # the pids of a simulated lab are nobody's here
        return [read_card(handle, index, real) for index in range(_lib.lib.gua_card_count(handle))]


def processes(source: str | None = None, nvml_path: str | None = None, scenario: str | None = None) -> list[GPUProcess]:
    """The processes on all cards, as a list of GPUProcess; a process on two cards is listed twice."""
    return [process for gpu in gpus(source, nvml_path, scenario) for process in gpu.processes or ()]

"""Access to libgua: finds the library, declares its structs, and turns its codes into exceptions."""
import ctypes
import ctypes.util
import math
import os
import pathlib

SONAME = "libgua.so.0"
MAJOR = "0"

WRONG_USE, FAILED, BUSY, NO_MEMORY = -1, -2, -3, -4


class GuaError(RuntimeError):
    """A call of libgua failed; the text is the library's message. `code` is one of WRONG_USE (-1), FAILED (-2), BUSY
    (-3: try again later) and NO_MEMORY (-4)."""

    def __init__(self, text, code=FAILED):
        super().__init__(text)
        self.code = code


class Struct(ctypes.Structure):
    """A struct that begins with its size, which is set here."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **fields)


class Options(Struct):
    _fields_ = [("size", ctypes.c_size_t), ("source", ctypes.c_char_p), ("nvml_path", ctypes.c_char_p),
                ("scenario", ctypes.c_char_p), ("root", ctypes.c_char_p)]


class Card(Struct):
    _fields_ = [("size", ctypes.c_size_t), ("uuid", ctypes.c_char * 96), ("name", ctypes.c_char * 96),
                ("parent_uuid", ctypes.c_char * 96), ("pci", ctypes.c_char * 32), ("index", ctypes.c_int),
                ("mig_index", ctypes.c_int), ("gpu_instance", ctypes.c_int), ("compute_instance", ctypes.c_int),
                ("status", ctypes.c_int), ("mem_total_bytes", ctypes.c_int64), ("mem_used_bytes", ctypes.c_int64),
                ("util_pct", ctypes.c_double), ("power_w", ctypes.c_double), ("energy_j", ctypes.c_double),
                ("processes", ctypes.c_size_t), ("processes_known", ctypes.c_int), ("mem_free_bytes", ctypes.c_int64),
                ("temperature_c", ctypes.c_double)]


class CardProcess(Struct):
    _fields_ = [("size", ctypes.c_size_t), ("pid", ctypes.c_uint32), ("kind", ctypes.c_uint),
                ("mem_bytes", ctypes.c_int64), ("sm_pct", ctypes.c_double)]


I32, I64, F64, SIZE = ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_size_t
TEXT = ctypes.c_char_p


class TrackerOptions(Struct):
    _fields_ = [("size", SIZE), ("pid", I64), ("interval_s", F64), ("expected_cores", I64), ("uuids", TEXT),
                ("source", TEXT), ("nvml_path", TEXT), ("scenario", TEXT), ("root", TEXT), ("helper", I32)]


class TrackResult(Struct):
    _fields_ = [("size", SIZE), ("elapsed_s", F64), ("exited", I32), ("samples", I64), ("ram_capacity_bytes", I64),
                ("ram_system_max_bytes", I64), ("ram_total_bytes", I64 * 3), ("ram_private_bytes", I64 * 3),
                ("ram_shared_bytes", I64 * 3), ("ram_swap_bytes", I64 * 3), ("core_count", I64),
                ("expected_cores", I64), ("cpu_system_max_pct", F64), ("cpu_system_mean_pct", F64),
                ("cpu_max_pct", F64 * 3), ("cpu_mean_pct", F64 * 3), ("threads_max", I64 * 3), ("user_s", F64 * 3),
                ("system_s", F64 * 3), ("read_bytes", I64), ("written_bytes", I64), ("minor_faults", I64),
                ("major_faults", I64), ("voluntary_switches", I64), ("involuntary_switches", I64),
                ("processes_seen", I64), ("processes_peak", I64), ("gpu_known", I32), ("gpu_note", ctypes.c_char * 256),
                ("gpu_count", I64), ("expected_gpus", I64), ("gpu_capacity_bytes", I64), ("gpu_system_max_bytes", I64),
                ("gpu_ram_bytes", I64 * 3), ("gpu_util_max_pct", F64), ("gpu_util_mean_pct", F64),
                ("gpu_active_s", F64), ("gpu_idle_held_s", F64), ("gpu_context_bytes", I64), ("energy_j", F64),
                ("tree_energy_j", F64), ("cards", SIZE), ("processes", SIZE), ("others", I64), ("warnings", SIZE),
                ("ram_charged_bytes", I64), ("ram_limit_bytes", I64), ("core_limit", I64),
                ("use_instead", ctypes.c_char * 128)]


class TrackSample(Struct):
    _fields_ = [("size", SIZE), ("elapsed_s", F64), ("wall_us", I64), ("ram_bytes", I64 * 3), ("ram_system_bytes", I64),
                ("gpu_ram_bytes", I64 * 3), ("gpu_system_bytes", I64), ("gpu_util_pct", F64), ("threads", I64 * 3),
                ("cpu_pct", F64 * 3), ("cpu_system_pct", F64), ("processes", I64), ("early", I32), ("number", I64)]


class TrackCard(Struct):
    _fields_ = [("size", SIZE), ("uuid", ctypes.c_char * 96), ("name", ctypes.c_char * 96), ("index", I32),
                ("mig_index", I32), ("status", I32), ("mem_total_bytes", I64), ("used_max_bytes", I64),
                ("tree_max_bytes", I64), ("util_max_pct", F64), ("util_mean_pct", F64), ("tree_util_max_pct", F64),
                ("tree_util_mean_pct", F64), ("energy_j", F64), ("tree_energy_j", F64), ("active_s", F64),
                ("idle_held_s", F64), ("tree_processes", SIZE)]


class TrackProcess(Struct):
    _fields_ = [("size", SIZE), ("pid", ctypes.c_uint32), ("ppid", I64), ("uid", I64), ("command", ctypes.c_char * 256),
                ("started_s", F64), ("ended_s", F64), ("user_s", F64), ("system_s", F64), ("ram_total_bytes", I64),
                ("ram_private_bytes", I64), ("rss_bytes", I64), ("gpu_ram_bytes", I64), ("threads_max", I64),
                ("unreadable", I32)]


HANDLE = ctypes.c_void_p

# name: (result, arguments). If a function is missing, the library is too old.
FUNCTIONS = {
    "gua_version": (ctypes.c_char_p, []),
    "gua_code_text": (ctypes.c_char_p, [ctypes.c_int]),
    "gua_open": (ctypes.c_int, [ctypes.POINTER(HANDLE), ctypes.POINTER(Options)]),
    "gua_close": (None, [HANDLE]),
    "gua_error": (ctypes.c_char_p, [HANDLE]),
    "gua_refresh": (ctypes.c_int, [HANDLE]),
    "gua_card_count": (ctypes.c_size_t, [HANDLE]),
    "gua_card": (ctypes.c_int, [HANDLE, ctypes.c_size_t, ctypes.POINTER(Card)]),
    "gua_card_process": (ctypes.c_int, [HANDLE, ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(CardProcess)]),
    "gua_tracker_new": (ctypes.c_int, [ctypes.POINTER(HANDLE), ctypes.POINTER(TrackerOptions)]),
    "gua_tracker_free": (None, [HANDLE]),
    "gua_tracker_error": (ctypes.c_char_p, [HANDLE]),
    "gua_tracker_start": (ctypes.c_int, [HANDLE]),
    "gua_tracker_stop": (ctypes.c_int, [HANDLE]),
    "gua_tracker_result": (ctypes.c_int, [HANDLE, ctypes.POINTER(TrackResult)]),
    "gua_tracker_sample": (ctypes.c_int, [HANDLE, ctypes.c_int64, ctypes.POINTER(TrackSample)]),
    "gua_tracker_card": (ctypes.c_int, [HANDLE, ctypes.c_size_t, ctypes.POINTER(TrackCard)]),
    "gua_tracker_process": (ctypes.c_int, [HANDLE, ctypes.c_size_t, ctypes.POINTER(TrackProcess)]),
    "gua_tracker_warning": (ctypes.c_char_p, [HANDLE, ctypes.c_size_t]),
}


def candidates():
    """Possible paths of the library, best first: only GUA_LIBRARY if it is set; else the library that a wheel carries,
    the build directory of the source tree, the prefix of the installed package, the paths of the linker."""
    chosen = os.environ.get("GUA_LIBRARY")
    if chosen:
        return [chosen]
    package = pathlib.Path(__file__).resolve().parent
    beside = [package / SONAME]
    if (package.parent.parent / "include" / "gua.h").exists():
        beside.append(package.parent.parent / "build" / SONAME)
    beside += [parent / SONAME for parent in package.parents if parent.name in ("lib", "lib64")]
    found = [str(path) for path in beside if path.exists()]
    return found + [SONAME, ctypes.util.find_library("gua")]


def load():
    """Loads the library and declares its functions. Raises ImportError if it is missing or has the wrong version."""
    why = "it is not installed"
    for name in filter(None, candidates()):
        try:
            return declare(ctypes.CDLL(name), name)
        except OSError as error:
            why = str(error)
    raise ImportError(f"the Python package gua needs libgua ({why}). Install gua, or set GUA_LIBRARY to the path "
                      f"of {SONAME}")


def declare(library, name):
    for function, (result, arguments) in FUNCTIONS.items():
        try:
            symbol = getattr(library, function)
        except AttributeError:
            raise ImportError(f"{name} is older than the Python package gua: it has no {function}()") from None
        symbol.restype, symbol.argtypes = result, arguments
    version = library.gua_version().decode()
    if version.split(".")[0] != MAJOR:
        raise ImportError(f"{name} is libgua {version}; the Python package gua needs {MAJOR}.x")
    return library


def number(value):
    """A reading; NAN and -1 mean unknown in the library and become None."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return None if value < 0 else value


def text(value):
    return value.decode("utf-8", "replace")


def values(struct):
    """A struct as a dictionary of numbers, lists of numbers and strings; unknown values are None."""
    found = {}
    for name, _ in struct._fields_[1:]:
        value = getattr(struct, name)
        if isinstance(value, ctypes.Array):
            found[name] = [number(item) for item in value]
        else:
            found[name] = text(value) if isinstance(value, bytes) else number(value)
    return found


def bytes_or_none(value):
    """A path or a name as an argument of the library."""
    return None if value is None else os.fsencode(value)


def driver_path(given=None):
    """The path of the driver's library: as given, else GUA_NVML, else None for the default."""
    return given or os.environ.get("GUA_NVML") or None


lib = load()

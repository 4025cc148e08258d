"""What frameworks say of their memory on cards, and which objects hold it. Nothing is imported or initialised here: a
framework is asked only if the program has imported it and started its GPU part, and its peaks are never reset."""
import dataclasses
import gc
import itertools
import sys
import time
import traceback
import types

ASKED = ("torch", "cupy")           # asked always
ON_REQUEST = ("jax", "tensorflow")  # asked only if the user names them
MOST_ITEMS = 1000   # of a list or dictionary that are looked at
SMALL = 1 << 20     # objects below this many bytes are summed up


@dataclasses.dataclass
class Pool:
    """Memory that a framework manages: in use by the program, and cached: taken from the driver and free."""
    framework: str
    used: int
    cached: int


def torch_pool(torch):
    if not torch.cuda.is_initialized():
        return None
    devices = range(torch.cuda.device_count())
    used = sum(torch.cuda.memory_allocated(device) for device in devices)
    return used, sum(torch.cuda.memory_reserved(device) for device in devices) - used


def cupy_pool(cupy):
    pool = cupy.get_default_memory_pool()
    return pool.used_bytes(), pool.total_bytes() - pool.used_bytes()


def jax_pool(jax):
    bridge = sys.modules.get("jax._src.xla_bridge")
    if not getattr(bridge, "_backends", None):  # asking for the devices would start it
        return None
    stats = [stats for device in jax.local_devices() if (stats := device.memory_stats())]
    used = sum(one["bytes_in_use"] for one in stats)
    return used, sum(one.get("pool_bytes") or one["bytes_in_use"] for one in stats) - used


def tensorflow_pool(tensorflow):
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    if not getattr(context, "_initialized", False):
        return None
    count = len(tensorflow.config.list_logical_devices("GPU"))
    return sum(tensorflow.config.experimental.get_memory_info(f"GPU:{i}")["current"] for i in range(count)), 0


POOLS = {"torch": torch_pool, "cupy": cupy_pool, "jax": jax_pool, "tensorflow": tensorflow_pool}


def pools(more=()):
    """The pools of the frameworks in use. A framework that cannot answer is left out: its memory is then "other"."""
    found = []
    for name in (*ASKED, *more):
        module = sys.modules.get(name)
        try:
            pool = module and POOLS[name](module)
        except Exception:  # of any version of any framework: a cell must not fail because of its measurement
            pool = None
        if pool:
            found.append(Pool(name, *pool))
    return found


def empty_caches():
    """Gives cached memory back to the driver, where the framework can; returns [(framework, exception)] of the others."""
    failed = []
    for name, empty in (("torch", lambda torch: torch.cuda.is_initialized() and torch.cuda.empty_cache()),
                        ("cupy", lambda cupy: cupy.get_default_memory_pool().free_all_blocks())):
        try:
            if module := sys.modules.get(name):
                empty(module)
        except Exception as error:  # of any version of any framework
            failed.append((name, error.with_traceback(None)))  # a traceback would hold the user's frames
    return failed


@dataclasses.dataclass
class Array:
    """An array on a card."""
    nbytes: int
    what: str   # "torch float32 [1024, 1024] on cuda:0"
    key: object  # arrays with the same key share their memory


def is_a(kind, framework, name):
    """Whether a class is one of the framework, or derived from it. Objects are asked for nothing: a lazy module or a proxy
    would do its work then."""
    return any(base.__name__ == name and root(base) == framework for base in kind.__mro__)


def root(kind):
    """The package in which a class was made."""
    module = kind.__module__
    return module.split(".")[0] if isinstance(module, str) else ""


def array_of(thing):
    """The array that an object is, or None."""
    kind = type(thing)
    try:
        if is_a(kind, "torch", "Tensor") and thing.is_cuda:
            storage = thing.untyped_storage() if hasattr(thing, "untyped_storage") else None
            nbytes = storage.nbytes() if storage else thing.nelement() * thing.element_size()
            key = storage.data_ptr() if storage else thing.data_ptr()
            text = f"{str(thing.dtype).removeprefix('torch.')} {list(thing.shape)} on {thing.device}"
            return Array(nbytes, f"torch {text}", ("torch", key))
        if is_a(kind, "cupy", "ndarray"):
            memory = getattr(thing.data, "mem", None)  # the whole of what a part of an array keeps
            nbytes, key = (memory.size, memory.ptr) if memory else (thing.nbytes, thing.data.ptr)
            return Array(nbytes, f"cupy {thing.dtype} {list(thing.shape)} on device {thing.device.id}", ("cupy", key))
    except Exception:  # a deleted storage, a tensor without data
        return None
    return None


def gradient(thing):
    """What the last backward() left at a tensor. Only a leaf has it: others warn when they are asked."""
    try:
        return thing.grad if is_a(type(thing), "torch", "Tensor") and thing.is_leaf else None
    except Exception:
        return None


def items_of(thing):
    """What to look at inside an object: items of lists and dictionaries, parameters of a model, the state of an optimiser,
    attributes of the user's own objects, variables that an exception keeps. The methods are those of Python and the framework, not of the user's class."""
    kind = type(thing)
    if issubclass(kind, dict):
        return dict.values(thing)
    for plain in (list, tuple, set, frozenset):
        if issubclass(kind, plain):
            return plain.__iter__(thing)
    if issubclass(kind, BaseException):
        return itertools.chain.from_iterable(frame.f_locals.values() for frame, _ in traceback.walk_tb(thing.__traceback__)
                                             if frame.f_locals is not frame.f_globals)
    if issubclass(kind, (types.ModuleType, type)):
        return ()
    own = object.__getattribute__(thing, "__dict__") if kind.__dictoffset__ else {}
    if is_a(kind, "torch", "Module"):
        base = next(base for base in kind.__mro__ if base.__name__ == "Module" and root(base) == "torch")
        return itertools.chain(base.parameters(thing), base.buffers(thing))
    if is_a(kind, "torch", "Optimizer"):
        groups = (group.get("params", ()) for group in own.get("param_groups", ()))
        states = (state.values() for state in own.get("state", {}).values())
        return itertools.chain(*groups, *states)
    return () if root(kind) in ("builtins", *ASKED) else own.values()


def inside(thing, depth=2, until=float("inf")):
    """The arrays in an object. Looks no longer than until the moment `until` of the monotonic clock."""
    found = array_of(thing)
    if found:
        yield found
        if (grad := gradient(thing)) is not None and (found := array_of(grad)):
            yield found
        return
    if depth == 0 or time.monotonic() > until:
        return
    try:
        items = list(itertools.islice(items_of(thing), MOST_ITEMS))
    except Exception:  # changed by another thread meanwhile, or without attributes
        return
    for item in items:
        yield from inside(item, depth - 1, until)


def holders(named, most_s=1.0):
    """What each of (name, object) holds on cards, largest first: (name, bytes, number, description of the largest).
    Memory that several names share counts for the first. Takes about `most_s` at most; names after that are left out."""
    seen, found, until = set(), [], time.monotonic() + most_s
    for name, thing in named:
        arrays = [one for one in inside(thing, until=until) if not (one.key in seen or seen.add(one.key))]
        if arrays:
            largest = max(arrays, key=lambda one: one.nbytes)
            found.append((name, sum(one.nbytes for one in arrays), len(arrays), largest.what))
    return sorted(found, key=lambda row: -row[1])


def every_array():
    """All arrays on cards that Python's garbage collector knows: slow."""
    seen, kinds = {}, {}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in kinds:
            kinds[kind] = is_a(kind, "torch", "Tensor") or is_a(kind, "cupy", "ndarray")
        if kinds[kind] and (one := array_of(thing)):
            seen.setdefault(one.key, one)
    return list(seen.values())

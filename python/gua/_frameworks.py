"""What frameworks say of their memory on cards, and which objects hold it. Nothing is imported or initialised here: a
framework is asked only if the program has imported it and started its GPU part, and its peaks are never reset."""
import dataclasses
import gc
import sys

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


def array_of(thing):
    """The array that an object is, or None. Only the object's class and its own attributes are asked."""
    kind = type(thing)
    module = (kind.__module__ or "").split(".")[0]
    try:
        if module == "torch" and getattr(thing, "is_cuda", False) is True:
            storage = thing.untyped_storage() if hasattr(thing, "untyped_storage") else None
            nbytes = storage.nbytes() if storage else thing.nelement() * thing.element_size()
            key = storage.data_ptr() if storage else thing.data_ptr()
            text = f"{str(thing.dtype).removeprefix('torch.')} {list(thing.shape)} on {thing.device}"
            return Array(nbytes, f"torch {text}", ("torch", key))
        if module == "cupy" and hasattr(thing, "nbytes"):
            return Array(thing.nbytes, f"cupy {thing.dtype} {list(thing.shape)} on device {thing.device.id}",
                         ("cupy", thing.data.ptr))
    except Exception:  # a deleted storage, a tensor without data
        return None
    return None


def inside(thing, depth=2):
    """The arrays in an object: itself, the items of lists and dictionaries, the parameters of a model or optimiser."""
    found = array_of(thing)
    if found:
        yield found
        if (gradient := getattr(thing, "__dict__", {}).get("grad")) is not None:
            yield from inside(gradient, 0)
        return
    if depth == 0:
        return
    if isinstance(thing, dict):
        items = list(thing.values())[:MOST_ITEMS]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        items = list(thing)[:MOST_ITEMS]
    elif type(thing).__module__.split(".")[0] not in ("builtins", "torch", "cupy") or hasattr(thing, "parameters"):
        try:
            items = list(thing.parameters()) + list(thing.buffers()) if hasattr(thing, "parameters") \
                else list(vars(thing).values())[:MOST_ITEMS]
        except Exception:
            return
    else:
        return
    for item in items:
        yield from inside(item, depth - 1)


def holders(named):
    """What each of (name, object) holds on cards, largest first: (name, bytes, number, description of the largest).
    Memory that several names share counts for the first."""
    seen, found = set(), []
    for name, thing in named:
        arrays = [one for one in inside(thing) if not (one.key in seen or seen.add(one.key))]
        if arrays:
            largest = max(arrays, key=lambda one: one.nbytes)
            found.append((name, sum(one.nbytes for one in arrays), len(arrays), largest.what))
    return sorted(found, key=lambda row: -row[1])


def every_array():
    """All arrays on cards that Python's garbage collector knows: slow."""
    seen = {}
    for thing in gc.get_objects():
        if type(thing).__module__.split(".")[0] in ASKED and (one := array_of(thing)):
            seen.setdefault(one.key, one)
    return list(seen.values())

"""A stand-in for PyTorch with an allocator that caches, for tests only: tensors live in one card's memory, which the fake
driver reports through the file GPU_MEMORY."""
import os
import sys
import types

CONTEXT = 400 << 20
_used = _reserved = 0
_started = False


def _tell():
    path = os.environ["GPU_MEMORY"]
    with open(path + ".new", "w") as file:
        file.write(str(CONTEXT + _reserved if _started else 0))
    os.rename(path + ".new", path)


class _Storage:
    def __init__(self, nbytes):
        global _used, _reserved, _started
        self.size, _started = nbytes, True
        _used += nbytes
        _reserved = max(_reserved, _used)
        _tell()

    def __del__(self):
        global _used
        _used -= self.size

    def nbytes(self):
        return self.size

    def data_ptr(self):
        return id(self)


class Tensor:
    is_cuda, dtype, device, is_leaf, grad = True, "torch.uint8", "cuda:0", True, None

    def __init__(self, nbytes):
        self._storage, self.shape = _Storage(nbytes), (nbytes,)

    def untyped_storage(self):
        return self._storage

    def __repr__(self):
        return f"tensor of {self.shape[0]} bytes"


def zeros(nbytes, device="cuda"):
    return Tensor(nbytes)


def _empty_cache():
    global _reserved
    _reserved = _used
    _tell()


def _must_not(*_):
    raise AssertionError("gua must not do this")


Tensor.__module__ = "torch"
cuda = types.SimpleNamespace(is_initialized=lambda: _started, device_count=lambda: 1 if _started else _must_not(),
                             memory_allocated=lambda device: _used, memory_reserved=lambda device: _reserved,
                             empty_cache=_empty_cache, init=_must_not, reset_peak_memory_stats=_must_not)
sys.modules["torch.cuda"] = cuda

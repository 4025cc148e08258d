"""A stand-in for TensorFlow, for tests only."""
import sys
import types

context = types.SimpleNamespace(_context=None)
sys.modules["tensorflow.python.eager.context"] = context


def start():
    context._context = types.SimpleNamespace(_initialized=True)


def _devices(kind):
    if context._context is None:
        raise AssertionError("gua must not start TensorFlow")
    return ["GPU:0"]


config = types.SimpleNamespace(list_logical_devices=_devices, experimental=types.SimpleNamespace(
    get_memory_info=lambda device: {"current": 512 << 20, "peak": 1 << 30}))

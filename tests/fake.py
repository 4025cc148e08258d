"""The fake driver library for tests: a scenario, a copy without some symbols, the environment for gua.

    env = fake_driver(tmp_path, SCENARIO, missing=["nvmlDeviceGetMemoryInfo_v2"], clock=clock_file(...))
    gua("daemon", "--once", "--clock", env["FAKENVML_CLOCK"], env=env)
"""
import os
import re
import shutil
import struct

from conftest import FAKE_NVML


def dynstr(elf):
    """Offset and size of the section .dynstr of a 64-bit little-endian ELF file."""
    section_headers, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", elf, section_headers + i * size) for i in range(count)]
    for name, _, _, _, offset, length in sections:
        start = sections[names][4] + name
        if elf[start:elf.index(b"\0", start)] == b".dynstr":
            return offset, length
    raise ValueError("no .dynstr")


def without_symbols(source, target, names):
    """Copies a library so that dlsym() does not find `names`: they are renamed in the copy's string
    table, and the hash table still leads to the old name, so that neither name is found."""
    elf = bytearray(source.read_bytes())
    offset, length = dynstr(elf)
    for name in names:
        at = elf.find(b"\0" + name.encode() + b"\0", offset, offset + length)
        assert at >= 0, f"{source} has no symbol {name}"
        elf[at + 1:at + 2] = b"-"
    target.write_bytes(elf)
    shutil.copymode(source, target)


def fake_driver(tmp_path, scenario, missing=(), clock=None, log=None, name="libnvidia-ml.so.1", **env):
    """Writes the scenario and returns the environment in which gua uses it as its driver. `missing`
    and the scenario's own `missing` lines name symbols that the library shall not have; `clock` is
    a clock file (see conftest.clock_file); `log` a path that gets one line a call. Further keyword
    arguments are variables (a pid for `pid env NAME`, for example)."""
    path = tmp_path / "driver.scenario"
    path.write_text(scenario)
    for line in re.findall(r"^\s*missing\s+([^#\n]+)", scenario, re.M):
        missing = [*missing, *line.split()]
    library = FAKE_NVML
    if missing:
        library = tmp_path / name
        without_symbols(FAKE_NVML, library, missing)
    result = {"GUA_NVML": str(library), "FAKENVML_SCENARIO": str(path)}
    if clock:
        result["FAKENVML_CLOCK"] = str(clock)
    if log:
        result["FAKENVML_LOG"] = str(log)
    return {**result, **{key: str(value) for key, value in env.items()}}


def calls(log):
    """The calls in a log: (scenario seconds, name, card or -1, arguments)."""
    result = []
    for line in log.read_text().splitlines():
        seconds, name, card, *rest = line.split(" ", 3)
        result.append((float(seconds), name, int(card), rest[0] if rest else ""))
    return result

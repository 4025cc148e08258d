"""Scenarios: the fake driver library by its ABI, the truth, and the simulated source against it.

The library is called from a Python of its own, because a program that does what it must not is ended."""
import bisect
import itertools
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from conftest import FAKE_NVML, ROOT, clean_environment, gua
from fake import calls, fake_driver
from truth import Scenario

WALL = 1793606400  # Mon 2026-11-02 08:00:00 UTC
HEAD = """
card 0 uuid GPU-0 name "NVIDIA A100-SXM4-80GB" memory 80GiB reserved 600MiB pci 0000:af:00.0
card 1 uuid GPU-1 name "NVIDIA GeForce RTX 4090" memory 24GiB
process a pid 4242 user alice
process b pid 77 user bob kind both
"""

# What the child has: L (the library), go(seconds), handle(index), buffers and out(value).
PRELUDE = """
import ctypes, json, mmap, os, struct, sys
L = ctypes.CDLL(os.environ["GUA_NVML"])
clock = os.environ.get("FAKENVML_CLOCK")
if clock:
    shared = mmap.mmap(os.open(clock, os.O_RDWR), 32)
def go(seconds):
    struct.pack_into("=q", shared, 8, int((3600 + seconds) * 1e6))
def wall():
    boot, less = struct.unpack_from("=qq", shared, 8)
    return (boot + less) / 1e6
def handle(index):
    device = ctypes.c_void_p()
    code = L.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    return device if code == 0 else code
def number(call, *args, kind=ctypes.c_uint):
    value = kind()
    code = call(*args, ctypes.byref(value))
    return value.value if code == 0 else -code
def text(call, *args, room=96):
    buffer = ctypes.create_string_buffer(room)
    code = call(*args, buffer, room)
    return buffer.value.decode() if code == 0 else code
def samples(device, last=0, kind=1, room=200):
    count, value_type = ctypes.c_uint(room), ctypes.c_int(-1)
    buffer = ctypes.create_string_buffer(b"\\xaa" * 16 * (room + 1))
    code = L.nvmlDeviceGetSamples(device, kind, ctypes.c_ulonglong(last), ctypes.byref(value_type),
                                  ctypes.byref(count), buffer)
    assert code != 0 or value_type.value == 1
    return [struct.unpack_from("<QI", buffer, 16 * i) for i in range(count.value)] if code == 0 else code
def processes(symbol, device, stride, room=10):
    count = ctypes.c_uint(room)
    buffer = ctypes.create_string_buffer(b"\\xaa" * 32 * (room + 1))
    code = L[symbol](device, ctypes.byref(count), buffer)
    if code:
        return [code, count.value]
    assert buffer.raw[stride * count.value:].strip(b"\\xaa\\0") == b"", "written beyond the entries"
    layout = {16: "<IxxxxQ", 24: "<IxxxxQII", 32: "<IxxxxQIIQ"}[stride]
    return [struct.unpack_from(layout, buffer, stride * i) for i in range(count.value)]
def uses(device, last=0, room=100):
    count = ctypes.c_uint(room)
    buffer = ctypes.create_string_buffer(32 * room)
    code = L.nvmlDeviceGetProcessUtilization(device, buffer, ctypes.byref(count), ctypes.c_ulonglong(last))
    if code:
        return [code, count.value]
    return [struct.unpack_from("<IxxxxQIIII", buffer, 32 * i) for i in range(count.value)]
def out(*values):
    print(json.dumps(values))
"""


def sanitizer():
    """A sanitized library in an ordinary Python: its run-time library comes first."""
    if b"__asan_init" not in FAKE_NVML.read_bytes():
        return {}
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return {"LD_PRELOAD": runtime, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


@pytest.fixture
def child(tmp_path, clock_file):
    """child(SCENARIO, CODE): runs CODE on the library; returns what it gave to out(), a list a call.
    Virtual time, unless real=True."""
    def run(scenario, code, real=False, check=True, **options):
        clock = None if real else clock_file(WALL)
        env = fake_driver(tmp_path, scenario, clock=clock, log=tmp_path / "log", **options)
        result = subprocess.run(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(code)], capture_output=True, text=True,
            env=clean_environment(**env, **sanitizer()), timeout=120)
        if not check:
            return result
        assert result.returncode == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]
    return run


# ---- the library ----

def test_identity(child):
    assert child("driver 535.86.05 cuda 12.2\n" + HEAD, """
        out(L.nvmlDeviceGetCount_v2(ctypes.byref(ctypes.c_uint())), text(L.nvmlSystemGetNVMLVersion, room=80))
        out(L.nvmlInit_v2(), number(L.nvmlDeviceGetCount_v2), text(L.nvmlSystemGetDriverVersion, room=80))
        out(number(L.nvmlSystemGetCudaDriverVersion_v2), text(L.nvmlSystemGetDriverVersion, room=3))
        zero, one = handle(0), handle(1)
        out(handle(2), text(L.nvmlDeviceGetUUID, one), text(L.nvmlDeviceGetName, zero), number(L.nvmlDeviceGetIndex, one))
        pci = ctypes.create_string_buffer(68)
        out(L.nvmlDeviceGetPciInfo_v3(zero, pci), pci[:16].decode().rstrip("\\0"), *struct.unpack_from("<III", pci, 16),
            pci[36:68].decode().rstrip("\\0"))
        again = ctypes.c_void_p()
        out(L.nvmlDeviceGetHandleByUUID(b"GPU-1", ctypes.byref(again)), again.value == one.value,
            L.nvmlDeviceGetHandleByUUID(b"GPU-9", ctypes.byref(again)))
        L.nvmlErrorString.restype = ctypes.c_char_p
        out(L.nvmlErrorString(15).decode(), L.nvmlErrorString(4711).decode(), L.nvmlShutdown(), L.nvmlShutdown())
        """) == [
            [1, "12.535.86.05"], [0, 2, "535.86.05"], [12020, 7],
            [2, "GPU-1", "NVIDIA A100-SXM4-80GB", 1],
            [0, "0000:AF:00.0", 0, 0xaf, 0, "00000000:AF:00.0"], [0, True, 6],
            ["GPU is lost", "Unknown Error", 0, 1]]


def test_the_ring_of_samples(child):
    results = child(HEAD + "at 0s load a card 0 sm 30\nat 2s load card 0 util 50\n", f"""
        L.nvmlInit_v2(); card = handle(0)
        go(1); ring = samples(card)
        out([t - {WALL} * 10**6 for t, _ in ring], [v for _, v in ring])
        out(samples(card, last=ring[-1][0]), [t for t, _ in samples(card, last=ring[3][0])] == [t for t, _ in ring[4:]])
        out([v for _, v in samples(card, kind=0)][:1], samples(card, kind=3), len(samples(card, room=2)))
        count, kind = ctypes.c_uint(0), ctypes.c_int()
        out(L.nvmlDeviceGetSamples(card, 1, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), None), count.value)
        go(31); ring = samples(card)
        out(len(ring), ring[0][0] - {WALL} * 10**6, ring[-1][0] - {WALL} * 10**6, ring[0][1])
        rates = (ctypes.c_uint * 2)()
        out(L.nvmlDeviceGetUtilizationRates(card, rates), rates[0])
        """)
    assert results == [
        [[0, 166666, 333333, 500000, 666666, 833333, 1000000], [30] * 7], [6, True],
        [[60000 + 340000 * 30 // 100], 3, 2], [0, 7], [60, 21166666, 31000000, 80], [0, 80]]


def test_memory(child):
    assert child(HEAD + "at 0s hold a card 0 memory 30GiB\n", """
        L.nvmlInit_v2(); card = handle(0)
        one = (ctypes.c_uint64 * 3)()
        out(L.nvmlDeviceGetMemoryInfo(card, one), *[v >> 20 for v in one])
        two = ctypes.create_string_buffer(40)
        struct.pack_into("<I", two, 0, 0x02000028)
        out(L.nvmlDeviceGetMemoryInfo_v2(card, two), *[v >> 20 for v in struct.unpack_from("<QQQQ", two, 8)])
        struct.pack_into("<I", two, 0, 2)
        out(L.nvmlDeviceGetMemoryInfo_v2(card, two))
        """) == [[0, 81920, 51200 - 600, 30720 + 600], [0, 81920, 600, 51200 - 600, 30720], [13]]


LISTED = HEAD + """
process c pid 88 kind mps
at 0s hold a card 0 memory 1GiB
at 0s hold b card 0 memory unknown
at 0s hold c card 0 memory 2B
"""
COMPUTE, NONE, NO_MIG = "nvmlDeviceGetComputeRunningProcesses", 2**64 - 1, 2**32 - 1


def test_process_lists_in_three_layouts(child):
    results = child("layout v3 32\n" + LISTED, f"""
        L.nvmlInit_v2(); card = handle(0)
        out(*[processes("{COMPUTE}" + suffix, card, stride) for suffix, stride in (("", 16), ("_v2", 24), ("_v3", 32))])
        out(processes("nvmlDeviceGetGraphicsRunningProcesses_v2", card, 24))
        out(processes("nvmlDeviceGetMPSComputeRunningProcesses_v2", card, 24))
        out(processes("{COMPUTE}_v2", card, 24, room=1), processes("{COMPUTE}_v2", card, 24, room=0))
        out(processes("{COMPUTE}_v2", handle(1), 24, room=0))
        """)
    assert results == [
        [[[4242, 2**30], [77, NONE]],
         [[4242, 2**30, NO_MIG, NO_MIG], [77, NONE, NO_MIG, NO_MIG]],
         [[4242, 2**30, NO_MIG, NO_MIG, 0], [77, NONE, NO_MIG, NO_MIG, 0]]],
        [[[77, NONE, NO_MIG, NO_MIG]]], [[[88, 2, NO_MIG, NO_MIG]]], [[7, 2], [7, 2]], [[]]]


def test_a_list_that_grows_between_calls(child):
    results = child(LISTED + "at 0s grow card 0 by 3 to 7 until 10s\n", f"""
        L.nvmlInit_v2(); card = handle(0)
        answer = []
        for room in (0, 2, 5, 8, 9):
            answer.append(processes("{COMPUTE}_v2", card, 24, room=room))
        go(10)
        out(answer[:4], [p[0] for p in answer[4]], len(processes("{COMPUTE}_v2", card, 24)))
        """)
    assert results == [[[[7, 2], [7, 5], [7, 8], [7, 9]], [4242, 77, *range(4000000, 4000007)], 2]]


def test_process_utilisation(child):
    results = child(HEAD + """
        at 0s load a card 0 sm 90 on 400ms off 600ms
        at 0s load b card 0 sm 7
        at 20s load b card 0 sm 0
        at 20s load a card 0 sm 0
        at 40s garbage card 0
        at 40s hold a card 0 memory 1GiB
        """, f"""
        L.nvmlInit_v2(); card = handle(0); start = {WALL} * 10**6
        count = ctypes.c_uint(0)
        out(L.nvmlDeviceGetProcessUtilization(card, None, ctypes.byref(count), ctypes.c_ulonglong(0)), count.value)
        go(1.9)
        out([(pid, t - start, sm) for pid, t, sm, *_ in uses(card)], uses(card, room=1))
        out([(pid, t - start, sm) for pid, t, sm, *_ in uses(card, last=start + 1200000)])
        info = struct.pack("<IIQ", 0x01000018, 0, 0) + bytes(8)
        info = ctypes.create_string_buffer(info, 24)
        items = ctypes.create_string_buffer(400)
        out(L.nvmlDeviceGetProcessesUtilizationInfo(card, info), struct.unpack_from("<I", info, 4)[0])
        struct.pack_into("<Q", info, 16, ctypes.addressof(items))
        out(L.nvmlDeviceGetProcessesUtilizationInfo(card, info), *struct.unpack_from("<QII", items, 40)[1:])
        go(31); out(uses(card))
        go(45); out([(pid, sm) for pid, t, sm, *_ in uses(card)])
        """)
    assert results == [
        [7, 100],
        [[[77, 1833333, 7], [4242, 1500000, 39]], [7, 100]],
        [[[77, 1833333, 7], [4242, 1500000, 32]]],
        [7, 2], [0, 4242, 39],
        [[6, 0]],
        [[[0, 50], [4100001, 77], [4100002, 0xfffffff0], [4100003, 66], [4242, 4711]]]]


def test_power_and_energy(child):
    results = child(HEAD.replace("GPU-1 ", "GPU-1 energy no ") + """
        at 0s load a card 0 sm 50
        at 10s energy-reset card 0
        """, """
        L.nvmlInit_v2(); card = handle(0); energy = lambda: number(L.nvmlDeviceGetTotalEnergyConsumption, card, kind=ctypes.c_ulonglong)
        out(number(L.nvmlDeviceGetPowerUsage, card), number(L.nvmlDeviceGetEnforcedPowerLimit, card), energy())
        go(9.5); out(energy())
        go(11); out(energy(), number(L.nvmlDeviceGetTotalEnergyConsumption, handle(1), kind=ctypes.c_ulonglong))
        """)
    assert results == [[230000, 400000, 0], [9.5 * 230000], [230000, -3]]


MIG = """
card 0 uuid GPU-0 name "NVIDIA A100-SXM4-80GB" memory 80GiB
mig 0 index 1 gi 9 ci 0 uuid MIG-1 name "NVIDIA A100-SXM4-80GB MIG 1g.10gb" memory 10GiB
mig 0 index 4 gi 11 ci 2 uuid MIG-4 name "NVIDIA A100-SXM4-80GB MIG 1g.10gb" memory 10GiB
process a pid 4242
at 0s hold a mig 0/4 memory 1GiB
at 0s load a mig 0/4 sm 50
"""


def test_use_that_reads_zero(child):
    results = child(HEAD + """
        at 0s load a card 0 sm 50
        at 0s load b card 0 sm 20
        at 5s zero-use card 0 until 15s
        at 20s zero-use card 0 call nvmlDeviceGetProcessUtilization
        """, """
        def newer():
            items = ctypes.create_string_buffer(400)
            info = ctypes.create_string_buffer(struct.pack("<IIQQ", 0x01000018, 10, 0, ctypes.addressof(items)), 24)
            assert L.nvmlDeviceGetProcessesUtilizationInfo(card, info) == 0
            return [struct.unpack_from("<7I", items, 8 + 40 * i) for i in range(struct.unpack_from("<I", info, 4)[0])]
        L.nvmlInit_v2(); card = handle(0)
        for t in (4, 10, 16, 30):
            go(t); out([(pid, *rest) for pid, _, *rest in uses(card)], [use[:3] for use in newer()])
        """)
    true = [[77, 20, 10, 5, 4], [4242, 50, 25, 0, 0]], [[77, 20, 10], [4242, 50, 25]]
    zero = [[77, 0, 0, 0, 0], [4242, 0, 0, 0, 0]], [[77, 0, 0], [4242, 0, 0]]
    assert results == [list(true), list(zero), list(true), [zero[0], true[1]]]


def test_power_that_reads_too_much(child):
    results = child(HEAD.replace("pci", "idle-power 60W max-power 450W pci") + """
        at 5s power-factor card 0 10 until 15s
        """, """
        L.nvmlInit_v2(); card = handle(0)
        for t in (4, 10, 16):
            go(t); out(number(L.nvmlDeviceGetPowerUsage, card), number(L.nvmlDeviceGetEnforcedPowerLimit, card),
                       number(L.nvmlDeviceGetTotalEnergyConsumption, card, kind=ctypes.c_ulonglong))
        """)
    assert results == [[60000, 450000, 240000], [600000, 450000, 600000], [60000, 450000, 960000]]


def test_the_ring_of_power_is_short_and_fine(child):
    results = child(HEAD + "at 0s load card 1 util 50\nat 10s load card 1 util 100\n", f"""
        L.nvmlInit_v2(); card = handle(1); start = {WALL} * 10**6
        go(10.05); ring = samples(card, kind=0); times = [t - start for t, _ in ring]
        out(len(ring), times[0], times[-1], {{b - a for a, b in zip(times, times[1:])}} == {{20000}})
        out(ring[-4][1], ring[-3][1], len(samples(card)), len(samples(card, kind=0, last=start + 10 * 10**6)))
        out(samples(card, kind=0, last=start + 10040000), samples(card, kind=3))
        """)
    assert results == [[119, 7680000, 10040000, True], [230000, 400000, 60, 2], [6, 3]]


def test_garbage_in_the_rings(child):
    results = child(HEAD + "at 0s load card 1 util 50\nat 10s garbage card 1\n", """
        L.nvmlInit_v2(); card = handle(1)
        go(9)
        for kind in (0, 1, 2):
            before = samples(card, kind=kind)
            out(sorted(before) == before)
        for kind in (0, 1, 2):
            go(20); ring = samples(card, kind=kind); times = [t for t, _ in ring if t]
            out(len(ring), len(times), sorted(times) == times, len(set(times)) == len(times), {v for t, v in ring if t} == {(230000, 50, 25)[kind]})
        out(samples(card, last=ring[-1][0] + 10**6), len(samples(card, last=max(times) - 1)))
        """)
    assert results == [[True]] * 3 + [[120, 119, False, True, True]] + [[61, 60, False, True, True]] * 2 + [[6, 2]]


def test_stamps_since_boot(child):
    results = child("stamps boot\n" + HEAD + "at 0s load a card 0 sm 50\nat 20s garbage card 0\n", """
        L.nvmlInit_v2(); card = handle(0); boot = 3600 * 10**6
        go(2); out([t - boot for t, _ in samples(card)][-2:], [t - boot for t, _ in samples(card, last=boot + 1800000)])
        out([(pid, t - boot, sm) for pid, t, sm, *_ in uses(card)], uses(card, last=boot + 2 * 10**6))
        out([sm for _, _, sm, *_ in uses(card, last=boot + 1900000)], samples(card, last=boot + 2 * 10**6))
        go(22); out(max(t for _, t, *_ in uses(card)) - boot)
        """)
    assert results == [[[1833333, 2000000], [1833333, 2000000]], [[[4242, 2000000, 50]], [6, 0]], [[50], 6], [22000000]]


ACCOUNTS = """
        def accounts(device, room=200):
            count, pids = ctypes.c_uint(room), (ctypes.c_uint * room)()
            code = L.nvmlDeviceGetAccountingPids(device, ctypes.byref(count), pids if room else None)
            return sorted(pids[:count.value]) if code == 0 else [code, count.value]
        def account(device, pid):
            stats = ctypes.create_string_buffer(b"\\xaa" * 64)
            code = L.nvmlDeviceGetAccountingStats(device, pid, stats)
            assert stats.raw[56:60] == b"\\xaa" * 4
            return list(struct.unpack_from("<IIQQQI", stats)) if code == 0 else code
        L.nvmlInit_v2(); card = handle(0)
"""


def test_accounting_mode(child):
    results = child(HEAD + """
        accounting on
        at 2s hold a card 0 memory 3GiB
        at 2s load a card 0 sm 50
        at 3s hold a card 0 memory 2GiB
        at 5s hold b card 0 memory unknown
        at 8s release a card 0
        at 20s hold a card 0 memory 1GiB
        at 30s exit b
        """, ACCOUNTS + f"""
        out(number(L.nvmlDeviceGetAccountingMode, card), number(L.nvmlDeviceGetAccountingBufferSize, card), accounts(card, 0))
        go(6); out(accounts(card, 0), accounts(card, 1), accounts(card), account(card, 4242), account(card, 77)[2:])
        out(account(card, 5), accounts(handle(1)))
        go(10); out(accounts(card), account(card, 4242))
        go(25); out(accounts(card), account(card, 4242))
        go(31); out(accounts(card), account(card, 77)[3:])
        """)
    start, gib = WALL * 10**6, 2**30
    assert results == [
        [1, 4000, []],
        [[7, 2], [7, 2], [77, 4242], [50, 25, 3 * gib, 0, start + 2 * 10**6, 1], [2**64 - 1, 0, start + 5 * 10**6, 1]],
        [6, []],
        [[77, 4242], [50, 25, 3 * gib, 6000, start + 2 * 10**6, 0]],
        [[77, 4242], [0, 0, gib, 0, start + 20 * 10**6, 1]],
        [[77, 4242], [25000, start + 5 * 10**6, 0]]]


def test_accounting_mode_forgets_the_oldest_and_can_be_off(child):
    jobs = "".join(f"process p{i} pid {1000 + i}\nat {i}s hold p{i} card 0 memory 1MiB\nat {i}s exit p{i}\n"
                   for i in range(130))
    results = child("accounting on\n" + HEAD + jobs + "at 0s hold a card 0 memory 1GiB\n", ACCOUNTS + """
        go(200); pids = accounts(card); out(len(pids), pids[:2], pids[-1], account(card, 1001))
        """)
    assert results == [[129, [1002, 1003], 4242, 6]]
    mig = HEAD + "mig 0 index 0 gi 1 ci 0 uuid M name M memory 10GiB\n"
    for scenario in (HEAD, "accounting on\n" + mig):
        assert child(scenario, ACCOUNTS + """
            out(number(L.nvmlDeviceGetAccountingMode, card), accounts(card), account(card, 4242))
            """.replace("\n    ", "\n")) == [[0, [3, 200], 3]]


def test_accounting_of_processes_with_pids_from_files(child, tmp_path):
    (tmp_path / "pids").mkdir()
    results = child("accounting on\n" + HEAD + """
        process one pid file one
        process two pid file two
        at 1s hold one card 0 memory 1GiB
        at 2s exit one
        at 3s hold two card 0 memory 1GiB
        at 5s exit two
        """, ACCOUNTS + """
        def write(name, text):
            with open(os.path.join(os.environ["FAKENVML_PIDS"], name), "w") as file:
                file.write(text)
        go(10); out(accounts(card))
        write("two", "50"); out(accounts(card), account(card, 50)[3])
        write("one", "50"); out(accounts(card), account(card, 50)[3])  # an older entry of the pid
        """, FAKENVML_PIDS=tmp_path / "pids")
    assert results == [[[]], [[50], 2000], [[50], 2000]]


def test_mig(child):
    results = child(MIG, f"""
        L.nvmlInit_v2(); card = handle(0)
        current, pending = ctypes.c_uint(9), ctypes.c_uint(9)
        out(L.nvmlDeviceGetMigMode(card, ctypes.byref(current), ctypes.byref(pending)), current.value,
            number(L.nvmlDeviceGetMaxMigDeviceCount, card))
        def instance(i):
            device = ctypes.c_void_p()
            code = L.nvmlDeviceGetMigDeviceHandleByIndex(card, i, ctypes.byref(device))
            return device if code == 0 else code
        found = [instance(i) for i in range(7)]
        out([f for f in found if isinstance(f, int)])
        four = found[4]
        out(text(L.nvmlDeviceGetUUID, four), number(L.nvmlDeviceGetIndex, four), number(L.nvmlDeviceGetGpuInstanceId, four),
            number(L.nvmlDeviceGetComputeInstanceId, four), number(L.nvmlDeviceIsMigDeviceHandle, four),
            number(L.nvmlDeviceIsMigDeviceHandle, card))
        parent = ctypes.c_void_p()
        out(L.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(four, ctypes.byref(parent)), parent.value == card.value)
        out(processes("{COMPUTE}_v2", four, 24), processes("{COMPUTE}_v2", found[1], 24), processes("{COMPUTE}_v2", card, 24))
        attributes = ctypes.create_string_buffer(40)
        out(L.nvmlDeviceGetAttributes_v2(four, attributes), struct.unpack_from("<Q", attributes, 32)[0])
        out(samples(card), samples(four), uses(card)[0], number(L.nvmlDeviceGetPowerUsage, card), number(L.nvmlDeviceGetPowerUsage, four),
            L.nvmlDeviceGetUtilizationRates(card, (ctypes.c_uint * 2)()))
        """)
    assert results == [
        [0, 1, 7], [[6, 6, 6, 6, 6]], ["MIG-4", 4, 11, 2, 1, 0], [0, True],
        [[[4242, 2**30, 11, 2]], [], [[4242, 2**30, 11, 2]]], [0, 10240], [3, 3, 3, 230000, -3, 3]]


GPM = """
        def supported(device):
            support = struct.pack("<II", 1, 7)
            support = ctypes.create_string_buffer(support, 8)
            code = L.nvmlGpmQueryDeviceSupport(device, support)
            return struct.unpack_from("<I", support, 4)[0] if code == 0 else -code
        def new():
            sample = ctypes.c_void_p()
            assert L.nvmlGpmSampleAlloc(ctypes.byref(sample)) == 0
            return sample
        def metrics(first, second, *ids, version=1):
            get = ctypes.create_string_buffer(b"\\xaa" * (24 + 40 * (len(ids) + 1)))
            struct.pack_into("<IIQQ", get, 0, version, len(ids), first.value, second.value)
            for i, number in enumerate(ids):
                struct.pack_into("<I", get, 24 + 40 * i, number)
            code = L.nvmlGpmMetricsGet(get)
            assert get.raw[24 + 40 * len(ids):][:40] == b"\\xaa" * 40
            found = [struct.unpack_from("<Id", get, 28 + 40 * i) for i in range(len(ids))] if code == 0 else code
            return [value if good == 0 else -good for good, value in found] if code == 0 else code
        L.nvmlInit_v2(); card = handle(0); first, second = new(), new()
"""


def test_gpm(child):
    results = child(HEAD.replace("pci", "gpm yes sm-active 40 pci") + """
        at 0s load a card 0 sm 37
        at 10s load a card 0 sm 90 on 500ms off 500ms
        """, GPM + """
        out(supported(card), supported(handle(1)), L.nvmlGpmSampleGet(handle(1), first))
        out(metrics(first, second, 1))
        go(1.234567); L.nvmlGpmSampleGet(card, first)
        go(1.334566); L.nvmlGpmSampleGet(card, second); out(metrics(first, second, 1, 3))
        go(1.334567); L.nvmlGpmSampleGet(card, second); out(metrics(first, second, 1, 2, 3), metrics(second, first, 1))
        go(20); L.nvmlGpmSampleGet(card, first); go(320); L.nvmlGpmSampleGet(card, second)
        out(metrics(first, second, 1), metrics(first, second, 1, version=2), L.nvmlGpmMigSampleGet(card, 1, first))
        L.nvmlGpmSampleFree(first); L.nvmlGpmSampleFree(second); out(L.nvmlShutdown())
        """)
    assert results == [[1, 0, 3], [2], [[-21, -3]], [[37, 14.8, -3], [-21]], [[45], 25, 3], [0]]


def test_gpm_of_instances_and_what_it_breaks(child):
    results = child(HEAD.replace("pci", "gpm breaks pci") + """
        mig 0 index 0 gi 7 ci 0 uuid M0 name M memory 10GiB
        mig 0 index 2 gi 9 ci 0 uuid M2 name M memory 10GiB sm-active 10
        mig 0 index 3 gi 9 ci 1 uuid M3 name M memory 10GiB
        mig 0 index 4 gi 11 ci 0 uuid M4 name M memory 10GiB gpm no
        at 0s load a mig 0/2 sm 30
        at 0s load b mig 0/3 sm 20
        """, GPM + """
        def instance(index):
            device = ctypes.c_void_p()
            L.nvmlDeviceGetMigDeviceHandleByIndex(card, index, ctypes.byref(device))
            return device
        def memory(device):
            v2 = ctypes.create_string_buffer(struct.pack("<I", 0x02000028), 40)
            return L.nvmlDeviceGetMemoryInfo(device, (ctypes.c_ulonglong * 3)()), L.nvmlDeviceGetMemoryInfo_v2(device, v2)
        out(supported(card), supported(instance(2)), supported(instance(4)), L.nvmlGpmSampleGet(card, first), memory(instance(0)))
        out(*(L.nvmlGpmMigSampleGet(card, gi, first) for gi in (1, 11, 9)))
        go(2); L.nvmlGpmMigSampleGet(card, 9, second); out(metrics(first, second, 1, 2))
        out(memory(instance(0)), memory(card), memory(handle(1)))
        L.nvmlGpmSampleGet(instance(2), first); out(metrics(first, second, 1))
        go(4); L.nvmlGpmSampleGet(instance(2), second); out(metrics(first, second, 1))
        L.nvmlGpmSampleFree(first); L.nvmlGpmSampleFree(second)
        L.nvmlShutdown(); L.nvmlInit_v2(); card = handle(0); out(memory(instance(0)))
        """)
    assert results == [[1, 1, 0, 3, [0, 0]], [6, 3, 0], [[50, 5]], [[19, 19], [0, 0], [0, 0]], [2], [[30]], [[0, 0]]]


@pytest.mark.parametrize("code, says", [
    ("L.nvmlGpmSampleFree(first); L.nvmlShutdown()", "1 GPM samples are not freed"),
    ("L.nvmlGpmSampleFree(first); L.nvmlGpmSampleFree(first)", "never given or is freed"),
    ("L.nvmlGpmSampleGet(card, ctypes.c_void_p(4096))", "never given or is freed"),
])
def test_gpm_samples_that_are_misused(child, code, says):
    run = child(HEAD, GPM + "        " + code, check=False)
    assert run.returncode != 0 and says in run.stderr


def test_a_card_that_is_lost_and_returns(child):
    results = child(HEAD + "at 10s lost card 1 code 15 until 20s\n", """
        L.nvmlInit_v2(); card = handle(1); go(11)
        out(number(L.nvmlDeviceGetPowerUsage, card), handle(1), handle(0) is not None)
        go(21); again = handle(1)
        out(again.value != card.value, number(L.nvmlDeviceGetPowerUsage, again))
        """)
    assert results == [[-15, 15, True], [True, 60000]]


def test_a_card_that_vanishes(child):
    results = child(HEAD + "at 10s vanish card 0 until 20s\n", """
        L.nvmlInit_v2(); go(11); out(number(L.nvmlDeviceGetCount_v2), handle(0))
        L.nvmlShutdown(); L.nvmlInit_v2()
        out(number(L.nvmlDeviceGetCount_v2), text(L.nvmlDeviceGetUUID, handle(0)))
        go(21); L.nvmlShutdown(); L.nvmlInit_v2(); out(number(L.nvmlDeviceGetCount_v2))
        """)
    assert results == [[2, 15], [1, "GPU-1"], [2]]


def test_a_card_that_is_woken_is_in_the_log(child, tmp_path):
    child(HEAD + "at 10s asleep card 0\n", """
        L.nvmlInit_v2(); zero, one = handle(0), handle(1); go(11)
        number(L.nvmlDeviceGetPowerUsage, one); number(L.nvmlDeviceGetPowerUsage, zero); handle(0)
        """)
    assert [(seconds, card) for seconds, name, card, _ in calls(tmp_path / "log") if name == "woken"] == [(11, 0)] * 2


@pytest.mark.parametrize("code, says", [
    ("L.nvmlDeviceGetPowerUsage(None, None)", "nvmlDeviceGetPowerUsage was called with a NULL handle"),
    ("L.nvmlDeviceGetPowerUsage(ctypes.c_void_p(4096), None)", "a handle that was never given"),
    ("card = handle(0); L.nvmlShutdown(); L.nvmlInit_v2(); number(L.nvmlDeviceGetPowerUsage, card)",
     "a handle from before nvmlShutdown"),
    ("card = handle(1); go(11); number(L.nvmlDeviceGetPowerUsage, card); go(21); number(L.nvmlDeviceGetPowerUsage, card)",
     "a handle from before its card was lost"),
    ("number(L.nvmlDeviceGetBrand, handle(0))", "nvmlDeviceGetBrand was called and is missing"),
])
def test_what_a_program_must_never_do_ends_it(child, code, says):
    # The missing symbol is taken from the scenario after the copy was made: as a bug would call it.
    scenario = HEAD + "at 10s lost card 1 until 20s\n  missing\tnvmlDeviceGetBrand\n".replace("missing", '"missing"')
    run = child(scenario, "L.nvmlInit_v2()\n" + code, check=False)
    assert run.returncode != 0 and says in run.stderr


def test_missing_symbols_are_not_found(child):
    assert child(HEAD + "missing nvmlDeviceGetMemoryInfo_v2 # by the scenario\n", """
        out([hasattr(L, name) for name in ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetSamples", "nvmlDeviceGetMemoryInfo")])
        """, missing=["nvmlDeviceGetSamples"]) == [[[False, False, True]]]


def test_faults_of_calls(child, tmp_path):
    results = child(HEAD + """
        at 0s fail nvmlInit_v2 code 18 until 1s
        at 5s fail nvmlDeviceGetP* card 0 code 999 until 6s
        at 5s fail nvmlDeviceGetHandleByIndex_v2 card 1 code 4
        at 7s slow nvmlDeviceGetPowerUsage 1500ms until 8s
        """, """
        out(L.nvmlInit_v2()); go(1); out(L.nvmlInit_v2()); zero, one = handle(0), handle(1)
        go(5.5); out(number(L.nvmlDeviceGetPowerUsage, zero), number(L.nvmlDeviceGetPowerUsage, one), handle(1))
        go(7); out(number(L.nvmlDeviceGetPowerUsage, zero), struct.unpack_from("=q", shared, 8)[0] - 3600 * 10**6)
        """)
    assert results == [[18], [0], [-999, 60000, 4], [60000, 8500000]]
    log = calls(tmp_path / "log")
    assert [(name, card) for _, name, card, _ in log[2:4]] == [("nvmlDeviceGetHandleByIndex_v2", -1)] * 2
    assert [entry for entry in log if entry[1] == "nvmlDeviceGetPowerUsage"] == [
        (5.5, "nvmlDeviceGetPowerUsage", 0, ""), (5.5, "nvmlDeviceGetPowerUsage", 1, ""),
        (7.0, "nvmlDeviceGetPowerUsage", 0, "")]


def test_a_hanging_call_in_real_time_returns_when_it_is_let_go(child, tmp_path):
    results = child(HEAD + "at 0s hang nvmlDeviceGetPowerUsage until 400ms\nat 0s hang nvmlDeviceGetBrand\n", """
        import threading, time
        begin = time.monotonic()
        L.nvmlInit_v2(); card = handle(0)
        out(number(L.nvmlDeviceGetPowerUsage, card), time.monotonic() - begin >= 0.4)
        ends = []
        thread = threading.Thread(target=lambda: ends.append(number(L.nvmlDeviceGetBrand, card)))
        thread.start()
        out(number(L.nvmlDeviceGetPowerUsage, card), ends)  # others go on
        open(os.environ["FAKENVML_RELEASE"], "w").close()
        thread.join(60)
        out(ends)
        """, real=True, FAKENVML_RELEASE=tmp_path / "release")
    assert results == [[60000, True], [60000, []], [[14]]]


def test_a_program_can_end_while_a_call_hangs(child, tmp_path):
    run = child(HEAD + "at 0s hang nvmlDeviceGetBrand\n", """
        import threading, time
        L.nvmlInit_v2(); card = handle(0)
        threading.Thread(target=number, args=(L.nvmlDeviceGetBrand, card), daemon=True).start()
        while "Brand" not in open(os.environ["FAKENVML_LOG"]).read():
            time.sleep(0.01)
        number(L.nvmlDeviceGetPowerUsage, card)
        """, check=False, FAKENVML_COST=tmp_path / "cost")
    assert (run.returncode, run.stderr) == (0, "")
    assert re.fullmatch(r"calls 4 cpu_us \d+\n", (tmp_path / "cost").read_text())


def test_xid_events(child, tmp_path):
    results = child(HEAD + "at 5s xid 13 card 0\nat 10s xid 79 card 1\n", """
        L.nvmlInit_v2(); one = handle(1)
        events, data, types = ctypes.c_void_p(), ctypes.create_string_buffer(32), ctypes.c_ulonglong()
        L.nvmlEventSetCreate(ctypes.byref(events))
        L.nvmlDeviceGetSupportedEventTypes(one, ctypes.byref(types))
        out(L.nvmlDeviceRegisterEvents(one, ctypes.c_ulonglong(1 << 40), events),
            L.nvmlDeviceRegisterEvents(one, ctypes.c_ulonglong(8 & types.value), events))
        out(L.nvmlEventSetWait_v2(events, data, 10))
        go(11)
        out(L.nvmlEventSetWait_v2(events, data, 10), struct.unpack_from("<Q", data, 0)[0] == one.value, *struct.unpack_from("<QQ", data, 8))
        out(L.nvmlEventSetWait_v2(events, data, 10), L.nvmlEventSetFree(events))
        """)
    assert results == [[3, 0], [10], [0, True, 8, 79], [10, 0]]
    assert [name for _, name, _, _ in calls(tmp_path / "log")].count("nvmlEventSetWait_v2") == 3


def test_clock_steps_and_suspends(child):
    results = child("start 2026-11-02T09:00:00Z\n" + HEAD + "at 10s step -1h\nat 20s suspend 2h\n", f"""
        L.nvmlInit_v2(); card = handle(0); out(wall() - {WALL})
        go(11); ring = samples(card); out(wall() - {WALL}, sorted(ring) == ring)
        go(21); samples(card); out(*[v / 1e6 for v in struct.unpack_from("=qqq", shared, 8)][::2], wall() - {WALL})
        """)
    assert results == [[3600.0], [11.0, False], [3600 + 7200 + 21.0, 7200.0, 7200 + 21.0]]


def test_real_pids_and_real_time(child):
    results = child(HEAD + "process live pid env THE_PID\nat 0s hold live card 0 memory 1GiB\n", f"""
        import time
        before = time.time()
        L.nvmlInit_v2(); card = handle(0)
        out(processes("{COMPUTE}_v2", card, 24)[0][0]); time.sleep(0.4)
        first = samples(card); time.sleep(0.2); second = samples(card)
        out(second[:len(first)] == first, all(before - 0.1 < t / 1e6 < time.time() + 0.1 for t, _ in second), len(second) > 2)
        """, real=True, THE_PID=4711)
    assert results == [[4711], [True, True, True]]
    late = child(HEAD, "L.nvmlInit_v2(); out(len(samples(handle(0))))", real=True,
                 FAKENVML_START=int(__import__("time").time()) - 3600)
    assert late == [[60]]


def test_pids_from_files(child, tmp_path):
    """A process is not there before its file is; each life reads the file once; pids may repeat."""
    (tmp_path / "pids").mkdir()
    results = child(HEAD + """
        process job pid file job
        process next pid file next
        at 0s hold job card 0 memory 1GiB
        at 0s load job card 0 sm 40
        at 20s exit job
        at 20s hold next card 0 memory 2GiB
        at 40s load job card 0 sm 30
        """, f"""
        pids = os.environ["FAKENVML_PIDS"]
        def write(name, text):
            with open(os.path.join(pids, name), "w") as file:
                file.write(text)
        def see():
            memory = (ctypes.c_ulonglong * 3)()
            L.nvmlDeviceGetMemoryInfo(card, memory)
            records = uses(card)
            out([pid for pid, *_ in processes("{COMPUTE}_v2", card, 24)],
                6 if records[0] == 6 else [use[0] for use in records],
                (memory[2] >> 20) - 600, samples(card)[-1][1])
        L.nvmlInit_v2(); card = handle(0); go(5); see()
        write("job", ""); see()
        write("job", "1234\\n"); see()
        write("job", "99"); go(6); see()
        write("next", "1234"); go(35); see()
        go(45); see()
        """, FAKENVML_PIDS=tmp_path / "pids")
    assert results == [
        [[], 6, 0, 40],  # the card is busy all the same
        [[], 6, 0, 40],
        [[1234], [1234], 1024, 40],
        [[1234], [1234], 1024, 40],
        [[1234], 6, 2048, 0],
        [[1234], [99], 2048, 30]]
    run = child("process job pid file job\n", "L.nvmlInit_v2()", check=False)
    assert "process 'job' needs the variable FAKENVML_PIDS" in run.stderr


# ---- the truth ----

def test_truth_by_hand():
    truth = Scenario("""
        card 0 uuid GPU-0 name "a # b" memory 80GiB idle-power 100W max-power 200W  # a comment
        card 1 uuid GPU-1 name B memory 80GiB
        process a pid 1 user alice command "python \\"x\\" started"
        process b pid 2 user bob
        process x pid 3 user root kind graphics
        at 0s hold a card 0 memory 8GiB
        at 10s load a card 0 sm 50 on 500ms off 500ms
        at 20s load a card 0 sm 9
        at 30s exit a
        at 35s hold b card 0 memory 100MB
        at 0s hold x card 1 memory 4GiB
        at 12s lost card 1 until 13s
        """).truth(0, 60, lists=range(0, 60, 10))
    assert truth.cards == {
        "GPU-0": {"active": 5, "idle_held": 25, "truly_idle": 30, "unobserved": 0},
        "GPU-1": {"active": 0, "idle_held": 0, "truly_idle": 59, "unobserved": 1}}
    assert truth.users == {"alice": {"active": 5, "idle_held": 25, "truly_idle": 0, "squatting": 0},
                           "bob": {"active": 0, "idle_held": 0, "truly_idle": 20, "squatting": 0}}
    assert sum(truth.energy_mj["GPU-0"].values()) == pytest.approx(60 * 100_000 + 5 * 50_000 + 10 * 9_000)
    assert truth.presence("bob") == 20


def test_truth_sees_exits_squatters_and_rounds():
    scenario = Scenario("""
        repeat 30s
        card 0 uuid GPU-0 name A memory 80GiB
        process a pid 1 user alice
        process b pid 2 user bob
        at 0s hold a card 0 memory 8GiB
        at 0s hold b card 0 memory unknown
        at 0s load a card 0 sm 80
        at 25s exit a
        """)
    lists = range(0, 60, 10)
    late = scenario.truth(0, 60, lists)
    assert late.users["bob"] == {"active": 0, "idle_held": 10, "truly_idle": 0, "squatting": 50}
    assert late.users["alice"] == {"active": 50, "idle_held": 10, "truly_idle": 0, "squatting": 0}
    assert scenario.truth(0, 60, lists, exits=True).presence("alice") == 50
    assert scenario.truth(27, 31, lists).cards["GPU-0"] == {
        "active": 1, "idle_held": 3, "truly_idle": 0, "unobserved": 0}


def random_scenario(seed):
    """Cards and processes that do anything, at times that are and are not sample times."""
    dice = random.Random(seed)
    lines = ["start 2026-11-02T08:00:00Z"]
    lines += [f"card {i} uuid GPU-{i} name C{i} memory 80GiB idle-power {dice.randint(20, 60)}W" for i in range(3)]
    lines += [f"process p{i} pid {100 + i} user u{i % 3} kind {dice.choice(['compute', 'both', 'graphics', 'mps'])}"
              for i in range(6)]
    for _ in range(60):
        at, card, process = dice.randrange(0, 600_000, 10), dice.randrange(3), dice.randrange(6)
        lines.append(f"at {at}ms " + dice.choice([
            f"hold p{process} card {card} memory {dice.choice(['unknown', '50MB', '60MB', '8GiB'])}",
            f"load p{process} card {card} sm {dice.choice([0, 4, 9, 10, 60])}",
            f"load p{process} card {card} sm 50 on {dice.randint(1, 9)}00ms off {dice.randint(1, 9)}00ms",
            f"load card {card} util {dice.choice([0, 0, 12])}",
            f"release p{process} card {card}", f"exit p{process}"]))
    return "\n".join(lines) + "\n"


def means(scenario, card, seconds):
    """[(end, length, utilisation x time)] of every sample: the sixths of a second."""
    ends = [k * 10**6 // 6 for k in range(seconds * 6 + 1)]
    sums = [0] * len(ends)
    for begin, end, stage in scenario.stretches(seconds * 10**6):
        pct = min(100, sum(stage.use(card, begin).values()))
        k = bisect.bisect_right(ends, begin)
        while begin < end:
            cut = min(end, ends[k])
            sums[k] += pct * (cut - begin)
            begin, k = cut, k + 1
    first = [sum(stage.use(card, 0).values()) for _, _, stage in itertools.islice(scenario.stretches(1), 1)]
    return [(0, 1, first[0])] + [(ends[k], ends[k] - ends[k - 1], sums[k]) for k in range(1, len(ends))]


@pytest.mark.same_path
@pytest.mark.parametrize("seed", range(6))
def test_the_engine_agrees_with_the_truth(tmp_path, child, seed):
    """Every sample and every list of the library, against Python's reading of the same text."""
    text = random_scenario(seed)
    results = child(text, f"""
        L.nvmlInit_v2(); cards = [handle(i) for i in range(3)]
        seen = [0, 0, 0]
        for second in range(0, 601, 5):
            go(second)
            for i, card in enumerate(cards):
                ring = samples(card, last=seen[i])
                ring = [] if isinstance(ring, int) else ring
                seen[i] = ring[-1][0] if ring else seen[i]
                out("samples", i, [(t - {WALL} * 10**6, v) for t, v in ring])
                lists = [processes(f"nvmlDeviceGet{{kind}}RunningProcesses_v2", card, 24) for kind in ("Compute", "Graphics", "MPSCompute")]
                out("list", i, second, sorted({{(p[0], p[1]) for l in lists for p in l}}))
        """)
    scenario = Scenario(text)
    got = {i: [tuple(s) for kind, card, *rest in results if (kind, card) == ("samples", i) for s in rest[0]] for i in range(3)}
    assert got == {i: [(t, (2 * sum + length) // (2 * length)) for t, length, sum in means(scenario, ("card", i), 600)]
                   for i in range(3)}
    pids = {f"p{i}": 100 + i for i in range(6)}
    lists = dict(scenario.holders_at([s * 10**6 for s in range(0, 601, 5)]))
    for _, card, second, listed in (row for row in results if row[0] == "list"):
        held = lists[second * 10**6]["card", card]
        assert [tuple(p) for p in listed] == sorted((pids[p], NONE if size is None else size) for p, size in held.items())


# ---- the simulated source ----

def simulate(tmp_path, text, *args):
    path, db = tmp_path / "sim.scenario", tmp_path / "sim.db"
    path.write_text(text)
    run = gua("daemon", "--source", "sim", "--scenario", path, "--clock", "virtual", "--db", db, *args)
    assert run.returncode == 0, run.stderr
    return db


def test_a_mistake_in_a_scenario_is_the_users(tmp_path):
    path = tmp_path / "bad.scenario"
    path.write_text('host a\ncard 0 uuid GPU-0 name "\x1b[31m\n')
    run = gua("daemon", "--source", "sim", "--scenario", path, "--db", tmp_path / "x.db", "--once")
    assert run.returncode == 2
    assert f"{path}:2: a quote is not closed" in run.stderr and "\x1b" not in run.stderr
    path.write_text("process a pid env HOME\n")
    run = gua("daemon", "--source", "sim", "--scenario", path, "--db", tmp_path / "x.db", "--once")
    assert run.returncode == 2 and "needs the variable HOME" in run.stderr
    path.write_text("process a pid file job\n")
    run = gua("daemon", "--source", "sim", "--scenario", path, "--db", tmp_path / "x.db", "--once")
    assert run.returncode == 2 and "process 'a' needs the variable FAKENVML_PIDS" in run.stderr


def test_the_examples_of_the_manual_and_the_lab_are_scenarios(tmp_path):
    manual = (ROOT / "man" / "gua-scenario.5.scd").read_text()
    examples = re.findall(r"```\n(.*?)```", manual, re.S)
    assert len(examples) == 2
    built_in = [(ROOT / "dist" / f"{name}.scenario").read_text() for name in ("lab", "weeks")]
    for text in [*examples, *built_in]:
        (tmp_path / "sim.db").unlink(missing_ok=True)
        with sqlite3.connect(simulate(tmp_path, text, "--ticks", "2")) as connection:
            cards = [uuid for uuid, in connection.execute("SELECT DISTINCT uuid FROM usage JOIN gpu ON gpu.id = gpu")]
        assert set(cards) == {card.uuid for card in Scenario(text).cards.values()}


def test_every_word_of_the_language_is_in_the_manual():
    manual = (ROOT / "man" / "gua-scenario.5.scd").read_text()
    words = []
    for path in (ROOT / "src" / "driver" / "sim").glob("scenario_*.c"):
        source = path.read_text()
        words += re.findall(r'line_take\(l, "([a-z0-9-]+)"\)', source)
        words += re.findall(r'\{ "([a-z-]+)", (?:scenario_)?parse_', source)
    assert len(words) > 40
    assert [word for word in words if not re.search(rf"\*[^*\n]*\b{word}\b[^*\n]*\*", manual)] == []

"""A plugin of pytest for tools/cover: `pytest -p cover` numbers the tests, gives each test's number to the processes that
it starts (see tools/cover.c), and writes a line for each test to $COVER_TESTS: its number, the seconds of processors that it
and its children took, its marks, and its file and function."""
import ctypes
import os
import resource

import pytest

PR_SET_TIMERSLACK = 29
FIRST = 100000  # as COVER_FIRST in cover.c
USUAL_SLACK = 0  # the kernel's


def set_slack(nanoseconds):
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(nanoseconds), 0, 0, 0)


def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    for number, item in enumerate(items):
        item.cover_number = number


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    set_slack(FIRST + item.cover_number)
    before = processor_seconds()
    yield
    set_slack(USUAL_SLACK)
    marks = ",".join(mark.name for mark in item.iter_markers())
    with open(os.environ["COVER_TESTS"], "a") as file:
        file.write(f"{item.cover_number}\t{processor_seconds() - before:.3f}\t{marks}\t"
                   f"{item.path.name}::{item.originalname}\n")

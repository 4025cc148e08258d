"""`pytest --workers N` runs the tests in N processes. The tests are read once, by the process that is started; it forks the
others, and each of them takes the next group of tests when it has done one. A group is what shares something costly: the tests
of a file that use a fixture of the scope `module`; any other test is a group of its own.

The group that takes longest comes first, so that the workers end at the same time. The file that `--times` names keeps how long
each test took, and how much of it processors worked, for the next run; a test that is not in it is expected to take a second.

The plugin xdist does the same with workers that each read all tests, which takes seconds of a processor for each."""
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import struct
import sys
import time
import traceback

import pytest

NUMBER = struct.Struct("=I")


def pytest_addoption(parser):
    parser.addoption("--workers", type=int, default=0, metavar="N", help="run the tests in N processes")
    parser.addoption("--times", type=pathlib.Path, metavar="FILE", help="where the workers keep how long each test took")


def groups_of(items, costs):
    """What is run by the same worker: lists of tests, in their order; the one that takes longest first."""
    groups = {}
    for item in items:
        shares = any(definitions[-1].scope == "module" for definitions in item._fixtureinfo.name2fixturedefs.values())
        groups.setdefault(item.path if shares else item.nodeid, []).append(item)
    return sorted(groups.values(), key=lambda group: -sum(costs.get(item.nodeid, (1,))[0] for item in group))


def processor_seconds():
    """Of this process and those that it has waited for."""
    return sum(os.times()[:4])


class Sender:
    """In a worker: sends to the process that started it what happens."""

    def __init__(self, config, pipe):
        self.config, self.pipe = config, pipe

    def pytest_runtest_logstart(self, nodeid, location):
        self.pipe.send(("start", (nodeid, location)))

    def pytest_runtest_logreport(self, report):
        self.pipe.send(("report", self.config.hook.pytest_report_to_serializable(config=self.config, report=report)))


def separate(config, number):
    """In a worker: gives it what it must not share with the others, captured output and temporary files."""
    os.environ["PYTEST_XDIST_WORKER"] = f"gw{number}"  # as with xdist
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture.is_globally_capturing():
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    factory = config._tmp_path_factory
    factory._basetemp = factory.getbasetemp() / f"worker{number}"
    factory._basetemp.mkdir(mode=0o700)
    config.pluginmanager.unregister(name="terminalreporter")


def work(session, number, groups, queue, pipe):
    """A worker: runs groups of tests until there are no more. What belongs to the whole session stays until the end."""
    separate(session.config, number)
    session.config.pluginmanager.register(Sender(session.config, pipe))
    while place := os.read(queue, NUMBER.size):
        group = groups[NUMBER.unpack(place)[0]]
        for item, following in zip(group, [*group[1:], session]):
            begun, used = time.monotonic(), processor_seconds()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            pipe.send(("cost", (item.nodeid, round(time.monotonic() - begun, 3), round(processor_seconds() - used, 2))))
    session._setupstate.teardown_exact(None)
    pipe.send(("done", None))


class Worker:
    """A worker as the process that started it sees it."""

    def __init__(self, session, costs, *arguments):
        self.session, self.costs, self.running, self.done = session, costs, None, False
        self.pipe, writing = multiprocessing.Pipe(duplex=False)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                work(session, *arguments, writing)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        writing.close()

    def hear(self):
        """Takes what the worker has sent, a report as if the test had run here. False: the worker has ended."""
        hook = self.session.config.hook
        try:
            kind, what = self.pipe.recv()
        except EOFError:
            return False
        if kind == "start":
            self.running = what
        elif kind == "report":
            hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=self.session.config, data=what))
        elif kind == "cost":
            self.costs[what[0]] = what[1:]
        self.done = kind == "done"
        return True

    def end(self):
        """A worker that has not said that it is done took the test that ran with it."""
        self.pipe.close()
        os.waitpid(self.pid, 0)
        if not self.done and self.running:
            self.session.config.hook.pytest_runtest_logreport(
                report=pytest.TestReport(*self.running, {}, "failed", "its worker ended", "call"))
        elif not self.done:
            self.session.testsfailed += 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    count = session.config.getoption("workers")
    if not count or session.testsfailed or session.config.option.collectonly:
        return None
    times = session.config.getoption("times")
    costs = json.loads(times.read_text()) if times and times.exists() else {}
    groups = groups_of(session.items, costs)
    queue, fill = os.pipe()
    os.write(fill, b"".join(NUMBER.pack(place) for place in range(len(groups))))
    os.close(fill)
    session.config._tmp_path_factory.getbasetemp()
    workers = {}
    for number in range(min(count, len(groups))):
        worker = Worker(session, costs, number, groups, queue)
        workers[worker.pipe] = worker
    while workers:
        for pipe in multiprocessing.connection.wait(list(workers)):
            if not workers[pipe].hear():
                workers.pop(pipe).end()
    os.close(queue)
    if times:
        written = times.with_suffix(".new")
        written.write_text(json.dumps(costs, indent=0))
        written.replace(times)  # a run that is broken off leaves no half of it
    return True

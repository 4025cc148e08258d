"""`pytest --workers N` runs the tests in N processes. The tests are read once, by the process that is started; it forks the
others, and each of them takes the next group of tests when it has done one: those of a file, or with --one-by-one a single
test. Tests with the same mark `together`, which share something costly, are one group.

The plugin xdist does the same with workers that each read all tests, which takes seconds of a processor for each."""
import multiprocessing
import multiprocessing.connection
import os
import struct
import sys
import traceback

import pytest

NUMBER = struct.Struct("=I")


def pytest_addoption(parser):
    parser.addoption("--workers", type=int, default=0, metavar="N", help="run the tests in N processes")
    parser.addoption("--one-by-one", action="store_true", help="hand out single tests to the workers, not files")


def groups_of(items, one_by_one):
    """What is run by the same worker: lists of tests, in their order."""
    groups = {}
    for item in items:
        mark = item.get_closest_marker("together")
        groups.setdefault(mark.args[0] if mark else item.nodeid if one_by_one else item.path, []).append(item)
    return list(groups.values())


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
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    session._setupstate.teardown_exact(None)
    pipe.send(("done", None))


class Worker:
    """A worker as the process that started it sees it."""

    def __init__(self, session, *arguments):
        self.session, self.running, self.done = session, None, False
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
    groups = groups_of(session.items, session.config.getoption("one_by_one"))
    queue, fill = os.pipe()
    os.write(fill, b"".join(NUMBER.pack(place) for place in range(len(groups))))
    os.close(fill)
    session.config._tmp_path_factory.getbasetemp()
    workers = {}
    for number in range(min(count, len(groups))):
        worker = Worker(session, number, groups, queue)
        workers[worker.pipe] = worker
    while workers:
        for pipe in multiprocessing.connection.wait(list(workers)):
            if not workers[pipe].hear():
                workers.pop(pipe).end()
    os.close(queue)
    return True

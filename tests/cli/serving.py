"""A server for tests: gua serve on a free port, and a client."""
import http.client
import re
import signal
import subprocess

import pytest

from conftest import BUILD, GUA, clean_environment, wait_for

needs_serve = pytest.mark.skipif(not (BUILD / "gua-serve").exists(), reason="built without gua serve")

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


class Server:
    """gua serve on a free port of the loopback interface."""

    def __init__(self, directory, *args, env=None):
        self.log = directory / "serve.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([str(GUA), "serve", "--listen", "127.0.0.1:0", *map(str, args)],
                                            env=clean_environment(**(env or {})), stdin=subprocess.DEVNULL, stderr=log)
        wait_for(lambda: "listening on" in self.log.read_text() or self.process.poll() is not None,
                 self.log.read_text)
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)/", self.log.read_text())
        assert found, self.log.read_text()
        self.port = int(found.group(1))

    def get(self, target, method="GET", **headers):
        """(status, headers, body as text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def serve(tmp_path):
    """serve(*ARGS) starts a server; all are stopped at the end."""
    started = []

    def start(*args, **options):
        started.append(Server(tmp_path, *args, **options))
        return started[-1]
    yield start
    for server in started:
        if server.process.poll() is None:
            assert server.stop() == 0, server.log.read_text()

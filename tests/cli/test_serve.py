"""gua serve as a client sees it: routes, errors, methods, and how it starts and ends."""
import http.client
import json
import re
import signal
import subprocess
import time

import pytest

from conftest import BUILD, GUA, clean_environment, gua, wait_for
from handmade import Store

pytestmark = pytest.mark.skipif(not (BUILD / "gua-serve").exists(), reason="built without gua serve")

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


@pytest.fixture
def store(tmp_path):
    """store(SECONDS) makes a store whose recorder wrote its last tick that long ago."""
    def make(age=5, name="gua.db"):
        now = time.time()
        made = Store(tmp_path / name)
        host = made.host()
        made.run(host, now - 3600, now - age)
        made.card(host, 0, now - 3600, now - age)
        return made.save()
    return make


def test_healthz_says_how_old_the_last_tick_is(serve, store):
    status, headers, body = serve("--db", store()).get("/healthz")
    document = json.loads(body)
    assert (status, headers["Content-Type"], document["fresh"]) == (200, "application/json", True)
    assert document["stores"][0]["host"] == "lab-a100"
    assert 5 <= document["stores"][0]["age_seconds"] < 65


def test_healthz_of_an_old_tick_is_503(serve, store):
    status, _, body = serve("--db", store(age=3000)).get("/healthz")
    assert (status, json.loads(body)["fresh"]) == (503, False)


def test_the_api_answers_json(serve, store):
    status, headers, body = serve("--db", store()).get("/api/v1/health")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body)["schema"] == "gua-health-1"


def test_an_unknown_path_is_404_in_the_form_that_the_client_prefers(serve, store):
    server = serve("--db", store())
    status, headers, body = server.get("/nothing", Accept=BROWSER)
    assert (status, headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "<title>Not Found - gua</title>" in body
    status, headers, body = server.get("/nothing")
    assert (status, headers["Content-Type"], json.loads(body)["status"]) == (404, "application/json", 404)
    assert server.get("/healthz?x=1")[0] == 400
    assert server.get("/%ff")[0] == 400
    assert server.get("/" + 5000 * "x")[0] in (400, 414)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_only_get_and_head(serve, store, method):
    status, headers, _ = serve("--db", store()).get("/healthz", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_has_the_headers_of_get(serve, store):
    server = serve("--db", store())
    status, headers, body = server.get("/api/v1/health", "HEAD")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) > 0


def test_every_answer_has_the_headers_of_safety(serve, store):
    server = serve("--db", store())
    for target in ("/healthz", "/nothing", "/%ff"):
        _, headers, _ = server.get(target)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(serve, store, number):
    assert serve("--db", store()).stop(number) == 0


@pytest.mark.parametrize("address", ["9848", "host:9848", "127.0.0.1", "unix:relative", "127.0.0.1:70000"])
def test_a_wrong_address(address):
    run = gua("serve", "--db", "/nonexistent", "--listen", address)
    assert run.returncode == 2 and "is not an address" in run.stderr or "unix: takes" in run.stderr


def test_a_port_in_use(serve, store):
    db = store()
    server = serve("--db", db)
    run = gua("serve", "--db", db, "--listen", f"127.0.0.1:{server.port}")
    assert run.returncode == 1
    assert "Address already in use; choose another address with --listen" in run.stderr


def test_without_the_program(tmp_path):
    (tmp_path / "gua").write_bytes(GUA.read_bytes())
    (tmp_path / "gua").chmod(0o755)
    run = gua("serve", binary=tmp_path / "gua")
    assert (run.returncode, run.stderr) == (
        1, "gua serve: the program gua-serve is not installed; build gua with the option serve\n")

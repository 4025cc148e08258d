"""gua serve as a client sees it: routes, errors, methods, and how it starts and ends."""
import json
import signal
import time

import pytest

from conftest import GUA, gua, wait_for
from handmade import Store
from serving import BROWSER, needs_serve, serve  # noqa: F401 (a fixture)

pytestmark = needs_serve


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
        assert headers["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(serve, store, number):
    assert serve("--db", store()).stop(number) == 0


@pytest.mark.parametrize("address", ["9848", "host:9848", "127.0.0.1", "unix:relative", "127.0.0.1:70000"])
def test_a_wrong_address(address):
    run = gua("serve", "--db", "/dev/null/none", "--listen", address)
    assert run.returncode == 2 and "is not an address" in run.stderr or "unix: takes" in run.stderr


def test_a_store_that_is_not_there_yet(serve, tmp_path):
    server = serve("--db", tmp_path / "later.db")
    wait_for(lambda: "later.db: No such file or directory; it is tried again" in server.log.read_text())


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
        1, "gua serve: the program gua-serve is not installed; install the package gua-serve, or build gua with the option serve\n")

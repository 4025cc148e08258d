"""gua fleet against engines that answer badly: each gives a clear sentence; credentials go where they belong."""
import base64
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

from conftest import BUILD, gua, measured

pytestmark = pytest.mark.skipif(not (BUILD / "gua-fleet").exists(), reason="built without libcurl")

GOOD = {"status": "success", "data": {"resultType": "vector", "result": []}}


def series(value, **labels):
    return {"metric": {"instance": "n1:9400", **labels}, "value": [1730678400, value]}


def vector(*results, **more):
    return {"status": "success", "data": {"resultType": "vector", "result": list(results)}, **more}


class Engine:
    """Answers every request as `answer(handler, path, form)` says; `asked` has what arrived."""

    def __init__(self, answer, context=None):
        self.asked = []
        engine = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True  # a connection serves many requests

            def do_POST(self):
                form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                engine.asked.append((self.path, form, dict(self.headers)))
                try:
                    answer(self, self.path, form)
                except (BrokenPipeError, ConnectionResetError):
                    pass

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def send(handler, body, status=200, kind="application/json", **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    if "Content_Length" not in headers:
        handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def status(engine, *args, **options):
    return gua("fleet", "status", "--from", engine.url, "--retries", "0", *args, **options)


def refused(answer, *args):
    """What gua says when the engine answers like that; it must say one line."""
    with Engine(answer) as engine:
        run = status(engine, *args)
        assert run.returncode == 1 and run.stdout == ""
        assert run.stderr.count("\n") == 1 and run.stderr.startswith(f"gua fleet: {engine.url}: ")
        return run.stderr


BAD = {
    "html": ((b"<html>login</html>", 200, "text/html"), "the answer is a web page, not JSON"),
    "not JSON": ((b"hello", 200, "text/plain"), "it is not JSON"),
    "empty": ((b"", 200, "application/json"), "it is empty"),
    "truncated": ((json.dumps(vector(series("1"))).encode()[:-9], 200, "application/json"), "it ends after 1"),
    "more": ((b'{"status":"success"}{}', 200, "application/json"), "more after the end"),
    "list": ((b"[]", 200, "application/json"), "an answer that is not an object"),
    "number for text": ((json.dumps(vector(series(1))).encode(), 200, "application/json"), 'is not [time, "value"]'),
    "no number": ((json.dumps(vector(series("much"))).encode(), 200, "application/json"), "that is not a number"),
    "no list": ((b'{"status":"success","data":{"result":{}}}', 200, "application/json"), "is not a list"),
    "error in 200": ((b'{"status":"error","error":"out of luck"}', 200, "application/json"), "out of luck"),
    "422": ((b'{"status":"error","errorType":"422","error":"cannot parse \\u001b[31m"}', 422, "application/json"),
            "the engine refused the query: cannot parse \\x1B[31m (HTTP 422, 422); a shorter --since"),
    "503": ((b"busy", 503, "text/plain"), "the engine answered with HTTP 503"),
    "401": ((b"", 401, "text/plain"), "HTTP 401; give --bearer-file or --basic-file"),
    "400": ((b"plain HTTP to a TLS port", 400, "text/plain"), "HTTP 400; it may want https://"),
    "400 with a reason": ((b'{"status":"error","errorType":"bad_data","error":"odd"}', 400, "application/json"), "odd (HTTP 400, bad_data)\n"),
    "404": ((b"<html>", 404, "text/html"), "HTTP 404; the URL may need a path, such as /prometheus, or none"),
    "405": ((b'{"error":"Only GET and HEAD are answered."}', 405, "application/json"), "engine, not gua serve"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_answers_give_a_sentence(case):
    (body, code, kind), sentence = BAD[case]
    assert sentence in refused(lambda handler, path, form: send(handler, body, code, kind))


def test_redirects_are_not_followed(tmp_path):
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    with Engine(lambda h, *_: send(h, GOOD)) as elsewhere:
        said = refused(lambda h, *_: send(h, b"", 302, Location=f"{elsewhere.url}/x"), "--bearer-file", secret)
        assert f"redirects to {elsewhere.url}/x (HTTP 302)" in said and "s3cret" not in said
        assert elsewhere.asked == []


def test_an_answer_that_lies_about_its_length_is_refused():
    def answer(handler, *_):
        send(handler, GOOD, Content_Length="100000")
        handler.close_connection = True
    assert "closed before the whole answer" in refused(answer)


def test_a_slow_drip_ends_with_the_timeout():
    def answer(handler, *_):
        send(handler, b'{"status":', Content_Length="1000")
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.05)
    begun = time.monotonic()
    assert "no complete answer within 300ms" in refused(answer, "--timeout", "300ms")
    assert time.monotonic() - begun < 30


def test_an_endless_token_is_refused():
    def answer(handler, *_):
        send(handler, b'{"status":"', Content_Length=str(1 << 40))
        for _ in range(200):
            handler.wfile.write(b"x" * 65536)
    assert "a token that is too long" in refused(answer)


def endless(handler, _, form):
    """Series of ever new hosts."""
    if "gua_" not in form:
        return send(handler, json.dumps(GOOD).encode())
    send(handler, b'{"status":"success","data":{"resultType":"vector","result":[', Content_Length=str(1 << 40))
    for block in range(1 << 12):
        handler.wfile.write(b"".join(b'{"metric":{"instance":"host-%d:9400"},"value":[1730678400,"1"]},' % (block * 1000 + i)
                                     for i in range(1000)))


@pytest.mark.large
@pytest.mark.both_builds
def test_endless_series_are_refused():
    """490 MB were used before."""
    with Engine(endless) as engine:
        for words in (["fleet", "status"], ["report", "--since", "1h"]):
            status, said, peak_kib = measured(*words, "--from", engine.url)
            assert status == 1 and "it has more than 131072 hosts; --host-label names" in said
            assert peak_kib < 150_000 or "asan" in BUILD.name


@pytest.mark.large
def test_one_endless_host_is_refused():
    def answer(handler, *_):
        send(handler, b'{"status":"success","data":{"resultType":"vector","result":[', Content_Length=str(1 << 40))
        for _ in range(2000):
            handler.wfile.write(b'{"metric":{"instance":"n1:9400"},"value":[1730678400,"1"]},' * 1000)
    assert "it is larger than 64 MiB" in refused(answer)


def test_nothing_and_something_else_at_the_address():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        run = gua("fleet", "status", "--from", f"http://127.0.0.1:{port}", "--retries", "0")
        assert run.returncode == 1 and "nothing accepts a connection there" in run.stderr
    run = gua("fleet", "status", "--from", "http://host.invalid:1", "--retries", "0")
    assert run.returncode == 1 and "there is no host of that name" in run.stderr
    for wrong in ("prometheus:9090", "ftp://x/", "http://", "http://a b"):
        run = gua("fleet", "status", "--from", wrong)
        assert run.returncode == 2 and "is not the address of an engine" in run.stderr
    run = gua("fleet", "status", "--from", "http://me:pw@host:9090")
    assert run.returncode == 2 and "--basic-file" in run.stderr and "pw" not in run.stderr
    run = gua("fleet", "status")
    assert run.returncode == 2 and "url in [fleet]" in run.stderr


@pytest.mark.waits
def test_faults_that_may_pass_are_tried_again():
    tries = []

    def answer(handler, path, form):
        tries.append(time.monotonic())
        if len(tries) <= 2:
            send(handler, b"", 429, Retry_After="1")
        else:
            send(handler, vector(warnings=["store-gw 3 is down", "store-gw 3 is down"]))
    with Engine(answer) as engine:
        run = gua("fleet", "status", "--from", engine.url, "--retries", "2")
    assert run.returncode == 0, run.stderr
    assert len(tries) > 4 and tries[2] - tries[0] > 0.9
    assert "engine warns: store-gw 3 is down\n" in run.stdout and run.stdout.count("store-gw") == 1
    assert "0 hosts seen" in run.stdout and "is gua scraped" in run.stdout


def test_the_next_question_follows_the_last_answer_at_once(tmp_path):
    """Four questions are asked at a time. When answers to all of them have come, nothing is left to wait for."""
    waits = tmp_path / "waits"
    waits.touch()
    with Engine(lambda h, *_: send(h, GOOD)) as engine:
        for _ in range(10):
            gua("report", "--from", engine.url, "--since", "1h", env={
                "LD_PRELOAD": str(BUILD / "tests" / "libempty_waits.so"), "EMPTY_WAITS": str(waits),
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"})
        assert len(engine.asked) > 40
    assert waits.read_text() == ""


def many_series(form, hosts):
    """What a fleet of 8 cards and 20 users a host answers: half of the time is active, half idle-held."""
    at, query = float(form["time"][0]), form["query"][0]
    if "gua_sample_timestamp_seconds" in query and "quantile" not in query:
        one = 1 if "count" in query else at - 90000 if "min by" in query else at
        return [{"metric": {"instance": f"n{host}:9400"}, "value": [at, str(one)]} for host in range(hosts)]
    rows = []
    if "gua_gpu_state_seconds_total{}" in query:
        rows = [{"gpu": str(card), "uuid": f"GPU-%s-{card}", "state": state} for card in range(8)
                for state in ("active", "idle_held", "idle")]
    elif "gua_identity_gpu_seconds_total{}" in query:
        rows = [{"identity": f"user{user}", "state": state} for user in range(20) for state in ("active", "idle_held")]
    value = {"active": at / 2, "idle_held": at / 2, "idle": 7}
    return [{"metric": {"instance": f"n{host}:9400", **{k: v.replace("%s", str(host)) for k, v in row.items()}},
             "value": [at, str(value[row["state"]])]} for host in range(hosts) for row in rows]


def asked_for_counters(engine):
    """How often it was asked whether there are gua's counters."""
    return sum("count(last_over_time({__name__=\"gua_gpu_state_seconds_total\"" in query for query in queries(engine))


def queries(engine):
    return [urllib.parse.parse_qs(form).get("query", [""])[0] for _, form, _ in engine.asked]


@pytest.mark.large
@pytest.mark.both_builds
def test_many_hosts_take_little_memory():
    """They took 38 MB: rows for energy that no card has, all cards twice, all states of all users."""
    hosts, since = (40 if "asan" in BUILD.name else 1000), 1730678400

    def answer(handler, _, text):
        form = urllib.parse.parse_qs(text)
        if "count(last_over_time({__name__=" in form.get("query", [""])[0]:
            found = [{"metric": {}, "value": [since, "8"]}] * ("state_seconds" in text)
        else:
            found = many_series(form, hosts) if "time" in form else []
        send(handler, vector(*found))

    with Engine(answer) as engine:
        window = ["report", "--from", engine.url, "--since", f"@{since}", "--until", f"@{since + 3600}",
                  "--now", f"@{since + 4500}"]
        found = json.loads(gua(*window, "--json").stdout)
        assert found["gpu_seconds"]["active"] == found["gpu_seconds"]["idle_held"] == hosts * 8 * 1800
        assert len(found["identities"]) == 20
        assert asked_for_counters(engine) == 1
        status, said, peak_kib = measured(*window)
        assert (status, said) == (0, "")
        assert peak_kib < 32_000 or "asan" in BUILD.name, peak_kib


def test_counters_are_looked_for_from_the_end_of_the_window_to_its_start():
    with Engine(lambda h, *_: send(h, GOOD)) as engine:
        gua("report", "--from", engine.url, "--since", "1h")
        assert asked_for_counters(engine) == 8
        times = [form for _, form, _ in engine.asked if "__name__%3D%22gua_gpu_state" in form]
        moments = [float(urllib.parse.parse_qs(form)["time"][0]) for form in times]
        assert moments == sorted(moments, reverse=True) and moments[0] - moments[-1] == 3150


def test_values_that_are_no_numbers_are_left_out():
    with Engine(lambda h, *_: send(h, vector(series("NaN", version="1"), series("+Inf")))) as engine:
        run = status(engine, "--json")
    assert run.returncode == 0 and json.loads(run.stdout)["hosts"] == []


def test_prefix_headers_parameters_and_credentials(tmp_path):
    token, basic, headers = tmp_path / "token", tmp_path / "basic", tmp_path / "headers"
    token.write_text("  s3cret\n")
    basic.write_text("me:pass word\n")
    headers.write_text("# who\nX-One: 1\nX-Two: 2\n")
    with Engine(lambda h, *_: send(h, GOOD)) as engine:
        url = engine.url + "/select/0/prometheus/"
        run = gua("fleet", "status", "--from", url, "--bearer-file", token, "--header", "X-Scope-OrgID: lab",
                  "--header-file", headers, "--param", "dedup=false", "--match", '{job="gua"}')
        assert run.returncode == 0, run.stderr
        paths = {path for path, _, _ in engine.asked}
        assert paths == {"/select/0/prometheus/api/v1/query", "/select/0/prometheus/api/v1/status/buildinfo"}
        for path, form, got in engine.asked:
            assert got["Authorization"] == "Bearer s3cret" and got["X-Scope-OrgID"] == "lab"
            assert got["X-One"] == "1" and got["X-Two"] == "2"
            if path.endswith("query"):
                assert "dedup=false" in form and "partial_response=false" in form and "dedup=true" not in form
        assert any("job%3D%22gua%22" in form for _, form, _ in engine.asked)
        engine.asked.clear()
        conf = tmp_path / "gua.conf"
        conf.write_text(f'[fleet]\nurl = {url}\nbasic_file = {basic}\nheader = X-Scope-OrgID: conf\n')
        run = gua("fleet", "status", "--config", conf)
        assert run.returncode == 0, run.stderr
        expected = "Basic " + base64.b64encode(b"me:pass word").decode()
        assert {got["Authorization"] for _, _, got in engine.asked} == {expected}
        assert {got["X-Scope-OrgID"] for _, _, got in engine.asked} == {"conf"}
        for wrong, sentence in ((["--header", "Authorization: Bearer x"], "--bearer-file"),
                                (["--header", "no header"], "a header looks like"),
                                (["--param", "dedup"], "a parameter looks like"),
                                (["--match", '{job="gua"'], "--match looks like"),
                                (["--host-label", "a b"], "--host-label is a label"),
                                (["--bearer-file", token, "--basic-file", basic], "exclude each other")):
            run = gua("fleet", "status", "--from", url, *wrong)
            assert run.returncode == 2 and sentence in run.stderr
        run = gua("fleet", "status", "--from", url, "--bearer-file", tmp_path / "none")
        assert run.returncode == 1 and "none" in run.stderr


def test_tls_with_a_certificate_of_the_client(tmp_path):
    def make(name, *more):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.pem", "-subj", f"/CN={name}",
                        "-days", "9", *more], check=True, capture_output=True)
    make("server", "-addext", "subjectAltName=IP:127.0.0.1")
    make("client")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    context.load_verify_locations(tmp_path / "client.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    mine = ["--cert", tmp_path / "client.pem", "--key", tmp_path / "client.key"]
    with Engine(lambda h, *_: send(h, GOOD), context) as engine:
        run = status(engine, "--ca", tmp_path / "server.pem", *mine)
        assert run.returncode == 0, run.stderr
        run = status(engine, *mine)
        assert run.returncode == 1 and "its certificate is not trusted; --ca names" in run.stderr
        run = gua("fleet", "status", "--from", engine.url.replace("127.0.0.1", "localhost"), "--ca", tmp_path / "server.pem", *mine)
        assert run.returncode == 1 and "must have a name that is in the certificate" in run.stderr
        run = status(engine, "--ca", tmp_path / "server.pem")
        assert run.returncode == 1 and engine.url in run.stderr


def test_an_engine_without_tls_asked_with_https(tmp_path):
    with Engine(lambda h, *_: send(h, GOOD)) as engine:
        run = gua("fleet", "status", "--from", engine.url.replace("http:", "https:"))
    assert run.returncode == 1 and "does the engine answer with http:// there, and do --cert and --key" in run.stderr


def test_hosts_and_their_states(tmp_path):
    now = 1730678400

    def answer(handler, path, form):
        if "__name__" in form:  # metrics of other exporters
            return send(handler, vector())
        if "build_info" in form:
            return send(handler, vector(*(series("1", instance=f"n{i}:9400", version="0.1.0") for i in range(3))))
        if "gua_gpus" in form:
            return send(handler, vector(series("8")))
        if "now" in form:
            return send(handler, b'{"status":"error","error":"unknown function"}', 400)
        if "buildinfo" in path:
            return send(handler, {"status": "success", "data": {"version": "2.42.0"}})
        short = "300s" in form
        ages = {"n1:9400": 20, "n2:9400": 4000} if short else {"n1:9400": 20, "n2:9400": 4000, "evil\x1b[2J": 90000}
        ages.update({"twin:1": 20, "twin:2": 20})  # they differ in the port alone
        return send(handler, vector(*(series(str(now - age), instance=name) for name, age in ages.items())))
    expected = tmp_path / "hosts"
    expected.write_text("n1\nn2:9400\nn3\n# n4\n")
    with Engine(answer) as engine:
        run = status(engine, "--json", "--now", f"@{now}", "--expect", expected)
        assert run.returncode == 0, run.stderr
        found = json.loads(run.stdout)
        text = status(engine, "--now", f"@{now}", "--expect", expected, "--utc")
    states = {h["host"]: h["state"] for h in found["hosts"]}
    assert states["n3"] == "missing" and states["n2"] == "behind" and states["n1"] == "ok"
    assert states["twin:1"] == states["twin:2"] == "ok"
    assert states["evil\\x1B[2J"] == "silent" and found["expected"] == 3 and found["missing"] >= 1
    assert "2.42.0" in found["engine"] and [h["gpus"] for h in found["hosts"] if h["host"] == "n1"] == [8]
    assert "\x1b" not in text.stdout and "of 3 expected" in text.stdout and "0.1.0 on 3" in text.stdout
    assert "n1 " not in text.stdout  # it is well


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_configuration_that_may_not_be_read_is_said_once(tmp_path):
    """gua report starts gua-fleet, and only one of them reads gua.conf."""
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    run = gua("report", "--from", "http://127.0.0.1:1", "--retries", "0", before=nobody,
              env={"GUA_CONFIG": "", "HOME": str(tmp_path)})
    assert run.returncode == 1 and run.stderr.count("going on without it") == 1


def test_wrong_usage():
    run = gua("fleet")
    assert run.returncode == 2 and "status" in run.stderr
    run = gua("fleet", "stat")
    assert run.returncode == 2 and "there is no 'stat'" in run.stderr
    run = gua("fleet", "--help")
    assert run.returncode == 0 and "--bearer-file" in run.stdout

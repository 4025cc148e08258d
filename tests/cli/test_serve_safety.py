"""Who may ask gua serve, and that clients, floods and stores in trouble do not stop it."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import tempfile
import threading
import time

import pytest

from conftest import BUILD, GUA, clean_environment, gua, wait_for
from handmade import IDLE_HELD, Store
from serving import BROWSER, needs_serve, serve  # noqa: F401 (a fixture)

pytestmark = needs_serve

SECRET = "0123456789abcdef0123456789"


@pytest.fixture
def db(tmp_path):
    """A store whose recorder has just written."""
    made = Store(tmp_path / "gua.db")
    host = made.host()
    made.run(host, time.time() - 3600, time.time() - 1)
    made.card(host, 0, time.time() - 3600, time.time() - 1)
    made.db.execute("PRAGMA journal_mode = WAL")
    return made.save()


@pytest.fixture
def auth(tmp_path):
    path = tmp_path / "auth"
    path.write_text(f"# who may ask\nann:{SECRET}\n")
    path.chmod(0o600)
    return path


def basic(name, secret):
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


def test_host_is_checked_against_rebinding(serve, db):  # noqa: F811
    server = serve("--db", db, "--host-names", "gpu.example.org")
    for host, status in (("localhost", 200), ("127.0.0.1:1", 200), ("gpu.example.org", 200), ("evil.example", 421)):
        assert server.get("/api/v1/now", Host=host)[0] == status
    assert "--host-names." in server.get("/", Host="evil.example")[2]


def test_a_secret_is_asked_for(serve, db, auth):  # noqa: F811
    server = serve("--db", db, "--auth-file", auth)
    status, headers, body = server.get("/api/v1/now", Accept=BROWSER)
    assert (status, headers["WWW-Authenticate"]) == (401, 'Basic realm="gua"')
    assert "lab-a100" not in body
    assert server.get("/healthz")[0] == 200, "for a watchdog"
    for header, expected in ((f"Bearer {SECRET}", 200), (basic("ann", SECRET), 200), (f"Bearer {SECRET}x", 401),
                             (basic("bob", SECRET), 401), ("Bearer", 401), ("x" * 4000, 401)):
        assert server.get("/api/v1/now", Authorization=header)[0] == expected
    # What nobody may see is not told to be there.
    assert server.get("/nothing")[0] == 401
    wait_for(lambda: server.log.read_text().count("/api/v1/now") >= 7, server.log.read_text)
    log = server.log.read_text()
    assert SECRET not in log and "Bearer" not in log and " ann GET /api/v1/now 200 " in log


def test_sighup_reads_the_secrets_again(serve, db, auth):  # noqa: F811
    server = serve("--db", db, "--auth-file", auth)
    auth.write_text("ann:short\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "stay in force" in server.log.read_text(), server.log.read_text)
    assert server.get("/api/v1/now", Authorization=f"Bearer {SECRET}")[0] == 200
    auth.write_text(f"bob:{SECRET}new\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "again" in server.log.read_text(), server.log.read_text)
    assert server.get("/api/v1/now", Authorization=f"Bearer {SECRET}")[0] == 401
    assert server.get("/api/v1/now", Authorization=f"Bearer {SECRET}new")[0] == 200


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620, 0o644])
def test_a_file_of_secrets_that_others_can_read_is_refused(db, auth, mode):
    auth.chmod(mode)
    run = gua("serve", "--db", db, "--listen", "127.0.0.1:0", "--auth-file", auth)
    assert run.returncode == 1 and "chmod 0600" in run.stderr and SECRET not in run.stderr


def test_other_hosts_need_secrets_and_encryption(db, auth):
    run = gua("serve", "--db", db, "--listen", "0.0.0.0:0")
    assert run.returncode == 2 and "give --auth-file" in run.stderr
    run = gua("serve", "--db", db, "--listen", "0.0.0.0:0", "--auth-file", auth)
    assert run.returncode == 2 and "give --tls-cert and --tls-key, or --insecure" in run.stderr
    run = gua("serve", "--db", db, "--tls-cert", auth)
    assert run.returncode == 2 and "need each other" in run.stderr
    run = gua("serve", "--db", db, "--trust-proxy", "proxy.example")
    assert run.returncode == 2 and "--trust-proxy: 'proxy.example' is not an address" in run.stderr
    for name in ("a b", "", "X-User:"):
        run = gua("serve", "--db", db, "--user-header", name)
        assert run.returncode == 2 and f"--user-header: '{name}' cannot be the name of a header" in run.stderr


def test_the_proxy_says_who_asks(serve, db, auth):  # noqa: F811
    """Seen in the log: no document has it."""
    server = serve("--db", db, "--auth-file", auth, "--trust-proxy", "127.0.0.1", "--user-header", "X-Who")
    assert server.get("/api/v1/now", **{"X-Who": "carol"})[0] == 200
    wait_for(lambda: "127.0.0.1 carol GET /api/v1/now 200" in server.log.read_text(), server.log.read_text)
    server = serve("--db", db, "--trust-proxy", "192.0.2.1")
    assert server.get("/api/v1/now", **{"X-Forwarded-User": "carol"})[0] == 200
    wait_for(lambda: f"127.0.0.1 uid:{os.geteuid()} GET /api/v1/now 200" in server.log.read_text(), server.log.read_text)


def as_user(uid, path, request):
    """What another user of this host gets from a unix socket, or b"" if it cannot connect; as root only."""
    code = ("import os, socket, sys; os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))\n"
            "c = socket.socket(socket.AF_UNIX); c.connect(sys.argv[2]); c.sendall(sys.stdin.buffer.read())\n"
            "while part := c.recv(65536): sys.stdout.buffer.write(part)")
    return subprocess.run(["/usr/bin/python3", "-c", code, str(uid), str(path)], input=request, capture_output=True).stdout


ME = b"GET /me HTTP/1.1\r\nHost: any\r\nAccept: text/html\r\nX-Forwarded-User: carol\r\nConnection: close\r\n\r\n"
NAMED = b"<h1>For me: carol</h1>"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")
def test_a_proxy_on_a_unix_socket_is_who_it_is(db):
    """Nobody but the proxy can connect, and its uid alone is believed: root passes the mode, and is itself."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "http.sock"
        process = start(db.parent, "--db", db, "--listen", f"unix:{path}", "--trust-proxy", "unix", "--proxy-user", "54321")
        wait_for(lambda: "listening" in (db.parent / "raw.log").read_text(), (db.parent / "raw.log").read_text)
        assert stat.S_IMODE(path.stat().st_mode) == 0o660 and path.stat().st_uid == 54321
        assert NAMED in as_user(54321, path, ME)
        assert as_user(54322, path, ME) == b""
        answer = raw(path, ME)
        assert b" 200 " in answer and NAMED not in answer and b"<h1>For me: root</h1>" in answer
        process.terminate()
        assert process.wait(60) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")
def test_without_a_proxy_each_peer_is_itself(db):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "http.sock"
        process = start(db.parent, "--db", db, "--listen", f"unix:{path}")
        wait_for(lambda: "listening" in (db.parent / "raw.log").read_text(), (db.parent / "raw.log").read_text)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
        for uid in (54321, 54322):
            assert b"<h1>For me: uid:%d</h1>" % uid in as_user(uid, path, ME)
        process.terminate()
        assert process.wait(60) == 0


def test_the_proxy_is_the_owner_of_the_socket_by_default(tmp_path, db):
    path = tmp_path / "http.sock"
    process = start(tmp_path, "--db", db, "--listen", f"unix:{path}", "--trust-proxy", "unix")
    wait_for(lambda: "listening" in (tmp_path / "raw.log").read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert NAMED in raw(path, ME)
    process.terminate()
    assert process.wait(60) == 0
    run = gua("serve", "--db", db, "--proxy-user", "no such user")
    assert run.returncode == 2 and "--proxy-user: there is no user 'no such user'" in run.stderr


def test_a_user_header_that_comes_twice_is_not_believed(serve, db):  # noqa: F811
    """One is the client's own, and the proxy only added another."""
    server = serve("--db", db, "--trust-proxy", "127.0.0.1")
    answer = raw(server.port, b"GET /me HTTP/1.0\r\nX-Forwarded-User: root\r\nX-Forwarded-User: carol\r\n\r\n")
    assert b" 200 " in answer and b"when the server knows who you are" in answer
    wait_for(lambda: "127.0.0.1 - GET /me 200" in server.log.read_text(), server.log.read_text)


def raw(path_or_port, request, timeout=60):
    """Sends bytes, and returns all that comes back; b"" when the server closes at once."""
    if isinstance(path_or_port, int):
        client = socket.create_connection(("127.0.0.1", path_or_port), timeout=timeout)
    else:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(timeout)
        client.connect(str(path_or_port))
    answer = b""
    with client, contextlib.suppress(ConnectionError):
        client.sendall(request)
        while chunk := client.recv(65536):
            answer += chunk
    return answer


ASK = b"GET /api/v1/health HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n"


def start(tmp_path, *args, **options):
    """gua serve without the client of serving.py."""
    log = open(tmp_path / "raw.log", "w")
    return subprocess.Popen([str(GUA), "serve", *map(str, args)], env=clean_environment(), stderr=log, **options)


def test_a_unix_socket(tmp_path, db):
    path = tmp_path / "serve.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    process = start(tmp_path, "--db", db, "--listen", f"unix:{path}")
    wait_for(lambda: "listening" in (tmp_path / "raw.log").read_text())
    assert raw(path, ASK).startswith(b"HTTP/1.1 200")
    # What ps shows says whose process it is.
    assert b"/gua-serve\0--db\0" in pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes()
    # A server that answers keeps its socket.
    assert "Address already in use" in gua("serve", "--db", db, "--listen", f"unix:{path}").stderr
    process.terminate()
    assert process.wait(60) == 0 and not path.exists()


def test_socket_activation(tmp_path, db):
    """The service manager opens the socket, passes it as descriptor 3, and keeps it for the next server."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    for _ in "first", "restarted":
        process = subprocess.Popen(
            ["sh", "-c", 'exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh", str(GUA), "serve",
             "--db", str(db)], stdin=listening.fileno(), env=clean_environment(), stderr=subprocess.DEVNULL)
        assert raw(port, ASK.replace(b"any.example", b"localhost")).startswith(b"HTTP/1.1 200")
        process.terminate()
        assert process.wait(60) == 0
    listening.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    where = tmp_path_factory.mktemp("tls")
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", where / "key", "-out", where / "cert", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    (where / "key").chmod(0o600)
    return where


def test_tls(tmp_path, db, certificate, auth):
    """Beyond loopback, with TLS and a secret."""
    process = start(tmp_path, "--db", db, "--listen", "0.0.0.0:0", "--tls-cert", certificate / "cert", "--tls-key",
                    certificate / "key", "--auth-file", auth)
    log = tmp_path / "raw.log"
    wait_for(lambda: "listening on https://0.0.0.0:" in log.read_text(), log.read_text)
    port = int(log.read_text().split("0.0.0.0:")[1].split("/")[0])
    context = ssl.create_default_context(cafile=str(certificate / "cert"))
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=60),
                             server_hostname="localhost") as client:
        client.sendall(f"GET /api/v1/now HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\n"
                       "Connection: close\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert client.version() in ("TLSv1.2", "TLSv1.3")
    assert not raw(port, ASK).startswith(b"HTTP/1.1 200"), "not without TLS"
    process.terminate()
    assert process.wait(60) == 0
    (certificate / "key").chmod(0o644)
    run = gua("serve", "--db", db, "--tls-cert", certificate / "cert", "--tls-key", certificate / "key")
    assert run.returncode == 1 and "other users may read it" in run.stderr


def test_settings_come_from_the_configuration(serve, db, auth, tmp_path):  # noqa: F811
    conf = tmp_path / "gua.conf"
    conf.write_text(f"[serve]\nauth_file = {auth}\naccess_log = no\nhost_names = gpu.example.org\n")
    server = serve("--db", db, "--config", conf)
    assert server.get("/api/v1/now")[0] == 401
    assert server.get("/api/v1/now", Host="gpu.example.org", Authorization=f"Bearer {SECRET}")[0] == 200
    assert "GET" not in server.log.read_text()


def test_an_answer_that_has_not_changed_is_304(serve, db):  # noqa: F811
    server = serve("--db", db, "--now", "2026-11-02 08:00")
    _, headers, body = server.get("/api/v1/now")
    status, again, nothing = server.get("/api/v1/now", **{"If-None-Match": headers["ETag"]})
    assert (status, nothing, again["ETag"]) == (304, "", headers["ETag"])
    assert "default-src 'none'" in again["Content-Security-Policy"]
    status, _, whole = server.get("/api/v1/now", **{"If-None-Match": '"other"'})
    assert (status, whole) == (200, body)


@pytest.mark.waits
def test_a_store_that_is_missing_replaced_or_broken(serve, db, tmp_path):  # noqa: F811
    """The right status, and recovery without a restart."""
    server = serve("--db", db, "--now", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()))

    def status_becomes(expected):
        wait_for(lambda: server.get("/api/v1/now")[0] == expected, lambda: str(server.get("/api/v1/now")))
    status_becomes(200)
    aside = tmp_path / "aside.db"
    db.rename(aside)
    status_becomes(503)
    _, headers, body = server.get("/api/v1/now")
    assert headers["Retry-After"] and "there is no store at" in json.loads(body)["error"]
    assert server.get("/api/v1/report")[0] == 503
    assert server.get("/healthz")[0] == 503
    assert server.get("/api/v1/status")[0] == 503
    db.write_bytes(b"not a database" * 100)
    status_becomes(503)
    made = Store(tmp_path / "other.db")
    made.run(made.host("other"), time.time() - 60, time.time() - 1)
    os.replace(made.save(), db)
    wait_for(lambda: '"other"' in server.get("/api/v1/now")[2])


@pytest.mark.waits
def test_a_locked_store_is_waited_for_and_then_503(serve, tmp_path):  # noqa: F811
    made = Store(tmp_path / "locked.db")
    made.run(made.host(), time.time() - 60, time.time() - 1)
    path = made.save()
    server = serve("--db", path)
    assert server.get("/api/v1/now")[0] == 200
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    wait_for(lambda: server.get("/api/v1/now")[0] == 503)
    assert server.get("/nothing")[0] == 404, "others are answered"
    lock.execute("ROLLBACK")
    wait_for(lambda: server.get("/api/v1/now")[0] == 200)


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def resident(server):
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.waits
def test_garbage_and_half_open_connections(serve, db):  # noqa: F811
    server = serve("--db", db, "--set", "serve.request_timeout=1s")
    assert server.get("/healthz")[0] == 200
    before = descriptors(server)
    garbage = [b"", b"\r\n\r\n", b"\0" * 3000, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"\xff\xfe" * 500,
               b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 20000 + b"\r\n\r\n", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
               b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nxx",
               b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
               b"GET / HTTP/1.1\r\n" + b"".join(b"H%d: 1\r\n" % i for i in range(2000)) + b"\r\n",
               b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"* * *\r\n\r\n",
               b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"]
    half_open = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(30)]
    for client in half_open:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
    for _ in range(5):
        for bytes_ in garbage:
            client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            try:
                client.sendall(bytes_)
                if bytes_.startswith((b"GET /", b"POST")):
                    client.recv(1000)
            except OSError:
                pass  # it may close while we send
            client.close()
    assert server.get("/healthz")[0] == 200
    for client in half_open:
        client.close()
    wait_for(lambda: descriptors(server) <= before, lambda: f"{descriptors(server)} descriptors, {before} before")
    assert server.process.poll() is None


@pytest.mark.both_builds
def test_more_parameters_than_fit_leave_nothing_behind(serve, db):  # noqa: F811
    """libmicrohttpd refuses such a request itself and does not report its end; each has 4 KB."""
    server = serve("--db", db, "--set", "serve.access_log=no", "--set", "serve.request_timeout=1s")
    request = b"GET /?" + b"a=1&" * 1000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def ask(times):
        for _ in range(times):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
                client.sendall(request)
        wait_for(lambda: descriptors(server) <= fds)
    fds = descriptors(server)
    ask(200)
    before = resident(server)
    ask(2000)
    if "asan" not in BUILD.name:
        assert resident(server) < before + 2 * 2**20
    assert server.get("/healthz")[0] == 200


def test_a_client_that_sends_too_slowly_is_cut_off(serve, db):  # noqa: F811
    """However often it sends a byte."""
    server = serve("--db", db, "--set", "serve.request_timeout=500ms")
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n")

        def is_cut():
            try:
                client.sendall(b"X")
                client.setblocking(False)
                return client.recv(10) == b""
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
        wait_for(is_cut)
    assert server.get("/healthz")[0] == 200


def is_closed(client):
    """Reads on until the server closes; False when nothing comes for a minute."""
    with contextlib.suppress(ConnectionError):
        while True:
            try:
                if not client.recv(65536):
                    break
            except TimeoutError:
                return False
    return True


def test_one_client_has_a_limit_of_connections(serve, db):  # noqa: F811
    """One more closes the one that has been quiet for longest, so that who comes is answered."""
    server = serve("--db", db, "--max-per-address", "5")
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(5)]
    for client in clients:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as one_more:
        one_more.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one_more.recv(12) == b"HTTP/1.1 200"
    assert is_closed(clients[0])
    assert descriptors(server) < 40
    for client in clients:
        client.close()
    wait_for(lambda: raw(server.port, ASK.replace(b"any.example", b"localhost")).startswith(b"HTTP/1.1 200"))



@pytest.mark.both_builds
def test_a_flood_from_many_clients_leaves_nothing_behind(serve, db):  # noqa: F811
    """Different questions at once, more than are kept: memory and descriptors stay."""
    server = serve("--db", db, "--set", "serve.access_log=no")

    def round_of(first):
        threads = [threading.Thread(target=lambda part=part: [
            server.get(f"/api/v1/who?user=u{first + part * 100 + i}")[0] for i in range(12)]) for part in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    round_of(0)
    before, fds = resident(server), descriptors(server)
    round_of(1000)
    if "asan" not in BUILD.name:  # a sanitizer keeps what was freed for a while
        assert resident(server) < before + 4 * 2**20
    wait_for(lambda: descriptors(server) <= fds)
    assert server.get("/api/v1/now")[0] == 200


@pytest.fixture
def crowded(tmp_path):
    """A store in which 1,200 processes of 3 users held a card, each with an idle spell."""
    made = Store(tmp_path / "crowded.db")
    now = int(time.time()) // 60 * 60
    host = made.host()
    made.run(host, now - 86400, now - 1)
    card = made.card(host, 0, now - 86400, now - 1)
    for i in range(1200):
        process = made.process(host, 1000 + i, ("ann", "bob", "eve")[i % 3], seen=(now - 86000, now - 60))
        slot = now - 79200 + 60 * i
        made.usage(slot, card, IDLE_HELD, 60)
        made.holding(slot, card, process, IDLE_HELD, 60, share=60)
        made.spell(card, process, slot - 7140, slot + 60)
    made.db.execute("PRAGMA journal_mode = WAL")
    return made.save()


@pytest.mark.large
def test_an_answer_has_as_many_rows_as_a_page_can_show(serve, crowded):  # noqa: F811
    """Whatever is asked for: a table of all would keep the server busy and fill its memory."""
    server = serve("--db", crowded)
    for asked in ("", "&top=0", "&top=1000000", "&top=1000"):
        status, _, body = server.get(f"/api/v1/report?last=2d&by=user,process{asked}&longest=1000000")
        assert status == 200, body
        report = json.loads(body)
        users = report["breakdown"]["rows"]
        assert len(users) + sum(len(user["rows"]) for user in users) <= 1000
        assert len(report["longest"]) == 1000
    body = server.get("/audit?last=2d&by=process&top=100000&longest=1000000", Accept=BROWSER)[2]
    assert body.count("<tr>") < 2500 and ">200 more idle spells" in body
    assert len(json.loads(server.get("/api/v1/report?last=2d&by=process&top=7")[2])["breakdown"]["rows"]) == 7


def flood(port, count, request, source="127.0.0.1", buffer=None):
    """Opens connections that each send a request, and read nothing."""
    opened = []
    for i in range(count):
        client = socket.socket()
        client.settimeout(60)
        if buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.bind((source, 0))
        client.connect(("127.0.0.1", port))
        client.sendall(request.replace(b"@", b"%d" % i))
        opened.append(client)
    return opened


def test_one_client_waits_for_few_answers_at_a_time(serve, crowded):  # noqa: F811
    """Its other requests are refused at once; what others need is answered."""
    server = serve("--db", crowded, "--set", "serve.access_log=no")
    clients = flood(server.port, 60, b"GET /audit?last=2d&longest=1000&top=@ HTTP/1.1\r\nHost: localhost\r\n"
                    b"Connection: close\r\n\r\n")
    for path in ("/", "/healthz", "/metrics", "/assets/gua.css"):
        assert server.get(path)[0] == 200
    statuses = []
    for client in clients:
        statuses.append(client.recv(12))
        client.close()
    assert statuses.count(b"HTTP/1.1 429") > 20 and b"HTTP/1.1 200" in statuses
    assert server.get("/audit?last=2d")[0] == 200


@pytest.mark.both_builds
def test_slow_readers_are_closed_when_memory_is_needed(serve, crowded):  # noqa: F811
    """Each has an answer of its own of about half a MB: what they hold stays within the budget."""
    server = serve("--db", crowded, "--set", "serve.access_log=no")

    def resident():
        with open(f"/proc/{server.process.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096 / 1e6
    wait_for(lambda: server.get("/audit?last=2d&longest=1000&by=process&top=1000")[0] == 200)  # 503: the machine is busy
    before = resident()
    clients = []
    for i in range(30):
        clients += flood(server.port, 1, b"GET /audit?last=2d&longest=1000&by=process&top=1000&print=%d HTTP/1.1\r\n"
                         b"Host: localhost\r\n\r\n" % i, buffer=4096)
        assert clients[-1].recv(12) == b"HTTP/1.1 200"
    if "asan" not in BUILD.name:
        assert resident() < before + 12, (before, resident())
    assert is_closed(clients[0]), "the oldest is closed first"
    assert server.get("/")[0] == 200
    for client in clients:
        client.close()

"""gua enforce test-notice: each channel with a real receiver, good and bad."""
import contextlib
import fcntl
import hashlib
import hmac
import http.server
import json
import os
import pty
import pwd
import re
import shutil
import socket
import ssl
import stat
import subprocess
import termios
import threading
import time

import pytest
from conftest import BUILD, gua

pytestmark = pytest.mark.skipif(not (BUILD / "gua-enforce").exists(), reason="built without gua enforce")
ROOT = os.geteuid() == 0
USER = "nobody" if ROOT else pwd.getpwuid(os.getuid()).pw_name
UID = pwd.getpwnam(USER).pw_uid
needs_post = pytest.mark.skipif(not (BUILD / "gua-post").exists(), reason="built without libcurl")


@pytest.fixture
def send(tmp_path):
    """send(LINES) sends a test with these lines in the section [notices]; returns the exit status and the lines."""
    db = tmp_path / "gua.db"

    def run(lines, user=USER):
        config = tmp_path / "gua.conf"
        config.write_text("[notices]\n" + lines + ("" if "timeout" in lines else "\ntimeout = 10s") + "\n")
        result = gua("enforce", "test-notice", user, "--db", db, env={"GUA_CONFIG": str(config)})
        return result.returncode, (result.stdout + result.stderr).splitlines()
    return run


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers as its server's `status` says, and keeps what it got."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers, body))
        self.send_response(self.server.status)
        if 300 <= self.server.status < 400:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiver(status=200):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.status, server.got = status, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server, f"http://127.0.0.1:{server.server_port}/hook"
        server.shutdown()
        thread.join()


@needs_post
def test_a_webhook_is_signed(send, tmp_path):
    key = tmp_path / "key"
    key.write_text("secret\n")
    key.chmod(0o600)
    with receiver() as (server, url):
        assert send(f"channels = webhook\nwebhook_url = {url}\nwebhook_secret = {key}") == (
            0, ["webhook   sent    the webhook answered with status 200"])
    (path, headers, body), = server.got
    assert (path, headers["Content-Type"]) == ("/hook", "application/json")
    assert headers["X-Gua-Signature"] == "sha256=" + hmac.new(b"secret", body, hashlib.sha256).hexdigest()
    notice = json.loads(body)
    assert (notice["kind"], notice["user"], notice["cost"]) == ("test", USER, None)


@needs_post
@pytest.mark.parametrize("kind, key", [("slack", "text"), ("mattermost", "text"), ("teams", "attachments")])
def test_webhooks_of_chats(send, kind, key):
    with receiver() as (server, url):
        assert send(f"channels = webhook\nwebhook_url = {url}\nwebhook_kind = {kind}")[0] == 0
    assert "This is a test" in json.dumps(json.loads(server.got[0][2])[key])


@needs_post
def test_a_redirect_is_not_followed(send):
    with receiver(307) as (server, url):
        assert send(f"channels = webhook\nwebhook_url = {url}") == (
            1, ["webhook   FAILED  the webhook answered with status 307, a redirect, which is not followed"])
    assert [path for path, _, _ in server.got] == ["/hook"]


@needs_post
def test_a_webhook_that_refuses(send):
    with receiver(500) as (_, url):
        assert send(f"channels = webhook\nwebhook_url = {url}") == (
            1, ["webhook   FAILED  the webhook answered with status 500"])
    status, lines = send(f"channels = webhook\nwebhook_url = {url}")
    assert status == 1 and lines[0].startswith("webhook   FAILED  the webhook failed: ")


@needs_post
def test_a_webhook_that_hangs(send):
    """It listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        status, lines = send(f"channels = webhook\nwebhook_url = http://127.0.0.1:{server.getsockname()[1]}/\n"
                             "timeout = 500ms")
    assert status == 1 and lines[0].startswith("webhook   FAILED")
    assert time.monotonic() - began < 60


@needs_post
@pytest.mark.parametrize("request_text", ["", "1000\n", "x\nhttp://127.0.0.1/\n\n{}", "9999999\nhttp://127.0.0.1/\n\n{}"])
def test_gua_post_alone(request_text):
    """It does nothing that gua enforce did not ask for, and names no URL."""
    run = subprocess.run([BUILD / "gua-post"], input=request_text, capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == "" and run.stderr.startswith("usage: gua-post")


@needs_post
@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1:1/secret"])
def test_gua_post_fails_without_the_url(url):
    run = subprocess.run([BUILD / "gua-post"], input=f"3000\n{url}\n\n{{}}", capture_output=True, text=True)
    assert run.returncode == 1 and run.stdout.startswith("the webhook failed: ") and run.stderr == ""
    assert "secret" not in run.stdout and "passwd" not in run.stdout


@needs_post
def test_a_certificate_is_checked(send, tmp_path):
    """A server that nobody vouches for gets nothing."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    pem = tmp_path / "pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", pem, "-out", tmp_path / "crt",
                    "-subj", "/CN=localhost", "-days", "2"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", pem)
    with receiver() as (server, url):
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = url.replace("http://127.0.0.1", "https://localhost")
        status, lines = send(f"channels = webhook\nwebhook_url = {url}")
    assert status == 1 and "certificate" in lines[0].lower(), lines
    assert server.got == []


def test_mail(send, tmp_path):
    sendmail = tmp_path / "sendmail"
    sendmail.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/mail\ncat >> {tmp_path}/mail\n")
    sendmail.chmod(0o755)
    assert send(f"channels = mail\nsendmail = {sendmail}\nmail_domain = example.org\nmail_from = gua@example.org") == (
        0, [f"mail      sent    to {USER}@example.org"])
    head, _, body = (tmp_path / "mail").read_text().partition("\n\n")
    assert head.splitlines()[:3] == ["-i -t", "From: gua@example.org", f"To: {USER}@example.org"]
    assert "Auto-Submitted: auto-generated" in head and body.startswith("This is a test of the notices of gua")


def test_own_terminals_only(send):
    """A terminal that accepts messages, one that does not, and one of another user."""
    pairs = [pty.openpty() for _ in range(3)]
    try:
        for (_, slave), mode, uid in zip(pairs, (0o620, 0o600, 0o620), (UID, UID, UID + 1 if ROOT else UID)):
            os.fchmod(slave, mode)
            if ROOT:
                os.fchown(slave, uid, -1)
        for master, _ in pairs:
            os.set_blocking(master, False)
        status, lines = send("channels = terminal")
        assert status == 0 and "sent" in lines[0], lines
        seen = []
        for master, _ in pairs:
            try:
                seen.append(os.read(master, 4096).decode())
            except BlockingIOError:
                seen.append("")
        assert "This is a test of the notices" in seen[0]
        assert seen[1] == "" and (seen[2] == "" or not ROOT)
        assert all(character.isprintable() or character in "\r\n" for character in seen[0])
    finally:
        for pair in pairs:
            for fd in pair:
                os.close(fd)


def fill(slave):
    """Writes until nothing fits; the kernel makes room once more when it hands over to the master's side."""
    os.set_blocking(slave, False)
    empty_rounds = 0
    while empty_rounds < 5:
        empty_rounds += 1
        with contextlib.suppress(BlockingIOError):
            while os.write(slave, b"x" * 64):
                empty_rounds = 0
        time.sleep(0.01)


@contextlib.contextmanager
def terminal(user, state="fine"):
    """A terminal of the user's that accepts messages; yields its master."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    try:
        os.fchmod(slave, 0o620)
        if ROOT:
            os.fchown(slave, pwd.getpwnam(user).pw_uid, -1)
        if state == "stopped":    # somebody has pressed ^S
            os.write(master, b"\x13")
            os.set_blocking(slave, False)
            with contextlib.suppress(BlockingIOError):
                while os.write(slave, b"x"):    # until the kernel has seen it
                    time.sleep(0.001)
        if state == "full":    # nobody reads it
            fill(slave)
        if state == "exclusive":    # TIOCEXCL: nobody else may open it; root may
            fcntl.ioctl(slave, termios.TIOCEXCL)
        if state == "gone":    # the window was closed, its program goes on
            os.close(master)
        yield master
    finally:
        if state != "gone":
            os.close(master)
        os.close(slave)


# A user for each state and build: other tests run at the same time, and have terminals.
STATES = {"stopped": ("bin", "daemon"), "full": ("games", "lp"), "gone": ("mail", "man"), "exclusive": ("news", "sys")}


@pytest.mark.parametrize("state", STATES)
def test_a_terminal_that_takes_nothing_is_in_nobodys_way(send, state):
    """A delivery may take five minutes here, so nothing ends because it is late; another terminal gets the text."""
    user = STATES[state]["asan" in BUILD.name] if ROOT else USER
    with terminal(user, state):
        if ROOT and state in ("stopped", "full"):
            status, lines = send("channels = terminal\ntimeout = 5m", user)
            assert status == 1 and re.fullmatch(r"terminal  FAILED  cannot write to /dev/pts/\d+: its output is stopped, or "
                                                "nobody reads it", lines[0]), lines
        with terminal(user) as good:
            status, lines = send("channels = terminal\ntimeout = 5m", user)
            assert status == 0 and lines[0].startswith("terminal  sent    "), lines
            assert b"This is a test of the notices" in os.read(good, 4096)


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_what_is_in_the_place_of_a_login_notice(send, tmp_path, kind):
    """It is never followed or waited for."""
    place, other = tmp_path / "motd.d", tmp_path / "other"
    place.mkdir()
    other.write_text("mine")
    if kind == "link":
        (place / USER).symlink_to(other)
    elif kind == "fifo":
        os.mkfifo(place / USER)
    else:
        (place / USER).mkdir()
    status, lines = send(f"channels = login\nlogin_directory = {place}\ntimeout = 1s")
    assert other.read_text() == "mine"
    if kind == "directory":
        assert status == 1 and "login     FAILED" in lines[0]
    else:
        assert status == 0 and "This is a test" in (place / USER).read_text() and not (place / USER).is_symlink(), lines


def test_at_login(send, tmp_path):
    assert send(f"channels = login\nlogin_directory = {tmp_path}") == (0, [f"login     sent    {tmp_path}/{USER}"])
    assert stat.S_IMODE((tmp_path / USER).stat().st_mode) == 0o644


def test_own_texts(send, tmp_path):
    (tmp_path / "test.txt").write_text("Subject: ours\n\nHello {user}, {nonsense}\n")
    sendmail = tmp_path / "sendmail"
    sendmail.write_text(f"#!/bin/sh\ncat > {tmp_path}/mail\n")
    sendmail.chmod(0o755)
    status, lines = send(f"channels = mail\nsendmail = {sendmail}\ntemplates = {tmp_path}")
    assert status == 0
    assert f"{tmp_path}/test.txt:3: there is no {{nonsense}}" in "\n".join(lines)
    assert "This is a test" in (tmp_path / "mail").read_text()


@pytest.mark.parametrize("lines, message", [
    ("channels = pigeon", "channels: 'pigeon' is not one of"),
    ("channels = webhook", "channels: webhook needs webhook_url"),
])
def test_wrong_channels(send, lines, message):
    status, found = send(lines)
    assert status == 2 and message in "\n".join(found)


def test_no_such_user(send):
    status, lines = send("channels = login", user="no-such-user")
    assert status == 2 and "there is no user 'no-such-user' on this host" in lines[0]

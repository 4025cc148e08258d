"""Asks gua enforce on its socket, as anybody may: any bytes, as any user."""
import contextlib
import json
import os
import socket
import subprocess
import sys

from conftest import GUA, clean_environment, wait_for

ASK = """import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for option in socket.SO_SNDTIMEO, socket.SO_RCVTIMEO:       # it waits to be accepted, as gua does
    s.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 30, 0))
s.connect("enforce.sock")
try:
    s.send(sys.stdin.buffer.read())
    sys.stdout.buffer.write(s.recv(1 << 17))
except OSError:
    pass
"""


def ask(directory, uid=None, raw=None, **request):
    """The answer; None: the connection was closed without one."""
    who = {} if uid is None or os.geteuid() != 0 else {"user": uid, "group": uid, "extra_groups": []}
    run = subprocess.run([sys.executable, "-c", ASK], input=json.dumps(request).encode() if raw is None else raw,
                         capture_output=True, cwd=directory, timeout=60, **who)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout) if run.stdout else None


def connect(directory):
    """A connection of this process."""
    fd = os.open(directory, os.O_PATH)
    try:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.settimeout(30)
        one.connect(f"/proc/self/fd/{fd}/enforce.sock")
        return one
    finally:
        os.close(fd)


@contextlib.contextmanager
def service(directory, db, now, *arguments, **env):
    """gua enforce run, which takes `now` for the present."""
    with open(directory / "service.log", "a") as log:
        child = subprocess.Popen([GUA, "enforce", "run", "--db", db, "--now", now, *map(str, arguments)],
                                 env=clean_environment(**env), stdin=subprocess.DEVNULL, stderr=log)
    said = (directory / "service.log").read_text
    directory.chmod(0o755)
    try:
        def ready():
            assert child.poll() is None, said()
            try:
                answer = ask(directory, ask="list")
            except AssertionError:      # nobody listens yet
                return False
            return answer and answer["ok"]
        wait_for(ready, said)
        yield child
    finally:
        child.terminate()
        assert child.wait(60) == 0, said()

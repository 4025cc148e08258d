"""What is left for others while 64 hostile clients of one kind keep `gua serve` busy: how long the page Now and /healthz
take, and how much memory the server has at most. On the loopback interface a client is a user: as root the hostile ones
are another user than the one who measures; else all are one client, which shares its limits, and nothing is judged."""
import http.client
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

CLIENTS = 64
NOBODY = 65534 if os.geteuid() == 0 else None
CODE = pathlib.Path(__file__).read_text() if "__file__" in globals() else ""  # another user may not be able to read the file
KINDS = ("reports", "slow readers", "slow writers", "made-up questions", "garbage")
HEAD = b" HTTP/1.1\r\nHost: localhost\r\n"
GARBAGE = (b"", b"\0" * 100, b"GET", b"\xff" * 2000, b"GET / HTTP/1.1\r\nHost: x", b"POST / HTTP/1.1\r\n\r\n",
           b"GET /" + b"a" * 10000, b"GET /?" + b"&".join(b"x%d=1" % i for i in range(300)) + HEAD + b"\r\n")


def connect(port, buffer=None):
    client = socket.socket()
    client.settimeout(20)
    if buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.connect(("127.0.0.1", port))
    return client


def attack_once(port, kind, number):
    with connect(port, 4096 if kind == "slow readers" else None) as client:
        if kind == "reports":  # each is another question, of as many rows as there are
            client.sendall(b"GET /audit?since=1000w&longest=1000000&by=user,process&top=%d" % number + HEAD +
                           b"Connection: close\r\n\r\n")
            while client.recv(65536):
                pass
        elif kind == "slow readers":
            client.sendall(b"GET /audit?since=1000w&longest=1000&print=%d" % number + HEAD + b"\r\n")
            while client.recv(10):
                time.sleep(0.2)
        elif kind == "slow writers":
            client.sendall(b"GET /healthz HTTP/1.1\r\n")
            while True:
                client.sendall(b"X")
                time.sleep(0.2)
        elif kind == "made-up questions":
            for i in range(20):
                client.sendall(b"GET /api/v1/who?user=u%d" % (number * 20 + i) + HEAD + b"\r\n")
                client.recv(65536)
        else:
            client.sendall(GARBAGE[number % len(GARBAGE)])


def attack(port, kind, until):
    """One hostile client: on and on."""
    number = threading.get_native_id() * 1000
    while time.monotonic() < until:
        number += 1
        try:
            attack_once(port, kind, number)
        except OSError:
            pass
        time.sleep(0.02)


def attackers(port, kind, seconds):
    for _ in range(CLIENTS):
        threading.Thread(target=attack, args=(port, kind, time.monotonic() + seconds), daemon=True).start()
    time.sleep(seconds)


def ask(port, path):
    """Milliseconds until the answer is there."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        connection.getresponse().read()
    except OSError:
        if NOBODY:
            raise
    connection.close()
    return (time.monotonic() - begin) * 1000


def rows(table, say, gua, store, port, wait_for_port, seconds):
    server = subprocess.Popen([gua, "serve", "--db", store, "--listen", f"127.0.0.1:{port}", "--set", "serve.access_log=no"],
                              stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        for kind in KINDS:
            say(f"{CLIENTS} hostile clients: {kind}")
            hostile = subprocess.Popen([sys.executable, "-c", CODE, str(port), kind, str(seconds + 1)], user=NOBODY)
            time.sleep(1)
            times = {"/": [], "/healthz": []}
            while hostile.poll() is None:
                for path, taken in times.items():
                    taken.append(ask(port, path))
                time.sleep(0.02)
            for path, taken in times.items():
                taken.sort()
                table.row(f"{kind}: {path}, 99 of 100 within", taken[len(taken) * 99 // 100], "ms", 100,
                          f"{CLIENTS} hostile clients; median {taken[len(taken) // 2]:.1f}, worst {taken[-1]:.1f} ms of {len(taken)}",
                          judged=NOBODY is not None)
        peak = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{server.pid}/status").read_text()).group(1)) * 1024 / 1e6
        table.row("serve under attack: peak memory", peak, "MB", 32, f"{CLIENTS} hostile clients of each kind, one after another")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    attackers(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))

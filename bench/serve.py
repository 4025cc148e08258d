"""What `gua serve` costs: requests a second beside nginx with a file of the same size, a year on a page, memory, and
what is left of floods. Without nginx and wrk, what does not need them."""
import os
import re
import shutil
import socket
import statistics
import subprocess
import threading
import time
import urllib.request

NGINX = """
worker_processes 2;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{ listen 127.0.0.1:{port}; root {folder}/files; }}
}}
"""
CONNECTIONS = 32


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for_port(port):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


def wrk(port, path, seconds):
    """(requests a second, p99 in ms, errors)"""
    run = subprocess.run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--latency", f"http://127.0.0.1:{port}{path}"],
                         check=True, capture_output=True, text=True).stdout
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", run).groups()
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", run)
    return (float(re.search(r"Requests/sec:\s+([\d.]+)", run).group(1)),
            float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit], int(errors.group(1)) if errors else 0)


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.read()


def memory(pid):
    """(resident MB, peak MB)"""
    text = open(f"/proc/{pid}/status").read()
    return [int(re.search(rf"{name}:\s+(\d+)", text).group(1)) * 1024 / 1e6 for name in ("VmRSS", "VmHWM")]


def descriptors(pid, enough, seconds):
    """The fewest descriptors within that time, or the first number that is small enough: a connection whose client has
    gone may be open for another moment, and half a request is waited for."""
    fewest, deadline = 1 << 20, time.monotonic() + seconds
    while fewest > enough and time.monotonic() < deadline:
        fewest = min(fewest, len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.1)
    return fewest


def beside_nginx(table, ours, theirs, path, seconds, rounds):
    """In turn, so that both see the same machine."""
    mine, other = [], []
    for _ in range(rounds):
        mine.append(wrk(ours, path, seconds))
        other.append(wrk(theirs, "/file", seconds))
    rate, nginx = (statistics.median(run[0] for run in runs) for runs in (mine, other))
    slow, slow_nginx = (statistics.median(run[1] for run in runs) for runs in (mine, other))
    table.row(f"serve {path}: rate, part of nginx's", rate / nginx, "x", 0.3,
              f"{rate:.0f} against {nginx:.0f} requests a second for {len(get(ours, path))} bytes; p99 {slow:.2f} against "
              f"{slow_nginx:.2f} ms; {sum(run[2] for run in mine)} errors", at_least=True)


def garbage(port, count):
    """Raw connections that send nonsense, a part of a request, or nothing, and go."""
    kinds = [b"", b"\0" * 100, b"GET", b"\xff" * 2000, b"GET / HTTP/1.1\r\nHost: x", b"POST / HTTP/1.1\r\n\r\n",
             b"GET /" + b"a" * 10000]

    def part(first):
        for i in range(first, count, 4):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                    client.sendall(kinds[i % len(kinds)])
            except OSError:
                pass
    threads = [threading.Thread(target=part, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def flood(folder, port, quick):
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for client in slow:  # they never read
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /audit?since=1000w HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
    garbage(port, 2000 if quick else 20000)
    script = folder / "random.lua"
    script.write_text("request = function() return wrk.format('GET', '/api/v1/who?user=' .. math.random(1e9)) end")
    subprocess.run(["wrk", "-t1", "-c32", "-d5", "-s", script, f"http://127.0.0.1:{port}/"], check=True,
                   capture_output=True)
    for client in slow:
        client.close()


def floods(table, folder, server, port, quick):
    """The same flood several times: what a flood leaves behind would add up."""
    before, resident = descriptors(server.pid, 0, 2), memory(server.pid)[0]
    left = []
    for _ in range(2 if quick else 3):
        flood(folder, port, quick)
        get(port, "/api/v1/now")
        left.append(descriptors(server.pid, before, 40) - before)
    after = memory(server.pid)[0]
    table.row("serve: descriptors left after floods", max(left), "", 0,
              f"{before} before; left after each flood: {', '.join(map(str, left))}; it answers")
    table.row("serve: growth after floods", after - resident, "MB", 3, f"{resident:.1f} MB before, {after:.1f} after")


def beside(table, folder, port, seconds, rounds):
    """Rates beside nginx, which serves a file of the same size."""
    other, files = free_port(), folder / "files"
    files.mkdir()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=other))
    folder.chmod(0o755)
    nginx = subprocess.Popen(["nginx", "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(other)
        for path in ("/", "/api/v1/now"):
            (files / "file").write_bytes(get(port, path))
            beside_nginx(table, port, other, path, seconds, rounds)
    finally:
        nginx.terminate()
        nginx.wait()


def rows(table, say, gua, store, folder, quick):
    seconds, rounds = (1, 1) if quick else (5, 3)
    port = free_port()
    missing = [name for name in ("wrk", "nginx") if not shutil.which(name)]
    why = f"not installed: {' '.join(missing)}"
    say("gua serve")
    server = subprocess.Popen([gua, "serve", "--db", store, "--listen", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        if missing:
            table.skip("serve /, /api/v1/now: rate, part of nginx's", why)
        else:
            beside(table, folder, port, seconds, rounds)
        times = []
        for i in range(5 if quick else 15):  # each is another question: none is answered from memory
            begin = time.monotonic()
            page = get(port, f"/audit?since=1000w&top={10 + i}")
            times.append((time.monotonic() - begin) * 1000)
        table.row("serve: a year on a page", min(times), "ms", 50,
                  f"wall, the fastest of {len(times)}, median {statistics.median(times):.1f} ms; {len(page) / 1000:.0f} kB")
        resident, peak = memory(server.pid)
        table.row("serve: resident", resident, "MB", 16, f"after all that; {peak:.1f} MB at most, during the years")
        if "wrk" in missing:
            table.skip("serve: descriptors and growth after floods", why)
            return
        say("floods: garbage, questions that are all different, slow readers")
        floods(table, folder, server, port, quick)
    finally:
        server.terminate()
        server.wait()

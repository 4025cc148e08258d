"""What /metrics costs: 16 cards with 128 holders, scraped by many clients at once, beside a static file of the same size
from nginx on the same machine."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request

NGINX = """
{user}daemon off; pid {folder}/nginx.pid; error_log stderr error; worker_processes auto;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {folder}; default_type text/plain; }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


@contextlib.contextmanager
def running(*command, **options):
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def wait_for(url):
    for _ in range(200):
        with contextlib.suppress(OSError):
            return get(url)
        time.sleep(0.05)
    raise RuntimeError(f"{url} does not answer")


def load(url, seconds):
    """Requests a second, and the 99th percentile in milliseconds."""
    out = subprocess.run(["wrk", "-t", "1", "-c", "16", "-d", f"{seconds}s", "--latency", url], check=True, capture_output=True,
                         text=True).stdout
    assert "Non-2xx" not in out, out
    number, unit = re.search(r"99%\s+([0-9.]+)(us|ms|s)\b", out).groups()
    return float(re.search(r"Requests/sec:\s+([0-9.]+)", out).group(1)), float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def beside_nginx(table, home, body, rate, p99, seconds):
    """The same bytes as a file that nginx serves."""
    other = free_port()
    (home / "metrics.txt").write_bytes(body)
    (home / "nginx.conf").write_text(NGINX.format(folder=home, port=other, user="user root root; " if os.geteuid() == 0 else ""))
    with running("nginx", "-p", home, "-c", home / "nginx.conf", stderr=subprocess.DEVNULL):
        assert wait_for(f"http://127.0.0.1:{other}/metrics.txt") == body
        static_rate, static_p99 = load(f"http://127.0.0.1:{other}/metrics.txt", seconds)
    table.row("/metrics: rate of nginx's for a static file", rate / static_rate, "", 0.3,
              f"{rate:.0f} requests a second of {len(body) / 1024:.0f} KiB, nginx {static_rate:.0f}; 16 clients", at_least=True)
    table.row("/metrics: 99th percentile", p99, "ms", 20, f"nginx {static_p99:.2f} ms")


def rows(table, say, build, folder, quick):
    missing = [name for name in ("wrk", "nginx") if not shutil.which(name)]
    missing += [] if (build / "gua-serve").exists() else ["gua-serve"]
    seconds, home = 3 if quick else 10, folder / "metrics"
    home.mkdir()
    db, port = home / "gua.db", free_port()
    env = {"PATH": "/usr/bin:/bin", "GUA_CONFIG": "/dev/null", "GUA_NVML": str(build / "tests/libnvidia-ml.so.1"),
           "FAKENVML_SCENARIO": str(build.parent / "tests/scenarios/sixteen.scenario")}
    say("scraping 16 cards and 128 holders")
    subprocess.run([build / "gua", "start", "--db", db, "--interval", "5s"], env=env, check=True, capture_output=True)
    try:
        time.sleep(6)
        times = []
        for _ in range(20):
            once = time.perf_counter()
            subprocess.run([build / "gua", "metrics", "--db", db], env=env, check=True, capture_output=True)
            times.append(time.perf_counter() - once)
        table.row("gua metrics: time", min(times) * 1e3, "ms", 20, "wall, the fastest of 20")
        if missing:
            table.skip("/metrics: rate and 99th percentile", f"not installed: {' '.join(missing)}")
            return
        with running(build / "gua", "serve", "--db", db, "--listen", f"127.0.0.1:{port}", env=env,
                     stderr=subprocess.DEVNULL):
            body = wait_for(f"http://127.0.0.1:{port}/metrics")
            rate, p99 = load(f"http://127.0.0.1:{port}/metrics", seconds)
    finally:
        subprocess.run([build / "gua", "stop", "--db", db], env=env, capture_output=True)
    beside_nginx(table, home, body, rate, p99, seconds)

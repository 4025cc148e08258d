"""Starts real Prometheus and VictoriaMetrics from Debian's packages on loopback, in temporary directories."""
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(url, seconds=30):
    with urllib.request.urlopen(url, timeout=seconds) as answer:
        return answer.read()


@contextlib.contextmanager
def running(command, url, log, seconds=60):
    """Runs an engine until it answers at `url`, and ends it afterwards."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                ask(url)
                break
            except (OSError, urllib.error.URLError):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"{command[0]}: {pathlib.Path(log).read_text(errors='replace')}") from None
                time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def prometheus(folder, openmetrics=None, config="scrape_configs: []\n", extra=()):
    """A Prometheus whose history is an OpenMetrics text; yields its address."""
    folder = pathlib.Path(folder)
    data = folder / "prometheus"
    data.mkdir()
    (folder / "prometheus.yml").write_text(config)
    if openmetrics:
        (folder / "history.om").write_text(openmetrics)
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", folder / "history.om", data],
                       check=True, capture_output=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={data}",
               "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", *extra]
    with running(command, f"{url}/-/ready", folder / "prometheus.log"):
        yield url


@contextlib.contextmanager
def victoria(folder, text=None, extra=()):
    """A VictoriaMetrics with the lines of text as its history; yields its address."""
    folder = pathlib.Path(folder)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["victoria-metrics", f"-storageDataPath={folder / 'victoria'}", f"-httpListenAddr=127.0.0.1:{port}",
               "-retentionPeriod=100y", "-search.disableCache", "-selfScrapeInterval=0", *extra]
    with running(command, f"{url}/health", folder / "victoria.log"):
        if text:
            give(url, text)
        yield url


def give(url, text):
    """Imports lines into VictoriaMetrics, and waits until they can be found."""
    request = urllib.request.Request(f"{url}/api/v1/import/prometheus", data=text.encode(), method="POST")
    with urllib.request.urlopen(request, timeout=600):
        pass
    ask(f"{url}/internal/force_flush")


def query(url, text, at):
    """The result of an instant query."""
    form = urllib.parse.urlencode({"query": text, "time": at})
    return json.loads(ask(f"{url}/api/v1/query?{form}"))["data"]["result"]


def missing():
    """The programs that are not installed."""
    return [name for name in ("prometheus", "promtool", "victoria-metrics") if not shutil.which(name)]

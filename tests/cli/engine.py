"""A real Prometheus for tests: one process on a free port of the loopback interface, with its data in a folder of its own."""
import json
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from conftest import wait_for


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fill(text, data, folder):
    """Puts OpenMetrics with timestamps into the data of a Prometheus, as an administrator would."""
    source = folder / "history.om"
    source.write_text(text)
    run = subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=744h", source, data],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    source.unlink()


class Prometheus:
    """Answers queries. `targets` are scraped every second as job gua."""

    def __init__(self, folder, data, targets=()):
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [
            {"job_name": "gua", "static_configs": [{"targets": list(targets)}]}]}))
        for _ in range(5):
            self.port = free_port()
            self.log = open(folder / "prometheus.log", "w+")
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=10y",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
            wait_for(lambda: self.process.poll() is not None or self.is_ready(), lambda: "Prometheus does not start")
            if self.process.poll() is None:
                return
        raise AssertionError("Prometheus does not start")

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def query(self, expression, at=None):
        """{labels without the name: value} of an instant query."""
        form = {"query": expression, **({} if at is None else {"time": at})}
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query",
                                        urllib.parse.urlencode(form).encode(), timeout=60) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
        result = document["data"]["result"]
        return {tuple(sorted((k, v) for k, v in one["metric"].items() if k != "__name__")): float(one["value"][1])
                for one in result}

    def value(self, expression, at=None):
        value, = self.query(expression, at).values()
        return value

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


def fast_folder():
    """Where the data of an engine costs no disk, if the host has such a place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 28 else None

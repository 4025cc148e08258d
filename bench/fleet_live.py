"""A live fleet: three recorders and servers on the fake driver, scraped by a real Prometheus; one host is killed and comes
back. The fleet report must say what the three stores say together (`bench/run --only fleet_live`)."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import engines  # noqa: E402

STATES = ("active", "idle_held", "truly_idle")
SCENARIO = """host live{i}
card 0 uuid GPU-{i}0000000-0000-4000-8000-00000000000{i} name "NVIDIA A100" memory 80GiB idle-power 60W max-power 400W
card 1 uuid GPU-{i}1000000-0000-4000-8000-00000000001{i} name "NVIDIA A100" memory 80GiB idle-power 60W max-power 400W
process train pid env TRAIN command "python train.py"
process note pid env NOTE command "ipykernel_launcher"
at 0s hold train card 0 memory 40GiB
at 0s load train card 0 sm 90 on {on}s off 25s
at 0s hold note card 1 memory 20GiB
at 0s load note card 1 sm 70 on 7s off {off}s
at 5m release note card 1
at 7m hold note card 1 memory 10GiB
"""


class LiveHost:
    """A recorder, a server, and two processes that hold cards."""

    def __init__(self, build, folder, i):
        self.build, self.folder, self.port = build, folder / f"live{i}", engines.free_port()
        self.folder.mkdir()
        self.db = self.folder / "gua.db"
        scenario = self.folder / "scenario"
        scenario.write_text(SCENARIO.format(i=i, on=30 + 13 * i, off=41 + 11 * i))
        self.holders = [subprocess.Popen(["sleep", "86400"]) for _ in range(2)]
        self.env = {**os.environ, "GUA_NVML": str(build / "tests" / "libnvidia-ml.so.1"), "GUA_CONFIG": "/dev/null",
                    "FAKENVML_SCENARIO": str(scenario), "TRAIN": str(self.holders[0].pid),
                    "NOTE": str(self.holders[1].pid)}
        self.programs = []

    def start(self):
        with open(self.folder / "log", "ab") as log:
            for words in (["daemon", "--foreground", "--interval", "10s"], ["serve", "--listen", f"127.0.0.1:{self.port}"]):
                self.programs.append(subprocess.Popen([self.build / "gua", *words, "--db", self.db], env=self.env,
                                                      stdout=log, stderr=log))
                time.sleep(1)

    def kill(self):
        for program in self.programs:
            program.kill()
            program.wait()
        self.programs = []

    def finish(self):
        self.kill()
        for holder in self.holders:
            holder.kill()
            holder.wait()


CONFIG = """global: {{scrape_interval: 15s}}
scrape_configs:
- job_name: gua
  static_configs: [{{targets: [{targets}]}}]
"""


def play(hosts, minutes, say):
    """Lets the fleet run; the second host is killed after 0.4 of the time and comes back a minute later. Returns a window
    of whole minutes in which all is known."""
    begun = time.time()
    since = 60 * (int(begun) // 60 + 4)
    time.sleep(60 * 0.4 * minutes)
    say("fleet_live: killing one host")
    hosts[1].kill()
    time.sleep(60)
    hosts[1].start()
    time.sleep(max(0, begun + 60 * minutes - time.time()))
    return since, 60 * ((int(time.time()) - 90) // 60)


def compare(build, url, hosts, window):
    """(state, fleet, stores) for cards and users."""
    times = ["--since", f"@{window[0]}", "--until", f"@{window[1]}", "--json"]
    env = {**os.environ, "GUA_CONFIG": "/dev/null"}

    def ask(*words):
        return json.loads(subprocess.run([build / "gua", "report", *words, *times], check=True, capture_output=True,
                                         text=True, env=env).stdout)
    fleet = ask("--from", url)
    stores = ask(*[word for host in hosts for word in ("--db", host.db)])
    for state in STATES:
        yield state, fleet["gpu_seconds"][state], stores["gpu_seconds"][state]
    for key in ("share_gpu_seconds", "idle_held_share_gpu_seconds"):
        yield f"users' {key}", *(sum(user[key] for user in found["identities"]) for found in (fleet, stores))
    yield "hosts", len(fleet["hosts"]), len(hosts)


def run(bench, say):
    if engines.missing():
        bench.table.skip("fleet_live", f"not installed: {' '.join(engines.missing())}")
        return
    minutes = 8 if bench.quick else 10
    folder = bench.folder / "fleet_live"
    folder.mkdir()
    hosts = [LiveHost(bench.build, folder, i) for i in range(3)]
    with contextlib.ExitStack() as stack:
        for host in hosts:
            stack.callback(host.finish)
            host.start()
        targets = ", ".join(f"'127.0.0.1:{host.port}'" for host in hosts)
        url = stack.enter_context(engines.prometheus(folder, config=CONFIG.format(targets=targets)))
        say(f"fleet_live: three hosts for {minutes} minutes")
        window = play(hosts, minutes, say)
        whole = 6 * (window[1] - window[0])
        for what, fleet, stores in compare(bench.build, url, hosts, window):
            bench.table.row(f"live fleet, {what}: difference", 100 * abs(fleet - stores) / whole, "%", 1,
                            f"fleet {fleet:.1f}, stores {stores:.1f}, of {whole} GPU-seconds")

"""Every command that README and manual show is run, as it stands there: in one directory, with the two weeks of the demo as
the user's store, the fake driver, a Prometheus with the same past, and stand-ins for what is not gua's (srun, ssh, sudo).
What cannot be run is in REASONS, with why. Examples with their output are run by test_manual.py."""
import os
import pwd
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import BUILD, GUA, ROOT, clean_environment, gua
from engine import Prometheus, fill, free_port
from fake import fake_driver

pytestmark = [pytest.mark.any_build, pytest.mark.skipif(not (BUILD / "gua-fleet").exists(), reason="built without libcurl")]

PAGES = sorted((ROOT / "man").glob("*.scd"))
# A line of an example that runs gua, or make: other lines are output, files, or other programs' commands.
COMMAND = re.compile(r'^(?:(?:sudo|srun) |eval "\$\(|for [^;]*; do |[^|]*\| |source <\()?(?:gua|gpu-tracker|make)(?: |$)(?!pick: )')
REASONS = [
    (r"^(sudo )?make\b", "the front door: test_front.py, test_install.py; packages: make deb, make dist-bin"),
    (r"^sudo gua (un)?install", "would change this system: test_gua_install.py does it in a root of its own"),
    (r"^gua install --root", "needs an image of a system: test_gua_install.py"),
    (r"gua (keep|enforce (arm|disarm|log))\b", "needs the service: test_enforce.py, test_user_socket.py"),
    (r"^gua (start|stop|daemon$)", "a recorder is at work in this place: test_start.py, test_recorder.py"),
    (r"^gua top\b|^gua stat -cp -i", "needs a terminal: test_top.py, test_stat.py"),
    (r"gua serve --(db|listen)", "needs a certificate and names of this host: test_serve.py, test_serve_safety.py"),
    (r"gua fleet status --from https:", "needs an engine with TLS: test_fleet_answers.py"),
    (r"gua merge node7.db|gua import", "needs files of other hosts and tools: test_merge.py, test_import.py"),
    (r"\|$", "its other half is curl, to an engine: test_backfill.py"),
    (r"gua .* ([A-Z]{4,}|--from|--capture)$", "the name of an option, not a command"),
]
# These go on until they are interrupted.
ENDLESS = r"^gua (daemon .*|dmon.*|serve.*|query .*-l 1|track --pid .*)$|--wait"
# What is an answer, too: at an hour at which the demo has nothing of the kind, or of a build in a place that services do not see.
NOTHING = r"no process matches|nothing was recorded|no data|a service cannot start"
STAND_INS = {
    "sudo": 'exec "$@"', "srun": 'exec "$@"', "python": 'exec /usr/bin/python3 "$@"', "torchrun": "exit 0", "jq": "exec cat",
    "sinfo": "echo one", "ssh": 'while [ "$1" != -- ]; do shift; done; shift 3; exec gua "$@"',
}
SCENARIO = """
host lab
""" + "".join(f'card {n} uuid GPU-{n:04} name "NVIDIA A100-SXM4-80GB" memory 80GiB pci 0000:{n + 16:02x}:00.0\n' for n in range(12)) + """
process job pid env JOB user alice uid 1001 command "python train.py"
at 0s hold job card 0 memory 8GiB
"""


def shown(path):
    """The commands of a document, without those whose output test_manual.py compares."""
    text, lines = path.read_text(), []
    if path.suffix == ".md":
        lines = [line for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()]
        lines += re.findall(r"`(gua [^`]* -[^`]*)`", " ".join(text.split()))
    else:
        text = re.sub(r"^; run\n```\n.*?^```\n", "", text, flags=re.M | re.S)
        for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S):
            lines += [line.removeprefix("$ ") for line in block.splitlines()]
        for section in re.findall(r"^# EXAMPLES\n(.*?)(?=^# |\Z)", text, re.M | re.S):
            lines += [line for part in re.findall(r"^\t(?:.*\+\+\n)*.*", section, re.M) for line in part.strip().split("++\n")]
    lines = [re.sub(r"\\(.)", r"\1", " ".join(line.split())) if path.suffix == ".scd" else " ".join(line.split()) for line in lines]
    return [re.sub(r" # .*", "", line) for line in lines if COMMAND.search(line)]


SHOWN = list(dict.fromkeys((path.name, line) for path in [ROOT / "README.md", *PAGES] for line in shown(path)))


def why_not(line):
    return next((why for pattern, why in REASONS if re.search(pattern, line)), None)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with all that the commands name, and the environment in which they run."""
    where = tmp_path_factory.mktemp("shown")
    state, stores = where / "state" / "gua", where / "srv" / "stores"
    for folder in (state, stores, where / "bin", where / ".local/share/bash-completion/completions", where / ".zfunc",
                   where / ".config/fish/completions", where / "node-exporter"):
        folder.mkdir(parents=True)
    assert gua("demo", "--db", state / "gua.db").returncode == 0
    shutil.copy(state / "gua.db", stores / "one.db")
    (where / "srv" / "gua-stores").symlink_to(stores)
    (where / "gpu-hosts").write_text("one\n")
    (where / "train.py").write_text("import sys\n")
    (where / "simulate").write_text("#!/bin/sh\nexec sleep 0.3\n")
    (where / "run").symlink_to("simulate")
    # What all users of a host share is this place's own.
    apart = f'case $1 in\npick) shift; exec {GUA} pick --lock-dir {where}/locks "$@" ;;\n' \
            f'serve) exec {GUA} "$@" --listen 127.0.0.1:{free_port()} ;;\nesac\nexec {GUA} "$@"'
    for name, text in {**STAND_INS, "gua": apart}.items():
        (where / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
    for path in [where / "simulate", *(where / "bin").iterdir()]:
        path.chmod(0o755)
    job = subprocess.Popen(["sleep", "1000"])
    past = gua("export", "--openmetrics", "--step", "1h", "--since", "30d", "--db", state / "gua.db", "--label", "instance=lab:9848",
               "--label", "job=gua").stdout
    fill(past, where / "data", where)
    engine = Prometheus(where, where / "data")
    fake = fake_driver(where, SCENARIO, JOB=job.pid, FAKENVML_START=time.time() - 60)
    env = clean_environment(**fake, HOME=str(where), XDG_STATE_HOME=str(where / "state"), USER=pwd.getpwuid(os.geteuid()).pw_name, CUDA_VISIBLE_DEVICES="11",
                            GUA_CONFIG=str(where / "gua.conf"), PATH=f"{where / 'bin'}:{GUA.parent}:{os.environ['PATH']}")
    (where / "gua.conf").write_text("[groups]\nvision = alice bob\n")
    for run in (["sh", "-c", "gua track --st 50ms --tf samples.csv -- ./simulate"], ["cp", "samples.csv", "samples2.csv"]):
        subprocess.run(run, cwd=where, env=env, capture_output=True, check=True, timeout=60)
    blocks = "process_id,code_block_name,position,timestamp\n"
    for name in ("blocks.csv", "blocks2.csv"):
        (where / name).write_text(blocks)
    run = subprocess.run(["gua", "start", "--interval", "1s"], cwd=where, env=env, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    yield where, env, {"http://prometheus:9090": f"http://127.0.0.1:{engine.port}", "/srv/": f"{where}/srv/",
                       "/var/lib/prometheus": str(where), "41233": str(job.pid), "4242": str(job.pid)}
    subprocess.run(["gua", "stop"], cwd=where, env=env, capture_output=True, check=True, timeout=60)
    job.kill()
    job.wait()
    engine.process.terminate()
    engine.process.wait()


@pytest.mark.parametrize("document, line", [pair for pair in SHOWN if not why_not(pair[1])])
def test_it_runs(place, document, line):
    where, env, others = place
    for name, here in others.items():
        line = line.replace(name, here)
    for made in re.findall(r"^gua (?:merge|track .*--tf) (\S+)", line):
        (where / made).unlink(missing_ok=True)
    endless = re.search(ENDLESS, line)
    child = subprocess.Popen(["bash", "-o", "pipefail", "-c", line], cwd=where, env=env, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        _, said = child.communicate(timeout=1 if endless else 60)
        assert child.returncode == 0 or re.search(NOTHING, said), said
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=20)
        assert endless, f"it does not end: {said}"


def test_reasons_are_needed():
    """A reason that no command has any more is removed; and most commands are run."""
    for pattern, why in REASONS:
        assert any(re.search(pattern, line) for _, line in SHOWN), why
    assert len(SHOWN) > 120 and sum(1 for _, line in SHOWN if why_not(line)) < len(SHOWN) / 3

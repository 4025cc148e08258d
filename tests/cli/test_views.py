"""What all live views have in common: filters, no driver, no cards, cards that sleep."""
import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BUILD, FAKE_NVML, GUA, ROOT, clean_environment, gua
from fake import calls, fake_driver
from live import CARDS, MIG, WALL, driver, sim  # noqa: F401

# Each view, in a form that prints one line a card or one a process, and how the cards are read off it.
VIEWS = {
    "stat": (["stat", "--no-header"], r"^\[(\d+)\]"),
    "stat --json": (["stat", "--json"], r'^      "index": (\d+)'),
    "query": (["query", "--query-gpu=index", "--format=csv,noheader"], r"^(\d+)$"),
    "apps": (["query", "--query-compute-apps=gua.gpu_index", "--format=csv,noheader"], r"^(\d+)$"),
    "dmon": (["dmon", "-c", "1"], r"^ +(\d+) "),
    "dmon -p": (["dmon", "-p", "-c", "1"], r"^ +(\d+) +\d+ "),
    "who": (["who"], r"^  \w+ +(\d+) "),
    "top": (["top", "--once"], r"^ {3}(\d+) (?:A100|GeForce)"),
    "top's table": (["top", "--once"], r"^[! ] {3}(\d+) \w+ +\d+ [CG] "),
}
PICK = ["pick", "--min-free", "1M", "--hold", "0s"]
OF_PROCESSES = {"apps", "dmon -p", "who", "top's table"}
needs_top = pytest.mark.skipif(not (BUILD / "gua-top").exists(), reason="built without gua top")
views = pytest.mark.parametrize("view", [pytest.param(name, marks=needs_top if "top" in name else ())
                                         for name in VIEWS])

commands = pytest.mark.parametrize("words", [
    pytest.param(words, marks=needs_top if words[0] == "top" else (), id=" ".join(words))
    for words in [*[words for words, _ in VIEWS.values()][:-1], PICK, [*PICK, "--wait"]]])


def cards(run, view):
    return sorted(set(re.findall(VIEWS[view][1], run.stdout, re.M)))


@views
@pytest.mark.parametrize("args, found", [
    (["--user", "alice"], "0"), (["--user", "bob"], "01"), (["--user", "1001"], "0"), (["--pid", "1001"], "0"),
    (["--pid", "1001,1002", "--id", "1"], "1"), (["--min-mem", "5GiB"], "01"), (["--min-mem", "9GiB"], "0"),
    (["--state", "active"], "01"), (["--state", "truly-idle"], "2"), (["--id", "2"], "2"), (["--user", "nobody"], ""),
    (["--id", "GPU-bbbb,17:00.0"], "01"), (["--user", "alice", "--id", "1"], ""),
])
def test_filters_mean_the_same_everywhere(sim, view, args, found):
    run = sim(VIEWS[view][0][0], *VIEWS[view][0][1:], *args, env={"COLUMNS": "120"})
    if view in OF_PROCESSES:
        found = found.replace("2", "")  # nobody is on it
    assert cards(run, view) == list(found), run.stdout
    assert run.returncode == (1 if view == "who" and not found else 0)


@views
@pytest.mark.parametrize("option", ["--user", "--pid", "--id", "--state"])
def test_a_list_without_a_word_is_a_mistake(sim, view, option):
    """A script's variable is empty: to match nothing, or everything, would be a guess."""
    run = sim(VIEWS[view][0][0], *VIEWS[view][0][1:], option, "")
    assert run.returncode == 2 and f"{option} '' names nothing" in run.stderr and run.stdout == ""


@views
def test_no_driver_is_a_sentence(tmp_path, view):
    run = gua(*VIEWS[view][0], "--no-store", "--nvml", tmp_path / "none.so")
    assert (run.returncode, run.stdout) == (1, "") and run.stderr.count("\n") == 1


@commands
def test_no_card_is_a_sentence(sim, words):
    """Nobody waits for a card that the driver does not know."""
    run = sim(*words, scenario="host lab\ndriver 560.35.05\n")
    assert run.returncode == 1
    assert run.stderr == f"gua {words[0]}: the driver works but lists no card\n"
    if "--json" in words:
        assert json.loads(run.stdout)["gpus"] == []
    else:
        assert run.stdout in ("", "(No GPUs are available)\n")


@pytest.mark.parametrize("words, said", [
    (["stat"], r"^\[1\] NVIDIA GeForce RTX 3090 \| .* MB \| .*\| asleep$"),
    (["query", "--query-gpu=index,gua.state,temperature.gpu,memory.used,pcie.link.gen.current"],
     r"^1, asleep, \[N/A\], \[N/A\], \[N/A\]$"),
    (["dmon", "-s", "pucvmet", "-c", "2", "-d", "0.1"], r"^ +1( +-)+$"),
    (["dmon", "-p", "-c", "1"], r"^ +1( +-)+$"),
    (["smi"], r"^\|   1  NVIDIA GeForce RTX 3090 +N/A \|"),
    (["smi", "-q"], r"^    Product Name +: NVIDIA GeForce RTX 3090$"),
    (["who"], "card 1 is asleep"),
    ([*PICK, "--id", "1"], "1 lost, asleep or not readable"),
    pytest.param(["top", "--once"], "^ +1 .*asleep; it is not woken", marks=needs_top),
], ids=lambda value: value[0] if isinstance(value, list) else None)
def test_a_sleeping_card_is_not_woken(driver, tmp_path, words, said):
    root = tmp_path / "sleepy"
    for pci, status in (("0000:17:00.0", "active"), ("0000:65:00.0", "suspended"), ("0000:98:00.0", "active")):
        power = root / "sys/bus/pci/devices" / pci / "power"
        power.mkdir(parents=True)
        (power / "runtime_status").write_text(status + "\n")
        (root / "proc/driver/nvidia/gpus" / pci).mkdir(parents=True)
        (root / "proc/driver/nvidia/gpus" / pci / "information").write_text("Model: \t NVIDIA GeForce RTX 3090\n")
    run = driver(*words, scenario=CARDS + "at 0s asleep card 1\n", root=root)
    assert re.search(said, run.stdout + run.stderr, re.M), run.stdout + run.stderr
    log = calls(tmp_path / "log")
    assert log and not [call for call in log if call[2] == 1 or call[1] == "woken"]


@pytest.mark.parametrize("words", [["stat", "-p"], ["stat", "--json"], ["dmon", "-p", "-c", "1"],
                                   pytest.param(["top", "--once"], marks=needs_top)], ids=" ".join)
def test_processes_that_only_draw_can_be_left_out(sim, words):
    whole, computing = sim(*words).stdout, sim(*words, "--compute").stdout
    assert "1003" in whole and "1003" not in computing and "1002" in computing
    assert "shown" not in computing  # no holder is hidden
    if words[0] != "top":
        assert len(computing.split("1001")[0]) == len(whole.split("1001")[0])  # cards stay
    assert sim("who", "--compute").stdout == sim("who").stdout


def test_pick_takes_no_empty_list_either(sim):
    run = sim(*PICK, "--id", ",")
    assert run.returncode == 2 and "--id ',' names nothing" in run.stderr


KERNEL = """
host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000 name "NVIDIA A100" memory 80GiB
process kernel pid 3101
process other pid 3106
at 0s hold kernel card 0 memory 8GiB
at 0s hold other card 0 memory 2GiB
"""


@pytest.mark.parametrize("words, shown", [
    (["stat", "-c"], "python[/home/alice/thesis/exp1.ipynb](8192M)"),
    (["who"], " /home/alice/thesis/exp1.ipynb python -m ipykernel_launcher\n"),
    (["who", "--json"], '"notebook": "jupyter:2f6b1c9e-0d4a-4b7f-9a53-7c1e0d2b8f46", '
     '"notebook_path": "/home/alice/thesis/exp1.ipynb"'),
    (["stat", "--json"], '"gua.notebook_path": "/home/alice/thesis/exp1.ipynb"'),
    (["query", "--query-compute-apps=pid,gua.notebook_path"], "\n3101, /home/alice/thesis/exp1.ipynb\n3106, [N/A]\n"),
    pytest.param(["top", "--once"], " /home/alice/thesis/exp1… python -m ipykernel_launcher", marks=needs_top),
], ids=lambda value: " ".join(value)[:20] if isinstance(value, list) else None)
def test_a_kernel_is_named_by_its_notebook(driver, tmp_path, words, shown):
    """Its server says so in its environment, of which nothing else is to be seen anywhere."""
    root = tmp_path / "jupyter"
    shutil.copytree(ROOT / "tests/roots/jupyter", root)
    secrets = b"HF_TOKEN=hush\0JPY_SESSION_NAME=/home/alice/thesis/exp1.ipynb\0KEY=hush\0"
    for pid in ("3101", "3106"):  # the second is no kernel: its environment is its own
        (root / "proc" / pid / "environ").write_bytes(secrets)
    run = driver(*words, scenario=KERNEL, root=root)
    assert shown in run.stdout, run.stdout + run.stderr
    assert "hush" not in run.stdout + run.stderr


def is_other_user():
    """Words before a command that make root another user, who owns nothing here but can read root's files."""
    if os.geteuid() != 0:
        return ()
    words = ("unshare", "-U")
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs user namespaces, or to run as another user than root")
    return words


def process_of(tmp_path, uid):
    """A recorded root in which process 4201 has a secret in its arguments and belongs to `uid`."""
    root = tmp_path / f"of-{uid}"
    shutil.copytree(ROOT / "tests/roots/login", root)
    status = root / "proc/4201/status"
    status.write_text(re.sub(r"(?m)^Uid:.*$", f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}", status.read_text()))
    (root / "proc/4201/loginuid").write_text("4294967295")
    return root


SECRETIVE = KERNEL.replace("3101", "4201").replace("3106", "4202")
WITH_ARGUMENTS = [["stat", "-f"], ["stat", "--json"], ["query", "--query-compute-apps=pid,process_name"]]
ALL_VIEWS = WITH_ARGUMENTS + [["stat", "-c"], ["dmon", "-p", "-c", "1"], ["who"], ["who", "--json"],
                              pytest.param(["top", "--once"], marks=needs_top)]


@pytest.mark.parametrize("words", ALL_VIEWS, ids=" ".join)
def test_others_do_not_see_arguments(driver, tmp_path, words):
    """They see what is stored: program and script."""
    run = driver(*words, scenario=SECRETIVE, root=process_of(tmp_path, 54321), before=is_other_user())
    assert run.returncode == 0 and "python3" in run.stdout, run.stdout + run.stderr
    assert "hunter2" not in run.stdout and "secret-project" not in run.stdout


@pytest.mark.parametrize("words", WITH_ARGUMENTS, ids=" ".join)
def test_the_owner_sees_arguments(driver, tmp_path, words):
    run = driver(*words, scenario=SECRETIVE, root=process_of(tmp_path, os.geteuid()))
    assert "/home/alice/venv/bin/python3" in run.stdout, run.stdout + run.stderr
    assert "query" in words or "--api-key=hunter2" in run.stdout


def test_whether_an_instance_computes_is_not_known(sim):
    """The driver does not tell: that is neither true nor false."""
    holders = json.loads(sim("who", "--json", scenario=MIG).stdout)["holders"]
    assert [holder["active"] for holder in holders] == [None, None]
    card = json.loads(sim("stat", "--json", scenario=MIG).stdout)["gpus"][0]
    assert [process["gua.active"] for process in card["processes"]] == [None, None]
    known = json.loads(sim("who", "--json").stdout)["holders"]
    assert {holder["pid"]: holder["active"] for holder in known if holder["card"] == 0} == {1001: True, 1002: False}


@needs_top
def test_power_is_the_same_number_everywhere(sim):
    """Whole watts are those below, as in gpustat."""
    odd, only = CARDS.replace("sm 80", "sm 79"), ["--id", "0"]
    exact = sim("query", "--query-gpu=power.draw", "--format=csv,noheader", *only, scenario=odd).stdout
    assert exact == "328.60 W\n"
    assert " 328 / 400 W " in sim("stat", "-P", *only, scenario=odd).stdout
    assert sim("dmon", "-s", "p", "-c", "1", *only, scenario=odd).stdout.split()[-3] == "328"
    assert " 328/400W " in sim("top", "--once", *only, scenario=odd, env={"COLUMNS": "120"}).stdout


@pytest.mark.parametrize("words", [["stat"], ["query", "--query-gpu=index"], ["who"]], ids=" ".join)
def test_a_store_that_was_named_and_cannot_be_asked_is_said(sim, tmp_path, words):
    missing = tmp_path / "none.db"
    run = sim(*words, "--db", missing)
    assert run.returncode == 0 and run.stdout and f"gua {words[0]}: no store at {missing}: " in run.stderr


@pytest.mark.parametrize("words", ["stat", "query --query-gpu=index"])
def test_nobody_needs_a_store(own_var_lib, words):
    run = own_var_lib(f"{GUA} {words} --source sim --clock virtual")
    assert run.returncode == 0 and run.stdout and run.stderr == ""


@needs_top
def test_top_says_that_processes_were_filtered(sim):
    assert "no process matches" in sim("top", "--once", "--state", "lost").stdout
    assert "no processes on the cards" in sim("top", "--once", scenario=CARDS[:CARDS.index("process ")]).stdout


@needs_top
def test_memory_that_the_driver_cannot_tell_is_not_nothing(sim):
    one = CARDS.replace("at 0s hold note card 0 memory 2GiB", "at 0s hold note card 0 memory unknown")
    run = sim("top", "--once", scenario=one + "at 0s load note card 1 sm 0\n")
    assert " 2 of 3 holders idle: >8.0 GiB;" in run.stdout
    run = sim("top", "--once", "--id", "0", scenario=one)
    assert " 1 of 2 holders idle: -;" in run.stdout


@pytest.fixture
def crowd(tmp_path):
    """The environment of a driver with forty processes of this host on a card."""
    children = [subprocess.Popen(["sleep", "300"]) for _ in range(40)]
    scenario = 'driver 560.35.05\ncard 0 uuid GPU-0 name "NVIDIA A100" memory 80GiB\n' + "".join(
        f"process p{child.pid} pid {child.pid}\nat 0s hold p{child.pid} card 0 memory 600MiB\n" for child in children)
    yield fake_driver(tmp_path, scenario)
    for child in children:
        child.kill()
        child.wait()


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))


def test_more_processes_than_files_that_may_be_open(crowd, tmp_path):
    """What is kept open for each process must not take the files by which others are described."""
    run = gua("who", "--no-store", env=crowd, preexec_fn=few_files)
    assert run.stdout.count("sleep") == 40 and "(ended)" not in run.stdout, run.stdout
    run = gua("stat", "--no-store", "--json", env=crowd, preexec_fn=few_files)
    processes = json.loads(run.stdout)["gpus"][0]["processes"]
    assert len(processes) == 40 and all(p["cpu_memory_usage"] for p in processes), run.stdout
    run = gua("daemon", "--once", "--db", tmp_path / "gua.db", env=crowd, preexec_fn=few_files)
    assert run.returncode == 0, run.stderr
    with sqlite3.connect(tmp_path / "gua.db") as db:
        assert db.execute("SELECT count(*), sum(user = '_dead') FROM process").fetchone() == (40, 0)


def test_samples_that_an_error_took_along_may_have_been_active(tmp_path, clock_file):
    """The driver gives each sample once: those of an answer that fails half-way are lost, and nobody can say that
    the process was idle meanwhile. It was not."""
    clock = clock_file(WALL + 60, 3660)
    env = fake_driver(tmp_path, "start 2026-11-02T08:00:00Z\n" 'card 0 uuid GPU-0 name "NVIDIA A100" memory 80GiB\n'
                      "process p pid 77\nat 0s hold p card 0 memory 8GiB\n"
                      "at 62100ms load p card 0 sm 90\nat 62800ms load p card 0 sm 0\n"
                      "at 63s fail nvmlDeviceGetComputeRunningProcesses* code 9 until 63200ms\n", clock=clock)
    (tmp_path / "proc").mkdir()
    with subprocess.Popen([GUA, "query", "--query-compute-apps=gua.idle_since", "--format=csv,noheader", "-l", "1",
                           "--no-store", "--clock", clock, "--root", tmp_path], env=clean_environment(**env),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as loop:
        since = [loop.stdout.readline().strip() for _ in range(5)]  # at 60, 61, 62, 64 and 65 seconds
        loop.kill()
    assert since[0] == since[2] < "2026-11-02T08:01:00"
    assert "2026-11-02T08:01:02.8" < since[3] == since[4]


@pytest.mark.parametrize("mode, said", [(750, "cannot open the store /var/lib/gua/gua.db: Permission denied"),
                                        (755, "no store at /var/lib/none/gua/gua.db: ")])
def test_who_may_not_read_the_systems_store_is_told(own_var_lib, tmp_path, mode, said):
    """The service's directory is closed to who is not in its group."""
    env = fake_driver(tmp_path, CARDS)
    run = own_var_lib(f"""mkdir -m {mode} /var/lib/gua
        cp {GUA} /var/lib/gua-program
        cp {FAKE_NVML} /var/lib/driver; cp "$1" /var/lib/scenario; chmod 644 /var/lib/scenario
        exec setpriv --reuid 65534 --regid 65534 --clear-groups /var/lib/gua-program who""",
                      env["FAKENVML_SCENARIO"], XDG_STATE_HOME="/var/lib/none", GUA_NVML="/var/lib/driver",
                      FAKENVML_SCENARIO="/var/lib/scenario")
    assert run.returncode == 0 and f"gua who: {said}" in run.stderr, run.stderr

"""gua doctor: what it finds on hosts that lack something, and that it changes nothing."""
import json
import os
import sqlite3
import subprocess

import pytest

from conftest import GUA, gua, wait_for
from fake import calls, fake_driver
from recorded import ONE_CARD, background  # noqa: F401

SCENARIO = """
driver 550.54.15 nvml 12.550.54.15
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 40GB
card 1 uuid GPU-bbbb name "NVIDIA RTX 3090" memory 24GB
process train pid 1001
at 0s hold train card 0 memory 10GB
at 0s load train card 0 sm 80
"""
WALL = 1_700_000_000
HOST_PIDS = "pid:[4026531836]"
MOUNTS = "22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw{}\n"


@pytest.fixture
def host(tmp_path):
    """host() makes a root with a loaded module, device nodes and a plain /proc."""
    def make(version="550.54.15", nodes=("nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm"), hidepid="",
             pid_namespace=HOST_PIDS):
        root = tmp_path / "root"
        for folder in ("dev", "etc", "sys/module/nvidia", "proc/driver/nvidia", "proc/self/ns"):
            (root / folder).mkdir(parents=True)
        for node in nodes:
            (root / "dev" / node).touch()
        (root / "proc/driver/nvidia/version").write_text(
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Thu Feb 22 01:44:30 UTC 2024\n")
        (root / "etc/os-release").write_text('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
        (root / "proc/self/mountinfo").write_text(
            "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + MOUNTS.format(hidepid))
        (root / "proc/self/ns/pid").symlink_to(pid_namespace)
        return root
    return make


@pytest.fixture
def doctor(tmp_path, clock_file):
    """doctor(ROOT, SCENARIO) runs it and returns (JSON, process)."""
    def run(root, scenario=SCENARIO, db=None, missing=(), json_wanted=True, log=None, config="/dev/null", **options):
        env = fake_driver(tmp_path, scenario, clock=clock_file(WALL, 3610), missing=missing,
                          log=log or tmp_path / "log") | {"GUA_CONFIG": str(config)}
        words = ["doctor", "--root", root, "--clock", env["FAKENVML_CLOCK"],
                 "--db", db or tmp_path / "no.db"]
        process = gua(*words, *(["--json"] if json_wanted else []), env=env, **options)
        return json.loads(process.stdout) if json_wanted else None, process
    return run


def checks(answer, name):
    return [check for check in answer["checks"] if check["check"] == name]


def only(answer, name):
    check, = checks(answer, name)
    return check


def problems(answer):
    return [check["check"] for check in answer["checks"] if check["result"] == "problem"]


def test_a_healthy_host(host, doctor):
    answer, process = doctor(host())
    assert process.returncode == 0 and process.stderr == ""
    assert answer["schema"] == "gua-doctor-1" and problems(answer) == []
    assert [card["uuid"] for card in answer["cards"]] == ["GPU-aaaa", "GPU-bbbb"]
    assert answer["cards"][0]["mig_index"] is None and answer["cards"][0]["mem_total_bytes"] == 40 * 10**9
    assert all(row["works"] and not row["fallback"] for row in answer["facilities"])
    assert "550.54.15" in only(answer, "module")["text"]
    assert "550.54.15" in only(answer, "library")["text"]
    assert only(answer, "processes")["result"] == "ok"
    assert {check["result"] for check in answer["checks"]} == {"ok"}


@pytest.mark.parametrize("mode", ["on", "off"])
def test_accounting_mode(host, doctor, mode):
    answer, _ = doctor(host(), SCENARIO + ("accounting on\n" if mode == "on" else ""))
    check = only(answer, "ended processes")
    assert check["text"] == f"accounting mode is {mode} (GPU 0 1)" and check["result"] == "ok"
    assert ("nvidia-smi -am 1" in check["advice"]) == (mode == "off")


def test_the_text_fits_a_terminal(host, doctor):
    _, process = doctor(host(nodes=()), json_wanted=False)
    lines = process.stdout.splitlines()
    assert lines[0].startswith("ok       system ")
    assert "Debian GNU/Linux 12 (bookworm)" in lines[0]
    assert any(line.startswith("warning  device nodes ") for line in lines)
    assert any(line.strip().startswith("-> ") for line in lines)
    assert lines[-1].endswith("1 warning, 0 problems")


def test_a_node_that_the_library_makes_was_not_there(host, doctor):
    """NVIDIA's library makes device nodes for root; here its log is such a node."""
    root = host(nodes=())
    answer, _ = doctor(root, log=root / "dev/nvidiactl")
    assert (root / "dev/nvidiactl").exists() and only(answer, "device nodes")["result"] == "warning"


def test_without_a_driver_it_says_so_and_touches_nothing(tmp_path, clock_file):
    root = tmp_path / "root"
    root.mkdir()
    env = fake_driver(tmp_path, SCENARIO, clock=clock_file(WALL), log=tmp_path / "log")
    env["LD_LIBRARY_PATH"] = os.path.dirname(env.pop("GUA_NVML"))
    process = gua("doctor", "--root", root, "--db", tmp_path / "deep/er/gua.db", "--json", env=env)
    answer = json.loads(process.stdout)
    assert process.returncode == 1
    assert problems(answer) == ["module", "device nodes", "driver"]
    assert "no NVIDIA driver is loaded" in only(answer, "driver")["text"]
    assert all(check["advice"] for check in answer["checks"] if check["result"] == "problem")
    assert answer["cards"] == [] and answer["facilities"] == []
    assert not (tmp_path / "log").exists() and list(root.iterdir()) == []
    assert not (tmp_path / "deep").exists()


def test_a_library_of_another_version_is_a_warning_and_at_init_a_problem(host, doctor):
    root = host(version="545.23.08")
    answer, process = doctor(root)
    assert only(answer, "library")["result"] == "warning" and process.returncode == 0
    assert "545.23.08" in only(answer, "library")["advice"]
    answer, process = doctor(root, SCENARIO + "at 0s fail nvmlInit_v2 code 18\n")
    assert process.returncode == 1 and problems(answer) == ["driver"]
    text = only(answer, "driver")["text"]
    assert "545.23.08" in text and "550.54.15" in text and "reboot" in text


def test_what_falls_back_is_named_with_its_cards(host, doctor):
    scenario = SCENARIO + ("at 0s fail nvmlDeviceGetSamples card 1 code 3\n"
                           "at 0s fail nvmlDeviceGetTotalEnergyConsumption code 3\n")
    answer, process = doctor(host(), scenario, missing=["nvmlDeviceGetMemoryInfo_v2"])
    assert process.returncode == 0
    by_way = {check["text"]: check["result"] for check in checks(answer, "utilisation")}
    assert by_way == {"by nvmlDeviceGetSamples (GPU 0)": "ok",
                      "by nvmlDeviceGetUtilizationRates (GPU 1)": "warning"}
    assert only(answer, "energy")["result"] == "warning"
    assert "integrated" in only(answer, "energy")["text"]
    assert only(answer, "memory")["result"] == "warning" and only(answer, "memory")["advice"]
    assert process.stderr == ""


def test_holders_that_cannot_be_listed_are_a_problem(host, doctor):
    answer, process = doctor(host(), SCENARIO + "at 0s fail nvmlDeviceGetComputeRunningProcesses* code 3\n")
    assert process.returncode == 1 and problems(answer) == ["compute processes"]


def test_cards_that_are_not_well(host, doctor, tmp_path):
    root = host()
    power = root / "sys/bus/pci/devices/0000:11:00.0/power"
    power.mkdir(parents=True)
    (power / "runtime_status").write_text("suspended\n")
    for address in ("0000:10:00.0", "0000:11:00.0"):
        (root / "proc/driver/nvidia/gpus" / address).mkdir(parents=True)
    answer, process = doctor(root, SCENARIO + "at 5s lost card 0\n")
    assert process.returncode == 1
    assert [card["status"] for card in answer["cards"]] == ["lost", "asleep"]
    assert only(answer, "card 0")["result"] == "problem" and "code 15" in only(answer, "card 0")["text"]
    assert only(answer, "card 1")["result"] == "warning"
    assert 1 not in [card for _, _, card, _ in calls(tmp_path / "log")]


def test_a_card_that_may_not_be_opened(host, doctor):
    answer, process = doctor(host(), SCENARIO + "at 0s fail nvmlDeviceGetHandleByIndex_v2 card 1 code 4\n")
    assert process.returncode == 1 and problems(answer) == ["card 1"]
    assert answer["cards"][1]["status"] == "denied"


def test_a_driver_without_a_card_is_a_problem(host, doctor):
    answer, process = doctor(host(), SCENARIO + "at 0s vanish card 0\nat 0s vanish card 1\n")
    assert process.returncode == 1 and problems(answer) == ["cards"]


def test_mig_instances_are_shown_as_cards(host, doctor):
    scenario = SCENARIO.replace("process train", 'mig 1 index 2 gi 3 ci 0 uuid MIG-x name "1g" memory 5GB\n'
                                "process train")
    answer, process = doctor(host(), scenario)
    assert process.returncode == 0
    card = answer["cards"][1]
    assert (card["uuid"], card["mig_index"], card["parent_uuid"]) == ("MIG-x", 2, "GPU-bbbb")
    assert "MIG-x" in only(answer, "card 1/2")["text"]
    assert "use unknown" in [check for check in checks(answer, "utilisation")
                            if check["result"] == "warning"][0]["advice"]


@pytest.mark.parametrize("option", [",hidepid=2", ",hidepid=invisible,gid=4"])
def test_hidepid_is_seen(host, doctor, option):
    answer, _ = doctor(host(hidepid=option))
    text = only(answer, "processes")["text"]
    assert option.split(",")[1] in text
    # It does not bind root, and the tests may run as root.
    assert only(answer, "processes")["result"] == ("ok" if os.geteuid() == 0 else "warning")


def test_hidepid_as_somebody_else(host, doctor, tmp_path):
    """Root is not bound by it; nobody is. Skipped where nobody cannot reach the build."""
    def become_nobody():
        os.setegid(65534)
        os.seteuid(65534)
    reach = subprocess.run(["test", "-x", str(GUA)], preexec_fn=become_nobody if os.geteuid() == 0 else None)
    if os.geteuid() != 0 or reach.returncode != 0:
        pytest.skip("needs root and a build that others can read")
    root = host(hidepid=",hidepid=2")
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:  # pytest's own folders, which are one more with several workers
        if folder.name.startswith(("pytest-", "worker")):
            folder.chmod(0o755)
    umask = os.umask(0)
    try:
        answer, _ = doctor(root, preexec_fn=become_nobody)
    finally:
        os.umask(umask)
    assert only(answer, "processes")["result"] == "warning"
    assert only(answer, "processes")["advice"]


def test_hidepid_off_is_nothing(host, doctor):
    answer, _ = doctor(host(hidepid=",hidepid=0"))
    assert "can be seen" in only(answer, "processes")["text"]


def test_a_pid_namespace_of_its_own(host, doctor):
    root = host(pid_namespace="pid:[4026532281]")
    (root / ".dockerenv").touch()
    answer, process = doctor(root)
    assert only(answer, "processes")["result"] == "warning" and "container" in only(answer, "processes")["text"]
    assert "--pid=host" in only(answer, "processes")["advice"] and process.returncode == 0


def test_a_cgroup_namespace_of_its_own(host, doctor):
    root = host()
    (root / "proc/1").mkdir()
    (root / "proc/1/cgroup").write_text("0::/init.scope\n")
    answer, _ = doctor(root)
    assert checks(answer, "cgroups") == []
    (root / "proc/1/cgroup").write_text("0::/../../../../init.scope\n")
    answer, process = doctor(root)
    assert "cgroup namespace of its own" in only(answer, "cgroups")["text"] and process.returncode == 0


def test_the_store(host, doctor, tmp_path):
    root = host()
    answer, _ = doctor(root)
    assert "nothing is recorded yet" in only(answer, "store")["text"]
    assert only(answer, "free space")["text"].endswith(f"({tmp_path})")
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE t (a)")
    answer, process = doctor(root, db=foreign)
    assert problems(answer) == ["store"] and process.returncode == 1
    ours = tmp_path / "ours.db"
    assert gua("demo", "--ticks", 2, "--db", ours).returncode == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    answer, process = doctor(root, db=ours)
    assert "no recorder is running on it" in only(answer, "store")["text"] and process.returncode == 0
    assert (only(answer, "store")["result"], "gua start" in only(answer, "store")["advice"]) == ("warning", True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_running_recorder(host, doctor, background):  # noqa: F811
    running = background(ONE_CARD)
    answer, _ = doctor(host(), db=running.db)
    assert (only(answer, "store")["result"], only(answer, "store")["text"]) == (
        "ok", f"{running.db} is a store of gua, and a recorder is running on it")


def test_a_damaged_store(host, doctor, tmp_path):
    """Both gua doctor and the other commands say what to do."""
    damaged = tmp_path / "damaged.db"
    assert gua("demo", "--ticks", 20, "--db", damaged).returncode == 0
    os.truncate(damaged, damaged.stat().st_size // 2)
    answer, process = doctor(host(), db=damaged)
    assert only(answer, "store")["text"] == f"{damaged} is damaged, or cannot be read" and process.returncode == 1
    assert "restore a copy" in only(answer, "store")["advice"]
    assert "is damaged; stop what writes it, then move it away or restore a copy\n" in gua("report", "--db", damaged).stderr


def test_the_faults_of_a_running_recorder(host, doctor, background):  # noqa: F811
    running = background(ONE_CARD)
    root = host()
    with sqlite3.connect(running.db) as db:
        db.execute("BEGIN EXCLUSIVE")
        wait_for(lambda: "cannot write the store" in gua("status", "--db", running.db).stdout)
        answer, process = doctor(root, db=running.db)
    assert "it is locked by another program" in only(answer, "recorder")["text"] and process.returncode == 1


def test_errors_in_the_configuration(host, doctor, tmp_path):
    root, config = host(), tmp_path / "gua.conf"
    config.write_text("[record]\ndrain = 5s\n")
    answer, _ = doctor(root, config=config)
    assert checks(answer, "configuration") == []
    config.write_text("[record]\ndrian = 5s\n")
    answer, process = doctor(root, config=config)
    assert problems(answer) == ["configuration"] and process.returncode == 1
    assert "gua.conf:2: drian" in only(answer, "configuration")["text"]
    assert "gua config --check" in only(answer, "configuration")["advice"]


def test_low_space_is_a_warning(host, doctor):
    answer, _ = doctor(host(), db="/proc/gua.db")  # has no free block
    assert only(answer, "free space")["result"] == "warning" and only(answer, "free space")["advice"]


def test_wrong_usage():
    assert gua("doctor", "--nonsense").returncode == 2
    assert gua("doctor", "operand").returncode == 2
    assert "usage: gua doctor" in gua("doctor", "--help").stdout

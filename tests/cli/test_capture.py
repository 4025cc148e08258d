"""gua doctor --capture: what is in the file, and what is not."""
import os
import re

import pytest

from blocked import add_process
from conftest import FAKE_NVML, gua
from fake import calls, fake_driver

SCENARIO = """
driver 550.54.15 nvml 12.550.54.15
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 40GB
card 1 uuid GPU-bbbb name "NVIDIA H100" memory 80GB gpm yes
process train pid env WORKER
at 0s hold train card 0 memory 10GB
at 0s load train card 0 sm 80
"""


@pytest.fixture
def capture(tmp_path, clock_file):
    """capture(SCENARIO) makes one, on a virtual clock; returns (its lines, the run)."""
    def run(scenario=SCENARIO, *words, missing=(), virtual=True, **env):
        clock = clock_file(1_700_000_000, 3610) if virtual else None
        env = fake_driver(tmp_path, scenario, clock=clock, missing=missing, log=tmp_path / "log",
                          WORKER=os.getpid(), **env)
        path = tmp_path / "host.capture"
        process = gua("doctor", "--capture", path, *words, *(["--clock", clock] if virtual else []), env=env)
        return path.read_text().splitlines() if path.exists() else None, process
    return run


def answers(lines, symbol, subject="0"):
    return [line.split(" = ")[1] for line in lines if line.startswith(f"call {symbol} {subject} ")]


def test_it_has_what_the_driver_answers(capture):
    lines, process = capture()
    assert process.returncode == 0 and process.stderr == ""
    assert lines[0] == "gua-capture 1" and lines[-1] == "end"
    assert answers(lines, "nvmlDeviceGetName") == ['0 "NVIDIA A100"']
    assert answers(lines, "nvmlSystemGetDriverVersion", "-") == ['0 "550.54.15"']
    assert answers(lines, "nvmlDeviceGetMemoryInfo_v2") == ["0 40000000000 0 30000000000 10000000000"] * 6
    assert answers(lines, "nvmlDeviceGetTemperatureThreshold") == ["0 92", "0 89", "0 95", "0 85", "0 65", "0 83", "0 91"]
    assert answers(lines, "nvmlDeviceGetAccountingPids") == ["3"]
    assert len([line for line in lines if line.startswith("round ")]) == 6
    samples = [line for line in lines if re.fullmatch(r"  1700000\d+ 80", line)]
    assert len(samples) >= 30
    assert answers(lines, "nvmlGpmMetricsGet", "1") == ["0 0 0", "0 0 0"]


def test_it_says_what_it_wrote_and_asks_to_read_it(capture, tmp_path):
    lines, process = capture()
    made = len([line for line in lines if line.startswith(("call ", "# after GPM: call "))])
    assert process.stdout.startswith(f"Wrote {tmp_path}/host.capture: ")
    assert f" {made} calls of the driver, 2 cards, 1 process." in process.stdout
    assert "read the file before you send it" in process.stdout


def test_names_are_replaced_and_stay_consistent(capture):
    lines, _ = capture(SCENARIO)
    text = "\n".join(lines)
    assert "aaaa" not in text and "bbbb" not in text
    assert answers(lines, "nvmlDeviceGetUUID") == ['0 "GPU-00000000-0000-0000-0000-000000000001"']
    assert answers(lines, "nvmlDeviceGetUUID", "1") == ['0 "GPU-00000000-0000-0000-0000-000000000002"']
    assert answers(lines, "nvmlDeviceGetSerial", "1") == ['0 "serial-2"']
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4
    process, = [line for line in lines if line.startswith("process ")]
    assert re.fullmatch(rf'process {os.getpid()} age_ms \d+ user "(root|user-1)" command "command-1"( \w+ "[\w:-]+")*',
                        process)
    assert "pytest" not in text and "python" not in text


def test_only_the_kind_of_a_label_is_kept(capture, tmp_path):
    """A unit may have a colon in its name; what is before it is no kind."""
    root = tmp_path / "root"
    for pid, cgroup in ((71, "system.slice/secret:train.service"), (72, "system.slice/slurmstepd.scope/job_4711/step_0"),
                        (73, "machine.slice/machine-secret.scope")):
        add_process(root, pid, 1234, ["/home/secret/run", "--token=secret"], comm="secret")
        (root / f"proc/{pid}/cgroup").write_text(f"0::/{cgroup}\n")
    scenario = SCENARIO + "".join(f"process p{pid} pid {pid}\nat 0s hold p{pid} card 1 memory 1GB\n" for pid in (71, 72, 73))
    lines, _ = capture(scenario, "--root", root)
    assert not [line for line in lines if "secret" in line]
    found = [re.sub(r"age_ms \d+ ", "", line) for line in lines if re.match(r"process 7\d ", line)]
    assert found == ['process 71 user "user-1" command "command-1" unit "unit-1"',
                     'process 72 user "user-1" command "command-1" job "slurm:job-1" unit "unit-2"',
                     'process 73 user "user-1" command "command-1" container "machine:container-1"']


def test_an_unknown_user_stays_unknown(capture, tmp_path):
    directory = add_process(tmp_path / "root", 71, 1234, ["run"])
    (directory / "status").write_text("Name:\trun\nTgid:\t71\n")
    lines, _ = capture(SCENARIO + "process p pid 71\nat 0s hold p card 1 memory 1GB\n", "--root", tmp_path / "root")
    assert [line for line in lines if line.startswith("process 71 ") and 'user "_unknown"' in line]


def test_the_directory_of_a_library_is_not_written(capture, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "libnvidia-ml.so.1").symlink_to(FAKE_NVML)
    for path in (f"/usr/..{secret}", f"/usr/lib/../..{secret}"):
        lines, _ = capture(SCENARIO, "--nvml", f"{path}/libnvidia-ml.so.1")
        assert 'library "libnvidia-ml.so.1"' in lines and not [line for line in lines if "secret" in line]


def test_identities_of_racks_and_hosts_are_replaced(capture):
    lines, _ = capture(SCENARIO.replace("NVIDIA H100", "NVIDIA B200"))
    assert answers(lines, "nvmlDeviceGetHostname_v1", "1") == ['0 "host-1"']
    cluster, = answers(lines, "nvmlDeviceGetGpuFabricInfo", "1")
    assert re.fullmatch(r"0 x0{31}1 0 7 3", cluster)
    guid, chassis = answers(lines, "nvmlDeviceGetPlatformInfo", "1")[0].split()[1:3]
    assert re.fullmatch("x0{31}[1-9]", guid) and re.fullmatch("x0{31}[1-9]", chassis) and guid != chassis


def test_every_line_is_plain(capture):
    scenario = SCENARIO.replace('"NVIDIA A100"', '"A\x1b[31m100"')
    lines, _ = capture(scenario)
    assert all(line.isprintable() for line in lines)


def test_what_the_library_lacks(capture):
    lines, _ = capture(missing=["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons"])
    assert [line for line in lines if line.startswith("missing nvmlDeviceGetMemoryInfo_v2")] == [
        "missing nvmlDeviceGetMemoryInfo_v2"]
    assert answers(lines, "nvmlDeviceGetMemoryInfo_v2") == []
    assert answers(lines, "nvmlDeviceGetMemoryInfo")[0].startswith("0 40000000000 ")


def test_mig_instances(capture):
    scenario = SCENARIO.replace("process train", 'mig 1 index 2 gi 3 ci 0 uuid MIG-x name "1g" memory 5GB\n'
                                "process train")
    lines, _ = capture(scenario)
    assert answers(lines, "nvmlDeviceGetGpuInstanceId", "1/2") == ["0 3"]
    assert answers(lines, "nvmlDeviceGetUUID", "1/2") == ['0 "MIG-00000000-0000-0000-0000-000000000003"']
    assert answers(lines, "nvmlGpmMetricsGet", "1")[0].startswith("0 0 ")
    assert [line for line in lines if line.startswith("# after GPM: call nvmlDeviceGetMemoryInfo_v2 1/2 = 0 ")]


def test_a_call_that_does_not_return_is_written_down_and_the_rest_goes_on(capture, tmp_path):
    scenario = SCENARIO + "at 0s hang nvmlDeviceGetVbiosVersion card 0\n"
    lines, process = capture(scenario, "--driver-timeout", "300ms", FAKENVML_RELEASE=tmp_path / "no")
    assert process.returncode == 0
    assert "call nvmlDeviceGetVbiosVersion 0 = no answer in 0.3 s" in lines
    assert "nvmlDeviceGetVbiosVersion did not answer in time" in process.stdout
    assert answers(lines, "nvmlDeviceGetMemoryInfo_v2") == []   # the card is not asked again
    assert len(answers(lines, "nvmlDeviceGetMemoryInfo_v2", "1")) == 6


def test_a_call_that_crashes_is_written_down(tmp_path, clock_file):
    """The fake library ends a program that calls what its scenario says is missing."""
    clock, path = clock_file(1_700_000_000, 3610), tmp_path / "c"
    env = fake_driver(tmp_path, SCENARIO, clock=clock, WORKER=os.getpid())
    (tmp_path / "driver.scenario").write_text(SCENARIO + "missing nvmlDeviceGetVbiosVersion\n")
    process = gua("doctor", "--capture", path, "--clock", clock, env=env)
    lines = path.read_text().splitlines()
    assert "call nvmlDeviceGetVbiosVersion 0 = no answer: it ended the process that called it" in lines
    assert "nvmlDeviceGetVbiosVersion ended the process that called it" in process.stdout
    assert process.returncode == 0 and lines[-1] == "end"


def test_a_driver_that_hangs_as_a_whole(capture, tmp_path):
    lines, process = capture(SCENARIO + "at 0s hang nvmlInit_v2\n", "--driver-timeout", "300ms")
    assert process.returncode == 0 and lines[-1] == "end"
    assert "call nvmlInit_v2 - = no answer in 0.3 s" in lines
    assert not [line for line in lines if "nvmlDeviceGetCount" in line]


def test_without_a_library(tmp_path):
    path = tmp_path / "c"
    process = gua("doctor", "--capture", path, "--nvml", tmp_path / "none.so")
    assert process.returncode == 0 and "could not be loaded" in process.stdout
    assert "library none\nend\n" in path.read_text() and str(tmp_path) not in path.read_text()


def test_a_sleeping_card_is_not_woken(capture, tmp_path):
    root = tmp_path / "root"
    power = root / "sys/bus/pci/devices/0000:11:00.0/power"
    power.mkdir(parents=True)
    (root / "proc").mkdir()
    (power / "runtime_status").write_text("suspended\n")
    for address in ("0000:10:00.0", "0000:11:00.0"):
        (root / "proc/driver/nvidia/gpus" / address).mkdir(parents=True)
    lines, _ = capture(SCENARIO, "--root", root)
    assert "asleep 1" in lines and answers(lines, "nvmlDeviceGetHandleByIndex_v2", "1") == []
    assert 'gpu 0000:11:00.0 asleep "" ""' in lines
    assert 1 not in [card for _, _, card, _ in calls(tmp_path / "log")]


def test_wrong_usage(tmp_path):
    for words in (["--json"], ["--source", "sim"]):
        process = gua("doctor", "--capture", tmp_path / "x", *words)
        assert process.returncode == 2 and "--capture goes with the driver" in process.stderr
    process = gua("doctor", "--capture", tmp_path / "no/such/place")
    assert process.returncode == 1 and "no/such/place" in process.stderr
    assert not (tmp_path / "x").exists()

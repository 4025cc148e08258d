"""gua smi stands in for nvidia-smi. The tools that call nvidia-smi are played by their own rules: the command line that
they run, and how they take its output apart. Where a rule is from is said beside it; the code is ours."""
import ctypes.util
import json
import os
import re
import subprocess
import time
import xml.etree.ElementTree as ET

import pytest

from conftest import BUILD, GUA, clean_environment, gua
from fake import fake_driver
from live import CARDS, LOST, MIG, driver, sim  # noqa: F401

NOBODY = 7777777  # no system gives such a pid
NOW = """
host lab
start 2026-11-02T08:00:00Z
driver 560.35.05
card 0 uuid GPU-aaaa0000-1111-2222-3333-444455556666 name "NVIDIA A100-SXM4-80GB" memory 80GiB reserved 600MiB pci 0000:17:00.0 idle-power 60W max-power 400W
card 1 uuid GPU-bbbb0000-1111-2222-3333-444455556666 name "NVIDIA GeForce RTX 3090" memory 24GiB pci 0000:65:00.0 idle-power 20W max-power 350W
process train pid env TRAIN user alice uid 1001 command "python train.py"
process xorg  pid env XORG  user root  uid 0    command "Xorg :0" kind graphics
at 0s hold train card 0 memory 40GiB
at 0s load train card 0 sm 80
at 0s hold xorg card 1 memory 300MiB
"""


@pytest.fixture
def path(tmp_path):
    """path(SCENARIO) makes a PATH where `nvidia-smi` is gua, by the link that the manual names; the driver is the fake
    one, at work for a minute. Returns the environment."""
    def make(scenario=NOW, train=NOBODY, **env):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / "nvidia-smi").symlink_to(BUILD / "gua-nvidia-smi")
        fake = fake_driver(tmp_path, scenario, TRAIN=train, XORG=NOBODY + 1, FAKENVML_START=time.time() - 60, **env)
        return clean_environment(**fake, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return make


def smi(env, *args, **options):
    return subprocess.run(["nvidia-smi", *args], env=env, capture_output=True, text=True, timeout=60, **options)


# GPUtil 1.4: getGPUs().

def gputil(env):
    asked = ("--query-gpu=index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,gpu_serial,"
             "display_active,display_mode,temperature.gpu")
    lines = smi(env, asked, "--format=csv,noheader,nounits").stdout.split(os.linesep)

    def number(text):
        try:
            return float(text)
        except ValueError:
            return float("nan")
    gpus = []
    for line in lines[:-1]:
        vals = line.split(", ")
        assert len(vals) == 12
        gpus.append({"id": int(vals[0]), "uuid": vals[1], "load": number(vals[2]) / 100, "memoryTotal": number(vals[3]),
                     "memoryUsed": number(vals[4]), "memoryFree": number(vals[5]), "driver": vals[6], "name": vals[7],
                     "display": vals[9:11], "temperature": number(vals[11])})
    return gpus


def test_gputil(path):
    first, second = gputil(path())
    assert first == {"id": 0, "uuid": "GPU-aaaa0000-1111-2222-3333-444455556666", "load": 0.8, "memoryTotal": 81920.0,
                     "memoryUsed": 40960.0, "memoryFree": 40360.0, "driver": "560.35.05", "name": "NVIDIA A100-SXM4-80GB",
                     "display": ["Disabled", "Disabled"], "temperature": 70.0}
    assert second["load"] == 0 and second["memoryUsed"] == 300


# nvidia_gpu_exporter 1.4: AUTO fields from the help, a CSV table by position, values by best effort.

def exporter_table(env):
    listed = smi(env, "--help-query-gpu").stdout
    fields = re.findall(r'(?m)\n\s*\n^"([^"]+)"', listed)
    header, *lines = smi(env, "--query-gpu=" + ",".join(fields), "--format=csv").stdout.strip().split("\n")
    titles = [title.strip() for title in header.split(",")]
    assert len(titles) == len(fields)
    cards = []
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        assert len(cells) == len(fields)
        cards.append(dict(zip(fields, cells)))
    return dict(zip(fields, titles)), cards


def exporter_number(text):
    words = {"enabled": 1, "yes": 1, "active": 1, "disabled": 0, "no": 0, "not active": 0, "default": 0,
             "exclusive_thread": 1, "prohibited": 2, "exclusive_process": 3}
    if text.startswith("0x"):
        return float(int(text, 16))
    if text.lower() in words:
        return float(words[text.lower()])
    numbers = re.findall(r"[+-]?(?:\d*[.])?\d+", text)
    return float(numbers[0]) if len(numbers) == 1 else None


def test_nvidia_gpu_exporter(path):
    env = path()
    titles, (first, second) = exporter_table(env)
    assert len(titles) > 250 and titles["memory.used"] == "memory.used [MiB]" and titles["power.draw"] == "power.draw [W]"
    values = {name: exporter_number(first[name]) for name in first}
    assert values["memory.used"] == 40960 and values["utilization.gpu"] == 80 and values["power.draw"] == 332
    assert values["persistence_mode"] == 1 and values["clocks_event_reasons.gpu_idle"] == 0 and values["pstate"] == 0
    assert values["pci.device_id"] == 0x20B210DE and values["compute_mode"] == 0
    absent = {"", "n/a", "[n/a]", "[not supported]", "[insufficient permissions]", "[unknown error]"}
    assert second["fan.speed"] == "30 %" and first["fan.speed"].lower() in absent
    assert first["uuid"].lower().removeprefix("gpu-") == "aaaa0000-1111-2222-3333-444455556666"
    apps = smi(env, "--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory", "--format=csv").stdout.strip()
    header, *lines = apps.split("\n")
    assert len(header.split(",")) == 4
    (uuid, pid, *name, memory), = [line.split(",") for line in lines]
    assert uuid == "GPU-aaaa0000-1111-2222-3333-444455556666" and int(pid) == NOBODY and memory.strip() == "40960 MiB"
    found = dict(re.findall(r"(?m)^(.*?)\s*:\s*(\S+)$", smi(env, "--version").stdout))
    assert re.fullmatch(r"[0-9]+\.[0-9]+", found["CUDA Version"]) and found["DRIVER version"] == "560.35.05"


# PyTorch 2: torch.utils.collect_env.

def test_torch_collect_env(path):
    env = path()
    whole = subprocess.run("nvidia-smi", shell=True, env=env, capture_output=True, text=True, timeout=60)
    assert whole.returncode == 0
    assert re.search(r"Driver Version: (.*?) ", whole.stdout.strip()).group(1) == "560.35.05"
    cards = subprocess.run("nvidia-smi -L", shell=True, env=env, capture_output=True, text=True, timeout=60)
    assert cards.returncode == 0
    assert re.sub(r" \(UUID: .+?\)", "", cards.stdout.strip()) == (
        "GPU 0: NVIDIA A100-SXM4-80GB\nGPU 1: NVIDIA GeForce RTX 3090")


# Ray 2: dashboard/modules/reporter/gpu_profile_manager.py asks whether the node has GPUs; any failure means no.

def ray_has_gpus(env):
    try:
        subprocess.check_output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], stderr=subprocess.DEVNULL,
                                timeout=10, env=env)
        return True
    except Exception:
        return False


def test_ray(path, tmp_path):
    env = path()
    assert ray_has_gpus(env)
    assert not ray_has_gpus({**env, "GUA_NVML": str(tmp_path / "nothing")})


# Snakemake itself asks nobody (snakemake#281): its workflows count cards and take the emptiest one, in the shell.

def test_snakemake_workflows(path):
    def shell(line):
        return subprocess.check_output(line, shell=True, env=path_env, text=True, timeout=60).strip()
    path_env = path()
    assert shell("nvidia-smi -L | wc -l") == "2"
    assert shell("nvidia-smi --list-gpus | wc -l") == "2"
    assert shell("nvidia-smi --query-gpu=index,memory.free --format=csv,nounits,noheader | sort -t, -k2 -nr | head -n1 | "
                 "cut -d, -f1") == "0"
    assert shell("nvidia-smi -q -d MEMORY -i 1 | grep -A4 'FB Memory' | awk '/Used/ {print $3}'") == "300"
    assert shell("nvidia-smi | grep -oP 'CUDA Version: \\K[0-9.]+'") == "12.6"


# Sonar (NordicHPC): nvidia-smi pmon -c 1 -s mu, columns by the words of the header.

def test_sonar_reads_pmon(path):
    lines = smi(path(), "pmon", "-c", "1", "-s", "mu").stdout.splitlines()
    titles = lines[0].lstrip("# ").split()
    assert titles == "gpu pid type fb ccpm sm mem enc dec jpg ofa command".split()
    assert lines[1].lstrip("# ").split() == "Idx # C/G MB MB % % % % % % name".split()
    rows = [dict(zip(titles, line.split(None, len(titles) - 1))) for line in lines[2:]]
    assert [(row["gpu"], row["pid"], row["type"], row["fb"]) for row in rows] == [
        ("0", str(NOBODY), "C", "40960"), ("1", str(NOBODY + 1), "G", "300")]


def test_pmon_shows_the_last_second(path):
    """Not the mean of the 10 seconds that the driver keeps; a process that does not compute has dashes."""
    env = path(NOW + "at 58s load train card 0 sm 0\nat 58s load train card 0 sm 20\n")
    row = smi(env, "pmon", "-c", "1", "-i", "0").stdout.splitlines()[-1].split()
    assert row[1:4] == [str(NOBODY), "C", "20"]
    row = smi(env, "pmon", "-c", "1", "-i", "1").stdout.splitlines()[-1].split()
    assert row[3:7] == ["-"] * 4


def test_pmon_of_an_old_driver_has_fewer_columns(path):
    lines = smi(path(NOW.replace("560.35.05", "535.261.03")), "pmon", "-c", "1").stdout.splitlines()
    assert lines[0].split() == "# gpu pid type sm mem enc dec command".split()


def test_pmon_has_the_columns_of_pmon(path):
    env = path()
    lines = smi(env, "pmon", "-c", "1").stdout.splitlines()
    assert lines[0].split() == "# gpu pid type sm mem enc dec jpg ofa command".split()
    lines = smi(env, "pmon", "-c", "1", "-s", "um", "-i", "1").stdout.splitlines()
    assert lines[0].split() == "# gpu pid type sm mem enc dec jpg ofa fb ccpm command".split()
    assert len(lines) == 3 and lines[2].split()[:3] == ["1", str(NOBODY + 1), "G"]


# Telegraf (plugins/inputs/nvidia_smi, schema v12), netdata, mars and others: nvidia-smi -q -x by element names.

def test_programs_that_read_the_xml(path):
    run = smi(path(), "-q", "-x")
    assert run.returncode == 0 and '"nvsmi_device_v12.dtd"' in run.stdout
    log = ET.fromstring(run.stdout)
    assert log.tag == "nvidia_smi_log" and log.find("driver_version").text == "560.35.05"
    assert log.find("cuda_version").text == "12.6" and log.find("attached_gpus").text == "2"
    first, second = log.findall("gpu")
    wanted = {
        "product_name": "NVIDIA A100-SXM4-80GB", "product_brand": "NVIDIA", "product_architecture": "Ampere",
        "uuid": "GPU-aaaa0000-1111-2222-3333-444455556666", "minor_number": "0", "fan_speed": "N/A",
        "performance_state": "P0", "compute_mode": "Default", "display_active": "Disabled",
        "fb_memory_usage/total": "81920 MiB", "fb_memory_usage/reserved": "600 MiB", "fb_memory_usage/used": "40960 MiB",
        "fb_memory_usage/free": "40360 MiB", "bar1_memory_usage/free": "131068 MiB",
        "utilization/gpu_util": "80 %", "utilization/memory_util": "40 %", "utilization/encoder_util": "0 %",
        "temperature/gpu_temp": "70 C", "temperature/memory_temp": "74 C",
        "gpu_power_readings/power_draw": "332.00 W",
        "gpu_power_readings/current_power_limit": "400.00 W", "clocks/graphics_clock": "1410 MHz",
        "clocks/mem_clock": "1593 MHz", "max_clocks/video_clock": "1290 MHz", "pci/pci_bus": "17",
        "pci/pci_bus_id": "00000000:17:00.0", "pci/pci_device_id": "20B210DE",
        "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "4", "pci/pci_gpu_link_info/link_widths/max_link_width": "16x",
        "ecc_mode/current_ecc": "Enabled", "ecc_errors/volatile/dram_uncorrectable": "0", "mig_mode/current_mig": "Disabled",
        "remapped_rows/remapped_row_pending": "No", "encoder_stats/session_count": "0",
        "clocks_event_reasons/clocks_event_reason_gpu_idle": "Not Active",
        "retired_pages/double_bit_retirement/retired_count": "N/A"}
    assert {name: first.findtext(name) for name in wanted} == wanted
    assert first.get("id") == "00000000:17:00.0" and second.findtext("fan_speed") == "30 %"
    process, = first.findall("processes/process_info")
    assert [(part.tag, part.text) for part in process][2:4] == [("pid", str(NOBODY)), ("type", "C")]
    assert process.findtext("used_memory") == "40960 MiB"


def test_the_name_of_a_program_cannot_break_the_output(path):
    script = "exec -a 'py,<t>&\"o\tn' sleep 100"
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.DEVNULL) as process:
        try:
            while b"py," not in open(f"/proc/{process.pid}/cmdline", "rb").read():
                time.sleep(0.01)
            env = path(train=process.pid)
            log = ET.fromstring(smi(env, "-q", "-x").stdout)
            assert log.findtext("gpu/processes/process_info/process_name") == 'py,<t>&"o\\x09n'
            line = smi(env, "--query-compute-apps=process_name,pid", "--format=csv,noheader").stdout.strip()
            assert line == f'"py,<t>&""o\\x09n", {process.pid}'
            table = smi(env).stdout
            assert f'{process.pid}      C   py,<t>&"o\\x09n ' in table
            assert len({len(row) for row in table.splitlines() if row.startswith(("|", "+"))}) == 1
        finally:
            process.kill()


# The layouts, on the simulated source.

@pytest.mark.parametrize("name, args, scenario", [
    ("table", [], CARDS), ("mig", [], MIG), ("list", ["-L"], MIG), ("report", ["-q", "-i", "0"], CARDS),
    ("report-mig", ["-q", "-d", "MEMORY,PIDS,CLOCK", "-i", "0"], MIG), ("report.xml", ["-q", "-x", "-i", "0"], MIG),
    ("table-535", [], MIG.replace("560.35.05", "535.261.03")), ("table-580", [], MIG.replace("560.35.05", "580.159.03")),
    ("report-580", ["-q", "-d", "POWER,PIDS,RESET_STATUS", "-i", "0"], CARDS.replace("560.35.05", "580.159.03")),
    ("version", ["--version"], CARDS)])
def test_layouts(sim, expect, name, args, scenario):
    run = sim("smi", *args, scenario=scenario)
    assert run.returncode == 0, run.stderr
    expect(f"smi/{name}", run.stdout)


# The elements below <gpu>, as nvidia-smi of three generations wrote them on real cards; 535 is the document type in its
# program. Groups with members are written as name(members).
GENERATIONS = {
    "530.30.02": """product_name product_brand product_architecture display_mode display_active persistence_mode mig_mode
        mig_devices accounting_mode accounting_mode_buffer_size driver_model serial uuid minor_number vbios_version
        multigpu_board board_id board_part_number gpu_part_number gpu_fru_part_number gpu_module_id inforom_version
        gpu_operation_mode gsp_firmware_version gpu_virtualization_mode gpu_reset_status ibmnpu pci fan_speed
        performance_state clocks_throttle_reasons fb_memory_usage bar1_memory_usage compute_mode utilization encoder_stats
        fbc_stats ecc_mode ecc_errors retired_pages remapped_rows temperature supported_gpu_target_temp power_readings clocks
        applications_clocks default_applications_clocks deferred_clocks max_clocks max_customer_boost_clocks clock_policy
        voltage fabric supported_clocks processes accounted_processes""",
    "535.261.03": """product_name product_brand product_architecture display_mode display_active persistence_mode
        addressing_mode mig_mode mig_devices accounting_mode accounting_mode_buffer_size driver_model serial uuid minor_number
        vbios_version multigpu_board board_id board_part_number gpu_part_number gpu_fru_part_number gpu_module_id
        inforom_version inforom_bbx_flush gpu_operation_mode gsp_firmware_version gpu_virtualization_mode gpu_reset_status
        ibmnpu pci fan_speed performance_state clocks_event_reasons sparse_operation_mode fb_memory_usage bar1_memory_usage
        cc_protected_memory_usage compute_mode utilization encoder_stats fbc_stats ecc_mode ecc_errors retired_pages
        remapped_rows temperature supported_gpu_target_temp gpu_power_readings module_power_readings clocks
        applications_clocks default_applications_clocks deferred_clocks max_clocks max_customer_boost_clocks clock_policy
        voltage fabric supported_clocks processes accounted_processes""",
    "555.42.06": """product_name product_brand product_architecture display_mode display_active persistence_mode addressing_mode
        mig_mode mig_devices accounting_mode accounting_mode_buffer_size driver_model serial uuid minor_number vbios_version
        multigpu_board board_id board_part_number gpu_part_number gpu_fru_part_number gpu_module_id inforom_version
        inforom_bbx_flush gpu_operation_mode c2c_mode gpu_virtualization_mode gpu_reset_status gsp_firmware_version ibmnpu pci
        fan_speed performance_state clocks_event_reasons sparse_operation_mode fb_memory_usage bar1_memory_usage
        cc_protected_memory_usage compute_mode utilization encoder_stats fbc_stats ecc_mode ecc_errors retired_pages
        remapped_rows temperature supported_gpu_target_temp gpu_power_readings gpu_memory_power_readings
        module_power_readings clocks applications_clocks default_applications_clocks deferred_clocks max_clocks
        max_customer_boost_clocks clock_policy voltage fabric supported_clocks processes accounted_processes capabilities""",
    "595.58.03": """product_name product_brand product_architecture display_mode display_attached display_active
        persistence_mode addressing_mode mig_mode mig_devices accounting_mode accounting_mode_buffer_size driver_model serial
        uuid pdi minor_number vbios_version multigpu_board board_id board_part_number gpu_part_number gpu_fru_part_number
        platformInfo inforom_version inforom_bbx_flush gpu_operation_mode c2c_mode gpu_virtualization_mode
        gpu_recovery_action gsp_firmware_version ibmnpu pci fan_speed performance_state clocks_event_reasons
        clocks_event_reasons_counters sparse_operation_mode fb_memory_usage bar1_memory_usage cc_protected_memory_usage
        compute_mode utilization encoder_stats fbc_stats dram_encryption_mode ecc_mode ecc_errors retired_pages remapped_rows
        temperature supported_gpu_target_temp gpu_power_readings gpu_memory_power_readings module_power_readings
        power_smoothing power_profiles edpp_multiplier clocks applications_clocks default_applications_clocks deferred_clocks
        max_clocks max_customer_boost_clocks clock_policy fabric supported_clocks processes accounted_processes
        capabilities""",
}
KINDS = """
host lab
start 2026-11-02T08:00:00Z
driver DRIVER
card 0 uuid GPU-aaaa0000 name "Tesla V100-PCIE-16GB" memory 16GiB pci 0000:17:00.0
card 1 uuid GPU-bbbb0000 name "NVIDIA GeForce RTX 3090" memory 24GiB pci 0000:65:00.0
card 2 uuid GPU-cccc0000 name "NVIDIA H100 80GB HBM3" memory 80GiB pci 0000:98:00.0
"""


def members(card, path):
    return " ".join(part.tag for part in card.find(path))


@pytest.mark.parametrize("driver_version", GENERATIONS)
def test_the_report_follows_the_driver(sim, driver_version):
    log = ET.fromstring(sim("smi", "-q", "-x", scenario=KINDS.replace("DRIVER", driver_version)).stdout)
    volta, ampere, hopper = log.findall("gpu")
    assert members(log, "gpu") == " ".join(GENERATIONS[driver_version].split())
    widths = "device_memory register_file l1_cache l2_cache texture_memory texture_shm cbu total"
    for count in "volatile", "aggregate":  # Volta counts errors by their width
        assert members(volta, f"ecc_errors/{count}") == "single_bit double_bit"
        assert members(volta, f"ecc_errors/{count}/double_bit") == widths
    sram = "sram_uncorrectable" if driver_version < "535" else "sram_uncorrectable_parity sram_uncorrectable_secded"
    assert members(hopper, "ecc_errors/volatile") == f"sram_correctable {sram} dram_correctable dram_uncorrectable"
    assert members(volta, "retired_pages") == "multiple_single_bit_retirement double_bit_retirement pending_blacklist pending_retirement"
    assert ampere.findtext("remapped_rows") == "N/A" and hopper.findtext("remapped_rows/remapped_row_corr") == "0"
    assert ampere.findtext("temperature/gpu_target_temperature") == "83 C"
    assert ampere.findtext("supported_gpu_target_temp/gpu_target_temp_max") == "91 C"
    assert ampere.findtext("temperature/gpu_temp_max_threshold") == "92 C"
    if driver_version > "535":  # a card that reports its margin has limits of it
        assert hopper.findtext("temperature/gpu_temp_max_tlimit_threshold") == "-8 C"
        assert hopper.find("temperature/gpu_temp_max_threshold") is None
    assert hopper.findtext("gsp_firmware_version") == driver_version
    draws = "power_draw" if driver_version < "570" else "average_power_draw instant_power_draw"
    power = hopper.find("gpu_power_readings" if driver_version > "535" else "power_readings")
    assert draws in " ".join(part.tag for part in power)
    deprecated = "Requested functionality has been deprecated"
    assert (power.findtext("power_state") == deprecated) == (driver_version > "590")
    assert (volta.findtext("display_mode") == deprecated) == (driver_version > "575")


def test_a_report_without_a_driver_version_is_the_newest(sim):
    """A capture may lack it."""
    log = ET.fromstring(sim("smi", "-q", "-x", scenario=KINDS.replace("driver DRIVER", "driver unknown")).stdout)
    assert members(log, "gpu") == " ".join(GENERATIONS["595.58.03"].split())


def test_the_driver_and_the_simulator_say_the_same(sim, driver):
    idle = re.sub(r"(?m)^(process|at) .*\n", "", MIG)
    for args in [], ["-q"], ["-q", "-x"], ["-L"], ["--version"]:
        straight, by_calls = sim("smi", *args, scenario=idle), driver("smi", *args, scenario=idle, at=0)
        assert straight.stdout.splitlines() == by_calls.stdout.splitlines() != []


def test_the_table_has_lines_of_one_width(sim):
    for scenario in CARDS, MIG, LOST.replace("at 5s lost", "at 0s lost"):
        lines = sim("smi", scenario=scenario).stdout.splitlines()
        assert {len(line) for line in lines if line.startswith(("|", "+"))} == {91}


def test_sections(sim):
    def groups(*args):
        return re.findall(r"(?m)^    (\w.*?) *(?::.*)?$", sim("smi", "-q", "-i", "0", *args).stdout)
    assert groups("-d", "MEMORY") == ["FB Memory Usage", "BAR1 Memory Usage", "Conf Compute Protected Memory Usage"]
    assert groups("-d", "UTILIZATION") == ["Utilization"]
    assert groups("--display=temperature,compute") == ["Compute Mode", "Temperature"]
    assert groups("-d", "PIDS") == ["Processes"] and len(groups()) > 50
    run = sim("smi", "-q", "-d", "NOTHING")
    assert run.returncode == 2 and "'NOTHING'" in run.stderr


@pytest.mark.parametrize("version, draws", [
    ("550.127.05", ["power_draw"]), ("550.163.01", ["average_power_draw", "instant_power_draw"]), ("565.57.01", ["power_draw"]),
    ("570.86.10", ["average_power_draw", "instant_power_draw"])])
def test_power_is_one_number_or_two(sim, version, draws):
    """As nvidia-smi of these versions prints it."""
    log = ET.fromstring(sim("smi", "-q", "-x", scenario=KINDS.replace("DRIVER", version)).stdout)
    for group in ("gpu_power_readings", "gpu_memory_power_readings", "module_power_readings"):
        assert [part.tag for part in log.find(f"gpu/{group}") if "draw" in part.tag] == draws


def test_accounted_processes_are_in_the_report(driver):
    for mode, none in (("", "N/A"), ("\naccounting on", "None")):
        text = driver("smi", "-q", "-d", "ACCOUNTING", "-i", "0", scenario=KINDS.replace("DRIVER", f"535.261.03{mode}")).stdout
        assert f"    Accounted Processes                   : {none}\n" in text
    scenario = CARDS.replace("host lab\n", "host lab\naccounting on\n") + "at 30s release note card 1\n"
    text = driver("smi", "-q", "-d", "ACCOUNTING", "-i", "1", scenario=scenario).stdout
    assert "Accounting Mode                       : Enabled" in text
    assert re.search(r"Process ID +: 1002\n +GPU Utilization +: \d+ %\n.*\n +Max memory usage +: 8192 MiB\n +Time +: 30000 ms\n +Is Running +: 0", text)
    log = ET.fromstring(driver("smi", "-q", "-x", "-i", "1", scenario=scenario).stdout)
    pids = [item.findtext("pid") for item in log.findall("gpu/accounted_processes/accounted_process_info")]
    assert pids == ["1003", "1002"]  # in the driver's order
    running = [item.findtext("is_running") for item in log.findall("gpu/accounted_processes/accounted_process_info")]
    assert running == ["1", "0"]


def test_processes_of_an_instance_have_the_name_of_the_card(driver):
    run = driver("smi", "--query-compute-apps=gpu_uuid,gpu_name,pid,gua.instance_uuid", "--format=csv,noheader", scenario=MIG)
    assert run.stdout == ("GPU-aaaa0000, NVIDIA A100-SXM4-40GB, 1001, MIG-1111\n"
                          "GPU-aaaa0000, NVIDIA A100-SXM4-40GB, 1002, MIG-2222\n")


def test_processes_are_in_the_order_of_their_pids(driver):
    scenario = CARDS.replace("pid 1001", "pid 2001")
    run = driver("smi", "--query-compute-apps=pid", "--format=csv,noheader", "-i", "0", scenario=scenario)
    assert run.stdout.split() == ["1002", "2001"]
    report = driver("smi", "-q", "-d", "PIDS", "-i", "0", scenario=scenario).stdout
    assert re.findall(r"Process ID +: (\d+)", report) == ["1002", "2001"]


def test_cards_are_in_the_order_of_their_indexes(driver):
    fields = "index,reset_status.reset_required,reset_status.drain_and_reset_recommended"
    run = driver("smi", f"--query-gpu={fields}", "--format=csv,noheader", "-i", "2,0")
    assert run.stdout == "0, No, No\n2, No, No\n"
    assert re.findall("GPU (.):", driver("smi", "-L", "-i", "2,0").stdout) == ["0", "2"]


# Options.

@pytest.mark.parametrize("card", ["1", "GPU-bbbb0000", "00000000:65:00.0", "0000:65:00.0"])
def test_a_card_by_index_uuid_and_address(sim, card):
    for args in (["-i", card], [f"--id={card}"], [f"-i={card}"]):
        assert sim("smi", "-L", *args).stdout == "GPU 1: NVIDIA GeForce RTX 3090 (UUID: GPU-bbbb0000)\n"
    assert sim("smi", "--query-gpu=index", "--format=csv,noheader", f"-i={card}").stdout == "1\n"
    assert sim("smi", "-L", "-i", f"2,{card}").stdout.count("UUID: ") == 2


@pytest.mark.waits
def test_a_file_and_a_loop(sim, tmp_path):
    target = tmp_path / "out.txt"
    run = sim("smi", "-L", "-f", target)
    assert run.returncode == 0 and run.stdout == "" and target.read_text().startswith("GPU 0: ")
    scenario = tmp_path / "loop.scenario"
    scenario.write_text(CARDS)
    command = [GUA, "smi", "--source", "sim", "--scenario", scenario, "-L"]
    for loop in (["-l", "1"], ["-lms", "100"], ["--loop=1"]):
        with subprocess.Popen([*command, *loop], stdout=subprocess.PIPE, text=True, env=clean_environment()) as process:
            lines = [process.stdout.readline() for _ in range(4)]
            process.kill()
        assert lines[3] == lines[0] != lines[1]


def test_a_line_of_a_tutorial(sim):
    """With -t, which does nothing."""
    fields = "timestamp,pstate,temperature.gpu,utilization.gpu,utilization.memory,memory.total,memory.free,memory.used"
    run = sim("smi", f"--query-gpu={fields}", "--format=csv", "-t")
    assert run.returncode == 0 and run.stdout == sim("smi", f"--query-gpu={fields}", "--format=csv").stdout != ""


def test_the_older_spelling_of_the_report(sim):
    assert sim("smi", "-a").stdout == sim("smi", "-q").stdout
    assert sim("smi", "-a", "-x").stdout == sim("smi", "-x", "-q").stdout


# Failures: the sentences that scripts look for, and the statuses.

def test_no_driver(tmp_path):
    (tmp_path / "proc").mkdir()
    for args in [], ["-L"], ["-q", "-x"], ["--query-gpu=name", "--format=csv"], ["dmon", "-c", "1"], ["pmon"]:
        run = gua("smi", *args, "--source", "nvml", "--root", tmp_path)
        assert run.returncode == 9
        assert run.stdout.startswith("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        assert re.match(r"gua smi( [dp]mon)?: no NVIDIA driver is loaded", run.stderr)


@pytest.mark.parametrize("code, status, words", [
    (18, 18, "Failed to initialize NVML: Driver/library version mismatch"),
    (4, 4, "Failed to initialize NVML: Insufficient Permissions"),
    (999, 255, "Failed to initialize NVML: Unknown Error"),
    (9, 9, "NVIDIA-SMI has failed because"), (28, 6, "No devices were found")])
def test_a_driver_that_does_not_start(driver, code, status, words):
    scenario = CARDS + f"at 0s fail nvmlInit_v2 code {code}\n"
    for args in [], ["--query-gpu=name", "--format=csv"]:
        run = driver("smi", *args, scenario=scenario)
        assert run.returncode == status and run.stdout.startswith(words), run


def test_no_library(tmp_path):
    run = gua("smi", "--nvml", tmp_path / "nothing")
    assert run.returncode == 12 and "couldn't find libnvidia-ml.so" in run.stdout


@pytest.mark.skipif(ctypes.util.find_library("nvidia-ml") is not None, reason="this host has the library")
def test_a_host_without_library_and_module(tmp_path):
    """nvidia-smi looks for its library first; our own sentence says what is missing."""
    run = gua("smi", env=clean_environment(GUA_NVML=""))
    assert run.returncode == 12 and run.stdout.startswith("NVIDIA-SMI couldn't find libnvidia-ml.so")
    assert "no NVIDIA driver is loaded" in run.stderr or os.path.exists("/sys/module/nvidia")


def test_an_option_without_its_value(sim):
    for args in ["-i"], ["-q", "-d"], ["--query-gpu"]:
        run = sim("smi", *args)
        assert run.returncode == 255
        assert run.stdout == f"ERROR: Option {args[-1]} is missing its value. Please run 'nvidia-smi -h' for help.\n\n"


@pytest.mark.parametrize("args, words", [
    (["-L", "-q"], "-L cannot be combined"), (["-q", "-x", "-d", "MEMORY"], "-d cannot be combined with -x"),
    (["dmon", "-c", "0"], "usage: gua smi dmon"), (["pmon", "-c", "0"], "usage: gua smi pmon"),
    (["-d", "MEMORY"], "-d needs -q"), (["--format=csv"], "--format is for"), (["topo", "-p"], "other than 'topo -m'")])
def test_options_that_would_be_ignored(args, words):
    run = gua("smi", *args)
    assert (run.returncode, run.stdout) == (3 if args[0] == "topo" else 2, "") and words in run.stderr


def test_a_field_that_says_that_the_card_is_lost(path):
    """The others are read all the same, and the card is not lost."""
    env = path(NOW + "at 0s fail nvmlDeviceGetTemperature card 1 code 15\nat 0s fail nvmlDeviceGetFanSpeed card 1 code 16\n")
    run = smi(env, "--query-gpu=temperature.gpu,memory.used,fan.speed,pstate", "--format=csv,noheader", "-i", "1")
    assert (run.returncode, run.stdout) == (0, "[GPU is lost], 300 MiB, [GPU requires reset], P8\n")
    run = smi(env, "-i", "1")
    assert run.returncode == 0 and "|ERR!  ERR!    P8             20W /  350W |     300MiB /  24576MiB |" in run.stdout


def test_a_card_that_does_not_exist(sim):
    for args in [], ["-L"], ["-q"], ["--query-gpu=name", "--format=csv,noheader"]:
        run = sim("smi", *args, "-i", "9")
        assert (run.returncode, run.stdout) == (6, "No devices were found\n")


HANDLE = "Unable to determine the device handle for GPU"


def test_a_lost_card(driver, path):
    run = driver("smi", scenario=LOST)
    assert run.returncode == 15 and "ERR!" in run.stdout and run.stdout.startswith(HANDLE)
    env = path(LOST)
    for args in (["--query-gpu=name", "--format=csv"], ["--query-compute-apps=pid", "--format=csv"],
                 ["--query-accounted-apps=pid", "--format=csv"], ["dmon", "-c", "1"], ["pmon", "-c", "1"]):
        run = smi(env, *args)
        assert run.returncode == 15
        assert run.stderr.startswith(f"nvidia-smi{' ' + args[0] if args[0].endswith('mon') else ''}: " + HANDLE)
        assert re.fullmatch(HANDLE + r"\S+: GPU is lost\.  Reboot the system to recover this GPU\n\n", run.stdout)
        assert smi(env, *args, "-i", "0").returncode == 0
    run = driver("smi", "-L", scenario=LOST)
    first, lost, _, last = run.stdout.splitlines()  # the cards after it are listed, too
    assert run.returncode == 15 and first.startswith("GPU 0: ") and last.startswith("GPU 2: ")
    assert lost == "Unable to determine the device handle for gpu 1: GPU is lost.  Reboot the system to recover this GPU"
    assert driver("query", "--query-gpu=name", scenario=LOST).returncode == 0
    run = driver("smi", "-q", "-x", scenario=LOST)
    cards = ET.fromstring(run.stdout).findall("gpu")
    assert run.returncode == 15 and cards[1].findtext("utilization/gpu_util") == "GPU is lost"
    assert driver("smi", "-i", "0", scenario=LOST).returncode == 0
    assert driver("smi", "--version", scenario=LOST).returncode == 0


@pytest.mark.parametrize("code, words, table", [
    (999, "Unknown Error", "ERR!"), (4, "Insufficient Permissions", "ERR!"), (10, "Timeout", "ERR!"), (6, "Not Found", "N/A"),
    (3, "N/A", "N/A")])
def test_a_call_that_fails(driver, code, words, table):
    """nvidia-smi names the driver's error; health checks look for these words. Other values of the card stay known."""
    failing = ["nvmlDeviceGetTemperature", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetSerial", "nvmlDeviceGetMemoryInfo*"]
    scenario = CARDS + "".join(f"at 0s fail {call} card 1 code {code}\n" for call in failing)
    fields = "--query-gpu=temperature.gpu,serial,pstate"
    run = driver("smi", fields, "--format=csv,noheader", "-i", "1", scenario=scenario)
    assert (run.returncode, run.stdout) == (0, f"[{words}], [{words}], P8\n")
    if code != 3:  # gua knows these two in another way; a script looks for the error
        run = driver("smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader", "-i", "1", scenario=scenario)
        assert run.stdout == f"[{words}], [{words}]\n"
    line = driver("smi", "-i", "1", scenario=scenario).stdout.splitlines()[9]
    assert line.split()[1:4] == ["30%", table, "P8"]
    report = driver("smi", "-q", "-i", "1", scenario=scenario)
    assert report.returncode == 0 and re.search(f"GPU Current Temp +: {words}\n", report.stdout)
    answer = json.loads(driver("query", fields, "--format=json", "-i", "1", scenario=scenario).stdout)["gpus"]
    assert answer == [{"temperature.gpu": None, "serial": None, "pstate": "P8"}]


def test_a_card_that_needs_a_reset(driver):
    scenario = CARDS + "at 0s fail nvmlDeviceGetTemperature card 1 code 16\n"
    run = driver("smi", "--query-gpu=name,index,temperature.gpu,serial", "--format=csv,noheader", "-i", "1", scenario=scenario)
    assert run.returncode == 0 and run.stdout.startswith("NVIDIA GeForce RTX 3090, 1, [GPU requires reset], ")
    run = driver("smi", "-i", "1", scenario=CARDS + "at 0s fail nvmlDeviceGetSamples card 1 code 16\n")
    assert run.returncode == 0 and "ERR!" in run.stdout and HANDLE not in run.stdout


def test_an_unknown_field(sim):
    run = sim("smi", "--query-gpu=name,cuda_version", "--format=csv")
    assert run.returncode == 2
    assert run.stdout == 'Field "cuda_version" is not a valid field to query.\n\n'
    assert "there is no field 'cuda_version'" in run.stderr


@pytest.mark.parametrize("args", [["-pm", "1"], ["--power-limit=200"], ["-r"], ["topo", "-p2p", "r"], ["nvlink", "-s"],
                                  ["mig", "-lgi"], ["-am", "1"], ["-i", "0", "-c", "0"]])
def test_what_changes_a_card_is_refused(sim, args):
    run = gua("smi", *args)
    assert run.returncode == 3 and run.stdout == "" and "use NVIDIA's own nvidia-smi" in run.stderr


def test_what_nvidia_smi_says_of_wrong_options(sim, path, tmp_path):
    query = "--query-gpu=name"
    for args, word in (["--bogus"], "--bogus"), (["words"], "words"), ([query, "--bogos"], "--bogos"), ([query, "-L"], "-L"), \
            ([query, "-q"], "-q"), (["-x", query], "-x"), ([query, "-d", "MEMORY"], "-d"), ([query, "--version"], "--version"), \
            (["topo", "-m", query], "-m"):
        run = sim("smi", *args)
        assert run.returncode == 255 and run.stdout == f"ERROR: Option {word} is not recognized. Please run 'nvidia-smi -h'.\n\n"
    assert "; write --db old.db\n" in sim("smi", "old.db").stderr
    assert sim("smi", "-f", tmp_path / "no" / "file").returncode == 255
    env = path()
    for args in ["-l", "0"], ["--query-gpu=name", "--format=csv", "-l", "0"], ["dmon", "-d", "0"], ["pmon", "-d", "0"]:
        run = smi(env, *args)
        assert run.returncode == 2 and "must be more than 0" in run.stderr


def test_a_list_without_cards(driver):
    scenario = CARDS + "at 0s fail nvmlInit_v2 code 28\n"
    run = driver("smi", "-L", scenario=scenario)
    assert (run.returncode, run.stdout) == (0, "No devices found.\n")
    run = driver("smi", scenario=CARDS + "at 0s fail nvmlInit_v2 code 18\n")
    assert run.stdout == "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 560.35\n"


@pytest.mark.parametrize("args", [["-lms", "0"], ["-l", "soon"]])
def test_wrong_options(sim, args):
    run = sim("smi", *args)
    assert run.returncode == 2 and "usage: gua smi" in run.stderr


def test_the_matrix_of_the_pci_tree(path, tmp_path):
    """Two cards behind one switch, one behind a switch below it, one at another bridge, one at another socket."""
    switch = "pci0000:16/0000:16:01.0/0000:17:00.0"
    places = {"0000:19:00.0": f"{switch}/0000:18:00.0", "0000:1a:00.0": f"{switch}/0000:18:01.0",
              "0000:1e:00.0": f"{switch}/0000:18:02.0/0000:1c:00.0/0000:1d:00.0", "0000:2a:00.0": "pci0000:16/0000:16:02.0",
              "0000:b0:00.0": "pci0000:af/0000:af:00.0"}
    devices, links = tmp_path / "root/sys/devices", tmp_path / "root/sys/bus/pci/devices"
    links.mkdir(parents=True)
    (tmp_path / "root/proc").mkdir()
    for address, above in places.items():
        (devices / above / address).mkdir(parents=True)
        second = above.startswith("pci0000:af")
        (devices / above / address / "numa_node").write_text("1\n" if second else "0\n")
        (devices / above / address / "local_cpulist").write_text("16-31\n" if second else "0-15\n")
        (links / address).symlink_to(f"../../../devices/{above}/{address}")
    cards = "".join(f'card {i} uuid GPU-{i} name "NVIDIA A30" memory 24GiB pci {address}\n' for i, address in enumerate(places))
    run = smi(path("start 2026-11-02T08:00:00Z\n" + cards), "topo", "-m", "--root", str(tmp_path / "root"))
    assert run.returncode == 0, run.stderr
    assert run.stdout.split("\n\n")[0] == (
        "\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tPIX\tPXB\tPHB\tSYS\t0-15\t0\t\tN/A\n"
        "GPU1\tPIX\t X \tPXB\tPHB\tSYS\t0-15\t0\t\tN/A\n"
        "GPU2\tPXB\tPXB\t X \tPHB\tSYS\t0-15\t0\t\tN/A\n"
        "GPU3\tPHB\tPHB\tPHB\t X \tSYS\t0-15\t0\t\tN/A\n"
        "GPU4\tSYS\tSYS\tSYS\tSYS\t X \t16-31\t1\t\tN/A")


def test_the_names_that_are_installed(installed):
    names = {path.name for path in (installed / "bin").iterdir()}
    assert "gua-nvidia-smi" in names and "nvidia-smi" not in names
    assert os.readlink(installed / "bin" / "gua-nvidia-smi") == "gua"
    run = gua("--help", binary=BUILD / "gua-nvidia-smi")
    assert run.returncode == 0 and run.stdout.startswith("usage: gua-nvidia-smi ")


def test_a_store_is_read_only_if_it_is_named(sim, tmp_path):
    run = sim("smi", "--query-gpu=gua.state_since", "--format=csv,noheader", "--db", tmp_path / "none.db")
    assert run.returncode == 0 and "none.db" in run.stderr

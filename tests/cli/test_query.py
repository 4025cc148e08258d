"""gua query: what scripts built on nvidia-smi's field query rely on."""
import csv
import io
import json
import re
import sqlite3
import subprocess

import pytest

from conftest import GUA, clean_environment, gua
from fake import calls
from live import CARDS, LOST, MIG, WALL, driver, recorded, sim  # noqa: F401

USUAL = ("timestamp,pstate,temperature.gpu,utilization.gpu,utilization.memory,memory.total,memory.free,"
         "memory.used")


def rows(text):
    return list(csv.reader(io.StringIO(text), skipinitialspace=True))


def fields():
    listed = gua("query", "--help-query-gpu").stdout
    return [re.findall(r'"([^"]+)"', line) for line in listed.splitlines() if line.startswith('"')]


@pytest.mark.parametrize("source", ["sim", "driver"])
def test_the_usual_query_is_byte_for_byte(request, source, expect):
    run = request.getfixturevalue(source)("query", f"--query-gpu={USUAL}", "--format=csv",
                                          **({"at": 0} if source == "driver" else {}))
    assert run.returncode == 0, run.stderr
    expect("query/usual.csv", run.stdout)


def test_noheader_and_nounits(sim):
    whole = rows(sim("query", f"--query-gpu={USUAL}", "--format=csv").stdout)
    assert whole[0][3] == "utilization.gpu [%]" and whole[1][3] == "80 %"
    bare = rows(sim("query", f"--query-gpu={USUAL}", "--format=csv,noheader,nounits").stdout)
    assert len(bare) == 3 and bare[0][3] == "80" and bare[0][5] == "81920"
    # As in nvidia-smi the header keeps its units without them in the values.
    assert rows(sim("query", f"--query-gpu={USUAL}", "--format=csv,nounits").stdout)[0] == whole[0]


def test_there_are_enough_fields_and_each_has_a_sentence():
    listed = gua("query", "--help-query-gpu").stdout
    ours = [names for names in fields() if names[0].startswith("gua.")]
    assert len(fields()) - len(ours) >= 60
    assert {"gua.state", "gua.idle_since", "gua.holders", "gua.free_for"} <= {names[0] for names in ours}
    # Programs look for what is in quotes after an empty line.
    assert len(re.findall(r'\n\n"([^"]+)"', listed)) == len(fields())
    assert len(re.findall(r'\n\n"([^"]+)"', gua("query", "--help-query-compute-apps").stdout)) == 29
    paragraphs = re.split(r'^(?=")', listed, flags=re.M)[1:]
    assert all(re.search(r"\n    \w.*\.\n", paragraph) for paragraph in paragraphs)
    assert max(map(len, listed.splitlines())) <= 200


def test_every_field_and_synonym_can_be_asked(driver):
    names = [name for field in fields() for name in field]
    assert len(names) == len(set(names))
    run = driver("query", "--query-gpu=" + ",".join(names), "--format=csv")
    assert run.returncode == 0, run.stderr
    assert {len(row) for row in rows(run.stdout)} == {len(names)}


def test_the_names_of_newer_drivers_are_known():
    places = "device_memory dram register_file l1_cache l2_cache texture_memory cbu sram total".split()
    names = {f"ecc.errors.{kind}.{since}.{place}" for kind in ("corrected", "uncorrected")
             for since in ("volatile", "aggregate") for place in places}
    names |= {f"ecc.errors.uncorrected.aggregate.sram.{part}"
              for part in "parity secded thresholdExceeded l2 sm mcu pcie other".split()}
    names |= {f"remapped_rows.histogram.{left}" for left in "max high partial low none".split()}
    names |= set("""temperature.gpu.tlimit driver_model.current driver_model.pending addressing_mode pci.baseClass
        pci.subClass pcie.link.gen.gpucurrent display_attached inforom.oem inforom.ecc inforom.pwr inforom.power
        inforom.checksum_validation gpu_recovery_action gsp.mode.current gsp.mode.default c2c.mode fabric.state
        fabric.status fabric.cliqueId fabric.clusterUuid power.management protected_memory.total
        protected_memory.used protected_memory.free dramEncryption.mode.current dramEncryption.mode.pending
        clocks_event_reasons_counters.sw_power_cap module.power.draw.average module.enforced.power.limit
        module.power.limit platform.chassis_serial_number platform.slot_number platform.tray_index platform.host_id
        platform.peer_type platform.module_id platform.gpu_fabric_guid
        kmd_version hostname pcie.link.gen.hostmax edpp_multiplier bbx.time_run remapped_rows.sbe remapped_rows.dbe
        remapped_rows.correctable_inactive remapped_rows.uncorrectable_inactive gpu.power.draw.average
        gpu.power.draw.instant gpu.power.requested_limit gpu.power.current_limit gpu.power.default_limit
        gpu.power.min_limit gpu.power.max_limit module.power.requested_limit module.power.current_limit
        vgpu_driver_capability.heterogenous_multivGPU""".split())
    names |= {f"fabric.health.{part}" for part in """summary bandwidth route_recovery_in_progress route_unhealthy
        access_timeout_recovery incorrect_configuration partition_assigned""".split()}
    names |= {f"vgpu_device_capability.{part}" for part in """fractional_multiVgpu heterogeneous_timeSlice_profile
        heterogeneous_timeSlice_sizes homogeneous_placements mig_timeSlicing mig_timeSlicing_mode""".split()}
    names |= {f"gpu.base.{part}" for part in "current requested default min max".split()}
    profile = """percent_tmp_floor ramp_up_rate ramp_down_rate ramp_down_hysteresis secondary_power_floor
        primary_floor_act_window_multiplier primary_floor_tar_window_multiplier primary_floor_act_offset""".split()
    names |= {f"power_smoothing.{part}" for part in """tmp_floor tmp_ceil hw_lifetime_remaining_percent enabled
        delayed_power_smoothing_supported soc_power_smoothing_enabled priv_level imm_ramp_down max_percent_tmp_floor
        min_percent_tmp_floor primary_power_floor secondary_power_floor min_primary_floor_activation_offset
        min_primary_floor_activation_point window_multiplier num_preset_profiles active_profile""".split()}
    names |= {f"power_smoothing.{owner}.{part}" for owner in ("curr_profile", "admin_override") for part in profile}
    assert names <= {name for field in fields() for name in field}


SERVERS = """
host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000 name "NVIDIA H100 80GB HBM3" memory 80GiB pci 0000:17:00.0
card 1 uuid GPU-bbbb0000 name "NVIDIA V100-SXM2-32GB" memory 32GiB pci 0000:65:00.0
card 2 uuid GPU-cccc0000 name "NVIDIA B200" memory 180GiB pci 0000:98:00.0
card 3 uuid GPU-dddd0000 name "NVIDIA GeForce RTX 3090" memory 24GiB pci 0000:99:00.0
"""


def test_every_call_gives_the_field_that_it_is_asked_for(driver, sim):
    # Two ways to the same numbers: by the driver's calls, and straight from the scenario.
    names = [field[0] for field in fields()]
    others = {"timestamp", "compute_cap"} | {name for name in names if re.match("gua.(energy|pcie|.*since)", name)}
    asked = ["query", "--query-gpu=" + ",".join(set(names) - others), "--format=csv"]
    by_calls, straight = driver(*asked, scenario=SERVERS, at=0), sim(*asked, scenario=SERVERS)
    assert by_calls.returncode == 0 and len(rows(by_calls.stdout)) == 5
    assert list(zip(*rows(by_calls.stdout))) == list(zip(*rows(straight.stdout)))
    counters = [name for name in names if re.match(r"ecc\.errors\.", name) and not name.endswith((".device_memory", "Exceeded"))]
    run = driver("query", "--query-gpu=" + ",".join(counters), "-i", "1", "--format=csv,noheader", scenario=SERVERS)
    assert len(set(rows(run.stdout)[0])) == len(counters) > 30  # each another number


def test_fields_of_newer_cards(driver):
    asked = ("temperature.gpu.tlimit,fabric.state,fabric.status,fabric.cliqueId,fabric.clusterUuid,gpu_recovery_action,"
             "inforom.checksum_validation,addressing_mode,dramEncryption.mode.current,display_attached,pci.baseClass,"
             "driver_model.current,clocks_event_reasons_counters.sw_power_cap,inforom.power,remapped_rows.histogram.max")
    run = driver("query", f"--query-gpu={asked}", "--format=csv,noheader", scenario=SERVERS)
    new, _, newest, home = rows(run.stdout)
    rack = driver("query", "--query-gpu=platform.chassis_serial_number,platform.slot_number,platform.tray_index,"
                  "platform.host_id,platform.peer_type,platform.module_id,platform.gpu_fabric_guid", "-i", "0,2",
                  "--format=csv,noheader", scenario=SERVERS)
    assert rows(rack.stdout) == [["[N/A]"] * 7, ["1821325190344", "10", "11", "12", "Direct Connected", "14",
                                                 "0xFFEEDDCCBBAA9988"]]
    assert new == ["55", "Completed", "Success", "7", "00010203-0405-0607-0809-0a0b0c0d0e0f", "None", "valid", "None",
                   "[N/A]", "No", "0x3", "[N/A]", "0 us", "[N/A]", "640"]
    assert newest[8] == "Disabled" and home[:5] == ["[N/A]"] * 5 and home[6] == "[N/A]"


def test_fields_of_the_newest_drivers(driver):
    names = ("kmd_version,hostname,edpp_multiplier,fabric.health.summary,fabric.health.bandwidth,"
             "fabric.health.route_unhealthy,fabric.health.partition_assigned,power_smoothing.tmp_floor,"
             "vgpu_device_capability.mig_timeSlicing,gpu.base.max,bbx.time_run,remapped_rows.sbe,gpu.power.max_limit")
    run = driver("query", f"--query-gpu={names}", "--format=csv", scenario=SERVERS)
    header, new, _, newest, home = rows(run.stdout)
    assert header[0] == "kmd_version" and header[2] == "edpp_multiplier [%]" and header[10] == "bbx.time_run [seconds]"
    assert header[7] == "power_smoothing.tmp_floor [W]" and header[11:] == ["remapped_rows.correctable", "power.max_limit [W]"]
    assert new == ["560.35.05", "[N/A]", "100.00 %", "Healthy", "Full", "False", "[N/A]", "[N/A]", "[N/A]", "[N/A]", "[N/A]",
                   "0", "400.00 W"]
    assert newest[1:6] == ["tray-2", "100.00 %", "Limited Capacity", "Degraded", "False"]
    assert home[1:6] == ["[N/A]"] * 5 and home[11:] == ["[N/A]", "400.00 W"]


def test_an_older_driver_has_the_flags_of_the_fabric_without_the_summary(driver):
    names = "--query-gpu=fabric.health.summary,fabric.health.bandwidth"
    run = driver("query", names, "-i", "2", "--format=csv,noheader", scenario="driver 525.60.13\n" + SERVERS)
    assert rows(run.stdout) == [["[N/A]", "Degraded"]]


def test_the_root_port_above_a_card(driver, tmp_path):
    root = tmp_path / "host"
    port = root / "sys/devices/pci0000:00/0000:00:01.0"
    (port / "0000:02:00.0/0000:17:00.0").mkdir(parents=True)
    (root / "sys/devices/pci0000:64/0000:65:00.0").mkdir(parents=True)
    (port / "max_link_speed").write_text("16.0 GT/s PCIe\n")
    links = root / "sys/bus/pci/devices"
    links.mkdir(parents=True)
    (root / "proc").mkdir()
    (links / "0000:17:00.0").symlink_to("../../../devices/pci0000:00/0000:00:01.0/0000:02:00.0/0000:17:00.0")
    (links / "0000:65:00.0").symlink_to("../../../devices/pci0000:64/0000:65:00.0")
    run = driver("query", "--query-gpu=pcie.link.gen.hostmax", "--format=csv,noheader", root=root)
    assert run.stdout.split() == ["4", "[N/A]", "[N/A]"]  # behind a switch; alone as in a virtual machine; not there


def test_what_a_fabric_is_before_the_card_has_joined_it(driver, sim):
    """The driver's status is 0, Success, until there is one; and the cluster is nobody's."""
    words = ["query", "--query-gpu=fabric.state,fabric.status,fabric.cliqueId,fabric.clusterUuid", "--format=csv,noheader"]
    scenario = 'start 2026-11-02T08:00:00Z\ncard 0 uuid GPU-aaaa name "NVIDIA H200" memory 141GiB\n'
    for view in driver, sim:
        assert rows(view(*words, scenario=scenario).stdout) == [["In Progress", "[N/A]", "[N/A]", "[N/A]"]]


def test_a_synonym_has_the_header_of_its_field(sim):
    run = sim("query", "--query-gpu=clocks.gr,clocks_throttle_reasons.active,gpu_name", "--format=csv")
    assert rows(run.stdout)[0] == ["clocks.current.graphics [MHz]", "clocks_event_reasons.active", "name"]


@pytest.mark.parametrize("source", ["sim", "driver"])
def test_how_values_are_written(request, source):
    run = request.getfixturevalue(source)(
        "query", "-i", "0", "--format=csv,noheader",
        "--query-gpu=pci.bus_id,pci.bus,pci.device_id,persistence_mode,compute_mode,power.draw,fan.speed,serial,"
        "clocks_event_reasons.active,clocks_event_reasons.gpu_idle,ecc.mode.current,mig.mode.current,count,index,"
        "power.draw.instant,temperature.memory,ecc.errors.corrected.volatile.total,power.max_limit,vbios_version,compute_cap")
    assert run.returncode == 0, run.stderr
    assert rows(run.stdout) == [[
        "00000000:17:00.0", "0x17", "0x20B210DE", "Enabled", "Default", "332.00 W", "[N/A]", "1500000000001",
        "0x0000000000000000", "Not Active", "Enabled", "Disabled", "3", "0", "332.00 W", "74", "0", "400.00 W",
        "92.00.19.00.01", "8.0"]]


def test_more_power_than_a_board_can_draw_is_unknown(driver):
    run = driver("query", "-i", "0", "--query-gpu=power.draw,power.draw.instant,enforced.power.limit", "--format=csv,noheader",
                 scenario=CARDS + "at 0s power-factor card 0 6\n")
    assert (run.returncode, run.stderr, rows(run.stdout)) == (0, "", [["[N/A]", "332.00 W", "400.00 W"]])


@pytest.mark.parametrize("option, field, nearest", [
    ("gpu", "utilisation.gpu", "utilization.gpu, "),
    ("gpu", "memory.usd", "memory.used, "),
    ("gpu", "temp", "temperature.gpu, temperature.gpu.tlimit, temperature.memory"),
    ("gpu", "util", "utilization.gpu, utilization.memory, "),
    ("gpu", "memory", "memory.total, "),
    ("compute-apps", "pidd", "pid;"),
    ("compute-apps", "gpu_uid", "gpu_uuid, "),
    ("compute-apps", "memory", "used_gpu_memory;"),
    ("compute-apps", "gua.idle", "gua.idle_since, gua.idle_seconds"),
])
def test_an_unknown_field_names_the_nearest(sim, option, field, nearest):
    run = sim("query", f"--query-{option}=timestamp,{field}")
    assert run.returncode == 2 and run.stdout == ""
    assert f"no field '{field}'; the nearest: {nearest}" in run.stderr


def test_what_is_like_no_field_names_none(sim):
    run = sim("query", "--query-gpu=zzzzzz")
    assert run.returncode == 2 and "no field 'zzzzzz'; --help-query-gpu lists all" in run.stderr


@pytest.mark.parametrize("args, words", [
    ([], "give --query-gpu"),
    (["--query-gpu=", "--format=csv"], "no field is named"),
    (["--query-gpu=index", "--format=xml"], "--format takes"),
    (["--query-gpu=index", "--format=noheader"], "either csv or json"),
    (["--query-gpu=index", "--query-compute-apps=pid"], "only one --query"),
    (["--query-gpu=index", "-l", "soon"], "--loop"),
    (["--query-gpu=index", "-lms", "0"], "--loop-ms"),
    (["--query-gpu=index", "--loop-ms=99999999999999999999"], "--loop-ms takes milliseconds, at most a day"),
    (["--query-gpu=index", "--state", "busy"], "--state must be"),
    (["--query-gpu=index", "--min-mem", "lots"], "--min-mem"),
    (["--query-compute-apps=pidd"], "no field 'pidd'"),
    (["--query-gpu=index", "--nonsense"], "unknown option"),
])
def test_wrong_usage_is_two(sim, args, words):
    run = sim("query", *args)
    assert run.returncode == 2
    assert words in run.stderr and "usage: gua query" in run.stderr


def test_no_driver_and_no_card_are_one(sim, tmp_path):
    (tmp_path / "proc").mkdir()
    run = gua("query", "--query-gpu=index", "--no-store", "--root", tmp_path)
    assert run.returncode == 1 and "no NVIDIA driver is loaded" in run.stderr
    run = sim("query", "--query-gpu=index", "-i", "7")
    assert run.returncode == 1 and "card '7' does not exist" in run.stderr


@pytest.mark.parametrize("names, indexes", [
    ("1", ["1"]), ("2,0", ["0", "2"]), ("GPU-bbbb", ["1"]), ("00000000:98:00.0", ["2"]), ("17:00.0", ["0"]),
    ("0,GPU-aaaa0000", ["0"]),
])
def test_cards_are_named_by_index_uuid_or_address(sim, names, indexes):
    run = sim("query", "--query-gpu=index", "--format=csv,noheader", "-i", names)
    assert run.stdout.split() == indexes


def test_states_choose_cards(sim):
    def of(*states):
        return sim("query", "--query-gpu=index", "--format=csv,noheader",
                   *[word for state in states for word in ("--state", state)]).stdout.split()
    assert of("active") == ["0", "1"] and of("free") == ["2"] and of("truly_idle,active") == ["0", "1", "2"]
    assert of("lost") == []


def test_a_lost_card_keeps_its_line_and_its_name(driver):
    run = driver("query", "--query-gpu=index,name,uuid,temperature.gpu,gua.state", scenario=LOST, at=60)
    assert run.returncode == 0, run.stderr
    table = rows(run.stdout)
    assert [row[0] for row in table[1:]] == ["0", "1", "2"]
    assert table[2][3:] == ["[GPU is lost]", "lost"]
    assert table[1][3:] == ["70", "active"] and table[3][3:] == ["30", "truly_idle"]


def test_a_card_that_was_never_asked_has_no_uuid(driver):
    """A stand-in for it is nobody's business."""
    denied = CARDS + "at 0s fail nvmlDeviceGetHandleByIndex_v2 card 1 code 4\n"
    run = driver("query", "--query-gpu=index,name,uuid,gua.state", "-i", "1", scenario=denied)
    assert rows(run.stdout)[1] == ["1", "[Insufficient Permissions]", "[Insufficient Permissions]", "denied"]
    card = json.loads(driver("stat", "--json", "--id", "1", scenario=denied).stdout)["gpus"][0]
    assert (card["index"], card["name"], card["uuid"], card["gua.state"]) == (1, None, None, "denied")


@pytest.mark.parametrize("source", ["sim", "driver"])
def test_mig_is_one_line_a_card_or_one_an_instance(request, source):
    view = request.getfixturevalue(source)
    wanted = "--query-gpu=index,uuid,memory.total,memory.used,temperature.gpu,utilization.gpu,mig.mode.current"
    boards = rows(view("query", wanted, "--format=csv,noheader", scenario=MIG).stdout)
    assert boards == [
        ["0", "GPU-aaaa0000", "40960 MiB", "11264 MiB", "30", "[N/A]", "Enabled"],
        ["1", "GPU-bbbb0000", "24576 MiB", "0 MiB", "30", "0 %", "Disabled"]]
    instances = rows(view("query", wanted, "--mig", "--format=csv,noheader", scenario=MIG).stdout)
    assert [row[1:5] for row in instances] == [
        ["MIG-1111", "20480 MiB", "10240 MiB", "30"], ["MIG-2222", "5120 MiB", "1024 MiB", "30"],
        ["GPU-bbbb0000", "24576 MiB", "0 MiB", "30"]]


def test_compute_apps(sim, expect):
    run = sim("query", "--query-compute-apps=timestamp,gpu_name,gpu_bus_id,gpu_uuid,pid,process_name,used_memory",
              "--format=csv")
    assert run.returncode == 0, run.stderr
    expect("query/apps.csv", run.stdout)
    assert "1003" not in run.stdout  # graphics only: no compute process


def test_filters_of_processes(sim):
    def pids(*args):
        return sim("query", "--query-compute-apps=pid", "--format=csv,noheader", *args).stdout.split()
    assert pids() == ["1001", "1002", "1002"]
    assert pids("-u", "alice") == ["1001"] and pids("-u", "1002") == ["1002", "1002"]
    assert pids("-p", "1001,7") == ["1001"] and pids("--min-mem", "4G") == ["1001", "1002"]
    assert pids("-i", "1") == ["1002"] and pids("-u", "alice", "-i", "1") == []


def test_processes_that_are_gone(driver):
    run = driver("query", "--query-compute-apps=pid,process_name,gua.user", "--format=csv,noheader")
    assert rows(run.stdout)[0] == ["1001", "[Not Found]", "_dead"]


def test_memory_that_the_driver_cannot_tell(sim):
    run = sim("query", "--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader",
              scenario=CARDS.replace("hold train card 0 memory 40GiB", "hold train card 0 memory unknown"))
    assert rows(run.stdout)[0] == ["1001", "[N/A]"]


def test_json_is_parsed_back(sim):
    document = json.loads(sim("query", "--query-gpu=index,name,power.draw,memory.used,pstate,fan.speed,gua.state,"
                              "gua.holders,gua.idle_since", "--format=json").stdout)
    assert document["schema"] == "gua-query-1"
    assert document["time"] == "2026-11-02T08:00:00Z" and document["host"] == "lab"
    first, second, third = document["gpus"]
    assert first == {"index": 0, "name": "NVIDIA A100-SXM4-80GB", "power.draw": 332, "memory.used": 43008,
                     "pstate": "P0", "fan.speed": None, "gua.state": "active", "gua.holders": 2,
                     "gua.idle_since": None}
    assert third["gua.holders"] == 0 and third["gua.state"] == "truly_idle"
    apps = json.loads(sim("query", "--query-compute-apps=pid,gua.user,used_memory,gua.notebook",
                          "--format=json").stdout)
    assert apps["processes"][0] == {"pid": 1001, "gua.user": "alice", "used_gpu_memory": 40960,
                                    "gua.notebook": None}


@pytest.mark.parametrize("loop, seconds", [(["-l", "2"], 2), (["-l"], 5), (["-lms", "500"], 0.5),
                                           (["--loop-ms=250"], 0.25)])
def test_loops_go_on_until_nobody_reads(tmp_path, loop, seconds):
    path = tmp_path / "view.scenario"
    path.write_text(CARDS)
    run = subprocess.Popen([GUA, "query", "--source", "sim", "--scenario", path, "--clock", "virtual", "--no-store",
                            "--query-gpu=timestamp,index", "--format=csv", "-i", "1", *loop],
                           stdout=subprocess.PIPE, text=True, env=clean_environment())
    lines = [run.stdout.readline() for _ in range(4)]
    run.stdout.close()
    run.wait(timeout=60)
    assert lines[0] == "timestamp, index\n"
    stamps = [float(line[17:23]) for line in lines[1:]]
    assert [round(b - a, 3) for a, b in zip(stamps, stamps[1:])] == [seconds, seconds]


def test_a_loop_of_json_is_one_document_a_line(tmp_path):
    path = tmp_path / "view.scenario"
    path.write_text(CARDS)
    run = subprocess.Popen([GUA, "query", "--source", "sim", "--scenario", path, "--clock", "virtual", "--no-store",
                            "--query-gpu=index", "--format=json", "-l", "1"],
                           stdout=subprocess.PIPE, text=True, env=clean_environment())
    documents = [json.loads(run.stdout.readline()) for _ in range(3)]
    run.stdout.close()
    run.wait(timeout=60)
    assert [document["time"][-3:-1] for document in documents] == ["00", "01", "02"]


def test_a_file_instead_of_the_terminal(sim, tmp_path):
    run = sim("query", "--query-gpu=index", "-f", tmp_path / "out.csv", "-t")
    assert run.stdout == "" and (tmp_path / "out.csv").read_text() == "index\n0\n1\n2\n"
    run = sim("query", "--query-gpu=index", "-f", tmp_path / "no" / "out.csv")
    assert run.returncode == 1 and "cannot write" in run.stderr
    run = sim("query", "--query-gpu=index", "-f", "/dev/full")
    assert (run.returncode, run.stderr) == (1, "gua query: cannot write the output: No space left on device\n")


def test_only_what_was_asked_for_is_read(driver, tmp_path):
    driver("query", "--query-gpu=temperature.gpu,utilization.gpu,utilization.memory")
    names = [name for _, name, card, _ in calls(tmp_path / "log") if card == 1]
    assert names.count("nvmlDeviceGetTemperature") == 1
    assert names.count("nvmlDeviceGetUtilizationRates") == 1  # one call, two fields
    assert not any("Fan" in name or "Clock" in name or "Throughput" in name for name in names)


def test_what_is_not_supported_is_asked_once(tmp_path, clock_file, driver):
    scenario = CARDS + "at 0s fail nvmlDeviceGetFanSpeed code 3\n"
    run = driver("dmon", "-c", "4", "-s", "p", scenario=scenario)
    assert run.returncode == 0, run.stderr
    fields_read = [text for _, name, card, text in calls(tmp_path / "log")
                   if name == "nvmlDeviceGetFieldValues" and card == 1]
    assert len(fields_read) == 1  # the memory of a GeForce has no thermometer
    powers = [name for _, name, card, _ in calls(tmp_path / "log") if name == "nvmlDeviceGetTemperature" and card == 1]
    assert len(powers) == 4


def test_calls_that_are_missing_are_not_available(driver):
    run = driver("query", "--query-gpu=pstate,clocks_event_reasons.active,fan.speed", "--format=csv,noheader", "-i", "1",
                 missing=["nvmlDeviceGetPerformanceState", "nvmlDeviceGetCurrentClocksEventReasons",
                          "nvmlDeviceGetFanSpeed"])
    assert rows(run.stdout) == [["[N/A]", "0x0000000000000001", "[N/A]"]]  # the older name of the reasons


# ---- the past ----

def test_the_store_knows_since_when(recorded, sim):
    db, clock = recorded(1800)
    run = sim("query", "--db", db, "--format=json",
              "--query-gpu=index,gua.state,gua.idle_since,gua.free_for,gua.state_since", clock=clock)
    _, second, third = json.loads(run.stdout)["gpus"]
    # It was active until 08:00:20: the first whole slot of idle time begins at 08:01.
    assert second["gua.state"] == "idle_held" and second["gua.idle_since"] == "2026-11-02T08:01:00Z"
    assert second["gua.free_for"] == 0
    assert third["gua.state"] == "truly_idle" and 1795 <= third["gua.free_for"] <= 1800


def test_nothing_is_known_of_the_time_before_the_recorder(recorded, sim):
    """It began 40 seconds into a slot: the slot is not taken whole."""
    late = CARDS.replace("start 2026-11-02T08:00:00Z", "start 2026-11-02T08:00:40Z")
    db, clock = recorded(150, late)
    run = sim("query", "--db", db, "--query-gpu=gua.state_since,gua.idle_since", "--format=csv,noheader", "-i", "2",
              scenario=late, clock=clock)
    assert run.stdout == "2026-11-02T08:00:40Z, 2026-11-02T08:00:40Z\n"
    card = json.loads(sim("stat", "--db", db, "--json", "--id", "2", scenario=late, clock=clock).stdout)["gpus"][0]
    assert card["gua.free_since"] == "2026-11-02T08:00:40Z" and card["gua.state_is_lower_bound"] is True


def test_a_state_that_began_while_the_recorder_looked_is_not_for_longer(recorded, sim):
    db, clock = recorded(1800)
    card = json.loads(sim("stat", "--db", db, "--json", "--id", "1", clock=clock).stdout)["gpus"][0]
    assert card["gua.state_since"] == "2026-11-02T08:01:00Z" and card["gua.state_is_lower_bound"] is False


def test_a_card_that_could_not_be_seen_may_have_been_so_for_longer(recorded, sim):
    lost = CARDS + "at 10m lost card 2 until 610s\n"
    db, clock = recorded(1800, lost)
    card = json.loads(sim("stat", "--db", db, "--json", "--id", "2", scenario=lost, clock=clock).stdout)["gpus"][0]
    assert card["gua.state_since"] == "2026-11-02T08:11:00Z" and card["gua.state_is_lower_bound"] is True


def test_idle_goes_on_when_the_holder_goes(recorded, sim):
    """Nothing has computed since second 20, whoever held the card until minute 30."""
    left = CARDS + "at 30m release note card 1\n"
    db, clock = recorded(2400, left)
    fields = "--query-gpu=gua.state,gua.state_since,gua.idle_since,gua.free_for"
    args = ["query", fields, "--format=csv,noheader,nounits", "-i", "1", "--db", db]
    assert rows(sim(*args, scenario=left, clock=clock).stdout) == [
        ["truly_idle", "2026-11-02T08:30:00Z", "2026-11-02T08:01:00Z", "600"]]


def test_idle_goes_on_while_one_looks(tmp_path):
    path = tmp_path / "view.scenario"
    path.write_text(CARDS + "at 40s release note card 1\n")
    run = subprocess.Popen([GUA, "query", "--query-gpu=gua.state,gua.idle_since,gua.state_since", "--source", "sim",
                            "--scenario", path, "--clock", "virtual", "--no-store", "--format=csv,noheader", "-i", "1",
                            "-l", "5"], stdout=subprocess.PIPE, text=True, env=clean_environment())
    lines = [run.stdout.readline().strip().split(", ") for _ in range(12)]
    run.kill()
    run.wait()
    assert lines[3] == ["active", "[N/A]", "2026-11-02T08:00:00Z"] and lines[5][0] == "idle_held"
    idle = [line for line in lines if line[0] != "active"]
    assert {line[1] for line in idle} == {"2026-11-02T08:00:20Z"}
    assert idle[-1] == ["truly_idle", "2026-11-02T08:00:20Z", "2026-11-02T08:00:40Z"]


def test_the_store_knows_how_long_each_holder_is_idle(recorded, sim):
    db, clock = recorded(1800)
    run = sim("query", "--db", db, "--format=json", clock=clock,
              *["--query-compute-apps=pid,gua.gpu_index,gua.idle_seconds,gua.held_since"])
    idle = {(row["pid"], row["gua.gpu_index"]): row["gua.idle_seconds"] for row in json.loads(run.stdout)["processes"]}
    assert idle[1001, 0] is None
    assert 1775 <= idle[1002, 1] <= 1781  # since 08:00:20
    assert 1795 <= idle[1002, 0] <= 1800  # never active on card 0: since it was first seen


def test_a_store_that_is_stale_is_not_believed(recorded, sim):
    db, clock = recorded(600)
    raw = bytearray(clock.read_bytes())
    raw[8:16] = (int.from_bytes(raw[8:16], "little") + 3600 * 10**6).to_bytes(8, "little")
    clock.write_bytes(raw)
    run = sim("query", "--db", db, "--query-compute-apps=pid,gua.idle_for", "--format=json", clock=clock)
    assert max(row["gua.idle_seconds"] or 0 for row in json.loads(run.stdout)["processes"]) <= 10


def test_time_that_nobody_recorded_ends_the_stretch(recorded, sim):
    db, clock = recorded(1800)
    with sqlite3.connect(db) as store:
        store.execute("DELETE FROM usage_1m WHERE slot BETWEEN ? AND ?", (WALL + 600, WALL + 660))
    run = sim("query", "--db", db, "--query-gpu=gua.state_since", "--format=csv,noheader", "-i", "2", clock=clock)
    assert run.stdout == "2026-11-02T08:12:00Z\n"


def test_another_state_ends_the_stretch(recorded, sim):
    db, clock = recorded(1800)
    with sqlite3.connect(db) as store:
        store.execute("INSERT INTO usage_1m SELECT ?, id, 0, 1000, 90000, 0, 1000, 0, 0 FROM gpu WHERE idx = 2", (WALL + 900,))
    run = sim("query", "--db", db, "--query-gpu=gua.free_for", "--format=csv,noheader,nounits", "-i", "2", clock=clock)
    assert 1800 - 960 - 5 <= int(run.stdout) <= 1800 - 960 + 1


@pytest.mark.parametrize("command, shown", [
    ("=cmd|calc", "\"'=cmd|calc\""), ("@SUM(1)", "\"'@SUM(1)\""), ("-x", "\"'-x\""), ("a,b", '"a,b"'), ("-15", "\"'-15\"")])
def test_csv_is_safe_in_a_spreadsheet(sim, command, shown):
    run = sim("query", "--query-compute-apps=process_name,pid", "--format=csv,noheader",
              scenario=CARDS.replace("python train.py --lr 3", command))
    assert run.stdout.splitlines()[0] == f"{shown}, 1001"


ACCOUNTED = CARDS.replace("host lab\n", "host lab\naccounting on\n") + "at 30s release note card 1\n"


@pytest.mark.parametrize("source", ["sim", "driver"])
def test_the_processes_that_accounting_mode_knows(request, source):
    fields = "gpu_name,gpu_bus_id,pid,gpu_util,mem_util,max_memory_usage,time"
    at = {"at": 60} if source == "driver" else {}
    run = request.getfixturevalue(source)("query", f"--query-accounted-apps={fields}", "--format=csv",
                                          scenario=ACCOUNTED, **at)
    header, *lines = rows(run.stdout)
    assert header == ["gpu_name", "gpu_bus_id", "pid", "gpu_utilization [%]", "mem_utilization [%]",
                      "max_memory_usage [MiB]", "time [ms]"]
    assert [line[2] for line in lines if line[1] == "00000000:17:00.0"] == ["1001", "1002"]
    if source == "driver":
        note, = [line for line in lines if line[1] == "00000000:65:00.0" and line[2] == "1002"]
        assert note[5:] == ["8192 MiB", "30000 ms"] and note[3].endswith(" %")
    running = next(line for line in lines if line[2] == "1001")
    assert running[5:] == ["40960 MiB", "0 ms"]


def test_accounting_mode_is_usually_off(driver):
    run = driver("query", "--query-accounted-apps=pid,time", "--format=csv")
    assert (run.returncode, run.stdout) == (0, "pid, time [ms]\n" + "[N/A], [N/A]\n" * 3)


def test_retired_pages_and_remapped_rows(driver):
    run = driver("query", "--query-retired-pages=gpu_uuid,retired_pages.address,retired_pages.cause", "--format=csv",
                 "-i", "0")
    assert rows(run.stdout)[1:] == [["GPU-aaaa0000", "[N/A]", "Single Bit ECC"], ["GPU-aaaa0000", "[N/A]", "Double Bit ECC"]]
    run = driver("query", "--query-remapped-rows=gpu_name,remapped_rows.correctable,remapped_rows.dbe,remapped_rows.pending",
                 "--format=csv")
    assert rows(run.stdout) == [
        ["gpu_name", "remapped_rows.correctable", "remapped_rows.uncorrectable", "remapped_rows.pending"],
        ["NVIDIA A100-SXM4-80GB", "0", "0", "0"]] + [["NVIDIA GeForce RTX 3090", "[N/A]", "[N/A]", "[N/A]"]] * 2


@pytest.mark.parametrize("kind", ["accounted-apps", "retired-pages", "remapped-rows"])
def test_the_fields_of_each_list_can_be_listed_and_asked(driver, kind):
    listed = gua("query", f"--help-query-{kind}").stdout
    names = re.findall(r'"([^"]+)"', listed)
    assert len(names) == len(set(names)) >= 8
    run = driver("query", f"--query-{kind}=" + ",".join(names), "--format=json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["schema"] == "gua-query-1"
    wrong = gua("query", f"--query-{kind}=memory.used")
    assert wrong.returncode == 2 and f"--help-query-{kind}" in wrong.stderr
    both = gua("query", f"--query-{kind}=timestamp", "--query-gpu=name")
    assert both.returncode == 2 and "only one" in both.stderr

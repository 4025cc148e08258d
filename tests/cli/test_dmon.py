"""gua dmon: the columns of nvidia-smi's dmon and pmon, scrolling."""
import pytest

from conftest import gua
from fake import calls
from live import CARDS, LOST, MIG, driver, recorded, sim  # noqa: F401


@pytest.mark.parametrize("name, args", [
    ("plain", ["-c", "2"]),
    ("every", ["-c", "3", "-s", "pucvmet", "-o", "DT", "-i", "0"]),
    ("processes", ["-p", "-c", "2", "-d", "15"]),
    ("process-use", ["-p", "-s", "u", "-c", "1", "-o", "T", "-u", "bob"]),
])
def test_columns(sim, expect, name, args):
    run = sim("dmon", *args)
    assert run.returncode == 0, run.stderr
    expect(f"dmon/{name}.txt", run.stdout)


def test_the_driver_says_the_same_as_the_simulation(sim, driver):
    args = ["dmon", "-c", "3", "-s", "pucvmet", "-o", "DT"]
    assert driver(*args, at=0).stdout == sim(*args).stdout


def test_values_with_commas(sim):
    whole = sim("dmon", "-c", "20", "-s", "pm", "--format", "csv").stdout.splitlines()
    assert whole[:2] == ["#gpu, pwr, gtemp, mtemp, fb, bar1, ccpm", "#Idx, W, C, C, MB, MB, MB"]
    assert whole[2] == "0, 332, 70, 74, 43008, 4, 0" and len(whole) == 2 + 20 * 3  # the header is there once
    in_columns = [line.split() for line in sim("dmon", "-c", "2", "-s", "pm").stdout.splitlines()]
    assert [line.split(", ") for line in whole[2:8]] == in_columns[2:8]
    assert sim("dmon", "-c", "20", "-s", "pm", "--format=csv,nounit").stdout.splitlines() == whole[:1] + whole[2:]
    bare = sim("dmon", "-p", "-c", "1", "-o", "DT", "--format=csv,noheader,nounit", "-i", "1").stdout
    assert bare == "20261102, 08:00:00, 1, 1002, C, 50, 25, 0, 0, -, -, 8192, -, python\n" \
        "20261102, 08:00:00, 1, 1003, G, 0, 0, 0, 0, -, -, 300, -, Xorg\n"
    for wrong, said in (("json", "takes csv"), ("noheader", "wants csv"), ("csv,nothing", "takes csv")):
        run = sim("dmon", "-c", "1", "--format", wrong)
        assert run.returncode == 2 and said in run.stderr


GAME = CARDS + 'process game pid 1004 user eve uid 1004 command "game" kind both\n' \
    "at 0s hold game card 2 memory 1GiB\nat 0s load game card 2 sm 80\n"


def columns(run):
    """The lines of a look, by title."""
    lines = [line.split() for line in run.stdout.splitlines()]
    return [dict(zip(lines[0][1:], line)) for line in lines[2:]]


def test_a_process_has_all_that_the_driver_tells(driver):
    game, = [row for row in columns(driver("dmon", "-p", "-c", "1", scenario=GAME)) if row["pid"] == "1004"]
    assert [game[name] for name in ("type", "sm", "mem", "enc", "dec", "jpg", "ofa", "fb", "ccpm")] == \
        ["C+G", "80", "40", "20", "16", "-", "-", "1024", "-"]


def test_a_client_of_mps_is_a_compute_process_too(sim):
    row, = [row for row in columns(sim("dmon", "-p", "-c", "1", scenario=GAME.replace("both", "mps"))) if row["pid"] == "1004"]
    assert row["type"] == "M+C"


def test_the_newer_call_tells_of_more_engines(driver):
    rows = columns(driver("dmon", "-p", "-c", "1", scenario=GAME, missing=["nvmlDeviceGetProcessUtilization"]))
    use = {row["pid"]: [row[name] for name in ("sm", "mem", "enc", "dec", "jpg", "ofa")] for row in rows}
    assert use["1004"] == ["80", "40", "20", "16", "10", "8"]
    assert use["1003"] == ["0"] * 6  # listed, and did nothing


def test_what_the_driver_does_not_tell_of_processes_is_a_dash(driver):
    rows = columns(driver("dmon", "-p", "-s", "u", "-c", "1", scenario=MIG))
    assert {row["pid"]: row["mem"] for row in rows} == {"1001": "-", "1002": "-", "-": "-"}
    rows = columns(driver("dmon", "-p", "-c", "1", missing=[
        "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo"]))
    assert all(row[name] == "-" for row in rows for name in ("sm", "mem", "enc", "dec", "jpg", "ofa"))


@pytest.mark.parametrize("args, titles", [
    (["-s", "mu"], "# gpu fb bar1 ccpm sm mem enc dec jpg ofa"),
    (["-s", "te", "-o", "T"], "#Time gpu rxpci txpci sbecc dbecc pci"),
    (["-s", "uu"], "# gpu sm mem enc dec jpg ofa"),
    (["-p", "-s", "mu"], "# gpu pid type fb ccpm sm mem enc dec jpg ofa command"),
])
def test_columns_come_in_the_order_of_the_letters(sim, args, titles):
    """As in nvidia-smi: scripts count columns."""
    lines = sim("dmon", "-c", "1", *args).stdout.splitlines()
    assert lines[0].split() == titles.split()
    assert len(lines[1].split()) == len(lines[0].split())
    assert len(lines[-1].split()) == len(lines[0].replace("#", "").split())


def test_the_header_comes_again(sim):
    lines = sim("dmon", "-c", "30", "-i", "1").stdout.splitlines()
    assert [i for i, line in enumerate(lines) if line.startswith("# gpu")] == [0, 26]
    assert len(lines) == 30 + 4


def test_the_delay_is_the_time_between_lines(sim):
    lines = sim("dmon", "-c", "3", "-d", "5", "-o", "T", "-i", "0").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["08:00:00", "08:00:05", "08:00:10"]


def test_a_lost_card_and_a_divided_one_have_dashes(driver):
    lines = driver("dmon", "-c", "1", scenario=LOST).stdout.splitlines()
    assert lines[3].split() == ["1"] + ["-"] * 11 and lines[2].split()[1] == "332"
    lines = driver("dmon", "-c", "1", "-s", "um", scenario=MIG).stdout.splitlines()
    assert lines[2].split() == ["0"] + ["-"] * 6 + ["11264", "4", "0"]


def test_pcie_is_never_measured_by_blocking(driver, tmp_path):
    run = driver("dmon", "-c", "2", "-s", "t")
    assert run.stdout.splitlines()[-1].split()[1:] != ["-", "-"]
    assert not [name for _, name, _, _ in calls(tmp_path / "log") if "Throughput" in name]


def test_ecc_errors_are_those_of_the_cards_life(driver, tmp_path):
    driver("dmon", "-c", "1", "-s", "e", "-i", "0")
    asked = {rest for _, name, _, rest in calls(tmp_path / "log") if name.endswith("TotalEccErrors")}
    assert asked == {"type=0 counter=1", "type=1 counter=1"}


def test_a_file_instead_of_the_terminal(sim, tmp_path):
    run = sim("dmon", "-c", "1", "-f", tmp_path / "out")
    assert run.stdout == "" and (tmp_path / "out").read_text().count("\n") == 5
    run = sim("dmon", "-c", "1", "-f", "/dev/full")
    assert (run.returncode, run.stderr) == (1, "gua dmon: cannot write the output: No space left on device\n")


def test_a_divided_card_is_empty_when_all_its_instances_are(driver):
    """One line says so, and none does where somebody is on another instance."""
    half = MIG.replace("at 0s hold a mig 0/0 memory 10GiB\n", "")
    empty = half.replace("at 0s hold b mig 0/1 memory 1GiB\n", "")
    lines = driver("dmon", "-p", "-c", "1", scenario=half).stdout.splitlines()[2:]
    assert [line.split()[:2] for line in lines] == [["0", "1002"], ["1", "-"]]
    lines = driver("dmon", "-p", "-c", "1", scenario=empty).stdout.splitlines()[2:]
    assert [line.split()[:2] for line in lines] == [["0", "-"], ["1", "-"]]


@pytest.mark.parametrize("args, words", [
    (["-s", "x"], "--select takes"),
    (["-p", "-s", "c"], "--select takes"),
    (["-o", "X"], "--options accepts"),
    (["-d", "often"], "--delay"),
    (["-c", "0"], "--count"),
    (["-i", "7", "-c", "1"], "card '7' does not exist"),
])
def test_wrong_usage(sim, args, words):
    run = sim("dmon", *args)
    assert run.returncode == (1 if "card" in words else 2) and words in run.stderr


def test_no_driver(tmp_path):
    (tmp_path / "proc").mkdir()
    run = gua("dmon", "-c", "1", "--no-store", "--root", tmp_path)
    assert run.returncode == 1 and "no NVIDIA driver" in run.stderr

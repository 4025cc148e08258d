"""gua stat: gpustat's lines and keys, with states, idle times, instances and lost cards."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from conftest import GUA, clean_environment, gua, wait_for
from fake import fake_driver
from live import CARDS, LOST, MIG, WALL, driver, recorded, sim  # noqa: F401

GPUSTAT_KEYS = {"index", "name", "uuid", "temperature.gpu", "fan.speed", "memory.used", "memory.total", "utilization.gpu",
                "utilization.enc", "utilization.dec", "power.draw", "enforced.power.limit", "processes"}
PROCESS_KEYS = {"username", "command", "full_command", "gpu_memory_usage", "cpu_percent", "cpu_memory_usage", "pid"}


@pytest.mark.parametrize("name, args", [
    ("plain", []),
    ("all", ["-a"]),
    ("full", ["-a", "-f"]),
    ("command", ["-c"]),
    ("pid", ["-cup"]),
    ("bare", ["--no-header", "--no-processes"]),
    ("color", ["--force-color", "-a"]),
    ("narrow", ["--gpuname-width", "10"]),
    ("nameless", ["--gpuname-width", "0", "-P"]),
    ("draw", ["-P", "draw"]),
    ("ascii", ["--ascii", "-f"]),
])
def test_lines(sim, expect, name, args):
    run = sim("stat", *args)
    assert run.returncode == 0, run.stderr
    expect(f"stat/{name}.txt", run.stdout)


def test_the_driver_says_the_same_as_the_simulation(sim, driver):
    here, there = sim("stat", "-a", "--no-processes"), driver("stat", "-a", "--no-processes", at=0)
    # The simulated host has a name of its own.
    assert here.stdout.splitlines()[1:] == there.stdout.splitlines()[1:]


def test_mig_instances_are_rows_below_their_card(driver, expect):
    run = driver("stat", "-P", "--no-header", scenario=MIG)
    assert run.returncode == 0, run.stderr
    expect("stat/mig.txt", run.stdout)


def test_a_lost_card_is_a_row_that_says_so(driver, expect):
    run = driver("stat", "--no-header", "--no-processes", scenario=LOST)
    assert run.returncode == 0, run.stderr
    expect("stat/lost.txt", run.stdout)
    whole = driver("stat", "--no-header", scenario=LOST).stdout.splitlines()
    assert whole[1] == "[1] ((GPU is lost))         | ??°C,  ?? % |    ?? /    ?? MB | (Not Supported) | lost"
    nameless = driver("stat", "--no-header", "-aP", "--gpuname-width", "0", scenario=LOST).stdout.splitlines()
    assert nameless[1].startswith("[1]  ??°C,  ?? %,  ?? % (E:  ?? %  D:  ?? %),   ?? /  ?? W |")


def test_an_unknown_error_has_gpustats_text(driver):
    scenario = CARDS + "at 0s fail nvmlDeviceGetHandleByIndex_v2 card 1 code 999\n"
    run = driver("stat", "--json", scenario=scenario)
    names = [gpu["name"] for gpu in json.loads(run.stdout)["gpus"]]
    assert "((Unknown Error))" in names and "NVIDIA A100-SXM4-80GB" in names


def test_forced_colours_end_as_watch_wants(sim):
    forced = sim("stat", "--force-color", "--no-header").stdout
    assert "\033[0;10m" in forced and "\033[0m" not in forced and "\x0f" not in forced


def test_json_has_the_keys_of_gpustat_whatever_is_shown(sim):
    document = json.loads(sim("stat", "--json", "--no-processes").stdout)
    assert document["gua.schema"] == "gua-stat-1"
    assert document["hostname"] == "lab" and document["driver_version"] == "560.35.05"
    assert document["query_time"] == "2026-11-02T08:00:00" and document["gua.time"] == "2026-11-02T08:00:00Z"
    first, second, third = document["gpus"]
    assert GPUSTAT_KEYS <= set(first) and PROCESS_KEYS <= set(first["processes"][0])
    assert (first["power.draw"], first["memory.used"], first["fan.speed"]) == (332, 43008, None)
    assert first["processes"][0]["full_command"] == ["python", "train.py", "--lr", "3"]
    assert first["processes"][0]["command"] == "python" and first["processes"][0]["gpu_memory_usage"] == 40960
    assert first["gua.state"] == "active" and third["gua.state"] == "truly_idle" and third["processes"] == []
    assert [p["gua.holder"] for p in second["processes"]] == [True, False]  # the display server is none


def test_a_card_that_was_lost_before_the_view_has_no_lease(sim):
    run = sim("stat", "--json", scenario=CARDS + "at 0s lost card 0\n", env={"MALLOC_PERTURB_": "66"})
    assert [card["gua.leased_to"] for card in json.loads(run.stdout)["gpus"]] == [None] * 3


def test_json_of_lost_cards_and_of_instances(driver):
    lost = json.loads(driver("stat", "--json", scenario=LOST).stdout)["gpus"]
    assert lost[1]["index"] == 1 and lost[1]["gua.state"] == "lost"
    assert lost[1]["name"] == "((GPU is lost))" and "gua.name" in lost[1] and "gua.name" not in lost[0]
    assert lost[1]["processes"] is None and lost[1]["temperature.gpu"] is None
    assert lost[0]["temperature.gpu"] == 70
    mig = json.loads(driver("stat", "--json", scenario=MIG).stdout)["gpus"]
    assert [(i["uuid"], i["memory.used"], i["memory.total"], i["processes"][0]["pid"])
            for i in mig[0]["gua.instances"]] == [("MIG-1111", 10240, 20480, 1001), ("MIG-2222", 1024, 5120, 1002)]
    assert mig[0]["utilization.gpu"] is None and len(mig[0]["processes"]) == 2


def test_options_of_gpustat_that_change_nothing(sim):
    assert sim("stat", "--debug").stdout == sim("stat").stdout != ""
    assert gua("stat", "-v").stdout == gua("stat", "--version").stdout == gua("version").stdout != ""


def test_watching_as_json_streams_one_document_a_line(tmp_path):
    path = tmp_path / "view.scenario"
    path.write_text(CARDS)
    run = subprocess.Popen([GUA, "stat", "--source", "sim", "--scenario", path, "--clock", "virtual", "--no-store",
                            "--json", "-i", "15"], stdout=subprocess.PIPE, text=True, env=clean_environment())
    documents = [json.loads(run.stdout.readline()) for _ in range(4)]
    run.stdout.close()
    run.wait(timeout=60)
    assert [d["gua.time"][-4:-1] for d in documents] == [":00", ":15", ":30", ":45"]
    # Without a store idle time is what this view saw: it was active until second 20.
    note = [d["gpus"][1]["processes"][0] for d in documents]
    assert [p["gua.active"] for p in note] == [True, True, False, False]
    # The driver keeps ten seconds: what was before 08:00:35 is not known at 08:00:45.
    assert note[3]["gua.idle_since"][:19] == "2026-11-02T08:00:35"


def test_watching_closely_misses_nothing(tmp_path):
    path = tmp_path / "view.scenario"
    path.write_text(CARDS)
    run = subprocess.Popen([GUA, "stat", "--source", "sim", "--scenario", path, "--clock", "virtual", "--no-store",
                            "--no-header", "-i", "5"], stdout=subprocess.PIPE, text=True, env=clean_environment())
    lines = [run.stdout.readline() for _ in range(3 * 20)]
    run.stdout.close()
    run.wait(timeout=60)
    # At 08:01:35 it has been idle since 08:00:20.
    assert lines[3 * 19 + 1].rstrip().endswith("| bob(8192M idle 1m) root(300M) | idle-held 1m")


def test_idle_times_come_from_the_store(recorded, sim):
    db, clock = recorded(3 * 3600)
    lines = sim("stat", "--db", db, "--no-header", clock=clock).stdout.splitlines()
    assert lines[1].endswith("| bob(8192M idle 2h59m) root(300M) | idle-held 2h59m")
    assert lines[2].endswith("| truly-idle >3h") or lines[2].endswith("| truly-idle >2h59m")  # free when the recorder began
    assert "alice(40960M) bob(2048M idle" in lines[0]
    process = json.loads(sim("stat", "--db", db, "--json", clock=clock).stdout)["gpus"][1]["processes"][0]
    assert process["gua.idle_since"].startswith("2026-11-02T08:00:20")


def test_what_nobody_saw_may_have_been_for_longer(tmp_path, clock_file):
    """A view that has looked for a minute knows of a minute, not of the three days before."""
    clock, path = clock_file(WALL + 60, 3660), tmp_path / "view.scenario"
    path.write_text(CARDS)
    run = subprocess.Popen([GUA, "stat", "--source", "sim", "--scenario", path, "--clock", clock, "--no-store",
                            "--no-header", "-i", "5"], stdout=subprocess.PIPE, text=True, env=clean_environment())
    lines = [run.stdout.readline().rstrip() for _ in range(3 * 5)]
    run.kill()
    run.wait()
    assert lines[1].endswith("| bob(8192M) root(300M) | idle-held") and lines[2].endswith("| truly-idle")
    assert lines[-2].endswith("| bob(8192M idle >29s) root(300M) | idle-held >29s") and lines[-1].endswith("| truly-idle >20s")


def test_a_store_that_comes_later_is_found(tmp_path):
    """Somebody starts the recorder while somebody else watches."""
    path, db = tmp_path / "view.scenario", tmp_path / "late.db"
    path.write_text(CARDS)
    source = ["--source", "sim", "--scenario", path, "--clock", "virtual", "--db", db]
    run = subprocess.Popen([GUA, "stat", *source, "--json", "-i", "15"], stdout=subprocess.PIPE, text=True,
                           env=clean_environment())
    assert json.loads(run.stdout.readline())["gua.note"].startswith("no store at ")
    assert gua("daemon", "--foreground", "--ticks", "1", *source).returncode == 0
    deadline, note = time.monotonic() + 60, ""
    while not note.startswith("the recorder stopped"):
        assert time.monotonic() < deadline, note
        note = json.loads(run.stdout.readline())["gua.note"]
    run.kill()
    run.wait()


def test_a_store_that_cannot_be_read_is_a_note(sim, tmp_path):
    (tmp_path / "bad.db").write_text("this is no store, whatever its name says" * 100)
    run = sim("stat", "--db", tmp_path / "bad.db", "--json")
    assert run.returncode == 0 and "bad.db" in json.loads(run.stdout)["gua.note"]
    run = sim("stat", "--db", tmp_path / "none.db", "--json")
    assert "no store at" in json.loads(run.stdout)["gua.note"]


def test_memory_that_nobody_explains_is_said(sim):
    scenario = CARDS + "at 0s orphan card 2 memory 20GiB\nat 0s orphan card 1 memory 500MiB\n"
    lines = sim("stat", "--no-header", scenario=scenario).stdout.splitlines()
    # Somebody holds it, as the recorder says too.
    assert lines[2].endswith("| unexplained(20480M) | idle-held") and "unexplained" not in lines[1]
    gpus = json.loads(sim("stat", "--json", scenario=scenario).stdout)["gpus"]
    assert [gpu["gua.orphan_memory"] for gpu in gpus] == [0, 500, 20480]


def test_filters(sim):
    def lines(*args):
        return sim("stat", "--no-header", *args).stdout.splitlines()
    assert [line[:3] for line in lines("--id", "2,0")] == ["[2]", "[0]"]
    assert [line[:3] for line in lines("--user", "alice")] == ["[0]"] and "bob" not in lines("--user", "alice")[0]
    assert [line[:3] for line in lines("--pid", "1003")] == ["[1]"]
    assert [line[:3] for line in lines("--state", "free")] == ["[2]"]
    assert lines("--min-mem", "9G")[0].endswith("| alice(40960M) | active")


@pytest.mark.parametrize("args, words", [
    (["--no-color", "--force-color"], "exclude each other"),
    (["-P", "watts"], "--show-power takes"),
    (["-e", "jpg"], "--show-codec takes"), (["-e", ","], "--show-codec takes enc,dec, not ','"),
    (["--show-power=draw,,limit"], "--show-power takes draw,limit, not 'draw,,limit'"),
    (["-i", "often"], "--interval"),
    (["--gpuname-width", "-3"], "--gpuname-width"),
    (["more"], "unexpected argument"),
])
def test_wrong_usage_is_two(sim, args, words):
    run = sim("stat", *args)
    assert run.returncode == 2 and words in run.stderr


def test_no_driver_and_no_cards(sim, tmp_path):
    (tmp_path / "proc").mkdir()
    run = gua("stat", "--no-store", "--root", tmp_path)
    assert run.returncode == 1 and "no NVIDIA driver" in run.stderr
    run = sim("stat", "--id", "9")
    assert run.returncode == 1 and "card '9' does not exist; gua smi -L lists the cards" in run.stderr


@pytest.fixture
def eight(tmp_path):
    """The environment of a driver with eight cards and a process of this host on each."""
    scenario = "driver 560.35.05\nprocess here pid env HERE\n" + "".join(
        f'card {i} uuid GPU-{i} name "NVIDIA A100" memory 40GiB\n' for i in range(8))
    scenario += "".join(f"at 0s hold here card {i} memory 1GiB\n" for i in range(8))
    child = subprocess.Popen([sys.executable, "-c", "while True: pass", "word one", "\033[31m"])
    yield fake_driver(tmp_path, scenario, HERE=child.pid), child
    child.kill()
    child.wait()


def test_nothing_sleeps_in_one_look(eight, clock_file):
    """On a virtual clock, which moves when somebody waits: for CPU time, and for nothing else."""
    env, _ = eight
    for args, moves in (([], 0), (["--json"], 0), (["-f"], 100_000)):
        clock = clock_file(WALL)
        before, = struct.unpack_from("=q", clock.read_bytes(), 8)
        assert gua("stat", "--no-store", "--clock", clock, *args, env=env).returncode == 0
        after, = struct.unpack_from("=q", clock.read_bytes(), 8)
        assert after - before == moves, args


def test_full_commands_have_cpu_and_host_memory(eight):
    env, child = eight
    def look():
        run = gua("stat", "--no-store", "-f", "--id", "3", "--json", env=env)
        process, = json.loads(run.stdout)["gpus"][0]["processes"]
        return process
    process = look()
    assert process["pid"] == child.pid and process["full_command"][-2:] == ["word one", r"\x1B[31m"]
    assert process["cpu_percent"] is not None and process["cpu_memory_usage"] > 1_000_000
    wait_for(lambda: look()["cpu_percent"] > 0)  # it computes whenever others let it
    text = gua("stat", "--no-store", "-f", "--id", "3", env=env).stdout
    assert f"└─ {child.pid:6}" in text and "\033" not in text
    once = json.loads(gua("stat", "--no-store", "--json", env=env).stdout)
    assert once["gpus"][0]["processes"][0]["cpu_percent"] is None


def test_host_memory_is_exact(driver, tmp_path):
    """statm says what is resident. In stat it may be late."""
    process = tmp_path / "root/proc/1001"
    process.mkdir(parents=True)
    (process / "stat").write_text(f"1001 (python) S 1{' 1' * 17} 4711 1000000 374 0\n")
    (process / "statm").write_text("1200 417 300 9 0 250 0\n")
    shown = json.loads(driver("stat", "-f", "--json").stdout)["gpus"][0]["processes"]
    pages = {one["pid"]: one["cpu_memory_usage"] for one in shown}
    assert pages == {1001: 417 * os.sysconf("SC_PAGE_SIZE"), 1002: None}
    (process / "statm").unlink()
    assert f"{374 * os.sysconf('SC_PAGE_SIZE')}" in driver("stat", "-f", "--json").stdout


def watch(tmp_path, scenario, *args, rows=24, columns=80):
    """What gua stat -i writes to a terminal of that size, until it is ended with Ctrl-C."""
    path = tmp_path / "view.scenario"
    path.write_text(scenario)
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    run = subprocess.Popen([GUA, "stat", "--source", "sim", "--scenario", path, "--no-store", "-i", "0.1", *args],
                           stdin=follower, stdout=follower, stderr=follower,
                           env=clean_environment(TERM="xterm", NO_COLOR="1"), start_new_session=True)
    os.close(follower)
    seen, told = b"", False
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            if select.select([leader], [], [], 1)[0]:
                seen += os.read(leader, 65536)
            if seen.count(b"\033[H") >= 3 and not told:
                run.send_signal(signal.SIGINT)
                told = True
    except OSError:  # it has ended
        pass
    os.close(leader)
    assert run.wait(timeout=60) == 0
    return seen


def test_watching_on_a_terminal_ends_with_ctrl_c(tmp_path):
    seen = watch(tmp_path, CARDS)
    assert seen.startswith(b"\033[?1049h") and seen.endswith(b"\033[?1049l")
    assert b"[0] NVIDIA A100-SXM4-80GB " in seen and b"\033[31m" not in seen


@pytest.mark.parametrize("args", [["--no-header", "--no-processes"], ["--no-header", "--no-processes", "--force-color"]])
def test_what_does_not_fit_on_the_screen_is_counted(tmp_path, args):
    """A frame that scrolls is mixed with the one before."""
    many = "".join(f'card {i} uuid GPU-{i} name "NVIDIA A100" memory 40GiB\n' for i in range(64))
    def first(**size):
        return watch(tmp_path, many, *args, **size).split(b"\033[H")[1].split(b"\r\n")
    frame = first()
    assert len(frame) == 24 and frame[-1].startswith(b"(41 more)") and b"[22]" in frame[-2]
    narrow = first(columns=40)  # each takes two rows, and below the last one there is room for a message
    assert len(narrow) == 13 and narrow[-2].startswith(b"(53 more)") and narrow[-1] == b"\033[J"
    high = first(rows=70)
    assert b"[63]" in high[63] and high[64:] == [b"\033[J"]


@pytest.fixture
def frames(tmp_path, clock_file):
    """frames(SCENARIO, N, *WORDS): so many lines of a view that looks every minute, on the fake driver."""
    def run(scenario, n, *words):
        root, clock = tmp_path / "root", clock_file(WALL + 60, 3660)
        (root / "proc").mkdir(parents=True, exist_ok=True)
        env = clean_environment(**fake_driver(tmp_path, scenario, clock=clock))
        view = subprocess.Popen([GUA, *words, "--no-store", "--clock", clock, "--root", root], text=True,
                                stdout=subprocess.PIPE, env=env)
        lines = [view.stdout.readline().rstrip() for _ in range(n)]
        view.kill()
        view.wait()
        return lines
    return run


def test_a_card_that_is_divided_while_somebody_looks(frames):
    """The card as a whole is no longer there, which is no fault; and its board is the whole board."""
    scenario = MIG + "at 0s fail nvmlDeviceGetMigMode code 999 until 100s\n"
    lines = frames(scenario, 8, "stat", "-i", "60", "--no-header", "--no-processes")
    assert lines[0].startswith("[0] NVIDIA A100-SXM4-40GB |") and lines[0].endswith("| 11264 / 40960 MB | use unknown")
    assert lines[2].endswith("| 11264 / 40960 MB | MIG") and lines[5].startswith("[1] NVIDIA A30")
    assert [line.split()[0] for line in lines[3:5]] == ["[0:0]", "[0:1]"] and "lost" not in "".join(lines)
    lines = frames(scenario, 4, "query", "--query-gpu=memory.total,mig.mode.current", "--format=csv,noheader", "-l", "60")
    assert lines[0] == "40960 MiB, [Unknown Error]" and lines[2] == "40960 MiB, Enabled"


def test_instances_that_are_destroyed_while_somebody_looks(frames):
    scenario = MIG + "at 100s fail nvmlDeviceGetMigDeviceHandleByIndex card 0 code 6 until 150s\n"
    lines = frames(scenario, 9, "stat", "-i", "60", "--no-header", "--no-processes")
    assert [line.split()[0] for line in lines] == ["[0]", "[0:0]", "[0:1]", "[1]", "[1]", "[0]", "[0:0]", "[0:1]", "[1]"]


def test_memory_that_is_not_told_is_not_unexplained_by_nobody(driver):
    """What is not known is null, not 0."""
    scenario = CARDS.replace("pci 0000:98:00.0", "pci 0000:98:00.0 memory-info none")
    gpus = json.loads(driver("stat", "--json", scenario=scenario).stdout)["gpus"]
    assert [gpu["gua.orphan_memory"] for gpu in gpus] == [0, 0, None]


@pytest.mark.parametrize("option", [["--user", "nobody-like-that"], ["--state", "lost"], ["--pid", "1"]])
def test_filters_that_leave_no_card_say_so(sim, option):
    run = sim("stat", "--no-header", *option)
    assert (run.returncode, run.stdout) == (0, "(no card matches)\n")


def test_bars_are_where_gpustat_has_them(sim):
    """A script that cuts a line of gpustat at its bars: name, use, memory, processes. What gua adds comes after them."""
    for line in sim("stat", "--no-header").stdout.splitlines():
        name, use, memory, processes, state = line.split("|")
        assert name.startswith("[") and use.endswith(" % ") and memory.endswith(" MB ")
        assert "(" in processes or not processes.strip()
        assert re.match(r" (active|idle-held|truly-idle)", state)


def test_colours_as_asked(sim):
    forced = sim("stat", "--force-color").stdout
    assert "\x1b[" in forced and forced == sim("stat", "--color").stdout == sim("stat", "--color=always").stdout
    assert "\x1b[" not in sim("stat", "--color=never").stdout + sim("stat", "--color=auto").stdout
    assert sim("stat", "--color=blue").returncode == 2 == sim("stat", "--color=always", "--no-color").returncode

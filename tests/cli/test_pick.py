"""gua pick: which cards, for whom, for how long; what the command gets; and that nobody gets another's."""
import fcntl
import json
import os
import pathlib
import re
import shlex
import signal
import sqlite3
import subprocess

import pytest

from conftest import GUA, clean_environment, gua, wait_for
from fake import fake_driver
from live import driver, forget_lock  # noqa: F401

START = 1793606400  # 2026-11-02T08:00:00Z
UUIDS = [f"GPU-{letter * 8}-1111-2222-3333-444455556666" for letter in "abcd"]
CARDS = "start 2026-11-02T08:00:00Z\n" + "".join(
    f'card {i} uuid {uuid} name "NVIDIA A100-SXM4-80GB" memory 80GiB\n' for i, uuid in enumerate(UUIDS))
# Card 0 computes until 5m, 1 is held by an idle notebook, 2 is shared a little, 3 is free since 2m.
LAB = CARDS + """process train pid 4300 user bob uid 1002 command "python train.py" started -2h
process notebook pid 4242 user alice uid 1001 command "jupyter" started -1h
process tiny pid 4243 user alice uid 1001 command "tiny" started -1h
process early pid 4244 user carol uid 1003 command "early" started -1h
at 0s hold train card 0 memory 60GB
at 0s load train card 0 sm 90
at 0s hold notebook card 1 memory 8GB
at 0s hold tiny card 2 memory 90MB
at 0s hold early card 3 memory 20GB
at 2m exit early
at 5m exit train
"""


class Lab:
    def __init__(self, tmp_path, clock_file):
        self.path, self.clock_file = tmp_path, clock_file
        self.scenario = tmp_path / "lab.scenario"
        self.locks = tmp_path / "locks"
        self.db = tmp_path / "store.db"

    def args(self, *args, text=LAB, seconds=None):
        """With `seconds` on a virtual clock that stands there, else on the real one."""
        if not self.scenario.exists() or self.scenario.read_text() != text:  # others may be reading it
            self.scenario.write_text(text)
        clock = []
        if seconds is not None:
            clock = ["--clock", self.clock_file(START + seconds, boot_seconds=3600 + seconds)]
        store = ["--db", self.db] if self.db.exists() else ["--no-store"]
        if not {"--", "sh", "echo", "--hold"} & set(args):
            store += ["--hold", "0s"]
        return ["pick", "--source", "sim", "--scenario", self.scenario, *store, *clock,
                "--lock-dir", self.locks, *args]

    def pick(self, *args, text=LAB, seconds=180, env=None):
        return gua(*self.args(*args, text=text, seconds=seconds), env=env)

    def start(self, *args, text=CARDS):
        return subprocess.Popen([str(word) for word in [GUA, *self.args(*args, text=text)]], text=True,
                                env=clean_environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def record(self, seconds):
        """What a recorder has stored that is at work at this moment."""
        self.scenario.write_text(LAB)
        run = gua("daemon", "--foreground", "--ticks", seconds // 30, "--source", "sim", "--scenario", self.scenario,
                  "--db", self.db, "--clock", self.clock_file(START, name="recorder"))
        assert run.returncode == 0, run.stderr
        forget_lock(self.db)
        with sqlite3.connect(self.db) as db:
            db.execute("UPDATE run SET ended_ms = NULL, how_ended = ''")


@pytest.fixture
def lab(tmp_path, clock_file):
    return Lab(tmp_path, clock_file)


def cards(run):
    assert run.returncode == 0, run.stderr
    return [UUIDS.index(uuid) for uuid in run.stdout.strip().split(",")]


def test_the_freest_card(lab):
    assert cards(lab.pick()) == [3]
    assert cards(lab.pick("-n", "2")) == [3, 2]
    assert cards(lab.pick("-i", "2,1")) == [2]


def test_wishes(lab):
    assert cards(lab.pick("--min-free", "70G", "-n", "3")) == [3, 2, 1]
    assert cards(lab.pick("--min-free", "20G", "--max-util", "95", "-n", "4")) == [3, 2, 1, 0]
    assert cards(lab.pick("--max-util", "0")) == [3]


def test_none(lab):
    run = lab.pick("-n", "3")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "gua pick: fewer than 3 free cards: 2 free; 1 active; 1 held\n"
    run = lab.pick("--min-free", "90G")
    assert run.returncode == 1 and "3 without enough free memory" in run.stderr
    run = lab.pick("-n", "9", "--wait")  # it would wait for ever
    assert run.returncode == 1 and "9 cards are wanted, and there are only 4 to choose from" in run.stderr
    run = lab.pick("-n", "3", "-i", "2,1", "--wait")
    assert run.returncode == 1 and "there are only 2 to choose from" in run.stderr


def test_a_card_whose_memory_somebody_unseen_uses_is_not_free(lab):
    """A job in another container is not in the driver's list. Its memory is."""
    text = LAB + "at 0s orphan card 3 memory 30GiB\n"
    assert cards(lab.pick(text=text)) == [2]
    run = lab.pick("-i", "3", text=text)
    assert run.returncode == 1 and "1 with memory in use that no listed process explains" in run.stderr
    assert cards(lab.pick("-i", "3", "--min-free", "20G", text=text)) == [3]
    little = LAB + "at 0s orphan card 3 memory {}\n"     # the recorder calls 600 MiB held by _unknown
    assert lab.pick("-i", "3", text=little.format("600MiB")).returncode == 1
    assert cards(lab.pick("-i", "3", text=little.format("90MiB"))) == [3]


def test_free_for_so_long_by_the_store(lab):
    run = lab.pick("--free-for", "5m", seconds=600)
    assert run.returncode == 1 and "not known to be free for that long" in run.stderr
    lab.record(600)
    assert cards(lab.pick("--free-for", "6m", "-n", "2", seconds=600)) == [3, 2]
    assert cards(lab.pick("--free-for", "4m", "-n", "3", seconds=600)) == [3, 0, 2]
    run = lab.pick("--free-for", "6m", "-n", "3", seconds=600)
    assert run.returncode == 1 and "1 not known to be free for that long" in run.stderr


@pytest.mark.parametrize("how, expected", [
    ("uuid", f"{UUIDS[3]},{UUIDS[2]}\n"),
    ("index", "3,2\n"),
    ("env", f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={UUIDS[3]},{UUIDS[2]}\n"),
])
def test_formats(lab, how, expected):
    assert lab.pick("-n", "2", "--format", how).stdout == expected


def test_an_instance_is_picked_by_its_uuid(lab):
    text = """card 0 uuid GPU-0 name A100 memory 80GiB
mig 0 index 0 gi 1 ci 0 uuid MIG-1111 name "A100 1g.10gb" memory 10GiB
mig 0 index 3 gi 2 ci 0 uuid MIG-2222 name "A100 1g.10gb" memory 10GiB
process job pid 4300 user bob uid 1002 command job started -1h
at 0s hold job mig 0/0 memory 4GB
"""
    assert lab.pick(text=text).stdout == "MIG-2222\n"
    assert lab.pick("--format", "index", text=text).stdout == "0:3\n"
    run = lab.pick("-n", "2", text=text)
    assert run.returncode == 1 and "a program can use only one instance" in run.stderr


def test_an_instance_is_free_for_as_long_as_somebody_waited(lab):
    text = """card 0 uuid GPU-0 name A100 memory 80GiB
mig 0 index 0 gi 1 ci 0 uuid MIG-1111 name "A100 1g.10gb" memory 10GiB
mig 0 index 1 gi 2 ci 0 uuid MIG-2222 name "A100 2g.20gb" memory 20GiB
process job pid 4300 user bob uid 1002 command job started -1h
at 10m hold job mig 0/1 memory 4GB
at 15m exit job
"""
    run = lab.pick("--free-for", "10m", text=text)
    assert run.returncode == 1 and "2 not known to be free for that long" in run.stderr
    run = lab.pick("--free-for", "10m", "--wait=9m", text=text)
    assert run.returncode == 1 and "not known to be free for that long" in run.stderr
    # From 3m on; at 13m the larger one is held.
    assert lab.pick("--free-for", "10m", "--wait=1h", text=text).stdout == "MIG-1111\n"
    run = lab.pick("--free-for", "10m", "--wait=1h", "-i", "0:1", text=text)
    assert run.stdout == "MIG-2222\n"
    # Nobody looks while the driver is gone.
    text += "at 5m fail nvml* code 9 until 6m\n"
    run = lab.pick("--free-for", "10m", "--wait=12m", "-i", "0:0", text=text)
    assert run.returncode == 1 and "not known to be free for that long" in run.stderr
    assert lab.pick("--free-for", "10m", "--wait=14m", "-i", "0:0", text=text).stdout == "MIG-1111\n"


def test_a_card_without_samples_is_free_for_as_long_as_somebody_waited(driver, tmp_path):
    """Where the driver keeps none (as under WSL) each look is all there is."""
    run = driver("pick", "--free-for", "1m", "--wait=2m", "--hold", "0s", "--lock-dir", tmp_path / "locks",
                 scenario=CARDS + "at 0s fail nvmlDeviceGetSamples code 3\n")
    assert cards(run) == [0]


def test_a_sleeping_or_lost_card_is_left_alone(lab):
    run = lab.pick("-n", "1", text=CARDS + "at 1m asleep card 0\nat 1m lost card 1\nat 1m asleep card 2\n")
    assert cards(run) == [3]
    run = lab.pick("-i", "0", text=CARDS + "at 1m asleep card 0\n")
    assert run.returncode == 1 and "1 lost, asleep or not readable" in run.stderr


def test_the_command_gets_the_cards(lab):
    env = {"CUDA_VISIBLE_DEVICES": "7"}
    run = lab.pick("-n", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER; exit 5", env=env)
    assert (run.returncode, run.stdout, run.stderr) == (5, f"{UUIDS[3]},{UUIDS[2]} PCI_BUS_ID\n", "")
    assert lab.pick("--", "/no/such/command").returncode == 127
    assert lab.pick("--", "/etc/passwd").returncode == 126
    assert lab.pick("echo", "-n", "2").stdout == "2"


def test_pick_becomes_the_command(lab):
    held = lab.start("sh", "-c", "echo $$; exec sleep 600")
    assert int(held.stdout.readline()) == held.pid
    held.kill()
    held.communicate()


def test_the_driver_is_closed_before_the_command_runs(lab, tmp_path, clock_file):
    clock = clock_file(START + 180, boot_seconds=3780)
    log = tmp_path / "calls"
    env = fake_driver(tmp_path, LAB, clock=clock, log=log)
    run = gua("pick", "--clock", clock, "--no-store", "--lock-dir", lab.locks, "--", "sh", "-c",
              "ls -l /proc/self/fd | grep -c locks/GPU; ls /proc/self/fd | wc -l", env=env)
    assert run.returncode == 0, run.stderr
    locks, descriptors = map(int, run.stdout.split())
    assert locks == 1 and descriptors <= 5 + locks
    assert "nvmlShutdown" in log.read_text().splitlines()[-1]


def test_of_many_picks_at_once_each_card_goes_to_one(lab):
    """20 at the same moment, 4 cards: 4 get one each, and 16 are told that there is none."""
    running = [lab.start("--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 600") for _ in range(20)]
    try:
        got, refused = [], []
        for process in running:
            line = process.stdout.readline()
            if line:
                got.append(line.strip())
            else:
                refused.append((process.wait(timeout=60), process.stderr.read()))
        assert sorted(got) == UUIDS
        assert len(refused) == 16
        assert {status for status, _ in refused} == {1}
        assert all("4 reserved by another gua pick" in text for _, text in refused)
    finally:
        for process in running:
            process.kill()
            process.communicate()


def test_without_a_command_the_cards_are_held_for_a_while(lab):
    """A loop that starts a job a card: each gets another, though none has memory there yet."""
    first = [cards(lab.pick("--hold", "10m")) for _ in range(2)]
    assert first == [[3], [2]]
    run = lab.pick("-n", "4", "--hold", "10m")
    assert run.returncode == 1 and "2 reserved by another gua pick" in run.stderr
    keepers = holding(lab.locks)
    assert len(keepers) == 2
    for pid in keepers:
        files = {os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        assert files <= {"/dev/null", *map(str, lab.locks.iterdir())}
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not holding(lab.locks))
    assert cards(lab.pick("--hold", "300ms", "-i", "3")) == [3]
    wait_for(lambda: lab.pick("-i", "3").returncode == 0)
    assert lab.pick("--hold", "1s", "--", "true").returncode == 2


def holding(locks):
    """Who has files of the directory open."""
    pids = []
    for folder in pathlib.Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(os.readlink(fd).startswith(f"{locks}/") for fd in folder.iterdir()):
                pids.append(int(folder.parent.name))
        except OSError:
            continue
    return pids


def test_who_wishes_for_all_cards_gets_all_or_none(lab):
    running = [lab.start("-n", "4", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 600") for _ in range(8)]
    try:
        got = [line for line in (process.stdout.readline().strip() for process in running) if line]
        assert len(got) == 1 and sorted(got[0].split(",")) == UUIDS
    finally:
        for process in running:
            process.kill()
            process.communicate()


def test_one_chooses_at_a_time(lab):
    """Two that wish for two cards each must not get one each: who chooses has the lock `choosing`."""
    lab.locks.mkdir(mode=0o1777)
    with (lab.locks / "choosing").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        waiting = lab.start()
        wait_for(lambda: waiting.poll() is not None or waiting.pid in holding(lab.locks))
        assert waiting.poll() is None, "it did not wait for its turn"
    assert waiting.communicate(timeout=60)[0].strip() == UUIDS[0]


def test_a_killed_command_gives_its_card_back(lab):
    one = CARDS.splitlines()[1] + "\n"
    held = lab.start("--", "sh", "-c", "echo held; exec sleep 600", text=one)
    assert held.stdout.readline() == "held\n"
    assert lab.start(text=one).wait(timeout=60) == 1
    held.send_signal(signal.SIGKILL)
    held.communicate()
    free = lab.start(text=one)
    assert free.communicate(timeout=60)[0].strip() == UUIDS[0]


def test_the_lock_lives_as_long_as_what_the_command_started(lab):
    one = CARDS.splitlines()[1] + "\n"
    held = lab.start("--", "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!", text=one)
    child = int(held.stdout.readline())
    assert held.wait(timeout=60) == 0
    assert lab.start(text=one).wait(timeout=60) == 1
    os.kill(child, signal.SIGKILL)
    held.communicate()
    wait_for(lambda: lab.start(text=one).wait(timeout=60) == 0)


def test_wait_gets_the_card_when_its_holder_goes(lab):
    """On a virtual clock: bob's job on card 0 ends at 5m."""
    run = lab.pick("-i", "0", "--wait=10m")
    assert cards(run) == [0]
    run = lab.pick("-i", "0", "--wait=1m")
    assert (run.returncode, run.stdout) == (1, "") and "1 active" in run.stderr
    assert cards(lab.pick("-i", "0", "--wait")) == [0]


def test_a_driver_that_fails_while_somebody_waits_is_waited_for(lab):
    broken = LAB + "at 4m fail nvmlInit_v2 code 999 until 6m\n"
    run = lab.pick("-i", "0", "--wait=10m", text=broken)
    assert cards(run) == [0]
    assert run.stderr.count("; waiting\n") == 1
    run = lab.pick("-i", "0", "--wait=2m", text=broken)
    assert run.returncode == 1 and run.stderr.splitlines()[-1].startswith("gua pick: ")


@pytest.mark.waits
def test_wait_gets_the_card_when_another_pick_gives_it_back(lab):
    one = CARDS.splitlines()[1] + "\n"
    held = lab.start("--", "sh", "-c", "echo held; exec sleep 600", text=one)
    assert held.stdout.readline() == "held\n"
    waiting = lab.start("--wait=10m", text=one)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=0.5)
    held.kill()
    held.communicate()
    assert waiting.communicate(timeout=60)[0].strip() == UUIDS[0]


def test_waiting_is_cheap(tmp_path, clock_file, lab):
    """An hour on a virtual clock: the driver is looked at every ten seconds."""
    log = tmp_path / "calls"
    clock = clock_file(START + 180, boot_seconds=3780)
    env = fake_driver(tmp_path, LAB.replace("at 5m exit train", ""), clock=clock, log=log)
    run = gua("pick", "-i", "0", "--wait=1h", "--clock", clock, "--no-store", "--lock-dir", lab.locks, env=env)
    assert run.returncode == 1, run.stderr
    looks = sum("nvmlDeviceGetSamples" in line and line.split()[2] == "0" for line in log.read_text().splitlines())
    assert 300 <= looks <= 400


def test_files_and_directory_can_be_used_by_all(lab):
    old = os.umask(0o077)
    try:
        assert cards(lab.pick()) == [3]
    finally:
        os.umask(old)
    assert lab.locks.stat().st_mode & 0o7777 == 0o1777
    assert {path.stat().st_mode & 0o777 for path in lab.locks.iterdir()} == {0o444}


@pytest.mark.parametrize("args, status, message", [
    (["-n", "0"], 2, "--count"),
    (["--min-free", "20"], 2, "--min-free"),
    (["--max-util", "101"], 2, "--max-util"),
    (["--free-for", "soon"], 2, "--free-for"),
    (["--wait=soon"], 2, "--wait"),
    (["--wait", "10m"], 2, "write --wait=10m"),
    (["--wait", "5", "--", "true"], 2, "write --wait=5s"),
    (["--wait", "5", "true"], 2, "write --wait=5s"),
    (["5", "--", "true"], 2, "a number of cards is -n 5"),
    (["0"], 2, "the card with this index is -i 0"),
    (["5s", "--", "true"], 2, "'5s' is before '--'"),
    (["--wait=5"], 2, "--wait: '5' has no unit; write 5s"),
    (["--format", "xml"], 2, "--format"),
    (["--format", "index", "--", "true"], 2, "without a command"),
    (["--json", "--", "true"], 2, "without a command"),
    (["-i", "77"], 1, "card '77' does not exist"),
    (["--lock-dir", "/no/such/place"], 1, "/no/such/place"),
])
def test_mistakes(lab, tmp_path, args, status, message):
    mark = tmp_path / "started"
    run = lab.pick(*args, *([] if "--" in args else ["--", "touch", mark]))
    assert (run.returncode, run.stdout) == (status, "") and message in run.stderr
    assert not mark.exists()


def test_no_driver(tmp_path):
    run = gua("pick", "--nvml", "/no/such/library", "--lock-dir", tmp_path / "locks")
    assert (run.returncode, run.stdout) == (1, "") and "/no/such/library" in run.stderr


def test_json(lab):
    run = lab.pick("-n", "2", "--json")
    assert (run.returncode, run.stderr) == (0, "")
    found = json.loads(run.stdout)
    assert (found["schema"], found["error"], found["hold_seconds"]) == ("gua-pick-1", None, 0)
    assert found["host"] and found["time"] == "2026-11-02T08:03:00Z"
    assert [(card["index"], card["mig_index"], card["uuid"], card["name"]) for card in found["picked"]] == [
        (i, None, UUIDS[i], "NVIDIA A100-SXM4-80GB") for i in (3, 2)]
    assert found["picked"][0]["why"].startswith("no holders, utilisation 0 %, free memory ")
    assert found["picked"][0]["mem_free_bytes"] > 79 << 30
    assert {card["index"]: card["verdict"] for card in found["not_picked"]} == {0: "active", 1: "held"}


def test_json_of_a_failure(lab):
    run = lab.pick("-n", "3", "--json")
    found = json.loads(run.stdout)
    assert run.returncode == 1 and run.stderr == f"gua pick: {found['error']}\n"
    assert found["error"] == "fewer than 3 free cards: 2 free; 1 active; 1 held"
    assert found["picked"] == [] and found["hold_seconds"] is None
    assert {card["index"]: card["verdict"] for card in found["not_picked"]} == {
        0: "active", 1: "held", 2: "free", 3: "free"}
    run = gua("pick", "--json", "--nvml", "/no/such/library", "--lock-dir", lab.locks)
    found = json.loads(run.stdout)
    assert run.returncode == 1 and "/no/such/library" in found["error"] and found["host"]
    assert (found["schema"], found["picked"], found["not_picked"]) == ("gua-pick-1", [], [])
    assert lab.pick("--json", "--format", "uuid").returncode == 2


def evaluate(lab, args, script):
    """Runs a shell script in which PICK stands for eval "$(gua pick ...)"."""
    words = shlex.join(map(str, [GUA, *lab.args(*args, seconds=180)]))
    return subprocess.run(["sh", "-c", script.replace("PICK", f'eval "$({words})"')], text=True, capture_output=True,
                          env=clean_environment(CUDA_VISIBLE_DEVICES="7"), timeout=120)


CLOSED = "export CUDA_VISIBLE_DEVICES=; false\n"


@pytest.mark.parametrize("args", [
    ["--format", "env", "-n", "3"],
    ["--format=env", "-n", "3", "--wait=1m"],
    ["--form", "env", "--min-free", "90G"],
    ["--format", "env", "--no-such-option"],
    ["--no-such-option", "--format", "env"],
    ["--count", "0", "--format", "env"],
    ["--format=ENV"],
    ["--format", "env "],
    ["--format", "env", "--wait=soon"],
    ["--format", "env", "--json"],
    ["--format", "env", "-i", "77"],
    ["--format", "env", "--nvml", "/no/such/library", "--source", "nvml"],
    ["--format", "env", "--lock-dir", "/no/such/place"],
    ["--format", "env", "--", "true"],
], ids=" ".join)
def test_a_failure_leaves_the_shell_without_cards(lab, args):
    run = lab.pick(*args)
    assert run.returncode in (1, 2) and run.stdout == CLOSED and run.stderr.startswith("gua pick: ")
    shell = evaluate(lab, args, 'PICK; echo "$? ${CUDA_VISIBLE_DEVICES-unset}."')
    assert shell.stdout == "1 .\n"
    shell = evaluate(lab, args, "set -e; PICK; echo reached")
    assert shell.returncode != 0 and shell.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_the_shell_without_cards(lab, number):
    busy = CARDS + 'process train pid 4300 user bob uid 1002 command t\nat 0s hold train card 0 memory 60GB\n'
    waiting = lab.start("--format", "env", "-i", "0", "--wait", text=busy)
    wait_for(lambda: tickets(lab.locks))
    waiting.send_signal(number)
    assert waiting.communicate(timeout=60)[0] == CLOSED and waiting.returncode == -number


def test_success_under_eval(lab):
    assert evaluate(lab, ["--format", "env"], "set -e; PICK; echo $CUDA_VISIBLE_DEVICES").stdout == f"{UUIDS[3]}\n"


def test_a_hold_says_whose_it_is_and_for_how_long(lab):
    assert cards(lab.pick("--hold", "10m", "-i", "3")) == [3]
    keeper, = holding(lab.locks)
    try:
        run = lab.pick("-i", "3")
        assert run.returncode == 1
        assert re.match(rf"gua pick: card 3 is reserved by you \(pid {keeper}, gua-hold 600s; \d+ (min|s) left\)\n",
                        run.stderr), run.stderr
        other, = json.loads(lab.pick("-i", "3", "--json").stdout)["not_picked"]
        assert (other["verdict"], other["by"]["pid"], other["by"]["uid"]) == ("reserved", keeper, os.getuid())
        assert 0 <= other["by"]["seconds_left"] <= 601
    finally:
        os.kill(keeper, signal.SIGKILL)


def tickets(locks):
    return sorted(locks.glob("waiting.*")) if locks.exists() else []


class Queue:
    """Waiting picks, each behind the one before it. Each says its name when it has its cards, and keeps them."""

    def __init__(self, lab, text):
        self.lab, self.text, self.running = lab, text, []

    def add(self, name, *args, wait="--wait"):
        before = len(tickets(self.lab.locks))
        process = self.lab.start(*args, *([wait] if wait else []), "--", "sh", "-c",
                                 f"echo {name} $CUDA_VISIBLE_DEVICES; exec sleep 600", text=self.text)
        self.running.append(process)
        if wait:
            wait_for(lambda: len(tickets(self.lab.locks)) > before or process.poll() is not None)
        return process

    def end(self, process):
        process.kill()
        process.communicate()
        self.running.remove(process)


@pytest.fixture
def queue(lab):
    made = []

    def make(text):
        made.append(Queue(lab, text))
        return made[-1]
    yield make
    for one in made:
        for process in list(one.running):
            one.end(process)


ONE = CARDS.splitlines()[1] + "\n"
TWO = "".join(line + "\n" for line in CARDS.splitlines()[1:3])


@pytest.mark.waits
def test_who_waits_first_is_served_first(lab, queue):
    """Real processes. One of those that wait is killed, which holds nobody up."""
    line = queue(ONE)
    holder = line.add("holder", wait=None)
    assert holder.stdout.readline() == f"holder {UUIDS[0]}\n"
    first, killed, third, fourth = (line.add(name) for name in ("first", "killed", "third", "fourth"))
    line.end(killed)
    for before, after, name in ((holder, first, "first"), (first, third, "third"), (third, fourth, "fourth")):
        line.end(before)
        assert after.stdout.readline() == f"{name} {UUIDS[0]}\n"
    assert tickets(lab.locks) == []


def forge_ticket(locks, wish, name="waiting.0"):
    """A ticket of somebody who never takes a card."""
    locks.mkdir(mode=0o1777, exist_ok=True)
    locks.chmod(0o1777)
    ticket = (locks / name).open("w+")
    ticket.write(wish)
    ticket.flush()
    fcntl.flock(ticket, fcntl.LOCK_EX)
    return ticket


def test_a_card_is_left_for_who_waits_longer_but_not_for_ever(lab):
    """On a virtual clock."""
    with forge_ticket(lab.locks, "gua-pick-1 1 -1 - 0 *\n"):
        run = lab.pick("-i", "3", "--wait=2m")
        assert run.returncode == 1 and "1 left for a pick that has waited longer" in run.stderr
        assert f"card 3 is left for you (pid {os.getpid()}, " in run.stderr
        assert cards(lab.pick("-i", "3", "--wait=10m")) == [3]
        assert cards(lab.pick("-i", "3")) == [3]                            # without --wait there is no queue
        assert cards(lab.pick("--wait=1m")) == [2]                          # one is left for it; there is another
    assert cards(lab.pick("-i", "3", "--wait=1m")) == [3]
    assert tickets(lab.locks) == []


@pytest.mark.parametrize("wish", [
    "gua-pick-1 1 90000000000 - 0 *\n",                    # more memory than the card has free
    f"gua-pick-1 1 -1 - 0 {UUIDS[2]}\n",                   # another card
    "gua-pick-1 1 -1 - 0", "garbage\n", "", "gua-pick-1 99999 -1 - 0 *\n", "\0" * 9000,
], ids=range(7))
def test_who_cannot_use_the_card_holds_nobody_up(lab, wish):
    with forge_ticket(lab.locks, wish):
        assert cards(lab.pick("-i", "3", "--wait=1m")) == [3]


@pytest.mark.waits
def test_who_waits_for_many_cards_gets_them(lab, queue):
    """Later waiters leave free cards for it, so that it can collect them."""
    line = queue(TWO)
    holder = line.add("holder", "-i", "0", wait=None)
    assert holder.stdout.readline() == f"holder {UUIDS[0]}\n"
    both = line.add("both", "-n", "2")
    one = line.add("one", "-n", "1")
    assert one.poll() is None and len(tickets(lab.locks)) == 2, "card 1 is free, but it was not left for the first"
    line.end(holder)
    assert both.stdout.readline() == f"both {UUIDS[0]},{UUIDS[1]}\n"
    line.end(both)
    assert one.stdout.readline().startswith("one ")


def test_cards_that_a_scheduler_has_given_away(lab, tmp_path):
    leases = tmp_path / "leases"

    def give(number, cards, *more):
        gua("lease", "add", "--leases", leases, "--id", number, "--user", "eve", "--uid", os.getuid(), "--cards", cards,
            "--now", "2026-11-02T08:00:00", *more)

    def pick(*args, **options):
        return lab.pick("--leases", leases, "--format", "index", *args, text=CARDS, **options)

    give(4, UUIDS[0])
    give(5, UUIDS[1], "--share", 4)
    with open(leases / "slurm/5", "a") as file:
        file.write("watched = yes\n")  # its watcher is silent: it is unknown
    assert pick().stdout == "2\n"
    none = pick("-n", "3")
    assert (none.returncode, none.stdout) == (1, "")
    assert "gua pick: card 0 is given to eve by slurm (4)\n" in none.stderr
    assert "fewer than 3 free cards: 2 free; 2 given to a job by a scheduler\n" in none.stderr
    rows = json.loads(lab.pick("--leases", leases, "-n", "3", "--json", text=CARDS).stdout)["not_picked"]
    assert [(row["verdict"], row["lease"]) for row in rows if row["index"] < 2] == [
        ("leased", {"kind": "slurm", "id": "4", "owner": "eve"}), ("leased", {"kind": "slurm", "id": "5", "owner": "eve"})]
    # The job itself, and who insists.
    assert pick(env={"SLURM_JOB_ID": "4"}).stdout == "0\n"
    assert pick("-n", "4", "--ignore-reservations").stdout == "0,1,2,3\n"
    # A job's number alone is a claim: the lease must be of the same user.
    give(4, UUIDS[0], "--uid", "4242")
    assert pick(env={"SLURM_JOB_ID": "4"}).stdout == "2\n"
    give(6, "7")
    unseen = pick()
    assert unseen.stdout == "2\n" and "which ones is not known (leases: 1; see gua lease check)" in unseen.stderr
    gua("lease", "end", "--leases", leases, "--id", 4)
    assert pick().stdout == "0\n"

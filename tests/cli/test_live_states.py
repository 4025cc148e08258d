"""The live views of cards whose use is unknown (MIG instances without GPM) and of suspect cards."""
import json
import subprocess

import pytest

from conftest import GUA, clean_environment, gua
from fake import fake_driver
from live import MIG, WALL, driver, recorded, sim  # noqa: F401

# Card 1 is free, card 2 goes on reporting 100 % after its last process was killed.
LATCHED = """
host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000 name "NVIDIA A100" memory 80GiB
card 1 uuid GPU-bbbb0000 name "NVIDIA A30" memory 24GiB
card 2 uuid GPU-cccc0000 name "NVIDIA B200" memory 180GiB
process train pid 1001 user alice uid 1001 command "python train.py" started -2h
at 0s hold train card 0 memory 40GiB
at 0s load train card 0 sm 80
at 0s load card 2 util 100
"""
SENTENCE = ("card 2 reports 100 % use with no process and no memory: not believed; "
            "opening and closing a CUDA context clears it\n")
# Instance 0 is held, 1 is not.
HALF = MIG.replace("at 0s hold b mig 0/1 memory 1GiB\n", "")


@pytest.fixture(params=["sim", "driver"])
def view(request):
    """view(COMMAND, *ARGS, scenario=...): the same on the simulated source and on the fake driver."""
    return request.getfixturevalue(request.param)


def states(run):
    assert run.returncode == 0, run.stderr
    gpus = json.loads(run.stdout)["gpus"]
    return [card["gua.state"] for gpu in gpus for card in gpu.get("gua.instances", [gpu])]


def test_an_instance_is_held_with_its_use_unknown_or_free(view):
    assert states(view("stat", "--json", scenario=HALF)) == ["use_unknown", "truly_idle", "truly_idle"]
    lines = view("stat", "--no-header", scenario=HALF).stdout.splitlines()
    assert "| 10240 / 20480 MB |" in lines[1] and lines[1].endswith("| use unknown") and "(10240M)" in lines[1]
    assert lines[2].endswith("|     0 /  5120 MB | | truly-idle")
    run = view("query", "--mig", "--query-gpu=gua.state,gua.free_for,gua.holders", "--format=csv,noheader,nounits",
               scenario=HALF)
    assert run.stdout.splitlines() == ["use_unknown, 0, 1", "truly_idle, 0, 0", "truly_idle, 0, 0"]


def test_who_holds_an_instance_and_not_whether_idle(view):
    holder, = json.loads(view("who", "--json", scenario=HALF).stdout)["holders"]
    assert (holder["card"], holder["mig_index"], holder["card_state"]) == (0, 0, "use_unknown")
    assert holder["active"] is None and holder["idle_since"] is None and holder["mem_bytes"] == 10 << 30
    line = view("who", scenario=HALF).stdout.splitlines()[1]
    assert line.split()[1] == "0:0" and " use unknown " in line


@pytest.mark.parametrize("state, cards", [("use-unknown", ["0:0"]), ("use_unknown", ["0:0"]), ("free", ["0:1"]),
                                          ("unobserved", []), ("suspect", [])])
def test_filter_by_use_unknown(view, state, cards):
    lines = view("stat", "--no-header", "--id", "0", "--state", state, scenario=HALF).stdout.splitlines()
    assert [line.split()[0].strip("[]") for line in lines if line.startswith("  [")] == cards


def test_pick_takes_the_instance_without_holders(view, tmp_path):
    words = ["pick", "--hold", "0s", "--lock-dir", tmp_path / "locks", "--format", "index", "--id", "0"]
    run = view(*words, scenario=HALF)
    assert run.stdout == "0:1\n", run.stderr
    run = view(*words[:-1], "0:0", "--min-free", "1G", scenario=HALF.replace("memory 10GiB", "memory 50MB"))
    assert run.returncode == 1 and "1 held" in run.stderr  # a small holder is one, too


@pytest.mark.parametrize("left, expected", [("", 600), ("at 300s release a mig 0/0\n", 300)], ids=["held", "left"])
def test_since_when_comes_from_the_store(recorded, sim, left, expected):
    """The recorder knows which process held an instance, but not what it did."""
    db, clock = recorded(600, HALF + left)
    run = sim("query", "--mig", "--query-gpu=gua.state,gua.state_since,gua.free_for", "--format=csv,noheader,nounits",
              "--db", db, scenario=HALF + left, clock=clock)
    held, free = [line.split(", ") for line in run.stdout.splitlines()[:2]]
    assert (held[0], free[0]) == ("truly_idle" if left else "use_unknown", "truly_idle")
    line = sim("stat", "--no-header", "--db", db, scenario=HALF + left, clock=clock).stdout.splitlines()[1]
    # Exact to a slot; it may have been held for longer, before the recorder came.
    assert line.endswith(("| truly-idle 5m", "| truly-idle 4m") if left else "| use unknown >10m"), line
    assert float(free[2]) >= 590 and (not left or expected - 61 <= float(held[2]) <= expected)


def test_holders_of_an_instance_were_not_idle_when_the_recorder_was_killed(recorded, sim):
    db, clock = recorded(600, HALF)
    recorded.kill()
    holder, = json.loads(sim("who", "--json", "--db", db, scenario=HALF, clock=clock).stdout)["holders"]
    assert holder["was_idle_since"] is None and holder["active"] is None


def test_a_latched_card_is_suspect(view):
    assert states(view("stat", "--json", scenario=LATCHED)) == ["active", "truly_idle", "suspect"]
    run = view("stat", "--no-header", scenario=LATCHED)
    assert run.stdout.splitlines()[2].endswith("100 % |     0 / 184320 MB | | suspect")
    assert run.stderr == "gua stat: " + SENTENCE
    assert "gua who: " + SENTENCE in view("who", scenario=LATCHED).stderr
    run = view("query", "--query-gpu=gua.state,gua.free_for,utilization.gpu", "--format=csv,noheader,nounits",
               scenario=LATCHED)
    assert run.stdout.splitlines()[2] == "suspect, [N/A], 100"
    run = view("stat", "--no-header", "--state", "suspect", scenario=LATCHED)
    assert run.stdout.startswith("[2] ") and len(run.stdout.splitlines()) == 1
    assert view("stat", "--state", "active", scenario=LATCHED).stderr == ""


@pytest.mark.parametrize("more", ["at 0s load card 2 util 94\n", "at 0s orphan card 2 memory 1GiB\n",
                                  "process x pid 9 user x command x kind graphics\nat 0s hold x card 2 memory 1MiB\n"],
                         ids=["less", "memory", "screen"])
def test_use_with_a_reason_is_believed(view, more):
    assert states(view("stat", "--json", scenario=LATCHED + more))[2] == "active"


def test_the_store_has_no_since_of_a_suspect_card(recorded, sim):
    """It counts the time as unobserved."""
    db, clock = recorded(600, LATCHED)
    card = json.loads(sim("stat", "--json", "--db", db, scenario=LATCHED, clock=clock).stdout)["gpus"][2]
    assert card["gua.state"] == "suspect" and card["gua.state_is_lower_bound"] and card["gua.free_since"] is None
    assert card["gua.state_since"] >= "2026-11-02T08:09:49"


def test_pick_takes_a_suspect_card_last(view, tmp_path):
    words = ["pick", "--hold", "0s", "--lock-dir", tmp_path / "locks", "--format", "index"]
    run = view(*words, scenario=LATCHED)
    assert run.stdout == "1\n" and "reports" not in run.stderr
    run = view(*words, "-n", "2", scenario=LATCHED)
    assert run.stdout == "1,2\n" and run.stderr.endswith("gua pick: " + SENTENCE)
    run = view(*words, "-i", "2", "--free-for", "1m", scenario=LATCHED)
    assert run.returncode == 1 and "1 not known to be free for that long" in run.stderr


def test_top_says_both(tmp_path, clock_file):
    scenario = tmp_path / "top.scenario"

    def frame(text):
        scenario.write_text(text)
        return gua("top", "--source", "sim", "--scenario", scenario, "--no-store", "--ascii", "--clock",
                   clock_file(WALL + 60, 3660)).stdout
    text = frame(LATCHED)
    assert "3 cards: 1 active, 1 truly-idle, 1 suspect" in text and " " + SENTENCE in text
    text = frame(HALF)
    assert "3 cards: 1 use unknown, 2 truly-idle" in text and " use unknown " in text.split("STATE")[1]
    assert "unobserved" not in text


GPM = """
host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000 name "NVIDIA H100" memory 80GiB gpm yes
mig 0 index 0 gi 1 ci 0 uuid MIG-1111 name "NVIDIA H100 MIG 1g.10gb" memory 10GiB
process a pid 1001 user alice uid 1001 command "python a.py"
at 0s hold a mig 0/0 memory 3GiB
at 0s load a mig 0/0 sm 80
"""


def test_an_instance_with_gpm_is_known_from_the_first_look_on(tmp_path, clock_file):
    """Counters give the use between two readings, so a view that looks once reads them twice."""
    root, clock = tmp_path / "root", clock_file(WALL + 60, 3660)
    (root / "proc").mkdir(parents=True)
    view = subprocess.Popen([GUA, "query", "--mig", "--query-gpu=gua.state,utilization.gpu", "-l", "5", "--no-store",
                             "--format=csv,noheader,nounits", "--clock", clock, "--root", root], text=True,
                            stdout=subprocess.PIPE, env=clean_environment(**fake_driver(tmp_path, GPM, clock=clock)))
    lines = [view.stdout.readline().strip() for _ in range(3)]
    view.kill()
    view.wait()
    assert lines == ["active, 80", "active, 80", "active, 80"]
    once = gua("who", "--json", "--no-store", "--clock", clock, "--root", root,
               env=fake_driver(tmp_path, GPM, clock=clock))
    assert [holder["active"] for holder in json.loads(once.stdout)["holders"]] == [True]

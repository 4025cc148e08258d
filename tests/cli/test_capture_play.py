"""--source capture:FILE: every capture in tests/captures is played, and shows what the driver showed that it was made
from; what hostile files do; that nobody takes captured data for this host's. tests/captures/README.md says more."""
import json
import re
import shutil

import pytest

from conftest import FAKE_NVML, ROOT, gua
from fake import fake_driver
from recorded import card_seconds, rows
from serving import needs_serve, serve  # noqa: F401

CAPTURES = ROOT / "tests" / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.capture"))
WALL = 1_700_000_000
# Lines that say where and when a capture was made.
SOME = {"made": "2026-11-17T12:00:00.000Z", "gua": "0.1.0", "system": '"Debian GNU/Linux 12 (bookworm)"',
        "kernel": '"Linux 6.1.0-28-amd64 x86_64"', "as": "root", "cgroup": "v2"}
OF_THE_HOST = re.compile(r"^(made|gua|system|kernel|as|cgroup) .*\n", re.M)


@pytest.fixture
def clock(clock_file):
    """A new virtual clock that starts at the same moment each time."""
    return lambda name: ["--clock", clock_file(WALL, 3610, name=name)]


@pytest.fixture
def live(tmp_path, clock):
    """live(NAME) is a function that runs gua with the fake driver and the scenario of that capture."""
    def make(name):
        scenario = (CAPTURES / f"{name}.scenario").read_text()
        tree = re.search(r"^# place: (.+)$", scenario, re.M)
        root = tmp_path / "root"
        if tree:
            shutil.copytree(ROOT / "tests" / "places" / tree[1], root)
        else:
            (root / "proc").mkdir(parents=True)

        def run(*words):
            clock_words = clock("live")
            env = fake_driver(tmp_path, scenario, clock=clock_words[1])
            return gua(*words, *clock_words, "--root", root, env=env)
        return run
    return make


@pytest.fixture
def play(clock):
    return lambda path, *words: gua(*words, "--source", f"capture:{path}", *clock("play"))


def checks(run):
    """The rows of the doctor about the driver, without the directory of the library."""
    about_the_host = {"system", "capture", "processes", "store", "free space"}
    return [f"{row['result']:8} {row['check']:20} {re.sub(r'^/.*/(?=libnvidia)', '', row['text'])}"
            for row in json.loads(run.stdout)["checks"] if row["check"] not in about_the_host]


def shown(run, *source):
    """What a user sees: stat, and the doctor's rows; or the error. `run` runs gua with words."""
    stat = run("stat", "--no-header", "--no-store", *source)
    lines = stat.stdout if stat.returncode == 0 else stat.stderr.split(": ", 1)[1]
    return lines + "\n" + "\n".join(checks(run("doctor", "--json", "--db", "/nonexistent/gua.db"))) + "\n"


def details(run):
    """Everything that nvidia-smi shows of the cards, but for the time and what is replaced."""
    return [line for line in run.stdout.splitlines() if not re.match("Timestamp|    Serial Number| *ClusterUUID", line)]


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_shows_what_was_expected(play, expect, name):
    path = CAPTURES / f"{name}.capture"
    expect(f"capture-{name}", shown(lambda *words: play(path, *words)))


@pytest.mark.parametrize("name", [name for name in NAMES if (CAPTURES / f"{name}.scenario").exists()])
def test_what_is_made_from_the_driver_is_what_is_played(live, play, tmp_path, request, name):
    run, stored, path = live(name), CAPTURES / f"{name}.capture", tmp_path / "new.capture"
    made = run("doctor", "--capture", path, "--driver-timeout", "60s")
    assert made.returncode == 0, made.stderr
    text = OF_THE_HOST.sub("", path.read_text())
    if request.config.getoption("--update"):
        stored.write_text(OF_THE_HOST.sub(lambda line: f"{line[1]} {SOME[line[1]]}\n", path.read_text()))
    assert text == OF_THE_HOST.sub("", stored.read_text())
    assert shown(run) == shown(lambda *words: play(path, *words))
    assert details(run("smi", "-q")) == details(play(path, "smi", "-q"))


# ---- marks ----

def test_views_say_that_it_is_a_capture(play):
    path = CAPTURES / "plain.capture"
    for words in (["stat"], ["who"], ["dmon", "-c", "1"], ["top", "--once"], ["query", "--query-gpu=name"]):
        run = play(path, *words)
        assert run.returncode == 0, run.stderr
        assert run.stderr == f"gua: readings from the capture {path}: not of this host, and not live\n"
    assert "captured-host" in play(path, "stat").stdout
    assert "(captured, not this host)" in play(path, "top", "--once").stdout
    assert {card["gua.source"] for card in json.loads(play(path, "stat", "--json").stdout)["gpus"]} == {"capture"}
    assert checks(play(path, "doctor", "--json"))  # and its first row:
    assert "a capture of another host" in json.loads(play(path, "doctor", "--json").stdout)["checks"][0]["text"]


def test_a_recording_is_marked(play, tmp_path):
    db = tmp_path / "gua.db"
    run = play(CAPTURES / "plain.capture", "daemon", "--ticks", 4, "--interval", "30s", "--db", db)
    assert run.returncode == 0, run.stderr
    assert rows(db, "SELECT source, environment FROM run JOIN host ON host.id = host") == [("capture", "captured")]
    report = gua("report", "--db", db, "--since", "1000w").stdout
    assert report.startswith("CAPTURED DATA: ") and "SIMULATED" not in report
    assert json.loads(gua("report", "--db", db, "--since", "1000w", "--json").stdout)["hosts"][0]["simulated"]
    assert "captured" in gua("status", "--db", db).stdout
    assert "captured data, not measured on this host" in gua("report", "--db", db, "--since", "1000w", "--format", "csv").stderr
    note = f"gua: {db}: captured data, not measured on this host\n"
    exported = gua("export", "--db", db)
    assert exported.stderr == note and {line.rsplit(",", 1)[1] for line in exported.stdout.splitlines()} == {"source", "capture"}
    assert gua("export", "--db", db, "--openmetrics").stderr == note


def test_events_say_it_too(play, tmp_path):
    db = tmp_path / "gua.db"
    play(CAPTURES / "erroring.capture", "daemon", "--ticks", 2, "--interval", "30s", "--db", db)
    words = ["events", "--db", db, "--since", "1000w"]
    assert gua(*words).stdout.startswith("CAPTURED DATA: ")
    assert "captured data" in gua(*words, "--format", "csv").stderr


@needs_serve
def test_the_page_says_it_too(play, serve, tmp_path):
    db = tmp_path / "gua.db"
    play(CAPTURES / "plain.capture", "daemon", "--ticks", 1, "--interval", "30s", "--db", db)
    page = serve("--db", db).get("/")[2]
    assert "CAPTURED DATA: " in page and "SIMULATED DATA" not in page


def test_time_goes_on_after_the_last_round(play, tmp_path):
    """Two minutes of a capture of six seconds: samples and energy go on, nothing is unobserved but the start."""
    db = tmp_path / "gua.db"
    play(CAPTURES / "plain.capture", "daemon", "--ticks", 4, "--interval", "30s", "--db", db)
    seconds = card_seconds(db, "GPU-00000000-0000-0000-0000-000000000001")
    # The ring had ten seconds when the play began, as a driver's has.
    assert set(seconds) == {"active"} and seconds["active"] == pytest.approx(130, abs=0.1)
    energy, = rows(db, "SELECT sum(energy_mj) / 1e6 FROM usage_1m JOIN gpu ON gpu.id = gpu"
                       " WHERE uuid LIKE '%1'")[0]
    assert energy == pytest.approx(120 * 332 / 1e3, rel=0.02)  # 332 W


def test_track_says_it_too(play):
    run = gua("track", "--source", f"capture:{CAPTURES / 'plain.capture'}", "--", "true")
    assert run.returncode == 0 and "not of this host, and not live" in run.stderr


def test_processes_are_those_of_the_capture(play, tmp_path):
    """Not those of this host: pid 1 is somebody's here."""
    text = (CAPTURES / "plain.capture").read_text()
    path = tmp_path / "c"
    path.write_text(re.sub(r"^process \d+ gone$", 'process 4194242 age_ms 3600000 user "user-7" command "command-1"'
                           ' job "slurm:job-1"', text, flags=re.M))
    who = play(path, "who", "--json").stdout
    assert "user-7" in who and "slurm:job-1" in who and "command-1" in who


def test_a_process_without_a_user_has_an_unknown_one(play, tmp_path):
    text = (CAPTURES / "plain.capture").read_text()
    path = tmp_path / "c"
    for words in ("", ' user ""', ' user "_unknown"'):
        path.write_text(re.sub(r"^process (\d+) gone$", rf"process \1{words}", text, flags=re.M))
        assert {row["user"] for row in json.loads(play(path, "who", "--json").stdout)["holders"]} == {"_unknown"}


# ---- names of the source ----

@pytest.mark.parametrize("name, words", [
    ("capture", "name the capture"), ("capture:", "name the capture"), ("sim,capture:x", "cannot be combined")])
def test_wrong_names(name, words):
    run = gua("stat", "--source", name)
    assert run.returncode == 2 and words in run.stderr
    assert gua("stat", "--source", "capture:x", "--scenario", "y").returncode == 2


# ---- hostile files ----

HEAD = "gua-capture 1\n"


@pytest.mark.parametrize("text, sentence", [
    ("", "line 1: this is not a capture"),
    ("root:x:0:0\n", "line 1: this is not a capture"),
    ("gua-capture 2\nend\n", "line 1: the capture was made by another version"),
    (HEAD, "the capture was cut"),
    (HEAD + "library \"x\"\n", "the capture was cut"),
    (HEAD + "end\nmore\n", "line 3: something follows the line 'end'"),
    (HEAD + "made \x1b[31m\nend\n", "line 2: it is too long, or has characters that cannot be shown"),
    (HEAD + "#" * 5000 + "\nend\n", "line 2: it is too long"),
    (HEAD + "call\nend\n", "line 2: the name of the call is missing"),
    (HEAD + "call nvmlDeviceGetCount_v2 - = 0 -2\nend\n", "line 2: these are not the values"),
    (HEAD + "call nvmlDeviceGetCount_v2 - = 0 99999999999\nend\n", "line 2: these are not the values"),
    (HEAD + "call nvmlDeviceGetCount_v2 - = 0 1 2\nend\n", "line 2: these are not the values"),
    (HEAD + "call nvmlDeviceGetCount_v2 0 = 0 1\nend\n", "line 2: this is not what the call can be about"),
    (HEAD + "call nvmlDeviceGetName 64 = 0 \"x\"\nend\n", "line 2: this is not what the call"),
    (HEAD + "call nvmlDeviceGetName 0/99 = 0 \"x\"\nend\n", "line 2: this is not what the call"),
    (HEAD + "call nvmlDeviceGetName 0 = 0 5\nend\n", "line 2: these are not the values"),
    (HEAD + "call nvmlDeviceGetName 0 = 0 \"x\nend\n", "line 2: these are not the values"),
    (HEAD + "call nvmlDeviceGetName 0 0\nend\n", "line 2: the equals sign is missing"),
    (HEAD + "call nvmlDeviceGetName 0 = x\nend\n", "line 2: there is no code"),
    (HEAD + "call nvmlDeviceGetTemperature 0 = 0 5\nend\n", "line 2: the numbers of the call"),
    (HEAD + "call nvmlDeviceGetTemperature 0 (1,2) = 0 5\nend\n", "line 2: the numbers of the call"),
    (HEAD + "  1 2\nend\n", None),
    (HEAD + "call nvmlInit_v2 - = 0\n  1 2\nend\n", "line 3: the line before it is not a call that returns a list"),
    (HEAD + "call nvmlDeviceGetComputeRunningProcesses 0 = 0\n  1 -2\nend\n", "line 3: this is not an entry"),
    (HEAD + "call nvmlDeviceGetComputeRunningProcesses 0 = 0\n  1 2\n  1 2 3 4\nend\n", "line 4: this is not an entry"),
    (HEAD + "round 1 5 5\nend\n", "line 2: the rounds are not numbered"),
    (HEAD + "round 0 5 5\nround 1 5 5\nend\n", "line 3: the moments of the round"),
    (HEAD + "round 0 -5 5\nend\n", "line 2: the moments of the round"),
    (HEAD + "process -1 gone\nend\n", "line 2: the pid"),
    (HEAD + "process 1 user\nend\n", "line 2: after the pid, 'gone' or pairs of a name and a value must follow"),
    (HEAD + "process 1 user \"a command b\nend\n", "line 2: after the pid"),
    (HEAD + "process 1 user \"a\"\"b\"\nend\n", "line 2: after the pid"),
    (HEAD + "node nvidia0\nend\n", "line 2: a node has a name and a number"),
    (HEAD + "gpu 0000:01:00.0\nend\n", "line 2: a card has an address"),
])
def test_a_wrong_file_gets_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "c"
    path.write_text(text)
    run = gua("stat", "--source", f"capture:{path}")
    assert run.returncode == 1 and run.stdout == ""
    lines = run.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("gua stat: ") and lines[0].isprintable()
    if sentence:
        assert lines[0].startswith(f"gua stat: {path}: {sentence}"), lines[0]


@pytest.mark.parametrize("words", [["doctor"], ["daemon", "--foreground", "--db", "x.db"], ["track", "--", "true"],
                                   ["start", "--db", "x.db"]])
def test_every_command_refuses_a_wrong_file_at_once(tmp_path, words):
    path = tmp_path / "c"
    path.write_text(HEAD)
    run = gua(words[0], "--source", f"capture:{path}", *words[1:], cwd=tmp_path, timeout=20)
    assert run.returncode == 1 and "the capture was cut" in run.stderr
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.waits
def test_a_recorder_in_the_background_finds_a_file_of_this_directory(tmp_path):
    shutil.copy(CAPTURES / "plain.capture", tmp_path / "c")
    run = gua("start", "--source", "capture:c", "--db", "x.db", "--ticks", 1, "--interval", "1s", "--drain", "500ms",
              cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    gua("stop", "--db", "x.db", cwd=tmp_path)
    assert rows(tmp_path / "x.db", "SELECT DISTINCT source FROM run") == [("capture",)]


def test_other_wrong_files(tmp_path):
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    for path, words in ((huge, "huge"), (tmp_path, "directory"), (tmp_path / "no", "No such file"), ("/dev/zero", "")):
        run = gua("stat", "--source", f"capture:{path}", timeout=20)
        assert run.returncode == 1 and words in run.stderr and len(run.stderr.splitlines()) == 1
    (tmp_path / "nul").write_bytes(b"gua-capture 1\nmade \0\nend\n")
    assert gua("stat", "--source", f"capture:{tmp_path / 'nul'}").returncode == 1


def test_a_newer_capture_can_be_read(play, tmp_path):
    text = (CAPTURES / "plain.capture").read_text()
    path = tmp_path / "c"
    path.write_text(text.replace("\nlibrary ", "\nweather \"fine\"\ncall nvmlDeviceGetMood 0 (3) = 0 happy\n  1 2 3\nlibrary "))
    assert play(path, "stat", "--no-header").stdout == play(CAPTURES / "plain.capture", "stat", "--no-header").stdout

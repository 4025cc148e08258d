"""gua top in a real terminal (tmux): keys, sizes, cards that go, signals; and as text without one.

Time is a clock file that only the test moves, so that every screen is known; a screen is waited for,
never slept for."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from conftest import BUILD, GUA, ROOT, SCENARIOS, advance, clean_environment, gua, wait_for
from fake import fake_driver
from live import recorded  # noqa: F401 (a fixture)

SCENARIO = SCENARIOS / "top.scenario"
START = 1793606400  # 2026-11-02T08:00:00Z, time 0 of the scenario, which is an hour after boot
CARD = 'card {0} uuid GPU-{0:04} name "NVIDIA A100" memory 80GiB reserved 500MiB\n'

pytestmark = pytest.mark.skipif(not (BUILD / "gua-top").exists(), reason="built without gua top")


@pytest.fixture
def clock(clock_file):
    """clock(SECONDS) is a clock file that stands at that time of the scenario."""
    return lambda seconds, name="clock": clock_file(START + seconds, 3600 + seconds, name)


class Screen:
    """A program in a terminal of its own."""

    def __init__(self, directory, command, columns, rows, env):
        self.base = ["tmux", "-S", str(directory / "tmux"), "-f", "/dev/null"]
        self.env = clean_environment(SHELL="/bin/sh", **env)  # else tmux takes that of the user
        shell = f"stty -g >{directory}/before; {shlex.join(map(str, command))} 2>{directory}/errors; " \
                f"echo \"status $?\"; stty -g >{directory}/after; exec sleep 600"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), shell)

    def tmux(self, *words):
        return subprocess.run([*self.base, *words], env=self.env, check=True, capture_output=True,
                              text=True, timeout=60).stdout

    def text(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def wait(self, *wanted, gone=(), options=()):
        """The screen once it has all that is wanted (regular expressions) and nothing that is to be gone."""
        deadline = time.monotonic() + 60
        while True:
            text = self.text(*options)
            missing = [word for word in wanted if not re.search(word, text, re.M)]
            still = [word for word in gone if re.search(word, text, re.M)]
            if not missing and not still:
                return text
            assert time.monotonic() < deadline, f"missing {missing}, still there {still}:\n{text}"
            time.sleep(0.05)

    def press(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)

    def rows(self, *wanted):
        """Waits until the rows are those of the processes `wanted`, in order."""
        deadline = time.monotonic() + 60
        found = None
        while found != list(wanted):
            assert time.monotonic() < deadline, f"rows {found}, wanted {wanted}:\n{self.text()}"
            found = [int(pid) for pid in re.findall(r"^[! ] +[\d:]+ [\w-]+ +(\d+) ", self.text(), re.M)]


@pytest.fixture
def screen(tmp_path):
    """screen(OPTIONS..., columns=, rows=, env=) starts gua top."""
    started = []

    def start(*options, columns=80, rows=24, env=None, wait=r"^.?CARD USER", program=(GUA,)):
        command = [*program, "top", "--delay", "100ms", *options]
        one = Screen(tmp_path, command, columns, rows, env or {})
        started.append(one)
        one.wait(wait)
        return one
    yield start
    for one in started:
        subprocess.run([*one.base, "kill-server"], env=one.env, capture_output=True)


@pytest.fixture
def lab(screen, clock):
    """The eight cards of the scenario, five minutes after its start, and inside a burst of use."""
    return lambda *options, seconds=305, **more: screen(
        "--source", "sim", "--scenario", SCENARIO, "--clock", clock(seconds), "--no-store", *options, **more)


def sim(clock, seconds, *options):
    return ["top", "--source", "sim", "--scenario", SCENARIO, "--clock", clock(seconds), *options]


def test_without_a_terminal_it_is_one_frame(clock, expect):
    run = gua(*sim(clock, 1200, "--no-store"))
    assert (run.returncode, run.stderr) == (0, "")
    expect("top.txt", run.stdout)


def test_ascii_where_the_locale_is_not_utf8(clock, expect):
    run = gua(*sim(clock, 1200, "--no-store", "--sort", "idle"), env={"LC_ALL": "C", "COLUMNS": "80"})
    assert run.returncode == 0 and run.stdout.isascii()
    assert max(map(len, run.stdout.splitlines())) <= 80
    expect("top-ascii.txt", run.stdout)
    assert gua(*sim(clock, 1200, "--no-store", "--ascii")).stdout.isascii()


def test_the_past_comes_from_the_store(clock, recorded):
    """The notebook has been idle since minute 2: only who was there can know it at minute 20."""
    db, _ = recorded(1201, SCENARIO.read_text())
    text = gua(*sim(clock, 1201, "--db", db), env={"COLUMNS": "140"}).stdout
    note = re.search(r"^! +2 bob +4242 .*", text, re.M).group()
    assert " 18m " in note and ">" not in note
    spark = re.search(r"^ +2 A100.* (\S+)$", text, re.M).group(1)
    assert "▅▅▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁" in spark
    assert "▅" not in gua(*sim(clock, 1201, "--no-store")).stdout.split("CARD USER")[0].splitlines()[5]


def test_options_choose_cards_and_processes(clock):
    text = gua(*sim(clock, 300, "--no-store", "--id", "2,3", "--user", "bob,dave")).stdout
    assert re.findall(r"^! +\d+ (\w+)", text, re.M) == ["bob", "dave"]
    assert " 2 cards: " in text and "alice" not in text
    assert gua("top", "--min-mem", "much").returncode == 2
    assert gua("top", "--sort", "luck").returncode == 2
    assert gua("top", "--delay", "often").returncode == gua("top", "--delay", "2h").returncode == 2
    assert gua(*sim(clock, 300, "--no-store", "--delay", "0.5")).returncode == 0
    assert gua("top", "operand").returncode == 2
    assert gua(*sim(clock, 300, "--no-store", "--id", "99")).returncode == 1


def test_no_driver_is_a_sentence(tmp_path):
    run = gua("top", "--nvml", tmp_path / "none.so")
    assert run.returncode == 1 and run.stdout == ""
    assert run.stderr.startswith("gua top: ") and run.stderr.count("\n") == 1


def test_screen_of_80_columns(lab):
    top = lab()
    top.press("r", "r", "r")  # reading again without new samples of the driver changes nothing
    text = top.wait("F1Help", r"^   7 ")
    assert " 3 of 6 holders idle: 103 GiB; 8 cards: 3 active, 2 idle-held, 3 truly-idle" in text
    assert re.search(r"^   0 █+  97% █+░+ 61.0/80.0 389W +\d+° active ", text, re.M)
    assert re.search(r"^! +2 bob +4242 C 31.0 GiB +0 +- +3d00h +>\w+ ipykernel_launcher", text, re.M)
    top.rows(4242, 5200, 6001, 4100, 4101, 5150, 900)  # idle holders first, the longest on top


def test_sorting_by_keys_and_menu(lab):
    top = lab(env={"LC_ALL": "C.UTF-8"})
    top.press("c")
    top.rows(4100, 4101, 4242, 5150, 5200, 900, 6001)
    top.press("M")
    top.wait(r"CARD USER.*\n! +4 carol")
    top.rows(6001, 4100, 4101, 4242, 5150, 5200, 900)
    top.press("I")
    top.wait(r"CARD USER.*\n +3 root")
    top.rows(900, 5200, 5150, 4242, 4101, 4100, 6001)
    top.press("i")
    top.wait(r"CARD USER.*\n!")
    top.rows(4242, 5200, 6001, 4100, 4101, 5150, 900)
    top.press("F6")
    top.wait("SORT BY", "process id")
    top.press("Home", "Down", "Down", "Enter")
    top.wait(r"CARD USER.*\n +3 root", gone=["SORT BY"])
    top.rows(900, 4100, 4101, 4242, 5150, 5200, 6001)
    top.press("s", "Escape")
    top.wait("CARD USER", gone=["SORT BY"])


def test_filter_and_user(lab):
    top = lab()
    top.press("/", "t", "r", "A", "i")
    top.wait("Filter: trAi_", gone=["bob"])
    top.press("Enter")
    top.wait("^only 'trAi' F1Help")
    top.rows(4100, 4101)
    top.press("/", "x")
    top.wait("no process matches")
    top.press("BSpace", "Escape")
    top.wait("bob", gone=["Filter:"])
    top.press("u")
    top.wait("ONLY PROCESSES OF", "all users", "carol")
    top.press("Down", "Down", "Down", "Enter")
    top.wait("only of carol", "^ 1 of 2 shown holders idle: 72.0 GiB; 8 cards", gone=["alice"])
    top.rows(6001, 5150)


def test_details(lab):
    top = lab()
    top.press("Enter")
    text = top.wait("PROCESS 4242", "last hour +·+▁$")
    for line in ("command +ipykernel_launcher", "user +bob", "card +2, NVIDIA A100", "idle since",
                 r"started +Fri 2026-10-30 08:00 \(3 d 0 h ago\)"):
        assert re.search(line, text), line
    top.press("Escape")
    top.wait("CARD USER")


def test_details_show_where_a_process_comes_from(screen, clock, tmp_path):
    path = clock(10)
    scenario = CARD.format(0) + "process p pid 3101\nat 0s hold p card 0 memory 8GiB\n"
    top = screen("--clock", path, "--no-store", "--root", ROOT / "tests/roots/claims",
                 env=fake_driver(tmp_path, scenario, clock=path))
    top.press("/", *"grant", "Enter")
    top.rows(3101)
    top.press("Enter")
    top.wait("job name +resnet sweep", "account +vision-lab", "login +batch", "tag +grant-42")


def test_details_have_the_history_of_the_store(screen, clock, recorded):
    db, _ = recorded(1201, SCENARIO.read_text())
    top = screen("--source", "sim", "--scenario", SCENARIO, "--clock", clock(1201), "--db", db, "--sort", "pid")
    top.press("Down", "Down", "Down", "Enter")
    top.wait("PROCESS 4242", "last hour +·+▅▅▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁")


def test_details_say_what_a_recorder_that_stopped_knew(screen, clock, recorded):
    db, _ = recorded(1201, SCENARIO.read_text())
    top = screen("--source", "sim", "--scenario", SCENARIO, "--clock", clock(9000), "--db", db, "--sort", "pid")
    top.press("Down", "Down", "Down", "Enter")
    top.wait("PROCESS 4242", "or longer", "was idle +since Mon 2026-11-02 08:02", "the recorder has written nothing for")


def test_help(lab):
    top = lab()
    for key in ("F1", "?"):
        top.press(key)
        top.wait("KEYS", "send a signal; asks first")
        top.press("x")
        top.wait("CARD USER", gone=["KEYS"])


def test_quit_gives_the_terminal_back(lab, tmp_path):
    top = lab()
    top.press("q")
    text = top.wait("status 0", gone=["gua top"])
    assert text.strip() == "status 0"
    wait_for(lambda: (tmp_path / "after").exists() and (tmp_path / "after").read_text())
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.parametrize("term, status, said", [("dumb", 0, ""), ("nonsense", 1, "curses has no description")])
def test_a_terminal_that_cannot_be_drawn_on(lab, tmp_path, term, status, said):
    """TERM=dumb: one frame; a terminal that nobody knows: a sentence."""
    lab(program=["env", f"TERM={term}", GUA], columns=120, rows=40, wait=f"^status {status}$")
    assert said in (tmp_path / "errors").read_text()


def test_titles_do_not_touch_on_a_narrow_screen(lab):
    title, *lines = lab(columns=40, rows=16).text().splitlines()
    assert re.search(r"driver 560\S+ \d\d:", title), title
    assert next(line for line in lines if line.startswith("CARD USE")).split() == ["CARD", "USE", "MEM", "GiB", "POWER", "TEMP",
                                                                                   "STATE"]


def test_f10_quits_too(lab):
    top = lab()
    top.press("F10")
    top.wait("status 0")


def test_stopped_and_continued(tmp_path, clock):
    """Ctrl-Z gives the terminal back, fg draws everything again; so does Ctrl-L."""
    top = Screen(tmp_path, ["bash", "--norc", "--noprofile", "-i"], 100, 24, {"PS1": ""})
    try:
        command = [GUA, *sim(clock, 300, "--no-store", "--delay", "60s")]
        top.press(shlex.join(map(str, command)), "Enter")
        first = top.wait(r"^.?CARD USER", "F1Help")
        top.press("C-z")
        top.wait(gone=["F1Help"])
        top.press("clear; echo ba''ck", "Enter")
        top.wait(r"^back$")
        top.press("fg", "Enter")
        assert top.wait(r"^.?CARD USER", "F1Help", gone=["^back"]) == first
        tty = top.tmux("list-panes", "-F", "#{pane_tty}").strip()
        with open(tty, "w") as other:
            other.write("\033[5;5Hgarbage of others\033[20;1H\033[2K")
        top.wait("garbage of others")
        top.press("C-l")
        top.wait("F1Help", gone=["garbage"])
        assert top.text() == first
    finally:
        subprocess.run([*top.base, "kill-server"], env=top.env, capture_output=True)


def test_resize(lab):
    top = lab()
    top.tmux("resize-window", "-x", "200", "-y", "50")
    top.wait(r"LAST \d+ MIN", r"^CARD NAME +USE", "WHAT +COMMAND", r"\A(.*\n){49}F1Help")
    top.tmux("resize-window", "-x", "300", "-y", "30")
    top.wait("LAST 1.. MIN")
    top.tmux("resize-window", "-x", "40", "-y", "8")
    top.wait(r"\A(.*\n){7}F1Help")
    top.tmux("resize-window", "-x", "80", "-y", "24")
    top.wait("16 MIN", "WHAT, COMMAND")


@pytest.mark.parametrize("cards", [1, 8, 64])
def test_any_number_of_cards(screen, clock, tmp_path, cards):
    scenario = tmp_path / "many.scenario"
    scenario.write_text("".join(CARD.format(i) for i in range(cards)) +
                        f"process p pid 77 user ann command work\nat 0s hold p card {cards - 1} memory 8GiB\n")
    top = screen("--source", "sim", "--scenario", scenario, "--clock", clock(60), "--no-store")
    text = top.wait(f" {cards} cards?: ", rf"^!? +{cards - 1} ann ")
    if cards < 64:
        assert re.search(rf"^ +{cards - 1} ░", text, re.M)
        return
    assert "1 to 27 of 64" in text and not re.search(r"^  6\d  ", text, re.M)
    top.press(*"]" * 20)
    top.wait(r"\b63 +0% +8.0 idle-held", "to 64 of 64")
    top.tmux("resize-window", "-x", "200", "-y", "50")
    top.wait(r"^   0 ", r"\b63 .*8.0 idle-held", gone=["of 64: "])


def test_a_lost_card_says_so_and_comes_back(screen, clock):
    path = clock(300)
    top = screen("--source", "sim", "--scenario", SCENARIO, "--clock", path, "--no-store")
    top.press("M", "Down")
    top.wait(r"^   6 .*truly-idle")
    advance(path, 600)
    text = top.wait(r"^   6 LOST: the card does not answer", "1 lost")
    assert "97%" in text
    top.rows(6001, 4100, 4101, 4242, 5150, 5200, 900)
    advance(path, 1800)
    top.wait(r"^   6 .*truly-idle", gone=["lost"])


def test_a_driver_that_goes_away_is_a_message(screen, clock, tmp_path):
    path = clock(10)
    env = fake_driver(tmp_path, CARD.format(0) + "at 60s fail nvml* code 9 until 120s\n", clock=path)
    top = screen("--clock", path, "--no-store", env=env)
    top.wait(r"^   0 .*truly-idle", gone=["no driver"])
    advance(path, 60)
    top.wait("no driver for 0s, trying again: ", r"^   0 ")
    advance(path, 30)
    top.wait("no driver for 30s")
    advance(path, 60)
    top.wait(r"^   0 .*truly-idle", gone=["no driver"])


@pytest.fixture
def stuck(screen, clock, tmp_path):
    """gua top in real time on a driver that hangs since second 1 of a clock of its own, until a file is there."""
    scenario = CARD.format(0) + "process p pid env HOLDER\nat 0s hold p card 0 memory 8GiB\n" \
        "at 1s hold p card 0 memory 9GiB\nat 1s hang nvmlDeviceGetSamples\n"
    path = clock(0)
    env = fake_driver(tmp_path, scenario, clock=path, FAKENVML_RELEASE=tmp_path / "release", HOLDER=os.getpid())

    def start(*options):
        top = screen("--no-store", *options, env=env)
        top.wait(r"^   0 .* 8.0/80.0")
        advance(path, 2)
        return top
    return start


def idle_for(text, pid):
    """What the column of idle times has of a process."""
    heading = re.search("^.*CARD USER.*$", text, re.M)[0]
    row = re.search(rf"^.* {pid} [CGM].*$", text, re.M)[0]
    end = heading.index("IDLE") + len("IDLE")
    return row[:end].split()[-1]


@pytest.mark.waits
def test_a_driver_that_hangs_is_a_message(stuck, tmp_path):
    """What it said last stays; it goes on by itself."""
    top = stuck()
    text = top.wait(r"the driver has not answered for \d+s; showing the last readings", r"^   0 .* 8.0/80.0")
    title, idle = text.splitlines()[0], idle_for(text, os.getpid())
    since = re.search(r"not answered for \d+s", text)[0]
    text = top.wait(r"the driver has not answered for \d+s", gone=[since, title])  # the time goes on
    assert idle_for(text, os.getpid()) == idle  # but nobody saw whether it is still idle
    (tmp_path / "release").touch()
    top.wait(r"^   0 .* 9.0/80.0", gone=["answered"])


@pytest.mark.waits
def test_keys_work_while_the_driver_hangs(stuck):
    top = stuck("--driver-timeout", "300ms")
    top.wait("has not answered")
    top.press("?")
    top.wait("KEYS", "has not answered")
    top.press("x", "t")
    top.wait(rf"CARD USER(.*\n)+.* {os.getpid()} ", gone=["KEYS"])
    top.press("t")
    top.press("/", "n", "o", "n", "e")
    top.wait("Filter: none_", "no process matches")
    top.press("Escape", "r", "Enter")
    top.wait(f"PROCESS {os.getpid()}", "has not answered")
    top.press("Escape")
    top.tmux("resize-window", "-x", "120", "-y", "30")
    top.wait(r"\A(.*\n){29}F1Help", r"^   0 .* 8.0/80.0")
    top.press("q")
    top.wait("status 0", gone=["gua top"])


@pytest.mark.waits
@pytest.mark.parametrize("since, options", [("0s", []), ("1s", ["--driver-timeout", "300ms"])])
def test_a_slow_driver_is_not_one_that_hangs(screen, tmp_path, since, options):
    """An answer that takes longer than a refresh is shown when it comes, also when all take too long."""
    env = fake_driver(tmp_path, CARD.format(0) + "process p pid env HOLDER\nat 0s hold p card 0 memory 8GiB\n"
                      f"at {since} slow nvmlDeviceGetTemperature 400ms\nat 2s hold p card 0 memory 9GiB\n",
                      HOLDER=os.getpid())
    top = screen("--no-store", "--delay", "10m", *options, env=env)
    top.wait(r" [89].0/80.0")
    time.sleep(2)
    top.press("r")
    top.wait(r" 9.0/80.0", gone=["answered"])  # long before the next refresh


@pytest.fixture
def sleeper(tmp_path):
    """A process that lives, on the card of a fake driver: (process, environment)."""
    child = subprocess.Popen(["sleep", "600"])
    scenario = CARD.format(0) + "process s pid env SLEEPER\nat 0s hold s card 0 memory 8GiB\n"
    yield child, fake_driver(tmp_path, scenario, SLEEPER=child.pid)
    child.kill()
    child.wait()


def test_a_signal_needs_a_yes(screen, sleeper):
    child, env = sleeper
    top = screen("--no-store", env=env)
    top.wait(rf" {child.pid} C +8.0 GiB .*sleep")
    top.press("k")
    top.wait(f"Send SIGTERM to process {child.pid} of ", "command +sleep")
    top.press("n")
    top.wait("no signal was sent")
    assert child.poll() is None
    top.press("F9", "Right")
    top.wait(f"Send SIGINT to process {child.pid}")
    top.press("Left", "y")
    top.wait(f"sent SIGTERM to process {child.pid}")
    assert child.wait(timeout=60) == -signal.SIGTERM


def test_a_process_that_has_ended_gets_nothing(screen, sleeper):
    child, env = sleeper
    top = screen("--no-store", env=env)
    top.press("k")
    top.wait("Send SIGTERM")
    child.kill()
    child.wait()
    top.press("y")
    top.wait(f"process {child.pid}.* has ended")


def test_readonly_sends_nothing(screen, sleeper):
    child, env = sleeper
    top = screen("--no-store", "--readonly", env=env)
    assert "kSignal" not in top.wait("read only")
    top.press("k")
    top.wait("no signals are sent: read only")
    top.press("y", "q")
    top.wait("status 0")
    assert child.poll() is None


def test_the_tree_shows_who_started_it(screen, sleeper):
    child, env = sleeper
    top = screen("--no-store", env=env, columns=160, rows=40)
    top.press("t")
    top.wait(rf" {os.getpid()} (.*\n)+.* {child.pid} .*└─ *sleep")
    top.press("Home", "Enter")  # a process that is on no card itself
    text = top.wait("^ PROCESS ", "card +none: a process that it started is on one")
    assert "no longer there" not in text


def test_the_mouse_selects(lab):
    top = lab()
    lines = top.wait(" 5150 ", "F1Help").splitlines()
    line = next(i for i, text in enumerate(lines, 1) if " 5150 " in text)
    for button in (0, 3):
        top.tmux("send-keys", "-l", f"\x1b[M{chr(32 + button)}*{chr(32 + line)}")
    top.wait(r"^[^\n]*\x1b\[46m[^\n]* 5150 ", options=["-e"])  # curses may lose a click that a key follows at once
    top.press("Enter")
    top.wait("PROCESS 5150")


def click(top, title, sgr):
    """Presses and releases the first button on a title, as the terminal reports it."""
    lines = top.wait("CARD USER").splitlines()
    line, text = next((i, text) for i, text in enumerate(lines, 1) if "CARD USER" in text)
    column = text.index(title) + 1
    for button, end in ((0, "M"), (3, "m")):
        top.tmux("send-keys", "-l", f"\x1b[<0;{column};{line}{end}" if sgr else
                 f"\x1b[M{chr(32 + button)}{chr(32 + column)}{chr(32 + line)}")


@pytest.mark.parametrize("terminal", ["screen", "xterm-256color"])
def test_a_click_on_a_title_sorts(lab, terminal):
    kmous = subprocess.run(["infocmp", "-1", terminal], capture_output=True, text=True).stdout
    if "kmous=" not in kmous:
        pytest.skip(f"there is no description of the mouse of {terminal}")
    sgr = r"kmous=\E[<" in kmous
    top = lab(program=("env", f"TERM={terminal}", GUA))
    click(top, "MEM", sgr)
    top.rows(6001, 4100, 4101, 4242, 5150, 5200, 900)
    click(top, "MEM", sgr)  # again: the other way round
    top.rows(900, 5200, 5150, 4242, 4101, 4100, 6001)
    click(top, "PID", sgr)
    top.rows(900, 4100, 4101, 4242, 5150, 5200, 6001)


def has_mouse(top):
    return top.tmux("display-message", "-p", "#{mouse_any_flag}").strip() == "1"


def test_the_mouse_can_be_left_to_the_terminal(lab):
    """Which then selects text with it."""
    top = lab()
    wait_for(lambda: has_mouse(top))
    top.press("m")
    top.wait("the mouse is left to the terminal")
    wait_for(lambda: not has_mouse(top))
    top.press("m")
    top.wait("the mouse sorts, selects and scrolls")
    wait_for(lambda: has_mouse(top))


def test_no_mouse_from_the_start(lab):
    top = lab("--no-mouse")
    top.wait("F1Help")
    assert not has_mouse(top)
    top.press("m")
    wait_for(lambda: has_mouse(top))


def styled(top):
    return top.wait("F1", options=["-e"])


def test_colour_and_none(lab):
    assert re.search(r"\x1b\[[\d;]*33[\d;]*m", styled(lab()))


@pytest.mark.parametrize("how", [{"env": {"NO_COLOR": "1"}}, {"option": "--no-color"}])
def test_no_colour(lab, how):
    top = lab(*([how["option"]] if "option" in how else []), env=how.get("env"))
    assert not re.search(r"\x1b\[(?:\d+;)*[34][0-7](?:;\d+)*m", styled(top))


def test_ascii_screen(lab):
    assert lab("--ascii").wait("F1Help", r"\[\|+").isascii()


@pytest.mark.any_build
def test_small_in_memory(screen, clock):
    """16 cards and 128 processes: at most 12 MB."""
    if "asan" in BUILD.name:
        pytest.skip("sanitizers take memory of their own")
    top = screen("--source", "sim", "--scenario", SCENARIOS / "sixteen.scenario", "--clock", clock(60), "--no-store",
                 columns=200, rows=50)
    top.press("i", "t", "r")
    top.wait("128 holders?")
    pane = int(top.tmux("list-panes", "-F", "#{pane_pid}"))
    child, = open(f"/proc/{pane}/task/{pane}/children").read().split()
    status = open(f"/proc/{child}/status").read()
    assert "gua-top" in status and int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) <= 12 * 1024


def test_gua_hands_over(tmp_path, installed):
    """gua NAME is gua-NAME, beside gua or installed with it, never that of another gua; a name is never a path."""
    assert (installed / "libexec" / "gua" / "gua-top").exists()
    assert gua("top", "--help", binary=installed / "bin" / "gua").returncode == 0
    copy = shutil.copy(GUA, tmp_path / "gua")
    extra = tmp_path / "gua-extra"
    extra.write_text("#!/bin/sh\necho \"extra $*\"\n")
    extra.chmod(0o755)
    run = gua("extra", "a b", binary=copy)
    assert (run.returncode, run.stdout) == (0, "extra a b\n")
    for name in ("../gua-extra", "x/../extra", "other", ".", "-extra"):
        assert gua(name, binary=copy).returncode == 2
    assert "--readonly" in gua("top", "--help", binary=copy).stdout
    run = gua("top", "--once", binary=copy)
    assert (run.returncode, run.stderr) == (1, "gua top: the program gua-top is not installed; install the package gua-top, or build gua with the option top\n")


def test_help_says_when_it_is_not_installed(tmp_path, installed):
    """As in a build with -Dtop=disabled: there is no gua-top beside gua."""
    def line(binary):
        return next(line for line in gua("help", binary=binary).stdout.splitlines() if line.startswith("  top "))
    copy = shutil.copy(GUA, tmp_path / "gua")
    assert line(copy).endswith("(not installed)") and line(copy).startswith(line(GUA))
    for binary in (GUA, installed / "bin" / "gua"):
        assert "installed" not in line(binary)


@pytest.mark.waits
def test_a_card_that_was_chosen_by_an_index_which_is_gone(screen, clock, tmp_path):
    """The driver counts anew without the card that vanished, and nothing points to what was read before."""
    path = clock(10)
    many = "".join(f"process p{i} pid {9000 + i}\nat {70 + i // 20}s hold p{i} card 1 memory 100MiB\n" for i in range(400))
    env = fake_driver(tmp_path, CARD.format(0) + CARD.format(1) + "process p pid 77\nat 0s hold p card 1 memory 8GiB\n" +
                      many + "at 60s vanish card 0 until 200s\n", clock=path)
    (tmp_path / "proc").mkdir()
    top = screen("--clock", path, "--no-store", "--id", "1", "--root", tmp_path, env=env)
    top.wait(r"^!? +1 \(ended\) +77 ")
    advance(path, 51)
    for _ in range(8):
        advance(path, 10)
        time.sleep(0.3)
    top.wait("card '1' does not exist", gone=["no driver", r"^!? +\d \(ended\) +77 "])
    advance(path, 60)
    top.wait(r"^!? +1 \(ended\) +77 ", gone=["there is no card"])


def test_enter_on_a_card_shows_it(lab):
    """The cards are above the first process. What the card does not report is '-', and not 0."""
    top = lab()
    top.press("Home", "Up", "Enter")
    page = top.wait(r"^ CARD 7: Escape goes back", r"  clocks +SM \S+ of \S+ MHz, memory", r"  PCIe +generation \S+ of \S+, \S+ of \S+ lanes",
                    r"  cooling +\S+ degrees, fan \S+ %", r"  ECC errors +\S+ corrected, \S+ not", r"  last hour +\S", gone=[r"^.?CARD USER"])
    assert "nan" not in page
    top.press("Escape")
    top.wait(r"^.?CARD USER", gone=["goes back"])
    top.press("Up", "Enter")
    top.wait(r"^ CARD 6: Escape goes back")
    top.press("Escape", "Down", "Down", "Enter")  # down from the last card is the first process again
    top.wait(r"^ PROCESS \d+: Escape goes back")


def test_escape_leaves_a_filter_that_was_kept(lab):
    top = lab()
    top.press("/", "n", "o", "s", "u", "c", "h", "Enter")
    top.wait("no process matches", "only 'nosuch'")
    top.press("Escape")
    top.wait(gone=["no process matches", "only 'nosuch'"])

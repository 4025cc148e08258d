"""%load_ext gua in a real IPython, a real kernel and a real notebook server, on the fake driver. A stand-in for PyTorch
(standins/torch.py) plays allocations, which the fake driver reports as this process's memory."""
import contextlib
import json
import os
import select
import signal
import subprocess
import textwrap

import pytest

from conftest import BUILD, ROOT, wait_for
from engines import free_port
from fake import fake_driver
from pyrun import PACKAGE, python_environment, sanitizers

# The extension is Python; what it asks of libgua is tested under sanitizers by others.
pytestmark = pytest.mark.any_build

STANDINS = ROOT / "tests" / "python" / "standins"
GIB = 1 << 30
SCENARIO = """
card 0 uuid GPU-a name "NVIDIA A100" memory 80GiB idle-power 60W max-power 400W
card 1 uuid GPU-b name "NVIDIA A100" memory 80GiB idle-power 60W max-power 400W
process k pid file k user alice uid 1001 command "python"
at 0s hold k card 1 memory 1GiB
"""
# Imports IPython once. For each line with a folder it forks a process, which runs the cells of a JSON file there in an IPython
# of its own, and prints a marked line before each one's output; then it answers with the status of that process.
SHELLS = """
import atexit, json, os, sys
from IPython.core.interactiveshell import InteractiveShell
answers = os.dup(1)
while folder := os.read(0, 4096).decode().strip():
    if child := os.fork():
        os.write(answers, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        continue
    os.close(answers)
    os.chdir(folder)
    for number, name in enumerate((os.devnull, "stdout", "stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    with open("cells.json") as file:
        env, cells = json.load(file)
    os.environ.clear()
    os.environ.update(env)
    with open(env["FAKENVML_PIDS"] + "/k", "w") as file:
        file.write(str(os.getpid()))
    shell = InteractiveShell.instance(colors="NoColor")
    for number, cell in enumerate(cells):
        print(f"==={number}")
        shell.run_cell(cell, store_history=True)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(0)  # python would free all that it has imported, which takes longer than a test
"""


def environment(where, scenario=SCENARIO, **more):
    pids = where / "pids"
    pids.mkdir(exist_ok=True)
    (pids / "k.memory").write_text("0")
    env = fake_driver(where, scenario, FAKENVML_PIDS=pids, GPU_MEMORY=pids / "k.memory")
    return python_environment(**{**env, "PYTHONPATH": f"{PACKAGE}:{STANDINS}", "HOME": where, "IPYTHONDIR": where / "ipython",
                                 "JUPYTER_RUNTIME_DIR": where / "runtime", **more})


@pytest.fixture(scope="session")
def shells(tmp_path_factory):
    """The process that runs cells."""
    server = subprocess.Popen(["/usr/bin/python3", "-c", SHELLS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                              env=environment(tmp_path_factory.mktemp("shells")), start_new_session=True)
    yield server
    server.stdin.close()
    try:
        server.wait(10)
    finally:
        with contextlib.suppress(ProcessLookupError):  # a shell that is stuck
            os.killpg(server.pid, signal.SIGKILL)
        server.stdout.close()


@pytest.fixture
def cells(tmp_path, shells):
    def run(*sources, scenario=SCENARIO, **more):
        """What each cell printed."""
        env = {key: str(value) for key, value in environment(tmp_path, scenario, **more).items()}
        (tmp_path / "cells.json").write_text(json.dumps([env, [textwrap.dedent(source).strip() for source in sources]]))
        shells.stdin.write(f"{tmp_path}\n".encode())
        assert select.select([shells.stdout], [], [], 120)[0], "the cells take too long"
        status, said = int(shells.stdout.readline()), (tmp_path / "stderr").read_text()
        assert status == 0 and said == "", said
        return [part.split("\n", 1)[1] for part in (tmp_path / "stdout").read_text().split("===")[1:]]
    return run


def test_a_line_tells_time_memory_and_the_card(cells):
    *_, alloc, cached, again, ram, slow = cells(
        "%load_ext gua", "%gua", "import torch, time; x = torch.zeros(2 << 30)", "del x", "x = torch.zeros(1 << 30)",
        "big = b'x' * (300 << 20); del big", "time.sleep(1.1)")
    assert alloc.startswith("gua: In [3] ") and "GPU 1: 0 MiB → 2.4 GiB, peak +2.4 GiB" in alloc
    assert "GPU 1: 2.4 GiB → 2.4 GiB, peak +0 MiB" in cached  # the framework keeps it
    assert "GPU 1: 2.4 GiB → 2.4 GiB, peak +0 MiB" in again
    peak = int(ram.split("peak +")[1].split(" MiB")[0])
    shadow = 300 // 8 if sanitizers() else 0  # AddressSanitizer keeps a byte for eight
    assert 299 <= peak <= 330 + shadow and "RAM" in ram
    assert slow.startswith("gua: In [7] 1.") and "(CPU 0.0" in slow
    idle = float(slow.split("active, ")[1].split(" s idle")[0])
    assert 1.0 <= idle <= 2.0


def test_a_peak_in_the_middle_of_a_cell_is_found(cells):
    line = cells("%load_ext gua", "%gua", "import torch, time, gc; y = torch.zeros(1 << 30)", """
        x = torch.zeros(5 << 30); time.sleep(0.2); del x; torch.cuda.empty_cache()""")[-1]
    assert "GPU 1: 1.4 GiB → 1.4 GiB, peak +5.0 GiB" in line


def test_use_of_the_card_is_told_apart_from_idle_holding(cells, tmp_path):
    line = cells("%load_ext gua", "%gua", "import torch, time, os; x = torch.zeros(2 << 30); mark = os.environ['FAKENVML_PIDS'] + '/k.busy'", """
        open(mark, 'w').close(); time.sleep(2); os.unlink(mark); time.sleep(2)""")[-1]
    active, idle = (float(line.split(end)[0].split()[-1]) for end in (" s active", " s idle"))
    assert 1.7 <= active <= 2.6 and 1.4 <= idle <= 2.3


def test_quiet_cells_and_what_is_asked_for(cells):
    out = cells("%load_ext gua", "x = b'x' * (100 << 20)", "%gua", "1 + 1", "%%gua\ny = 1", "%gua all", "2 + 2", "%gua off",
                "z = b'x' * (100 << 20)", "%gua nonsense", "%gua report quick", "%gua ask torch", "%gua free nosuch")
    assert out[1] == "" and out[3] == "Out[4]: 2\n"
    assert out[4].startswith("gua: In [5] ") and out[6].startswith("Out[7]: 4\ngua: In [7] ") and out[8] == ""
    assert "%gua has no command 'nonsense'" in out[9] and "%gua free NAME" in out[9]
    assert "sorts by growth, peak, time, not by 'quick'" in out[10]
    assert "no more lines; %gua report still knows the cells" in out[7]
    assert "%gua ask takes jax or tensorflow" in out[11]
    assert "there is no name nosuch: nothing was dropped" in out[12]


LEAK = ["%load_ext gua", "%gua", "import torch; kept = []", *["kept.append(torch.zeros(300 << 20))"] * 3, "torch.zeros(1 << 30)", """
    def fails():
        local = torch.zeros(512 << 20)
        1 / 0
    fails()"""]


def test_a_cell_that_leaves_more_each_time_is_named_with_what_holds_it(cells):
    out = cells(*LEAK, "%gua report")
    assert "each run" not in out[4] and "each run of this cell leaves 300 MiB more on the cards (3 runs)" in out[5]
    assert "900 MiB  kept (3 arrays; torch uint8 [314572800] on cuda:0)" in out[5]
    report = out[-1]
    assert "2.8 GiB held on cards: 400 MiB context and other, 0 MiB cached and free, 2.4 GiB in use (by torch)" in report
    assert "5 arrays on cards, 2.4 GiB in all" in report
    assert "1.0 GiB  Out[7], kept by IPython" in report
    assert "512 MiB  local in fails(), kept by the last traceback" in report
    assert "In [6] leaves 300 MiB more at each run (3 runs): kept.append(" in report


def test_a_cell_that_replaces_its_result_does_not_grow(cells):
    out = cells("%load_ext gua", "%gua", "import torch", *["x = torch.zeros(300 << 20)"] * 4)
    assert not any("each run" in text for text in out)


def test_memory_is_given_back_when_asked_and_only_then(cells):
    out = cells(*LEAK, "%gua free", "%gua free kept", "%gua report")
    assert "1.5 GiB came free on cards (2.8 GiB → 1.3 GiB)" in out[-3]
    assert "dropped 1 result in Out; the last traceback, so %debug cannot show it any more" in out[-3]
    assert "still held by\n    900 MiB  kept (3 arrays" in out[-3]
    assert "900 MiB came free on cards (1.3 GiB → 400 MiB)" in out[-2] and "dropped the name kept" in out[-2]
    assert "400 MiB held on cards: 400 MiB context and other, 0 MiB cached and free, 0 MiB in use" in out[-1]


def test_cached_memory_is_told_apart(cells):
    out = cells("%load_ext gua", "import torch; x = torch.zeros(5 << 30); y = torch.zeros(1 << 30); del x", "%gua report")
    assert "6.4 GiB held on cards: 400 MiB context and other, 5.0 GiB cached and free, 1.0 GiB in use (by torch)" in out[-1]


def test_an_experiment_removes_the_names_it_made(cells):
    out = cells("import gua, torch; old = torch.zeros(1 << 30)\n%load_ext gua", """
        with gua.experiment(keep="kept"):
            new = torch.zeros(3 << 30)
            kept = torch.zeros(1 << 20)
        """, "print('new' in globals(), 'old' in globals(), 'kept' in globals())", """
        with gua.experiment():
            raise KeyError("x")""", "print('plain')")
    assert "gua: 3.0 GiB came free on cards; removed new" in out[1]
    assert out[2] == "False True True\n"
    assert "KeyError" in out[3] and "the traceback may still hold memory" in out[3] and out[4] == "plain\n"


def test_the_experiment_works_without_ipython(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import os
open(os.environ["FAKENVML_PIDS"] + "/k", "w").write(str(os.getpid()))
import gua, torch
with gua.experiment():
    new = torch.zeros(3 << 30)
print("new" in globals())
""")
    done = subprocess.run(["/usr/bin/python3", program], env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert done.stdout == "gua: 3.0 GiB came free on cards; removed new\nFalse\n", done.stderr


def test_without_a_driver_memory_on_cards_is_unknown(cells):
    out = cells("%load_ext gua", "%gua", "b = b'x' * (100 << 20)", "%gua idle", "%gua report", GUA_NVML="/nosuch/library.so")
    assert "memory on cards is unknown: " in out[1] and "GPU memory unknown: " in out[2]
    assert "memory on cards is unknown: " in out[3] and "memory on cards is unknown: " in out[4]
    # What to do about it is said once.
    assert "name it with the variable GUA_NVML" in out[1] and not any("; install it" in text for text in out[2:])


def test_help_and_a_tracker_are_shown_as_people_ask_for_them(cells):
    out = cells("%load_ext gua", "print(get_ipython().find_line_magic('gua').__doc__)",
                "import gua; t = gua.Tracker(disable_logs=True); t", "t.start(); t.stop(); t")
    assert "%gua report" in out[1] and "State: NEW" in out[2] and "Slurm       --mem=" in out[3]


def test_a_report_says_that_it_is_cut_and_has_no_empty_lines(cells):
    *_, ask, few, _, _, many = cells("%load_ext gua", *(f"x = {n}" for n in range(9)), "%gua?", "%gua ask jax", "%gua report",
                                     "1", "2", "%gua report peak")
    assert "gua: jax will be asked, once the program has started it" in ask
    assert "9 runs of cells, sorted by growth" in few and few.count(" s  x = ") == 9
    assert "11 runs of cells, the first 10 sorted by peak" in many


def test_frameworks_are_not_imported_or_started(cells):
    out = cells("%load_ext gua", "%gua all", "import sys; print('torch' in sys.modules)", "import torch", "%gua report",
                "print(torch._started)")
    assert out[2].startswith("False\n") and "0 MiB held on cards\n" in out[4] and out[5].startswith("False\n")


def test_idle_time_since_it_was_loaded_and_its_price(cells, tmp_path):
    config = tmp_path / "gua.conf"
    config.write_text("[price]\n\"NVIDIA A100\" = 7200\n")
    out = cells("%load_ext gua", "%gua idle", "import torch, time; x = torch.zeros(2 << 30); time.sleep(1.5)", "%gua idle",
                GUA_CONFIG=config, PATH=os.environ["PATH"])
    assert out[1] == "gua: this kernel holds no memory on a card\n"
    assert "this kernel holds 2.4 GiB on 1 card\n  GPU 1: 2.4 GiB, idle for " in out[3] and "since gua was loaded, not used\n" in out[3]
    seconds, money = (float(out[3].split(end)[0].split()[-1]) for end in (" s of", " USD"))
    assert 1.4 <= seconds <= 4 and money == pytest.approx(2 * seconds, abs=0.5)


def test_it_can_be_unloaded_and_loaded_again(cells):
    out = cells("%load_ext gua", "%unload_ext gua", "%load_ext gua", "%gua", "x = b'x' * (100 << 20)", "%unload_ext gua",
                "y = b'x' * (100 << 20)")
    assert out[4].startswith("gua: In [5] ") and out[6] == ""


def start_kernel(where):
    from jupyter_client.manager import start_new_kernel
    return start_new_kernel(kernel_name="python3", env=environment(where), cwd=str(where))


def outputs_of(client, source, timeout=60):
    """What a kernel sends for a cell: {kind: text}."""
    found = {}

    def take(message):
        content = message["content"]
        if message["msg_type"] == "stream":
            found[content["name"]] = found.get(content["name"], "") + content["text"]
        elif message["msg_type"] in ("display_data", "execute_result"):
            found.update(content["data"])
    reply = client.execute_interactive(source, timeout=timeout, output_hook=take)
    assert reply["content"]["status"] == "ok", reply
    return found


def test_a_real_kernel(tmp_path):
    manager, client = start_kernel(tmp_path)
    try:
        outputs_of(client, f"import os; open({str(tmp_path / 'pids' / 'k')!r}, 'w').write(str(os.getpid()))")
        outputs_of(client, "%load_ext gua\n%gua")
        line = outputs_of(client, "import torch; x = torch.zeros(2 << 30)")["stdout"]
        assert "GPU 1: 0 MiB → 2.4 GiB, peak +2.4 GiB" in line
        waited = outputs_of(client, "import asyncio; await asyncio.sleep(1.2)")["stdout"]
        assert waited.startswith("gua: In [4] 1.2") and "(CPU 0.0" in waited
        report = outputs_of(client, "%gua report")
        assert "2.4 GiB held on cards" in report["text/plain"]
        assert "<svg" not in report["text/html"] and "src='data:image/svg+xml;base64," in report["text/html"] and "<td style='text-align:left'>import torch; x = torch.zeros(2 &lt;&lt; 30)</td>" \
            in report["text/html"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_notebook_through_the_server(tmp_path):
    """As a browser does it: a session of the server's API, then the kernel's messages over its web socket."""
    import asyncio
    import urllib.request
    import uuid

    from tornado.websocket import websocket_connect
    log, port = tmp_path / "server.log", free_port()
    with open(log, "w") as file:
        server = subprocess.Popen(["/usr/bin/python3", "-m", "notebook",
                                   "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--NotebookApp.token=secret"],
                                  cwd=tmp_path, env=environment(tmp_path), stdout=file, stderr=file)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: "is running at" in log.read_text(), log.read_text)
        body = json.dumps({"kernel": {"name": "python3"}, "name": "a.ipynb", "path": "a.ipynb", "type": "notebook"}).encode()
        request = urllib.request.Request(address + "/api/sessions", body, {"Authorization": "token secret"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            kernel = json.load(answer)["kernel"]["id"]

        async def talk(sources):
            socket = await websocket_connect(f"{address.replace('http', 'ws')}/api/kernels/{kernel}/channels?token=secret")
            said = []
            for source in sources:
                mine = uuid.uuid4().hex
                await socket.write_message(json.dumps({
                    "header": {"msg_id": mine, "msg_type": "execute_request", "username": "", "session": mine, "date": "", "version": "5.3"},
                    "parent_header": {}, "metadata": {}, "channel": "shell",
                    "content": {"code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}}))
                while True:
                    message = json.loads(await asyncio.wait_for(socket.read_message(), 60))
                    if message["parent_header"].get("msg_id") != mine:
                        continue
                    if message["msg_type"] == "stream":
                        said.append(message["content"]["text"])
                    if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                        break
            return "".join(said)
        said = asyncio.run(talk([f"import os; open({str(tmp_path / 'pids' / 'k')!r}, 'w').write(str(os.getpid()))",
                                 "%load_ext gua", "%gua", "import torch; x = torch.zeros(2 << 30)", "%gua free x"]))
        assert "GPU 1: 0 MiB → 2.4 GiB, peak +2.4 GiB" in said and "2.0 GiB came free on cards (2.4 GiB → 400 MiB)" in said
    finally:
        server.terminate()
        server.wait(30)


HOLD = "import os; path = os.environ['GPU_MEMORY']; open(path + '.new', 'w').write(str({})); os.rename(path + '.new', path)"


def test_pools_of_other_frameworks(cells):
    out = cells("%load_ext gua", HOLD.format("10 << 30"), "import cupy, jax, tensorflow; x = cupy.ndarray(2 << 30)", "%gua report",
                "%gua ask jax tensorflow", "%gua report", "jax.bridge._backends['gpu'] = 1; tensorflow.start()", "%gua report")
    only = "10.0 GiB held on cards: 5.0 GiB context and other, 2.0 GiB cached and free, 3.0 GiB in use (by cupy)"
    assert only in out[3] and "2.0 GiB  x (1 array; cupy uint8 [2147483648] on device 0)" in out[3]
    assert only in out[5]  # imported, but not started
    assert "10.0 GiB held on cards: 2.5 GiB context and other, 3.0 GiB cached and free, 4.5 GiB in use (by cupy, jax, tensorflow)" in out[7]


def test_a_framework_that_fails_disturbs_nobody(cells):
    out = cells("%load_ext gua", "%gua", HOLD.format("2 << 30"), "import cupy; del cupy._pool.used_bytes", "%gua report")
    assert "2.0 GiB held on cards\n" in out[4]


def test_a_driver_that_is_stuck_does_not_stop_the_notebook(cells):
    out = cells("%load_ext gua", "%gua all", "1", "import time; time.sleep(2)", "2", "%gua report",
                scenario=SCENARIO + "at 1s hang nvmlDeviceGet*\n")
    assert out[2].startswith("Out[3]: 1\n") and out[4].startswith("Out[5]: 2\n")
    assert "has not answered" in out[5]


def test_idle_time_is_the_recorders_while_it_runs(cells, tmp_path):
    db = tmp_path / "gua.db"
    record = f"""
        import subprocess, time
        recorder = subprocess.Popen([{str(BUILD / 'gua')!r}, 'daemon', '--foreground', '--db', {str(db)!r}, '--interval', '1s'],
                                    stderr=subprocess.DEVNULL)
        time.sleep(5)"""
    out = cells("%load_ext gua", "import torch; x = torch.zeros(2 << 30)", record, "%gua idle", "recorder.terminate(); recorder.wait();",
                "%gua idle", GUA_DB=db)
    assert "this kernel holds 2.4 GiB on 1 card\n  GPU 1: 2.4 GiB, not used for at least " in out[3]
    assert "as the recorder of this host saw it" in out[3]
    assert "since gua was loaded" in out[5] and "recorder" not in out[5]  # what it did since is not recorded


def test_free_deletes_the_names_that_were_given_and_no_other(cells):
    out = cells("%load_ext gua", "import torch; x = torch.zeros(1 << 30); other = x; nothing = None; none = None; one = 1; uno = 1",
                "%gua free x none one", "print(sorted({'x', 'other', 'nothing', 'none', 'one', 'uno'} & set(globals())))",
                "%gua free other, nothing", "other = x = 1\n%gua free x\n%gua free other", "%gua free In", "%gua free __builtins__",
                "print(len(In) > 5, 'x' in globals(), 'other' in globals())")
    assert "dropped the names x, none, one" in out[2] and "1.0 GiB  other (1 array" in out[2]
    assert out[3] == "['nothing', 'other', 'uno']\n"
    assert "1.0 GiB came free" in out[4] and "dropped the names other, nothing" in out[4]
    assert "dropped the name x" in out[5] and "dropped the name other" in out[5]
    assert out[6] == "gua: In belongs to IPython and cannot be deleted: nothing was dropped\n"
    assert "__builtins__ belongs to IPython" in out[7] and out[8] == "True False False\n"


def test_free_leaves_names_of_the_user_that_look_like_ipythons(cells):
    out = cells("%load_ext gua", "_ = 'mine'; _77 = 'also'", "[1, 2]", "%gua free", "print(_, _77, 3 in Out, '_3' in globals())", "5", "print(_)")
    assert "dropped 1 result in Out" in out[3] and out[4] == "mine also False False\n" and out[6] == "mine\n"
    out = cells("%load_ext gua", "[1, 2]", "%gua free", "print(repr(_))", "5", "print(_)")
    assert out[3] == "''\n" and out[5] == "5\n"


def test_a_framework_that_cannot_empty_its_cache_hides_no_error(cells):
    out = cells("%load_ext gua", "import torch, gua; x = torch.zeros(1 << 30)\ndef fails(): raise RuntimeError('CUDA error: \\x1b[31m')",
                "torch.cuda.empty_cache = fails", "%gua free x", "with gua.experiment():\n    y = 1\n    raise KeyError('mine')")
    assert "gua: torch could not empty its cache: RuntimeError: CUDA error: ?[31m" in out[3] and "dropped the name x" in out[3]
    assert "KeyError: 'mine'" in out[4] and "Traceback" in out[4] and "removed y" in out[4]
    assert "During handling" not in out[4]


def test_an_experiment_removes_all_names_it_made_also_when_nested(cells):
    out = cells("%load_ext gua", "import gua, threading", """
        with gua.experiment():
            _hidden = 1
            with gua.experiment(keep=["stays"]):
                stays = inner = 2
            print(sorted(name for name in ('_hidden', 'stays', 'inner') if name in globals()))
        print('_hidden' in globals(), 'stays' in globals())""", """
        def function():
            with gua.experiment():
                local = 1
            return local
        print(function())""", "%unload_ext gua", """
        with gua.experiment():
            get_ipython().run_line_magic('load_ext', 'gua')
        print([thread.name for thread in threading.enumerate()].count('gua-notebook'))""")
    assert "removed inner\n['_hidden', 'stays']\n" in out[2] and "removed _hidden, stays\nFalse False" in out[2]
    assert "removed no names\n1" in out[3] and out[5].endswith("\n1\n")


BOTH = SCENARIO + "at 0s hold k card 0 memory 1GiB\n"


def test_several_cards_are_told_apart_and_their_time_is_a_sum(cells, tmp_path):
    config = tmp_path / "gua.conf"
    config.write_text("[price]\n\"NVIDIA A100\" = 3600\n")
    out = cells("%load_ext gua", "%gua", HOLD.format("2 << 30") + "\nimport time; time.sleep(0.1)", "time.sleep(3)", "%gua idle",
                scenario=BOTH, GUA_CONFIG=config, PATH=os.environ["PATH"])
    assert "GPU 0: 0 MiB → 2.0 GiB, peak +2.0 GiB; GPU 1: 0 MiB → 2.0 GiB, peak +2.0 GiB; " in out[2]
    active, idle = (float(out[3].split(end)[0].split()[-1]) for end in (" s active", " s idle"))
    assert active == 0 and 5.9 <= idle <= 6.5 and "(sum of 2 cards)" in out[3]
    said = out[4].splitlines()
    assert said[0] == "gua: this kernel holds 4.0 GiB on 2 cards"
    for line in said[1:3]:
        each, of = (float(line.split(end)[0].split()[-1]) for end in (" s of", " s since"))
        assert 2.9 <= each <= of
    money = float(said[3].split(" USD")[0].split()[-1])
    assert 5.8 <= money <= 8 and f"{money:.2f} s of GPU time" in said[3]


def test_times_of_a_short_cell_are_never_negative_or_longer_than_the_cell(cells):
    busy = "open(mark, 'w').close(); time.sleep(0.4); os.unlink(mark)"
    out = cells("%load_ext gua", "%gua all", "import time, os; mark = os.environ['FAKENVML_PIDS'] + '/k.busy'\n" + HOLD.format("2 << 30"),
                *["time.sleep(0.8)", busy] * 3)
    for line in out[3:]:
        wall = float(line.split("In [")[1].split("] ")[1].split(" s")[0])
        active, idle = (float(line.split(end)[0].split()[-1]) for end in (" s active", " s idle"))
        assert active >= 0 and idle >= 0 and active + idle <= wall + 0.15, line


def test_use_that_the_driver_does_not_report_is_unknown(cells):
    out = cells("%load_ext gua", "%gua", HOLD.format("2 << 30") + "\nimport time; time.sleep(0.1)", "%gua idle",
                scenario=SCENARIO + "missing nvmlDeviceGetProcessUtilization nvmlDeviceGetProcessesUtilizationInfo\n")
    assert out[2].endswith("; GPU time unknown\n") and "GPU 1: 2.0 GiB, its use is unknown\n" in out[3]


def test_a_cell_that_forks_is_reported_once(cells):
    out = cells("%load_ext gua", "%gua all", """
        import os, sys
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0""", """
        if child == 0:
            get_ipython().run_line_magic('gua', 'idle'); sys.stdout.flush(); os._exit(0)
        """)
    text = "".join(out)
    assert text.count("gua: In [3]") == 1 and "this process is not watched" in text


def test_the_watch_does_not_count_itself(cells):
    out = cells("%load_ext gua", "%gua", "import time; time.sleep(3)",
                scenario=SCENARIO + "".join(f'process p{i} pid {4000 + i} user alice uid 1001 command "python"\n'
                                            f"at 0s hold p{i} card {i % 2} memory 1GB\n" for i in range(200)))
    assert float(out[2].split("(CPU ")[1].split(" s")[0]) <= 0.03


def test_cells_in_cells_count_as_one(cells):
    out = cells("%load_ext gua", "%gua all", "import time; time.sleep(0.3); get_ipython().run_cell(''); get_ipython().run_cell('y = 1'); time.sleep(0.3)")
    assert out[2].count("gua: In") == 1 and float(out[2].split("In [3] ")[1].split(" s")[0]) >= 0.6


def test_a_container_with_its_own_process_numbers_makes_memory_unknown(cells):
    unshared = subprocess.run(["unshare", "--fork", "--pid", "--mount-proc", "true"], capture_output=True)
    if unshared.returncode:
        pytest.skip("no pid namespaces here")
    program = "import gua._watch; watch = gua._watch.Watch(); print(watch.loaded.gpu, watch.note)"
    out = cells(f"import subprocess, sys; print(subprocess.run(['unshare', '--fork', '--pid', '--mount-proc', sys.executable, '-c', {program!r}], "
                "capture_output=True, text=True).stdout)", "import gua._watch; print(gua._watch.Watch().loaded.gpu)")
    assert out[0] == "None the driver does not list this process, which has another number outside of its container\n\n"
    assert out[1] == "{}\n"


def test_what_holds_memory_is_found_without_touching_what_does_not(cells):
    out = cells("%load_ext gua", "import torch; _first = torch.zeros(64 << 20)", """
        import importlib.util, sys
        spec = importlib.util.find_spec("wave")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        lazy = importlib.util.module_from_spec(spec)
        sys.modules["wave"] = lazy
        spec.loader.exec_module(lazy)
        class Mine:
            def parameters(self): touched.append("parameters"); return []
            def __getattr__(self, name): touched.append(name); raise AttributeError(name)
        class Lazy(dict):
            def values(self): touched.append("values"); return dict.values(self)
        class Odd: __module__ = property(lambda self: 1)
        touched, mine, lazy_dict, odd = [], Mine(), Lazy(a=1), Odd()
        huge = list(range(1000)) * 20000""", "%gua report", "print(touched, type(lazy).__name__)")
    assert "64 MiB  _first (1 array" in out[3] and out[4] == "[] _LazyModule\n"


def test_gradients_optimisers_and_derived_classes_are_found(cells):
    out = cells("%load_ext gua", """
        import torch
        class Module:
            def parameters(self): return iter(self._parameters)
            def buffers(self): return iter(())
        class Optimizer: pass
        Module.__module__, Optimizer.__module__ = "torch.nn.modules.module", "torch.optim.optimizer"
        class Model(Module): pass
        class Adam(Optimizer): pass
        class Image(torch.Tensor): pass
        model, adam, image = Model(), Adam(), Image(32 << 20)
        model._parameters = [torch.zeros(100 << 20)]
        model._parameters[0].grad = torch.zeros(100 << 20)
        adam.param_groups = [{"params": model._parameters}]
        adam.state = {model._parameters[0]: {"step": 1, "average": torch.zeros(50 << 20), "square": torch.zeros(50 << 20)}}""",
                "%gua report")
    assert "200 MiB  model (2 arrays; " in out[2] and "100 MiB  adam (2 arrays; " in out[2] and "32 MiB  image (1 array" in out[2]


def test_a_part_of_a_cupy_array_keeps_all_of_it_and_counts_once(cells):
    out = cells("%load_ext gua", HOLD.format("10 << 30"), """
        import cupy, types
        x, part = cupy.ndarray(2 << 30), cupy.ndarray(1 << 20)
        x.data.mem = part.data.mem = types.SimpleNamespace(ptr=1, size=2 << 30)
        del x""", "%gua report")
    assert "2.0 GiB  part (1 array; cupy uint8 [1048576] on device 0)" in out[3] and "1 array on cards, 2.0 GiB in all" in out[3]


def test_an_error_before_the_last_error_is_named_too(cells):
    out = cells("%load_ext gua", "import torch", """
        def step():
            activations = torch.zeros(512 << 20)
            raise MemoryError()
        def train():
            try:
                step()
            except MemoryError as error:
                raise RuntimeError("no") from error
        train()""", "%gua report", "%gua free", "%gua report")
    assert "512 MiB  activations in step(), kept by the last traceback" in out[3] and "self in" not in out[3]
    assert "512 MiB came free" in out[4] and "0 MiB in use" in out[5]


def test_looking_for_what_holds_memory_after_a_cell_ends_soon(cells):
    out = cells("%load_ext gua", "%gua", "import torch, time; kept = []; a = b = c = d = [list(range(1000))] * 1000",
                *["began = time.time(); kept.append(torch.zeros(300 << 20))"] * 3, "print(time.time() - began)")
    assert "300 MiB more on the cards" in out[5] and "900 MiB  kept" in out[5] and float(out[6].split()[0]) < 0.5


def test_a_cell_whose_memory_is_freed_between_its_runs_does_not_grow(cells):
    out = cells("%load_ext gua", "%gua", "import torch", *["x = torch.zeros(300 << 20)", "del x"] * 4, "%gua report")
    assert not any("each run" in text for text in out)


def test_growth_is_named_again_after_a_run_that_failed(cells):
    grow = "kept.append(torch.zeros(300 << 20 if ok else -1))"
    out = cells("%load_ext gua", "%gua", "import torch; kept = []; ok = True", grow, grow, "ok = False; torch.zeros = None", grow,
                "ok = True; torch.zeros = torch.Tensor", grow, grow, grow)
    assert "each run" not in out[4] + out[6] + out[8] and "leaves 300 MiB more on the cards (4 runs)" in out[-1]


def test_a_cell_that_begins_with_a_command_is_measured(cells):
    out = cells("%load_ext gua", "# on\n%gua\n%gua report", "%gua all\nimport torch; x = torch.zeros(2 << 30)", "%%gua  now\ny = 1", "%gua report")
    assert "gua: In [2]" not in out[1] and "gua: In [3] " in out[2] and "GPU 1: 0 MiB → 2.4 GiB" in out[2]
    assert out[3].startswith("gua: In [4] ") and "import torch; x = torch.zeros(2 << 30)" in out[4] and "2 runs of cells, sorted by growth" in out[4]


def test_hostile_text_is_shown_without_effect(cells):
    out = cells("%load_ext gua", "import torch; globals()[chr(27) + ']0;name' + chr(7)] = torch.zeros(1 << 30); globals()[5] = 5",
                "'\x1b[2J \u202e <script>alert(1)</script> " + "long " * 40 + "';", "%gua report",
                "import gua.notebook; page = gua.notebook.Report(gua.notebook.active, 'time')._repr_html_(); print(ascii(page))",
                "%gua \x1b[31m")
    assert "1.0 GiB  ?]0;name?" in out[3] and "'?[2J ? <script>alert(1)</script> long long" in out[3]
    assert not any(sign in text for text in (out[3], out[5]) for sign in "\x1b\x07\u202e")
    assert "&lt;script&gt;" in out[4] and "<script" not in out[4] and "\\x1b" not in out[4] and "\\u202e" not in out[4]
    assert all(len(line) < 200 for line in out[3].splitlines())


def test_a_change_that_rounds_to_nothing_has_no_sign(cells):
    out = cells("import gua.notebook\nfrom gua.notebook import length, size\n"
                "print(size(-1000), size(-(3 << 30)), gua.summary.size(1500 << 10), length(12.345), length(90061))")
    assert out[0] == "0 MiB -3.0 GiB 1.5 MiB 12.35 s 1 d 1 h\n"  # lengths as gua track prints them


def test_it_survives_being_loaded_again_by_autoreload(cells):
    out = cells("%load_ext gua", "%load_ext gua", "import importlib, gua.notebook; importlib.reload(gua.notebook);", "%gua all", "%%gua\nx = 1",
                "%reload_ext gua", "%gua all", "y = 1", "%unload_ext gua", "z = 1")
    assert "already loaded" in out[1] and out[4].count("gua: In") == 1 and out[7].count("gua: In") == 1
    assert out[9] == ""


def test_a_script_that_is_run_counts_as_its_cell(cells, tmp_path):
    (tmp_path / "script.py").write_text("import torch\nx = torch.zeros(1 << 30)\ndef size(): return x.shape[0]\n")
    out = cells("%load_ext gua", "%gua", "%run script.py", "%gua free", "print(size())", "%gua free x",
                "%run script.py", "del x, size", "%gua report", "%gua free")
    assert "GPU 1: 0 MiB → 1.4 GiB" in out[2] and out[2].count("gua: In") == 1
    assert "1.0 GiB  x (1 array" in out[3] and "dropped the variables of 1 script that %run kept" in out[3]
    assert out[4] == "1073741824\n"  # functions keep the variables that they use,
    assert "0 MiB came free" in out[5]  # also those that the notebook has no name for
    assert "1.0 GiB  x in script.py, kept by %run (1 array" in out[8] and "2.0 GiB came free on cards" in out[9]


def test_a_driver_that_answers_again_is_believed_again(cells):
    out = cells("%load_ext gua", "%gua all", "import time; time.sleep(2.2)", "time.sleep(3.5)", "time.sleep(0.5)", "%gua report",
                scenario=SCENARIO + "at 1s hang nvmlDeviceGet* until 4s\n")
    assert "GPU memory unknown: the driver has not answered for 0.5 s" in out[2] and "unknown" in out[3] and "(CPU -" not in "".join(out)
    assert "unknown" not in out[4] and "0 MiB held on cards\n" in out[5]


def test_no_object_of_the_user_is_kept_alive(cells):
    out = cells("%load_ext gua", "%gua all", "import torch, weakref; x = torch.zeros(1 << 30); refs = [weakref.ref(x)]", """
        def fails():
            local = torch.zeros(1 << 29)
            refs.append(weakref.ref(local))
            1 / 0
        fails()""", "x", "%gua report", "%gua idle", "%gua report peak", "%gua free x", "print([ref() for ref in refs])")
    assert out[-1].startswith("[None, None]\n")


def test_an_exception_that_the_user_keeps_is_named(cells):
    out = cells("%load_ext gua", """
        import torch
        def step():
            activations = torch.zeros(1 << 30)
            raise MemoryError()
        try:
            step()
        except MemoryError as error:
            kept = error""", "%gua report", "%gua free kept")
    assert "1.0 GiB  kept (1 array; torch" in out[2] and "1.0 GiB came free" in out[3]


def test_no_framework_is_asked_while_no_card_is_used(cells):
    out = cells("%load_ext gua", "import cupy, gua\nfor name in ('used_bytes', 'total_bytes', 'free_all_blocks'):\n"
                "    setattr(cupy._pool, name, lambda name=name: asked.append(name) or 1)\nasked = []", "%gua all", "1", "%gua report",
                "%gua free", "with gua.experiment():\n    x = 1", "print(asked)", HOLD.format("2 << 30"), "%gua free", "print('free_all_blocks' in asked)")
    assert out[7].startswith("[]\n") and out[10].startswith("True\n")

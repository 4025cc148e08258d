"""gua.who(), gua.report() and gua.pick(): the commands' own documents, and their sentences as exceptions."""
import getpass
import json

import pytest

from conftest import gua
from fake import fake_driver
from pyrun import python

# Python that runs programs, which other tests run under sanitizers.
pytestmark = pytest.mark.any_build

SCENARIO = """
card 0 uuid GPU-a name "Card A" memory 80GiB idle-power 60W max-power 400W
card 1 uuid GPU-b name "Card B" memory 48GiB idle-power 20W max-power 300W
process train pid 4001 user alice uid 1001 command "python train.py"
at 0s hold train card 0 memory 8GB
"""


def test_who_and_pick_are_those_of_the_commands(python, tmp_path):
    out = python("""
        import json
        import gua
        print(json.dumps([gua.who(no_store=True), gua.pick(lock_dir="locks", no_store=True), gua.gpus()[0].processes[0].pid]))
        try:
            gua.pick(2, lock_dir="locks", no_store=True)
        except gua.GuaError as why:
            print(why.code, why)
        """, env=fake_driver(tmp_path, SCENARIO))
    document, refusal = out.splitlines()
    who, picked, pid = json.loads(document)
    assert who["schema"] == "gua-who-1" and [row["pid"] for row in who["holders"]] == [4001] == [pid]
    assert picked == ["GPU-b"]
    assert refusal.startswith("-2 ") and "fewer than 2 free cards" in refusal


def test_report_is_that_of_the_command(python, demo):
    store = demo.db
    ours = json.loads(python(f"import json, gua; print(json.dumps(gua.report(db={str(store)!r}, since='1000w', by='notebook')))"))
    theirs = json.loads(gua("report", "--json", "--db", store, "--since=1000w", "--by=notebook").stdout)
    for document in (ours, theirs):
        document.pop("generated", None)
        for key in ("asked_since", "asked_until"):  # of now
            del document["window"][key]
    assert ours == theirs


def test_a_wrong_call_raises_the_commands_sentence(python):
    out = python("""
        import gua
        for call in (lambda: gua.report(since="lastwek"), lambda: gua.report(db="/nosuch.db"), lambda: gua.who(nosuch=True)):
            try:
                call()
            except gua.GuaError as why:
                print(why.code, why)
        """)
    wrong, missing, unknown = out.splitlines()
    assert wrong.startswith("-1 ") and "lastwek" in wrong
    assert missing.startswith("-2 ") and "/nosuch.db" in missing
    assert unknown.startswith("-1 ") and "nosuch" in unknown


def test_processes_have_their_user_and_program(python, tmp_path):
    out = python("""
        import os, gua
        with open("k", "w") as file:
            file.write(str(os.getpid()))
        print([(one.user, one.command) for one in gua.processes()])
        """, env=fake_driver(tmp_path, SCENARIO.replace("pid 4001", "pid file k"), FAKENVML_PIDS=tmp_path))
    assert out == f"[({getpass.getuser()!r}, 'python3')]\n"


SERVERS = """
    import http.server, json, os, pathlib, threading
    import gua

    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            if self.path.startswith("/away"):
                self.send_response(302)
                self.send_header("Location", "/good/api/sessions")
                self.end_headers()
                return
            body = json.dumps([{"path": "thesis/late.ipynb", "kernel": {"id": "KERNEL"}}, {"odd": 1}]).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body if self.path.startswith("/good") else b"not JSON")

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = pathlib.Path(os.environ["JUPYTER_RUNTIME_DIR"])
    folder.mkdir()

    def write(name, **more):
        url = f"http://localhost:{server.server_port}/{name}/"
        (folder / f"nbserver-{name}.json").write_text(json.dumps(
            {"url": url, "token": name + "-token", "pid": os.getpid(), "notebook_dir": "/home/bob", **more}))

    write("good")
    write("away")
    write("broken")
    write("ended", pid=2 ** 22 + 1)
    write("elsewhere", url="http://192.0.2.1:8888/")
    write("file", url="file:///etc/passwd")
    (folder / "nbserver-junk.json").write_text("{")
    (folder / "nbserver-link.json").symlink_to(folder / "nbserver-good.json")
    print(json.dumps([gua.notebooks(), sorted(asked)]))
    who = gua.who(no_store=True, source="sim", ask_servers=True)
    print(json.dumps({row["notebook"]: row["notebook_path"] for row in who["holders"] if row["notebook"]}))
    """


def test_a_server_says_which_notebook_a_kernel_runs(python, tmp_path):
    """Only servers of this user that run on this host are asked, once each, and their tokens go nowhere else."""
    kernel = "2f6b1c9e-0d4a-4b7f-9a53-7c1e0d2b8f46"  # of the simulated lab
    out = python(SERVERS.replace("KERNEL", kernel), env={"JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")})
    (paths, asked), names = map(json.loads, out.splitlines())
    assert paths == {kernel: "/home/bob/thesis/late.ipynb"}
    assert asked == [[f"/{name}/api/sessions", f"token {name}-token"] for name in ("away", "broken", "good")]
    assert names == {f"jupyter:{kernel}": "/home/bob/thesis/late.ipynb"}  # not what the lab says

"""Pods as a node has them: real processes in kubepods cgroups of the kernel, seen from the host and from a cgroup
namespace, named by the kubelet's logs, and ended by the cluster's own command."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile

import pytest

from conftest import BUILD, GUA, clean_environment, wait_for
from ender import start_as
from enforcing import hosts  # noqa: F401 (a fixture)
from fake import fake_driver
from kubelet import FakeKubelet, pod

V1, V2 = pathlib.Path("/sys/fs/cgroup/systemd"), pathlib.Path("/sys/fs/cgroup/unified")
V2 = V2 if V2.is_mount() else pathlib.Path("/sys/fs/cgroup")
ID = "3f2a91c4d5e6" + "ab" * 26
UID = "0f1e2d3c-4b5a-6978-8796-{:012x}"
SCENARIO = """host node
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 80GiB
process one pid file one
at 0s hold one card 0 memory 8GiB
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes cgroups and mounts")


class Node:
    """cgroups of pods below a directory of their own names; `logs` stands for /var/log."""

    def __init__(self, where):
        self.logs, self.run, self.made = where / "log", where / "run", []
        (self.logs / "pods").mkdir(parents=True)
        self.run.mkdir()
        self.logs.chmod(0o755)

    def cgroup(self, mount, path):
        """Makes a cgroup; returns its list of processes."""
        if not mount.is_mount():
            pytest.skip(f"{mount} is not mounted")
        at = mount
        for name in path.split("/"):
            at /= name
            try:
                at.mkdir(exist_ok=True)
            except OSError as error:
                pytest.skip(f"no cgroup can be made here: {error}")
            self.made.append(at)
        return at / "cgroup.procs"

    def name(self, space, pod, uid):
        (self.logs / f"pods/{space}_{pod}_{uid}").mkdir()

    def inside(self, *more, cgroup=None):
        """Words before a command: it sees these logs and /run; with `cgroup` it is in that cgroup, in a namespace of its own."""
        enter = f"echo $$ > {cgroup}; " if cgroup else ""
        return ["sh", "-c", f"{enter}exec unshare -m{'C' if cgroup else ''} sh -c 'mount --bind {self.logs} /var/log && mount --bind {self.run} /run && exec \"$@\"' sh \"$@\"",
                "sh", *more]

    def close(self):
        for at in reversed(self.made):
            with contextlib.suppress(FileNotFoundError):
                for pid in (at / "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
                wait_for(lambda at=at: not (at / "cgroup.procs").read_text())
            with contextlib.suppress(OSError):  # another test may have pods there
                at.rmdir()


@pytest.fixture
def node(tmp_path):
    tmp_path.chmod(0o755)
    made = Node(tmp_path)
    yield made
    made.close()


def slices(qos, n, runtime="cri-containerd", id_=ID):
    """A path as systemd's driver makes it. Another test may make pods at the same time: `n` differs by process."""
    middle = f"kubepods-{qos}" if qos else "kubepods"
    above = f"kubepods.slice/{middle}.slice" if qos else "kubepods.slice"
    return f"{above}/{middle}-pod{UID.format(n).replace('-', '_')}.slice/{runtime}-{id_}.scope"


def shown(tmp_path, before):
    env = clean_environment(**fake_driver(tmp_path, SCENARIO, FAKENVML_PIDS=tmp_path / "pids"))
    run = subprocess.run([*before, GUA, "who", "--json", "--no-store"], env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    holder, = json.loads(run.stdout)["holders"]
    return holder["user"], holder["pod"], holder["container"]


PATHS = {
    "burstable": (V2, lambda n: slices("burstable", n)),
    "guaranteed": (V2, lambda n: slices("", n, "crio")),
    "cgroupfs": (V2, lambda n: f"kubepods/besteffort/pod{UID.format(n)}/{ID}"),
    "kind": (V2, lambda n: "kubelet.slice/kubelet-" + slices("burstable", n).replace("/kube", "/kubelet-kube")),
    "v1": (V1, lambda n: slices("besteffort", n)),
    "v1-cgroupfs": (V1, lambda n: f"kubepods/burstable/pod{UID.format(n)}/{ID}"),
}


@pytest.mark.other_programs
@pytest.mark.parametrize("how", PATHS)
def test_a_process_of_root_in_a_pod(node, tmp_path, how):
    """It is its namespace's, on the host and in the cgroup namespace of another pod, of the same class and of another."""
    mount, path = PATHS[how][0], PATHS[how][1](os.getpid())
    uid = UID.format(os.getpid())
    procs = node.cgroup(mount, path)
    child = start_as(0, "sleep", "600")
    try:
        procs.write_text(str(child.pid))
        (tmp_path / "pids").mkdir()
        (tmp_path / "pids/one").write_text(str(child.pid))
        assert shown(tmp_path, node.inside())[:2] == ("root", uid)  # nobody has named it
        node.name("ml", "web-7c9d8f6b5d-x7k2p", uid)
        runtime = "crio" if "/crio-" in path else "containerd" if "/cri-" in path else "container"
        expected = ("ml", "ml/web-7c9d8f6b5d-x7k2p", f"{runtime}:3f2a91c4d5e6")
        assert shown(tmp_path, node.inside()) == expected
        other = path.replace(uid, UID.format(1 << 40)).replace(uid.replace("-", "_"), UID.format(1 << 40).replace("-", "_"))
        for own in (other, other.replace("burstable", "besteffort")):
            view = node.inside(cgroup=node.cgroup(mount, own.replace(ID, "cd" * 32)))
            assert shown(tmp_path, view) == expected
    finally:
        child.kill()
        child.wait()


@pytest.fixture
def open_path():
    """A directory that other users can read, as pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="gua-pods-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


def test_logs_that_are_roots(open_path):
    """Since Kubernetes 1.30 only root may list them: others get names from the table that the watch writes."""
    tmp_path, node = open_path, Node(open_path)
    uid = UID.format(os.getpid())
    node.name("ml", "db-0", uid)
    (node.logs / "pods").chmod(0o750)
    child = start_as(0, "sleep", "600")
    try:
        node.cgroup(V2, slices("", os.getpid())).write_text(str(child.pid))
        (tmp_path / "pids").mkdir()
        (tmp_path / "pids/one").write_text(str(child.pid))
        other = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
        assert shown(tmp_path, node.inside(*other))[:2] == ("root", uid)
        with FakeKubelet(tmp_path / "k.sock", pod("ml", "db-0", [("nvidia.com/gpu", ["GPU-aaaa"])])):
            subprocess.run([*node.inside(), GUA, "lease", "watch", "kubelet", "--once", "--leases", node.run / "gua/leases", "--set",
                            f"leases.kubelet={tmp_path}/k.sock"], env=clean_environment(), check=True, timeout=120)
        assert shown(tmp_path, node.inside(*other))[:2] == ("ml", "ml/db-0")
    finally:
        child.kill()
        child.wait()
        node.close()


class Recorder:
    """A recorder of a node, and what its store says about a process."""

    def __init__(self, node, tmp_path):
        self.db = tmp_path / "gua.db"
        (tmp_path / "pids").mkdir()
        env = clean_environment(**fake_driver(tmp_path, SCENARIO, FAKENVML_PIDS=tmp_path / "pids", FAKENVML_REAP=1))
        self.process = subprocess.Popen([*node.inside(), GUA, "daemon", "--foreground", "--db", self.db, "--interval", "1s", "--drain",
                                         "500ms", "--glance", "200ms"], env=env, stderr=subprocess.DEVNULL)
        self.node, self.pids = node, tmp_path / "pids"

    def start(self, n):
        """A process of root in a pod, on the card; returns it and the uid of the pod."""
        procs = self.node.cgroup(V2, slices("burstable", n, id_=f"{n:064x}"[::-1]))
        child = start_as(0, "sleep", "600")
        procs.write_text(str(child.pid))
        (self.pids / ".one").write_text(str(child.pid))
        (self.pids / ".one").rename(self.pids / "one")
        return child, UID.format(n)

    def shown(self, pid):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)) as db:
            return db.execute("SELECT user, pod FROM process WHERE pid = ?", (pid,)).fetchall()
        return []

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0


@pytest.fixture
def recorder(node, tmp_path):
    made = Recorder(node, tmp_path)
    yield made
    made.stop()


@pytest.mark.waits
def test_five_hundred_pods_and_one_that_comes_and_goes_each_second(node, recorder):
    """Each is named, although its directory is as old as it."""
    for n in range(500):
        node.name(f"team-{n % 20}", f"pod-{n}", UID.format(1 << 44 | n))
    for n in range(6):
        child, uid = recorder.start(os.getpid() << 8 | n)
        node.name("ml", f"job-{n}", uid)
        wait_for(lambda pid=child.pid, n=n: recorder.shown(pid) == [("ml", f"ml/job-{n}")], lambda pid=child.pid: recorder.shown(pid))
        child.kill()
        child.wait()
        (node.logs / f"pods/ml_job-{n}_{uid}").rmdir()


@pytest.mark.waits
def test_names_that_come_later_than_the_recorder(node, recorder):
    """Where nothing named pods when it saw the process first."""
    child, uid = recorder.start(os.getpid())
    try:
        wait_for(lambda: recorder.shown(child.pid) == [("root", uid)], lambda: recorder.shown(child.pid))
        node.name("ml", "db-0", uid)
        wait_for(lambda: recorder.shown(child.pid) == [("ml", "ml/db-0")], lambda: recorder.shown(child.pid))
    finally:
        child.kill()
        child.wait()


SCALES = """#!/bin/sh
printf '%s\\n' "$@" > {where}/args
kill -9 $(cat {where}/pids/pod)
"""


@pytest.mark.skipif(not (BUILD / "gua-enforce").exists(), reason="built without gua enforce")
def test_a_pod_of_root_is_ended_by_the_cluster(hosts, tmp_path):  # noqa: F811
    """By the command of [end] kubernetes, with its names as arguments. One of kube-system is left alone."""
    host = hosts({"pod": (0, "8GiB"), "system": (1, "8GiB")})
    node = Node(host.where)
    try:
        scale = host.where / "scale"
        scale.write_text(SCALES.format(where=host.where))
        scale.chmod(0o755)
        host.config.write_text(host.config.read_text().replace("[end]\n", f"[end]\nkubernetes = {scale} --zero\n")
                               .replace("[rule all]", "[rule all]\nnamespace = m* kube-system")
                               .replace("warn_again = 4s\nfinal_notice = 2s\nend = 7s",
                                        "warn_again = never\nfinal_notice = 1s\nend = 4s"))
        children = {}
        for n, (key, space) in enumerate({"pod": "ml", "system": "kube-system"}.items()):
            uid = os.getpid() << 8 | n
            children[key] = host.start(key, uid=0)
            node.cgroup(V2, slices("burstable", uid, id_=f"{uid:064x}"[::-1])).write_text(str(children[key].pid))
            node.name(space, "web-7c9d8f6b5d-x7k2p", UID.format(uid))
        before = node.inside()
        host.service("daemon", "--foreground", "--db", host.db, "--interval", "1s", "--drain", "500ms", before=before)
        host.arm()
        host.enforce(before=before)
        host.wait_for_step(children["pod"].pid, "ended")
        assert children["pod"].wait(60) == -signal.SIGKILL and children["system"].poll() is None
        steps = host.steps(children["pod"].pid)
        assert [result for step, _, result in steps if step == "signal"] == [f"{scale} --zero ml web-7c9d8f6b5d-x7k2p"]
        *names, reason = (host.where / "args").read_text().splitlines()
        assert names == ["--zero", "ml", "web-7c9d8f6b5d-x7k2p", "web"]
        assert reason.startswith("it held 8.0 GiB and was idle for ") and reason.endswith(": rule all of gua")
        assert host.steps(children["system"].pid) == []
        why = host.gua("enforce", "explain", children["system"].pid, "--db", host.db).stdout
        assert "its pod is in the namespace kube-system" in why and "UID_MIN" not in why
    finally:
        node.close()


@pytest.mark.skipif(not (BUILD / "gua-enforce").exists(), reason="built without gua enforce")
def test_a_pod_without_a_command_gets_no_signal(hosts):  # noqa: F811
    host = hosts({"pod": (0, "8GiB")})
    node = Node(host.where)
    try:
        host.config.write_text(host.config.read_text().replace("[rule all]", "[rule all]\nnamespace = ml")
                               .replace("warn_again = 4s\nfinal_notice = 2s\nend = 7s",
                                        "warn_again = never\nfinal_notice = 1s\nend = 4s"))
        child = host.start("pod")
        node.cgroup(V2, slices("", os.getpid())).write_text(str(child.pid))
        node.name("ml", "db-0", UID.format(os.getpid()))
        before = node.inside()
        host.service("daemon", "--foreground", "--db", host.db, "--interval", "1s", "--drain", "500ms", before=before)
        host.arm()
        host.enforce(before=before)
        host.wait_for_step(child.pid, "spared")
        assert [result for step, _, result in host.steps(child.pid) if step in ("spared", "signal")] == [
            "it is a pod, and kubernetes in [end] of gua.conf names no command"]
        assert child.poll() is None
    finally:
        node.close()

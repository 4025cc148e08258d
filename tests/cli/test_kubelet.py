"""gua lease watch kubelet: leases and names from a fake kubelet that speaks the real protocol."""
import os

import pytest

from conftest import BUILD, ROOT, gua
from kubelet import FakeKubelet, field, pod
from test_lease import listed

pytestmark = pytest.mark.skipif(not (BUILD / "gua-kubelet").exists(), reason="built without curl")

A, B, C = (f"GPU-{letter * 8}-0000-0000-0000-000000000000" for letter in "abc")
M = "MIG-dddddddd-0000-0000-0000-000000000000"
OLD = f"MIG-{A}/3/0"
GPU = "nvidia.com/gpu"


def uid(n):
    return f"0f1e2d3c-4b5a-6978-8796-{n:012x}"


@pytest.fixture
def host(tmp_path):
    """A host with a kubelet's logs and cgroups: host(NAMESPACE, POD, UID, lives=True) adds a pod."""
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/stat").write_text("cpu  1\nbtime 1700000000\n")
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("this-boot\n")

    def add(space, name, id_, lives=True):
        (tmp_path / f"var/log/pods/{space}_{name}_{id_}").mkdir(parents=True)
        if lives:
            (tmp_path / f"sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{id_.replace('-', '_')}.slice"
             ).mkdir(parents=True)
    add.root = tmp_path
    add.place = tmp_path / "run/gua/leases"
    return add


def watch(host, *settings):
    return gua("lease", "watch", "kubelet", "--once", "--leases", host.place, "--root", host.root,
               "--set", f"leases.kubelet={host.root}/k.sock", *settings)


def leases(host):
    return {one["id"]: one for one in listed(host.place, "--root", host.root)["leases"]}


def test_devices_in_all_forms(host):
    pods = [
        pod("ml", "whole-0", [(GPU, [A]), (GPU, [B, A])], [(GPU, [C])]),  # one card by two NUMA nodes
        pod("ml", "slice-x7k2p", [(f"{GPU}.shared", [f"{A}::3", f"{A}::4"])]),
        pod("ml", "mig", [("nvidia.com/mig-1g.10gb", [M])]), pod("ml", "old", [("nvidia.com/mig-1g.5gb", [OLD])]),
        pod("gke", "plain", [(GPU, ["nvidia0", "nvidia1/vgpu2"])]), pod("gke", "instance", [(GPU, ["nvidia0/gi1/vgpu2"])]),
        pod("web", "none", []), pod("web", "nic", [("intel.com/sriov", ["0000:3b:02.1"])]),
        pod("jet", "son", [(GPU, ["tegra"])]), pod("Bad_\x1b", "name", [(GPU, [A])]), pod("ml", "evil", [(GPU, [f"{A},{B}", "GPU-\n"])]),
        pod("ml", "n" * 200, [(GPU, [B])])]
    host("ml", "n" * 200, uid(1))
    with FakeKubelet(host.root / "k.sock", *pods) as fake:
        run = watch(host)
        assert (run.returncode, run.stdout, run.stderr, fake.calls) == (0, "", "", 1)
    found = leases(host)
    long = "ml/" + "n" * 115 + "~0f1e2d3c"
    assert {id_: (one["cards"], one["share"]) for id_, one in found.items()} == {
        "ml/whole-0": (f"{A},{B},{C}", 1), "ml/slice-x7k2p": (A, None), "ml/mig": (M, 1), "ml/old": (OLD, 1),
        "gke/plain": ("?,?", None), "gke/instance": ("?", None), long: (B, 1)}
    assert {one["owner"] for one in found.values()} == {"ml", "gke"}
    assert "\ncards = \"0,1\"\nnumbering = \"minor\"\n" in (host.place / "pod/gke%2Fplain").read_text()


def test_pods_come_finish_and_keep_their_names(host):
    host("ml", "db-0", uid(1), lives=False)  # a stateful set: the pod before had the same name
    host("ml", "db-0", uid(2))
    host("ml", "done", uid(3), lives=False)
    (host.root / "var/log/containers").mkdir()
    container = f"db-0_ml_main-{'ab' * 32}.log"
    (host.root / "var/log/containers" / container).touch()
    with FakeKubelet(host.root / "k.sock", *(pod("ml", name, [(GPU, [A])]) for name in ("db-0", "done", "new"))) as fake:
        fake.versions = ("v1alpha1",)  # before Kubernetes 1.20
        assert watch(host).returncode == 0 and fake.calls == 2
        # A pod that has a directory and no cgroup has finished; of one without a directory nothing is known.
        assert sorted(leases(host)) == ["ml/db-0", "ml/new"]
        table = host.place / "pod/.names"
        assert table.read_text().splitlines() == sorted(
            [container, f"ml_db-0_{uid(1)}", f"ml_db-0_{uid(2)}", f"ml_done_{uid(3)}"])
        assert table.stat().st_mode & 0o777 == 0o644
        before = (table.stat().st_ino, (host.place / "pod/ml%2Fdb-0").stat().st_ino)
        fake.answer = pod("ml", "db-0", [(GPU, [A])])
        assert watch(host).returncode == 0
        assert sorted(leases(host)) == ["ml/db-0"]
        assert (host.place / "pod/ml%2Fdb-0").stat().st_ino == before[1]  # what has not changed is not written
        fake.answer = b""
        assert watch(host).returncode == 0 and leases(host) == {}


def test_five_hundred_pods_in_small_pieces(host):
    pods = [pod("ml", f"pod-{i}", [(GPU, [A if i % 2 else B])] + [("x", ["y" * 60])] * 3) for i in range(500)]
    with FakeKubelet(host.root / "k.sock", *pods) as fake:
        assert len(fake.answer) > 100_000  # more than the first window
        fake.chunk = 1000
        assert watch(host).returncode == 0
    assert len(list((host.place / "pod").glob("ml%2F*"))) == 500


def test_a_kubelet_that_does_not_answer(host):
    """Its leases stay, and the reason is said."""
    assert "gua-kubelet" in watch(host).stderr  # there is no socket
    with FakeKubelet(host.root / "k.sock", pod("ml", "a", [(GPU, [A])])) as fake:
        assert watch(host).returncode == 0
        good = fake.answer
        beat = host.place / "pod/.heartbeat"
        os.utime(beat, (1, 1))
        for change, why in (({"status": 8}, "status 8: no%20such%1b thing"), ({"status": 0, "versions": ()}, "status 12"),
                            ({"versions": ("v1",), "cut": 20}, "cut"), ({"cut": 0, "answer": good[:-3]}, "not a list of pods"),
                            ({"answer": b"\x0f"}, "not a list of pods"), ({"answer": field(1, field(3, b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))}, "not a list"),
                            ({"answer": good, "silent": True}, "ime")):
            for name, value in change.items():
                setattr(fake, name, value)
            run = watch(host, "--set", "leases.timeout=300ms" if fake.silent else "leases.timeout=20s")
            assert run.returncode == 1 and run.stderr.startswith("gua lease: ") and why in run.stderr, run.stderr
            assert list(leases(host)) == ["ml/a"] and beat.stat().st_mtime == 1
    os.unlink(host.root / "k.sock")  # the kubelet restarts: its socket is made anew
    with FakeKubelet(host.root / "k.sock", pod("ml", "b", [(GPU, [A])])):
        assert watch(host).returncode == 0 and list(leases(host)) == ["ml/b"]


@pytest.mark.any_build
def test_the_unit_sees_the_kubelet_and_its_logs_only():
    unit = (ROOT / "dist/gua-lease@kubelet.service").read_text()
    for line in ("RuntimeDirectory=gua/leases/pod", "TemporaryFileSystem=/var:ro", "CapabilityBoundingSet=", "PrivateNetwork=yes",
                 "BindReadOnlyPaths=-/var/lib/kubelet/pod-resources -/var/log/pods -/var/log/containers", "NoNewPrivileges=yes"):
        assert f"\n{line}\n" in unit
    assert "\nUser=" not in unit and "AF_INET" not in unit


def test_wrong_usage():
    for words in (["watch"], ["watch", "nomad"]):
        run = gua("lease", *words)
        assert run.returncode == 2 and "slurm or kubelet" in run.stderr

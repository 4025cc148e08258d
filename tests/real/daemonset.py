"""What the recorder of the daemon set sees: our image in a container of podman that stands for its pod, with the pids of the host and
a cgroup namespace of its own, beside pods of real processes."""
import contextlib
import json
import os
import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent.parent / folder) for folder in ("cli", ".")]
from ender import start_as  # noqa: E402
from kubelet import FakeKubelet, pod  # noqa: E402
from test_kubernetes import IMAGE, LEAST, at, node, podman  # noqa: E402, F401 (fixtures)
from test_pods import UID, V1, V2, Node  # noqa: E402


@pytest.mark.parametrize("qos", ["besteffort", "burstable"])
def test_pods_have_names_there(podman, node, qos):  # noqa: F811
    """Of its own class of service and of another."""
    host = Node(node / "host")
    uid = UID.format(os.getpid())
    (node / f"log/pods/ml_web-7c9d8f6b5d-x7k2p_{uid}").mkdir()
    child = start_as(0, "sleep", "600")
    try:
        mount = V1 if V1.is_mount() else V2  # what make_podman() leaves
        host.cgroup(mount, f"kubepods/{qos}/pod{uid}/{'ab' * 32}").write_text(str(child.pid))
        (node / "fake/pids/one").write_text(str(child.pid))
        run = podman("run", "--rm", "--network", "none", *LEAST, "--cgroupns", "private", "--cgroup-parent", f"/kubepods/besteffort/pod{UID.format(1)}",
                     *at(node, ("fake", "/fake", "ro"), ("log/pods", "/var/log/pods", "ro")), "-e", "GUA_NVML=/fake/libnvidia-ml.so.1",
                     "-e", "FAKENVML_SCENARIO=/fake/scenario", "-e", "FAKENVML_PIDS=/fake/pids", IMAGE, "who", "--json", "--no-store")
        holder, = json.loads(run.stdout)["holders"]
        assert (holder["user"], holder["pod"]) == ("ml", "ml/web-7c9d8f6b5d-x7k2p")
        assert holder["container"].endswith(":abababababab")
        # The watch sees the cgroups of the host: a pod that has finished has none.
        (node / f"log/pods/ml_done_{UID.format(2)}").mkdir()
        card = [("nvidia.com/gpu", ["GPU-aaaaaaaa-0000-0000-0000-000000000000"])]
        with FakeKubelet(node / "pod-resources/kubelet.sock", pod("ml", "web-7c9d8f6b5d-x7k2p", card), pod("ml", "done", card)):
            podman("run", "--rm", "--network", "none", *LEAST, "--cgroupns", "private", "-v", "/sys/fs/cgroup:/sys/fs/cgroup:ro",
                   *at(node, ("leases", "/run/gua/leases", "rw"), ("pod-resources", "/var/lib/kubelet/pod-resources", "ro"),
                       ("log/pods", "/var/log/pods", "ro")), IMAGE, "lease", "watch", "kubelet", "--once")
        assert [path.name for path in (node / "leases/pod").glob("ml*")] == ["ml%2Fweb-7c9d8f6b5d-x7k2p"]
    finally:
        child.kill()
        child.wait()
        host.close()
        # Podman leaves the cgroup that stands for our pod.
        for at_ in sorted(pathlib.Path("/sys/fs/cgroup").glob("**/kubepods/**/"), reverse=True):
            with contextlib.suppress(OSError):
                at_.rmdir()

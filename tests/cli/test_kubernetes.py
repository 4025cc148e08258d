"""What a cluster gets: the manifests as kubectl renders them, the example that ends pods, and the image, run by podman."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest
import yaml

from conftest import BUILD, ROOT, FAKE_NVML, wait_for
from kubelet import FakeKubelet, pod
from test_enforce_live import make_podman

DIST = ROOT / "dist/kubernetes"
OWN = ROOT / "dist/kubernetes/ending/scale-to-zero"


@pytest.fixture(scope="module")
def rendered():
    """All objects, by kind."""
    if not shutil.which("kubectl"):
        pytest.skip("needs kubectl")
    run = subprocess.run(["kubectl", "kustomize", DIST], check=True, capture_output=True, text=True)
    return {one["kind"]: one for one in yaml.safe_load_all(run.stdout)}


@pytest.mark.any_build
def test_the_daemon_set_sees_all_cards_and_claims_none(rendered):
    pod_ = rendered["DaemonSet"]["spec"]["template"]["spec"]
    assert pod_["hostPID"] is True and not pod_.get("hostNetwork") and not pod_.get("hostIPC")
    assert pod_["automountServiceAccountToken"] is False and pod_["priorityClassName"] == "system-node-critical"
    assert pod_["tolerations"] == [{"operator": "Exists"}] and pod_["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    containers = {one["name"]: one for one in pod_["containers"]}
    assert set(containers) == {"recorder", "kubelet", "serve"}
    for name, one in containers.items():
        right = one["securityContext"]
        assert (right["readOnlyRootFilesystem"], right["allowPrivilegeEscalation"], right["capabilities"]) == (True, False, {"drop": ["ALL"]})
        assert "privileged" not in right and not any("nvidia.com" in key for kind in one["resources"].values() for key in kind)
        assert one["image"] == "localhost/gua:0.1.0" and "memory" in one["resources"]["limits"]
        variables = {each["name"]: each.get("value") for each in one["env"]}
        assert variables["NVIDIA_VISIBLE_DEVICES"] == ("all" if name == "recorder" else "void")
    node, = [each for each in containers["recorder"]["env"] if each["name"] == "NODE_NAME"]
    assert node["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert "--host-name=$(NODE_NAME)" in containers["recorder"]["args"]
    assert containers["recorder"]["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 9848, "scheme": "HTTPS"}
    assert not any("insecure" in word for word in containers["serve"]["args"])
    assert {"--auth-file=/etc/gua-serve/auth", "--tls-cert=/etc/gua-serve/tls.crt"} < set(containers["serve"]["args"])


@pytest.mark.any_build
def test_what_of_the_host_is_seen_and_written(rendered):
    pod_ = rendered["DaemonSet"]["spec"]["template"]["spec"]
    paths = {one["name"]: one["hostPath"]["path"] for one in pod_["volumes"] if "hostPath" in one}
    writes = {(one["name"], paths[mount["name"]]) for one in pod_["containers"] for mount in one["volumeMounts"]
              if mount["name"] in paths and not mount.get("readOnly")}
    assert writes == {("recorder", "/var/lib/gua"), ("serve", "/var/lib/gua"), ("kubelet", "/run/gua/leases")}
    seen = {one["name"]: {mount["mountPath"] for mount in one["volumeMounts"] if mount["name"] in paths} for one in pod_["containers"]}
    logs = {"/run/gua/leases", "/var/log/pods", "/var/log/containers"}
    assert seen == {"recorder": logs | {"/var/lib/gua", "/etc/machine-id"}, "serve": {"/var/lib/gua"},
                    "kubelet": logs | {"/var/lib/kubelet/pod-resources", "/sys/fs/cgroup"}}
    table = (DIST / "README.md").read_text()
    assert all(f"`{path}`" in table for path in paths.values())  # what each buys


@pytest.mark.any_build
def test_metrics_reach_prometheus_by_node_and_namespace(rendered):
    labels = rendered["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
    assert rendered["Service"]["spec"]["selector"] == rendered["PodMonitor"]["spec"]["selector"]["matchLabels"] == labels
    end, = rendered["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert (end["port"], end["path"], end["scheme"]) == ("https", "/metrics", "https")
    assert end["authorization"]["credentials"] == {"name": "gua-serve", "key": "token"}
    assert {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "instance"} in end["relabelings"]
    named, = [one["configMap"]["name"] for one in rendered["DaemonSet"]["spec"]["template"]["spec"]["volumes"] if "configMap" in one]
    assert named == rendered["ConfigMap"]["metadata"]["name"]
    check = subprocess.run([BUILD / "gua", "config", "--check", DIST / "gua.conf"], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr
    assert "identities = namespace\n" in rendered["ConfigMap"]["data"]["gua.conf"]


KUBECTL = """#!/bin/sh
printf '%s\\n' "$*" >> "{log}"
case "$*" in
*"get pod web-7c9d8f6b5d-x7k2p "*) echo "ReplicaSet web-7c9d8f6b5d" ;;
*"get ReplicaSet web-7c9d8f6b5d "*) echo "Deployment web" ;;
*"get pod db-0 "*) echo "StatefulSet db" ;;
*"get pod train-x7k2p "*) echo "Job train" ;;
*"get pod odd "*) echo "DaemonSet odd" ;;
esac
"""


@pytest.mark.any_build
@pytest.mark.parametrize("pod_name, last", [
    ("web-7c9d8f6b5d-x7k2p", "-n ml scale --replicas=0 Deployment web"), ("db-0", "-n ml scale --replicas=0 StatefulSet db"),
    ("train-x7k2p", '-n ml patch Job train -p {"spec":{"suspend":true}}'), ("bare", "-n ml delete pod bare --wait=false"),
])
def test_the_owner_of_a_pod_is_scaled_to_zero(tmp_path, pod_name, last):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL.format(log=tmp_path / "log"))
    kubectl.chmod(0o755)
    env = {**os.environ, "KUBECTL": str(kubectl)}
    subprocess.run([OWN, "ml", pod_name, "guess", "it was idle; $(reboot)"], check=True, env=env)
    log = (tmp_path / "log").read_text().splitlines()
    assert log[-1] == last and log[-2].endswith("gua/ended-because=it was idle; $(reboot)")
    (tmp_path / "log").unlink()
    for words in (["ml", "odd", "odd", "why"], ["kube-system", "web", "web", "why"]):
        assert subprocess.run([OWN, *words], env=env, capture_output=True).returncode == 1
    assert "scale" not in (tmp_path / "log").read_text() and "delete" not in (tmp_path / "log").read_text()


OWNED = """apiVersion: v1
kind: Pod
metadata:
  name: web
  ownerReferences:
    - {apiVersion: v1, kind: Other, name: other, uid: a}
    - {apiVersion: apps/v1, kind: ReplicaSet, name: web-7c9d8f6b5d, uid: b, controller: true}
"""


@pytest.mark.any_build
def test_the_question_for_the_owner_is_kubectls(tmp_path):
    """As kubectl answers it, of what owns a pod the one that controls it."""
    if not shutil.which("kubectl"):
        pytest.skip("needs kubectl")
    (tmp_path / "pod.yaml").write_text(OWNED)
    question, = re.findall(r"'(jsonpath=.*)'", OWN.read_text())
    run = subprocess.run(["kubectl", "annotate", "--local", "-f", tmp_path / "pod.yaml", "x=y", "-o", question], capture_output=True,
                         text=True, timeout=60)
    assert run.stdout == "ReplicaSet web-7c9d8f6b5d", run.stderr


SCENARIO = """host simulated
card 0 uuid GPU-aaaaaaaa-0000-0000-0000-000000000000 name "NVIDIA A100" memory 80GiB
process one pid file one
at 0s hold one card 0 memory 8GiB
"""


@pytest.fixture(scope="module")
def podman():
    """Podman with files of its own, and the image in it. Its paths must be short."""
    if os.geteuid() != 0 or not shutil.which("podman"):
        pytest.skip("needs podman and root")
    where = pathlib.Path(tempfile.mkdtemp(prefix="gua-podman-"))
    run = subprocess.run([ROOT / "tools/image", BUILD, where / "image.tar"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    again = subprocess.run([ROOT / "tools/image", BUILD, where / "again.tar"], capture_output=True, text=True)
    assert again.returncode == 0 and (where / "again.tar").read_bytes() == (where / "image.tar").read_bytes()
    command = [str(make_podman(where))]

    def call(*words, check=True):
        run = subprocess.run([*command, *map(str, words)], capture_output=True, text=True, timeout=300)
        if run.returncode == 125 or (check and run.returncode != 0 and "OCI runtime" in run.stderr):
            pytest.skip(f"this machine runs no container: {run.stderr.strip()[-200:]}")
        assert not check or run.returncode == 0, run.stderr
        return run
    try:
        call("load", "-i", where / "image.tar")
        yield call
    finally:
        subprocess.run([*command, "rm", "-f", "-t", "0", "-a"], capture_output=True, timeout=120)
        subprocess.run(["umount", "-l", where / "store/overlay"], capture_output=True)
        shutil.rmtree(where, ignore_errors=True)


LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
LEAST = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "0:0", "--pid", "host", *LIMITS]
IMAGE = "localhost/gua:0.1.0"


@pytest.fixture
def node(tmp_path):
    """What a pod of the daemon set mounts, and a card of the fake driver that a process holds."""
    for folder in "store", "fake/pids", "leases", "pod-resources", "log/pods", "log/containers", "secret/..data":
        (tmp_path / folder).mkdir(parents=True)
    tmp_path.chmod(0o755)
    shutil.copy(FAKE_NVML, tmp_path / "fake")
    (tmp_path / "fake/scenario").write_text(SCENARIO)
    child = subprocess.Popen(["sleep", "300"])
    (tmp_path / "fake/pids/one").write_text(str(child.pid))
    yield tmp_path
    child.kill()
    child.wait()


def at(node, *folders):
    words = []
    for folder, place, mode in folders:
        words += ["-v", f"{node / folder}:{place}:{mode}"]
    return words


@pytest.mark.any_build
def test_a_recorder_a_server_and_a_watch_in_containers(podman, node):
    """Of a small image without a shell, with the rights of the daemon set, on the fake driver and a fake kubelet."""
    image, = json.loads(podman("inspect", "--type", "image", IMAGE).stdout)
    assert image["Size"] <= 40_000_000 and image["Config"]["User"] == "9848:9848"
    assert "NVIDIA_VISIBLE_DEVICES=all" in image["Config"]["Env"]
    assert podman("run", "--rm", "--network", "none", *LIMITS, IMAGE, "version").stdout == "gua 0.1.0\n"
    assert podman("run", "--rm", "--network", "none", *LIMITS, "--entrypoint", "/bin/sh", IMAGE, check=False).returncode != 0
    fake = ["-e", "GUA_NVML=/fake/libnvidia-ml.so.1", "-e", "FAKENVML_SCENARIO=/fake/scenario", "-e", "FAKENVML_PIDS=/fake/pids"]
    uid = "0f1e2d3c-4b5a-6978-8796-000000000001"
    (node / f"log/pods/ml_web-0_{uid}").mkdir()
    mounts = at(node, ("leases", "/run/gua/leases", "rw"), ("pod-resources", "/var/lib/kubelet/pod-resources", "ro"),
                ("log/pods", "/var/log/pods", "ro"), ("log/containers", "/var/log/containers", "ro"))
    with FakeKubelet(node / "pod-resources/kubelet.sock", pod("ml", "web-0", [("nvidia.com/gpu", ["GPU-aaaaaaaa-0000-0000-0000-000000000000"])])):
        podman("run", "--rm", "--network", "none", *LEAST, *mounts, IMAGE, "lease", "watch", "kubelet", "--once")
    assert "GPU-aaaaaaaa-0000-0000-0000-000000000000" in (node / "leases/pod/ml%2Fweb-0").read_text()
    assert (node / "leases/pod/.names").read_text() == f"ml_web-0_{uid}\n"

    mounts = at(node, ("store", "/var/lib/gua", "rw"), ("fake", "/fake", "ro"), ("leases", "/run/gua/leases", "ro"))
    podman("run", "-d", "--name", "recorder", "--network", "none", *LEAST, *fake, *mounts, "-v", "/etc/machine-id:/etc/machine-id:ro", IMAGE,
           "daemon", "--foreground", "--db=/var/lib/gua/gua.db", "--host-name=node-1", "--interval", "1s", "--drain", "500ms")
    db = node / "store/gua.db"

    def rows(sql):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as store:
            return store.execute(sql).fetchall()
        return []
    wait_for(lambda: rows("SELECT user FROM holder JOIN process ON process.id = process"), lambda: podman("logs", "recorder").stderr)
    assert rows("SELECT hostname, machine_id FROM host") == [("node-1", pathlib.Path("/etc/machine-id").read_text().strip())]
    wait_for(lambda: rows("SELECT owner, name FROM lease") == [("ml", "ml/web-0")], lambda: rows("SELECT * FROM lease"))
    # Within the container gua sees the host's processes, the lease and its store.
    doctor = podman("exec", "recorder", "/usr/local/bin/gua", "doctor", "--db", "/var/lib/gua/gua.db", "--json", check=False)
    checks = {one["check"]: one["result"] for one in json.loads(doctor.stdout)["checks"]}
    assert checks["leases"] == "ok" and "problem" not in checks.values(), doctor.stdout

    wait_for(lambda: rows("SELECT * FROM usage_1m"), lambda: podman("logs", "recorder").stderr)  # the first tick
    assert "node-1" in podman("exec", "recorder", "gua", "report", "--by", "namespace").stdout  # as the README says

    # Secrets and config maps are links to files in a directory that is replaced as a whole.
    secret = node / "secret/..data"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=node-1",
                    "-keyout", secret / "tls.key", "-out", secret / "tls.crt", "-days", "2"], check=True, capture_output=True)
    (secret / "auth").write_text("prometheus:0123456789abcdef0123456789abcdef\n")
    for name in "auth", "tls.key", "tls.crt":
        (secret / name).chmod(0o400)
        (node / "secret" / name).symlink_to(f"..data/{name}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    podman("run", "-d", "--name", "serve", "--network", "host", *LEAST, *at(node, ("store", "/var/lib/gua", "rw"), ("secret", "/etc/gua-serve", "ro")),
           IMAGE, "serve", "--db=/var/lib/gua/gua.db", f"--listen=127.0.0.1:{port}", "--auth-file=/etc/gua-serve/auth",
           "--tls-cert=/etc/gua-serve/tls.crt", "--tls-key=/etc/gua-serve/tls.key", "--set", "metrics.identities=namespace")
    trusting = ssl.create_default_context(cafile=secret / "tls.crt")
    trusting.check_hostname = False

    def get(path, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers), timeout=60,
                                        context=trusting) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError:
            return 0, ""
    wait_for(lambda: get("/healthz")[0] == 200, lambda: podman("logs", "serve").stderr)
    assert get("/metrics")[0] == 401
    status, metrics = get("/metrics", Authorization="Bearer 0123456789abcdef0123456789abcdef")
    assert status == 200 and set(re.findall(r'gua_identity_gpu_seconds_total{identity="(\w+)"', metrics)) == {"ml", "_other", "_unknown"}
    for name in "recorder", "serve":
        podman("stop", "-t", "60", name)
        assert podman("inspect", "-f", "{{.State.ExitCode}}", name).stdout == "0\n"

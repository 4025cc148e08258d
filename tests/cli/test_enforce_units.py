"""The units of gua enforce and gua-end: they are valid, closed, and not enabled."""
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

DIST = BUILD / "dist"
pytestmark = [pytest.mark.any_build,
              pytest.mark.skipif(not (DIST / "gua-enforce.service").exists(), reason="built without gua enforce")]


def setting(unit, name):
    return re.findall(rf"(?m)^{name}=(.*)$", unit)


def unit(name):
    path = DIST / name if (DIST / name).exists() else ROOT / "dist" / name
    return path.read_text()


@pytest.mark.parametrize("name, most", [("gua-enforce.service", 2.0), ("gua-end@.service", 1.0), ("gua-lease@.service", 2.0),
                                        ("gua-lease@kubelet.service", 2.5)])
def test_a_service_is_closed(name, most):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze")
    run = subprocess.run(["systemd-analyze", "security", "--offline=true", DIST / name], capture_output=True, text=True)
    if "Overall exposure level" not in run.stdout:
        pytest.skip("this systemd-analyze cannot look at a file")
    assert float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", run.stdout).group(1)) <= most


def test_only_gua_end_has_a_privilege():
    assert setting(unit("gua-enforce.service"), "CapabilityBoundingSet") == [""]
    assert setting(unit("gua-enforce.service"), "NoNewPrivileges") == ["yes"]
    end = unit("gua-end@.service")
    assert setting(end, "CapabilityBoundingSet") == setting(end, "AmbientCapabilities") == ["CAP_KILL"]
    assert setting(end, "PrivateNetwork") == ["yes"]
    # Its own first steps must be allowed.
    assert "capset" in setting(end, "SystemCallFilter")[0]


def test_a_reload_is_sighup():
    assert setting(unit("gua-enforce.service"), "ExecReload") == ["/bin/sh -c 'kill -HUP $MAINPID'"]


def test_only_gua_enforce_reaches_gua_end():
    socket = unit("gua-end.socket")
    assert setting(socket, "SocketMode") == ["0600"]
    assert setting(socket, "SocketUser") == setting(unit("gua-enforce.service"), "User") == ["gua-enforce"]
    path, = setting(socket, "ListenSequentialPacket")
    assert f"GUA_END_SOCKET={path}\n" in unit("gua-enforce.service")


def test_users_reach_the_socket():
    """It is where gua keep looks for it, and its directory goes with the service."""
    service = unit("gua-enforce.service")
    assert setting(service, "RuntimeDirectory") == ["gua-enforce"]
    assert setting(service, "RuntimeDirectoryMode") == ["0755"]
    assert "socket = /run/gua-enforce/socket\n" in (ROOT / "dist" / "gua.conf").read_text()


def test_directories_are_what_the_service_writes():
    tmpfiles = (ROOT / "dist" / "gua-enforce.tmpfiles").read_text()
    written = re.findall(r"-(/\S+)", setting(unit("gua-enforce.service"), "ReadWritePaths")[0])
    assert written
    for path in written:
        assert re.search(rf"(?m)^d {path} \d+ gua-enforce gua ", tmpfiles), path

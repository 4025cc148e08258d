"""Asks the Jupyter servers of this user, on this host, which notebook a kernel runs: gua.notebooks(). Servers that name the
notebook in the kernel's environment (JPY_SESSION_NAME) need not be asked; notebook 6 does not. Nothing else of gua does
this: a server's token lets its holder run code."""
import json
import os
import pathlib
import stat
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_S = 2
LARGEST_BYTES = 1 << 20
HERE = {"localhost", "127.0.0.1", "::1"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for the server that wrote it down, and for no other."""

    def redirect_request(self, *_arguments):
        return None


_opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))


def _runtime_folder():
    """Where Jupyter's servers write down how to reach them."""
    if folder := os.environ.get("JUPYTER_RUNTIME_DIR"):
        return pathlib.Path(folder)
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return pathlib.Path(os.environ.get("JUPYTER_DATA_DIR") or os.path.join(data, "jupyter")) / "runtime"


def _servers():
    """What each server of this user wrote down. One that has ended is left out: its port may be another user's by now."""
    for path in sorted(_runtime_folder().glob("*server-*.json")):
        try:
            info = path.lstat()
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid() or info.st_size > LARGEST_BYTES:
                continue
            server = json.loads(path.read_text(encoding="utf-8"))
            if os.stat(f"/proc/{int(server['pid'])}").st_uid == os.getuid():
                yield server
        except (OSError, ValueError, KeyError, TypeError):
            continue


def _sessions(server):
    """The sessions of a server that listens on this host; none if it does not answer as it should."""
    try:
        address = urllib.parse.urlsplit(str(server["url"]))
        if address.scheme not in ("http", "https") or address.hostname not in HERE:
            return []
        request = urllib.request.Request(urllib.parse.urljoin(server["url"], "api/sessions"),
                                         headers={"Authorization": f"token {server.get('token', '')}"})
        with _opener.open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(LARGEST_BYTES))
    except (OSError, ValueError, KeyError):  # urllib's errors are OSErrors
        return []


def notebooks() -> dict[str, str]:
    """The paths of the notebooks that this user's Jupyter servers on this host run, by the id of their kernel."""
    found = {}
    for server in _servers():
        root = str(server.get("root_dir") or server.get("notebook_dir") or "")
        for session in _sessions(server):
            try:
                path, kernel = str(session["path"]), str(session["kernel"]["id"])
            except (KeyError, TypeError):
                continue
            found[kernel] = os.path.join(root, path.lstrip("/"))
    return found

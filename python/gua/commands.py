"""What the program gua says, as dictionaries: gua.who(), gua.report(), gua.pick()."""
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

from . import _lib, servers
from ._lib import GuaError

TIMEOUT_S = 60


def find(program):
    """The path of a program of gua, or None: beside the library, in the same installation, in PATH. gpu-tracker is a link
    to gua: another program of that name is gpu_tracker's own."""
    library, package = pathlib.Path(_lib.lib._name), pathlib.Path(__file__).resolve()
    places = [library.parent] if library.is_absolute() else []
    places += [folder / "bin" for folder in (*(library.parents if library.is_absolute() else ()), *package.parents)]
    found = [folder / program for folder in places]
    if path := shutil.which(program):
        found.append(pathlib.Path(path))
    return next((str(path) for path in found if os.access(path, os.X_OK) and path.resolve().name == "gua"), None)


def run(*arguments, timeout=TIMEOUT_S):
    """Runs the program; returns its completed process."""
    program = find("gua")
    if program is None:
        raise GuaError("the program gua is not installed. Install gua, or add its directory to PATH")
    driver = _lib.driver_path()
    try:
        return subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **({"GUA_NVML": driver} if driver else {})})
    except subprocess.TimeoutExpired:
        raise GuaError(f"gua {arguments[0]} has not ended within {timeout} s", _lib.BUSY) from None


def failure(done, command):
    """What a command that failed said last, as an exception."""
    said = done.stderr.strip().splitlines()
    text = said[-1].removeprefix("gua: ").removeprefix(f"gua {command}: ") if said else f"exit status {done.returncode}"
    if done.returncode == 2 and said:  # the usage follows the sentence
        text = said[0].removeprefix("gua: ").removeprefix(f"gua {command}: ")
    return GuaError(text, _lib.WRONG_USE if done.returncode == 2 else _lib.FAILED)


def document(*arguments, timeout=TIMEOUT_S):
    """The JSON document that a command prints; raises GuaError with the command's sentence if it fails."""
    done = run(*arguments, timeout=timeout)
    if done.returncode:
        raise failure(done, arguments[0])
    return json.loads(done.stdout)


def options(named):
    """Keyword arguments as options: since="7d" is --since=7d, mine=True is --mine; None and False are left out."""
    return [f"--{name.rstrip('_').replace('_', '-')}" + ("" if value is True else f"={value}")
            for name, value in named.items() if value is not None and value is not False]


def who(ask_servers: bool = False, **named: Any) -> dict[str, Any]:
    """Who holds which card now, how much, and idle since when: the document of `gua who --json`, whose options are
    keyword arguments (db="gua.db"). With `ask_servers`, your own Jupyter servers say which notebook a kernel runs."""
    found = document("who", "--json", *options(named))
    paths = servers.notebooks() if ask_servers else {}
    for row in found["holders"]:
        kernel = (row["notebook"] or "").partition(":")[2]
        row["notebook_path"] = paths.get(kernel, row["notebook_path"])
    return found


def report(since: str | None = None, **named: Any) -> dict[str, Any]:
    """What cards did and who held them in a window: the document of `gua report --json`, whose options are keyword
    arguments: gua.report(since="7d", by="notebook")."""
    return document("report", "--json", *options({"since": since, **named}))


def pick(count: int = 1, **named: Any) -> list[str]:
    """The UUIDs of free cards, at least `count`, as `gua pick` finds them; its options are keyword arguments
    (free_for="10m", min_free="20G", wait="1h"). Raises GuaError if there are not enough. Before CUDA starts:

        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gua.pick())"""
    wait = named.get("wait")
    done = run("pick", "-n", count, *options(named), timeout=None if wait else TIMEOUT_S)
    if done.returncode:
        raise failure(done, "pick")
    return done.stdout.strip().replace(",", " ").split()


def prices():
    """The [price] lines of gua.conf: [(pattern, money)], and the currency; nothing if there are none."""
    try:
        values = document("config", "--json", timeout=5)["values"]
        currency = next((row["value"] for row in values if row["section"] == "money" and row["key"] == "currency"), "")
        return [(row["key"], float(row["value"])) for row in values if row["section"] == "price"], currency
    except (GuaError, OSError, ValueError, KeyError):
        return [], ""


def price_of(times):
    """What seconds on cards cost: ", 3.20 USD" of [(seconds, (index, MIG instance or None, name of the card))]; "" without
    a price for each. As in gua.conf(5), an instance costs what a line with MIG in its name says."""
    known, currency = prices() if times else ([], "")
    costs = [next((money * seconds / 3600 for pattern, money in known
                   if (instance is None or "mig" in pattern.lower()) and fnmatch.fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]"))),
                  None) for seconds, (_, instance, name) in times]
    return "" if not costs or None in costs else f", {sum(costs):.2f} {currency}"


def running_ipython():
    """The IPython in which this program runs, or None."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None

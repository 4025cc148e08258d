#!/usr/bin/python3
"""Draws the walk of `gua enforce` from a pass to a signal, as tools/walk draws that of a command.

usage: tests/walk_enforce.py BUILD    (as root; BUILD is a build with gua enforce, which plays the rest)

A process holds a card of the fake driver and does not use it. A recorder and gua enforce of BUILD bring it to its
final notice; the pass that ends it is walked, from enforcer_pass() to ending_verify(), which is after the signal."""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def load_walk():
    loader = importlib.machinery.SourceFileLoader("walk", str(ROOT / "tools" / "walk"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("walk", loader))
    loader.exec_module(module)
    return module


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ["GUA_BUILD"] = str(pathlib.Path(sys.argv[1]).resolve())
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "cli")]
    import conftest
    from enforcing import Host
    walk = load_walk()
    walk.build()
    where = pathlib.Path(tempfile.mkdtemp(prefix="gua-walk-"))
    host = Host(where, {"idle": (0, "8GiB")})
    try:
        idle = host.start("idle")
        host.record()
        host.arm()
        enforcer = host.enforce()
        host.wait_for_step(idle.pid, "warn", "final notice")
        host.stop(enforcer)
        time.sleep(4)   # until the end is due
        walk.make_trace(walk.places_of("enforcer_pass"))
        subprocess.run([walk.BUILD / "gua", "enforce", "run", "--once", "--db", host.db],
                       env=conftest.clean_environment(**host.env), stdout=sys.stderr, check=True)
        walk.draw(walk.entries("ending_verify"), True)
        assert any(step == "signal" for step, _, _ in host.steps(idle.pid)), host.steps(idle.pid)
    finally:
        host.close()
        shutil.rmtree(where, ignore_errors=True)


main()

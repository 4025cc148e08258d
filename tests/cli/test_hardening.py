"""How the installed programs and the library are built: what makes a fault in them harder to use."""
import json
import platform
import re
import subprocess

import pytest

from conftest import BUILD, ROOT

pytestmark = pytest.mark.any_build

OPTIONS = json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text())
OPTION = {option["name"]: option["value"] for option in OPTIONS}


def readelf(path, *what):
    return subprocess.run(["readelf", "-W", *what, path], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def binaries(installed):
    """Every ELF file that `make install` installs."""
    found = [path for path in installed.rglob("*") if path.is_file() and not path.is_symlink()
             and path.read_bytes()[:4] == b"\x7fELF"]
    names = {path.name for path in found}
    assert "gua" in names and any(name.startswith("libgua.so") for name in names)
    return found


def test_code_can_be_anywhere(binaries):
    for path in binaries:
        assert re.search(r"Type:\s+DYN", readelf(path, "-h")), path
        if ".so" not in path.name:
            assert "PIE" in readelf(path, "-d"), path


def test_tables_are_read_only_and_the_stack_has_no_code(binaries):
    for path in binaries:
        segments, dynamic = readelf(path, "-l"), readelf(path, "-d")
        assert "GNU_RELRO" in segments and "BIND_NOW" in dynamic + dynamic.replace(" NOW", " BIND_NOW"), path
        flags, = re.findall(r"GNU_STACK(?:\s+0x\w+){5}\s+(\S+)", segments)
        assert flags == "RW", path


def test_no_memory_is_written_and_run_and_no_library_is_looked_for_elsewhere(binaries):
    for path in binaries:
        flags = re.findall(r"^\s+LOAD(?:\s+0x\w+){5}\s+([RWE ]{3})", readelf(path, "-l"), re.MULTILINE)
        assert flags and not any("W" in flag and "E" in flag for flag in flags), path
        assert not re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", readelf(path, "-d")), path


def test_the_same_programs_are_checked_for_what_they_link(binaries):
    """tools/lint-links has a row for each of them."""
    rows = (ROOT / "tools" / "lint-links").read_text()
    for path in binaries:
        assert f'"{path.name}"' in rows, path


def test_stacks_are_guarded(binaries):
    for path in binaries:
        assert "__stack_chk_fail" in readelf(path, "--dyn-syms"), path


def test_calls_with_a_length_are_checked(binaries):
    if OPTION["b_sanitize"] != "none" or OPTION["optimization"] in ("0", "g"):
        pytest.skip("only in a build with optimisation and without sanitizers")
    for path in binaries:
        assert re.search(r"__\w+_chk\b", readelf(path, "--dyn-syms").replace("__stack_chk_fail", "")), path


def test_every_file_is_compiled_so():
    """What cannot be seen in the programs: Debian's start files lack the mark for CET, so the linker drops it."""
    commands = [entry["command"] for entry in json.loads((BUILD / "compile_commands.json").read_text())]
    wanted = ["-fstack-protector-strong", "-fstack-clash-protection"]
    if platform.machine() == "x86_64":
        wanted.append("-fcf-protection")
    assert commands and all(flag in command for command in commands for flag in wanted)

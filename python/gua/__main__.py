"""python -m gua: runs gpu-tracker, the program, as `python -m gpu_tracker` does."""
import os
import pathlib
import shutil
import sys

from . import _lib

PROGRAM = "gpu-tracker"


def candidates():
    """Where the program may be, best first: beside the library, in the same installation, in PATH."""
    library, package = pathlib.Path(_lib.lib._name), pathlib.Path(__file__).resolve()
    if library.is_absolute():
        yield library.parent / PROGRAM
        yield from (folder / "bin" / PROGRAM for folder in library.parents)
    yield from (folder / "bin" / PROGRAM for folder in package.parents)
    if found := shutil.which(PROGRAM):
        yield pathlib.Path(found)


def find():
    """The path of the program, or None. It is a link to gua: another program of this name is gpu_tracker's own."""
    for path in candidates():
        if os.access(path, os.X_OK) and path.resolve().name == "gua":
            return str(path)
    return None


def main():
    program = find()
    if program is None:
        sys.exit(f"python -m gua runs the program {PROGRAM}, which is not installed. Install gua, or add its directory "
                 "to PATH.")
    os.execv(program, [PROGRAM, *sys.argv[1:]])


if __name__ == "__main__":
    main()

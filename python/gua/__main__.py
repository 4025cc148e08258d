"""python -m gua: runs gpu-tracker, the program, as `python -m gpu_tracker` does."""
import os
import sys

from .commands import find

PROGRAM = "gpu-tracker"


def main():
    program = find(PROGRAM)
    if program is None:
        sys.exit(f"python -m gua runs the program {PROGRAM}, which is not installed. Install gua, or add its directory "
                 "to PATH.")
    os.execv(program, [PROGRAM, *sys.argv[1:]])


if __name__ == "__main__":
    main()

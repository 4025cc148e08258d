"""What other tools take for the same, on the same driver library and in turn: nvidia-smi, gpustat, nvtop, where they are
installed. docs/compare.md has the figures. NVIDIA's and nvtop's packages are in Debian's non-free and contrib."""
import re
import resource
import shutil
import statistics
import subprocess
import time

from live import crowded, environment, screen

FIELDS = ["--query-gpu=timestamp,name,utilization.gpu,memory.used", "--format=csv"]


def version_of_smi():
    """The driver must have the version of the program."""
    said = subprocess.run(["nvidia-smi", "-h"], capture_output=True, text=True, check=False).stdout
    found = re.search(r" -- v([0-9.]+)", said)
    return found.group(1) if found else "535.261.03"


def shot(command, env):
    """(CPU ms with children, wall ms, largest resident MiB of any process so far)."""
    def used():
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (now.ru_utime + now.ru_stime) * 1000
    begin, before = time.monotonic(), used()
    done = subprocess.run(["/usr/bin/time", "-f", "%M", *command], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, check=False)
    wall, cpu = (time.monotonic() - begin) * 1000, used() - before
    if done.returncode:  # a program that gives up is quick
        raise RuntimeError(f"{command[0]} failed: {done.stderr[-300:]}")
    return cpu, wall, int(done.stderr.split()[-1]) / 1024


def beside(table, figure, ours, theirs, env, runs):
    """Ours and theirs in turn: the same moments of the same machine."""
    if not shutil.which(theirs[0]):
        table.skip(figure, f"{theirs[0]} is not installed")
        return
    theirs = [shutil.which(theirs[0]), *theirs[1:]]  # in the caller's PATH
    both = [(shot(ours, env), shot(theirs, env)) for _ in range(runs)]
    (cpu, wall, mib), (other_cpu, other_wall, other_mib) = (
        tuple(statistics.median(run[side][what] for run in both) for what in range(3)) for side in range(2))
    table.row(figure, cpu / other_cpu, "x", 1, f"CPU {cpu:.1f} ms against {other_cpu:.1f} ms; wall {wall:.1f} against "
              f"{other_wall:.1f} ms; peak {mib:.1f} against {other_mib:.1f} MiB; medians of {runs}", judged=False)


def rows(table, say, build, folder, quick):
    gua, runs = str(build / "gua"), 5 if quick else 21
    processes = [subprocess.Popen(["sleep", "600"]) for _ in range(32)]
    try:
        say("one shot with 16 cards and 32 processes")
        env = environment(build, crowded(folder / "tools.scenario", processes, more=f"driver {version_of_smi()}"), folder)
        beside(table, "smi: the table, part of nvidia-smi's CPU", [gua, "smi"], ["nvidia-smi"], env, runs)
        beside(table, "smi: a query, part of nvidia-smi's CPU", [gua, "smi", *FIELDS], ["nvidia-smi", *FIELDS], env, runs)
        beside(table, "smi: -q, part of nvidia-smi's CPU", [gua, "smi", "-q"], ["nvidia-smi", "-q"], env, runs)
        beside(table, "stat: part of gpustat's CPU", [gua, "stat", "--no-store"], ["gpustat"], env, runs)
        if shutil.which("nvtop"):
            seconds, rounds = (5, 1) if quick else (10, 3)
            pairs = [(screen([gua, "top"], env, seconds), screen([shutil.which("nvtop")], env, seconds)) for _ in range(rounds)]
            (cpu, kib), (other, other_kib) = (tuple(statistics.median(pair[side][what] for pair in pairs) for what in range(2))
                                              for side in range(2))
            table.row("top: part of nvtop's CPU at 1 s", cpu / other, "x", 1, f"{cpu:.2f} against {other:.2f} % of a core; "
                      f"resident {kib / 1024:.1f} against {other_kib / 1024:.1f} MiB; medians of {rounds}", judged=False)
        else:
            table.skip("top: part of nvtop's CPU at 1 s", "nvtop is not installed")
    finally:
        for process in processes:
            process.kill()
            process.wait()

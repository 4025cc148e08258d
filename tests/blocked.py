"""A host with a process that blocks everyone who reads its memory: files of it in a recorded /proc are FIFOs."""
import os

BOOT_ID = "0b0e61c1-6f5c-4b7e-9a57-1f2d3c4b5a69"
MEMORY_FILES = ("cmdline", "environ", "smaps_rollup", "io")

SCENARIO = """
host lab
driver 560.35.05
card 0 uuid GPU-aaaa name "NVIDIA A100" memory 80GiB
card 1 uuid GPU-bbbb name "NVIDIA A100" memory 80GiB
process stuck pid 1001
process other pid 1002
process bobs  pid 1003
at 0s hold stuck card 0 memory 2GiB
at 0s hold other card 0 memory 1GiB
at 0s hold bobs card 1 memory 3GiB
"""


def add_process(root, pid, uid, words, comm="python", parent=1):
    """A process of a recorded tree. Returns its directory."""
    directory = root / "proc" / str(pid)
    directory.mkdir(parents=True)
    numbers = "0 0 0 0 0 0 0 0 0 0 10 5 0 0 20 0 1 0"  # fields 5 to 21
    (directory / "stat").write_text(f"{pid} ({comm}) S {parent} {' '.join(numbers.split()[1:])} {pid * 10} 1000000 200\n")
    (directory / "statm").write_text("300 250 10 5 0 90 0\n")  # exact; stat is late
    (directory / "status").write_text(f"Name:\t{comm}\nTgid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
                                      "VmHWM:\t    2000 kB\n")
    (directory / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    (directory / "environ").write_bytes(b"HOME=/\0")
    (directory / "cgroup").write_text("0::/user.slice\n")
    (directory / "loginuid").write_text("4294967295")
    (directory / "io").write_text("read_bytes: 4096\nwrite_bytes: 8192\n")
    (directory / "smaps_rollup").write_text("00400000-7ffd00000000 ---p 00000000 00:00 0 [rollup]\n"
                                            "Rss: 800 kB\nPss: 400 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: 300 kB\n"
                                            "SwapPss: 0 kB\n")
    return directory


def block(directory):
    """From now on, everyone who opens these files waits for ever."""
    for name in MEMORY_FILES:
        (directory / name).unlink()
        os.mkfifo(directory / name)


def make_root(root):
    """alice has a process that blocks (1001) and another one (1002), bob has one (1003)."""
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text(BOOT_ID + "\n")
    (root / "proc/stat").write_text("cpu  10 0 10 100 0 0 0 0 0 0\nbtime 1700000000\n")
    (root / "proc/loadavg").write_text("0.00 0.00 0.00 1/100 1003\n")
    (root / "proc/meminfo").write_text("MemTotal: 16000000 kB\nMemFree: 8000000 kB\nBuffers: 0 kB\nCached: 0 kB\n"
                                       "SReclaimable: 0 kB\n")
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n")
    block(add_process(root, 1001, 1001, ["python", "train.py"]))
    add_process(root, 1002, 1001, ["python", "eval.py"])
    add_process(root, 1003, 1002, ["python", "bob.py"])
    return root

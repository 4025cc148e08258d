"""Talks to gua-end as gua-enforce does: one record for each request, one for each reply."""
import collections
import ctypes
import errno
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys

MAGIC = 0x31646E65
HOLD, CHECK, TERM, KILL, RELEASE = range(1, 6)
DONE, GONE, ANOTHER, NOT_HIS, EXEMPT, NO_PIDFD, DENIED, FULL, REFUSED = range(9)
Reply = collections.namedtuple("Reply", "ask pid answer start text")


def start_ticks(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


class Ender:
    def __init__(self, program, **options):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.process = subprocess.Popen([program], stdin=theirs, stdout=subprocess.DEVNULL, **options)
        theirs.close()
        self.ended = []     # pids that gua-end reported

    def receive(self):
        magic, ask, pid, answer, start, text = struct.unpack("=IIIIQ160s", self.socket.recv(4096))
        assert magic == MAGIC
        return Reply(ask, pid, answer, start, text.rstrip(b"\0").decode())

    def send(self, record):
        self.socket.send(record)
        reply = self.receive()
        while reply.ask == 0 and reply.pid:
            self.ended.append(reply.pid)
            reply = self.receive()
        return reply

    def ask(self, what, pid, uid, start=None):
        start = start_ticks(pid) if start is None else start
        return self.send(struct.pack("=IIIIQq", MAGIC, what, pid, 0, start, uid))

    def wait_for_end(self, pid):
        while pid not in self.ended:
            reply = self.receive()
            assert (reply.ask, reply.answer) == (0, GONE)
            self.ended.append(reply.pid)

    def close(self):
        self.socket.close()
        return self.process.wait(60)


libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent():
    libc.prctl(1, signal.SIGKILL)       # PR_SET_PDEATHSIG


def start_as(uid, *argv, **options):
    """Starts a program as a user, if we may choose; it ends with us, whatever ends us."""
    who = {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen(argv, preexec_fn=end_with_parent, **who, **options)


def without_call(number):
    """For preexec_fn: from now on the kernel does not know the system call (ENOSYS)."""
    load, jump, give = 0x20, 0x15, 0x06     # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
    program = b"".join(struct.pack("=HBBI", *line) for line in (
        (load, 0, 0, 0), (jump, 0, 1, number), (give, 0, 0, 0x00050000 | errno.ENOSYS), (give, 0, 0, 0x7fff0000)))
    kept = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(kept)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0                          # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.c_ulong(ctypes.addressof(head)), 0, 0) == 0     # PR_SET_SECCOMP, a filter


def reuse_a_pid(program):
    """Runs in a pid namespace of its own: a process that is held ends, and another gets its pid. Prints what gua-end
    does with a request for the first."""
    uid = 12345
    ender = Ender(program)
    victim = start_as(uid, "sleep", "600")
    pid, start = victim.pid, start_ticks(victim.pid)
    held = ender.ask(HOLD, pid, uid)
    victim.kill()
    victim.wait()
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
    bystander = start_as(uid, "sleep", "600")
    late = ender.ask(TERM, pid, uid, start)
    ender.ask(RELEASE, pid, uid, start)
    # Both may have started within one clock tick; then only the descriptor tells them apart.
    never_held = ender.ask(TERM, pid, uid, start - 1 if start == start_ticks(pid) else start)
    alive = bystander.poll() is None
    print(bystander.pid == pid, held.answer == DONE, late.answer == GONE, never_held.answer == ANOTHER, alive)
    bystander.kill()
    bystander.wait()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    reuse_a_pid(sys.argv[1])

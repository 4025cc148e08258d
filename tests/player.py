"""Plays lives with real processes: starts each at its time, writes its pid for the fake driver, ends it at
its time. Ends when the last life has ended, or on SIGTERM; no process of the play survives it.

    /usr/bin/python3 tests/player.py LIVES.json PIDS START

LIVES.json is from tests/lives.py, PIDS a directory that gets a file with the pid for each life, START the
unix time of the scenario's time 0. In the end PIDS/played.json says what happened: for each life its pid,
when it truly started, since when the driver knows it, and for how long the system and the driver disagreed because the player was late.
"""
import ctypes
import heapq
import json
import os
import pathlib
import signal
import struct
import sys
import time

from lives import read_lives, uid_of

SYS_CLONE3 = 435
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def clone_with_pid(pid):
    """fork() whose child gets this pid; -1 where the kernel refuses or the pid is in use."""
    wanted = ctypes.c_int(pid)
    arguments = struct.pack("=11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(wanted), 1, 0)
    return libc.syscall(SYS_CLONE3, arguments, len(arguments))


def become_sleeper(uid):
    """In the child: another user's process that sleeps, and ends with the player."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execv("/bin/sleep", ["sleep", "infinity"])


def start_sleeper(uid, wanted_pid):
    """Returns its pid once it runs as its user."""
    ready, held = os.pipe()     # `held` closes with execv()
    pid = clone_with_pid(wanted_pid) if wanted_pid else -1
    if pid < 0:
        pid = os.fork()
    if pid == 0:
        try:
            become_sleeper(uid)
        finally:
            os._exit(127)
    os.close(held)
    os.read(ready, 1)
    os.close(ready)
    return pid


class Player:
    def __init__(self, lives, pids, start):
        self.lives = {life.key: life for life in lives}
        self.pids, self.start = pathlib.Path(pids), start
        self.running, self.played = {}, {}

    def now_ms(self):
        return 1000 * (time.time() - self.start)

    def begin(self, life):
        before = self.played.get(life.pid_of)
        started = time.time()
        pid = start_sleeper(uid_of(life.user), before["pid"] if before else 0)
        self.running[life.key] = pid
        written = self.pids / f".{life.key}"
        written.write_text(str(pid))
        written.rename(self.pids / life.key)
        first_hold, now = life.events[0][0], self.now_ms()
        self.played[life.key] = {"pid": pid, "started": started, "known_ms": now, "late_ms": max(0, now - first_hold)}

    def finish(self, life):
        pid = self.running.pop(life.key)
        os.kill(pid, signal.SIGKILL if life.killed else signal.SIGTERM)
        os.waitpid(pid, 0)
        self.played[life.key]["late_ms"] += max(0, self.now_ms() - life.end)

    def play(self):
        due = [(at, key, act) for key, life in self.lives.items()
               for at, act in ((life.start, self.begin), (life.end, self.finish))]
        heapq.heapify(due)
        while due:
            at, key, act = heapq.heappop(due)
            time.sleep(max(0, at - self.now_ms()) / 1000)
            act(self.lives[key])

    def end(self):
        for pid in self.running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        (self.pids / "played.json").write_text(json.dumps(self.played))


def main(lives, pids, start):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    player = Player(read_lives(pathlib.Path(lives)), pids, float(start))
    try:
        player.play()
    finally:
        player.end()


if __name__ == "__main__":
    main(*sys.argv[1:])

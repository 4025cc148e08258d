"""usage: lock_memory.py FILE    of tests/fuse.py: blocks for ever with the lock of its own memory held, so that reading
/proc/PID/cmdline blocks too. It says "ready" just before.

It changes a page of the file in a shared mapping and then maps the file a second time, without a cache. The kernel
first writes the page back, and does so while it changes the process's memory."""
import mmap
import os
import sys

cached = os.open(sys.argv[1], os.O_RDWR)
page = mmap.mmap(cached, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
page[0] = 1
direct = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
mmap.mmap(direct, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ)
print("not blocked", flush=True)

"""A file system with one file that can be read and mapped, and that never takes a byte: a process that waits for it
may hold the lock of its own memory (see lock_memory.py). It speaks the kernel's protocol (linux/fuse.h) itself, and
needs /dev/fuse and the right to mount."""
import contextlib
import ctypes
import os
import stat
import struct
import subprocess
import sys

FILE_BYTES = 1 << 20
LOOKUP, GETATTR, OPEN, READ, INIT, OPENDIR = 1, 3, 14, 15, 26, 27
DIRECT_IO, KEEP_CACHE = 1, 2
NODE_ROOT, NODE_FILE = 1, 2
NO_SUCH_CALL = -38
NO_ANSWER = {2, 16, 36, 42}  # FORGET, WRITE, INTERRUPT, BATCH_FORGET

libc = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    """struct fuse_attr of the directory or of its file."""
    mode = stat.S_IFDIR | 0o755 if node == NODE_ROOT else stat.S_IFREG | 0o644
    size = 0 if node == NODE_ROOT else FILE_BYTES
    return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body, opened):
    """The body of the answer, or None: there is no such call. The file is cached when it is opened first, and not
    cached when it is opened again."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 65536, 1, 256, 0, *[0] * 8)
    if opcode == LOOKUP:
        return struct.pack("<4Q2I", NODE_FILE, 0, 3600, 3600, 0, 0) + attributes(NODE_FILE)
    if opcode == GETATTR:
        return struct.pack("<Q2I", 3600, 0, 0) + attributes(node)
    if opcode == READ:
        return bytes(struct.unpack_from("<QQI", body)[2])
    if opcode in (OPEN, OPENDIR):
        opened.append(opcode)
        return struct.pack("<Q2I", len(opened), KEEP_CACHE | (opened.count(OPEN) > 1) * DIRECT_IO, 0)
    return None


def serve(device):
    """Answers everything but writes, until the file system is gone."""
    opened = []
    with contextlib.suppress(OSError):
        while True:
            request = os.read(device, 1 << 17)
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            if opcode in NO_ANSWER:
                continue
            body = answer(opcode, node, request[40:], opened)
            status = NO_SUCH_CALL if body is None else 0
            body = body or b""
            os.write(device, struct.pack("<IiQ", 16 + len(body), status, unique) + body)


def main(directory):
    """Mounts the file system and serves it. When this process ends, everyone who waits for it gets an error."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"silent", os.fsencode(directory), b"fuse", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    print("ready", flush=True)
    serve(device)


@contextlib.contextmanager
def silent_file(directory):
    """Yields the path of the file, in a file system at `directory`; OSError: that cannot be done here."""
    server = subprocess.Popen([sys.executable, __file__, directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    try:
        if server.stdout.readline() != "ready\n":
            raise OSError(server.stderr.read().splitlines()[-1])
        yield os.path.join(directory, "file")
    finally:
        server.kill()
        server.communicate()
        libc.umount2(os.fsencode(directory), 2)  # MNT_DETACH


if __name__ == "__main__":
    main(sys.argv[1])

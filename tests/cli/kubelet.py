"""A fake kubelet: PodResourcesLister of pod-resources, gRPC by HTTP/2 frames (RFC 9113) over a unix socket."""
import socketserver
import struct
import threading

DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
# Of RFC 7541, appendix B: the letters of the headers that are looked for, as (code, bits).
CODES = {"/": (0x18, 6), ".": (0x17, 6), "1": (0x1, 5), "L": (0x67, 7), "P": (0x6b, 7), "R": (0x6d, 7), "a": (0x3, 5),
         "c": (0x4, 5), "d": (0x24, 6), "e": (0x5, 5), "g": (0x26, 6), "h": (0x27, 6), "i": (0x6, 5), "l": (0x28, 6),
         "n": (0x2a, 6), "o": (0x7, 5), "p": (0x2b, 6), "r": (0x2c, 6), "s": (0x8, 5), "t": (0x9, 5), "u": (0x2d, 6),
         "v": (0x77, 7)}


def huffman(text):
    bits = "".join(format(CODES[letter][0], f"0{CODES[letter][1]}b") for letter in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def has(block, text):
    """Whether a block of headers has this value, plain or as a Huffman code, with its length before it."""
    return any(bytes([flag | len(value)]) + value in block for flag, value in ((0, text.encode()), (0x80, huffman(text))))


def literal(name, value):
    """A header that is not indexed."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


# Protocol buffers: fields of bytes are enough.

def field(number, value):
    value = value.encode() if isinstance(value, str) else value
    size, length = len(value), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def pod(space, name, *containers):
    """Each container is a list of (resource, [device ids])."""
    body = field(1, name) + field(2, space)
    for devices in containers:
        made = field(1, "main") + b"\x1a\x03\x01\x02\x03"  # cpu_ids, packed
        for resource, ids in devices:
            topology = field(3, field(1, b"\x08\x01"))
            made += field(2, field(1, resource) + b"".join(field(2, one) for one in ids) + topology)
        body += field(3, made + field(5, field(2, "claim") + field(4, field(2, "gpu.nvidia.com"))))
    return field(1, body + b"\x20\x07")


class Call(socketserver.BaseRequestHandler):
    def read(self, n):
        data = b""
        while len(data) < n:
            more = self.request.recv(n - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    def frame(self):
        head = self.read(9)
        payload = self.read(int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                key, value = struct.unpack(">HI", payload[i:i + 6])
                if key == 4:
                    self.window[1] = value
            self.send(SETTINGS, ACK, 0, b"")
        elif kind == WINDOW_UPDATE:
            self.window[min(stream, 1)] += int.from_bytes(payload, "big")
        elif kind == PING and not flags & ACK:
            self.send(PING, ACK, 0, payload)
        return kind, flags, stream, payload

    def send(self, kind, flags, stream, payload):
        self.request.sendall(len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload)

    def handle(self):
        try:
            self.talk()
        except OSError:
            pass  # the client has gone

    def talk(self):
        fake = self.server.fake
        self.window = [65535, 65535]  # of the connection and of the stream
        assert self.read(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        self.send(SETTINGS, 0, 0, b"")
        block, body = b"", b""
        while True:
            kind, flags, stream, payload = self.frame()
            if kind == HEADERS:
                block = payload
            elif kind == DATA:
                body += payload
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                fake.calls += 1
                self.answer(stream, block, body)
                block, body = b"", b""

    def answer(self, stream, block, body):
        fake = self.server.fake
        known = [version for version in fake.versions if has(block, f"/{version}.PodResourcesLister/List")]
        good = has(block, "application/grpc") and has(block, "trailers") and body == bytes(5)
        status = 12 if not known else fake.status if good else 3
        if fake.silent:
            fake.over.wait(60)
            return
        start = b"\x88" + literal("content-type", "application/grpc")
        end = literal("grpc-status", str(status)) + (literal("grpc-message", "no%20such%1b thing") if status else b"")
        if status:
            self.send(HEADERS, END_HEADERS | END_STREAM, stream, start + end)
            return
        self.send(HEADERS, END_HEADERS, stream, start)
        data = b"\0" + len(fake.answer).to_bytes(4, "big") + fake.answer
        data = data[:fake.cut] if fake.cut else data
        while data:
            room = min(*self.window, 16384, fake.chunk)
            if room <= 0:
                self.frame()
                continue
            self.send(DATA, 0, stream, data[:room])
            self.window = [left - len(data[:room]) for left in self.window]
            data = data[room:]
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, end)


class FakeKubelet:
    """Answers until the end of `with`."""

    def __init__(self, path, *pods):
        self.path, self.answer = str(path), b"".join(pods)
        self.status, self.calls, self.cut, self.chunk = 0, 0, 0, 16384
        self.silent, self.versions = False, ("v1", "v1alpha1")
        self.over = threading.Event()

    def __enter__(self):
        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True
        self.server = Server(self.path, Call)
        self.server.fake = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

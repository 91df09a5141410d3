"""A witness of logs, and a store of objects by address, for tests.

The witness is written from c2sp.org/tlog-witness, tlog-cosignature and signed-note, and from RFC 6962 section
2.1; it shares no code with the log that it watches: the standard library, and Ed25519 of `cryptography`.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

NOW = 1_800_000_000
"""When the witness signs: any time will do."""


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def consistent(old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: list[bytes]) -> bool:
    """RFC 6962 section 2.1.2, read backwards: both roots are computed from the proof, from the top down."""
    rest = list(proof)

    def roots(old: int, size: int, whole: bool) -> tuple[bytes, bytes]:
        """The hashes over the first `old` and over all of `size` leaves of a subtree."""
        if old == size:
            found = old_root if whole else rest.pop(0)
            return found, found
        split = 1
        while split * 2 < size:
            split *= 2
        if old <= split:
            before, left = roots(old, split, whole)
            return before, sha(b"\x01", left, rest.pop(0))
        before, right = roots(old - split, size - split, False)
        left = rest.pop(0)
        return sha(b"\x01", left, before), sha(b"\x01", left, right)

    try:
        before, after = roots(old_size, new_size, True)
    except IndexError:
        return False
    return not rest and before == old_root and after == new_root


class Witness:
    """Answers `add-checkpoint` for the logs that it knows; remembers the last checkpoint of each."""

    def __init__(self, name: str = "witness.example/w1", seed: bytes = b"w" * 32) -> None:
        self.name = name
        self.private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self.private.public_key().public_bytes_raw()
        self.logs: dict[str, tuple[bytes, bytes]] = {}
        """By origin: the id of the log's key, and the key."""
        self.seen: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.lock = threading.Lock()

    @property
    def key(self) -> str:
        material = base64.b64encode(b"\x04" + self.public).decode()
        return f"{self.name}+{self.key_id.hex()}+{material}"

    @property
    def key_id(self) -> bytes:
        return sha(self.name.encode(), b"\n\x04", self.public)[:4]

    def knows(self, key: str) -> None:
        """Watch the log with this public key."""
        name, digits, material = key.split("+", 2)
        self.logs[name] = (bytes.fromhex(digits), base64.b64decode(material)[1:])

    def add_checkpoint(self, body: str) -> tuple[int, str]:
        """The status and the text of the answer."""
        self.asked.append(body)
        head, _, checkpoint = body.partition("\n\n")
        first, *proof_lines = head.split("\n")
        text, _, signatures = checkpoint.rpartition("\n\n")
        text += "\n"
        origin, size_text, root_text = text.split("\n")[:3]
        if origin not in self.logs:
            return 404, "unknown log\n"
        if not self._signed(origin, text, signatures):
            return 403, "no signature of the log\n"
        if not first.startswith("old ") or not first[4:].isdigit() or int(first[4:]) > int(size_text):
            return 400, "bad old size\n"
        old, size, root = int(first[4:]), int(size_text), base64.b64decode(root_text)
        with self.lock:
            seen_size, seen_root = self.seen.get(origin, (0, sha()))
            if old != seen_size:
                return 409, f"{seen_size}\n"
            if old == size and root != seen_root:
                return 409, "another root\n"
            proof = [base64.b64decode(line) for line in proof_lines]
            fits = not proof if old in (0, size) else consistent(old, size, seen_root, root, proof)
            if not fits:
                return 422, "the proof does not hold\n"
            self.seen[origin] = (size, root)
        message = f"cosignature/v1\ntime {NOW}\n{text}".encode()
        signature = self.key_id + NOW.to_bytes(8, "big") + self.private.sign(message)
        return 200, f"\u2014 {self.name} {base64.b64encode(signature).decode()}\n"

    def _signed(self, origin: str, text: str, signatures: str) -> bool:
        key_id, public = self.logs[origin]
        for line in signatures.splitlines():
            _, name, encoded = line.split(" ")
            raw = base64.b64decode(encoded)
            if name == origin and raw[:4] == key_id:
                try:
                    Ed25519PublicKey.from_public_bytes(public).verify(raw[4:], text.encode())
                except InvalidSignature:
                    return False
                return True
        return False


class Bucket:
    """Objects by path: GET and PUT with a token."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.objects: dict[str, bytes] = {}


@contextmanager
def serving(witness: Witness | None = None, bucket: Bucket | None = None) -> Iterator[str]:
    """The address of a server of this machine, with a witness below /w and objects below /bucket."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if witness is None or self.path != "/w/add-checkpoint":
                self.answer(404, b"")
            else:
                status, text = witness.add_checkpoint(body)
                self.answer(status, text.encode(), "text/x.tlog.size" if status == 409 else "text/plain")

        def do_GET(self) -> None:
            if self.allowed():
                data = bucket.objects.get(self.path) if bucket is not None else None
                self.answer(404 if data is None else 200, data or b"")

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.allowed() and bucket is not None:
                bucket.objects[self.path] = data
                self.answer(201, b"")

        def allowed(self) -> bool:
            wanted = f"Bearer {bucket.token}" if bucket is not None and bucket.token else None
            if wanted is not None and self.headers["Authorization"] != wanted:
                self.answer(403, b"")
                return False
            return True

        def answer(self, status: int, data: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *ignored: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

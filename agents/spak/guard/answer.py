"""The hook of an agent: asks the guard of its project and answers as hooks do. A program of its own.

    python -I -S answer.py AGENT EVENT FOLDER < event.json

FOLDER holds the socket of `spak guard hooks serve`. It exits with 0 and what the guard wrote, or with 2 and a
sentence on standard error: where the guard says so, does not run, is too slow or answers anything else.
Behind the walls, without FOLDER, it asks the guard's port, and says nothing where that does not answer. It
imports two modules that are built in, since it is started for each call.
"""

import _socket
import os
import sys

NAME, FIRST, SILENCE_S = "hooks.sock", b"spak-guard ", 20.0
ABSENT = "the guard of this project does not answer, so the call is denied. Start it: spak guard hooks serve"


def ask(agent: str, event: str, folder: str) -> tuple[int, bytes]:
    """The guard's exit code and text. Raises: OSError, ValueError."""
    os.chdir(folder)
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.settimeout(SILENCE_S)
    line.connect(NAME)
    line.sendall(f"{agent} {event}\n".encode())
    while data := os.read(0, 1 << 16):
        line.sendall(data)
    line.shutdown(_socket.SHUT_WR)
    answer = b""
    while data := line.recv(1 << 16):
        answer += data
    head, newline, text = answer.partition(b"\n")
    code = head.removeprefix(FIRST)
    if not newline or not head.startswith(FIRST) or code not in (b"0", b"2") or not text.endswith(b"\n"):
        raise ValueError
    return int(code), text[:-1]


def ask_inside() -> tuple[int, bytes]:
    """The same behind the walls. Raises: OSError, ValueError, KeyError."""
    event = b""
    while data := os.read(0, 1 << 16):
        event += data
    line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    line.settimeout(SILENCE_S)
    line.connect(("127.0.0.1", int(os.environ["HTTPS_PROXY"].rpartition(":")[2])))
    line.sendall(b"POST /hook/text HTTP/1.0\r\ncontent-length: %d\r\n\r\n" % len(event) + event)
    answer = b""
    while data := line.recv(1 << 16):
        answer += data
    head, _, text = answer.partition(b"\r\n\r\n")
    return (2 if text and b" 200 " in head.partition(b"\r\n")[0] else 0), text


if __name__ == "__main__":
    outside = len(sys.argv) > 3
    try:
        code, text = ask(*sys.argv[1:4]) if outside else ask_inside()
    except BaseException:
        code, text = (2, ABSENT.encode()) if outside else (0, b"")
    os.write(2 if code else 1, text or (b"denied" if code else b""))
    os._exit(code)

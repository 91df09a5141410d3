"""B: bytes that reach a process of the host: through the network, a socket or a pipe."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harm.attack import Attack, line, python, tool, write

UNIX = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({})\ns.send(b'x' * 9)"
PIPE = "import os\nos.write(os.open({!r}, os.O_WRONLY | os.O_NONBLOCK), b'x')"
ADDRESSES = ("127.0.0.1", "127.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433")
NETWORK = {
    "TCP": "s = socket.create_connection(('127.0.0.1', @TCP@), 3); s.send(b'x')",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @UDP@))",
    "TCP, from a packet": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW).send(b'x' * 60)",
    "UDP to all": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 6, 1); s.sendto(b'x', ('255.255.255.255', @UDP@))",
    "another namespace": "import ctypes, os; c = ctypes.CDLL(None); c.setns(os.open('/proc/1/ns/net', 0), 0); s = socket.create_connection(('127.0.0.1', @TCP@), 3)",
    "a namespace of its own": "import ctypes; ctypes.CDLL(None).unshare(0x50000000); s = socket.create_connection(('127.0.0.1', @TCP@), 3)",
}
SOCKETS = {
    "of the folder": "'dev.sock'",
    "of the folder, by its own path": "'@BASE@/ws/dev.sock'",
    "outside": "'@BASE@/outside/daemon.sock'",
    "of a folder that is shown": "'node_modules/dep/dev.sock'",
    "abstract": "'\\0@ABSTRACT@'",
    "through /proc": "'/proc/1/root/@BASE@/outside/daemon.sock'",
}
PIPES = ("dev.pipe", "@BASE@/ws/dev.pipe", "node_modules/dep/dev.pipe")


def attacks() -> Iterator[Attack]:
    """The table."""
    for name, code in NETWORK.items():
        yield Attack(name, (python(f"import socket\n{code}"),))
    for name, address in SOCKETS.items():
        yield Attack(f"a socket {name}", (python(UNIX.format(address)),))
    for path in PIPES:
        yield Attack(f"a pipe {path}", (python(PIPE.format(path)), line(f"echo x 1<>{path}")))
    yield Attack(
        "a socket through a link",
        (line("ln -s @BASE@/outside/daemon.sock s; ln -s node_modules/dep n"), python(UNIX.format("'s'"))),
    )
    yield Attack(
        "a shell's own",
        (line("exec 3<>/dev/tcp/127.0.0.1/@TCP@; echo x >&3; echo x > /dev/udp/127.0.0.1/@UDP@"),),
    )
    for host in ADDRESSES:
        yield Attack(
            f"http_request {host}",
            (tool("http_request", url=f"http://{host}:@TCP@/x"),),
            config=f'HOSTS ["{host.strip("[]")}"]',
        )
    yield Attack(
        "git_push",
        (write("src/app.py", "X = 1\n"),),
        then=(
            tool("git_commit", message="x"),
            tool("git_push", url="http://127.0.0.1:@TCP@/x.git", branch="spak/x"),
        ),
        config='HOSTS ["127.0.0.1"]',
    )
    yield Attack(
        "git in the job",
        (line("git push http://127.0.0.1:@TCP@/x.git HEAD:x; git fetch http://127.0.0.1:@TCP@/x.git"),),
    )
    yield Attack(
        "settings of git for the host",
        (
            line(
                "git config remote.origin.url http://127.0.0.1:@TCP@/x.git; git config http.proxy http://127.0.0.1:@TCP@; git config core.sshCommand 'cat >/dev/tcp/127.0.0.1/@TCP@'"
            ),
        ),
        then=(tool("git_commit", message="x"),),
    )
    yield Attack(
        "a check",
        (python("print(1)"),),
        check='VALIDATOR Command { cmd: ["bash", "-c", "echo x > /dev/tcp/127.0.0.1/@TCP@; true"] }',
        then=(python("1"),),
    )

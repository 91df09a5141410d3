"""Q: disk, files, processes and memory of the host after a run, beyond its quota: `SIZE_MIB` and `FILES`."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harm.attack import Attack, line, python

SIZE_MIB, FILES, STORE_MIB = 64, 2000, 64
QUOTA = f"[workspace]\nsize_mib = {SIZE_MIB}\nfiles = {FILES}\nstore_mib = {STORE_MIB}\n"
CODES = {
    "links": "for n in range(9000):\n    os.symlink('a', f'l{n}')",
    "bytes": "block = os.urandom(1 << 20)\nfor n in range(200):\n    open(f'f{n}', 'wb').write(b'%d' % n + block)",
    "one large file": "f = open('f', 'wb')\nfor n in range(300):\n    f.write(os.urandom(1 << 20))",
    "reserved bytes": "os.posix_fallocate(os.open('f', os.O_CREAT | os.O_WRONLY), 0, 300 << 20)",
    "files": "os.mkdir('d')\nfor n in range(9000):\n    open(f'd/{n}', 'w').close()",
    "folders": "for n in range(9000):\n    os.mkdir(f'd{n}')",
    "unnamed files": "held = []\nfor n in range(80):\n    held.append(open('x', 'wb')); os.unlink('x')\n    held[-1].write(os.urandom(4 << 20)); held[-1].flush()",
    "below .git": "for n in range(300):\n    open(f'.git/f{n}', 'wb').write(os.urandom(1 << 20))",
    "below .git, files": "for n in range(9000):\n    open(f'.git/f{n}', 'w').close()",
    "/tmp and /dev/shm": "for n in range(600):\n    open(f'/tmp/f{n}', 'wb').write(os.urandom(1 << 20)); open(f'/dev/shm/f{n}', 'wb').write(os.urandom(1 << 20))",
    "processes": "for n in range(500):\n    if os.fork() == 0:\n        os.setsid(); os.execvp('sleep', ['@BASE@-left', '60'])",
    "memory": "held = [bytearray(64 << 20) for n in range(40)]",
    "output": "for n in range(300):\n    os.write(1, b'x' * (1 << 20))",
}


def attacks() -> Iterator[Attack]:
    """The table."""
    for name, code in CODES.items():
        yield Attack(name, (python(f"import os, signal\n{code}"),), settings=QUOTA)
    yield Attack(
        "the store, step after step",
        tuple(line("head -c 30000000 /dev/urandom > f") for _ in range(6)),
        settings=QUOTA,
    )
    yield Attack(
        "a daemon that ignores signals",
        (
            line(
                "trap '' HUP TERM INT; (setsid bash -c 'trap \"\" HUP TERM; while :; do :; done' @BASE@-left &) ; exit 0"
            ),
        ),
        settings=QUOTA,
    )

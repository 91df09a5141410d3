"""SPAK_WORK in a sealed check: `$SPAK_WORK COMMAND ...` runs the command on the work, without sealed files.

Gives its standard input to spak.evolve.suites.apart over a socket, and prints the command's output, with its
exit code.
"""

import json
import socket
import sys
from pathlib import Path

with socket.socket(socket.AF_UNIX) as talk:
    talk.connect(str(Path(sys.argv[0]).parent / "socket"))
    asked = {"cmd": sys.argv[1:], "stdin": sys.stdin.buffer.read().decode("latin-1")}
    talk.sendall(json.dumps(asked).encode() + b"\n")
    with talk.makefile("rb") as answers:
        answer = json.loads(answers.readline() or b'{"out": "", "err": "the work was not run", "exit": 125}')
sys.stdout.buffer.write(answer["out"].encode("latin-1"))
sys.stderr.buffer.write(answer["err"].encode("latin-1"))
sys.exit(answer["exit"])

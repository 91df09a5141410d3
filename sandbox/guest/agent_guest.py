"""The first process of a guarded agent's sandbox: hands the guard a socket to listen on, then starts the
agent.

Arguments: the descriptor of a Unix socket to the guard, `tty` or `pipes`, files of the agent's home as JSON
(texts by name), and the agent's command line. It
sends one message, the port as text, with the descriptor of a socket that listens on the sandbox's own
loopback, and for `tty` that of a terminal's master. The guard answers with a line when it listens. The
descriptor is then closed: nothing in here leads to the guard but that port. It stays, reaps what the agent
leaves behind, and ends with the agent's exit code; the kernel then ends all that is left.
"""

import json
import os
import pty
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

PORT, FOLDER = "{spak-port}", "{spak-folder}"


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    terminal = sys.argv[2] == "tty"
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port = listener.getsockname()[1]
    passed, slave = [listener.fileno()], -1
    if terminal:
        master, slave = pty.openpty()
        passed.append(master)
    socket.send_fds(control, [str(port).encode()], passed)
    listener.close()
    if terminal:
        os.close(master)
    if not control.recv(1):
        sys.exit(125)
    control.close()

    def filled(text):
        return text.replace(PORT, str(port)).replace(FOLDER, str(Path.cwd()))

    env = {name: filled(value) for name, value in os.environ.items()}
    argv = [filled(word) for word in sys.argv[4:]]
    home = Path(env["HOME"])
    home.mkdir(exist_ok=True)
    for name, text in json.loads(sys.argv[3]).items():
        (home / name).write_text(filled(text))
    if terminal:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(PermissionError):  # we lead a session already
            os.setsid()
        os.close(os.open(os.ttyname(slave), os.O_RDWR))  # the first terminal that is opened is ours
    child = os.fork()
    if child == 0:
        if terminal:  # a group of its own in our session: one with nobody above it could not be suspended
            os.setpgid(0, 0)
            os.tcsetpgrp(slave, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            for number in (0, 1, 2):
                os.dup2(slave, number)
        try:
            os.execvpe(argv[0], argv, env)
        except OSError as error:
            print(f"{argv[0]}: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    if slave >= 0:
        os.close(slave)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, frame: os.kill(child, signum))
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            sys.stdout.flush()
            os._exit(code if code >= 0 else 128 - code)


main()

"""The first process of a guarded agent's sandbox: hands the guard a socket to listen on, then starts the
agent.

Arguments: the descriptor of a Unix socket to the guard, `tty` or `pipes`, and the agent's command line. It
sends one message, the port as text, with the descriptor of a socket that listens on the sandbox's own
loopback, and for `tty` that of a terminal's master. The guard answers with a line when it listens. The
descriptor is then closed: nothing in here leads to the guard but that port. It stays, reaps what the agent
leaves behind, and ends with the agent's exit code; the kernel then ends all that is left.
"""

import os
import pty
import signal
import socket
import sys
from pathlib import Path

PORT = "{spak-port}"


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
    env = {name: value.replace(PORT, str(port)) for name, value in os.environ.items()}
    argv = [word.replace(PORT, str(port)) for word in sys.argv[3:]]
    Path(env["HOME"]).mkdir(exist_ok=True)
    child = os.fork()
    if child == 0:
        if terminal:
            os.setsid()
            os.close(os.open(os.ttyname(slave), os.O_RDWR))  # the first terminal that is opened is ours
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

"""The process behind warm_kit.py: it imports what takes long, then each request becomes a fork of it.

    python warm_python.py SOCKET

A request is one connection: JSON (`argv` behind the interpreter's name, `cwd`, `env`, `umask`) with the
program's descriptors 0, 1 and 2, answered with the process id and, when the program has ended, its exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
import threading
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from read_once import forget_programs, read_once

KNOWN = (
    "celery.apps.worker", "celery.bin.celery", "celery.fixups.django", "celery.worker.consumer",
    "channels.auth", "channels.generic.websocket", "channels.layers", "channels.routing",
    "channels.security.websocket", "cronsim", "cryptography.fernet", "cryptography.x509",
    "django.contrib.admin", "django.contrib.admindocs.views", "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation", "django.contrib.postgres.fields",
    "django.contrib.sessions.backends.db", "django.core.handlers.asgi", "django.core.management",
    "django.core.serializers.json", "django.db.backends.postgresql.base", "django.db.backends.sqlite3.base",
    "django.db.migrations.executor", "django.forms", "django.middleware.clickjacking",
    "django.middleware.common", "django.middleware.gzip", "django.middleware.security",
    "django.template.defaulttags", "django.test.client", "django.views.debug", "django.views.generic",
    "django_htmx.middleware", "docker", "drf_spectacular.utils", "fido2.server", "httpx", "jwt",
    "pygments.formatters.html", "redis.asyncio", "requests", "rest_framework.authentication",
    "rest_framework.mixins", "rest_framework.serializers", "rich.console", "rich.spinner", "rich.status",
    "rich.table", "spak.cli.progress", "spak.cli.reading", "spak.cli.run", "spak.cli.session",
    "spak.cli.show", "spak.commandline.explain", "spak.datalog.explain", "spak.integrity",
    "spak.lang.diff", "spak.lang.edit",
    "spak.lang.features", "spak.lang.format", "spak.lang.graph", "spak.ledger.export", "spak.evolve.analyze",
    "spak.evolve.campaigns", "spak.evolve.experiments", "spak.evolve.gate",
    "spak.evolve.stats", "spak.patch.make", "spak.policy.history.monitors", "spak.policy.toolfacts",
    "spak.portable", "spak.proposers", "spak.runner.fork", "spak.runner.live", "spak.runner.run",
    "spak.runner.views.junit", "spak.runner.views.plots", "spak.runner.views.report", "spak.validators",
    "spak.validators.problems", "uritemplate", "uvicorn", "whitenoise.middleware",
    "whitenoise.storage",
)  # fmt: skip
"""What is imported once. None of it reads a setting of Django's, or the environment, while it is imported."""
MOST = 1 << 20
"""Bytes of a request."""


def serve(listening: socket.socket) -> dict[str, Any]:
    """Fork for each request, until standard input is closed. Returns only in a fork, with its request."""
    running: dict[int, tuple[int, socket.socket]] = {}
    asked = select.poll()
    asked.register(listening, select.POLLIN)
    asked.register(0, select.POLLHUP)
    while True:
        for number, _ in asked.poll():
            if number == 0:
                os._exit(0)
            if number in running:
                pid, connection = running.pop(number)
                asked.unregister(number)
                os.close(number)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(OSError), connection:
                    connection.sendall(b"%d\n" % code)
                continue
            connection, _ = listening.accept()
            data, files, _, _ = socket.recv_fds(connection, MOST, 3)
            while not data.endswith(b"\n") and (more := connection.recv(MOST)):
                data += more
            if not data.endswith(b"\n"):  # its client was killed meanwhile
                for at in (connection.detach(), *files):
                    os.close(at)
                continue
            pid = os.fork()
            if not pid:
                for at in running:
                    os.close(at)
                for _, other in running.values():
                    other.close()
                connection.close()
                listening.close()
                for number, file in enumerate(files):
                    os.dup2(file, number)
                    os.close(file)
                found: dict[str, Any] = json.loads(data)
                return found
            for file in files:
                os.close(file)
            at = os.pidfd_open(pid)
            running[at] = (pid, connection)
            asked.register(at, select.POLLIN)
            with contextlib.suppress(OSError):
                connection.sendall(b"%d\n" % pid)


def become(argv: list[str], cwd: str, env: dict[str, str], umask: int) -> None:
    """Be `python ARGV`: a file, `-c TEXT` or `-m MODULE`, `-W HOW` before it. SIGUSR2 has it say where its
    threads are."""
    os.setsid()
    faulthandler.register(signal.SIGUSR2)
    os.umask(umask)
    forget_programs(env)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    time.tzset()
    random.seed()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.path[1:1] = [path for path in env.get("PYTHONPATH", "").split(":") if path]
    if argv[0] == "-W":
        warnings.simplefilter(argv[1])  # type: ignore[arg-type]
        argv = argv[2:]
    sys.path[0] = "" if argv[0].startswith("-") else str(Path(argv[0]).parent)
    if argv[0] == "-c":
        sys.argv = ["-c", *argv[2:]]
        main = type(sys)("__main__")
        main.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = main
        exec(compile(argv[1], "<string>", "exec"), main.__dict__)
    elif argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        runpy.run_path(argv[0], run_name="__main__")


def ended(request: dict[str, Any]) -> int:
    """The exit code of the program, as the interpreter gives it; a KeyboardInterrupt ends by its signal."""
    code: object = 0
    try:
        become(**request)
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # it waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    return int(code or 0)


def main() -> None:
    for name in KNOWN:
        import_module(name)
    read_once()
    assert threading.active_count() == 1, "a fork has one thread"
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # as tests/conftest.py has it
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        print("ready", flush=True)
        request = serve(listening)
    code = 1
    try:
        code = ended(request)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    main()

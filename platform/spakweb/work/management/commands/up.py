"""`manage.py up`: bring the database up to date and run the platform until Ctrl+C.

With --demo it makes the demo team first and prints what to try; on this machine only.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import signal
import sys
import time
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.utils import DatabaseError

from spak import integrity
from spakweb.ground.database import appendonly, damage, restoring
from spakweb.ground.errors import Refused
from spakweb.work.operate import demo
from spakweb.work.operate.up import Child, Stopped, Supervisor, close_database, listen, no_place, only_one

CHECK_S = 10.0
"""How long the look at the database may take before a start; a large one is looked at further later."""
READY_S = 60.0
"""How long the first answer may take."""


class Command(BaseCommand):
    help = "Run the platform until Ctrl+C."
    requires_system_checks = "__all__"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="make the demo team; this machine only")
        parser.add_argument("--port", type=_port, help="instead of SPAK_WEB_PORT; 8000 without either")

    def handle(self, *args: Any, demo: bool, port: int | None, **options: Any) -> None:
        host, port = settings.HOST, port or settings.PORT
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # manage.py had a rougher one
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if demo:
                _demo_is_safe(host)
                os.environ["SPAK_WEB_DEMO"] = "true"
            with only_one(settings.DATA_DIR, address), listen(host, port) as listening:
                restoring.refuse(settings.DATA_DIR)  # once more: now no restore can begin
                self.prepare(demo)
                web = Child("web", (sys.executable, "-m", "spakweb.work.operate.serve", "PIPE", "SOCKET"))
                worker = Child(
                    "worker", (sys.executable, "-m", "spakweb.work.worker.process", "PIPE"), essential=False
                )
                with Supervisor([web, worker], listening) as supervisor:
                    self.wait_until_ready(supervisor, address)
                    self.stdout.write(_banner(address, demo))
                    self.stdout.flush()
                    supervisor.watch()
        except (Stopped, KeyboardInterrupt):
            self.stdout.write("\nstopped; everything is kept in " + str(settings.DATA_DIR))
        except Refused as why:
            raise CommandError(f"{why.message}\n  fix: {why.hint}") from why

    def prepare(self, demo_team: bool) -> None:
        """The tables as this version wants them, their triggers, the demo team, the static files."""
        if (where := damage.file()) is not None and (found := integrity.check(where, CHECK_S)).problems:
            self.stderr.write(f"The database is damaged: {found.problems[0]}\n  fix: docs/deploy.md, Damage")
        try:
            call_command("migrate", verbosity=0, interactive=False)
            close_database(settings.DATA_DIR)
            lost = appendonly.missing(connection)
            if demo_team and not lost:
                demo.seed()
        except DatabaseError as error:
            raise Refused(
                "web.database",
                f"The database cannot be used: {str(error).strip().splitlines()[0]}",
                "Look at SPAK_WEB_DATABASE_URL and at the database's own log.",
            ) from error
        if lost:
            raise Refused(
                "web.triggers", f"The triggers of {', '.join(lost)} are gone.", "Run manage.py migrate."
            )
        if settings.PRODUCTION:
            try:
                call_command("collectstatic", verbosity=0, interactive=False)
            except OSError as error:
                raise no_place(settings.DATA_DIR, error) from error
        connection.close()

    def wait_until_ready(self, supervisor: Supervisor, address: str) -> None:
        """Wait until the address answers, READY_S seconds at most."""
        ends = time.monotonic() + READY_S
        request = Request(f"{address}/healthz", headers={"Host": settings.ALLOWED_HOSTS[0]})
        while time.monotonic() < ends:
            supervisor.look()
            try:
                with urlopen(request, timeout=2):
                    return
            except (URLError, OSError):
                time.sleep(0.1)
        raise Refused(
            "web.child", f"The web part gave no answer within {READY_S:.0f} s.", "Its words are above."
        )


def _port(text: str) -> int:
    """argparse reports the message with the option's name."""
    if not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a port from 1 to 65535")
    return int(text)


def _demo_is_safe(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback or settings.PRODUCTION:
        raise Refused(
            "web.demo",
            "The demo's password is public, so it is served on this machine only.",
            "Unset SPAK_WEB_HOST and SPAK_WEB_PRODUCTION, or run `manage.py up` without --demo.",
        )


def _banner(address: str, demo_team: bool) -> str:
    lines = ["", f"  SPAK is running   {address}", ""]
    if demo_team:
        lines += [
            f"  sign in           {demo.USER} / {demo.PASSWORD}   (filled in; bob, a reviewer, has it too)",
            "  try               1  sign in, choose Watch a run, start attention_tuner: a minute of tuning",
            "                    2  replay and verify it, without model or sandbox; fork it",
            "                    3  fix first_draft: the editor offers the fix next to the mistake",
            "                    4  run build_feature step by step and answer as its model",
        ]
    else:
        lines += ["  first person      manage.py createsuperuser"]
    return "\n".join([*lines, f"  data              {settings.DATA_DIR}", "  stop              Ctrl+C", ""])

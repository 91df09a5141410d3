"""`spak run TEAM/SPEC --server URL`: a run on a platform, from its files to its report."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak.cli import common
from spak.errors import UsageError, UserError

if TYPE_CHECKING:
    from spak.client import Platform, RemoteRun

NAME = re.compile(r"([A-Za-z0-9_-]+)/([A-Za-z0-9_-]+)(?:@(.+))?")
NUMBER = re.compile(r"[0-9]{1,9}")
SPOOLED = 16 << 20


@dataclass(frozen=True, slots=True)
class Order:
    """What `spak run` was asked for, as far as a platform does it."""

    name: str
    files: Path | None = None
    wait: bool = False
    timeout: float | None = None
    inputs: Mapping[str, str] | None = None
    labels: tuple[str, ...] = ()
    mode: str | None = None
    backend: str = ""
    queue: str = ""
    key: str = ""
    junit: Path | None = None
    source: str = ""
    ref: str = ""
    artifacts: Path | None = None
    prior: str | None = None
    sealed: str | None = None


def run(server: str, order: Order, as_json: bool) -> int:
    """Start it, and with `wait` show its records until it stops; the exit code is that of its state.

    Raises: UsageError, UnavailableError.
    """
    from spak.client import Platform, servers
    from spak.client.connection import origin

    found = NAME.fullmatch(order.name)
    if found is None:
        hint = "TEAM/SPEC, TEAM/SPEC@VERSION or TEAM/SPEC@TAG, as in the address of the spec's page"
        raise UsageError("usage.arguments", f"{order.name!r} names no spec of a platform", hint)
    where = origin(server)
    with Platform(where, servers.token(where)) as platform:
        made = _start(platform, order, *found.groups())
        if not as_json:
            common.say(f"run {made.key}: {made.html_url}")
        if not order.wait:
            return _started(made, as_json)
        try:
            ended = _followed(platform, made, order.timeout, as_json)
        except KeyboardInterrupt:
            common.say(f"interrupted; the run goes on: {made.html_url}")
            if as_json:
                common.emit(made.document)
            return 6
        code = _shown(ended, as_json)
        if order.junit is not None:
            code = _report(platform, ended, order.junit, code)
        return code if order.artifacts is None else _fetched(platform, ended, order.artifacts, code)


def _start(platform: Platform, order: Order, team: str, spec: str, version: str | None) -> RemoteRun:
    from spak.client import pack

    files = None
    if order.files is not None:
        with tempfile.SpooledTemporaryFile(max_size=SPOOLED) as archive:
            pack(order.files, archive)
            name = os.fsencode(order.files.resolve().name).decode(errors="replace")
            files = platform.bring(team, spec, archive, f"{name or 'files'}.zip")
    number = int(version) if version is not None and NUMBER.fullmatch(version) else None
    return platform.start(
        team,
        spec,
        version=number,
        tag=version if number is None else None,
        files=files,
        inputs=order.inputs,
        labels=order.labels,
        mode=order.mode,
        backend=order.backend or None,
        queue=order.queue or None,
        key=order.key or None,
        source=order.source or None,
        ref=order.ref or None,
        prior=order.prior,
        sealed=order.sealed,
    )


def _followed(platform: Platform, made: RemoteRun, timeout: float | None, as_json: bool) -> RemoteRun:
    until = None if timeout is None else time.monotonic() + timeout
    seen = made
    for news in platform.follow(made.team, made.key, until):
        if not isinstance(news, dict):
            seen = news
        elif not as_json and (line := line_of(news)):
            common.say(line)
    return seen


def line_of(record: Mapping[str, Any]) -> str:
    """A record in a line for people; empty for one that says nothing of how far the run is."""
    body = record.get("body")
    body = body if isinstance(body, Mapping) else {}
    where = f"{record.get('task', '')}/{record.get('step', '')}".rstrip("/")
    match record.get("kind"):
        case "act":
            how = body.get("outcome") or body.get("status") or ""
            return f"  {where}: {how} {body.get('exit', '')}".rstrip()
        case "route" if body.get("signal"):
            code = f" [{body['code']}]" if body.get("code") else ""
            return f"  {record.get('task', '')}: {body['signal']}{code}"
    return ""


def _started(made: RemoteRun, as_json: bool) -> int:
    if as_json:
        common.emit(made.document)
    else:
        common.say("next: look at it there; --wait shows it here until it ends")
    return 0


def _shown(run: RemoteRun, as_json: bool) -> int:
    if as_json:
        common.emit(run.document)
    else:
        words = f" in TASK {run.task}" if run.task else ""
        from spak.runner.views.run_json import worded

        common.say(f"run {run.key}: {worded(run.state, run.document)}{words}")
        if run.why:
            common.say(f"  {run.why}")
        if not run.ended:
            common.say(f"next: {'answer it' if run.state == 'waiting' else 'look at it'}: {run.html_url}")
    return common.EXIT.get(run.state, 6)


def _report(platform: Platform, run: RemoteRun, file: Path, code: int) -> int:
    """Write the report; how the run ended is printed already, so a failure is said beside it."""
    try:
        file.write_bytes(platform.junit(run.team, run.key))
    except OSError as error:
        common.say(f"spak: {file}: {error.strerror} [usage.file]")
        return code or 2
    except UserError as error:
        common.say(f"spak: {error.message} [{error.code}]")
        return code or error.exit_code
    return code


def _fetched(platform: Platform, run: RemoteRun, folder: Path, code: int) -> int:
    """Fetch the files that it made; how the run ended is printed already, so a failure is said beside it."""
    from spak.client.downloads import download
    from spak.door import Class, one_line

    try:
        found = platform.files(run.team, run.key)
        count = download(found, folder, lambda one, into: platform.file(run.team, run.key, one, into))
    except UserError as error:
        common.say(f"spak: {error.message} [{error.code}]")
        return code or error.exit_code
    common.say(f"  {count} {'file' if count == 1 else 'files'} in {folder}")
    for one in found:
        if one.leaves_as == Class.RUNS:
            common.say(f"  may run by itself where a tool finds it: {one_line(one.name)}")
    return code

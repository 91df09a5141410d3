"""`spak doctor`: what is installed, what works here, and the command that mends the rest."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import click

from spak.cli import common

CHECK_S = 10.0


@click.command()
@common.runs_option
@common.json_option
def command(runs_dir: Path | None, as_json: bool) -> int:
    """Check launchers, programs, devices, backends and folders; exit 7 when runs cannot work here."""
    rows = [*_system(), *_launchers(), *_programs(), _gpu(), *_backends(), _folder(common.runs_dir(runs_dir))]
    rows += _law()
    rows += _platform()
    works = all(row["ok"] for row in rows if row["needed"])
    if as_json:
        common.emit({"ok": works, "checks": rows})
    else:
        for row in rows:
            mark = "ok  " if row["ok"] else ("FAIL" if row["needed"] else "--  ")
            click.echo(f"{mark} {row['name']}: {row['detail']}")
            if row["mend"]:
                click.echo(f"       fix: {row['mend']}")
        common.say("next: spak demo" if works else "next: fix what is marked FAIL")
    return 0 if works else 7


def _row(name: str, ok: bool, detail: str, mend: str = "", needed: bool = True) -> dict[str, Any]:
    return {"name": name, "ok": ok, "detail": detail, "mend": mend, "needed": needed}


def _system() -> list[dict[str, Any]]:
    linux = sys.platform == "linux"
    return [
        _row("python", True, platform.python_version()),
        _row("system", linux, platform.platform(), "" if linux else "runs need Linux or WSL2"),
    ]


def _launchers() -> list[dict[str, Any]]:
    """One that works is enough; where none does, all are marked."""
    from spak.sandbox import describe

    found = describe()
    works = any(item["ok"] for item in found)
    return [
        _row(
            f"launcher {item['launcher']}", item["ok"] is True, str(item["detail"]), str(item["mend"]),
            needed=not works or item["launcher"] == "restricted",
        )
        for item in found
    ]  # fmt: skip


def _programs() -> list[dict[str, Any]]:
    from spak import config

    found, chain = config.versions(), config.toolchain().programs
    needed = {"gcc": "apt-get install gcc libc6-dev", "pytest": "make setup", "ruff": "make setup"}
    rows = [
        _row(
            name, name in chain, found.get(name, chain.get(name, "not found")), "" if name in chain else mend
        )
        for name, mend in needed.items()
    ]
    wanted = {
        "g++": "apt-get install g++",
        "clang": "apt-get install clang",
        "nvcc": "install the CUDA toolkit",
    }
    rows += [
        _row(name, name in chain, found.get(name, "not found"), "" if name in chain else mend, needed=False)
        for name, mend in wanted.items()
    ]
    return rows


def _gpu() -> dict[str, Any]:
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        names = ", ".join(
            str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i))) for i in range(count)
        )
        pynvml.nvmlShutdown()
        return _row("gpu", count > 0, names or "driver without a device", needed=False)
    except pynvml.NVMLError as error:
        return _row("gpu", False, f"none ({error}); CUDA evidence is static only", needed=False)


def _backends() -> list[dict[str, Any]]:
    """Who can answer a question; a run that asks none needs none."""
    from spak import config
    from spak.llm.survey import survey

    return [
        _row(f"backend {row.name}", row.ok, f"{row.summary}: {row.detail}", row.mend, needed=False)
        for row in survey(config.settings().llm)
    ]


def _law() -> list[dict[str, Any]]:
    """The operator's law, where the settings name one; without it no run begins."""
    from spak import config
    from spak.errors import UserError

    files = config.settings().law
    if not files:
        return []
    name = "operator's law"
    try:
        made = config.law()
    except UserError as error:
        hint = error.hint or "spak policy check --as operator FILE shows each finding"
        return [_row(name, False, f"{error.message} [{error.code}]", hint)]
    return [_row(name, True, f"{', '.join(map(str, files))}; the law of new runs is {made.hash}")]


def _platform() -> list[dict[str, Any]]:
    """The platform's database, where this folder has one; runs of the command line do not need it."""
    from spak.integrity import check

    data = os.environ.get("SPAK_WEB_DATA") or ".spak/platform"
    file = Path(data) / "spak.sqlite3"
    if not file.is_file():
        return []
    found = check(file, CHECK_S)
    mend = "manage.py check_store, and docs/deploy.md, Damage" if found.problems else ""
    fine = "whole" if found.complete else f"nothing found in {CHECK_S:.0f} s: manage.py check_store looks on"
    detail = f"{file}: {found.problems[0] if found.problems else fine}"
    return [_row("platform database", not found.problems, detail, mend, needed=False)]


def _folder(root: Path) -> dict[str, Any]:
    """Whether runs can be kept there, found out by making a folder in the nearest one that exists."""
    import tempfile

    place = next(folder for folder in (root, *root.resolve().parents) if folder.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".spak-doctor-", dir=place):
            return _row("runs folder", True, str(root))
    except OSError as error:
        mend = "choose another with --runs-dir or SPAK_RUNS_DIR"
        return _row("runs folder", False, f"{root}: {error.strerror}", mend)

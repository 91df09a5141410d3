"""`spak new NAME [--template T]`: a spec of one's own, from an example that runs.

Takes a name and a template; writes NAME.spak into the working folder and, where the example has files that it
works on, the folder NAME, which `spak run NAME.spak` copies. `tests` looks at the working folder: where that
has tests, they are what the spec mends, by the Python of its virtual environment if there is one, and no
example files are written. It writes all or nothing, and over nothing.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import click

from spak.cli import common
from spak.errors import UsageError
from spak.templates import TEMPLATES, files_of

DEPTH = 4
"""How many folders down a test is looked for."""


@click.command()
@click.argument("name")
@click.option(
    "--template", type=click.Choice(list(TEMPLATES)), default="tests", show_default=True,
    help="; ".join(f"{template}: {does}" for template, (_, does) in TEMPLATES.items()) + ".",
)  # fmt: skip
@common.json_option
def command(name: str, template: str, as_json: bool) -> int:
    """Write the spec NAME.spak, from an example that runs, and the files that it works on."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
        hint = "begin with a letter; letters, digits, - and _ follow, at most 64 in all"
        raise UsageError("usage.arguments", f"{name!r} is no name of a spec", hint)
    here = Path.cwd()
    mine = template == "tests" and _has_tests(here)
    files = _write(here, name, template, here if mine else None)
    run = f"spak run {name}.spak" + (" --workspace ." if mine else "")
    if as_json:
        common.emit({"files": files})
        return 0
    for file in files:
        common.out(f"  written  {file}")
    common.say(f"next: spak check {name}.spak, then {run}")
    return 0


def _write(here: Path, name: str, template: str, mine: Path | None) -> list[str]:
    """The names of what was written: the spec, and the example's files unless it is for a folder `mine`.

    Raises: UsageError `usage.exists`, `usage.file`.
    """
    files = files_of(template, name)
    spec, folder = here / f"{name}.spak", here / name
    if mine:
        files = {spec.name: _for(files[spec.name].decode(), mine).encode()}
    for path in [spec] if mine else [spec, folder]:
        if path.exists() or path.is_symlink():
            raise UsageError("usage.exists", f"{path.name} is there already", "give another NAME")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=here) as draft:
            for path_name, content in files.items():
                place = Path(draft) / path_name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            if not mine:
                (Path(draft) / name).rename(folder)
            (Path(draft) / spec.name).rename(spec)
    except OSError as error:
        if not mine:
            shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(
            "usage.file", f"{here} cannot be written: {error.strerror}", "check its rights"
        ) from None
    return list(files)


def _for(text: str, folder: Path) -> str:
    """The spec of the template `tests` for a folder: its Python, and where its tests are."""
    for environment in (".venv", "venv"):
        if (folder / environment / "bin" / "pytest").exists():
            line = f"{environment}/bin/python -m pytest -q"
            text = text.replace('cmd: "pytest -q"', f'cmd: "{line}"')
            text = text.replace('VALIDATOR PyTest { paths: ["."] }', f'VALIDATOR Command {{ cmd: "{line}" }}')
            break
    if (folder / "tests").is_dir():
        return text
    if (folder / "test").is_dir():
        return text.replace('\\"tests/\\"', '\\"test/\\"')
    return text.replace(':string:starts_with(P, \\"tests/\\")', ':string:contains(P, \\"test_\\")')


def _has_tests(folder: Path) -> bool:
    """Whether a file that pytest takes for tests lies in it, not too far down."""
    level = [folder]
    for _ in range(DEPTH):
        below: list[Path] = []
        for place in level:
            try:
                entries = [entry for entry in place.iterdir() if not entry.name.startswith(".")]
            except OSError:
                continue
            if any(re.fullmatch(r"test_.*\.py|.*_test\.py", entry.name) for entry in entries):
                return True
            below += [
                entry for entry in entries
                if entry.is_dir() and not entry.is_symlink() and entry.name not in ("venv", "node_modules")
            ]  # fmt: skip
        level = below
    return False

"""The law of new runs from its texts: shipped, the operator's, a team's, and tables of command lines.

Takes files or texts of those in charge; gives a Law that loads, with tables that were checked. A run takes
all of them into its first record, so that nothing here is asked again when it is taken up or replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spak import canon
from spak.commandline.custom_tables import problems
from spak.datalog.errors import PolicyError
from spak.errors import UsageError
from spak.inputs import read_text
from spak.kept import by_size
from spak.policy.law import OPERATOR, Law, compiled
from spak.runner.genesis import all_shipped


def operators(
    texts: Mapping[str, str],
    team: Mapping[str, str] | None = None,
    commands: Mapping[str, str] | None = None,
) -> Law:
    """The shipped law with these texts of the operator and of a team, by the names of their files, and with
    tables of command lines that do not ship, by level and file.

    Raises: PolicyError `policy.invalid`, `policy.reserved`, `policy.closed` when it does not load;
    `commands.table`, `commands.shipped`, `commands.grants` for a table.
    """
    made = Law(all_shipped(), dict(texts), dict(team or {}), dict(commands or {}))
    if made.operator or made.team:
        _loads(made.key)
    for wrong in problems(made.commands) if made.commands else ():
        hint = "`spak policy commands check` names all that is wrong"
        raise PolicyError(wrong.code, f"{wrong.file}: {wrong.message}", hint)
    return made


@by_size(1 << 20)
def _loads(key: bytes) -> None:
    compiled(Law.from_json(canon.loads(key)), "", {})


def texts(key: str, files: Sequence[Path]) -> dict[str, str]:
    """The texts of files that the key of `[policy]` names. Raises: UsageError `usage.config`."""
    found: dict[str, str] = {}
    for file in files:
        try:
            found[file.name] = read_text(file)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            message = f"[policy] {key}: {file} cannot be read: {why}"
            raise UsageError("usage.config", message, "fix the name, or leave it out") from error
    return found


def table_files(items: Sequence[Path]) -> list[Path]:
    """The files of tables that are named, those of a folder by name. Raises: UsageError `usage.config`."""
    found = [file for item in items for file in (sorted(item.glob("*.toml")) if item.is_dir() else [item])]
    if twice := sorted({file.name for file in found if [other.name for other in found].count(file.name) > 1}):
        message = f"[policy] commands: there are two files {twice[0]}"
        raise UsageError("usage.config", message, "give each file a name of its own")
    return found


def tables(items: Sequence[Path]) -> dict[str, str]:
    """The texts of the operator's tables. Raises: UsageError `usage.config`."""
    return {OPERATOR + name: text for name, text in texts("commands", table_files(items)).items()}

"""The law of new runs from its texts: shipped, the operator's, a team's.

Takes files or texts of those in charge; gives a Law that loads. A run takes
all of them into its first record, so that nothing here is asked again when it is taken up or replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spak import canon
from spak.errors import UsageError
from spak.inputs import read_text
from spak.kept import by_size
from spak.lang.catalog import ToolEntry
from spak.policy.facts import MCP
from spak.policy.law import Law, compiled
from spak.runner.genesis import all_shipped, of_servers


def operators(texts: Mapping[str, str], team: Mapping[str, str] | None = None) -> Law:
    """The shipped law with these texts of the operator and of a team, by the names of their files.

    Raises: PolicyError `policy.invalid`, `policy.reserved`, `policy.closed` when it does not load.
    """
    made = Law(all_shipped(), dict(texts), dict(team or {}))
    if made.operator or made.team:
        _loads(made.key)
    return made


def for_spec(law: Law, spec: str, tools: Mapping[str, ToolEntry]) -> Law:
    """The law with the rules that the tools need which a spec's text names."""
    named = (tool for name, tool in tools.items() if name in spec)
    served = any(member.startswith(MCP) for tool in named for member in tool.arguments)
    return of_servers(law) if served else law


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

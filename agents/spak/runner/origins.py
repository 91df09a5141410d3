"""Origins: which files whoever wrote a text could have seen, read off the records as they pass.

An answer was written for a question, and the question was asked under a root of the workspace (R3): what the
answer says about a file is about the file of that root. Feed it every record of the run in order; it gives
the root for the text of an answer or of a tool's output. A patch without hashes is held to it
(`spak.tools.apply_patch`). Source: seed 003 section 10, docs/adr/0023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.records import Authority, Kind, Record
from spak.workspace import Workspace


def shown(
    effect: Effect, origins: Origins, workspace: Workspace, rules: Rules
) -> Callable[[str, str], str | None]:
    """What a tool asks (`Call.shown`): the hash of a file's content that whoever wrote a text could see.

    The author of a text that the spec itself holds is no proposer: it is held to the files as they are.
    """
    step = rules.program.tasks[effect.task].step(effect.step)
    args = step.args if step is not None else {}

    def ask(text: str, path: str) -> str | None:
        root = effect.root if text in args.values() else origins.of(text)
        return workspace.content_at(root, path)

    return ask


@dataclass(slots=True)
class Origins:
    """`root` is R3 as the records so far have it; it begins as the first record names it."""

    root: str
    asked: str = ""
    """The root under which the last question was asked; empty while there was none."""
    before: Callable[[], Origins] | None = None
    """Those of the records before the snapshot that the run was taken up from."""
    _written: dict[str, str] = field(default_factory=dict)
    """Digest of a text to the root that its author could see."""
    _output: Any = None

    @classmethod
    def take_up(cls, kept: Mapping[str, Any]) -> Origins:
        """From what `kept` gave. Raises: KeyError, TypeError when that is something else."""
        made = cls(kept["root"], kept["asked"])
        made._output = kept["output"]
        return made

    def kept(self) -> dict[str, Any]:
        """What a snapshot holds; the texts grow with the run and are read again when one is asked for."""
        return {"root": self.root, "asked": self.asked, "output": self._output}

    def feed(self, record: Record) -> None:
        """Take the next record."""
        body = record.body
        if record.authority == Authority.HOST:
            return
        match record.kind:
            case Kind.PERMIT if body.get("act") in ("ask", "plan") and body.get("allow") is True:
                self.asked = self.root
            case Kind.ACT if body.get("outcome") == "answered":
                self._note(body.get("out"), self.asked)
            case Kind.ACT:
                self._output = body.get("out")
            case Kind.ROUTE:
                root = body.get("r3")
                self.root = root if isinstance(root, str) else self.root
                self._note(self._output, self.root)
                self._output = None

    def of(self, text: str) -> str:
        """The root for a text; for one that nobody wrote as it is, that of the last question, else now."""
        return self._root_of(canon.digest(text.encode("utf-8", "replace"))) or self.asked or self.root

    def _root_of(self, digest: str) -> str:
        found = self._written.get(digest, "")
        return self.before()._root_of(digest) if not found and self.before is not None else found

    def _note(self, out: Any, root: str) -> None:
        if isinstance(out, str) and out:
            self._written[canon.digest(out.encode("utf-8", "replace"))] = root
        elif isinstance(out, Mapping) and isinstance(out.get("$blob"), str):
            self._written[out["$blob"]] = root

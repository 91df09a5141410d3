"""Operations as a person types them: `rename-task a b`, `set tune RULE.patience 5`.

Takes words as a shell gives them. An operation is a word with its arguments; the next one follows after a
`,` that stands alone. A first word with blanks in it is a whole operation by itself: `"add-task finalize"`.
Named arguments are `name=text`; where a value may be more than a text, `name:=value` takes it in the spec's
writing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak.errors import EditRefused
from spak.lang import ast, settings
from spak.lang.edit import ops, write
from spak.lang.edit.ops import Op
from spak.lang.near import did_you_mean
from spak.lang.settings import Setting

_NAMED = re.compile(r"([A-Za-z_][\w.-]*)(:?=)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Verb:
    """The operation of a word: its fields in order, those that are named, those that are fixed."""

    kind: type[Any]
    takes: str
    named: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)


def read(words: Sequence[str]) -> tuple[Op, ...]:
    """The operations of a command line.

    Raises: EditRefused `edit.unknown_op`, `edit.arguments`, `edit.value`.
    """
    made: list[Op] = []
    group: list[str] = []
    for word in [*words, ","]:
        if not group and word != "," and re.search(r"\s", word.strip()):
            made.append(_operation(_split(word)))
        elif word == ",":
            if group:
                made.append(_operation(group))
            group = []
        else:
            group.append(word)
    return tuple(made)


def usage(verb: str) -> str:
    """How a word is used."""
    if verb in SPECIAL:
        return f"{verb} {SPECIAL[verb][1]}".rstrip()
    known = VERBS[verb]
    named = " ".join(f"[{name}=...]" for name in known.named.split())
    return " ".join(part for part in (verb, known.takes.upper(), named) if part)


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise EditRefused("edit.arguments", f"quotes are not closed: {words[:60]}", "") from error


def _operation(words: list[str]) -> Op:
    verb, rest = (words[0].replace("_", "-"), words[1:]) if words else ("", [])
    if verb in SPECIAL:
        return SPECIAL[verb][0](rest, verb)
    known = VERBS.get(verb)
    if known is None:
        hint = did_you_mean(verb, (*VERBS, *SPECIAL)) or "docs/typed-edits.md lists them"
        raise EditRefused("edit.unknown_op", f"there is no operation '{verb[:60]}'", hint)
    takes, named = known.takes.split(), known.named.split()
    given: dict[str, Any] = dict(known.fixed)
    plain: list[str] = []
    for word in rest:
        match = _NAMED.fullmatch(word)
        if match and match[1] in named and len(plain) >= len([name for name in takes if name[0] != "["]):
            given[match[1]] = match[3]
        else:
            plain.append(word)
    needed = [name for name in takes if not name.startswith("[")]
    if not len(needed) <= len(plain) <= len(takes):
        raise _wrong(verb)
    given |= dict(zip((name.strip("[]") for name in takes), plain, strict=False))
    return ops.from_json({"op": ops.NAMES[known.kind], **_typed(known.kind, given, verb)})


def _typed(kind: type[Any], given: dict[str, Any], verb: str) -> dict[str, Any]:
    """Texts as the numbers and yes or no that the operation wants."""
    types = {item: str(wanted) for item, wanted in kind.__annotations__.items()}
    for name, value in given.items():
        if not isinstance(value, str):
            continue
        if types[name].startswith("int"):
            if not re.fullmatch(r"-?[0-9]{1,9}", value):
                raise EditRefused("edit.arguments", f"'{name}' of {verb} wants a whole number", usage(verb))
            given[name] = int(value)
        elif types[name] == "bool":
            given[name] = value.lower() in ("true", "yes", "1")
    return given


def _wrong(verb: str) -> EditRefused:
    return EditRefused("edit.arguments", f"{verb} has other arguments", usage(verb))


# ---- values --------------------------------------------------------------------------------------------


def setting_value(key: str, task: bool, words: str) -> Any:
    """The JSON of a setting's value as it is typed, by the setting's kind."""
    row, owner = _row(key, task)
    if row is None:
        return _source(words) if owner in ("space", "inputs") else option(words)
    match row.kind:
        case "names":
            return [name.strip() for name in words.strip().strip("[]").split(",") if name.strip()]
        case "tagged" if "{" in words:
            return _source(words)
        case "map" | "space" | "inputs":
            return _source(words)
        case "plain" if row.schema.get("type") in ("integer", "number"):
            return _number(words)
    return words


def _row(key: str, task: bool) -> tuple[Setting | None, str]:
    """The row of a path's last key, and the kind of the block that it stands in."""
    words = key.split(".")
    place = "task" if task else "agent"
    if not task and settings.find("agent", words[0]) is None:
        place = "config"
    row: Setting | None = None
    owner = ""
    for word in words:
        row = settings.find(place, word) if place in settings.PLACES else None
        if row is None:
            return None, owner
        owner, place = row.kind, row.table if row.kind == "map" else ""
    return row, owner


def _number(words: str) -> Any:
    node = write.source_value(words)
    return node.value if isinstance(node, ast.Number) else words


def _source(words: str) -> dict[str, str]:
    return {"$source": words}


def option(words: str) -> Any:
    """A value that nothing is known about: a number, a list and such as written, anything else a text."""
    node = write.source_value(words)
    if node is None:
        return words
    plain = isinstance(node, ast.Name) and node.value.lower() not in ("true", "false", "none")
    return words if plain else _source(words)


def fields_of(words: Sequence[str], verb: str) -> dict[str, Any]:
    """`key=text` and `key:=value`."""
    made: dict[str, Any] = {}
    for word in words:
        match = _NAMED.fullmatch(word)
        if match is None:
            raise EditRefused("edit.arguments", f"'{word[:60]}' is not key=text or key:=value", usage(verb))
        made[match[1]] = _source(match[3]) if match[2] == ":=" else match[3]
    return made


# ---- words with rules of their own ---------------------------------------------------------------------


def _set(words: list[str], verb: str) -> Op:
    if len(words) not in (2, 3):
        raise _wrong(verb)
    task = words[0] if len(words) == 3 else ""
    return ops.Set(words[-2], setting_value(words[-2], bool(task), words[-1]), task)


def _clear(words: list[str], verb: str) -> Op:
    if len(words) not in (1, 2):
        raise _wrong(verb)
    return ops.Clear(words[-1], words[0] if len(words) == 2 else "")


def _of_task(words: list[str], verb: str) -> Op:
    """`set-goal TASK TEXT` is `set TASK GOAL TEXT`."""
    if len(words) != 2:
        raise _wrong(verb)
    key = verb.removeprefix("set-").upper()
    return ops.Set(key, setting_value(key, True, words[1]), words[0])


def _of_agent(words: list[str], verb: str) -> Op:
    if len(words) != 1:
        raise _wrong(verb)
    key = verb.removeprefix("set-").upper()
    return ops.Set(key, setting_value(key, False, words[0]))


def _within(words: list[str], verb: str) -> Op:
    """`set-rule TASK KEY VALUE`, `set-budget [TASK] KEY VALUE`."""
    if len(words) != 3 and not (len(words) == 2 and verb == "set-budget"):
        raise _wrong(verb)
    key = f"{verb.removeprefix('set-').upper()}.{words[-2]}"
    task = words[0] if len(words) == 3 else ""
    return ops.Set(key, setting_value(key, bool(task), words[-1]), task)


def _choice(words: list[str], verb: str) -> Op:
    """`set-validator TASK NAME [option=text] [option:=value]`."""
    if len(words) < 2:
        raise _wrong(verb)
    key = verb.removeprefix("set-").upper()
    if len(words) == 2:
        return ops.Set(key, setting_value(key, True, words[1]), words[0])
    return ops.Set(key, {"name": words[1], "options": fields_of(words[2:], verb)}, words[0])


def _add_step(words: list[str], verb: str) -> Op:
    if len(words) < 3:
        raise _wrong(verb)
    given = fields_of(words[3:], verb)
    after = given.pop("after", None)
    if after is not None and not isinstance(after, str):
        raise _wrong(verb)
    task, name, kind = words[:3]
    return ops.AddStep(task, name, kind, given, evaluation=verb == "add-check", after=after)


def _set_field(words: list[str], verb: str) -> Op:
    if len(words) == 4:
        return ops.SetField(words[0], words[1], words[2], words[3])
    if len(words) != 3:
        raise _wrong(verb)
    ((key, value),) = fields_of(words[2:], verb).items()
    return ops.SetField(words[0], words[1], key, value)


VERBS: Mapping[str, Verb] = {
    "add-task": Verb(ops.AddTask, "name", "goal after"),
    "create-missing-task": Verb(ops.CreateMissingTask, "name"),
    "remove-task": Verb(ops.RemoveTask, "name", "edges"),
    "rename-task": Verb(ops.RenameTask, "name new"),
    "add-edge": Verb(ops.AddEdge, "task trigger target", "at"),
    "retarget-edge": Verb(ops.RetargetEdge, "task trigger target"),
    "rename-trigger": Verb(ops.RenameTrigger, "task trigger new"),
    "remove-edge": Verb(ops.RemoveEdge, "task trigger"),
    "set-start": Verb(ops.SetStart, "task"),
    "clear-start": Verb(ops.ClearStart, ""),
    "set-level": Verb(ops.SetLevel, "level"),
    "add-axiom": Verb(ops.AddModelItem, "text", "at", {"kind": "axiom"}),
    "add-heuristic": Verb(ops.AddModelItem, "text", "when at", {"kind": "heuristic"}),
    "add-prediction": Verb(ops.AddModelItem, "text", "at", {"kind": "prediction"}),
    "edit-axiom": Verb(ops.EditModelItem, "number text", "", {"kind": "axiom"}),
    "edit-heuristic": Verb(ops.EditModelItem, "number [text]", "when", {"kind": "heuristic"}),
    "edit-prediction": Verb(ops.EditModelItem, "number text", "", {"kind": "prediction"}),
    "remove-axiom": Verb(ops.RemoveModelItem, "number", "", {"kind": "axiom"}),
    "remove-heuristic": Verb(ops.RemoveModelItem, "number", "", {"kind": "heuristic"}),
    "remove-prediction": Verb(ops.RemoveModelItem, "number", "", {"kind": "prediction"}),
    "move-step": Verb(ops.MoveStep, "task step", "after"),
    "remove-step": Verb(ops.RemoveStep, "task step"),
    "rename-step": Verb(ops.RenameStep, "task step new"),
    "set-kind": Verb(ops.SetKind, "task step kind"),
    "clear-field": Verb(ops.ClearField, "task step key"),
    "rewrite": Verb(ops.Rewrite, "source [task]"),
    "set-success": Verb(ops.SetCondition, "task condition", "", {"kind": "success"}),
    "set-invariant": Verb(ops.SetCondition, "task condition", "", {"kind": "invariant"}),
}

SPECIAL: Mapping[str, tuple[Callable[[list[str], str], Op], str]] = {
    "set": (_set, "[TASK] KEY VALUE"),
    "clear": (_clear, "[TASK] KEY"),
    "set-goal": (_of_task, "TASK TEXT"),
    "set-tools": (_of_task, "TASK TOOL,TOOL..."),
    "set-retries": (_of_task, "TASK NUMBER"),
    "set-validator": (_choice, "TASK NAME [OPTION=TEXT | OPTION:=VALUE]..."),
    "set-proposer": (_choice, "TASK NAME [OPTION=TEXT | OPTION:=VALUE]..."),
    "set-rule": (_within, "TASK KEY VALUE"),
    "set-budget": (_within, "[TASK] KEY VALUE"),
    "set-memory": (_of_agent, "MEMORY"),
    "set-sandbox": (_of_agent, "SANDBOX"),
    "set-mode": (_of_agent, "MODE"),
    "set-backend": (_of_agent, "BACKEND"),
    "add-step": (_add_step, "TASK NAME KIND [FIELD=TEXT | FIELD:=VALUE]... [after=STEP]"),
    "add-check": (_add_step, "TASK NAME KIND [FIELD=TEXT | FIELD:=VALUE]... [after=CHECK]"),
    "set-field": (_set_field, "TASK STEP FIELD=TEXT | FIELD:=VALUE"),
}

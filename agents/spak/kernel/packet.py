"""What a model may write: the schema of an answer, made from the Program, and the reading of one.

An answer is a dual payload, its two halves strictly apart: `control_packet` is for the kernel and is read
first, `surface_response` is for people and nothing in it ever counts. Read, it is a list of items: a
Reasoning, ToolCalls, a Message. Tools and triggers are enums from the Program, verbs where the caller names
some, every object is closed, every text has a longest length: what an engine masks with this schema cannot
name a tool outside TOOLS. Engines that do not mask are read just as strictly, and a misfit is an R4 value,
never an exception.

Nothing here decides. Tool calls are candidates for `select`; policy atoms and memory operations are carried
as proposals, checked for form alone (an atom is ground and is no rule).
Source: seed 000 section 5 (ADTs), seed 004 sections 1.1, 6.2 and 8.1 (dual payload, masked verbs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from spak.datalog import PolicyError
from spak.datalog.syntax import Apply, Const, Term
from spak.datalog.text.parse import parse_atom
from spak.incoming import thought, unfenced, unmarked
from spak.kernel import strict
from spak.lang.catalog import Catalog
from spak.lang.schema import show, violations
from spak.program import Program, Task

LIMIT = 262_144
"""Characters of an answer that are read at all."""
TEXT = 65_536
"""Characters of one text in a tool's arguments where its schema names no length."""
SURFACE = 8_000
TRACE = 8_000
LINE = 400
CALLS = 8
ATOMS = 32
OPERATIONS = ("promote_to_long_term", "forget")

_ANY: Mapping[str, Any] = {"type": ["string", "integer", "number", "boolean", "null"]}
"""What an object holds whose schema names no members."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking: recorded, never shown to a model again, decides nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that is proposed; its arguments fit the tool's schema."""

    tool: str
    args: Mapping[str, Any]
    score: int = 0
    """Higher is preferred; people give one, models order their calls."""


@dataclass(frozen=True, slots=True)
class Message:
    """For people; the kernel reads nothing in it."""

    text: str


Item = Reasoning | ToolCall | Message


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, read."""

    items: tuple[Item, ...]
    atoms: tuple[str, ...] = ()
    """Policy atoms that the model proposes as facts."""
    memory: tuple[Mapping[str, str], ...] = ()
    """Memory operations that it proposes: `{operation, fact}`."""
    correction: Mapping[str, str] | None = None
    """`{trigger, hypothesis}`: why it thinks the last try failed."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in it, in its order."""
        return tuple(item for item in self.items if isinstance(item, ToolCall))

    @property
    def surface(self) -> str:
        """Its messages for people."""
        return "\n".join(item.text for item in self.items if isinstance(item, Message))


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a text is no answer, as R4 has it; the repair loop sends it back."""

    code: str
    expected: str
    received: str
    hint: str

    def to_json(self) -> dict[str, str]:
        """The misfit as R4 has it."""
        return {"code": self.code, "expected": self.expected, "received": self.received, "hint": self.hint}


CUT = Misfit("answer.cut", "a whole answer", "one that was cut at its longest length", "answer in less")


@dataclass(frozen=True, slots=True)
class Form:
    """What one task's answers look like."""

    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Name to the schema of its arguments."""
    triggers: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    """Predicates that proposed atoms may use; empty: any."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema, in the pinned dialect, for an engine that masks."""
        return _packet({"anyOf": [_call(name, args) for name, args in self.tools.items()]}, self)

    def frame(self) -> dict[str, Any]:
        """The same with calls of any tool and any arguments: what is checked before each call is."""
        loose = {
            "type": "object",
            "properties": {"tool": _text(LINE), "args": {"type": "object"}, "score": {"type": "integer"}},
            "required": ["tool", "args"],
            "additionalProperties": False,
        }
        return _packet(loose, self)


def form(program: Program, task: Task, catalog: Catalog, verbs: Sequence[str] = ()) -> Form:
    """The form of a task's answers: its TOOLS as it names them, the triggers of its edges and heuristics."""
    tools = {}
    for name in task.tools:
        entry = catalog.tool(name)
        if entry is not None:
            tools[name] = closed(entry.schema)
    triggers = dict.fromkeys(
        [
            *(name for name in task.edges if name[0] != "/"),
            *(item.when for item in program.heuristics if item.when),
        ]
    )
    return Form(tools, tuple(triggers), tuple(verbs))


def parse(text: str, wanted: Form, calls: bool = True) -> Answer | Misfit:
    """The answer that a text is, or why it is none; total, whatever the text.

    The thinking that a model wrote before it is the reasoning of an answer that names none; one code fence is
    taken off, with what stands around it. An object that is nothing but a call (`{"tool", "args"}`) or a list
    of them (`{"candidates"}`), as people write it, counts as a packet that
    holds these. `calls=False` leaves it to the kernel's `select` to judge each call.
    """
    value = json_of(text)
    if isinstance(value, Misfit):
        return value
    packet = _spelled_out(value)
    wrong = unfit(wanted.frame(), packet)
    if wrong is not None:
        return wrong
    control = packet["control_packet"]
    listed = control["tool_calls"]
    wrong = _references(listed) or (_misfit(listed, wanted) if calls else None)
    wrong = wrong or _wrong_atom(control.get("mangle_updates", ()), wanted)
    if wrong is None and (thinking := thought(text)[0]):
        control = {"reasoning_trace": thinking[:TRACE], **control}
    return wrong or _answer(packet, control)


def json_of(text: str) -> Any | Misfit:
    """The JSON value that a text is, in one code fence or in none; total, whatever the text."""
    if len(text) <= LIMIT:
        text = unmarked(unfenced(thought(text)[1])).strip()
    try:
        return strict.loads(text, limit=LIMIT)
    except strict.Unreadable as error:
        return Misfit(error.code, error.expected, error.received, error.hint)


def unfit(schema: Mapping[str, Any], value: Any) -> Misfit | None:
    """The first place where a value does not fit a schema; None where it fits."""
    found = violations(schema, value)
    if not found:
        return None
    first = found[0]
    return Misfit(first.code, show(first.expected), show(first.received), f"{first.path}: {first.hint}")


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose objects take no other members and whose texts have an end."""
    made = dict(schema)
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else types
    if "string" in types and "enum" not in schema and "const" not in schema:
        made.setdefault("maxLength", TEXT)
    if "properties" in schema:
        made["properties"] = {name: closed(item) for name, item in schema["properties"].items()}
    if "properties" in schema or "object" in types:
        extra = schema.get("additionalProperties", False if "properties" in schema else _ANY)
        made["additionalProperties"] = closed(extra) if isinstance(extra, Mapping) else False
    if "items" in schema:
        made["items"] = closed(schema["items"])
    if "anyOf" in schema:
        made["anyOf"] = [closed(item) for item in schema["anyOf"]]
    return made


def _packet(call: Mapping[str, Any], wanted: Form) -> dict[str, Any]:
    control: dict[str, Any] = {
        "reasoning_trace": _text(TRACE),
        "tool_calls": {"type": "array", "items": dict(call), "minItems": 1, "maxItems": CALLS},
        "mangle_updates": {"type": "array", "items": _text(LINE), "maxItems": ATOMS},
        "memory_operations": {
            "type": "array",
            "items": _object({"operation": {"enum": list(OPERATIONS)}, "fact": _text(LINE)}),
            "maxItems": ATOMS,
        },
    }
    if wanted.triggers:
        control["self_correction"] = _object(
            {"trigger": {"enum": list(wanted.triggers)}, "hypothesis": _text(LINE)}
        )
    return _object(
        {"control_packet": _object(control, ("tool_calls",)), "surface_response": _text(SURFACE)},
        ("control_packet",),
    )


def _call(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    return _object({"tool": {"const": name}, "args": args})


def _object(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _text(limit: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": limit}


def _spelled_out(value: Any) -> Any:
    if isinstance(value, dict) and "control_packet" not in value:
        if value.keys() == {"candidates"}:
            return {"control_packet": {"tool_calls": value["candidates"]}}
        if "tool" in value:
            return {"control_packet": {"tool_calls": [value]}}
    return value


def _references(value: Any) -> Misfit | None:
    """A model may not write what only the runner makes: `$blob` and the like."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for name in item:
                if name.startswith("$") or not name.isascii():
                    return Misfit("answer.name", "ASCII names without $", name[:40], "rename the member")
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return None


def _misfit(listed: Sequence[Mapping[str, Any]], wanted: Form) -> Misfit | None:
    for index, call in enumerate(listed):
        schema = wanted.tools.get(call["tool"])
        place = f"/control_packet/tool_calls/{index}"
        if schema is None:
            names = ", ".join(wanted.tools) or "none"
            return Misfit("policy.not_in_tools", names, call["tool"], f"{place}/tool: use one of these")
        found = violations(schema, call["args"])
        if found:
            first = found[0]
            path = f"{place}/args{first.path}: {first.hint}"
            return Misfit(first.code, show(first.expected), show(first.received), path)
    return None


def _wrong_atom(atoms: Sequence[str], wanted: Form) -> Misfit | None:
    for index, text in enumerate(atoms):
        place = f"/control_packet/mangle_updates/{index}"
        try:
            atom = parse_atom(text)
        except PolicyError as error:
            return Misfit("answer.atom", "one atom, such as done(/task)", text[:80], f"{place}: {error.hint}")
        if not all(_ground(term) for term in atom.args):
            return Misfit("answer.atom", "an atom without variables", text[:80], f"{place}: name the values")
        if wanted.verbs and atom.pred not in wanted.verbs:
            return Misfit(
                "answer.verb", ", ".join(wanted.verbs), atom.pred[:80], f"{place}: use one of these"
            )
    return None


def _ground(term: Term) -> TypeGuard[Const | Apply]:
    if isinstance(term, Apply):
        return all(_ground(item) for item in term.args)
    return isinstance(term, Const)


def _answer(packet: Mapping[str, Any], control: Mapping[str, Any]) -> Answer:
    items: list[Item] = []
    if control.get("reasoning_trace"):
        items.append(Reasoning(control["reasoning_trace"]))
    items += [ToolCall(call["tool"], call["args"], call.get("score", 0)) for call in control["tool_calls"]]
    if packet.get("surface_response"):
        items.append(Message(packet["surface_response"]))
    return Answer(
        tuple(items),
        tuple(control.get("mangle_updates", ())),
        tuple(control.get("memory_operations", ())),
        control.get("self_correction"),
    )

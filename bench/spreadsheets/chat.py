"""The other arm: a chat loop as it is usually written, and no worse.

One conversation; the whole history is sent with every call. Calls that are no JSON or do not fit
the tool's schema do not reach the tool, and the model reads why, with the schema. A tool that failed is an
error that the model reads. What such a loop does not have is what the seed says of it: only LIMIT bounds
repetitions, and a file that was half written stays as it is.

`counting` adds what costs a loop five lines: the third time in a row that a call is made, the model reads so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.spreadsheets.model import DONE, Model, Shown
from bench.spreadsheets.sheets import Sheet
from bench.spreadsheets.tools import Breaking, ReadTable
from spak import canon, tokens
from spak.lang.schema import violations
from spak.ports import Call, Tool

LIMIT = 90
"""Calls of the model, as in the seed's baseline."""
ROW = 3
SYSTEM = """You clean spreadsheets with these tools:
{tools}
Answer with one JSON object and nothing else: {{"tool": NAME, "args": {{...}}}}. When all is written, say so.

{instructions}"""


@dataclass(slots=True)
class Used:
    """What a conversation used."""

    tokens: int = 0
    calls: int = 0


def converse(
    model: Model, sheets: Sequence[Sheet], folder: Path, limit: int = LIMIT, counting: bool = False
) -> Used:
    """One conversation about these sheets, to its end or its limit."""
    tools: dict[str, Tool] = {"read_table": ReadTable(), "write_file": Breaking(model.breaks)}
    told = "\n".join(f"{name}: {tool.entry.summary} args: {_schema(tool)}" for name, tool in tools.items())
    instructions = "\n".join(f"- {sheet.instruction}" for sheet in sheets)
    history = [Shown(SYSTEM.format(tools=told, instructions=instructions))]
    size, used, row, last = tokens.count([{"text": history[0].text}]), Used(), 0, ""
    model.forget()
    while used.calls < limit:
        said = model.say(history)
        result = _done(said, tools, folder)
        row, last = (row + 1 if said == last else 1), said
        if counting and row >= ROW:
            result = Shown(f"error: this call was made {row} times in a row: do something else", error=True)
        used.calls += 1
        used.tokens += size + tokens.of_text(said)
        if said == DONE:
            break
        history = [*(piece._replace(error=False) for piece in history), Shown(said), result]
        size += tokens.count([{"text": said}, {"text": result.text}])
    return used


def _done(said: str, tools: Mapping[str, Tool], folder: Path) -> Shown:
    try:
        call = json.loads(said)
        tool, args = tools[call["tool"]], call["args"]
    except (ValueError, TypeError, KeyError) as error:
        return Shown(f"error: the answer is no call: {error}", error=True)
    if wrong := violations(tool.entry.schema, args):
        return Shown(f"error: {wrong[0]}; the schema is {_schema(tool)}", error=True)
    result = tool.run(Call("1", tool.entry.name, args, folder, None))
    text = result.output.decode()
    if result.status != "exited" or result.exit:
        return Shown(f"error: {text}", error=True)
    return Shown(text)


def _schema(tool: Tool) -> str:
    return canon.dumps(tool.entry.schema).decode()

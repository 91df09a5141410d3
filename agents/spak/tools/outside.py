"""What an agent behind the guard proposes besides calls of our tools: `contained`, its changes of its own
copy, `model_request`, `tunnel` and `tunnel_closed`, `ask_person`, and `witnessed`, where only hooks say what
it does.

Takes a call as every tool does. The work is the guard's (spak.guard), which puts its own in their places for
a session; without one they are refused.
"""

from __future__ import annotations

from collections.abc import Callable

from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results

MOST_PATHS = 200
"""Changed paths that a proposal names; the transaction has all of them."""
MOST_ACTIONS = 20_000
"""Characters of what a hook asked about that are kept."""
MOST_REQUEST = 32 << 20
"""Characters of a request to a model."""
MOST_SENT = 1 << 50
ENDS = ("closed", "idle", "session")

MOST_QUESTION = 4000


class Proposed:
    """A tool of a session: what is proposed is done by who holds the session, and refused elsewhere."""

    def __init__(self, work: Callable[[Call], ToolResult] | None = None) -> None:
        self._work = work

    def run(self, call: Call) -> ToolResult:
        """Do it."""
        return results.failed(*NO_SESSION) if self._work is None else self._work(call)


class Contained(Proposed):
    """The tool `contained`."""

    entry = ToolEntry(
        name="contained",
        version=1,
        summary="Keeps what a guarded agent changed in its copy, as one transaction.",
        schema=parts.members(
            ["root", "changes"],
            root=parts.text("The root of its copy.", 100),
            changes=parts.whole("How many paths changed.", 0, 1 << 40),
            paths={
                "type": "array",
                "description": "The first of them.",
                "items": parts.text("A path of the workspace.", 5000),
                "maxItems": MOST_PATHS,
            },
        ),
        on_fail="continue",
        sandboxed=False,
        arguments={"root": "text", "changes": "text", "paths": "text"},
    )


class ModelRequest(Proposed):
    """The tool `model_request`."""

    entry = ToolEntry(
        name="model_request",
        version=1,
        summary="Sends a guarded agent's request to its model.",
        schema=parts.members(
            ["provider", "path", "request"],
            provider={
                "type": "string",
                "description": "Whose model it is, and whose format.",
                "enum": ["anthropic", "openai"],
            },
            path=parts.text("Of the URL.", 500),
            model=parts.text("The model that it names.", 200, least=0),
            request=parts.text("The request, without secrets.", MOST_REQUEST, least=0),
        ),
        effect="costly",
        on_fail="continue",
        sandboxed=False,
        writes=False,
        arguments={"provider": "text", "path": "text", "model": "text", "request": "text"},
    )


class AskPerson(Proposed):
    """The tool `ask_person`."""

    entry = ToolEntry(
        name="ask_person",
        version=1,
        summary="Asks the person whose agent it is, and gives the answer.",
        schema=parts.members(["question"], question=parts.text("What to ask.", MOST_QUESTION)),
        effect="costly",
        on_fail="continue",
        sandboxed=False,
        writes=False,
        arguments={"question": "text"},
    )


class Witnessed(Proposed):
    """The tool `witnessed`: the guard says nothing of it but that it answered so."""

    entry = ToolEntry(
        name="witnessed",
        version=1,
        summary="Records what the guard answered an agent's hook, and what the agent said came of it.",
        schema=parts.members(
            ["agent", "event", "id", "tool"],
            agent=parts.text("The agent that asked.", 40),
            event={
                "type": "string",
                "description": "A question with its answer; what came of it (done, failed, done against the "
                "answer); what was done without a question; the end of a turn.",
                "enum": ["asked", "done", "failed", "against", "unasked", "turn"],
            },
            session=parts.text("The agent's session, by its own words.", 200, least=0),
            id=parts.text("The call, by the agent's own words.", 200, least=0),
            tool=parts.text("The agent's tool.", 200, least=0),
            actions=parts.text(
                "What it does in the words of the gate, without secrets.", MOST_ACTIONS, least=0
            ),
            verdict={"type": "string", "description": "The answer.", "enum": ["allow", "ask", "deny"]},
            reason=parts.text("Why.", 2000, least=0),
        ),
        effect="costly",
        on_fail="continue",
        sandboxed=False,
        writes=False,
        arguments=dict.fromkeys(
            ("agent", "event", "session", "id", "tool", "actions", "verdict", "reason"), "text"
        ),
    )


class Tunnel(Proposed):
    """The tool `tunnel`."""

    entry = ToolEntry(
        name="tunnel",
        version=1,
        summary="Opens a tunnel for a guarded agent to a permitted host, at the address that was judged.",
        schema=parts.members(
            ["host", "port"],
            host=parts.text("The host's name.", 253),
            port=parts.whole("The port of the host.", 1, 65535),
        ),
        on_fail="continue",
        sandboxed=False,
        writes=False,
        arguments={"host": "host", "port": "text"},
    )


class TunnelClosed(Proposed):
    """The tool `tunnel_closed`."""

    entry = ToolEntry(
        name="tunnel_closed",
        version=1,
        summary="Records how much a tunnel of a guarded agent carried, when it has ended.",
        schema=parts.members(
            ["host", "port", "sent", "received", "why"],
            host=parts.text("The host's name.", 253),
            port=parts.whole("The port of the host.", 1, 65535),
            sent=parts.whole("Bytes that went to the host.", 0, MOST_SENT),
            received=parts.whole("Bytes that came from it.", 0, MOST_SENT),
            why=parts.choice("What ended it: either end, silence, or the session.", ENDS, "closed"),
        ),
        on_fail="continue",
        sandboxed=False,
        writes=False,
        arguments=dict.fromkeys(("host", "port", "sent", "received", "why"), "text"),
    )


OWN = (Contained, ModelRequest, Tunnel, TunnelClosed, Witnessed, AskPerson)

NO_SESSION = ("guard.no_session", "this is proposed by an agent behind the guard", "spak guard -- AGENT")

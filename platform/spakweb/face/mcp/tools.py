"""What `/mcp` offers to the person of a token: specs that say `EXPORT mcp` as tools, and runs of them.

A call of a spec starts a run by the same function as the API, with the rights of the token, and waits a while
for its end; after that it answers `waiting` with the run's id, and `run_status` waits on. What a run asks is
put to the person at the client where that can: a question as a text, an approval as the page on which a
reviewer signs, since no token and no model approves. Runs of other specs do not exist here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from asgiref.sync import sync_to_async
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from spak import canon
from spak.errors import UserError
from spak.mcp.sdk_server import Asks, Caller, Content, Offered, Resource, Said
from spakweb.face.api.views.runs import news
from spakweb.face.mcp import resources
from spakweb.face.runs import run_parts
from spakweb.face.streams.viewers import Viewer
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.text import one_line
from spakweb.ground.unsafe_text import reveal
from spakweb.store.runs import words
from spakweb.store.runs.models import Run, State
from spakweb.store.specs import reach
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.work.runs import actions, start_inputs

WAIT_S = 20
"""How long a call waits for the run: an agent's own limit is not much longer."""
MOST_TOOLS = 200
MOST_ROUNDS = 3
"""How often one call asks the person."""
STATE_S = 3600
SALT = "spakweb.mcp"
MOST_MESSAGE = 4000
RUN_ID = {"type": "string", "description": "The id of the run.", "maxLength": 128}


def _takes(**more: Any) -> dict[str, Any]:
    properties = {"run": RUN_ID, **more}
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


OF_RUNS = (
    Offered("run_status", "How a run is; waits some seconds for its end.", _takes(), reads=True),
    Offered(
        "run_answer",
        "Answer the question that a run asks. An approval is given on its page, by a person.",
        _takes(text={"type": "string", "description": "The answer.", "minLength": 1}),
    ),
    Offered("run_cancel", "Cancel a run.", _takes()),
)
LOOKING = frozenset(tool.name for tool in OF_RUNS if tool.reads)


class Specs:
    """What the person of a token has of it, for one request."""

    def __init__(self, request: HttpRequest, user: Any) -> None:
        self._request, self._user = request, user

    # ---- the protocol's side ---------------------------------------------------------------------------

    async def tools(self) -> Sequence[Offered]:
        """Specs by name, and the tools of runs where there is a spec."""
        return await sync_to_async(self._tools)()

    async def call(self, name: str, args: Mapping[str, Any], caller: Caller) -> Said | Asks:
        """Start a run, or act on one, and wait for it."""
        try:
            run, rounds = await sync_to_async(self._begun)(name, args, caller)
            if not run.ended and not caller.declined:
                viewer = Viewer.of(self._user, self._request.session, named=False)
                if not await news(run, viewer, WAIT_S, _waits_for(run), records=False):
                    raise Http404
            return await sync_to_async(self._said)(name, args, run.key, caller, rounds)
        except (UserError, Http404, PermissionDenied) as error:
            return _refusal(error)

    async def resources(self) -> Sequence[Resource]:
        """The newest runs, and the forms of addresses."""
        return await sync_to_async(resources.listed)(runs(self._user))

    async def read(self, uri: str) -> Content | None:
        """A run, its records or a file of it."""
        try:
            return await sync_to_async(resources.read)(self._request, self._user, runs(self._user), uri)
        except (UserError, Http404, PermissionDenied):
            return None

    # ---- in threads ------------------------------------------------------------------------------------

    def _tools(self) -> list[Offered]:
        found = {name_of(spec): spec for spec in specs(self._user)}
        made = [
            Offered(
                name,
                f"{_purpose(spec.head)} Starts a run of {spec.team.slug}/{spec.slug}, version "
                f"{spec.head.number} ({spec.head.content_hash[:12]}), which SPAK judges and records.",
                schema_of(spec.head),
            )
            for name, spec in found.items()
            if spec.head is not None
        ]
        return [*made, *OF_RUNS] if made else []

    def _begun(self, name: str, args: Mapping[str, Any], caller: Caller) -> tuple[Run, int]:
        """The run that a call is about, after what was to be done; and how often the call asked so far.

        Raises: UserError, Http404, PermissionDenied."""
        if caller.state:
            told = self._told(name, args, caller.state)
            run = self._run(told["run"])
            given = run.commands.filter(kind="answer", body__of=told["of"], by=self._user).exists()
            if caller.answer is not None and not (told["page"] or given or run.ended):
                actions.ask(self._user, run, "answer", told["of"], text=caller.answer)
            return run, int(told["round"])
        if name in {tool.name for tool in OF_RUNS}:
            run = self._run(str(args.get("run", "")))
            self._acted(name, run, str(args.get("text", "")))
            return run, 0
        spec = next((one for one in specs(self._user) if name_of(one) == name), None)
        if spec is None or spec.head is None:
            raise Refused("web.mcp_tool", f"There is no tool {name[:80]!r}.", "List the tools again.", 404)
        spec.head.spec = spec
        given = {key: value if isinstance(value, str) else json.dumps(value) for key, value in args.items()}
        known = start_inputs.declared(spec.head)
        start_inputs.require_declared(known, given)
        inputs = start_inputs.checked(spec.head, given, known)
        return actions.start(self._user, spec, version=spec.head, inputs=inputs), 0

    def _acted(self, name: str, run: Run, text: str) -> None:
        if name == "run_cancel":
            actions.request_control(self._user, run, "cancel")
        elif name == "run_answer":
            actions.ask(self._user, run, "answer", _waits_for(run), text=text)

    def _run(self, key: str) -> Run:
        found: Run = access.find(self._user, "run.view", runs(self._user), key=key)
        return found

    def _told(self, name: str, args: Mapping[str, Any], state: str) -> dict[str, Any]:
        """What we put into a state. Raises: Refused `web.mcp_state`."""
        try:
            told: dict[str, Any] = signing.loads(state, salt=SALT, max_age=STATE_S)
        except signing.BadSignature as error:
            raise _not_ours() from error
        if told["for"] != self._binding(name, args):
            raise _not_ours()
        return told

    def _binding(self, name: str, args: Mapping[str, Any]) -> str:
        return canon.content_hash(
            [self._user.pk, self._user.token.pk, name, json.dumps(args, sort_keys=True)]
        )

    def _said(self, name: str, args: Mapping[str, Any], key: str, caller: Caller, rounds: int) -> Said | Asks:
        run = self._run(key)
        waiting = run_parts.asks(run)
        asked = next((one for one in waiting if one["given"] is None), None)
        hidden = reach.hides(self._user, run.takes_in)
        if asked is not None and rounds < MOST_ROUNDS and not caller.declined:
            page = asked["kind"] == "approval"
            shown = not hidden and access.can(self._user, "run.answer", run)
            if not hidden and caller.pages if page else caller.texts and shown:
                state = {
                    "run": key, "of": asked["id"], "page": page, "round": rounds + 1,
                    "for": self._binding(name, args),
                }  # fmt: skip
                return Asks(
                    _question(asked), signing.dumps(state, salt=SALT), self._page(run) if page else ""
                )
        text = "" if hidden else f"{run_parts.outcome(run)}\n"
        text += f"run {key}: {run.shown_state}, {self._page(run)}\n"
        if run.ended:
            text += f"Its files are spak://runs/{key}/files/PATH, its records spak://runs/{key}/ledger/0\n"
        elif asked is not None and asked["kind"] == "approval":
            text += f"waiting: a reviewer approves on that page. Then call run_status for {key}.\n"
        elif asked is not None and hidden:
            text += "waiting for an answer, on that page: the token does not see the text that it runs.\n"
        elif asked is not None:
            text += f"waiting for an answer: {_question(asked)}\nAnswer by run_answer, or on that page.\n"
        else:
            text += f"waiting: call run_status for {key}, or go on with something else.\n"
        about = {**resources.about(run), "state": run.state, "waiting": not run.ended}
        return Said(text, run.state in (State.FAILED, State.REFUSED, State.CANCELLED), about)

    def _page(self, run: Run) -> str:
        return self._request.build_absolute_uri(run_parts.address(run))


def specs(user: Any) -> list[Spec]:
    """The specs that are exported and that the person may start, in the order of their tools."""
    rows = Spec.objects.filter(archived_at=None, head__facts__export="mcp", head__facts__errors=0)
    rows = access.visible_to(user, rows).select_related("team", "head").order_by("team__slug", "slug")
    may: dict[int, bool] = {}
    found = []
    for spec in rows[:MOST_TOOLS]:
        if spec.team_id not in may:
            may[spec.team_id] = access.can(user, "run.start", spec)
        if may[spec.team_id]:
            found.append(spec)
    return found


def runs(user: Any) -> Any:
    """The runs of exported specs that the person sees."""
    rows = Run.objects.filter(
        version__spec__head__facts__export="mcp", version__spec__archived_at=None, deleted_at=None, trial=""
    )
    return access.visible_to(user, rows).select_related("team", "version__spec")


def name_of(spec: Spec) -> str:
    """The name of a spec's tool."""
    return f"spak__{spec.team.slug}__{spec.slug}"


def schema_of(version: SpecVersion) -> dict[str, Any]:
    """The inputs of a version as the schema of its tool."""
    return _schema(version.pk, version.content_hash)


@lru_cache(maxsize=512)
def _schema(version: int, content_hash: str) -> dict[str, Any]:
    found = SpecVersion.objects.select_related("spec__team").get(pk=version)
    return start_inputs.schema(start_inputs.declared(found))


def _purpose(version: SpecVersion) -> str:
    """The goal of its first task, or its name."""
    goals = version.facts.get("goals") or {}
    said = goals.get(version.facts.get("start")) or next(iter(goals.values()), version.facts.get("name", ""))
    return reveal(one_line(str(said), 400)).rstrip(".") + "."


def _question(asked: Mapping[str, Any]) -> str:
    """What is asked: the words of the question itself, or the action that waits for an approval."""
    if asked["kind"] == "approval":
        return f"A person has to approve this on the page: {words.one_line(asked['action'], 500)}"
    own = [piece.text for piece in asked["pieces"] if piece.own] or [piece.text for piece in asked["pieces"]]
    return reveal("\n".join(own)[:MOST_MESSAGE])


def _waits_for(run: Run) -> str:
    """The id of what the run waits for; empty where it goes on."""
    found = (run.summary or {}).get("waiting") or {}
    return str(found.get("id", "")) if run.state == State.WAITING else ""


def _refusal(error: Exception) -> Said:
    if isinstance(error, UserError):
        code, text = error.code, f"{error.message} {error.hint}".strip()
    elif isinstance(error, PermissionDenied):
        code, text = "web.403", str(error)[:300] or "You may not do that."
    else:
        code, text = "web.404", "There is nothing here, or it is not yours."
    return Said(f"{text} [{code}]", failed=True, data={"code": code})


def _not_ours() -> Refused:
    return Refused(
        "web.mcp_state", "The state of this call was not given for it, or is too old.", "Call the tool again."
    )

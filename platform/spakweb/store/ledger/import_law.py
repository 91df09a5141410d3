"""Whether a run that was imported may go on here: only under the law that this platform would give it now.

Takes the first record of an import; gives why the run is only shown, or nothing. Its rules have to be, value
for value, those of a new run of a version of a spec of its team: the law of the team, that version's POLICY,
our tools and validators, our approvers, our semantics. It executes nothing and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spak import canon, config
from spak.begin import lawful, pick_mode, recordable
from spak.errors import UserError
from spak.lang.imports import Resolved
from spak.policy.law import Law, rules_of
from spak.program import compile as compile_program
from spak.program.semantics import require_known
from spak.runner.genesis import genesis
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import Team, User
from spakweb.store.runs.signing import MOST, PLATFORM, approvers
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import SpecVersion
from spakweb.store.specs.team_files import TeamFiles

UNCHECKED = "its import was cut off; import it again"
NEWEST = 20
"""Versions of a spec of its name that are looked at, where imports make the text another one."""
_OTHER = {
    "policy": "its policy is not the one of this platform",
    "catalog": "its tools or validators are not those of this platform",
    "keys": "its approvals would be signed with other keys than this platform's",
}


def only_shown(team: Team, body: Mapping[str, Any]) -> str:
    """Why a run with this genesis does not go on here; empty when it may."""
    try:
        rules, host = dict(body["rules"]), dict(body["host"])
        require_known(rules)
        text, inputs = str(rules["spec"]), dict(rules["inputs"])
        found = next((whole for whole in _wholes(team, text, host) if whole.parsed.text == text), None)
        if found is None:
            return "no version of a spec of this team has its text"
        ours = _rules(found, law_of(team), rules, inputs, host)
    except UserError as error:
        return f"{error.code}: {error.message}"[:150]
    except (KeyError, TypeError, ValueError):
        return "its first record has no rules"
    other = [name for name in {**rules, **ours} if _bytes(rules.get(name)) != _bytes(ours.get(name))]
    return _OTHER.get(other[0], f"its {other[0]} are others") if other else ""


def _rules(
    whole: Resolved, law: Law, rules: Mapping[str, Any], inputs: Mapping[str, Any], host: Mapping[str, Any]
) -> dict[str, Any]:
    """The rules that a new run of that text would have. Raises: UserError when none could begin."""
    recordable(inputs)
    program = compile_program(whole.parsed, catalog(), dict(inputs))
    lawful(whole, law, program, catalog())
    if host.get("mode") in config.MODES:
        pick_mode(host["mode"], whole.parsed, program, config.settings(), "")
    named = [key["name"] for key in rules["keys"]][: MOST + 1]
    people = User.objects.filter(username__in=named).exclude(username=PLATFORM).order_by("pk")
    made = genesis(
        whole.parsed.text, config.used(catalog(), program), inputs, rules["r3"], rules["seed"], {},
        policy=whole.policy, axioms=rules_of(program.axioms), keys=approvers(people), law=law,
    )  # fmt: skip
    return dict(made["rules"])


def _wholes(team: Team, text: str, host: Mapping[str, Any]) -> Iterator[Resolved]:
    """Versions of the team that may have that text, their imports put in."""
    versions = SpecVersion.objects.filter(spec__team=team).select_related("spec__team").order_by("-pk")
    name = str(host.get("spec", ""))
    for rows in (versions.filter(text=text)[:1], versions.filter(spec__name=name)[:NEWEST]):
        for version in rows:
            yield TeamFiles.of(version.spec).whole(version.text)


def _bytes(value: Any) -> bytes:
    return canon.dumps(value)

"""What pages can do and the API cannot: each action of an app is called by a view of the API, or is listed
here with the reason why not."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3] / "platform" / "spakweb"
MODULES = (
    *sorted(
        f"spakweb.{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}"
        for path in ROOT.rglob("actions.py")
    ),
    "spakweb.work.reviews.talk",
    "spakweb.work.sources.branches",
    "spakweb.work.suites.bringing",
    "spakweb.work.suites.sealing",
)

PERSON = "a decision that counts because a person took it"
ACCESS = "it gives others access, or takes it: people do that"
INSIDE = "a step of other actions, no request by itself"
CLOCK = "the platform does it by itself"
WORKER = "a worker does it, by its own token or on the host"
BROWSER = "it belongs to a person's browser: drafts and kept views"
OUT = "it sends what happens in the team to another address: an admin adds those"

REASONS = {
    "audit": {"record": INSIDE},
    "fleet": {
        "register": WORKER, "withdraw": WORKER, "heartbeat": WORKER, "leave": WORKER, "beat_here": WORKER,
    },
    "hooks": {
        "add": OUT, "switch": OUT, "rotate": OUT, "remove": OUT, "test": OUT, "redeliver": OUT,
    },
    "incoming": {"make": INSIDE, "renew": INSIDE, "secret_of": INSIDE},
    "oidc": {"add": ACCESS, "remove": ACCESS},
    "reviews": {
        "judge": PERSON, "take_back": PERSON, "conflicts": PERSON, "decide": PERSON, "patched": INSIDE,
        "joined": INSIDE, "rebase_held": INSIDE, "merge_held": INSIDE, "provenance": INSIDE,
    },
    "talk": {"view": BROWSER},
    "branches": {
        "decide": PERSON, "barrier": INSIDE, "offered": INSIDE, "find": CLOCK, "act": WORKER,
        "failed": WORKER, "reopen": INSIDE,
    },
    "runs": {
        "delete": PERSON, "keep_view": BROWSER, "kept_files": INSIDE, "new_key": INSIDE, "labels_of": INSIDE,
    },
    "schedules": {"fire": CLOCK},
    "sources": {"find": INSIDE},
    "specs": {
        "archive": PERSON, "draft_of": BROWSER, "unsaved_draft": BROWSER, "save_draft": BROWSER,
        "draft_moved": BROWSER, "drop_draft": BROWSER,
    },
    "teams": {
        "create_team": ACCESS, "invite": ACCESS, "invitation": ACCESS, "no_invitation": ACCESS,
        "join": ACCESS, "withdraw": ACCESS,
        "set_role": ACCESS, "remove": ACCESS, "keep_runs": PERSON, "set_rules": PERSON,
    },
}  # fmt: skip
"""By app, or by module where it is none of `actions`."""


def short(module: str) -> str:
    app, name = module.split(".")[-2:]
    return app if name == "actions" else name


def public(module: str) -> set[str]:
    loaded = importlib.import_module(module)
    return {
        name for name, thing in vars(loaded).items()
        if inspect.isfunction(thing) and thing.__module__ == module and not name.startswith("_")
    }  # fmt: skip


def called() -> dict[str, set[str]]:
    """By module, the functions that views of the API name."""
    found: dict[str, set[str]] = {module: set() for module in MODULES}
    for path in (ROOT / "face/api").rglob("*.py"):
        tree, names = ast.parse(path.read_text()), {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for item in node.names:
                    whole = f"{node.module}.{item.name}"
                    if whole in found:
                        names[item.asname or item.name] = whole
                    elif node.module in found:
                        found[node.module].add(item.name)
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in names
            ):
                found[names[node.value.id]].add(node.attr)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_each_action_has_an_address_or_a_reason(module: str) -> None:
    reached, reasons, there = called()[module], REASONS.get(short(module), {}), public(module)
    assert there - reached == set(reasons) & there, "neither an address nor a reason, or both"
    assert set(reasons) <= there, "a reason for what is not there"

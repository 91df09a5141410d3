"""What a tool changed in the workspace, taken into its root or rolled back.

Takes the workspace with a step under way and the body of its act; adds R3 to the body, or undoes the step and
says why: what it left is too big, it changed the repository in a way that nothing permits (ADR 0022), or the
settings of later runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spak import paths
from spak.errors import UserError
from spak.kernel.outcomes import REPOSITORY, SETTINGS
from spak.ports import Blobs
from spak.runner import faults
from spak.tools.git import nested, repository
from spak.workspace import Workspace

WHY = 300
"""Characters of the reason that R4 and the record hold."""


def take(
    workspace: Workspace,
    blobs: Blobs,
    body: dict[str, Any],
    keep_git: Callable[[Sequence[str]], str],
) -> None:
    """Commit the step. `keep_git` says, of all changed paths, why a change of `.git` must be rolled back.

    Raises: RunError for a fault of the host, after the rollback: no tool is to blame for it.
    """
    try:
        body["r3"] = workspace.commit()
        touched = workspace.touched()
        why = ""
        if touched and (_in_git(workspace, touched) or nested.moved(workspace.directory, touched)):
            with workspace.lock():
                why = keep_git(touched)
        why = why or nested.trouble(workspace.directory, touched, workspace.existed)
    except UserError as error:
        if error.code in faults.OF_HOST:
            workspace.rollback()
            raise
        _undo(workspace, body, {"outcome": "limit", "code": error.code})
        return
    settings = _of_settings(workspace, touched)
    if why or settings:
        body["why"] = (why or f"{settings} was changed")[:WHY]
        _undo(workspace, body, {"outcome": "invalid", "code": REPOSITORY if why else SETTINGS})
        return
    if touched and all(map(repository.within, touched)):
        body["only_git"] = True
    if workspace.travels:
        workspace.push(body["r3"], blobs)


def _in_git(workspace: Workspace, touched: Sequence[str]) -> bool:
    places = repository.places(workspace.directory)
    return any(repository.within(path, places) for path in touched)


def _of_settings(workspace: Workspace, touched: Sequence[str]) -> str:
    """A changed file of settings in a folder that is no copy: a later run would read it. Else empty."""
    if not workspace.in_place:
        return ""
    root = workspace.directory.resolve()
    linked = (root / paths.SETTINGS).resolve()
    return next((path for path in touched if _is_settings(path) or root / path == linked), "")


def _is_settings(path: str) -> bool:
    """Also as a file system without case would have it."""
    return path.rpartition("/")[2].casefold() == paths.SETTINGS


def _undo(workspace: Workspace, body: dict[str, Any], outcome: Mapping[str, str]) -> None:
    workspace.rollback()
    body |= outcome
    body.pop("r3", None)
    del body["exit"]

"""Checks besides those of the run's own files: of the beginning, and sealed ones.

Takes a Subject (the host, the workspace, what hides secrets, and the root of the beginning) and an effect;
gives what was measured. `at_beginning` takes a check again that passed, on the files of the beginning with
the run's ordinary changes; `sealed` asks the host's sealed checks about all that the run made. It records
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from spak import door
from spak.cancel import Token
from spak.errors import RunError
from spak.kernel.state import Effect
from spak.ports import MeasureCall, Measurement
from spak.repository.scratch import GIT
from spak.runner.host import Host
from spak.runner.secret_guard import SecretGuard
from spak.workspace import Workspace

APART = frozenset({"Command", "Linter", "PyTest"})
"""Validators that are run again on the files of the beginning: they look, and measure nothing."""
_AS_GOOD = (door.Class.ORDINARY, door.Class.IGNORED)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked: a run's workspace, which began with the root `begun`."""

    host: Host
    workspace: Workspace
    guard: SecretGuard
    begun: str


class Again(NamedTuple):
    """A check that was taken again: the root that it saw, the paths of the changes that were not there, and
    what it says."""

    root: str
    apart: list[str]
    seen: Measurement


def at_beginning(of: Subject, effect: Effect, call: MeasureCall, seen: Measurement) -> Again | None:
    """The check that gave `seen`, taken again; None where it did not pass, where the run changed nothing but
    ordinary files, or where the validator measures. Raises: RunError `workspace.*`; Cancelled."""
    passed = seen.status == "checked" and all(one.get("ok") for one in seen.checks)
    if effect.name not in APART or not passed:
        return None
    apart: dict[str, None] = {}

    def as_good(one: door.Change) -> bool:
        if one.of not in _AS_GOOD:
            apart[one.shown] = None
        return one.of in _AS_GOOD

    checkout = of.workspace.checkout
    root = checkout.hold(of.begun, of.workspace.snapshot(), as_good)
    if not root:
        return None
    launcher = of.guard.launcher(checkout.folder)
    there = replace(call, workspace=checkout.folder, launcher=launcher, heard=None)
    return Again(root, list(apart), of.host.validators[effect.name].measure(there))


def sealed(of: Subject, effect: Effect, cancel: Token) -> Measurement:
    """What the sealed checks say of all that the run made, compared with the files of its beginning.

    Raises: RunError `run.sealed_changed`, `workspace.*`; UnavailableError; Cancelled.
    """
    checks = of.host.sealed
    if checks is None or checks.hash != effect.args["hash"]:
        raise RunError(
            "run.sealed_changed",
            "the sealed checks are not there as they were when the run began",
            "put them back, then continue with `spak resume`",
        )
    place, checkout = of.workspace.directory, of.workspace.checkout
    with of.workspace.lock(cancel):
        if (root := of.workspace.snapshot()) != effect.root:
            raise RunError("workspace.changing", "files changed before their check", "spak resume")
        begun = checkout.folder if checkout.hold(of.begun, root, lambda one: False) else place
        call = MeasureCall(
            effect.id, effect.name, {}, place, of.host.launcher, of.host.limits, of.host.toolchain,
            cancel=cancel, hides=no_work(of),
        )  # fmt: skip
        return checks.measure(call, begun)


def no_work(of: Subject) -> Callable[[str], bool]:
    """Whether a path of the workspace is none of the work: of its scratch repository, a file of secrets."""
    tops = {GIT, *of.workspace.ours}
    return lambda path: path.partition("/")[0] in tops or of.guard.hides(path)

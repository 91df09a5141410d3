"""The two repositories of a run: the scratch one that its jobs see, and the bare one that holds its commits.

Takes the workspace, the rules and what recognises secrets; gives a tool the run's Commits, and sees to it
before each job that the scratch repository is there. It decides nothing: what is in a commit is
`spak.repository`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable

from spak.cancel import Token
from spak.door import Leaving, Node, look
from spak.errors import RunError
from spak.kernel.rules import Rules
from spak.repository import past, scratch
from spak.repository.begun import compares_modes
from spak.repository.commits import Commits, Files, Secret
from spak.repository.git import Git
from spak.repository.leaving import Read
from spak.runner.secret_guard import SecretGuard
from spak.workspace import Workspace
from spak.workspace.secret_nodes import secret_files


class Repositories:
    """For one workspace, as long as a process works in it."""

    def __init__(self, workspace: Workspace, rules: Rules, guard: Callable[[], SecretGuard]) -> None:
        self._workspace, self._rules, self._guard = workspace, rules, guard
        self._place = workspace.git.repository
        self._log = b""

    def commits(self, last: str, cancel: Token) -> Commits:
        """The run's commits; `last` is the call of the last one."""
        return Commits(
            self._place, last, self._files, self._secret, lambda: not cancel.is_set(), self._looked
        )

    def before_job(self) -> None:
        """The scratch repository in its place. Raises: RunError `git.*`, `workspace.*`."""
        place, git = self._workspace, self._workspace.git
        if not scratch.ready(place.directory, git.aside):
            begun = git.files(self._rules.r3)
            try:
                scratch.begin(place.directory, git.making, begun, git.read, self._hidden(), self._past)
            except RunError as error:
                if error.code != "git.missing":  # then the jobs have none either
                    raise
        self._log = scratch.log_of(place.directory)

    def after_job(self) -> str:
        """What to say of a step that committed in the scratch repository; mostly nothing."""
        return scratch.note(self._log, scratch.log_of(self._workspace.directory))

    def put_aside(self, *, ended: bool) -> None:
        """The process stops: no git of a person obeys what a job wrote."""
        if self._workspace.directory.is_dir():
            scratch.put_aside(self._workspace.directory, self._workspace.git.aside, ended=ended)

    def _hidden(self) -> Secret:
        """What says which of the first files are secret; where the step began with those, its scan knows."""
        tree = self._workspace.begun
        if tree is None or tree.digest != self._rules.r3:
            return self._secret
        named = frozenset(secret_files(tree))
        guard = self._guard()
        return lambda path, data, old=None: (
            guard.holds(data) or (path in named and guard.is_secret(path, data))
        )

    def _secret(self, path: str, data: bytes, old: bytes | None = None) -> bool:
        return self._guard().is_secret(path, data, old)

    def _past(self, git: Git) -> str:
        if not (count := self._rules.program.history):
            return ""
        bare = Git(self._workspace.git.repository, git.ends, git.most_bytes)
        return past.bring(bare, git, scratch.BRANCH, count, self._secret)

    def _looked(self, before: Node, after: Node, read: Read) -> Leaving:
        guard = self._guard()
        modes = compares_modes(self._place)
        return look(before, after, read, holds=guard.holds, shown=guard.host.shown_secrets, modes=modes)

    def _files(self) -> Files:
        git = self._workspace.git
        return Files(git.folder, git.files(), git.files(self._rules.r3), git.read)

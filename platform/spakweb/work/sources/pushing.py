"""A commit that git has, given to a repository elsewhere: as a new branch, on top of one, or in the place of
one that this platform made. Nothing that somebody else pushed is written over.
"""

from __future__ import annotations

from spakweb.store.sources import fetching
from spakweb.store.sources.git import Git

PUSH = ("push", "--quiet", "--no-verify", "--no-recurse-submodules")
RECEIVE = "--receive-pack=git -c core.hooksPath=/dev/null receive-pack"
"""Of a repository on the disk, whose hooks would run here."""


def give(git: Git, commit: str, ref: str, upon: str = "") -> None:
    """Bring a ref of the repository's to this commit: a new one, or with `upon` one that is at that commit.
    With `upon` the commit need not be on top of it: whoever asks knows whose it is. A ref that is elsewhere
    stays; one that is at the commit already is left.

    Raises: RunError `git.branch_taken`, `git.push_refused`, `git.*`.
    """
    if fetching.listed(git, [ref]).get(ref) == commit:
        return
    folder = (RECEIVE,) if git.of.address.kind == "folder" else ()
    lease = f"--force-with-lease={ref}:{upon}"
    git.remote(*PUSH, *folder, lease, "--", git.of.address.url, f"{commit}:{ref}")

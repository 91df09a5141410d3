"""The one door: what of a run's changes may leave its copy, and what of it would run by itself.

    found = look(before, after, store.read, holds=redactor.holds, blocked=reasons)
    found.require()  # or found.require(signed=DIGEST, allowed=PATHS), what a person signed or named

`look` takes two trees of a workspace (`spak.workspace.tree.Node`) and what reads a content by its digest. It
gives `Leaving`: each changed path with one class and a reason, what is refused, what needs a signature, a
`digest` that binds the base, the root and every path with its class, and a `text` for people that begins with
what would run by itself; `keep` chooses some of the paths. Every way out asks it: a
commit, a branch, a pull request, a patch, files that are applied, and artefacts that a later run fetches.

- `ignored` stays where it is: git ignores it, and it was not there before.
- `secret` and `odd` are refused: a secret by its name, its contents or a known value; a link that leads out,
  a socket, something of `.git`, a name with signs that do not show, two names that differ by case only.
- `runs` needs a signature that names it: a tool takes it up by itself, or nobody knows what does.
- `checks` and `ordinary` leave.

It reads contents through what it is given, starts nothing, and knows no law: why nothing may leave
(`block_commit(Reason)`) is given to it.
"""

from spak.door.classes import Class, is_known, read_by
from spak.door.look import MOST_SIGNED, Change, Leaving, Node, look, one_line, secret_in

__all__ = [
    "MOST_SIGNED",
    "Change",
    "Class",
    "Leaving",
    "Node",
    "is_known",
    "look",
    "one_line",
    "read_by",
    "secret_in",
]

"""`git_commit`: the workspace's changes as one commit of its git repository, with nothing of it believed.

The repository's own configuration is never read: inside the sandbox git works with a folder of its own
(configuration, index, exclusions), of which only the objects are the workspace's. So no hook, filter, file
monitor, signing program, editor, pager, alias, included file or submodule of a hostile repository is ever
started. The branch is written on this side, by the descriptor walk, after the commit exists; the index then
is that of the commit. The order: what HEAD names, the guest's tree and commit, the branch, the index.

It commits what differs from HEAD, ignored files left out. With `paths` it refuses to leave out anything that
changed: the files that were checked are committed whole. It refuses repositories that it would have to
believe in order to commit: of another format, with submodules, with files that want a filter's program. It
pushes nothing, merges nothing and keeps no log of the branch.
"""

from __future__ import annotations

import re
import stat
import time
from dataclasses import dataclass

from spak import canon
from spak.errors import UsageError
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.paths import components, join, normalise
from spak.ports import Call, ToolResult
from spak.tools import inside, results
from spak.tools.argument_schemas import TIMEOUT, object_of
from spak.tools.git.guest import GUEST

AUTHOR = "SPAK <spak@localhost>"
MAX_REFS = 8 << 20
HASH = re.compile(r"[0-9a-f]{40}\Z")
BRANCH = re.compile(
    r"refs/heads/(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|\Z)|[./]\Z))[^\x00-\x20\x7f~^:?*\[\\.][^\x00-\x20\x7f~^:?*\[\\]*\Z"
)
_PERSON = re.compile(r"(?P<name>[^<>\x00-\x1f\x7f]{1,200}) <(?P<mail>[^<>\s\x00-\x1f\x7f]{1,200})>\Z")
_FORMAT = re.compile(rb"^\s*repositoryformatversion\s*=\s*(\S+)", re.I | re.M)


class GitCommit:
    """The tool `git_commit`."""

    entry = ToolEntry(
        name="git_commit",
        version=1,
        summary="Commits the workspace's changes in its git repository; nothing of the repository is run.",
        schema=object_of(
            {
                "message": {
                    "description": "The commit message, as it will stand there.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 65536,
                },
                "paths": {
                    "description": "What changed, by files and folders; left out, all that changed.",
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 256,
                    "items": {"type": "string", "minLength": 1, "maxLength": 4095},
                },
                "author": {
                    "description": "Who commits: Name <mail>.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 405,
                    "default": AUTHOR,
                },
                "time": {
                    "description": "The commit's time in Unix seconds (UTC); left out, now.",
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 4102444799,
                },
                "timeout_s": TIMEOUT,
            },
            required=("message",),
        ),
        arguments={
            "message": "text",
            "paths": "tracks=.",
            "author": "text",
            "time": "text",
            "timeout_s": "text",
        },
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_commit, call)


@dataclass(frozen=True, slots=True)
class Head:
    """Where the branch is: the file that holds it, its name for people, and what it holds."""

    file: str
    name: str
    commit: str


def _commit(call: Call) -> ToolResult:
    git, python = inside.program(call, "git"), inside.program(call, "python")
    if not git or not python:
        return results.failed(
            "git_commit.missing", "the toolchain has no git", "spak doctor lists what to install", exit=127
        )
    person = _PERSON.match(str(call.args.get("author", AUTHOR)))
    message = str(call.args["message"]).strip("\n")
    if person is None:
        return results.failed("git_commit.author", "the author is not of the form Name <mail>", "SPAK <a@b>")
    if not message.strip() or "\0" in message or message != message.encode("utf-8", "replace").decode():
        return results.failed("git_commit.message", "the message is empty or no text", "say what changed")
    paths = [join(normalise(str(path))) for path in call.args.get("paths", ())]
    require_plain_repository(call)
    _there(call, ".git/index")
    head = head_of(call)
    ordered = {
        "git": git,
        "parent": head.commit,
        "paths": paths,
        "exclude": (beneath.content(call.workspace, ".git/info/exclude") or b"")[:65536].decode(
            errors="replace"
        ),
        "message": message + "\n",
        "name": person["name"],
        "mail": person["mail"],
        "time": int(call.args.get("time", time.time())),
    }
    outcome = inside.run(
        call,
        (python, "-I", "-B", "-c", GUEST),
        timeout_s=call.args.get("timeout_s"),
        stdin=canon.dumps(ordered),
        output_bytes=1 << 20,
    )
    if outcome.status != "exited" or outcome.stdout.truncated or not outcome.stdout.data:
        return results.of_outcome(outcome)
    made = canon.loads(outcome.stdout.data)
    if "code" in made:
        return results.failed(made["code"], made["message"], made["hint"])
    beneath.write_beneath(call.workspace, head.file, f"{made['commit']}\n".encode())
    _index(call)
    shown = "".join(f"  {path}\n" for path in made["files"])
    more = made["count"] - len(made["files"])
    text = f"committed {made['commit']} on {head.name}: {made['count']} files\n{shown}"
    return results.done(
        text + (f"  and {more} more\n" if more else ""), tree=made["tree"], parent=head.commit
    )


def require_plain_repository(call: Call) -> None:
    """Raises: UsageError `git_commit.repository` unless .git and its objects are folders of the workspace."""
    for name in (".git", ".git/objects", ".git/refs", ".git/refs/heads"):
        with beneath.locate(call.workspace, name, folders="may") as place:
            status = place.status()
            if status is None or place.linked or not stat.S_ISDIR(status.st_mode):
                raise UsageError(
                    "git_commit.repository",
                    f"{name} is no folder of the workspace",
                    "the workspace itself has to be a repository: git init",
                )
    for name in (".git/config", ".git/objects/info/alternates", ".git/commondir"):
        found = beneath.content(call.workspace, name)
        version = (
            _FORMAT.findall(found or b"") if name.endswith("config") else ([] if found is None else [b"1"])
        )
        if any(item != b"0" for item in version):
            raise UsageError(
                "git_commit.repository",
                f"{name} makes the repository one of another format",
                "a plain repository is wanted: SHA-1, files for branches, objects of its own",
            )


def head_of(call: Call) -> Head:
    """What HEAD names. Raises: UsageError `git_commit.head`."""
    text = _line(call, ".git/HEAD")
    if HASH.match(text):
        return Head(".git/HEAD", "no branch", text)
    name = text.removeprefix("ref: ")
    if name == text or len(name) > 1024 or not BRANCH.match(name):
        raise UsageError("git_commit.head", "HEAD names no branch", "git switch BRANCH")
    commit = _line(call, f".git/{name}") or _packed(call, name)
    if commit and not HASH.match(commit):
        raise UsageError("git_commit.head", f"the branch {name} holds no commit", "git switch BRANCH")
    return Head(f".git/{name}", name.removeprefix("refs/heads/"), commit)


def _line(call: Call, path: str) -> str:
    """The one line of a file of git's, or nothing where there is none."""
    if not _there(call, path):
        return ""
    return beneath.read_beneath(call.workspace, path, 4096).decode("utf-8", "replace").strip()


def _there(call: Call, path: str) -> bool:
    """Whether there is such a file. Raises: UsageError `git_commit.head` when a link leads to it."""
    with beneath.locate(call.workspace, path, folders="may") as place:
        if place.linked or place.parts != components(path):
            raise UsageError("git_commit.head", f"{path} is behind a link", "git switch BRANCH")
        return place.status() is not None


def _packed(call: Call, name: str) -> str:
    data = beneath.content(call.workspace, ".git/packed-refs") or b""
    for line in data[:MAX_REFS].decode("utf-8", "replace").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _index(call: Call) -> None:
    """The guest's index, in the place of the repository's."""
    data = beneath.read_beneath(call.workspace, ".git/spak-index")
    beneath.write_beneath(call.workspace, ".git/index", data)
    beneath.remove_beneath(call.workspace, ".git/spak-index")

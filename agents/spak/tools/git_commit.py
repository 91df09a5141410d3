"""`git_commit`: the workspace's changes as one commit in the run's own bare repository, made by the host.

The user's repository is not written and nothing of it is obeyed; the first commit stands on the HEAD that the
run began with, the next ones on each other (spak.repository.commits says what is committed and what is
refused). `git_push` sends from there, `spak apply --branch` brings it home. It commits all that changed and
stages nothing; with `paths` it refuses to leave out anything that changed: the files that were checked are
committed whole.
"""

from __future__ import annotations

import re
import time

from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.paths import join, normalise
from spak.ports import Call, ToolResult
from spak.tools import results

AUTHOR = "SPAK <spak@localhost>"
SHOWN = 200
_PERSON = re.compile(r"(?P<name>[^<>\x00-\x1f\x7f]{1,200}) <(?P<mail>[^<>\s\x00-\x1f\x7f]{1,200})>\Z")


class GitCommit:
    """The tool `git_commit`."""

    entry = ToolEntry(
        name="git_commit",
        version=1,
        summary="Commits the workspace's changes in the run's own git repository.",
        schema=parts.members(
            ["message"],
            message=parts.text("The commit message, as it will stand there.", 65536),
            paths=parts.listed(
                "What changed, by files and folders; left out, all that changed.",
                {"type": "string", "minLength": 1, "maxLength": 4095},
                256,
                1,
            ),
            author=parts.text("Who commits: Name <mail>.", 405, default=AUTHOR),
            time=parts.whole("The commit's time in Unix seconds (UTC); left out, now.", 0, 4102444799),
            timeout_s=parts.TIMEOUT,
        ),
        sandboxed=False,
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


def _commit(call: Call) -> ToolResult:
    from spak.repository.begun import SECONDS
    from spak.repository.commits import Order
    from spak.repository.stream import Person

    person = _PERSON.match(str(call.args.get("author", AUTHOR)))
    message = str(call.args["message"]).strip("\n")
    if person is None:
        return results.failed("git_commit.author", "the author is not of the form Name <mail>", "SPAK <a@b>")
    if not message.strip() or "\0" in message or message != message.encode("utf-8", "replace").decode():
        return results.failed("git_commit.message", "the message is empty or no text", "say what changed")
    if call.repository is None:
        return results.failed("git_commit.repository", "nothing keeps the commits of this run")
    at = int(call.args.get("time", time.time()))
    made = call.repository.make(
        Order(
            call.id,
            message + "\n",
            Person(person["name"], person["mail"], at),
            [join(normalise(str(path))) for path in call.args.get("paths", ())],
            float(call.args.get("timeout_s") or SECONDS),
        )
    )
    shown = "".join(f"  {ascii(path)[1:-1]}\n" for path in made.files[:SHOWN])
    more = len(made.files) - SHOWN
    text = f"committed {made.commit} in the run's repository: {len(made.files)} files\n{shown}"
    return results.done(
        text + (f"  and {more} more\n" if more > 0 else ""), tree=made.tree, parent=made.parent
    )

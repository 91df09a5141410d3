"""Handles push messages of a source's repository: a push to the branch of its folder asks for a sync, one to
the branch whose code was read has it read again."""

from __future__ import annotations

from spakweb.ground.errors import Refused
from spakweb.store.folders.models import Folder
from spakweb.store.incoming.models import Receiver
from spakweb.work.folders import queue
from spakweb.work.incoming.actions import Message, Outcome, State
from spakweb.work.sources import reading


def pushed(receiver: Receiver, message: Message) -> Outcome:
    """Raises: Refused `web.hook_push` for a push that names no ref."""
    if "push" not in message.event.lower():
        return Outcome(State.IGNORED, "It reports no push.")
    if not message.push.ref:
        raise Refused("web.hook_push", "The message names no ref.", "A push has `ref` and `after`.", 422)
    rows = Folder.objects.filter(source=receiver.source, branch=message.push.ref)
    done = ["The folder is being synced."] if queue.want(rows) else []
    if receiver.source is not None and reading.pushed(receiver.source, message.push.ref):
        done.append("The code is being read.")
    if not done:
        return Outcome(State.IGNORED, "No folder is synced with this branch, and its code was not read.")
    return Outcome(State.DONE, " ".join(done))

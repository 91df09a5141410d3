"""The folder that a run's tools work in: content hash, transactions, recovery (`spak.workspace.space`)."""

from spak.workspace.brought import Wanted
from spak.workspace.copied import Copied
from spak.workspace.space import Workspace
from spak.workspace.tree import Bounds
from spak.workspace.wal import Preimage

__all__ = ["Bounds", "Copied", "Preimage", "Wanted", "Workspace"]

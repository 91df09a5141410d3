"""The semantic difference of two specs: changes, capability delta, flags for a reviewer."""

from spak.lang.diff.compare import compare
from spak.lang.diff.model import Capability, Change, Difference, Flag
from spak.lang.diff.show import show

__all__ = ["Capability", "Change", "Difference", "Flag", "compare", "show"]

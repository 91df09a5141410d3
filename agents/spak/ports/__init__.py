"""The ports: what the runner asks of the outside, and the data that passes; all of their names are here.

Adapters (ledger, workspace, sandbox, tools, validators, proposers, llm) implement these and know nothing of
each other. One contract suite per port runs over all of its adapters. Paths are host paths unless said.
"""

from spak.ports.ledger import Blobs, Ledger, Ledgers
from spak.ports.models import (
    Answer,
    Asking,
    Backend,
    Candidate,
    Finish,
    PlanRequest,
    Priced,
    Prompt,
    Proposer,
    Question,
    Search,
    Searching,
    Sized,
    Trial,
)
from spak.ports.predicates import Look, Predicate, PredicateEntry
from spak.ports.redacting import Redacting
from spak.ports.sandbox import MIB, Child, Heard, Job, Launcher, Limits, Outcome, Quota, Status, Stream
from spak.ports.tools import Archive, Call, Kept, Tool, Toolchain, ToolResult
from spak.ports.validators import Ask, Asked, Keeping, MeasureCall, Measurement, Sealed, Subject, Validator

__all__ = [
    "MIB",
    "Answer",
    "Archive",
    "Ask",
    "Asked",
    "Asking",
    "Backend",
    "Blobs",
    "Call",
    "Candidate",
    "Child",
    "Finish",
    "Heard",
    "Job",
    "Keeping",
    "Kept",
    "Launcher",
    "Ledger",
    "Ledgers",
    "Limits",
    "Look",
    "MeasureCall",
    "Measurement",
    "Outcome",
    "PlanRequest",
    "Predicate",
    "PredicateEntry",
    "Priced",
    "Prompt",
    "Proposer",
    "Question",
    "Quota",
    "Redacting",
    "Sealed",
    "Search",
    "Searching",
    "Sized",
    "Status",
    "Stream",
    "Subject",
    "Tool",
    "ToolResult",
    "Toolchain",
    "Trial",
    "Validator",
]

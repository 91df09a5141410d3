"""Stores of records: run folders and memory, and what is done with whole ledgers (verify, export, import)."""

from spak.ledger.export import export, import_
from spak.ledger.files import FileLedger, FileLedgers
from spak.ledger.memory import MemoryLedgers
from spak.ledger.verify import Checkpoint, Footer, Report, read_checkpoint, verify

__all__ = [
    "Checkpoint",
    "FileLedger",
    "FileLedgers",
    "Footer",
    "MemoryLedgers",
    "Report",
    "export",
    "import_",
    "read_checkpoint",
    "verify",
]

"""A platform, asked by a program.

`Platform` speaks `/api/v1/`; calls.py says what it asks. `pack` makes the
archive that a run begins with, downloads.py writes what it made, `servers` keeps the tokens of `spak login`.
It starts nothing here and reads no ledger.
"""

from spak.client.calls import RemoteFile, RemoteRun
from spak.client.files import pack
from spak.client.platform import Platform

__all__ = ["Platform", "RemoteFile", "RemoteRun", "pack"]

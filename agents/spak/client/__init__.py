"""A platform, asked by a program.

`Platform` speaks `/api/v1/`; connection.py sends a request again that got no answer. `pack` makes the archive
that a run begins with, downloads.py writes what it made, `servers` keeps the tokens of `spak login`. It
starts nothing here and reads no ledger.
"""

from spak.client.files import pack
from spak.client.platform import Platform, RemoteFile, RemoteRun

__all__ = ["Platform", "RemoteFile", "RemoteRun", "pack"]

"""A platform, asked by a program.

`Platform` speaks `/api/v1/`, `pack` makes the archive that a run begins with, `servers` keeps the tokens of
`spak login`. All of it blocks; it starts nothing here and reads no ledger.
"""

from spak.client.files import pack
from spak.client.platform import Platform, RemoteRun

__all__ = ["Platform", "RemoteRun", "pack"]

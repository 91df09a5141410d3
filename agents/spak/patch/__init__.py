"""Patches: text in, changed files out, exactly or not at all.

Takes a patch (unified diff, or the JSON patch object with content hashes) and a function that reads a file;
gives the changes of all its files, or one refusal with code, line and hint. It writes nothing, searches for
nothing and forgives nothing: context must match where the patch says it is. Source: seed 003 section 10.
"""

from spak.patch.apply import apply, apply_to, read_patch
from spak.patch.model import Change, FilePatch, Hunk, PatchRefused

__all__ = ["Change", "FilePatch", "Hunk", "PatchRefused", "apply", "apply_to", "read_patch"]

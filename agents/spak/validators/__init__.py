"""The table of validators: name to the class that makes one. Nothing heavy is imported before a lookup.

A new validator is one module and one line here; its class has `entry` and `measure` (spak.ports.Validator).
"""

from __future__ import annotations

from collections.abc import Callable

from spak.ports import Validator
from spak.validators.command import Command
from spak.validators.compliance import Compliance, Report, Violation, comply
from spak.validators.linter import Linter
from spak.validators.pytest_ import PyTest

VALIDATORS: dict[str, Callable[[], Validator]] = {
    "Command": Command,
    "PyTest": PyTest,
    "Linter": Linter,
    "Compliance": Compliance,
}

__all__ = ["VALIDATORS", "Command", "Compliance", "Linter", "PyTest", "Report", "Violation", "comply"]

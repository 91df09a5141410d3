"""The language: text to Spec, and what is wrong with it."""

from spak.lang.check import check
from spak.lang.diagnostics import Diagnostic, Severity, render
from spak.lang.parser import Parsed, parse

__all__ = ["Diagnostic", "Parsed", "Severity", "check", "parse", "render"]

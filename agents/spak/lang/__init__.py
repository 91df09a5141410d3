"""The language: text to Spec, and what is wrong with it."""

from spak.lang.parser import Parsed, parse

__all__ = ["Parsed", "parse"]

"""The compliance kit: the eleven tests of seed 001, for any runtime that speaks a small protocol.

    cases     what each test gives and expects, read from specs/compliance
    talk      one process of a runtime: lines there and back, within limits
    tree      what is in a folder, to compare
    play      one part of a test, played: the kit is the model, and looks for itself
    check     what was seen, compared with what is expected
    kit       all tests against a runtime, or against mutants of ours
    ours      our kernel as a runtime

Source: seed 001 (compliance kit), docs/aep.md, ADR 0131.
"""

PROTOCOL = 1
"""Raise it when a runtime of the protocol before would fail a test for that reason alone."""

"""Which section of the documentation is about a word: `language#inputs`, `tools#cc`, for hovers and F1.

Takes a kind of word and its name; gives the page below docs/ and its anchor, as the platform has them. Pure
data: a test looks whether each section is there.
"""

from __future__ import annotations

from collections.abc import Mapping

SETTINGS: Mapping[str, str] = {
    "MEMORY": "context#memory",
    "SANDBOX": "sandbox",
    "APPROVALS": "approvals",
    "HISTORY": "sandbox#the-scratch-repository",
    "BACKEND": "models#choosing",
    "POLICY": "policy",
    "INPUTS": "language#inputs",
    "IMPORT": "language#files-together",
    "EXPORT": "mcp#specs-as-tools",
    "TOOLS": "tools",
    "VALIDATOR": "validators",
    "PROPOSER": "tuner",
    "SPACE": "tuner#space",
    "RULE": "measuring#the-decision",
}
"""Settings with a section of their own; any other has a row of the table."""
KEYWORDS: Mapping[str, str] = {
    **dict.fromkeys(("AGENT", "TASK", "SYSTEM_MODEL"), "language#two-ways-of-writing"),
    **dict.fromkeys(("AXIOM", "HEURISTIC", "PREDICTION", "WHEN"), "language#two-ways-of-writing"),
    **dict.fromkeys(("START", "NEXT"), "language#edges"),
    **dict.fromkeys(("STEP", "EVALUATION"), "language#steps"),
    **dict.fromkeys(("SUCCESS", "INVARIANT", "AND", "OR", "NOT"), "language#conditions"),
    "LEVEL": "language#levels",
    "CHECK": "validators#compliance",
}
KINDS: Mapping[str, str] = {
    **dict.fromkeys(("task", "trigger"), "language#edges"),
    **dict.fromkeys(("step", "check", "field"), "language#steps"),
    **dict.fromkeys(("variable", "builtin", "axiom", "heuristic", "prediction"), "language#variables"),
    **dict.fromkeys(("input", "type"), "language#inputs"),
    "function": "language#conditions",
    "value": "language#settings",
    "tool": "tools",
    "validator": "validators",
    "proposer": "tuner",
    "backend": "models#choosing",
    "launcher": "sandbox",
}
"""Where a word of a kind is explained whose name has no section."""
PROPOSERS: Mapping[str, str] = {"tuner": "tuner#options", "evolve": "evolve#options"}


def section(kind: str, name: str) -> str:
    """The section about a name of that kind; that of a tool or validator which did not ship is not there."""
    match kind:
        case "setting" if name.isupper():
            return SETTINGS.get(name, f"language#{name.lower()}")
        case "setting":
            return "language#settings"
        case "keyword":
            return KEYWORDS.get(name.upper(), "language")
        case "tool" | "validator":
            return f"{kind}s#{name.lower()}"
        case "proposer":
            return PROPOSERS.get(name, KINDS[kind])
    return KINDS.get(kind, "language")

"""What is wrong with a spec's POLICY and with its AXIOMs that are rules, told where it stands.

Takes a spec put together with its files (imports.py) and the law above it; gives Diagnostics: those
of a POLICY in triple quotes and of an AXIOM with their place in the spec, those of a policy's file with their
place there. A clash with the law is told at the POLICY. It opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from spak.datalog.errors import PolicyError
from spak.datalog.syntax import Finding
from spak.lang import ast
from spak.lang.diagnostics import Diagnostic, Severity, in_order
from spak.lang.imports import Resolved, settings_of
from spak.policy.law import SPEC, Law, compiled, name_of, rules_of
from spak.policy.stated import never_rows, secrets_to_programs


def check_law(whole: Resolved, law: Law) -> tuple[Diagnostic, ...]:
    """Every finding about what the spec adds to the law, which loads without it."""
    texts = _axioms(whole.parsed.spec)
    axioms = rules_of([text.value for text in texts])
    if not whole.policy and not axioms:
        return ()
    own = {SPEC, *axioms}
    try:
        policy = compiled(law, whole.policy, axioms)
        found = (*policy.diagnostics, *never_rows(policy, own), *secrets_to_programs(policy, own))
    except PolicyError as error:
        found = tuple(item for item in error.diagnostics if isinstance(item, Finding))
    entry = next(settings_of(whole.parsed.spec, "POLICY"), None)
    shown = []
    for item in found:
        if item.place.file in own or item.severity == "error":
            shown.append(_as_diagnostic(item, whole, entry, texts))
    return in_order(shown)


def policy_file(whole: Resolved) -> dict[str, str]:
    """The text of the policy's file by the name that findings give it; none where it stands in the spec."""
    entry = next(settings_of(whole.parsed.spec, "POLICY"), None)
    value = entry.value if entry is not None else None
    return {value.value: whole.policy} if isinstance(value, ast.Text) and not value.long else {}


def _axioms(spec: ast.Spec) -> list[ast.Text]:
    return [axiom.text for axiom in _walk(spec)]


def _walk(spec: ast.Spec) -> Iterator[ast.Axiom]:
    agent = spec.agent
    for item in (*spec.items, *(agent.items if agent else ())):
        if isinstance(item, ast.SystemModel):
            yield from (part for part in item.items if isinstance(part, ast.Axiom))


def _as_diagnostic(
    item: Finding, whole: Resolved, entry: ast.Entry | None, texts: list[ast.Text]
) -> Diagnostic:
    """A finding of the policy as one of the spec, or of the policy's file."""
    source = whole.parsed.spec.source
    severity = Severity.ERROR if item.severity == "error" else Severity.WARNING
    hint = item.hint or item.fix
    place = item.place
    values = {name_of(number): text for number, text in enumerate(texts, 1)}
    if entry is not None and isinstance(entry.value, ast.Text):
        values[SPEC] = entry.value
    value = values.get(place.file)
    if value is None:
        node = entry if entry is not None else texts[0]
        start, end = source.offsets(node.start, node.end)
        message = f"{place}: {item.message}" if place.file else item.message
        return source.diagnostic(severity, item.code, message, hint, start, end)
    if place.file == SPEC and not value.long:
        lines = whole.policy.count("\n", 0, place.end) + 1
        last = place.end - (whole.policy.rfind("\n", 0, place.end) + 1) + 1
        return Diagnostic(
            severity,
            item.code,
            item.message,
            hint,
            place.start,
            place.end,
            place.line,
            place.column,
            lines,
            last,
            None,
            value.value,
        )
    text = whole.policy if place.file == SPEC else value.value
    first, last = source.offsets(value.start, value.end)
    raw = whole.parsed.text[first:last]
    start = first + _raw_offset(raw, text, place.start)
    return source.diagnostic(
        severity,
        item.code,
        item.message,
        hint,
        start,
        max(start + 1, first + _raw_offset(raw, text, place.end)),
    )


def _raw_offset(raw: str, text: str, offset: int) -> int:
    """Where a character of a text's value stands in its quoted form: by line, and by what the line holds."""
    before = text[:offset]
    number = before.count("\n")
    line = text.split("\n")[number]
    lines = raw.split("\n")
    dropped = max(0, len(lines) - len(text.split("\n")))
    index = min(number + dropped, len(lines) - 1)
    at = sum(len(item) + 1 for item in lines[:index])
    found = lines[index].find(line) if line.strip() else -1
    column = offset - (len(before) - len(before.rpartition("\n")[2]))
    return at + max(found, 0) + column

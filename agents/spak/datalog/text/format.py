"""The tree back to text in the form of Mangle: for fixes, proofs, hashes."""

from __future__ import annotations

from spak.datalog.intervals import written
from spak.datalog.syntax import Apply, Atom, Clause, Compare, Const, Literal_, Part, Term, Var, Wild
from spak.datalog.values import show


def show_term(term: Term) -> str:
    """The term as Mangle writes it."""
    if isinstance(term, Var):
        return term.name
    if isinstance(term, Wild):
        return "_"
    if isinstance(term, Const):
        return term.text or show(term.value)
    args = [show_term(arg) for arg in term.args]
    if term.function == "fn:list":
        return f"[{', '.join(args)}]"
    if (
        term.function in ("fn:map", "fn:struct")
        and len(args) % 2 == 0
        and (args or term.function == "fn:struct")
    ):
        inner = ", ".join(f"{key}: {value}" for key, value in zip(args[::2], args[1::2], strict=True))
        return f"[{inner}]" if term.function == "fn:map" else "{" + inner + "}"
    return f"{term.function}({', '.join(args)})"


def show_atom_(atom: Atom) -> str:
    """An atom as it is written."""
    return written(atom.pred, [show_term(arg) for arg in atom.args])


def show_part(part: Part) -> str:
    """A literal of a body."""
    if isinstance(part, Compare):
        return f"{show_term(part.left)} {part.op} {show_term(part.right)}"
    assert isinstance(part, Literal_)
    return ("!" if part.negated else "") + show_atom_(part.atom)


def format_clause(clause: Clause) -> str:
    """One clause on one line, its dot included."""
    text = show_atom_(clause.head)
    if clause.body:
        text += " :- " + ", ".join(show_part(part) for part in clause.body)
    stages = show_stages(clause)
    return text + (f" |> {stages}." if stages else ".")


def show_stages(clause: Clause) -> str:
    """What stands after `|>`, or nothing."""
    if clause.transform is None:
        return ""
    stages = []
    if clause.transform.keys is not None:
        keys = ", ".join(key.name for key in clause.transform.keys)
        stages.append(f"do fn:group_by({keys})")
    stages += [f"let {let.name} = {show_term(let.term)}" for let in clause.transform.lets]
    return ", ".join(stages)


def numbered(clause: Clause) -> str:
    """The clause with its variables numbered: the same for every choice of their names.

    What stands for a constant in a family of rules (`#0`) keeps its name: it is no variable of the author's.
    """
    names: dict[str, str] = {}

    def name(old: str) -> str:
        return names.setdefault(old, old if old[0] == "#" else f"V{len(names)}")

    def term(item: Term) -> Term:
        if isinstance(item, Var):
            return Var(name(item.name))
        if isinstance(item, Apply):
            return Apply(item.function, tuple(term(arg) for arg in item.args))
        return Const(item.value) if isinstance(item, Const) else item

    def atom(item: Atom) -> Atom:
        return Atom(item.pred, tuple(term(arg) for arg in item.args))

    head = atom(clause.head)
    body: list[Part] = []
    for part in clause.body:
        if isinstance(part, Compare):
            body.append(Compare(part.op, term(part.left), term(part.right)))
        else:
            body.append(Literal_(atom(part.atom), part.negated))
    text = format_clause(Clause(head, tuple(body)))
    if clause.transform is None:
        return text
    keys = clause.transform.keys
    stages = [] if keys is None else ["do " + ", ".join(name(key.name) for key in keys)]
    stages += [f"let {name(let.name)} = {show_term(term(let.term))}" for let in clause.transform.lets]
    return text + " |> " + "; ".join(stages)

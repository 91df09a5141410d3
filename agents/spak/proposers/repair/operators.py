"""Candidates of a repair: every single edit of one function that the operator families name.

Takes the text of a file and a Function in it; gives Edits, each with the new text of the function. An edit
replaces the text of one expression or of one statement, and leaves every other character as it is. Families
are those of PAR, TBar, PraPR and of mutation testing; a smaller class (1 to 5) is tried earlier.
Literals come from the file itself and never from tests. It runs no code and knows nothing of tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from spak.proposers.repair.candidates import Edit
from spak.proposers.repair.functions import Function

COMPARISONS: tuple[type[ast.cmpop], ...] = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot, *COMPARISONS),
    ast.IsNot: (ast.Is, *COMPARISONS),
}
BINARY: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Add, ast.Sub, ast.FloorDiv, ast.Div, ast.Pow),
    ast.Div: (ast.FloorDiv, ast.Mult, ast.Mod),
    ast.FloorDiv: (ast.Div, ast.Mod, ast.Mult),
    ast.Mod: (ast.FloorDiv, ast.Div, ast.Mult),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr, ast.BitXor),
    ast.BitOr: (ast.BitAnd, ast.BitXor),
    ast.BitXor: (ast.BitAnd, ast.BitOr),
}
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow)
METHODS = (
    ("append", "extend"), ("append", "insert"), ("add", "discard"), ("add", "update"), ("lower", "upper"),
    ("startswith", "endswith"), ("find", "rfind"), ("index", "find"), ("strip", "lstrip"),
    ("strip", "rstrip"),
    ("lstrip", "rstrip"), ("split", "rsplit"), ("keys", "values"), ("keys", "items"), ("values", "items"),
    ("popleft", "pop"), ("appendleft", "append"), ("isalpha", "isdigit"), ("isalpha", "isalnum"),
    ("isupper", "islower"), ("remove", "discard"), ("get", "pop"),
)  # fmt: skip
CALLS = (
    ("min", "max"), ("any", "all"), ("int", "float"), ("int", "round"), ("list", "sorted"), ("set", "list"),
    ("sum", "len"), ("sum", "max"), ("abs", "int"), ("str", "repr"), ("floor", "ceil"), ("range", "reversed"),
    ("ord", "int"), ("dict", "list"), ("tuple", "list"),
)  # fmt: skip
WRAPPERS = (
    "abs",
    "len",
    "sorted",
    "list",
    "set",
    "int",
    "str",
    "sum",
    "max",
    "min",
    "reversed",
    "float",
    "round",
)
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Raise, ast.Assert, ast.Delete)
MOST_NAMES, MOST_INGREDIENTS = 12, 24


def edits(function: Function) -> Iterator[Edit]:
    """Every edit, in the order of the text and of the table of operators; texts that do not compile are left
    out, and each program is given once."""
    known = {ast.dump(function.node)}
    for operator, group, node, new in _changes(function):
        text = function.replaced(node, new)
        tree = function.parsed(text) if text is not None else None
        if text is None or tree is None:
            continue
        key = ast.dump(tree)
        if key not in known:
            known.add(key)
            yield Edit(operator, group, node.lineno, text)


Change = tuple[str, int, ast.expr | ast.stmt, str]
"""An operator, its class, the node whose text is replaced, and the new text."""


def _changes(function: Function) -> Iterator[Change]:
    names = _names(function.node)
    for node in _inside(function.node):
        if isinstance(node, ast.expr):
            yield from _expression(node, names, function)
        elif isinstance(node, ast.stmt):
            yield from _statement(node, function)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body in the order of the text, without annotations, defaults, docstrings."""
    body = getattr(node, "body", [])
    for index, statement in enumerate(body):
        if not (index == 0 and _is_text(statement)):
            yield from _walk(statement)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "ctx"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.AST) and not isinstance(child, ast.arguments):
                yield from _walk(child)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Variables of a function, each once, in the order of the text."""
    args = node.args
    found = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    for one in _inside(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.append(one.id)
    return list(dict.fromkeys(name for name in found if name not in ("self", "cls", "_")))[:MOST_NAMES]


# ---- expressions ---------------------------------------------------------------------------------------


def _expression(node: ast.expr, names: Sequence[str], function: Function) -> Iterator[Change]:
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BoolOp():
            yield from _boolean(node)
        case ast.BinOp():
            yield from _binary(node)
        case ast.UnaryOp():
            yield ("unwrap", 2, node, _text(node.operand))
        case ast.Constant():
            yield from _constant(node, function)
        case ast.Name() if isinstance(node.ctx, ast.Load):
            for name in names:
                if name != node.id:
                    yield ("variable", 1, node, name)
            for pair in CALLS:
                if node.id in pair:
                    yield ("call", 1, node, pair[1 - pair.index(node.id)])
        case ast.Attribute() if isinstance(node.ctx, ast.Load):
            yield from _attribute(node, function)
        case ast.Call():
            yield from _called(node)
        case ast.Subscript():
            yield from _subscript(node)
        case ast.IfExp():
            yield ("branches", 3, node, _text(ast.IfExp(node.test, node.orelse, node.body)))
            yield ("unwrap", 2, node, _text(node.body))
            yield ("unwrap", 2, node, _text(node.orelse))
        case ast.List() | ast.Tuple() | ast.Set() if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            yield from _display(node)
            for name in [] if node.elts else names:
                yield ("variable", 2, node, name)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            yield from _comprehension(node)
        case _:
            pass
    if isinstance(node, (ast.Name, ast.Call, ast.BinOp, ast.Subscript, ast.Attribute)) and _loaded(node):
        yield from _near(node)


def _loaded(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _near(node: ast.expr) -> Iterator[Change]:
    """One more, one less, the opposite, and what a usual function makes of it."""
    for sign in "+-":
        yield ("off_by_one", 1, node, f"{_operand(node)} {sign} 1")
    if isinstance(node, (ast.Name, ast.Subscript, ast.Call)):
        yield ("negated", 2, node, f"-{_operand(node)}")
    for name in WRAPPERS:
        yield ("wrap", 4, node, f"{name}({_text(node)})")


def _compared(node: ast.Compare) -> Iterator[Change]:
    for index, operator in enumerate(node.ops):
        others = COMPARISONS if type(operator) in COMPARISONS else OTHER_COMPARISONS[type(operator)]
        for other in others:
            if not isinstance(operator, other):
                changed = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                yield ("comparison", 1, node, _text(ast.Compare(node.left, changed, node.comparators)))
    if len(node.ops) == 1:
        yield ("swapped", 3, node, _text(ast.Compare(node.comparators[0], node.ops, [node.left])))
    else:
        for index in range(len(node.ops)):
            left = [node.left, *node.comparators]
            del left[index + 1 if index else 0]
            rest = [*node.ops[:index], *node.ops[index + 1 :]]
            yield ("condition_dropped", 2, node, _text(ast.Compare(left[0], rest, left[1:])))


def _boolean(node: ast.BoolOp) -> Iterator[Change]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield ("boolean", 1, node, _text(ast.BoolOp(other, node.values)))
    for index, value in enumerate(node.values):
        rest = [*node.values[:index], *node.values[index + 1 :]]
        yield ("condition_dropped", 2, node, _text(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)))
        negated = [*node.values[:index], ast.UnaryOp(ast.Not(), value), *node.values[index + 1 :]]
        yield ("condition_negated", 2, node, _text(ast.BoolOp(node.op, negated)))


def _binary(node: ast.BinOp) -> Iterator[Change]:
    for group, other in _operators(node.op):
        yield ("operator", group, node, _text(ast.BinOp(node.left, other(), node.right)))
    yield ("swapped", 3, node, _text(ast.BinOp(node.right, node.op, node.left)))
    yield ("unwrap", 2, node, _text(node.left))
    yield ("unwrap", 2, node, _text(node.right))
    for side, inner in (("left", node.left), ("right", node.right)):
        if isinstance(inner, ast.BinOp):  # (a + b) * c for a + b * c, and back
            if side == "left":
                moved = ast.BinOp(inner.left, inner.op, ast.BinOp(inner.right, node.op, node.right))
            else:
                moved = ast.BinOp(ast.BinOp(node.left, node.op, inner.left), inner.op, inner.right)
            yield ("parentheses", 3, node, _text(moved))


def _operators(operator: ast.operator) -> Iterator[tuple[int, type[ast.operator]]]:
    """The operators that are near, then those of arithmetic."""
    near = BINARY.get(type(operator), ())
    for other in near:
        yield 1, other
    for other in ARITHMETIC:
        if other not in near and not isinstance(operator, other):
            yield 2, other


def _constant(node: ast.Constant, function: Function) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield ("constant", 1, node, str(not value))
        yield ("constant", 2, node, "None")
    elif isinstance(value, int):
        others = dict.fromkeys((value + 1, value - 1, 0, 1, 2, -1, value * 2, value // 2, 10 * value, -value))
        for other in [*others, *function.integers]:
            if other != value and abs(other) < 10**18:
                yield ("constant", 1, node, str(other))
    elif isinstance(value, float):
        for other_float in dict.fromkeys((value + 1, value - 1, value * 2, value / 2, 0.0, 1.0, -value)):
            if other_float != value:
                yield ("constant", 1, node, repr(other_float))
    elif isinstance(value, str):
        for text in ("", " ", value.strip(), value.lower(), value.upper(), value[::-1], *function.texts):
            if text != value:
                yield ("constant", 1, node, repr(text))
    elif value is None:
        for word in ("False", "True", "0", "[]", "''"):
            yield ("constant", 3, node, word)


def _attribute(node: ast.Attribute, function: Function) -> Iterator[Change]:
    names = [pair[1 - pair.index(node.attr)] for pair in METHODS if node.attr in pair]
    for name in dict.fromkeys([*names, *(one for one in function.attributes if one != node.attr)]):
        yield ("attribute", 1 if name in names else 2, node, f"{_operand(node.value)}.{name}")


def _called(node: ast.Call) -> Iterator[Change]:
    count = len(node.args)
    for first in range(count):
        for second in range(first + 1, count):
            args = list(node.args)
            args[first], args[second] = args[second], args[first]
            yield ("arguments", 1, node, _text(ast.Call(node.func, args, node.keywords)))
    for index, arg in enumerate(node.args):
        if count == 1 and not isinstance(arg, (ast.Starred, ast.GeneratorExp)):
            yield ("unwrap", 2, node, _text(arg))
        rest = [*node.args[:index], *node.args[index + 1 :]]
        yield ("argument_dropped", 3, node, _text(ast.Call(node.func, rest, node.keywords)))
    for index in range(len(node.keywords)):
        kept = [*node.keywords[:index], *node.keywords[index + 1 :]]
        yield ("argument_dropped", 3, node, _text(ast.Call(node.func, node.args, kept)))
    if isinstance(node.func, ast.Attribute):
        yield ("unwrap", 2, node, _text(node.func.value))
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "range" and count == 1:
        yield ("argument_added", 2, node, _text(ast.Call(node.func, [ast.Constant(1), *node.args], [])))
    if name == "range" and count == 2:
        yield ("argument_added", 4, node, _text(ast.Call(node.func, [*node.args, ast.Constant(-1)], [])))
        yield ("argument_added", 4, node, _text(ast.Call(node.func, [*node.args, ast.Constant(2)], [])))
    if name in ("sorted", "max", "min") or (
        isinstance(node.func, ast.Attribute) and node.func.attr == "sort"
    ):
        yield from _ordered(node, name)


def _ordered(node: ast.Call, name: str) -> Iterator[Change]:
    given = {one.arg for one in node.keywords}
    if name not in ("max", "min") and "reverse" not in given:
        added = ast.keyword("reverse", ast.Constant(True))
        yield ("argument_added", 3, node, _text(ast.Call(node.func, node.args, [*node.keywords, added])))
    if "key" not in given:
        for key in ("len", "str", "abs"):
            added = ast.keyword("key", ast.Name(key))
            yield ("argument_added", 4, node, _text(ast.Call(node.func, node.args, [*node.keywords, added])))


def _subscript(node: ast.Subscript) -> Iterator[Change]:
    if not isinstance(node.slice, ast.Slice):
        if _loaded(node):
            yield ("unwrap", 3, node, _text(node.value))
        return
    part = node.slice
    yield ("slice", 3, node, _text(node.value))
    for name in ("lower", "upper", "step"):
        held: ast.expr | None = getattr(part, name)
        if held is not None:
            parts = {"lower": part.lower, "upper": part.upper, "step": part.step, name: None}
            yield ("slice", 3, node, _text(ast.Subscript(node.value, _slice(parts))))
            continue
        for word in ("1", "-1", "2") if name != "step" else ("-1", "2"):
            parts = {
                "lower": part.lower,
                "upper": part.upper,
                "step": part.step,
                name: ast.parse(word, mode="eval").body,
            }
            yield ("slice", 3, node, _text(ast.Subscript(node.value, _slice(parts))))
    if part.lower is not None and part.upper is not None:
        swapped = ast.Slice(part.upper, part.lower, part.step)
        yield ("slice", 3, node, _text(ast.Subscript(node.value, swapped)))


def _slice(parts: Mapping[str, ast.expr | None]) -> ast.Slice:
    return ast.Slice(parts["lower"], parts["upper"], parts["step"])


def _display(node: ast.List | ast.Tuple | ast.Set) -> Iterator[Change]:
    items = node.elts
    if len(items) == 2:
        swapped = [items[1], items[0]]
        yield ("swapped", 3, node, _display_text(node, swapped))
    if not isinstance(node, ast.Set):
        for index in range(len(items)):
            yield ("item_dropped", 3, node, _display_text(node, [*items[:index], *items[index + 1 :]]))


def _display_text(node: ast.expr, items: list[ast.expr]) -> str:
    return _text(type(node)(items))  # type: ignore[call-arg, arg-type]


def _comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Iterator[Change]:
    for index, part in enumerate(node.generators):
        for place in range(len(part.ifs)):
            without = ast.comprehension(
                part.target, part.iter, [*part.ifs[:place], *part.ifs[place + 1 :]], part.is_async
            )
            parts = [*node.generators[:index], without, *node.generators[index + 1 :]]
            yield ("condition_dropped", 2, node, _text(type(node)(node.elt, parts)))
            negated = [*part.ifs[:place], ast.UnaryOp(ast.Not(), part.ifs[place]), *part.ifs[place + 1 :]]
            other = ast.comprehension(part.target, part.iter, negated, part.is_async)
            parts = [*node.generators[:index], other, *node.generators[index + 1 :]]
            yield ("condition_negated", 2, node, _text(type(node)(node.elt, parts)))


# ---- statements ----------------------------------------------------------------------------------------


def _statement(node: ast.stmt, function: Function) -> Iterator[Change]:
    match node:
        case ast.If() | ast.While():
            yield from _condition(node.test, function)
        case ast.AugAssign():
            for group, other in _operators(node.op):
                yield ("operator", group, node, _text(ast.AugAssign(node.target, other(), node.value)))
            yield ("assigned", 2, node, _text(ast.Assign([node.target], node.value, lineno=0)))
        case ast.Assign() if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
                for kind in (ast.Add(), ast.Sub()):
                    yield ("assigned", 4, node, _text(ast.AugAssign(target, kind, node.value)))
            for name in _names(function.node):
                if isinstance(target, ast.Name) and name != target.id:
                    yield ("target", 3, node, _text(ast.Assign([ast.Name(name)], node.value, lineno=0)))
        case ast.Return() if node.value is not None:
            for word in ("True", "False", "None", "[]", "0", "''"):
                yield ("returned", 4, node, f"return {word}")
            if not isinstance(node.value, ast.Constant):
                yield ("condition_negated", 2, node, f"return not {_operand(node.value)}")
            for name in _names(function.node):
                if not (isinstance(node.value, ast.Name) and node.value.id == name):
                    yield ("returned", 3, node, f"return {name}")
        case ast.Break():
            yield ("jump", 2, node, "continue")
            yield ("jump", 3, node, "pass")
        case ast.Continue():
            yield ("jump", 2, node, "break")
            yield ("jump", 3, node, "pass")
        case _:
            pass
    if isinstance(node, SIMPLE):
        if not isinstance(node, ast.Return):
            yield ("deleted", 3, node, "pass")
        yield from _inserted(node, function)


def _condition(test: ast.expr, function: Function) -> Iterator[Change]:
    yield ("condition_negated", 1, test, f"not {_operand(test)}")
    for word in ("True", "False"):
        yield ("condition", 4, test, word)
    for other in function.conditions[:MOST_INGREDIENTS]:
        if other != _text(test):
            yield ("condition_extended", 4, test, f"({_text(test)}) and ({other})")
            yield ("condition_extended", 4, test, f"({_text(test)}) or ({other})")
            yield ("condition", 4, test, other)


def _inserted(node: ast.stmt, function: Function) -> Iterator[Change]:
    """A statement of the same function before this one or in its place, or a guard around it."""
    here = ast.get_source_segment(function.source, node) or _text(node)
    if "\n" in here:
        return
    indent = " " * node.col_offset
    for other in function.statements[:MOST_INGREDIENTS]:
        if other != here:
            yield ("ingredient", 4, node, other)
            if not isinstance(node, (ast.Return, ast.Raise)):
                yield ("inserted", 5, node, f"{here}\n{indent}{other}")
            yield ("inserted", 5, node, f"{other}\n{indent}{here}")
    for condition in function.conditions[:MOST_INGREDIENTS]:
        yield ("guard", 5, node, f"if {condition}:\n{indent}    {here}")
    for name in _names(function.node)[:4]:
        yield ("guard", 5, node, f"if not {name}:\n{indent}    return {name}\n{indent}{here}")


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def _operand(node: ast.expr) -> str:
    text = _text(node)
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))
    return text if plain else f"({text})"

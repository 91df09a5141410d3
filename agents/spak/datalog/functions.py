"""The built-in functions, tests, generators and reducers: what each does to values of the inside form.

A fault (a wrong type, a division by zero, a value beyond its size) is an exception and never a quiet `false`:
under `!` a quiet false would become an allow. Engine and checker share these tables: they are the language,
not the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from spak.datalog.errors import PolicyError, PolicyLimit
from spak.datalog.values import MAX_INT, MIN_INT, Inner, kind_of, mapping, order, real, show

MAX_VALUE = 1 << 20
"""Characters of a text, or items of a list, that a function may make."""


@dataclass(frozen=True, slots=True)
class Function:
    """`least` and `most` count the arguments; most -1 is any number. `gives` is a kind or empty."""

    call: Callable[..., Any]
    least: int
    most: int
    gives: str = ""


@dataclass(frozen=True, slots=True)
class Generator:
    """A predicate that finds values: from the arguments at `inputs` it gives tuples of all the others."""

    call: Callable[..., Iterable[tuple[Inner, ...]]]
    arity: int
    inputs: tuple[int, ...]


def wrong(message: str, hint: str = "") -> NoReturn:
    """Raises: PolicyError `policy.type`."""
    raise PolicyError("policy.type", message, hint)


def number(value: Inner) -> Any:
    """The Python number. Raises: PolicyError when it is none."""
    if type(value) is int:
        return value
    if type(value) is tuple and value[0] == "f":
        return value[1]
    return wrong(f"{show(value)[:80]} is a {kind_of(value)} where a number is wanted")


def text(value: Inner) -> str:
    """The text of a string value. Raises: PolicyError `policy.type`."""
    if type(value) is str and value[0] == '"':
        return value[1:]
    return wrong(f"{show(value)[:80]} is a {kind_of(value)} where a string is wanted")


def items(value: Inner) -> tuple[Inner, ...]:
    """The items of a list value. Raises: PolicyError `policy.type`."""
    if type(value) is tuple and value[0] == "[":
        return value[1:]
    return wrong(f"{show(value)[:80]} is a {kind_of(value)} where a list is wanted")


def pairs(value: Inner) -> tuple[tuple[Inner, Inner], ...]:
    """The entries of a map or struct value. Raises: PolicyError `policy.type`."""
    if type(value) is tuple and value[0] in "{s":
        return value[1:]
    return wrong(f"{show(value)[:80]} is a {kind_of(value)} where a map or struct is wanted")


def whole(value: Any) -> Inner:
    """A whole number. Raises: PolicyLimit beyond 64 bits."""
    if not MIN_INT <= value <= MAX_INT:
        raise PolicyLimit("a number beyond 64 bits")
    return value


def back(value: Any) -> Inner:
    """A number of Python as a value. Raises: PolicyLimit beyond 64 bits."""
    return whole(value) if type(value) is int else real(value)


def sized(value: Any) -> Any:
    """The value as it is. Raises: PolicyLimit where it has more than MAX_VALUE items or characters."""
    if len(value) > MAX_VALUE:
        raise PolicyLimit("a value grew beyond its limit", "look for a rule that joins its own results")
    return value


def equal(left: Inner, right: Inner) -> bool:
    """`=` between bound terms. Raises: PolicyError for unlike types."""
    if type(left) is type(right) is int:
        return bool(left == right)
    one, two = kind_of(left), kind_of(right)
    if one == two:
        return bool(left == right)
    if {one, two} == {"number", "float64"}:
        return bool(number(left) == number(right))
    wrong(f"{show(left)[:80]} ({one}) is compared with {show(right)[:80]} ({two})")


def less(left: Inner, right: Inner) -> bool:
    """Whether one number is less than the other. Raises: PolicyError `policy.type`."""
    if type(left) is type(right) is int:
        return bool(left < right)
    return bool(number(left) < number(right))


def at_most(left: Inner, right: Inner) -> bool:
    """Whether one number is less than the other or equal. Raises: PolicyError `policy.type`."""
    return bool(number(left) <= number(right))


COMPARE: dict[str, Callable[[Inner, Inner], bool]] = {
    "<": less,
    "<=": at_most,
    ">": lambda left, right: less(right, left),
    ">=": lambda left, right: at_most(right, left),
    "=": equal,
    "!=": lambda left, right: not equal(left, right),
    "==": lambda left, right: bool(left == right),
}
"""`==` is unification: what an expression in an argument means. It never occurs in a text."""


def _plus(*args: Inner) -> Inner:
    return back(sum((number(arg) for arg in args), start=0))


def _mult(*args: Inner) -> Inner:
    result: Any = 1
    for arg in args:
        result = number(back(result * number(arg)))
    return back(result)


def _minus(first: Inner, *rest: Inner) -> Inner:
    if not rest:
        return back(-number(first))
    return back(number(first) - sum(number(arg) for arg in rest))


def _div(first: Inner, *rest: Inner) -> Inner:
    result = number(first)
    for arg in rest:
        by = number(arg)
        if by == 0:
            wrong("division by zero", "guard the rule with `X != 0`")
        if type(result) is int and type(by) is int:
            quotient = abs(result) // abs(by)
            result = quotient if (result < 0) == (by < 0) else -quotient
        else:
            result = result / by
    return back(result)


def _floats(call: Callable[..., Inner]) -> Callable[..., Inner]:
    def run(*args: Inner) -> Inner:
        return call(*(real(float(number(arg))) for arg in args))

    return run


def _concat(*args: Inner) -> Inner:
    return '"' + sized(
        "".join(text(arg) if type(arg) is str and arg[0] == '"' else show(arg) for arg in args)
    )


def _replace(value: Inner, old: Inner, new: Inner, count: Inner) -> Inner:
    body, what, by = text(value), text(old), text(new)
    if body.count(what) * max(len(by) - len(what), 0) + len(body) > MAX_VALUE:
        raise PolicyLimit("a value grew beyond its limit")
    return '"' + body.replace(what, by, number(count))


def _number_of(value: Inner) -> Inner:
    try:
        return whole(int(text(value)))
    except ValueError:
        return wrong(f"{show(value)[:80]} is no number")


def _get(value: Inner, index: Inner) -> Inner:
    found, place = items(value), number(index)
    if type(place) is not int or not 0 <= place < len(found):
        wrong(f"a list of {len(found)} has no item {place}")
    return found[place]


def _field(value: Inner, key: Inner) -> Inner:
    for name, found in pairs(value):
        if name == key:
            return found
    return wrong(f"there is no {show(key)[:80]} in {show(value)[:80]}")


def _keyed(tag: str) -> Callable[..., Inner]:
    def make(*args: Inner) -> Inner:
        return mapping(tag, list(zip(args[::2], args[1::2], strict=True)))

    return make


def _name_of(value: Inner) -> Inner:
    if type(value) is str and value[0] == "/":
        return '"' + value
    return wrong(f"{show(value)[:80]} is no name")


def _as_text(value: Inner) -> Inner:
    number(value)
    return '"' + show(value)


FUNCTIONS: dict[str, Function] = {
    "fn:plus": Function(_plus, 1, -1, "numeric"),
    "fn:minus": Function(_minus, 1, -1, "numeric"),
    "fn:mult": Function(_mult, 1, -1, "numeric"),
    "fn:div": Function(_div, 1, -1, "numeric"),
    "fn:float:plus": Function(_floats(_plus), 1, -1, "float64"),
    "fn:float:minus": Function(_floats(_minus), 1, -1, "float64"),
    "fn:float:mult": Function(_floats(_mult), 1, -1, "float64"),
    "fn:float:div": Function(_floats(_div), 1, -1, "float64"),
    "fn:string:concat": Function(_concat, 0, -1, "string"),
    "fn:string:replace": Function(_replace, 4, 4, "string"),
    "fn:string:lower": Function(lambda value: '"' + text(value).lower(), 1, 1, "string"),
    "fn:string:length": Function(lambda value: len(text(value)), 1, 1, "number"),
    "fn:string:to_number": Function(_number_of, 1, 1, "number"),
    "fn:number:to_string": Function(_as_text, 1, 1, "string"),
    "fn:float64:to_string": Function(_as_text, 1, 1, "string"),
    "fn:name:to_string": Function(_name_of, 1, 1, "string"),
    "fn:list": Function(lambda *args: ("[", *args), 0, -1, "list"),
    "fn:list:get": Function(_get, 2, 2),
    "fn:list:len": Function(lambda value: len(items(value)), 1, 1, "number"),
    "fn:list:append": Function(lambda value, item: sized(("[", *items(value), item)), 2, 2, "list"),
    "fn:list:cons": Function(lambda item, value: sized(("[", item, *items(value))), 2, 2, "list"),
    "fn:list:contains": Function(lambda v, item: "/true" if item in items(v) else "/false", 2, 2, "name"),
    "fn:len": Function(lambda value: len(items(value)), 1, 1, "number"),
    "fn:pair": Function(lambda one, two: ("p", one, two), 2, 2, "pair"),
    "fn:map": Function(_keyed("{"), 0, -1, "map"),
    "fn:struct": Function(_keyed("s"), 0, -1, "struct"),
    "fn:map:get": Function(_field, 2, 2),
    "fn:struct:get": Function(_field, 2, 2),
}


def _prefix(value: Inner, prefix: Inner) -> bool:
    for item in (value, prefix):
        if type(item) is not str or item[0] != "/":
            wrong(f"{show(item)[:80]} is no name")
    return bool(value.startswith(prefix.rstrip("/") + "/"))


TESTS: dict[str, tuple[int, Callable[..., bool]]] = {
    ":string:contains": (2, lambda value, part: text(part) in text(value)),
    ":string:starts_with": (2, lambda value, part: text(value).startswith(text(part))),
    ":string:ends_with": (2, lambda value, part: text(value).endswith(text(part))),
    ":match_prefix": (2, _prefix),
    ":match_nil": (1, lambda value: not items(value)),
    ":lt": (2, less),
    ":le": (2, at_most),
    ":gt": (2, COMPARE[">"]),
    ":ge": (2, COMPARE[">="]),
}


def _cons(value: Inner) -> list[tuple[Inner, ...]]:
    found = items(value)
    return [(found[0], ("[", *found[1:]))] if found else []


def _halves(value: Inner) -> list[tuple[Inner, ...]]:
    if type(value) is tuple and value[0] == "p":
        return [(value[1], value[2])]
    return wrong(f"{show(value)[:80]} is no pair")


def _entry(value: Inner, key: Inner) -> list[tuple[Inner, ...]]:
    return [(found,) for name, found in pairs(value) if name == key]


GENERATORS: dict[str, Generator] = {
    ":list:member": Generator(lambda value: [(item,) for item in dict.fromkeys(items(value))], 2, (1,)),
    ":match_cons": Generator(_cons, 3, (0,)),
    ":match_pair": Generator(_halves, 3, (0,)),
    ":match_entry": Generator(_entry, 3, (0, 1)),
    ":match_field": Generator(_entry, 3, (0, 1)),
}


def _sum(values: Sequence[Inner]) -> Inner:
    import math

    found = [number(value) for value in values]
    return back(sum(found) if all(type(item) is int for item in found) else math.fsum(found))


def _average(values: Sequence[Inner]) -> Inner:
    import math

    return real(math.fsum(number(value) for value in values) / len(values))


def _extreme(sign: int) -> Callable[[Sequence[Inner]], Inner]:
    def pick(values: Sequence[Inner]) -> Inner:
        return max(values, key=lambda value: (sign * number(value), kind_of(value)))

    return pick


def _collect(values: Sequence[Inner]) -> Inner:
    return sized(("[", *sorted(values, key=order)))


REDUCERS: dict[str, Function] = {
    "fn:count": Function(lambda values: len(values), 0, 1, "number"),
    "fn:sum": Function(_sum, 1, 1, "numeric"),
    "fn:max": Function(_extreme(1), 1, 1, "numeric"),
    "fn:min": Function(_extreme(-1), 1, 1, "numeric"),
    "fn:avg": Function(_average, 1, 1, "float64"),
    "fn:collect": Function(_collect, 1, 1, "list"),
    "fn:collect_distinct": Function(lambda values: _collect(list(set(values))), 1, 1, "list"),
    "fn:count_distinct": Function(lambda values: len(set(values)), 1, 1, "number"),
}
for _plain in ("sum", "max", "min"):
    REDUCERS[f"fn:float:{_plain}"] = REDUCERS[f"fn:{_plain}"]

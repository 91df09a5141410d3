"""What functions answer to recorded and generated inputs; the second half of sandbox/guest/repair_guest.py.

Takes candidates that pass, and `forked` of the guest; says what the code before and each of them answers, how
many lines the tests run, and whether a candidate answers outside of the tests as it does in them. Inputs are
arguments that tests called a function with, and changed copies of these of the same types, drawn by a seeded
generator; objects are changed in their attributes. A value becomes a text that is the same in every process.
Standard library only.
"""

import copy
import itertools
import os
import random
import signal
import sys
import types

DEPTH = 6
CALLS = 48
"""Recorded calls of one function."""
EVALUATED_S, HANGS = 0.5, 3
"""CPU time for one input, and how many may pass it before the rest is not asked."""
SHOWN = 300


class Comparison:
    """Candidates of one guest, side by side."""

    def __init__(self, trial, forked):
        self.trial, self.forked = trial, forked
        self.server, self.plan = trial.server, trial.plan

    def run(self, places):
        """What the code before and each candidate answer to recorded and generated inputs."""
        plan = self.plan
        chosen = {}
        for place in places:
            candidate = self.trial.candidates[place]
            chosen.setdefault((candidate["path"], candidate["qual"]), candidate)

        def work(fork):
            asked, places_of = [], {}
            for (path, qual), candidate in chosen.items():
                function = self.trial.functions(candidate)[0]
                places_of[id(function)] = path, qual
                calls = self.recorded(function, candidate["visible"])
                draw = random.Random(f"{plan['seed']}/{path}/{qual}")
                asked += [(function, *call) for call in inputs(calls, plan["inputs"] // len(chosen), draw)]
            fork.say(
                {
                    "shown": [shown(function, args) for function, args, _ in asked],
                    "of": [[*places_of[id(function)], str(function.__module__)] for function, _, _ in asked],
                    "recorded": sum(not made for _, _, made in asked),
                }
            )
            fork.say({"before": self.answers(asked, None)})
            for place in places:
                candidate = self.trial.candidates[place]
                found = self.answers(asked, lambda one=candidate: self.trial.swap(one))
                alike = self.alike(candidate)
                steps = [self.steps(candidate, swapped) for swapped in (False, True)]
                fork.say({"place": place, "answers": found, "alike": alike, "steps": steps})

        lines, end, _ = self.forked(work, plan["compare_s"])
        self.server.say(compared=lines, end=end)

    def recorded(self, function, names):
        """Arguments that the tests call a function with, each copied when the call begins."""

        code, calls = function.__code__, []

        def work():
            seen = []

            def profile(frame, event, _):
                if event != "call" or frame.f_code is not code or len(calls) >= CALLS:
                    return
                if any(frame is one for one in seen):  # a generator that goes on
                    return
                seen.append(frame)
                sys.setprofile(None)
                try:
                    calls.append(arguments(frame, code))
                except Exception:
                    pass
                finally:
                    sys.setprofile(profile)

            sys.setprofile(profile)
            try:
                self.server.ran(names, stop=False)
            finally:
                sys.setprofile(None)

        quiet(work)
        return calls

    def alike(self, candidate):
        """Whether the candidate answers outside of the tests as it does in them: `[calls, where not]`."""

        def work(fork):
            self.trial.swap(candidate)
            function = self.trial.functions(candidate)[0]
            code, inside, open_ = function.__code__, [], {}

            def profile(frame, event, value):
                if frame.f_code is not code or len(inside) >= CALLS:
                    return
                sys.setprofile(None)
                try:
                    if event == "call" and id(frame) not in open_:
                        open_[id(frame)] = arguments(frame, code)
                    elif event == "return" and id(frame) in open_:
                        args = open_.pop(id(frame))
                        if not isinstance(value, types.GeneratorType):
                            inside.append((args, render(value)))
                except Exception:
                    pass
                finally:
                    sys.setprofile(profile)

            sys.setprofile(profile)
            try:
                self.server.ran(candidate["visible"], stop=False)
            finally:
                sys.setprofile(None)
            if code.co_flags & 0x2A0:  # a generator or a coroutine returns when it is used up
                inside.clear()
            for name in [name for name in os.environ if name.startswith("PYTEST")]:
                del os.environ[name]
            for name in [name for name in sys.modules if name.partition(".")[0] in ("pytest", "_pytest")]:
                del sys.modules[name]
            # A call that ended by an exception returned None to the profiler; outside it raises again.
            wrong = []
            for args, value in inside:
                try:
                    outside = render(function(*copy.deepcopy(args)))
                except Exception:
                    outside = value if value == "None" else "raise"
                if outside != value:
                    wrong.append([shown(function, args), value, outside])
            fork.say([len(inside), wrong[:3]])

        lines, end, _ = self.forked(work, self.plan["second_s"] * 2)
        return lines[0] if lines else [0, [["", end or "died", ""]]]

    def steps(self, candidate, swapped):
        """Lines of the workspace that the tests run: a cost that is the same on every machine."""

        def work(fork):
            if swapped:
                self.trial.swap(candidate)
            count, root = 0, self.server.root

            def trace(frame, event, _):
                nonlocal count
                if not frame.f_code.co_filename.startswith(root):
                    return None
                count += 1
                return trace

            sys.settrace(trace)
            try:
                self.server.ran(candidate["passing"], stop=False)
            finally:
                sys.settrace(None)
            fork.say(count)

        lines, _, _ = self.forked(work, self.plan["second_s"] * 4)
        return lines[0] if lines else 0

    def answers(self, asked, before):
        """One text for each input: what came back and what became of the arguments, or how it failed."""
        found = []
        hangs = 0
        while len(found) < len(asked) and hangs < HANGS:
            start = len(found)

            def work(fork, start=start):
                if before is not None:
                    before()
                for function, args, _ in asked[start:]:
                    signal.setitimer(signal.ITIMER_PROF, EVALUATED_S)
                    fork.say(evaluated(function, args))

            lines, end, _ = self.forked(work, EVALUATED_S)
            found += lines
            if len(found) < len(asked):
                found.append("hang" if end == "late" else "died")
                hangs += 1
        return found + ["hang"] * (len(asked) - len(found))


def arguments(frame, code):
    """Copies of the arguments of a call, in the order of a call."""
    count = code.co_argcount
    names = list(code.co_varnames[:count])
    if code.co_kwonlyargcount or code.co_flags & 0x08:
        raise ValueError("keywords")
    values = [frame.f_locals[name] for name in names]
    if code.co_flags & 0x04:
        values += frame.f_locals[code.co_varnames[count]]
    return copy.deepcopy(values)


def quiet(work):
    try:
        work()
    except Exception:
        pass


def evaluated(function, args):
    args = copy.deepcopy(args)
    try:
        value = function(*args)
        if isinstance(value, types.GeneratorType) or (
            hasattr(value, "__next__") and hasattr(value, "__iter__")
        ):
            value = list(itertools.islice(value, 200))
        return "= " + render(value) + " | " + render(args)
    except Exception as error:
        return "raise " + type(error).__name__


def shown(function, args):
    return f"{function.__name__}({', '.join(render(one) for one in args)})"


def inputs(calls, wanted, draw):
    """`(arguments, whether they are generated)`: the recorded ones, each once, and changed copies of them."""
    found, known = [], set()

    def keep(args, made):
        try:
            key = render(args)
        except Exception:
            return
        if key not in known and len(key) < 20_000:
            known.add(key)
            found.append((args, made))

    for args in calls:
        keep(args, False)
    if not found:
        return []
    recorded = list(found)
    pool = {}
    for args, _ in recorded:
        for value in args:
            gather(value, pool, 0)
    for _ in range(wanted * 8):
        if len(found) - len(recorded) >= wanted:
            break
        args = copy.deepcopy(draw.choice(found if draw.random() < 0.3 else recorded)[0])
        for _ in range(draw.choice((1, 1, 2, 3))):
            if args:
                at = draw.randrange(len(args))
                args[at] = changed(args[at], pool, draw, 0)
        keep(args, True)
    return found


def gather(value, pool, depth):
    """The plain values in a value, by type."""
    if depth > DEPTH:
        return
    if isinstance(value, (bool, int, float, str, bytes)):
        kept = pool.setdefault(type(value), [])
        if value not in kept and len(kept) < 200:
            kept.append(value)
    elif isinstance(value, dict):
        for item in itertools.chain.from_iterable(value.items()):
            gather(item, pool, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=render) if isinstance(value, (set, frozenset)) else value
        for item in items:
            gather(item, pool, depth + 1)
    elif attributes(value):
        for item in vars(value).values():
            gather(item, pool, depth + 1)


def attributes(value):
    """Whether a value is an object of somebody's class with attributes that can be changed."""
    return bool(getattr(value, "__dict__", None)) and not isinstance(
        value, (type, types.ModuleType, types.FunctionType, types.MethodType)
    )


def changed(value, pool, draw, depth):
    """Another value of the same type, near the given one."""
    if depth > DEPTH:
        return value
    kind = type(value)
    if kind is bool:
        return not value
    if kind is int:
        ways = [value + 1, value - 1, -value, 0, 1, 2, value * 2, value // 2, draw.randint(-10, 20)]
        return draw.choice(ways + pool.get(int, [])[:20])
    if kind is float:
        ways = [value + 1, value - 1, -value, 0.0, 0.5, value * 2, value / 3, draw.randint(-40, 80) / 4]
        return draw.choice(ways + pool.get(float, [])[:20])
    if kind is str:
        return text(value, pool, draw)
    if kind is bytes:
        return text(value.decode("latin-1"), {}, draw).encode("latin-1", "replace")
    if kind is list:
        return sequence(value, pool, draw, depth)
    if kind is tuple:
        items = list(value)
        if items:
            at = draw.randrange(len(items))
            items[at] = changed(items[at], pool, draw, depth + 1)
        return tuple(items)
    if kind in (set, frozenset):
        return kind(sequence(sorted(value, key=render), pool, draw, depth))
    if kind is dict:
        return mapping(value, pool, draw, depth)
    if attributes(value):
        names = sorted(vars(value))
        name = draw.choice(names)
        try:
            setattr(value, name, changed(vars(value)[name], pool, draw, depth + 1))
        except Exception:
            return value
    return value


def text(value, pool, draw):
    at = draw.randrange(len(value) + 1)
    others = pool.get(str, [])
    letters = "".join(others) or "ab c,1"
    ways = [
        value[:at] + value[at + 1 :],
        value[:at] + draw.choice(letters) + value[at:],
        value[:at] + draw.choice(letters) + value[at + 1 :],
        value[::-1],
        value[:at],
        value[at:],
        value + value[:at],
        value.swapcase(),
        "",
    ]
    return draw.choice([*ways, *ways, draw.choice(others)] if others else ways)


def sequence(value, pool, draw, depth):
    items = list(value)
    if not items:
        kinds = [kind for kind in (int, str, float) if pool.get(kind)]
        return [draw.choice(pool[kinds[0]]) for _ in range(draw.randint(1, 3))] if kinds else items
    way, at = draw.randrange(8), draw.randrange(len(items))
    if way == 0:
        del items[at]
    elif way == 1:
        items.insert(at, copy.deepcopy(items[draw.randrange(len(items))]))
    elif way == 2:
        items.reverse()
    elif way == 3:
        items = items[:at]
    elif way == 4:
        other = draw.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif way == 5:
        items.append(changed(copy.deepcopy(items[at]), pool, draw, depth + 1))
    else:
        items[at] = changed(items[at], pool, draw, depth + 1)
    return items


def mapping(value, pool, draw, depth):
    items = dict(value)
    if not items:
        return items
    key = draw.choice(sorted(items, key=render))
    way = draw.randrange(4)
    if way == 0:
        del items[key]
    elif way == 1:
        held = items.pop(key)
        items[changed(key, pool, draw, depth + 1)] = held
    else:
        items[key] = changed(items[key], pool, draw, depth + 1)
    return items


def render(value, depth=0, above=()):
    """A value as text that is the same in every process: no addresses, sets in order, floats to 12 digits."""
    kind = type(value)
    if kind is float:
        return format(value, ".12g")
    if value is None or kind in (bool, int, str, bytes):
        return repr(value)
    if any(value is one for one in above) or depth > 24:
        return "<cycle>"
    above = (*above, value)
    if kind in (list, tuple):
        inside = ", ".join(render(item, depth + 1, above) for item in value)
        return f"[{inside}]" if kind is list else f"({inside})"
    if kind in (set, frozenset):
        return "{" + ", ".join(sorted(render(item, depth + 1, above) for item in value)) + "}"
    if kind is dict:
        pairs = [f"{render(k, depth + 1, above)}: {render(v, depth + 1, above)}" for k, v in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return getattr(value, "__qualname__", kind.__name__)
    if attributes(value):
        pairs = [f"{name}={render(item, depth + 1, above)}" for name, item in sorted(vars(value).items())]
        return f"{kind.__qualname__}({', '.join(pairs)})"
    if isinstance(value, (list, tuple, dict, set)):
        plain = next(one for one in (list, tuple, dict, set) if isinstance(value, one))
        return f"{kind.__qualname__}({render(plain(value), depth + 1, above)})"
    described = repr(value)
    return described if " at 0x" not in described else kind.__qualname__

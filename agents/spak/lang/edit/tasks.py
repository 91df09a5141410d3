"""Operations on the graph: tasks, edges, START, LEVEL."""

from __future__ import annotations

from spak.errors import EditRefused
from spak.lang import ast
from spak.lang.edit import find, ops, write
from spak.lang.edit.ops import Op
from spak.lang.edit.surface import Surface
from spak.lang.parser import parse

MAX_LEVEL = 5


def add_task(surface: Surface, op: ops.AddTask) -> tuple[Op, ...]:
    """Add a task; gives the ops that undo it. Raises: EditRefused."""
    write.check_name(op.name, "a task")
    if any(task.name == op.name for task in surface.spec.tasks()):
        raise EditRefused("edit.exists", f"there is a task '{op.name}' already", "rename_task renames one")
    block = surface.whole()
    tasks = [item for item in block.items if isinstance(item, ast.Task)]
    place = find.place([task.name for task in tasks], op.after, "task")
    if place == 0:
        index = block.items.index(tasks[0]) if tasks else len(block.items)
    else:
        index = block.items.index(tasks[place - 1]) + 1
    surface.insert(block, index, _task_source(surface, op, surface.inner(block)), apart=True)
    return (ops.RemoveTask(op.name),)


def _task_source(surface: Surface, op: ops.AddTask, indent: str) -> str:
    if op.source:
        node = find.snippet(op.source, ast.Task, "task")
        if node.name != op.name:
            raise EditRefused("edit.value", f"the source is of task '{node.name}'", f"name it '{op.name}'")
        return surface.fitted(op.source, indent)
    word = "TASK" if surface.spec.agent is not None else "task"
    goal = write.text(op.goal or op.name, indent + 2 * surface.unit, surface.newline)
    inner = surface.newline + indent + surface.unit
    return f"{word} {op.name} {{{inner}GOAL {goal}{surface.newline}{indent}}}"


def create_missing_task(surface: Surface, op: ops.CreateMissingTask) -> tuple[Op, ...]:
    """Add a task that an edge or START names and that is not there; gives the ops that undo it."""
    targets = {edge.target for task in surface.spec.tasks() for *_, edge in find.edges(task)}
    start = find.start(surface)
    if start is not None:
        targets.add(start.target)
    if op.name not in targets and not any(task.name == op.name for task in surface.spec.tasks()):
        hint = "add_task adds one all the same"
        raise EditRefused("edit.not_missing", f"nothing leads to a task '{op.name}'", hint)
    return add_task(surface, ops.AddTask(op.name))


def remove_task(surface: Surface, op: ops.RemoveTask) -> tuple[Op, ...]:
    """Remove a task and the edges to it; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.name)
    block = surface.whole()
    if node not in block.items:
        raise EditRefused("edit.shape", f"task '{op.name}' is outside of the AGENT", "move it inside")
    tasks = [item for item in block.items if isinstance(item, ast.Task)]
    place = tasks.index(node)
    after = tasks[place - 1].name if place else ""
    surface.remove(block, block.items.index(node))
    return (ops.AddTask(op.name, source=surface.cut(node), after=after),)


def rewrite(surface: Surface, op: ops.Rewrite) -> tuple[Op, ...]:
    """Write a task, or the whole spec, anew; gives the ops that undo it. Raises: EditRefused."""
    if not op.task:
        if not parse(op.source).ok:
            raise EditRefused("edit.value", "the source does not parse", "spak check names the line")
        surface.replace(0, len(surface.text), op.source)
        return (ops.Rewrite(surface.text),)
    node = find.task(surface, op.task)
    if find.snippet(op.source, ast.Task, "task").name != op.task:
        raise EditRefused("edit.value", "the source is of another task", "rename_task gives it another name")
    surface.replace_node(node, surface.fitted(op.source, surface.indent(node.start)))
    return (ops.Rewrite(surface.cut(node), op.task),)


def rename_task(surface: Surface, op: ops.RenameTask) -> tuple[Op, ...]:
    """Rename a task and whatever leads to it; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.name)
    write.check_name(op.new, "a task")
    if op.new == op.name:
        return ()
    for task in surface.spec.tasks():
        if task.name == op.new:
            raise EditRefused("edit.exists", f"there is a task '{op.new}' already", "choose another name")
        for *_, edge in find.edges(task):
            if edge.target == op.name:
                surface.replace_token(edge.start + 2, op.new)
    surface.replace_token(node.start + 1, op.new)
    for item in _starts(surface):
        if item.target == op.name:
            surface.replace_token(item.end - 1, op.new)
    return (ops.RenameTask(op.new, op.name),)


def _starts(surface: Surface) -> list[ast.Start]:
    return [item for item in surface.whole().items if isinstance(item, ast.Start)]


# ---- edges ---------------------------------------------------------------------------------------------


def add_edge(surface: Surface, op: ops.AddEdge) -> tuple[Op, ...]:
    """Add an edge; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    derived = op.trigger.startswith("/")
    write.check_word(op.trigger.removeprefix("/"), "a trigger")
    write.check_name(op.target, "a task")
    for *_, edge in find.edges(node):
        if edge.trigger == op.trigger:
            hint = "retarget_edge leads it elsewhere"
            raise EditRefused("edit.exists", f"'{op.trigger}' leads to '{edge.target}' already", hint)
    source = f"{op.trigger} -> {op.target}"
    blocks = [item for item in node.items if isinstance(item, ast.Next) and bool(item.by) == derived]
    if blocks:
        block = surface.next(blocks[-1])
        index = len(block.items) if op.at is None else max(0, min(op.at, len(block.items)))
        surface.insert(block, index, source)
        if not block.items:
            return ()  # remove_edge would take the empty NEXT away too
    else:
        block = surface.task(node)
        surface.insert(block, len(block.items), f"NEXT {'BY next_action ' if derived else ''}{{ {source} }}")
    return (ops.RemoveEdge(op.task, op.trigger),)


def retarget_edge(surface: Surface, op: ops.RetargetEdge) -> tuple[Op, ...]:
    """Let an edge lead to another task; gives the ops that undo it. Raises: EditRefused."""
    *_, edge = find.edge(find.task(surface, op.task), op.trigger)
    write.check_name(op.target, "a task")
    surface.replace_token(edge.start + 2, op.target)
    return (ops.RetargetEdge(op.task, op.trigger, edge.target),)


def rename_trigger(surface: Surface, op: ops.RenameTrigger) -> tuple[Op, ...]:
    """Let an edge be taken on another trigger; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    *_, edge = find.edge(node, op.trigger)
    write.check_word(op.new.removeprefix("/"), "a trigger")
    if op.new != op.trigger and any(other.trigger == op.new for *_, other in find.edges(node)):
        raise EditRefused("edit.exists", f"there is an edge for '{op.new}' already", "remove it first")
    surface.replace_token(edge.start, op.new)
    return (ops.RenameTrigger(op.task, op.new, op.trigger),)


def remove_edge(surface: Surface, op: ops.RemoveEdge) -> tuple[Op, ...]:
    """Remove an edge; gives the ops that undo it. Raises: EditRefused."""
    node = find.task(surface, op.task)
    where, index, edge = find.edge(node, op.trigger)
    if len(where.items) == 1:
        surface.remove(surface.task(node), node.items.index(where))
    else:
        surface.remove(surface.next(where), index)
    return (ops.AddEdge(op.task, op.trigger, edge.target, index),)


# ---- the agent -----------------------------------------------------------------------------------------


def set_start(surface: Surface, op: ops.SetStart) -> tuple[Op, ...]:
    """Let the agent start at a task; gives the ops that undo it. Raises: EditRefused."""
    find.task(surface, op.task)
    start = find.start(surface)
    if start is not None:
        surface.replace_token(start.end - 1, op.task)
        return (ops.SetStart(start.target),)
    agent = surface.spec.agent
    if agent is None:
        hint = "a file of bare tasks begins with its first one"
        raise EditRefused("edit.shape", "START belongs to an AGENT, and there is none", hint)
    block = surface.agent(agent)
    places = (index for index, item in enumerate(block.items) if isinstance(item, ast.Task))
    first = next(places, len(block.items))
    surface.insert(block, first, f"START -> {op.task}", apart=True)
    return (ops.ClearStart(),)


def clear_start(surface: Surface, op: ops.ClearStart) -> tuple[Op, ...]:
    """Remove START; gives the ops that undo it. Raises: EditRefused."""
    start = find.start(surface)
    if start is None:
        raise EditRefused("edit.unknown", "there is no START", "")
    block = surface.whole()
    surface.remove(block, block.items.index(start))
    return (ops.SetStart(start.target),)


def set_level(surface: Surface, op: ops.SetLevel) -> tuple[Op, ...]:
    """Set the agent's LEVEL; gives the ops that undo it. Raises: EditRefused."""
    agent = surface.spec.agent
    if agent is None:
        hint = "a file of bare tasks runs under the least LEVEL that its steps need"
        raise EditRefused("edit.shape", "LEVEL belongs to an AGENT, and there is none", hint)
    if not 0 <= op.level <= MAX_LEVEL:
        raise EditRefused("edit.value", f"LEVEL is a number from 1 to {MAX_LEVEL}", "0 removes it")
    old = agent.level
    was = int(old.value) if old is not None else 0
    name_end = surface.ends[agent.start + 1]
    if old is None and op.level:
        surface.replace(name_end, name_end, f" LEVEL {op.level}")
    elif old is not None and op.level:
        surface.replace_node(old, str(op.level))
    elif old is not None:
        surface.replace(name_end, surface.ends[agent.start + 3], "")
    return (ops.SetLevel(was),)

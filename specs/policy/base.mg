# What every action needs, whatever its tool. Nothing is permitted but by a rule; `forbidden` wins over any.
# Facts about the action come from spak.policy.facts and from nowhere else.

Decl tool(Action, Tool) bound [/name, /name].
Decl unknown_tool(Action) bound [/name].
Decl argument(Action, Name, Value) bound [/name, /string, /any].
Decl cut_argument(Action, Name) bound [/name, /string].
Decl unreadable(Action, Code, Message) bound [/name, /string, /string].

# Folds are fed from events (docs/history.md): a request that is judged, and its answer with what it answered.
Decl event(Action) bound [/name].
Decl result(Action, Name, Value) bound [/name, /string, /any].
Decl uses_path(Action, How, Place, Path) bound [/name, /name, /name, /string].
Decl missing_path(Action, Path) bound [/name, /string].

# What a call has changed, each path with its class at the door (spak.door): /ordinary, /checks, /runs, /secret, /odd or
# /ignored. Stated after the call and before its step is kept: a step whose changes are forbidden is undone.
Decl changed(Action, Path, Class) bound [/name, /string, /name].

# Facts of the run around the action. Its kernel states them, no policy and no model does.
Decl in_task(Task) bound [/string].
Decl at_level(Level) bound [/number].
Decl declared_tool(Tool) bound [/name].
Decl sandboxed(Action, Launcher) bound [/name, /name].
Decl diagnostic(Severity, File, Line, Code, Message) bound [/name, /string, /number, /string, /string].
Decl checks_ran(Validator, Signal) bound [/string, /name].

# Each check by the files that it ran on: /own are the run's, at that root; /beginning those that the run began
# with and its ordinary changes alone, where it changed more than these; /sealed are all that it made, with the
# files of the sealed checks that the run has (by their hash), which run once, as its last step.
Decl checks_ran_on(Root, Files, Signal) bound [/string, /name, /name].
Decl sealed_checks(Hash) bound [/string].

# Where the run goes on, where a task's NEXT leaves it to the law (NEXT BY next_action): the task that ended and
# with which signal, the move before, and how many moves followed a failure so far.
Decl ended(Task, Signal) bound [/string, /name].
Decl last_action(Action) bound [/name].
Decl retry_count(Count) bound [/number].
Decl next_action(Action) bound [/name].

Decl signed_approval(Action, Signer) bound [/name, /string].
Decl admin_override(Action, Signer) bound [/name, /string].

# How a path is used, and the places where that is permitted. A place is what the path leads to when every
# link is followed: /inside, /control (files that say what is run, as the door has it),
# /root (the workspace itself), /git, /secret, /hard_link, /outside, /refused (no path at all).
Decl permitted_place(How, Place) bound [/name, /name].

permitted_place(/reads, /inside).
permitted_place(/reads, /control).
permitted_place(/reads, /root).
permitted_place(/reads, /git).
permitted_place(/writes, /inside).
permitted_place(/writes, /root).
permitted_place(/tracks, /inside).
permitted_place(/tracks, /control).
permitted_place(/tracks, /root).
permitted_place(/deletes, /inside).

unpermitted_path(Action) :-
    uses_path(Action, How, Place, _),
    !permitted_place(How, Place).

# Tools that start a program, and the weakest sandbox for each.
Decl least_sandbox(Tool, Launcher) bound [/name, /name].
Decl as_strict(Launcher, Least) bound [/name, /name].

least_sandbox(/run, /restricted).
least_sandbox(/cc, /restricted).
least_sandbox(/nvcc, /restricted).
least_sandbox(/nsight, /restricted).
least_sandbox(/python_repl, /restricted).
least_sandbox(/read_ast, /restricted).

as_strict(/restricted, /restricted).
as_strict(/docker, /restricted).
as_strict(/docker, /docker).
as_strict(/gpu, /restricted).
as_strict(/gpu, /docker).
as_strict(/gpu, /gpu).
as_strict(/gvisor, /restricted).
as_strict(/gvisor, /docker).
as_strict(/gvisor, /gvisor).

needs_sandbox(Action) :-
    tool(Action, Tool),
    least_sandbox(Tool, _).
held(Action) :-
    tool(Action, Tool),
    least_sandbox(Tool, Least),
    sandboxed(Action, Launcher),
    as_strict(Launcher, Least).
loose(Action) :-
    needs_sandbox(Action),
    !held(Action).

# A task that names its tools uses no other.
narrowed() :- declared_tool(_).
undeclared(Action) :-
    tool(Action, Tool),
    narrowed(),
    !declared_tool(Tool).

# A signed approval of this very action permits what is not forbidden, and so does the override of an admin.
approved(Action) :- signed_approval(Action, _).
approved(Action) :- admin_override(Action, _).
permitted(Action) :-
    tool(Action, _),
    approved(Action).

# Never, whatever another rule permits.
forbidden(Action) :- uses_path(Action, _, /outside, _).
forbidden(Action) :- uses_path(Action, _, /refused, _).
forbidden(Action) :- unreadable(Action, _, _).
forbidden(Action) :- loose(Action).
forbidden(Action) :- undeclared(Action).

# Budgets while a run is under way, within extend_percent of its CONFIG: before each step what `extension` names
# is added, and what `no_extension` names is never extended, whoever asks.
Decl extension(Budget, By) bound [/name, /number].
Decl no_extension(Budget) bound [/name].

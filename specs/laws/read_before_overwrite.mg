# A file that exists is changed by a file tool or a patch only after the run has read it, or has written it itself.

Decl seen_file(Path) descr [fold("open"), counts("done"), keys(4096)] bound [/string].

feed_seen_file(Path) :-
    event(E),
    uses_path(E, /reads, _, Path),
    result(E, "exit", 0).
feed_seen_file(Path) :-
    event(E),
    overwrites(E, Path),
    result(E, "exit", 0).
close_seen_file(Path) :-
    event(E),
    uses_path(E, /deletes, _, Path),
    result(E, "exit", 0).

overwrites(Action, Path) :- uses_path(Action, /edits, _, Path).
overwrites(Action, Path) :- uses_path(Action, /writes, _, Path).

forbidden(Action) :-
    overwrites(Action, Path),
    !missing_path(Action, Path),
    !seen_file(Path).

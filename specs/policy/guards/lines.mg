# The refactoring guards of guards.mg for what a call changed without naming it: a command line, a program, a deleted
# folder. It is judged after the call, by what depended on the file before it. Nobody can have signed for a file that
# the call did not name, so the call is undone; write_file and apply_patch name theirs, and a person may sign for those.
# Part of the law where a POLICY says guard(/refactor) or guard(/symbols).

unnamed(Action, File) :-
    changed(Action, File, Class),
    Class != /ignored,
    !uses_path(Action, /edits, _, File).

modified(File) :-
    guard(/refactor),
    unnamed(_, File).
touched(Symbol, File, Cover) :-
    guard(/symbols),
    unnamed(_, File),
    unsafe_cover(Cover),
    symbol_impact(Symbol, File, Cover).

forbidden(Action) :-
    unnamed(Action, File),
    unsafe_to_refactor(File).

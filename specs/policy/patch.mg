# Patches: applied exactly or not at all, and only to files that a tool may write.

Decl patch_trouble(Action, Code, Message) bound [/name, /string, /string].

broken_patch(Action) :- patch_trouble(Action, _, _).

permitted(Action) :-
    tool(Action, /apply_patch),
    uses_path(Action, /edits, _, _),
    !unpermitted_path(Action).

forbidden(Action) :- broken_patch(Action).

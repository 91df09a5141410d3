# What every action needs, whatever its tool. Nothing is permitted but by a rule; `forbidden` wins over any.
# The facts come from spak.policy.facts and from nowhere else.

Decl tool(Action, Tool) bound [/name, /name].
Decl unreadable(Action, Code, Message) bound [/name, /string, /string].
Decl uses_path(Action, How, Place, Path) bound [/name, /name, /name, /string].

# How a path is used, and the places where that is permitted. A place is what the path leads to when every
# link is followed: /inside, /generated (a build makes it again), /control (files that say what is run),
# /root (the workspace itself), /git, /secret, /hard_link, /outside, /refused (no path at all).
Decl permitted_place(How, Place) bound [/name, /name].

permitted_place(/reads, /inside).
permitted_place(/reads, /generated).
permitted_place(/reads, /control).
permitted_place(/reads, /root).
permitted_place(/reads, /git).
permitted_place(/runs, /inside).
permitted_place(/runs, /generated).
permitted_place(/runs, /control).
permitted_place(/runs, /root).
permitted_place(/writes, /inside).
permitted_place(/writes, /generated).
permitted_place(/writes, /root).
permitted_place(/redirects, /inside).
permitted_place(/redirects, /generated).
permitted_place(/writes_mode, /inside).
permitted_place(/writes_mode, /generated).
permitted_place(/writes_mode, /control).
permitted_place(/tracks, /inside).
permitted_place(/tracks, /generated).
permitted_place(/tracks, /control).
permitted_place(/tracks, /root).
permitted_place(/moves, /inside).
permitted_place(/moves, /generated).
permitted_place(/deletes, /inside).
permitted_place(/deletes, /generated).
permitted_place(/deletes_tree, /generated).

unpermitted_path(Action) :-
    uses_path(Action, How, Place, _),
    !permitted_place(How, Place).

# Never, whatever another rule permits.
forbidden(Action) :- uses_path(Action, _, /outside, _).
forbidden(Action) :- uses_path(Action, _, /refused, _).
forbidden(Action) :- unreadable(Action, _, _).

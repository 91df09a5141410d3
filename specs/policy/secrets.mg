# Secrets: a name such as secret://DEPLOY_KEY goes only where a rule lets it, a value goes nowhere.
# Files of secrets are the place /secret of base.mg, which no way of use is permitted in.

Decl names_secret(Action, Secret, Argument) bound [/name, /string, /string].
Decl looks_secret(Action, Kind, Argument) bound [/name, /string, /string].
Decl secret_may_go(Secret, Tool, Argument) descr [open("team")] bound [/string, /name, /string].

misplaced_secret(Action) :-
    names_secret(Action, Secret, Argument),
    tool(Action, Tool),
    !secret_may_go(Secret, Tool, Argument).

forbidden(Action) :- misplaced_secret(Action).
forbidden(Action) :- looks_secret(Action, _, _).

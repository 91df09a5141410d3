# Budgets of a run: what was used up (spent), what may be (allowance), what this action would take (takes).
# What is /steps, /tokens, /elapsed_ms, /requests, /request_bytes or /cost (micro-dollars); no allowance is no limit.

Decl spent(What, Amount) bound [/name, /number].
Decl allowance(What, Amount) bound [/name, /number].
Decl takes(Action, What, Amount) bound [/name, /name, /number].

over_budget(Action) :-
    takes(Action, What, Amount),
    spent(What, Before),
    allowance(What, Most),
    Most < fn:plus(Before, Amount).
overdrawn() :-
    spent(What, Before),
    allowance(What, Most),
    Most < Before.
over_budget(Action) :-
    tool(Action, _),
    overdrawn().

forbidden(Action) :- over_budget(Action).

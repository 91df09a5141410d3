# One approval is used once and within half an hour; no more than 5,000 a day to one place.
Decl event(E) bound [/name].
Decl tool(E, Tool) bound [/name, /name].
Decl argument(E, Name, Value) bound [/name, /string, /any].
Decl result(E, Name, Value) bound [/name, /string, /any].
Decl moved(To, Total) bound [/string, /number] descr [fold("sum"), within("24h")].
Decl approval(To) bound [/string] descr [fold("open"), within("30m"), counts("done")].

feed_moved(To, Amount) :-
    event(E),
    tool(E, /transfer),
    argument(E, "to", To),
    argument(E, "amount", Amount).

feed_approval(To) :-
    event(E),
    tool(E, /approve),
    argument(E, "to", To),
    result(E, "ok", /true).
close_approval(To) :-
    event(E),
    tool(E, /transfer),
    argument(E, "to", To).

permitted(A) :- tool(A, /approve).
permitted(A) :-
    tool(A, /transfer),
    argument(A, "to", To),
    approval(To).
forbidden(A) :-
    tool(A, /transfer),
    argument(A, "to", To),
    argument(A, "amount", N),
    moved(To, Before),
    5000 < fn:plus(Before, N).

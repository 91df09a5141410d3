# A run spends no more on models in a day than money_per_day says: money_per_day(/micro_dollars, 5000000). Without such
# a row there is no limit. A question counts once it is answered and its cost is known.

Decl money_per_day(Unit, Amount) bound [/name, /number].
Decl spent_today(Unit, Amount)
    descr [fold("sum"), within("24h"), counts("done"), keys(1), entries(16384)]
    bound [/name, /number].

feed_spent_today(/micro_dollars, Cost) :-
    event(E),
    act(E, _),
    result(E, "cost", Cost),
    0 < Cost.

costs_money(Action) :- act(Action, /ask).
costs_money(Action) :- act(Action, /plan).

spent_out() :-
    money_per_day(Unit, Most),
    spent_today(Unit, Spent),
    Most <= Spent.

forbidden(Action) :-
    costs_money(Action),
    spent_out().

# A commit holds only files that each named check has passed since they last changed: must_pass("Pytest").
# The law that ships asks for some check; this asks for these, and no signature stands for one.

Decl must_pass(Validator) bound [/string].

passed(Validator) :- checks_ran(Validator, /success).
missing_check(Validator) :-
    must_pass(Validator),
    !passed(Validator).

forbidden(Action) :-
    makes_commit(Action),
    missing_check(_).

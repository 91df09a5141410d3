# A release is signed by two persons: one signs an attempt, which is denied and remembered, and within a day another
# signs the next one. A release uses both signatures up. What a release is, the operator says:
# release_tool(/deploy). release_program("twine").

Decl release_tool(Tool) bound [/name].
Decl release_program(Program) bound [/string].
Decl half_signed(What) descr [fold("open"), within("24h"), counts("asked")] bound [/name].
Decl last_signer(Signer) descr [fold("last"), within("24h"), counts("asked")] bound [/string].

release(Action) :-
    tool(Action, Tool),
    release_tool(Tool).
release(Action) :-
    runs_program(Action, _, Program),
    release_program(Program).

feed_half_signed(/release) :-
    event(E),
    release(E),
    signed_approval(E, _).
close_half_signed(/release) :-
    event(E),
    release(E),
    result(E, _, _).
signed(Action) :- signed_approval(Action, _).
feed_last_signer(Signer) :-
    event(E),
    release(E),
    signed_approval(E, Signer).
feed_last_signer("") :-
    event(E),
    release(E),
    !signed(E).

same_person(Action) :-
    signed_approval(Action, Signer),
    last_signer(Signer).
second_signature(Action) :-
    signed(Action),
    half_signed(/release),
    !last_signer(""),
    !same_person(Action).

forbidden(Action) :-
    release(Action),
    !second_signature(Action).

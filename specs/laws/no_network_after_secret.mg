# After a run used a secret, or read a file of secrets that a person let it read, nothing reaches the network but
# by a person's signature.

Decl used_secret(Ago) descr [fold("seen"), counts("held")] bound [/number].

secret_use(E) :- names_secret(E, _, _).
secret_use(E) :- uses_path(E, _, /secret, _).
feed_used_secret() :-
    event(E),
    secret_use(E).

# Requests, plain http among them.
forbidden(Action) :-
    asks_url(Action, _, _, _),
    used_secret(_),
    !approved(Action).

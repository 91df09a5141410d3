# What a run does besides calling tools. The kernel names the act; what a validator starts runs in the
# sandbox, as any command line of a run does.

Decl act(Action, Act) bound [/name, /name].
Decl validator(Action, Validator) bound [/name, /string].

permitted(Action) :- act(Action, /ask).       # a question to a model or a person
permitted(Action) :- act(Action, /plan).      # a list of candidates; each is judged when it is chosen
permitted(Action) :- act(Action, /check).     # the conditions of the spec, answered by this side

permitted(Action) :-
    act(Action, /validate),
    validator(Action, _),
    !unpermitted_path(Action).

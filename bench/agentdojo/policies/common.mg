# What every suite shares. The facts come from bench/agentdojo/facts.py; nothing is permitted but by a rule
# of the suite, and `forbidden` wins. How far a suite goes is a fact of the replay: level(/strict) lets no
# value flow out of text that a tool returned, level(/open) lets it flow out of text the user pointed at.

Decl tool(Action, Tool) bound [/name, /name].
Decl asked(Word) bound [/string].
Decl level(Level) bound [/name].
Decl earlier(Call, Tool) bound [/number, /name].
Decl chosen(Call) bound [/number].
Decl only(Call, Field) bound [/number, /string].
Decl argument(Action, Name, Value) bound [/name, /name, /string].
Decl typed(Action, Name, Value) bound [/name, /name, /string].
Decl worded(Action, Name, Value) bound [/name, /name, /string].
Decl composed(Action, Name, Value) bound [/name, /name, /string].
Decl carries(Action, Name, Piece) bound [/name, /name, /string].
Decl came(Action, Name, Value, Call, Field, How) bound [/name, /name, /string, /number, /string, /name].
Decl needed(Tool) bound [/name].

# A read changes nothing and goes nowhere.
Decl reading(Tool) bound [/name].
permitted(Action) :- tool(Action, Tool), reading(Tool).

# A word of the prompt that asks for what the tool does.
Decl means(Word, Tool) bound [/string, /name].
wanted(Tool) :- asked(Word), means(Word, Tool).

# Whom or what an act concerns: each of these arguments must be vouched for.
Decl guarded(Tool, Name) bound [/name, /name].
vouched(Action, Name, Value) :- typed(Action, Name, Value).

# Where a field of an earlier result may go: from the tool's field to this tool's argument, as it stands.
Decl flows(From, Field, Tool, Name) bound [/name, /string, /name, /name].
vouched(Action, Name, Value) :-
    tool(Action, Tool),
    came(Action, Name, Value, Call, Field, /whole),
    earlier(Call, From),
    flows(From, Field, Tool, Name).

# The same, but only if the user's own words chose what was read.
Decl named_flows(From, Field, Tool, Name) bound [/name, /string, /name, /name].
vouched(Action, Name, Value) :-
    tool(Action, Tool),
    came(Action, Name, Value, Call, Field, /whole),
    earlier(Call, From),
    chosen(Call),
    named_flows(From, Field, Tool, Name).

# Out of text that the user pointed at, when the prompt says that it holds the value.
Decl text_flows(From, Tool, Name) bound [/name, /name, /name].
vouched(Action, Name, Value) :-
    level(/open),
    tool(Action, Tool),
    came(Action, Name, Value, Call, _, _),
    earlier(Call, From),
    chosen(Call),
    text_flows(From, Tool, Name).

doubtful(Action) :-
    tool(Action, Tool),
    guarded(Tool, Name),
    argument(Action, Name, Value),
    !vouched(Action, Name, Value).

# Links and addresses that the user did not write travel in no message.
Decl speaking(Tool, Name) bound [/name, /name].
spoken(Action) :- tool(Action, Tool), speaking(Tool, Name), carries(Action, Name, _).

Decl acting(Tool) bound [/name].
acting(Tool) :- means(_, Tool).
permitted(Action) :-
    tool(Action, Tool),
    acting(Tool),
    wanted(Tool),
    !doubtful(Action),
    !spoken(Action).

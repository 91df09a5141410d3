# Tools of MCP servers of others (docs/mcp.md). It is part of the law of each run whose spec names one.

# What the server lists now: /changed, /new or /gone by tool, /listed where it listed its tools, /unavailable.
Decl mcp_listed(Server, Name, State, Field)
    descr [external(), mode("+", "-", "-", "-")]
    bound [/string, /string, /name, /string].

mcp_call(Action, Server, Name) :-
    tool(Action, Tool),
    mcp_tool(Tool, Server, Name, _).

# A server that nobody permits is not even asked.
mcp_wanted(Action, Server) :-
    mcp_call(Action, Server, Name),
    mcp_may(Server, Name).
mcp_wanted(Action, Server) :-
    mcp_call(Action, Server, _),
    approved(Action).

mcp_seen(Server, Name, State, Field) :-
    mcp_wanted(_, Server),
    mcp_listed(Server, Name, State, Field).

mcp_changed(Server, Name, Field) :- mcp_seen(Server, Name, /changed, Field).
mcp_gone(Server, Name) :- mcp_seen(Server, Name, /gone, _).
mcp_new(Server, Name) :- mcp_seen(Server, Name, /new, _).

# A server of which one approved tool is another one, or gone, is not the server that was approved. One that
# has more tools is: nobody can call what was not approved.
mcp_other(Server) :- mcp_changed(Server, _, _).
mcp_other(Server) :- mcp_gone(Server, _).

mcp_pin_ok(Action) :-
    mcp_wanted(Action, Server),
    mcp_seen(Server, _, /listed, _),
    !mcp_other(Server).

permitted(Action) :-
    mcp_call(Action, Server, Name),
    mcp_may(Server, Name),
    mcp_pin_ok(Action).

forbidden(Action) :-
    mcp_call(Action, Server, _),
    mcp_changed(Server, _, _).
forbidden(Action) :-
    mcp_call(Action, Server, _),
    mcp_gone(Server, _).
forbidden(Action) :-
    mcp_call(Action, Server, _),
    mcp_seen(Server, _, /unavailable, _).
forbidden(Action) :-
    mcp_call(Action, _, _),
    !mcp_pin_ok(Action).

# From one server to another, or to a host: once a server has answered, what the run writes may hold its text, in any
# form. A call of a server without arguments carries nothing; an address always may.
Decl mcp_answered(Server, Ago) descr [fold("seen"), counts("held")] bound [/string, /number].

feed_mcp_answered(Server) :-
    event(E),
    mcp_call(E, Server, _).

carries(Action) :- argument(Action, _, _).
carries(Action) :- cut_argument(Action, _).

of_server(Action) :- mcp_call(Action, _, _).

mcp_goes(Action, To) :-
    mcp_call(Action, To, _),
    carries(Action).
mcp_goes(Action, Host) :-
    asks_url(Action, _, Host, _),
    !of_server(Action).

mcp_data_from(Action, From) :-
    mcp_goes(Action, To),
    mcp_answered(From, _),
    From != To.

forbidden(Action) :-
    mcp_goes(Action, To),
    mcp_data_from(Action, From),
    !mcp_flow(From, To),
    !approved(Action).

# A call without an answer may have been done. Until a person has looked and signed, the tool is not called again.
Decl mcp_lost(Server, Name) descr [fold("open"), counts("done")] bound [/string, /string].

feed_mcp_lost(Server, Name) :-
    event(E),
    mcp_call(E, Server, Name),
    result(E, "exit", 2).
close_mcp_lost(Server, Name) :-
    event(E),
    mcp_call(E, Server, Name),
    signed_approval(E, _).

forbidden(Action) :-
    mcp_call(Action, Server, Name),
    mcp_lost(Server, Name),
    !approved(Action).

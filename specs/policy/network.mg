# Requests: plain https to a host that is named, reading only, with nothing carried out.

Decl asks_url(Action, Scheme, Host, Port) bound [/name, /string, /string, /number].
Decl asks_method(Action, Method) bound [/name, /string].
Decl url_trouble(Action, Code, Detail) bound [/name, /string, /string].
Decl sends_body(Action) bound [/name].
Decl sends_header(Action, Header) bound [/name, /string].
Decl host_address(Action, Address, Kind) bound [/name, /string, /name].
Decl unresolved(Action, Host) bound [/name, /string].
Decl reachable_kind(Kind) bound [/name].
Decl allowed_host(Host) descr [open("team")] bound [/string].
Decl allowed_port(Host, Port) descr [open("team")] bound [/string, /number].
Decl reading_method(Method) bound [/string].
Decl plain_header(Header) bound [/string].

reading_method("GET").
reading_method("HEAD").

# A command line in the sandbox reaches no host: there is no network in it, whatever is allowed here.

plain_header("accept").
plain_header("accept-encoding").
plain_header("accept-language").
plain_header("if-none-match").
plain_header("user-agent").

odd_header(Action) :-
    sends_header(Action, Header),
    !plain_header(Header).

odd_url(Action) :- url_trouble(Action, _, _).

permitted(Action) :-
    tool(Action, /http_request),
    asks_url(Action, "https", Host, 443),
    allowed_host(Host),
    asks_method(Action, Method),
    reading_method(Method),
    !odd_url(Action),
    !odd_header(Action),
    !sends_body(Action).

forbidden(Action) :- url_trouble(Action, "secret", _).

# A tunnel of a guarded agent carries whatever its two ends make of it: a host at 443, another port where it is named.
permitted(Action) :-
    tool(Action, /tunnel),
    asks_url(Action, _, Host, 443),
    allowed_host(Host),
    !odd_url(Action).

permitted(Action) :-
    tool(Action, /tunnel),
    asks_url(Action, _, Host, Port),
    allowed_port(Host, Port),
    !odd_url(Action).

# A push carries the workspace's commits out: nothing permits it but a signature, or a law of the operator or a team.
# The address that the host's name stands for when the request is judged; it is the one that is connected to.
reachable_kind(/public).

unreachable(Action) :- unresolved(Action, _).
unreachable(Action) :-
    host_address(Action, _, Kind),
    !reachable_kind(Kind).

forbidden(Action) :- unreachable(Action).

# Tools of MCP servers of others; the rules about them are guards/mcp.mg, in runs that have some.
# The call's tool: its server, the server's own name for it, and the pin of the definition that was approved.
Decl mcp_tool(Tool, Server, Name, Pin) bound [/name, /string, /string, /string].
Decl mcp_server(Server, Transport, Identity) bound [/string, /name, /string].

# What a server says of its own tool. A law may be stricter for it, and never looser: a server may say anything.
Decl mcp_hint(Tool, Hint) bound [/name, /name].

# Who permits: the operator or a team names server and tool, and from which server text may go to which other one, or
# to which host.
Decl mcp_may(Server, Name) descr [open("team")] bound [/string, /string].
Decl mcp_flow(From, To) descr [open("team")] bound [/string, /string].

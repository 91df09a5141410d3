# Where text came from, and where it may go: once something came in that nobody vouched for, nothing leaves the run but
# by a signature. It stands where a spec's POLICY says guard(/flow), and where an operator names spak:flow. A run is
# tainted as a whole: a model may put what it read into anything that it writes afterwards.

Decl untrusted_path(Begins) descr [open("spec")] bound [/string].
Decl untrusted_tool(Tool) descr [open("spec")] bound [/name].
Decl message_tool(Tool) descr [open("spec")] bound [/name].
Decl may_flow(Label, Sink) bound [/name, /name].
Decl tainted(Label, Ago) descr [fold("seen"), counts("held")] bound [/name, /number].

# What taints: answers of hosts, secrets, and the files and tools that are named. Nothing outside the workspace is
# read: base.mg forbids it to everybody.
taints(E, /web) :- asks_url(E, _, _, _).
taints(E, /secret) :- names_secret(E, _, _).
taints(E, /secret) :- uses_path(E, _, /secret, _).
taints(E, /named) :-
    uses_path(E, /reads, _, Path),
    untrusted_path(Begins),
    :string:starts_with(Path, Begins).
taints(E, /named) :-
    tool(E, Tool),
    untrusted_tool(Tool).

# A folder is read with all that is in it; a command line, code and a validator may read every file.
taints(E, /named) :-
    uses_path(E, /reads, _, Folder),
    untrusted_path(Begins),
    :string:starts_with(Begins, Folder).
reads_all(E) :- uses_path(E, /reads, /root, _).
reads_all(E) :- runs_code(E).
reads_all(E) :- act(E, /validate).
reads_all(E) :-
    tool(E, Tool),
    command_tool(Tool).
taints(E, /named) :-
    reads_all(E),
    untrusted_path(_).

feed_tainted(Label) :-
    event(E),
    taints(E, Label).

# What leaves the run.
leaves(Action, /network) :- asks_url(Action, _, _, _).
leaves(Action, /commit) :- makes_commit(Action).
leaves(Action, /message) :-
    tool(Action, Tool),
    message_tool(Tool).

forbidden(Action) :-
    leaves(Action, Sink),
    tainted(Label, _),
    !may_flow(Label, Sink),
    !approved(Action).

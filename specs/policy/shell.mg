# Command lines. In a sandbox any line may run: what it does is held by the walls, and what it changed is judged
# after it. Outside of one (`spak gate`) programs that only read are permitted, and what the law names.

# What a line starts: its programs by their place on the line, each with its words, and the paths that it names. A
# program that nobody can know before the line runs is "?". spak.commandline.explain.
Decl runs_program(Action, Index, Program) bound [/name, /number, /string].
Decl runs_words(Action, Index, Words) bound [/name, /number, /string].
Decl names_path(Action, Path) bound [/name, /string].

# Variables that the line or `env` gives to its programs.
Decl sets_variable(Action, Name, Value) bound [/name, /string, /string].

# Tools whose argument is a command line, or the words of one command.
Decl command_tool(Tool) bound [/name].

command_tool(/shell).
command_tool(/run).
command_tool(/nsight).

permitted(Action) :-
    tool(Action, Tool),
    command_tool(Tool),
    runs_program(Action, 1, _),
    sandboxed(Action, Launcher),
    as_strict(Launcher, /restricted),
    !unpermitted_path(Action).

# Outside of a sandbox: programs that do nothing but read and print (the table readers.toml), and those that the law
# names. Such a program runs whatever the workspace says: allowed_program("pytest").
Decl only_reads(Action, Index) bound [/name, /number].
Decl allowed_program(Program) bound [/string].

plain(Action, Index) :- only_reads(Action, Index).
plain(Action, Index) :-
    runs_program(Action, Index, Program),
    allowed_program(Program).

for_a_person(Action, Program) :-
    runs_program(Action, Index, Program),
    !plain(Action, Index).
unsettled(Action) :- for_a_person(Action, _).
unsettled(Action) :- sets_variable(Action, _, _).

permitted(Action) :-
    tool(Action, /shell),
    runs_program(Action, 1, _),
    !unsettled(Action),
    !unpermitted_path(Action).

# What is neither permitted nor forbidden there is a question to a person.
may_ask(Action) :-
    tool(Action, /shell),
    runs_program(Action, 1, _).

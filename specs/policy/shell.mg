# Command lines: every simple command of the line must do only what is named here, to places named in base.mg.
# What a program does with its words is data: spak/commandline/tables. This file says which deeds are permitted.

Decl command_does(Action, Index, Deed, About, Why) bound [/name, /number, /name, /string, /string].
Decl permitted_deed(Deed) bound [/name].

# Where `working_dir` has a line run, and the variables of `env`. What they would do is among the deeds and paths.
Decl works_in(Action, Path) bound [/name, /string].
Decl sets_variable(Action, Name, Value) bound [/name, /string, /string].

permitted_deed(/computes).          # prints, calculates, waits a moment
permitted_deed(/reads).             # shows files, by the places of base.mg
permitted_deed(/writes).            # makes or changes files, likewise
permitted_deed(/builds).            # runs the project's own code and tests: the sandbox holds it
permitted_deed(/commits).           # changes the repository in a way that can be undone
permitted_deed(/installs_locked).   # installs what the project's own files name
permitted_deed(/talks_to_origin).   # fetches from the project's own remote
permitted_deed(/downloads).         # fetches from a host, by a protocol; which ones: network.mg, guards.mg

# In a sandbox, which has no network but its own loopback and ends with all of its processes.
Decl sandboxed_deed(Deed) bound [/name].

sandboxed_deed(/asks_itself).       # asks a server on the line's own machine
sandboxed_deed(/background).        # goes on while the rest of the line runs
sandboxed_deed(/runs_what_it_writes).  # writes a file and runs it, by its path or as a module: code may do so in any case

held_deed(Action, Deed) :-
    sandboxed_deed(Deed),
    sandboxed(Action, Launcher),
    as_strict(Launcher, /restricted).

unpermitted_deed(Action) :-
    command_does(Action, _, Deed, _, _),
    !permitted_deed(Deed),
    !held_deed(Action, Deed).

# Tools whose argument is a command line, or the words of one command.
Decl command_tool(Tool) bound [/name].

command_tool(/shell).
command_tool(/run).
command_tool(/nsight).

permitted(Action) :-
    tool(Action, Tool),
    command_tool(Tool),
    command_does(Action, 1, _, _, _),
    !unpermitted_deed(Action),
    !unpermitted_path(Action).

# Never on a command line, whatever another rule permits.
Decl forbidden_deed(Deed) bound [/name].

forbidden_deed(/escalates).
forbidden_deed(/destroys).
forbidden_deed(/not_understood).

forbidden(Action) :-
    command_does(Action, _, Deed, _, _),
    forbidden_deed(Deed).
forbidden(Action) :-
    command_does(Action, _, /runs_what_it_writes, _, _),
    !held_deed(Action, /runs_what_it_writes).

# Variables by which a program loads other code, by how their names begin: not with a value that could do it
# (spak.commandline.environment), on the line or in `env`. The folders of PYTHONPATH are judged as run.
Decl loads_code(Begins) bound [/string].

loads_code("LD_").
loads_code("DYLD_").
loads_code("GCONV_PATH").
loads_code("GIT_").
loads_code("BASH_ENV").
loads_code("BASH_FUNC").
loads_code("ENV").
loads_code("PYTHONSTARTUP").
loads_code("PYTHONHOME").
loads_code("PYTHONUSERBASE").
loads_code("PYTHONBREAKPOINT").
loads_code("PYTHONINSPECT").
loads_code("PYTEST_PLUGINS").
loads_code("NODE_OPTIONS").
loads_code("NODE_PATH").
loads_code("PERL5").
loads_code("PERLLIB").
loads_code("RUBYOPT").
loads_code("RUBYLIB").
loads_code("JAVA_TOOL_OPTIONS").
loads_code("_JAVA_OPTIONS").
loads_code("JDK_JAVA_OPTIONS").
loads_code("CLASSPATH").
loads_code("LUA_").

forbidden(Action) :-
    command_does(Action, _, /sets_environment, Variable, _),
    loads_code(Begins),
    :string:starts_with(Variable, Begins).
forbidden(Action) :-
    command_does(Action, _, /sets_environment, Line, _),
    loads_code(Begins),
    :string:starts_with(Line, fn:string:concat("export ", Begins)).

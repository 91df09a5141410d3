# Files by the tools that open them: the workspace, and in it what is neither git's nor a secret.

Decl file_tool(Tool, How) bound [/name, /name].

file_tool(/read_file, /reads).
file_tool(/read_ast, /reads).
file_tool(/list_files, /reads).
file_tool(/write_file, /edits).
file_tool(/instantiate, /edits).
file_tool(/delete_file, /deletes).
file_tool(/cc, /writes).
file_tool(/nvcc, /writes).

# A tool that shows what it writes may change the files that say what is run; one that compiles may not.
permitted_place(/edits, /inside).
permitted_place(/edits, /control).
permitted_place(/deletes, /control).

permitted(Action) :-
    tool(Action, Tool),
    file_tool(Tool, How),
    uses_path(Action, How, _, _),
    !unpermitted_path(Action).

# Other tools by what their entries declare of each argument: every path, each by its own use.
Decl declares_use(Action, How) bound [/name, /name].

permitted(Action) :-
    declares_use(Action, How),
    uses_path(Action, How, _, _),
    !unpermitted_path(Action).

# What the run itself wrote down may be read back.
permitted(Action) :- tool(Action, /recall).

# What a guarded agent did in its own copy is judged by what changed, as that of any call is; and it asks its model by
# the guard's proxy, which takes secrets out, and its person. Only a task that names these tools has them.
permitted(Action) :- tool(Action, /contained).
permitted(Action) :- tool(Action, /model_request).
permitted(Action) :- tool(Action, /ask_person).
permitted(Action) :- tool(Action, /tunnel_closed).    # what is over is written down

# What a hook was answered is only written down: what the agent does by itself is judged before the answer.
permitted(Action) :- tool(Action, /witnessed).

# Code that is given as text: what it may do is what the sandbox lets it do.
Decl runs_code(Action) bound [/name].

permitted(Action) :-
    tool(Action, /python_repl),
    runs_code(Action).

# Files by the tools that open them: the workspace, and in it what is neither git's nor a secret.

Decl file_tool(Tool, How) bound [/name, /name].

file_tool(/read_file, /reads).
file_tool(/write_file, /edits).
file_tool(/delete_file, /deletes).

# A tool that shows what it writes may change the files that say what is run; a command line may not.
permitted_place(/edits, /inside).
permitted_place(/edits, /generated).
permitted_place(/edits, /control).

permitted(Action) :-
    tool(Action, Tool),
    file_tool(Tool, How),
    uses_path(Action, How, _, _),
    !unpermitted_path(Action).

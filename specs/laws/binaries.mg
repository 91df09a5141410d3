# A line starts only programs that an operator lists: allowed_binary("pytest"). Also those behind `bash -c`, timeout and
# xargs. It says what a line starts and no more: a program may start others. Code of python_repl is no line.

Decl allowed_binary(Program) bound [/string].

unlisted(Action) :-
    runs_program(Action, _, Program),
    !allowed_binary(Program).

forbidden(Action) :- unlisted(Action).

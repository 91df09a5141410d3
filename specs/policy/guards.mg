# Guards from what the run knows of its own work: diagnostics, checks, and who depends on what. The barrier
# before a commit always stands. The guards below it stand when the spec's POLICY says so: guard(/refactor).

Decl guard(Which) bound [/name].

# ---- The commit barrier: broken files are not committed, and unchecked ones only if a person signs for it.
# What a check found holds until a file changes; git's own folder is none of them.

broken("Build Broken") :- diagnostic(/error, _, _, _, _).
broken("Build Panicked") :- diagnostic(/panic, _, _, _, _).
broken("Check Failed") :- checks_ran(_, /fail).
broken("Check Timed Out") :- checks_ran(_, /timeout).

# A model's opinion may stop a commit and never carries one.
Decl opinion(Validator) bound [/string].

opinion("Judge").

checked() :-
    checks_ran(Validator, /success),
    !opinion(Validator).
checked() :-
    checks_ran(Validator, /metric_improved),
    !opinion(Validator).
block_commit(Reason) :- broken(Reason).
block_commit("No Check Ran") :- !checked().

# Where a run has sealed checks nothing of it leaves before they ran.
sealed_ran() :- checks_ran_on(_, /sealed, _).
awaits_sealed_checks() :-
    sealed_checks(_),
    !sealed_ran().
block_commit("Sealed Checks Did Not Run") :- awaits_sealed_checks().

# Green by its own tests: what the run changed of its checks, or of what runs by itself, made them pass.
by_own_tests() :- checks_ran_on(_, /beginning, /fail).
by_own_tests() :- checks_ran_on(_, /beginning, /timeout).

makes_commit(Action) :- tool(Action, /git_commit).

permitted(Action) :-
    tool(Action, /git_commit),
    uses_path(Action, /tracks, _, _),
    !unpermitted_path(Action).

forbidden(Action) :-
    makes_commit(Action),
    broken(_).
forbidden(Action) :-
    makes_commit(Action),
    !checked(),
    !approved(Action).
forbidden(Action) :-
    makes_commit(Action),
    by_own_tests(),
    !approved(Action).

# A push carries commits out, each of which passed the barrier; what was found since holds it back too. What would
# run by itself goes out by a signature over a call that names it.
forbidden(Action) :-
    tool(Action, /git_push),
    broken(_).
forbidden(Action) :-
    tool(Action, /git_push),
    by_own_tests(),
    !approved(Action).
forbidden(Action) :-
    tool(Action, /git_push),
    awaits_sealed_checks(),
    !approved(Action).
forbidden(Action) :-
    tool(Action, /git_push),
    argument(Action, "runs", _),
    !approved(Action).

# ---- The refactoring guard: a file on which untested files rest changes only if a person signs for it.

Decl dependency_link(Caller, Callee, Import)
    descr [external(), mode("-", "-", "-")]
    bound [/string, /string, /string].
Decl test_coverage(File)
    descr [external(), mode("+")]
    bound [/string].

modified(File) :-
    guard(/refactor),
    uses_path(_, /edits, _, File).

impacted(File) :-
    modified(Changed),
    dependency_link(File, Changed, _).
impacted(File) :-
    impacted(Between),
    dependency_link(File, Between, _).

uncovered(Dependent) :-
    impacted(Dependent),
    !test_coverage(Dependent).
unsafe_to_refactor(Target) :-
    modified(Target),
    uncovered(_).

# The same by symbols: what depends on the symbols of the file, by the model of the code. Laws may ask it for
# symbols and links too.

Decl symbol_graph(Symbol, Kind, Visibility, DefinedAt, Signature)
    descr [external(), mode("-", "-", "-", "+", "-"), mode("+", "-", "-", "-", "-")]
    bound [/string, /name, /name, /string, /string].
Decl symbol_link(Caller, Callee, How)
    descr [external(), mode("-", "+", "-"), mode("+", "-", "-")]
    bound [/string, /string, /name].
Decl symbol_impact(Symbol, Changed, Cover)
    descr [external(), mode("-", "+", "+")]
    bound [/string, /string, /name].

unsafe_cover(/untested).
unsafe_cover(/unresolved).
unsafe_cover(/unparsed).

touched(Symbol, File, Cover) :-
    guard(/symbols),
    uses_path(_, /edits, _, File),
    unsafe_cover(Cover),
    symbol_impact(Symbol, File, Cover).
needs_testing(Symbol) :- touched(Symbol, _, /untested).
unsafe_to_refactor(File) :- touched(_, File, _).

forbidden(Action) :-
    uses_path(Action, /edits, _, File),
    unsafe_to_refactor(File),
    !approved(Action).

# ---- Requests: a host that is not named is a violation whatever another rule permits, unless a person signs.

security_violation(Action, Host) :-
    asks_url(Action, _, Host, Port),
    !allowed_host(Host),
    !allowed_port(Host, Port).

forbidden(Action) :-
    security_violation(Action, _),
    !approved(Action).

# Evidence for whoever reviews: no rule that permits or forbids reads it. Random text has 4 bits a character
# and more; so has much that is harmless, so that entropy alone is never a reason.
Decl entropy(Text, Score)
    descr [external(), mode("+", "-")]
    bound [/string, /float64].

evidence(Action, Host, Score) :-
    guard(/evidence),
    security_violation(Action, Host),
    entropy(Host, Score),
    4.0 <= Score.

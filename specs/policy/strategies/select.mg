# Which strategy serves what a person asks for: exactly one, or the reasons why there is none. Seed 004, 3.1; ADR 0115.
# `spak ask` states the facts; `serves` is what the headers of specs/strategies say. Before it derives anything, all
# combinations of verbs, kinds of target and facts of the folder are tried: two strategies, or neither, is an error.

Decl user_intent(Id, Category, Verb, Target, Constraint) bound [/string, /name, /name, /string, /string].
Decl intent_voter(Id, Voter, Permille) bound [/string, /name, /number].
Decl target_kind(Target, Kind) bound [/string, /name].
Decl file_topology(Path, Hash, Language, Modified, IsTest) bound [/string, /string, /name, /number, /name].
Decl file_count(Count) bound [/number].
Decl serves(Strategy, Verb, Kind) bound [/name, /name, /name].
Decl strategy(Strategy) bound [/name].
Decl unmet(Reason) bound [/string].

# Each verb with its category, what it may do to files, and the least LEVEL of a spec that serves it.
Decl verb(Verb, Category, Effect, Level) bound [/name, /name, /name, /number].

verb(/explain, /query, /reads, 1).
verb(/find, /query, /reads, 1).
verb(/trace, /query, /reads, 1).
verb(/review, /query, /reads, 1).
verb(/explore, /query, /reads, 1).
verb(/compare, /query, /reads, 1).
verb(/status, /query, /reads, 1).
verb(/why, /query, /reads, 1).
verb(/fix, /mutation, /writes, 2).
verb(/refactor, /mutation, /writes, 2).
verb(/create, /mutation, /writes, 2).
verb(/generate_test, /mutation, /writes, 2).
verb(/rename, /mutation, /writes, 2).
verb(/move, /mutation, /writes, 2).
verb(/delete, /mutation, /writes, 2).
verb(/document, /mutation, /writes, 2).
verb(/optimize, /mutation, /writes, 2).
verb(/migrate, /mutation, /writes, 2).
verb(/scaffold, /mutation, /writes, 2).
verb(/run, /mutation, /writes, 2).
verb(/remember, /instruction, /remembers, 1).
verb(/forget, /instruction, /remembers, 1).
verb(/define_agent, /instruction, /remembers, 1).

# ---- What a strategy is for, as its header says. -----------------------------------------------------------

fits(Strategy) :-
    user_intent(_, _, Verb, Target, _),
    target_kind(Target, Kind),
    serves(Strategy, Verb, Kind).
fitting() :- fits(_).

# ---- A person's own words decide, not a guess. ---------------------------------------------------------------

certain() :-
    intent_voter(_, /typed, _).

# ---- The seed's three scenarios. -----------------------------------------------------------------------------

# A: fix a bug, with a file of tests: the target itself, or one of the folder.
tested() :- file_topology(_, _, _, _, /true).
strategy(/tdd_repair) :-
    certain(),
    fits(/tdd_repair),
    tested().
unmet("no file of tests: write a test that fails first") :-
    fits(/tdd_repair),
    !tested().

# B: explore a folder of more than 100 files.
strategy(/survey) :-
    certain(),
    fits(/survey),
    file_count(Count),
    Count > 100.
unmet("at most 100 files, which spak world map shows at once") :-
    fits(/survey),
    file_count(Count),
    Count <= 100.

# C: scaffold, in a folder with no file.
strategy(/project_init) :-
    certain(),
    fits(/project_init),
    file_count(0).
unmet("the folder has files: a project is begun in an empty one") :-
    fits(/project_init),
    file_count(Count),
    Count > 0.

# Seed 004, 2.1: what is fixed decides how. A database schema is migrated.
strategy(/migrate) :-
    certain(),
    fits(/migrate).
strategy(/migrate_django) :-
    certain(),
    fits(/migrate_django).

# The refactoring guard denies a change of what untested code depends on: its answers are pinned first.
strategy(/first_tests) :-
    certain(),
    fits(/first_tests).

# ---- Why there is none. ----------------------------------------------------------------------------------------

served(Verb) :- serves(_, Verb, _).
unmet("no strategy that ships serves this verb") :-
    user_intent(_, _, Verb, _, _),
    verb(Verb, _, _, _),
    !served(Verb).
unmet("this verb is not known") :- user_intent(_, _, /unknown, _, _).
unmet("the target is of another kind than the strategies of this verb take") :-
    user_intent(_, _, Verb, _, _),
    served(Verb),
    !fitting().
unmet("nobody typed this request") :- !certain().

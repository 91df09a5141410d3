# Mend what a test shows: read the log, find the cause, change the code, test again; after three tries ask a person.
# The moves of a spec whose POLICY says guard(/tdd). It routes each of its tasks BY next_action. Seed 004, 3.2.

Decl tdd_at(Action) bound [/name].
Decl tdd_moved() bound [].
Decl test_state(State) bound [/name].
Decl tdd_stuck() bound [].

# A run begins with its tests.
tdd_moved() :- last_action(_).
tdd_at(Action) :- last_action(Action).
tdd_at(/run_tests) :- !tdd_moved().

test_state(/passing) :- tdd_at(/run_tests), ended(_, /success).
test_state(/failing) :- tdd_at(/run_tests), ended(_, /fail).
test_state(/failing) :- tdd_at(/run_tests), ended(_, /timeout).
test_state(/log_read) :- tdd_at(/read_error_log), ended(_, /success).
test_state(/cause_found) :- tdd_at(/analyze_root_cause), ended(_, /success).
test_state(/patch_applied) :- tdd_at(/generate_patch), ended(_, /success).

next_action(/read_error_log) :- test_state(/failing), retry_count(N), N < 3.
next_action(/analyze_root_cause) :- test_state(/log_read).
next_action(/generate_patch) :- test_state(/cause_found).
next_action(/run_tests) :- test_state(/patch_applied).
next_action(/finish) :- test_state(/passing).

# Surrender: three tries were not enough, or another step than the tests failed.
tdd_stuck() :- tdd_at(Action), ended(_, /fail), Action != /run_tests.
tdd_stuck() :- tdd_at(Action), ended(_, /timeout), Action != /run_tests.
next_action(/escalate_to_user) :- test_state(/failing), retry_count(N), N >= 3.
next_action(/escalate_to_user) :- tdd_stuck().

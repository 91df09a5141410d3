"""How specs get better: suites, experiments over them, findings in ledgers, candidates, and their gate.

suites              cases with what counts as right, and sealed checks; below all that follows
stats               pure figures: intervals, exact tests, betting
experiments         suite x specs x n: cells, budgets, reports
analyze             findings in ledgers, each with the edit that mends it
propose             candidates by rules, from a model, by evolution
gate                what a candidate has to pass before a person sees it
campaigns           candidates of one spec through the gate, within a budget
host_ledger         the ledgers of experiments and campaigns
permitted           what a change of the law makes of recorded actions
abstract_actions    and of every act with up to two facts
spec_history        the versions of a spec as one file
"""

"""The outer loop: experiments over suites, findings in ledgers, candidates, and the gate that judges them.

stats          pure figures: intervals, exact tests, betting
experiments    suite x specs x n: cells, budgets, reports
"""

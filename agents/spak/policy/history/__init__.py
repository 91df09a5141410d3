"""What happened before, as a policy sees it: folds over the events of a run, kept as one small value.

`state` keeps the rows of folds (spak.datalog.folds) and reads them at a decision; `session` lets a policy
decide an event under them; `trace` runs a policy over a file of events, as `spak policy eval --events` and
`spak policy test` do. docs/history.md describes the language.
"""

"""Secrets: which files and texts are some, what a job does not see, and what no record holds.

`which` says it of a path and what lies there, by one list (`confidential.toml`); `contents` of a text,
`files` of a file on the disk; `values` takes the texts out of one. `mask` gives what to hide from a job.
`redact` takes values and known shapes out of whatever is recorded or shown; `secret` is a text that shows
itself to nobody. Who works in a workspace uses them through `spak.runner.secret_guard`. They give no rights
and start no job.
"""

"""What an action may do: facts about it, the decision with its reasons, approvals, and the law that decides.

Rules are written in the language of `spak.datalog`; command lines are read by `spak.commandline`.
"""

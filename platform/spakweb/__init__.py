"""The Django side of SPAK: teams, specs and their versions, the editor, what happened."""

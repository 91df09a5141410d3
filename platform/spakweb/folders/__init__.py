"""Folders of a source whose .spak files are specs of the team, kept the same in both directions."""

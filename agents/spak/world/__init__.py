"""The model of a code base: facts of files by content, links between symbols, answers."""

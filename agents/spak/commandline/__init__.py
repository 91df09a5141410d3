"""What a command line starts, without running it, and what the names of files say.

Takes the text of a line; gives its programs with their words, the paths that they name, and what the programs
in one table (readers.toml) read. It foresees no effects, and knows no policy.
"""

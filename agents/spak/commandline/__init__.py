"""What a command line would do, without running it.

Takes the text of a line and the Eyes on a workspace; gives a Reading: the deeds of its commands and the paths
that they use. What each program's words mean is data (tables/*.toml); it knows neither the policy that
decides about deeds nor its language.
"""

"""Sources: a team's git repositories, from which runs take their files and to which results go back."""

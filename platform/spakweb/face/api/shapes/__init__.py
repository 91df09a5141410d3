"""The documents of the API: what requests may have and what answers hold."""

"""What `spak tune` makes of a kernel in C and the name of a problem, without a spec by hand.

kernel    reads the kernel and its problem, and refuses a kernel that is not right before anything is written
spec      the spec that tunes it, as text, with the files that it works on
dropin    what the tuned kernel is handed over as: C file, header, build line, test and Python wrapper
against   the tuned kernel beside a library's call for the same work, in interleaved pairs

It begins no run: that is the command's part, by the ordinary way.
"""

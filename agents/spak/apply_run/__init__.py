"""What a run changed, brought into the folder that it was copied from.

    three_way    what becomes of one path: of the run's beginning, of the run's end, and of the folder now
    user_folder  paths below that folder, read and written without following a link
    journal      what was brought and what is under way, next to the run: all of it or nothing
    bring        the whole of it: `bring`, `undo` and `recover`

It decides nothing about what may leave a run: that is `spak.door`.
"""

"""Commits to single tables that arrive at the same time share their work, on the server's event loop.

Each table has a lane (`writer`): who comes while a commit to it is under way forms, with all others that come, the
next group. A group is computed in memory, each commit on the result of the one before (`chains`), its files are written
by a few threads (`file_threads`), and its pointer moves once, by a statement that groups of other tables share
(`swaps`). What is not ordinary goes the way that all other changes go (`catalog.services.pointer`); both meet at the
compare-and-swap in the database.
"""

"""Commits to single tables that arrive at the same time share their work, on the server's event loop.

Each table has a lane (`writer`): all commits that arrive while a group is in progress form the next group. A group is
computed in memory, each commit on the result of the one before (`chains`), its files are written by a few threads
(`file_threads`), and its pointer moves once, by a statement that groups of other tables share (`swaps`). Commits that
are not ordinary take the path of all other changes (`catalog.services.pointer`); the compare-and-swap in the database
decides between both.
"""

"""Real servers for tests, each a process on a free port in a directory of its own: `with start() as server`."""

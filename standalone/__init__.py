"""Runs all servers on one machine: for `lakewarden dev`, `lakewarden demo` and tests. Not for production."""

"""The servers that let one person run everything on one machine: for `lakewarden dev`, `demo` and tests."""

"""The command line, `lakewarden`: the root of composition."""

"""The work of `lakewarden pipeline`: micro-batches of the log become snapshots of tables."""

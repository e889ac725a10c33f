"""Batches that are received while Postgres does not answer: kept in a local file, and replayed into the log later."""

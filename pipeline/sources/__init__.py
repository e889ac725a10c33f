"""The durable log on Postgres as a source of Spark's, and what the pipeline notes there about its progress."""

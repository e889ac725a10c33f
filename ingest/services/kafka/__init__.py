"""Kafka as the place of contents: written before the log refers to them, deleted when they are flushed."""

"""`lakewarden ingest send`: lines of a file become events, batches and acknowledgements that survive a kill."""

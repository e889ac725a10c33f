"""The metadata engine: applies commits to Iceberg table and view metadata. No Django and no I/O."""

"""The metadata engine: Iceberg table and view documents in, new documents out; pure, without Django or I/O."""

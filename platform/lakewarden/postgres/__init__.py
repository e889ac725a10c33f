"""Sessions of the database: how they are opened, and what bounds every wait in them."""

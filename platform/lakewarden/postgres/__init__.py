"""Opens connections to PostgreSQL and limits every wait on them."""

"""Who is calling: turns an Authorization header into a verified principal."""

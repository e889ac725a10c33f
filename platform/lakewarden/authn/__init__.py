"""Authentication: verifies the Authorization header of a request."""

"""A development OpenID provider: one person can try everything with real tokens. Never for production."""

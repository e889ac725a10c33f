"""An OpenID provider for development, so everything can be tried with real tokens. Never for production."""

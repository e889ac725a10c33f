"""The OpenAPI document of the catalog API, made from its routes and wire types; served, and kept in docs/reference."""

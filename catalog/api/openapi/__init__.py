"""Generates the OpenAPI document of the catalog API from routes and wire types; served, and
stored in docs/reference.
"""

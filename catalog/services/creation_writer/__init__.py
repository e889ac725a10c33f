"""Creations on the event loop: those that arrive together share one statement (ADR 0026).

`create_table` and `create_namespace` handle ordinary requests. For all others (a chosen location, a staged creation, a
name that is taken, a quota that has to be counted, any error) they change nothing and return None; then `tables.create`
or `namespaces.create` handles the request.
"""

from catalog.services.creation_writer.new_namespaces import create_namespace
from catalog.services.creation_writer.new_tables import create_table

__all__ = ["create_namespace", "create_table"]

"""Creations on the event loop: those that arrive together are one statement (ADR 0026).

`create_table` and `create_namespace` carry out what is ordinary. Everything else they leave alone, and answer None: a
chosen location, a staged creation, a name that is taken, a quota that has to be counted, anything that has to be
explained. `tables.create` and `namespaces.create` know all of that.
"""

from catalog.services.creation_writer.new_namespaces import create_namespace
from catalog.services.creation_writer.new_tables import create_table

__all__ = ["create_namespace", "create_table"]

"""The ids under which callers know objects that the ledger names: it stores those of tables and views by their key."""

from collections.abc import Collection

from catalog.models import Tabular
from lakewarden.authz.actions import TABULAR_TYPES
from lakewarden.authz.interface import ObjectRef


def known(refs: Collection[ObjectRef]) -> dict[ObjectRef, ObjectRef]:
    """Each reference with its public id, by itself; without those whose object is gone."""
    keys = {ref.id for ref in refs if ref.type in TABULAR_TYPES}
    uuids = dict(Tabular.everything.filter(id__in=keys).values_list("id", "uuid")) if keys else {}
    public = {str(key): str(uuid) for key, uuid in uuids.items()}
    return {
        ref: ObjectRef(ref.type, ref.id, public.get(ref.id))
        for ref in refs
        if ref.type not in TABULAR_TYPES or ref.id in public
    }

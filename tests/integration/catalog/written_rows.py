"""All rows that a change may write, for comparing two ways to make it."""

import json
import re
from typing import Any

from django.db import connection

from catalog.documents import Document, inflated
from catalog.models.tabular import TabularDocument

TABLES = ("tabular", "namespace", "authz_grant", "audit_entry", "outbox_event", "idempotency_record", "authz_change")


VOLATILE = {"at", "created_at", "updated_at", "sequence", "key", "attempt", "last_at", "document"}


def rows() -> dict[str, list[dict[str, Any]]]:
    """All rows, in the order in which they were written."""
    with connection.cursor() as cursor:
        found = {}
        for name in TABLES:
            cursor.execute(f"select to_jsonb(t) from {name} t order by xmin::text::bigint, ctid")  # noqa: S608 our own names
            found[name] = [json.loads(value) for (value,) in cursor.fetchall()]
    for row in found["tabular"]:
        document = TabularDocument.objects.get(tabular_id=row["id"])
        plain = inflated(Document(bytes(document.content), document.crc, document.length)).decode()
        assert len(plain) == document.length
        row["document"] = re.sub(r'"last-updated-ms":\d+', "", plain) + f" of version {document.version}"
    return found


def new_rows(before: dict[str, list[dict[str, Any]]], *, within: str) -> str:
    """What has come since, without what is different for each object."""
    ids: dict[str, str] = {}
    lines = []
    for name, found in rows().items():
        for row in found:
            if row not in before[name]:
                plain = {column: value for column, value in row.items() if column not in VOLATILE}
                if not isinstance(row.get("id"), str):
                    plain.pop("id", None)
                lines.append(f"{name} {json.dumps(plain, sort_keys=True)} {row.get('document', '')}")
    text = "\n".join(lines).replace(within, "somewhere")
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", lambda each: ids.setdefault(each[0], f"id{len(ids)}"), text)

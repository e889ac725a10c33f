"""Makes random commits against a table document: mostly ones that make sense, some that must be refused."""

import random
from typing import Any

Document = dict[str, Any]

PRIMITIVES = ("boolean", "int", "long", "double", "date", "timestamp", "string", "uuid", "binary", "decimal(9, 2)")
NEWER = ("timestamp_ns", "variant", "unknown", "geometry")
TRANSFORMS = ("identity", "bucket[8]", "truncate[4]", "year", "month", "day", "hour", "void")


class CommitMaker:
    """Draws commits from `rng`; snapshot ids and sequence numbers continue those of the document."""

    def __init__(self, rng: random.Random, *, now_ms: int = 1_700_000_000_000) -> None:
        self.rng = rng
        self.now_ms = now_ms
        self.next_snapshot_id = 1

    def commit(self, document: Document) -> tuple[list[Document], list[Document]]:
        """Requirements that hold of `document`, and one to four updates."""
        state = _State(document)
        updates: list[Document] = []
        for _ in range(self.rng.randint(1, 4)):
            updates += self._update(state)
        return self._requirements(document), updates

    def _requirements(self, document: Document) -> list[Document]:
        main = document["refs"].get("main")
        known: list[Document] = [
            {"type": "assert-table-uuid", "uuid": document["table-uuid"].upper()},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main and main["snapshot-id"]},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": document["last-column-id"]},
            {"type": "assert-current-schema-id", "current-schema-id": document["current-schema-id"]},
            {
                "type": "assert-last-assigned-partition-id",
                "last-assigned-partition-id": document["last-partition-id"],
            },
            {"type": "assert-default-spec-id", "default-spec-id": document["default-spec-id"]},
            {"type": "assert-default-sort-order-id", "default-sort-order-id": document["default-sort-order-id"]},
        ]
        return [each for each in known if self.rng.random() < 0.3]

    def _update(self, state: "_State") -> list[Document]:
        makers = [
            *(self._append, self._append, self._append, self._set_ref, self._set_ref, self._remove_ref),
            *(self._remove_snapshots, self._evolve, self._evolve, self._spec, self._order, self._properties),
            *(self._statistics, self._table, self._forget, self._key),
        ]
        return self.rng.choice(makers)(state)

    def _append(self, state: "_State") -> list[Document]:
        snapshot_id, self.next_snapshot_id = self.next_snapshot_id, self.next_snapshot_id + 1
        # time may stand still or go back a little, as clocks of different machines do
        self.now_ms += self.rng.randint(-5, 1000)
        state.sequence += 1
        snapshot: Document = {
            "snapshot-id": snapshot_id,
            "timestamp-ms": self.now_ms,
            "manifest-list": f"s3://b/t/metadata/snap-{snapshot_id}.avro",
            "summary": {"operation": "append", "added-records": "3"},
            "schema-id": state.schema_id,
        }
        if state.version > 1:
            snapshot["sequence-number"] = state.sequence - (self.rng.random() < 0.05)
        if state.snapshot_ids:
            snapshot["parent-snapshot-id"] = state.snapshot_ids[-1]
        if state.version > 2:
            snapshot |= {"first-row-id": state.next_row_id, "added-rows": self.rng.randint(0, 9)}
            state.next_row_id += snapshot["added-rows"]
        state.snapshot_ids.append(snapshot_id)
        updates: list[Document] = [{"action": "add-snapshot", "snapshot": snapshot}]
        if self.rng.random() < 0.8:
            updates.append(self._ref(snapshot_id, "main"))
        return updates

    def _ref(self, snapshot_id: int, name: str) -> Document:
        update = {"action": "set-snapshot-ref", "ref-name": name, "snapshot-id": snapshot_id, "type": "branch"}
        if name != "main" and self.rng.random() < 0.5:
            update["type"] = "tag"
        if self.rng.random() < 0.3:
            update["max-ref-age-ms"] = self.rng.randint(1, 10**12)
        if self.rng.random() < 0.1:
            update["min-snapshots-to-keep"] = self.rng.randint(0, 5)
        return update

    def _set_ref(self, state: "_State") -> list[Document]:
        snapshot_id = self.rng.choice([*state.snapshot_ids[-6:], 999_999])
        return [self._ref(snapshot_id, self.rng.choice(["main", "main", "dev", "audit", "v1"]))]

    def _remove_ref(self, _state: "_State") -> list[Document]:
        return [{"action": "remove-snapshot-ref", "ref-name": self.rng.choice(["main", "dev", "audit", "v1"])}]

    def _remove_snapshots(self, state: "_State") -> list[Document]:
        some = self.rng.sample(state.snapshot_ids, min(len(state.snapshot_ids), self.rng.randint(0, 3)))
        return [{"action": "remove-snapshots", "snapshot-ids": [*some, 424_242]}]

    def _evolve(self, state: "_State") -> list[Document]:
        schema: Document = {"type": "struct", "schema-id": self.rng.randint(0, 3), "fields": list(state.fields)}
        if self.rng.random() < 0.7:
            state.last_field_id += 1
            kind = self.rng.choice(PRIMITIVES if self.rng.random() < 0.8 else NEWER)
            field = {"id": state.last_field_id, "name": f"c{state.last_field_id}", "required": False, "type": kind}
            schema["fields"].append(field)
        elif len(schema["fields"]) > 2:
            del schema["fields"][self.rng.randrange(1, len(schema["fields"]))]
        if self.rng.random() < 0.2:
            schema["identifier-field-ids"] = [schema["fields"][0]["id"]]
        state.fields = schema["fields"]
        updates: list[Document] = [{"action": "add-schema", "schema": schema}]
        if self.rng.random() < 0.7:
            updates.append({"action": "set-current-schema", "schema-id": self.rng.choice([-1, -1, -1, 0, 1, 7])})
        return updates

    def _spec(self, state: "_State") -> list[Document]:
        fields = []
        for field in self.rng.sample(state.fields, min(len(state.fields), self.rng.randint(0, 2))):
            state.last_partition_id += 1
            fields.append(
                {
                    "source-id": field["id"],
                    "field-id": state.last_partition_id,
                    "name": f"p{state.last_partition_id}",
                    "transform": self.rng.choice(TRANSFORMS),
                },
            )
        updates: list[Document] = [{"action": "add-spec", "spec": {"spec-id": 0, "fields": fields}}]
        if self.rng.random() < 0.7:
            updates.append({"action": "set-default-spec", "spec-id": self.rng.choice([-1, -1, -1, 0, 1])})
        return updates

    def _order(self, state: "_State") -> list[Document]:
        fields = [
            {
                "source-id": each["id"],
                "transform": self.rng.choice(TRANSFORMS[:3]),
                "direction": self.rng.choice(["asc", "desc"]),
                "null-order": "nulls-last",
            }
            for each in self.rng.sample(state.fields, min(len(state.fields), self.rng.randint(0, 2)))
        ]
        order = {"order-id": 1 if fields else 0, "fields": fields}
        updates: list[Document] = [{"action": "add-sort-order", "sort-order": order}]
        if self.rng.random() < 0.7:
            updates.append({"action": "set-default-sort-order", "sort-order-id": self.rng.choice([-1, -1, 0, 1])})
        return updates

    def _properties(self, _state: "_State") -> list[Document]:
        names = self.rng.sample(["a", "b", "c", "write.metadata.previous-versions-max"], 2)
        if self.rng.random() < 0.3:
            return [{"action": "remove-properties", "removals": names}]
        return [{"action": "set-properties", "updates": {each: str(self.rng.randint(1, 5)) for each in names}}]

    def _statistics(self, state: "_State") -> list[Document]:
        snapshot_id = self.rng.choice([*state.snapshot_ids[-4:], 77])
        kind = self.rng.choice(["statistics", "partition-statistics"])
        if self.rng.random() < 0.3:
            return [{"action": f"remove-{kind}", "snapshot-id": snapshot_id}]
        file: Document = {
            "snapshot-id": snapshot_id,
            "statistics-path": f"s3://b/t/{self.rng.randint(0, 99)}.puffin",
            "file-size-in-bytes": 9,
        }
        if kind == "statistics":
            blob = {
                "type": "apache-datasketches-theta-v1",
                "snapshot-id": snapshot_id,
                "sequence-number": 1,
                "fields": [1],
            }
            file |= {"file-footer-size-in-bytes": 3, "blob-metadata": [blob]}
        return [{"action": f"set-{kind}", kind: file}]

    def _table(self, state: "_State") -> list[Document]:
        if self.rng.random() < 0.3:
            return [{"action": "set-location", "location": f"s3://b/t{self.rng.randint(0, 2)}"}]
        version = self.rng.choice([state.version, min(3, state.version + 1), 1, 9])
        if state.version < version <= 3:
            state.version = version
            state.sequence = max(state.sequence, 0)
        return [{"action": "upgrade-format-version", "format-version": version}]

    def _forget(self, _state: "_State") -> list[Document]:
        ids = self.rng.sample(range(5), self.rng.randint(0, 2))
        if self.rng.random() < 0.5:
            return [{"action": "remove-schemas", "schema-ids": ids}]
        return [{"action": "remove-partition-specs", "spec-ids": ids}]

    def _key(self, _state: "_State") -> list[Document]:
        key_id = self.rng.choice(["k1", "k2"])
        if self.rng.random() < 0.4:
            return [{"action": "remove-encryption-key", "key-id": key_id}]
        key = {"key-id": key_id, "encrypted-key-metadata": "c2VjcmV0", "encrypted-by-id": "kms"}
        return [{"action": "add-encryption-key", "encryption-key": key}]


class _State:
    """What a client knows of the table while it prepares a commit."""

    def __init__(self, document: Document) -> None:
        self.version: int = document["format-version"]
        self.sequence: int = document.get("last-sequence-number", 0)
        self.next_row_id: int = document.get("next-row-id", 0)
        self.snapshot_ids = [each["snapshot-id"] for each in document["snapshots"]]
        self.schema_id: int = document["current-schema-id"]
        current = next(each for each in document["schemas"] if each["schema-id"] == self.schema_id)
        self.fields: list[Document] = current["fields"]
        self.last_field_id: int = document["last-column-id"]
        self.last_partition_id: int = document["last-partition-id"]


def create_request(rng: random.Random, format_version: int) -> Document:
    """The body of a createTable with a nested schema, and sometimes a spec and an order."""
    nested = {"type": "list", "element-id": 90, "element": "string", "element-required": False}
    struct = {"type": "struct", "fields": [{"id": 91, "name": "x", "required": True, "type": "int"}]}
    fields: list[Document] = [
        {"id": 10, "name": "id", "required": True, "type": "long"},
        {"id": 20, "name": "day", "required": False, "type": "date"},
        {"id": 30, "name": "tags", "required": False, "type": nested},
        {"id": 40, "name": "point", "required": True, "type": struct},
    ]
    request: Document = {
        "name": "t",
        "schema": {"type": "struct", "fields": fields},
        "properties": {"format-version": str(format_version)},
    }
    if rng.random() < 0.5:
        request["partition-spec"] = {"fields": [{"source-id": 20, "transform": "month", "name": "m"}]}
    if rng.random() < 0.5:
        field = {"source-id": 91, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
        request["write-order"] = {"order-id": 1, "fields": [field]}
    return request

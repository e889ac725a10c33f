"""Messages of clients, as the paper of the wire format writes them."""

from typing import Any


def event(sequence: Any = 1, *, table: Any = "users", **members: Any) -> dict[str, Any]:
    return {
        "sequence": sequence,
        "timestamp": 1705840000500,
        "operation": "INSERT",
        "table": table,
        "rowId": f"user-{sequence}",
        "after": {"id": f"user-{sequence}", "name": "John Doe"},
        **members,
    }


def batch(number: int, *events: dict[str, Any], **members: Any) -> dict[str, Any]:
    chosen = list(events) or [event(number)]
    return {
        "type": "cdc_batch",
        "timestamp": 1705840001000,
        "correlationId": f"req-{number}",
        "sourceDoId": "abc123",
        "events": chosen,
        "sequenceNumber": number,
        "firstEventSequence": 100,
        "lastEventSequence": 105,
        "sizeBytes": 1024,
        "isRetry": False,
        "retryCount": 0,
        **members,
    }


def connect(source: str = "abc123", **members: Any) -> dict[str, Any]:
    return {
        "type": "connect",
        "timestamp": 1705840000000,
        "sourceDoId": source,
        "sourceShardName": "users-shard-1",
        "protocolVersion": 1,
        "capabilities": {"binaryProtocol": False, "compression": False, "batching": True, "maxBatchSize": 1000},
        **members,
    }

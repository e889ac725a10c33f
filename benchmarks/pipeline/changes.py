"""The changes of a run: made from numbers alone, so that what must be in the tables can be made again afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass

OPERATIONS = ("INSERT", "UPDATE", "UPDATE", "UPDATE", "DELETE", "UPDATE", "INSERT", "UPDATE")
_MIX = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Changes:
    """`sources` send `total` events together, in turn; each changes `rows` rows of its own in each of `tables`.

    Sequences are the numbers of the events, so the last change of a row is the one with the highest sequence.
    """

    total: int
    sources: int
    tables: int
    rows: int
    namespace: str = "bench"

    def numbers(self, source: int) -> range:
        """The events of a source."""
        return range(source, self.total, self.sources)

    def table(self, number: int) -> int:
        return number // self.sources % self.tables

    def row(self, number: int) -> str:
        return f"s{number % self.sources}-r{_mixed(number) % self.rows}"

    def operation(self, number: int) -> str:
        return OPERATIONS[_mixed(number) >> 40 & 7]

    def encoded(self, number: int, *, timestamp_ms: int) -> bytes:
        """As the gateway takes it."""
        operation = self.operation(number)
        member = "before" if operation == "DELETE" else "after"
        return (
            f'{{"sequence":{number},"timestamp":{timestamp_ms},"operation":"{operation}","table":"{self.namespace}.t{self.table(number)}",'
            f'"rowId":"{self.row(number)}","{member}":{{"n":{number},"name":"John Doe","email":"john@example.com",'
            f'"city":"Utrecht","amount":{number % 1000}.25,"active":true}}}}'
        ).encode()

    def of_table(self, table: int) -> Iterator[int]:
        """The numbers of its events."""
        return (number for number in range(self.total) if self.table(number) == table)

    def replayed(self, table: int) -> dict[str, int]:
        """For each row that is there at the end, the number of its last change."""
        rows: dict[str, int] = {}
        for number in self.of_table(table):
            if self.operation(number) == "DELETE":
                rows.pop(self.row(number), None)
            else:
                rows[self.row(number)] = number
        return rows


def _mixed(number: int) -> int:
    value = (number + 1) * _MIX & _MASK
    return (value ^ value >> 29) * _MIX & _MASK

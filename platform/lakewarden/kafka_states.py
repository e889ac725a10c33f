"""How the Kafka of contents is, in few words that anybody may read; without Kafka's library."""

from enum import IntEnum


class KafkaState(IntEnum):
    """`words` name no broker and no user."""

    UP = 0
    SILENT = 1
    TLS = 2
    PASSWORD = 3
    RIGHTS = 4

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    KafkaState.UP: "up",
    KafkaState.SILENT: "Kafka takes nothing",
    KafkaState.TLS: "the TLS connection to Kafka failed",
    KafkaState.PASSWORD: "Kafka refused the user name or password",
    KafkaState.RIGHTS: "the user may not write to Kafka's topic",
}

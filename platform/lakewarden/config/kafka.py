"""Settings of connections to Kafka."""

import re
from typing import Self

from pydantic import Field, SecretStr, model_validator

from lakewarden.config.sections import Names, Section

_SECRET = re.compile(r"password|secret|\.pem$|oauthbearer\.config|sasl\.jaas")
_TELLING = 4
"""Characters: what is shorter would also be found in words that are no secret."""
TOPIC_NAME = r"^[A-Za-z0-9._-]{1,249}$"


class KafkaConfig(Section):
    bootstrap_servers: Names = Field(min_length=1, description="Brokers, `host:port`, separated by commas.")
    options: SecretStr = Field(
        SecretStr(""),
        description="Further options of librdkafka, `name=value` separated by semicolons, for example "
        "`security.protocol=SASL_SSL;sasl.mechanism=SCRAM-SHA-512;sasl.username=lake;sasl.password=…`.",
    )

    @property
    def librdkafka(self) -> dict[str, str]:
        """With the brokers."""
        pairs = (each.partition("=") for each in self.options.get_secret_value().split(";") if each.strip())
        return {"bootstrap.servers": ",".join(self.bootstrap_servers)} | {
            name.strip(): value for name, _, value in pairs
        }

    @property
    def secrets(self) -> list[str]:
        """Values of options that must be in no message, the longest first."""
        found = {value for name, value in self.librdkafka.items() if _SECRET.search(name) and len(value) >= _TELLING}
        return sorted(found, key=len, reverse=True)

    @property
    def names_after_secrets(self) -> frozenset[str]:
        """A semicolon ends a value: what follows one in a password is taken for a name."""
        names = list(self.librdkafka)
        first = next((number for number, name in enumerate(names) if _SECRET.search(name)), len(names))
        return frozenset(names[first + 1 :])

    @model_validator(mode="after")
    def _check(self) -> Self:
        for each in filter(str.strip, self.options.get_secret_value().split(";")):
            if "=" not in each:
                # the value may be a secret: only the position of the wrong part could be named
                raise ValueError("options must be name=value, separated by semicolons")
        return self


class KafkaLogConfig(KafkaConfig):
    topic: str = Field(
        "lakewarden-ingest",
        pattern=TOPIC_NAME,
        description="Topic of the contents. It is made if it is missing; nobody else may write or delete in it.",
    )
    partitions: int = Field(
        12, ge=1, le=10_000, description="Partitions of a topic that is made; a warehouse is in one of them."
    )
    replicas: int = Field(3, ge=1, le=100, description="Copies of each record in a topic that is made.")
    min_in_sync: int = Field(
        2, ge=1, le=100, description="Copies without which a topic that is made takes nothing (`min.insync.replicas`)."
    )
    timeout_s: float = Field(
        10, ge=1, le=120, description="Seconds that batches wait for the brokers; then they count as not stored."
    )
    kept_hours: float = Field(
        24,
        ge=0.25,
        le=8760,
        description="Hours for which contents stay in Kafka at least, also when they are in tables. Keep them for as "
        "long as the way back is to the newest copy of the database: one that is restored refers to them again.",
    )

    @model_validator(mode="after")
    def _check_copies(self) -> Self:
        if self.min_in_sync > self.replicas:
            raise ValueError(f"min_in_sync is {self.min_in_sync}, but there are only {self.replicas} replicas")
        return self

"""What all clients of Kafka have in common: librdkafka's own log is silent, and its errors are named."""

import logging
import re
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from lakewarden.config import KafkaConfig
from lakewarden.kafka_states import KafkaState
from lakewarden.kafka_tls import refused_certificate

SILENT: Final = logging.getLogger("librdkafka")
"""It logs each attempt to connect; what goes wrong is said once, by `error_cb`."""
SILENT.setLevel(logging.CRITICAL)

REFUSALS: Final = {
    KafkaError._AUTHENTICATION: "the broker refused the user name or password",  # noqa: SLF001 its public names
    KafkaError.SASL_AUTHENTICATION_FAILED: "the broker refused the user name or password",
    KafkaError._SSL: "the TLS connection failed",  # noqa: SLF001
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the user may not use the topic",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the user may not write idempotently (IDEMPOTENT_WRITE on the cluster)",
}
"""Errors that somebody has to correct: trying again does not help."""

DENIED: Final = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
"""Errors of rights."""

OF_THE_MESSAGE: Final = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD}
"""Errors of one message, which would be the same each time."""
_UNKNOWN: Final = re.compile(r'No such configuration property: "(.*)"', re.DOTALL)
_OF_SECURITY: Final = re.compile(r"(?:sasl|ssl|security)\.[a-z.]+")
_QUOTED: Final = re.compile(r'Invalid value ".*" for', re.DOTALL)
LATE: Final = {
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
}
"""Errors that do not say what is wrong."""
_STATES: Final = {
    KafkaError._AUTHENTICATION: KafkaState.PASSWORD,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED: KafkaState.PASSWORD,
    KafkaError._SSL: KafkaState.TLS,  # noqa: SLF001
    KafkaError.TOPIC_AUTHORIZATION_FAILED: KafkaState.RIGHTS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: KafkaState.RIGHTS,
}


class Trouble:
    """What was wrong with a client's connections lately; `note` is its `error_cb`. No secret is in what it tells."""

    def __init__(self, settings: KafkaConfig) -> None:
        self._secrets = settings.secrets
        self._no_names = settings.names_after_secrets
        self._options = settings.librdkafka
        self._certificate: str | None = None
        self.error: KafkaError | None = None
        self.state = KafkaState.SILENT
        """That of the last reason."""

    def said(self, error: KafkaError) -> str:
        """In the library's words: it quotes values that it does not understand."""
        text: str = error.str()
        for each in self._secrets:
            text = text.replace(each, "…")
        unknown = _UNKNOWN.search(text)
        if unknown is not None and unknown[1] in self._no_names and not _OF_SECURITY.fullmatch(unknown[1]):
            return "One of the options has a name that is unknown (a value ends at a semicolon)"
        return _QUOTED.sub("Invalid value for", text)

    def note(self, error: KafkaError) -> None:
        """Of a certificate, the library says the same whatever is wrong with it: the broker is asked once, for some
        seconds at most, if its name is resolved quickly.
        """
        if self.error is None or error.code() in REFUSALS:
            self.error = error
        if error.code() == KafkaError._SSL and self._certificate is None:  # noqa: SLF001
            self._certificate = refused_certificate(error.str(), self._options) or ""

    def forget(self) -> None:
        self.error = self._certificate = None
        self.state = KafkaState.SILENT

    def reason(self, error: KafkaError, *, patience_s: float, wanted: str = "take events") -> str:
        """Why it did not do what was wanted: its own words, or what was wrong with the connection meanwhile."""
        self.state = KafkaState.SILENT
        if error.code() in {KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT} and self.error is None:  # noqa: SLF001
            return (
                f"Kafka did not {wanted} within {patience_s:g} s, although it was reached: see the log of the "
                "brokers (disks, quotas, replicas in sync)"
            )
        shown = self.error if error.code() in LATE and self.error is not None else error
        self.state = _STATES.get(shown.code(), KafkaState.SILENT)
        if shown.code() == KafkaError._SSL and self._certificate:  # noqa: SLF001
            return f"{REFUSALS[shown.code()]}: {self._certificate}"
        return f"{REFUSALS.get(shown.code(), f'Kafka does not {wanted} now')}: {self.said(shown)}"

    def reason_of(self, error: KafkaException | TimeoutError, *, patience_s: float, wanted: str = "answer") -> str:
        """The same for what a client has raised."""
        named = error.args[0] if isinstance(error, KafkaException) else KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001
        return self.reason(named, patience_s=patience_s, wanted=wanted)

    @property
    def refusal(self) -> KafkaError | None:
        return self.error if self.error is not None and self.error.code() in REFUSALS else None

"""What clients of Kafka say of their trouble has no secret in it, although the library quotes what it was given."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lakewarden import kafka
from lakewarden.config import KafkaConfig
from lakewarden.kafka import Trouble
from lakewarden.kafka_states import KafkaState
from lakewarden.kafka_tls import refused_certificate
from lakewarden.kafka_topics import address
from tests.servers.certificates import Authority

SECRET = "s3cret-of-the-lake"
SASL = "security.protocol=SASL_SSL;sasl.mechanism=SCRAM-SHA-512;sasl.username=lake"


def settings(options: str) -> KafkaConfig:
    return KafkaConfig.model_validate({"bootstrap_servers": "127.0.0.1:9", "options": options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (f"security.protocol={SECRET}", 'Invalid value for configuration property "security.protocol"'),
        (f"{SASL};sasl.password=one;{SECRET}=two", "a value ends at a semicolon"),
        (f"{SASL};sasl.password=one;sasl.{SECRET}=two", "a value ends at a semicolon"),
        (f"made.up=1;sasl.password={SECRET}", 'No such configuration property: "made.up"'),
        (f"sasl.pasword={SECRET}", 'No such configuration property: "sasl.pasword"'),
        (f"security.protocol=SSL;ssl.key.pem={SECRET}", "ssl.key.pem failed"),
        (f"{SASL};sasl.username=;sasl.password={SECRET}", "must be set"),
    ],
)
def test_options_that_are_not_valid_are_named_without_their_values(options: str, words: str) -> None:
    chosen = settings(options)
    with pytest.raises(KafkaException) as caught:
        AdminClient({**chosen.librdkafka})
    reason = Trouble(chosen).reason_of(caught.value, patience_s=1)
    assert words in reason
    assert SECRET not in reason


@pytest.mark.parametrize("name", ["sasl.password", "ssl.key.password", "sasl.oauthbearer.client.secret"])
def test_secrets_that_a_broker_or_the_library_repeats_are_left_out(name: str) -> None:
    trouble = Trouble(settings(f"{name}={SECRET};client.id=gateway"))
    trouble.note(KafkaError(KafkaError._AUTHENTICATION, f"gateway: {SECRET} was not accepted"))
    late = KafkaError(KafkaError._TIMED_OUT)
    reason = trouble.reason(late, patience_s=1)
    assert reason == "the broker refused the user name or password: gateway: … was not accepted"


def test_a_broker_is_asked_once_what_is_wrong_with_its_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(said: str, _options: object) -> str:
        asked.append(said)
        return "the certificate of kafka:9093 is refused: certificate has expired"

    monkeypatch.setattr(kafka, "refused_certificate", answer)
    trouble = Trouble(settings("security.protocol=SSL"))
    late = KafkaError(KafkaError._TIMED_OUT)
    for _ in range(3):
        trouble.note(KafkaError(KafkaError._SSL, "ssl://kafka:9093/1: certificate verify failed: verify that ..."))
    expected = "the TLS connection failed: the certificate of kafka:9093 is refused: certificate has expired"
    assert trouble.reason(late, patience_s=1) == expected
    assert (len(asked), trouble.state) == (1, KafkaState.TLS)
    trouble.forget()
    assert "although it was reached" in trouble.reason(late, patience_s=1)
    assert trouble.state is KafkaState.SILENT


@pytest.mark.parametrize(
    "said",
    [
        "ssl://127.0.0.1:9/bootstrap: Disconnected while requesting ApiVersion",
        "certificate verify failed",
        "ssl://127.0.0.1:9/bootstrap: certificate verify failed",
    ],
)
def test_what_cannot_be_found_out_of_a_certificate_is_left_to_the_library(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.create_connection", refuse)
    assert refused_certificate(said, {}) is None
    assert refused_certificate(said, {"ssl.ca.location": "/missing.pem"}) is None


def test_letters_beside_the_certificates_are_as_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An error in the callback would end the thread that hears what became of batches."""
    reached: list[object] = []

    def refuse(where: object, **_: object) -> None:
        reached.append(where)
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.create_connection", refuse)
    pem = "# Főtanúsítvány\n" + Authority(tmp_path / "own").file.read_text()
    assert refused_certificate("ssl://kafka:9093/1: certificate verify failed", {"ssl.ca.pem": pem}) is None
    assert reached == [("kafka", 9093)]


@pytest.mark.parametrize(
    ("host", "expected"), [("kafka-1", "kafka-1:9093"), ("10.0.0.1", "10.0.0.1:9093"), ("::1", "[::1]:9093")]
)
def test_an_address_is_as_the_library_takes_it(host: str, expected: str) -> None:
    assert address(host, 9093) == expected


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (KafkaError._AUTHENTICATION, KafkaState.PASSWORD),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaState.RIGHTS),
        (KafkaError._TRANSPORT, KafkaState.SILENT),
    ],
)
def test_each_reason_has_a_state(code: int, state: KafkaState) -> None:
    trouble = Trouble(settings(""))
    trouble.reason(KafkaError(code), patience_s=1)
    assert trouble.state is state

"""What clients of Kafka say of their trouble has no secret in it, although the library quotes what it was given."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lakewarden.config import KafkaConfig
from lakewarden.kafka import Trouble

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

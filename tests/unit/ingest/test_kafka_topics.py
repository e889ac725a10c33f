"""The topic of the contents, found or made."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from ingest.services.kafka import topics
from lakewarden import kafka_topics
from lakewarden.config import KafkaLogConfig
from lakewarden.kafka import Trouble
from tests.unit.brokers import Brokers, failed

SETTINGS = KafkaLogConfig(bootstrap_servers="kafka.example.org:9092", timeout_s=1)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(topics, "AdminClient", made)
    monkeypatch.setattr(topics, "PAUSE_S", 0.0)
    return made


def find() -> topics.Found:
    return topics.find_or_make(SETTINGS, largest=2_000_000, trouble=Trouble(SETTINGS))


def test_a_topic_that_is_there_is_taken(brokers: Brokers) -> None:
    assert (find().topic.id, find().ends, brokers.made) == ("a-_b", {0: 7, 1: 7}, [])


@pytest.mark.parametrize("making", [None, failed(KafkaError.TOPIC_ALREADY_EXISTS)])
def test_one_that_is_missing_is_made_unless_another_server_was_faster(
    brokers: Brokers, making: Exception | None
) -> None:
    brokers.topic, brokers.making = failed(KafkaError.UNKNOWN_TOPIC_OR_PART), making
    assert find().ends == {0: 7, 1: 7}
    (made,) = brokers.made
    assert (made.num_partitions, made.replication_factor) == (12, 3)
    assert made.config["retention.ms"] == "-1"
    assert made.config["message.timestamp.type"] == "LogAppendTime"
    assert int(made.config["max.message.bytes"]) >= 2_000_000


@pytest.mark.parametrize(
    ("topic", "making", "code"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, None, KafkaError.TOPIC_AUTHORIZATION_FAILED),
        (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError.INVALID_REPLICATION_FACTOR,
            KafkaError.INVALID_REPLICATION_FACTOR,
        ),
    ],
)
def test_what_brokers_refuse_is_raised(brokers: Brokers, topic: int, making: int | None, code: int) -> None:
    brokers.topic, brokers.making = failed(topic), None if making is None else failed(making)
    with pytest.raises(KafkaException) as raised:
        find()
    assert raised.value.args[0].code() == code


@pytest.mark.parametrize(
    "code",
    [KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH, KafkaError.OFFSET_NOT_AVAILABLE],
)
def test_a_leader_that_has_just_changed_is_asked_again(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Brokers hear of a topic at different moments: one says this of what another has told."""
    monkeypatch.setattr(kafka_topics, "PAUSE_S", 0.0)
    brokers.settling = [failed(code), failed(KafkaError.NOT_LEADER_FOR_PARTITION)]
    assert find().ends == {0: 7, 1: 7}
    assert not brokers.settling


def test_silence_is_raised(brokers: Brokers) -> None:
    brokers.topic = TimeoutError()
    with pytest.raises(TimeoutError):
        find()

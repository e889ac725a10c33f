"""What doctor says of the Kafka of contents, by what brokers say of their topic."""

from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError, admin

from lakewarden import config
from lakewarden.doctor import ingest_contents
from lakewarden.doctor.findings import Finding
from tests.unit.brokers import KEEPING, Brokers, failed


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(admin, "AdminClient", made)
    monkeypatch.setattr(ingest_contents, "_TIMEOUT_S", 0.0)
    return made


def found(**settings: str) -> list[Finding]:
    given = {"CONTENTS": "kafka", "KAFKA__BOOTSTRAP_SERVERS": "kafka.example.org:9092", **settings}
    return list(
        ingest_contents.examine(config.read({f"LAKEWARDEN__INGEST__{name}": each for name, each in given.items()}))
    )


def test_a_topic_that_keeps_contents_is_well(brokers: Brokers) -> None:
    assert [(each.state, each.sentence) for each in found()] == [
        ("ok", "each partition of the topic 'lakewarden-ingest' answers, and keeps contents until they are in tables")
    ]
    assert not list(ingest_contents.examine(config.read({})))


def test_one_that_is_not_there_yet_is_well(brokers: Brokers) -> None:
    brokers.topic = failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
    (finding,) = found()
    assert (finding.state, finding.sentence[-25:]) == ("ok", "made with the first batch")
    brokers.away = {2, 3}
    (finding,) = found()
    assert (finding.state, finding.sentence[-36:]) == ("FAIL", "made with 3 copies: 1 brokers answer")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (failed(KafkaError.TOPIC_AUTHORIZATION_FAILED), "the user may not use the topic"),
        (TimeoutError(), "Kafka did not answer within"),
    ],
)
def test_brokers_that_refuse_or_are_silent_are_named(brokers: Brokers, error: Exception, words: str) -> None:
    brokers.topic = error
    (finding,) = found()
    assert finding.state == "FAIL"
    assert words in finding.sentence


def test_a_partition_whose_leader_does_not_answer_is_named_once(brokers: Brokers) -> None:
    brokers.leaders = {number: failed(KafkaError.REQUEST_TIMED_OUT) for number in (0, 1)}
    (finding,) = found()
    assert finding.state == "FAIL"
    assert finding.sentence.startswith("the leader of partition 0 of the topic 'lakewarden-ingest' does not answer: ")


@pytest.mark.parametrize(
    ("away", "state", "words"),
    [
        ({2}, "warn", "fewer copies in sync than it should: broker 2 (broker-2:9093) does not answer"),
        ({1, 3}, "FAIL", "has 1 copies in sync, and takes nothing below 2 (min.insync.replicas): broker 1"),
    ],
)
@pytest.mark.parametrize("are_settings_read", [True, False])
def test_brokers_that_are_away_are_named_although_the_others_do_not_know(
    brokers: Brokers, away: set[int], state: str, words: str, *, are_settings_read: bool
) -> None:
    """Without a quorum, those that are left say that all copies are in sync."""
    brokers.away = away
    if not are_settings_read:
        brokers.settings = failed(KafkaError._TIMED_OUT)
    first, *others = found()
    assert first.state == state
    assert words in first.sentence
    told = [] if are_settings_read or state == "FAIL" else ["look at the brokers and controllers"]
    assert [each.fix for each in others] == told


def test_copies_that_are_behind_are_named(brokers: Brokers) -> None:
    brokers.partitions, brokers.unknown = [(3, 2), (3, 2)], {3}
    (finding,) = found()
    assert (finding.state, finding.sentence[-16:]) == ("warn", "broker 3 is away")
    brokers.unknown = set()
    (finding,) = found()
    assert finding.sentence.endswith("broker 3 (broker-3:9093) is behind")


@pytest.mark.parametrize(
    ("partitions", "settings", "states", "words"),
    [
        ([(3, 3), (3, 1)], {}, ["FAIL"], "1 copies in sync, and takes nothing below 2"),
        ([(1, 1)], {"min.insync.replicas": "1"}, ["warn", "warn"], "1 of 3 copies"),
        ([(3, 3)], {"min.insync.replicas": "1"}, ["warn"], "may be on fewer brokers than 2"),
        ([(3, 3)], {"retention.ms": "604800000"}, ["warn"], "retention.ms=604800000: Kafka may delete contents"),
        ([(3, 3)], {"cleanup.policy": "compact"}, ["warn"], "cleanup.policy=compact"),
        ([(3, 3)], {"message.timestamp.type": "CreateTime"}, ["warn"], "depends on the clocks of servers"),
        ([(3, 3)], {"max.message.bytes": "1000"}, ["warn"], "takes 1000 bytes"),
    ],
)
def test_what_could_lose_or_refuse_contents_is_told(
    brokers: Brokers, partitions: list[tuple[int, int]], settings: Mapping[str, str], states: list[str], words: str
) -> None:
    brokers.partitions, brokers.settings = partitions, {**KEEPING, **settings}
    findings = found()
    assert [each.state for each in findings] == states
    assert words in findings[0].sentence
    assert all(each.fix for each in findings)


def test_settings_that_may_not_be_read_are_told(brokers: Brokers) -> None:
    brokers.settings = failed(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    (finding,) = found()
    assert (finding.state, finding.fix) == ("warn", "allow the user DESCRIBE_CONFIGS on the topic")

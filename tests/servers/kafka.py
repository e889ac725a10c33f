"""A real Kafka broker (KRaft, one node) as an outside program; its jars come from Maven Central once."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.spark.java import find_java
from standalone.ports import HOST, free_ports
from standalone.process import ManagedProcess
from tests.servers import maven

POM = Path(__file__).parents[2] / "tools" / "kafka" / "pom.xml"
_CLUSTER = "bGFrZXdhcmRlbi10ZXN0cw"
_JVM = ("-Xmx384m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PASSWORDS = 'user_broker="broker-secret" user_lake="lake-secret"'


class KafkaFailed(AssertionError):
    """It cannot be had, or did not start; the message holds what it said."""


@dataclass
class KafkaServer:
    """`plain` takes everybody, `sasl` only the user `lake` with the password `lake-secret`; both are `host:port`."""

    plain: str
    sasl: str
    process: ManagedProcess

    def stop(self) -> None:
        self.process.stop()

    def start(self) -> None:
        self.process.start()
        _await_started(self.process)


def jars() -> Path:
    return maven.jars(POM, name="kafka", error=KafkaFailed)


@contextmanager
def start(**settings: str) -> Iterator[KafkaServer]:
    """A broker with further settings (`message_max_bytes` is `message.max.bytes`), stopped at the end."""
    java, classes = find_java().executable, f"{jars()}/*"
    with tempfile.TemporaryDirectory(prefix="lw-kafka-") as directory:
        plain, sasl, controller = free_ports(3)
        properties = Path(directory, "server.properties")
        chosen = _settings(directory, plain, sasl, controller) | {
            name.replace("_", "."): value for name, value in settings.items()
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in chosen.items()))
        formatting: list[str | Path] = [
            java,
            *_JVM,
            "-cp",
            classes,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            _CLUSTER,
        ]
        done = subprocess.run(
            [*formatting, "-c", str(properties)], capture_output=True, text=True, check=False, timeout=120
        )
        if done.returncode:
            raise KafkaFailed(f"Kafka's storage was not formatted:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
        process = ManagedProcess(
            "kafka",
            [java, *_JVM, "-cp", classes, "kafka.Kafka", properties],
            log=Path(directory, "kafka.log"),
            directory=Path(directory),
            grace_s=20.0,
        )
        with process:
            _await_started(process)
            yield KafkaServer(f"{HOST}:{plain}", f"{HOST}:{sasl}", process)


def _settings(directory: str, plain: int, sasl: int, controller: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAIN://{HOST}:{plain},SASL://{HOST}:{sasl},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAIN://{HOST}:{plain},SASL://{HOST}:{sasl}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAIN",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
        f'required username="broker" password="broker-secret" {_PASSWORDS};',
        "log.dirs": f"{directory}/logs",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "num.partitions": "3",
        "auto.create.topics.enable": "false",
    }


def _await_started(process: ManagedProcess, *, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while "Kafka Server started" not in process.log_text():
        if process.exited or time.monotonic() > deadline:
            raise KafkaFailed(f"Kafka did not start:\n{process.log_tail(lines=30)}")
        time.sleep(0.1)

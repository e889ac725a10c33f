"""Three real Kafka brokers (KRaft, each also a controller) with TLS and passwords, which can be killed one by one."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lakewarden.kafka import SILENT
from pipeline.spark.java import find_java
from standalone.ports import HOST, free_ports
from standalone.process import ManagedProcess
from tests.servers import kafka
from tests.servers.certificates import Authority
from tests.servers.kafka import KafkaFailed

BROKERS: Final = (1, 2, 3)
USER: Final = "lake"
PASSWORD: Final = "pw-of-the-lake-4711"
_CLUSTER: Final = "bGFrZXdhcmRlbi10aHJlZQ"
_JVM: Final = ("-Xmx320m", "-Xms96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_START_S: Final = 120.0
_LISTENERS: Final = ("PLAIN", "TLS", "EXPIRED", "CONTROLLER")
# a broker that was killed counts as gone after 9 s by default
_SESSION_MS: Final = 3000


@dataclass
class KafkaCluster:
    """Lists of `host:port`: `tls` takes the user with the password, over TLS; `plain` takes everybody, for looks of
    tests; the certificates of `expired` have expired. `authority` is the file that clients of `tls` trust.
    """

    plain: str
    tls: str
    expired: str
    authority: Path
    processes: dict[int, ManagedProcess]

    def options(self, *, password: str = PASSWORD, authority: Path | None = None) -> str:
        """As the how-to writes them."""
        chosen = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": password,
            "ssl.ca.location": str(authority or self.authority),
        }
        return ";".join(f"{name}={value}" for name, value in chosen.items())

    def kill(self, *numbers: int) -> None:
        """SIGKILL, at the same moment."""
        for each in numbers:
            os.kill(self.processes[each].pid, signal.SIGKILL)
        for each in numbers:
            self.processes[each].wait(20)
            self.processes[each].stop()

    def start(self, *numbers: int) -> None:
        """Those that do not run; returns when all three are known, and each copy is in sync again."""
        for each in numbers:
            self.processes[each].start()
        self.await_whole()

    def await_whole(self) -> None:
        admin, deadline = AdminClient({"bootstrap.servers": self.plain}, logger=SILENT), time.monotonic() + _START_S
        while not self._is_whole(admin):
            for number, process in self.processes.items():
                if process.exited:
                    raise KafkaFailed(f"Broker {number} has ended:\n{process.log_tail(lines=30)}")
            if time.monotonic() > deadline:
                tails = [process.log_tail(lines=10) for process in self.processes.values()]
                raise KafkaFailed("The brokers did not become a cluster:\n" + "\n\n".join(tails))
            time.sleep(0.2)

    @staticmethod
    def _is_whole(admin: AdminClient) -> bool:
        with suppress(KafkaException):
            known = admin.list_topics(timeout=5)
            partitions = [each for topic in known.topics.values() for each in topic.partitions.values()]
            return len(known.brokers) == len(BROKERS) and all(
                len(each.isrs) == len(each.replicas) and each.leader in known.brokers for each in partitions
            )
        return False


@contextmanager
def start() -> Iterator[KafkaCluster]:
    """A topic that is made has three copies of each record, and takes nothing with fewer than two in sync."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lw-kafka-")))
        authority = Authority(directory / "authority")
        free = iter(free_ports(len(BROKERS) * len(_LISTENERS)))
        ports = {number: {name: next(free) for name in _LISTENERS} for number in BROKERS}
        processes = {number: _process(directory, number, ports, authority) for number in BROKERS}
        lists = {name: ",".join(f"{HOST}:{ports[number][name]}" for number in BROKERS) for name in _LISTENERS}
        for process in processes.values():
            stack.enter_context(process)
        cluster = KafkaCluster(lists["PLAIN"], lists["TLS"], lists["EXPIRED"], authority.file, processes)
        cluster.await_whole()
        yield cluster


def _process(directory: Path, number: int, ports: dict[int, dict[str, int]], authority: Authority) -> ManagedProcess:
    """With a formatted storage, and the user in it."""
    own = directory / str(number)
    own.mkdir()
    properties = own / "server.properties"
    chosen = _settings(own, number, ports, authority)
    properties.write_text("".join(f"{name}={value}\n" for name, value in chosen.items()))
    program: list[str | Path] = [find_java().executable, *_JVM, "-cp", f"{kafka.jars()}/*"]
    user = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
    formatting: list[str | Path] = [
        *program,
        "kafka.tools.StorageTool",
        "format",
        "-t",
        _CLUSTER,
        "-c",
        properties,
        "-S",
        user,
    ]
    done = subprocess.run(formatting, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise KafkaFailed(f"Kafka's storage was not formatted:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    command = [*program, "kafka.Kafka", properties]
    return ManagedProcess(f"kafka-{number}", command, log=own / "kafka.log", directory=own, grace_s=0.5)


def _settings(
    directory: Path, number: int, ports: dict[int, dict[str, int]], authority: Authority
) -> dict[str, object]:
    own = ports[number]
    listeners = [f"{name}://{HOST}:{port}" for name, port in own.items()]
    return {
        "process.roles": "broker,controller",
        "node.id": number,
        "controller.quorum.voters": ",".join(f"{each}@{HOST}:{ports[each]['CONTROLLER']}" for each in BROKERS),
        "listeners": ",".join(listeners),
        "advertised.listeners": ",".join(listeners[:-1]),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAIN",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,TLS:SASL_SSL,EXPIRED:SASL_SSL,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": authority.keystore(f"broker-{number}"),
        "listener.name.expired.ssl.keystore.location": authority.keystore(f"expired-{number}", is_expired=True),
        **{
            f"listener.name.{name}.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            )
            for name in ("tls", "expired")
        },
        "log.dirs": directory / "logs",
        "default.replication.factor": len(BROKERS),
        "min.insync.replicas": 2,
        "broker.session.timeout.ms": _SESSION_MS,
        "broker.heartbeat.interval.ms": _SESSION_MS // 6,
        "replica.lag.time.max.ms": _SESSION_MS,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "auto.create.topics.enable": "false",
        "num.partitions": 3,
    }

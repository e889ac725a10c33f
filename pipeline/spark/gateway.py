"""Starts the driver's JVM and connects py4j to it; `session` is the caller.

pyspark's own launcher asks for a module that a Java from a wheel lacks. We start the same class and do
the same handshake. The JVM reads a pipe whose other end is this process and exits when it closes, so both end together.
"""

import logging
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pipeline.spark.errors import GatewayFailed
from pipeline.spark.java import Java
from pipeline.spark.jvm import JvmOptions, submit_command, submit_environment

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 20
POLL_S = 0.02
_TAIL_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Handshake:
    """Where the JVM listens, and the secret that it asks for."""

    port: int
    secret: str

    @classmethod
    def parse(cls, content: bytes) -> "Handshake":
        """Reads Spark's connection file: port and length of the secret as big-endian int32, then the secret."""
        port, length = struct.unpack_from(">ii", content)
        return cls(port, content[8 : 8 + length].decode())


@contextmanager
def gateway(
    java: Java, *, jars: Sequence[Path], options: JvmOptions, local: bool, log: Path | None = None
) -> Iterator[Any]:
    """A py4j gateway to a fresh JVM, which is gone afterwards.

    What the JVM writes goes to the file `log`; without one it is kept only to explain a failed start.
    Raises `GatewayFailed`.
    """
    command = submit_command(java, options=options, jars=jars, arguments=["pyspark-shell"])
    with _log_file(log) as output:
        process, handshake = _launch(command, submit_environment(local=local), output)
        try:
            yield _connect(handshake)
        finally:
            _stop(process)


def _launch(
    command: list[str], environment: dict[str, str], output: IO[bytes]
) -> tuple[subprocess.Popen[bytes], Handshake]:
    with tempfile.TemporaryDirectory(prefix="lakewarden-spark-") as folder:
        connection_file = Path(folder) / "connection"
        environment["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(connection_file)
        process = _spawn(command, environment, output)
        try:
            return process, _wait_for(connection_file, process, output)
        except BaseException:
            _stop(process)
            raise


@contextmanager
def _log_file(log: Path | None) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() if log is None else log.open("w+b") as output:
        yield output


def _spawn(command: list[str], environment: dict[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            process_group=0,  # a Ctrl-C in the terminal is for us: we end the JVM in order
        )
    except OSError as error:
        raise GatewayFailed(f"Java could not be started: {command[0]}: {error.strerror}.") from error


def _wait_for(connection_file: Path, process: subprocess.Popen[bytes], output: IO[bytes]) -> Handshake:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if connection_file.is_file():
            return Handshake.parse(connection_file.read_bytes())
        if process.poll() is not None:
            raise GatewayFailed(f"Spark's JVM ended (code {process.returncode}): {_tail(output)}")
        time.sleep(POLL_S)
    raise GatewayFailed(f"Spark's JVM was not ready after {START_TIMEOUT_S} s: {_tail(output)}")


def _tail(output: IO[bytes]) -> str:
    output.flush()
    output.seek(0)
    said = output.read().decode(errors="replace").strip()
    return said[-_TAIL_CHARACTERS:] or "it said nothing."


def _connect(handshake: Handshake) -> Any:  # noqa: ANN401  py4j has no types
    """Lets pyspark connect to a JVM that is already there, by the two variables that it looks for."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415  slow to import, and not needed by the shell

    _silence_py4j()
    given = {"PYSPARK_GATEWAY_PORT": str(handshake.port), "PYSPARK_GATEWAY_SECRET": handshake.secret}
    os.environ.update(given)
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in given:
            del os.environ[name]


def _silence_py4j() -> None:
    """All that py4j logs reaches the caller as an exception; a Ctrl-C it logs with a traceback, as root."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4j_interrupt)


def _is_not_py4j_interrupt(record: logging.LogRecord) -> bool:
    return record.msg != "KeyboardInterrupt while sending command."


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()  # the JVM reads the end of its input and exits
    try:
        process.wait(timeout=STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

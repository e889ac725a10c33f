"""`python -m benchmarks.events`: see --help."""

import argparse
import sys

from benchmarks.events.scene import opened

_ABOUT = """
Changes of 20 objects (an audit entry and an event each, as every commit writes them) go to Kafka, to NATS JetStream and
to a webhook at once. First while two relays are killed again and again and both brokers are away for a while: every
event must arrive at all three, in order for each object. Then without faults: events per second, also of processor
time. Then how long changes take while the sinks are up, slow and away, in rounds that alternate. At last the size of
the log.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description=_ABOUT)
    parser.add_argument("--changes", type=int, default=10_000, help="of the storm, and of the measure of speed")
    parser.add_argument("--rounds", type=int, default=5, help="in which the states of the sinks alternate")
    options = parser.parse_args()
    with opened() as scene:
        scene.storm(options.changes)
        scene.speed(options.changes)
        scene.latency(options.rounds)
        scene.size()
    return 0


if __name__ == "__main__":
    sys.exit(main())

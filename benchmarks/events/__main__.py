"""`python -m benchmarks.events`: see --help."""

import argparse
import sys

from benchmarks.events.latency import latency
from benchmarks.events.scene import opened
from benchmarks.events.size import size

_ABOUT = """
Commits over REST to 20 tables go to Kafka, to NATS JetStream and to a webhook at once. First while two relays are
killed again and again and all three are away for a while: every event must arrive at all three, in order for each
table. Then without faults: events per second, also of processor time. Then how long commits take without a relay, and
while the sinks are up, slow and away, in blocks that alternate. At last the size of the log over days.
"""
_PARTS = ("storm", "speed", "latency", "size")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description=_ABOUT)
    parser.add_argument("parts", nargs="*", choices=[[], *_PARTS], help=f"of {', '.join(_PARTS)}; without, all")
    parser.add_argument("--commits", type=int, default=10_000, help="of the storm; changes of the measure of speed")
    parser.add_argument("--rounds", type=int, default=60, help="in which the states of the sinks alternate")
    parser.add_argument("--days", type=int, default=10, help="for which the log is watched")
    options = parser.parse_args()
    parts = options.parts or _PARTS
    is_whole = True
    with opened() as scene:
        if "storm" in parts:
            is_whole = scene.storm(options.commits)
        if "speed" in parts:
            scene.speed(options.commits)
        if "latency" in parts:
            latency(scene, options.rounds)
        if "size" in parts:
            scene.kill(len(scene.workers))
            size(days=options.days, changes=options.commits, retention_days=3)
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())

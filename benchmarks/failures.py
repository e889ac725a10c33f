"""What ends a measurement: said in one sentence by `python -m benchmarks`."""


class BenchmarkError(Exception):
    """The benchmark cannot go on; the message is for the person who started it."""


class NotServed(BenchmarkError):
    """This server does not offer what a scenario measures; the other scenarios go on."""

"""What the signer itself costs, without the route around it: to read a request of an engine, and to sign it.

`python -m benchmarks.signer` prints the least of many short runs, in µs: that changes little with the machine's load.
"""

from collections.abc import Callable
from timeit import repeat
from typing import Final

from botocore.credentials import Credentials

from lakewarden.storage.request_signing import SignRequest
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.request_signer import S3RequestSigner
from lakewarden.storage.s3.server_keys import ServerKeys

_REGION: Final = "us-east-1"
_FILE: Final = (
    "http://127.0.0.1:9000/lake/wh/0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000/data/"
    "00000-0-8b1f6a5e-3c3f-4a51-9a55-4f5f7d3c9a11-00001.parquet"
)
_FEW: Final = {"amz-sdk-request": ["attempt=1; max=4"], "user-agent": ["benchmarks"]}
_OF_JAVA: Final = {
    "amz-sdk-invocation-id": ["0d6d9a4c-8d15-4b3c-6f6e-0b2f1c2d3e4f"],
    "amz-sdk-request": ["attempt=1; max=4"],
    "User-Agent": ["aws-sdk-java/2.29.52 md/io#sync md/http#Apache ua/2.1 os/Linux#6.1 lang/java#17.0.13"],
}
_OF_A_READ: Final = {"Range": ["bytes=4-1048579"], "x-amz-checksum-mode": ["ENABLED"]}
_OF_A_WRITE: Final = {"Content-Length": ["1234"], "Content-Type": ["application/octet-stream"]}
_REQUESTS: Final = {
    "GET, few headers": SignRequest(_REGION, "GET", _FILE, _FEW),
    "PUT, few headers": SignRequest(_REGION, "PUT", _FILE, _FEW),
    "GET of Java's SDK": SignRequest(_REGION, "GET", _FILE, _OF_JAVA | _OF_A_READ),
    "PUT of Java's SDK": SignRequest(_REGION, "PUT", _FILE, _OF_JAVA | _OF_A_WRITE),
}
_RUNS, _CALLS = 1500, 100


def main() -> None:
    profile = S3Profile.model_validate(
        {"type": "s3", "bucket": "lake", "region": _REGION, "endpoint": "http://127.0.0.1:9000", "sts-enabled": False}
    )
    signer = S3RequestSigner(profile, ServerKeys(Credentials("AKIAIOSFODNN7EXAMPLE", "s" * 40), of="a benchmark"))
    for name, request in _REQUESTS.items():
        read = _least(lambda request=request: signer.read(request))  # type: ignore[misc]
        both = _least(lambda request=request: signer.sign(signer.read(request)))  # type: ignore[misc]
        print(f"{name:20} {read:5.1f} to read it, {both:5.1f} to read and sign it")


def _least(call: Callable[[], object]) -> float:
    return min(repeat(call, number=_CALLS, repeat=_RUNS)) / _CALLS * 1e6


if __name__ == "__main__":
    main()

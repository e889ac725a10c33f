import pytest

from lakewarden import errors
from pipeline.spark.errors import GatewayFailed
from pipeline.spark.failures import classify, in_one_sentence

ICEBERG = "org.apache.iceberg.exceptions"


@pytest.mark.parametrize(
    ("causes", "kind"),
    [
        ([(f"{ICEBERG}.NotAuthorizedException", "Not authorized: x")], errors.NotAuthorized),
        ([(f"{ICEBERG}.ForbiddenException", "no")], errors.Forbidden),
        ([(f"{ICEBERG}.NoSuchNamespaceException", "Namespace does not exist: a")], errors.NotFound),
        ([(f"{ICEBERG}.CommitFailedException", "Requirement failed: x")], errors.CommitFailed),
        ([(f"{ICEBERG}.ServiceUnavailableException", "later")], errors.Unavailable),
        (
            [(f"{ICEBERG}.RESTException", "Error occurred"), ("java.net.ConnectException", "refused")],
            errors.Unavailable,
        ),
        (
            [("org.apache.spark.SparkException", "Job aborted"), ("java.io.IOException", "No space left on device")],
            errors.Unavailable,
        ),
        ([("org.apache.spark.sql.AnalysisException", "[X] y\nat z")], errors.InternalError),
        ([], GatewayFailed),
    ],
)
def test_a_java_exception_becomes_ours(causes: list[tuple[str, str]], kind: type[errors.LakewardenError]) -> None:
    error = classify(causes)
    assert type(error) is kind
    assert "\n" not in error.message


def test_a_message_is_its_first_line_that_says_something() -> None:
    error = classify([(f"{ICEBERG}.ForbiddenException", "\n  Forbidden: no\n\tat java.base/x")])
    assert error.message == "Spark reports 403, forbidden: Forbidden: no"


def test_a_lost_connection_is_a_lost_jvm() -> None:
    with pytest.raises(GatewayFailed, match="JVM ended"), in_one_sentence():
        raise ConnectionResetError


def test_a_mistake_of_ours_is_not_hidden() -> None:
    with pytest.raises(KeyError), in_one_sentence():
        raise KeyError

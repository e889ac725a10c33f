import pytest

from lakewarden.errors import AlreadyExists, BadRequest, InvalidArgument
from tenants.services.validation_report import CheckName, CheckStatus, Report


def failing() -> None:
    raise InvalidArgument("too long")


def taken() -> None:
    raise AlreadyExists("taken")


def test_a_check_that_passes_returns_its_result() -> None:
    report = Report()
    assert report.run(CheckName.CLEANUP, lambda: 7) == 7
    report.skip("no need", CheckName.READ_WRITE)
    assert report.valid
    report.ensure_valid()
    assert [check.status for check in report.checks] == [CheckStatus.PASSED, CheckStatus.SKIPPED]


def test_the_first_failure_is_raised_and_tells_the_others() -> None:
    report = Report()
    report.run(CheckName.WAREHOUSE_NAME_VALID, failing)
    report.run(CheckName.LOCATION_EXCLUSIVE, taken)
    assert report.has_failed(CheckName.LOCATION_EXCLUSIVE)
    with pytest.raises(InvalidArgument) as raised:
        report.ensure_valid()
    assert raised.value.message == "too long; also location-exclusive: taken"


def test_a_defect_is_no_failed_check() -> None:
    with pytest.raises(ZeroDivisionError):
        Report().run(CheckName.CLEANUP, lambda: 1 // 0)


def test_a_single_failure_is_raised_as_it_is() -> None:
    report = Report()
    error = BadRequest("no")

    def check() -> None:
        raise error

    report.run(CheckName.CLEANUP, check)
    with pytest.raises(BadRequest) as raised:
        report.ensure_valid()
    assert raised.value is error

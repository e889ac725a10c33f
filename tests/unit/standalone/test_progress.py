import io
import re

import pytest

from standalone.progress import Progress


@pytest.mark.parametrize(
    ("error", "end"), [(None, r"0\.\d s"), (KeyboardInterrupt, "interrupted"), (ValueError, "failed")]
)
def test_step_is_one_line_with_its_outcome(error: type[BaseException] | None, end: str) -> None:
    stream = io.StringIO()

    def work() -> None:
        with Progress(stream).step("PostgreSQL"):
            assert stream.getvalue() == "  PostgreSQL ... "
            if error is not None:
                raise error

    if error is None:
        work()
    else:
        with pytest.raises(error):
            work()
    assert re.fullmatch(rf"  PostgreSQL \.\.\. {end}\n", stream.getvalue())

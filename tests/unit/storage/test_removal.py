"""The sums of what was found and removed."""

from lakewarden.storage.removal import Found, Removed, Tally

FILE, FOLDER = Found("t/a", 5, "x"), Found("t", 0, "y", is_folder=True)


def test_a_tally_counts_files_bytes_and_folders_apart() -> None:
    assert Tally.of([FILE, FILE, FOLDER]) == Tally(files=2, bytes=10, folders=1)
    assert Tally.of([]) == Tally()
    assert Tally(1, 2, 3) + Tally(10, 20, 30) == Tally(11, 22, 33)


def test_parts_are_joined_with_the_first_error() -> None:
    first, second = ValueError("first"), ValueError("second")
    whole = Removed.joined([Removed([FILE]), Removed([], [FOLDER], first), Removed([FOLDER], [], second)])
    assert (whole.gone, whole.missing, whole.error) == ([FILE, FOLDER], [FOLDER], first)

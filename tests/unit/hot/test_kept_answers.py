"""Kept answers: limited by bytes in total and for each caller; the least recently used is removed first."""

from lakewarden.hot.kept_answers import KeptAnswers


def kept(capacity: int = 100, percent: int = 50) -> KeptAnswers[str]:
    return KeptAnswers(capacity, percent=percent)


def test_what_was_kept_is_found_and_replaced() -> None:
    answers = kept()
    assert answers.find("a") is None
    answers.keep("a", "first", size=10, caller="anna")
    answers.keep("a", "second", size=20, caller="ben")
    assert answers.find("a") == "second"
    assert answers.held == 20


def test_nothing_larger_than_a_callers_share_is_kept_and_what_it_replaces_is_gone() -> None:
    answers = kept()
    answers.keep("a", "small", size=10, caller="anna")
    answers.keep("a", "large", size=51, caller="anna")
    assert answers.find("a") is None
    assert answers.held == 0


def test_a_caller_pushes_out_their_own_first() -> None:
    answers = kept()
    answers.keep("b", "of ben", size=10, caller="ben")
    for number in range(100):
        answers.keep(number, "of anna", size=10, caller="anna")
    assert answers.find("b") == "of ben"
    assert [number for number in range(100) if answers.find(number)] == [95, 96, 97, 98, 99]


def test_the_least_recently_used_goes_when_all_is_full() -> None:
    answers = kept(percent=100)
    for name in ("a", "b", "c"):
        answers.keep(name, name, size=30, caller=name)
    assert answers.find("a") == "a"
    answers.keep("d", "d", size=30, caller="d")
    assert [answers.find(name) for name in "abcd"] == ["a", None, "c", "d"]
    assert answers.held == 90

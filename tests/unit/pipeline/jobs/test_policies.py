"""What becomes of a table's changes."""

from pipeline.jobs.policies import Kind, Mode, mode, targets


def test_the_table_says_it_before_its_namespaces_and_the_settings_at_last() -> None:
    sources = [{"x": "y"}, {"cdc.mode": "Mirror"}, {"lakewarden.cdc.mode": "both"}]
    assert mode(sources, default=Mode.CHANGELOG) is Mode.MIRROR
    assert mode(sources[:1], default=Mode.BOTH) is Mode.BOTH


def test_what_is_not_a_mode_does_not_count() -> None:
    assert mode([{"lakewarden.cdc.mode": "sideways", "cdc.mode": "both"}], default=Mode.CHANGELOG) is Mode.BOTH


def test_both_has_a_change_log_and_a_mirror() -> None:
    assert targets(("ns", "t"), Mode.BOTH) == [(("ns", "t"), Kind.CHANGELOG), (("ns", "t_current"), Kind.MIRROR)]
    assert targets(("ns", "t"), Mode.MIRROR) == [(("ns", "t"), Kind.MIRROR)]

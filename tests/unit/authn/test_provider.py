import pytest

from lakewarden.authn.provider import OidcProvider


def test_provider_trusts_its_issuers_with_and_without_trailing_slash() -> None:
    provider = OidcProvider(id="oidc", issuer="https://a/", audiences=(), additional_issuers=("https://b",))

    assert [provider.trusts(issuer) for issuer in ("https://a", "https://a/", "https://b/", "https://c", "")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_provider_without_audiences_accepts_any() -> None:
    assert OidcProvider(id="oidc", issuer="https://a", audiences=()).accepts(("x",))
    assert OidcProvider(id="oidc", issuer="https://a", audiences=("y", "x")).accepts(("x", "z"))
    assert not OidcProvider(id="oidc", issuer="https://a", audiences=("y",)).accepts(())


@pytest.mark.parametrize(
    ("id_", "issuer", "subject_claims", "sentence"),
    [
        ("Oidc", "https://a", ("sub",), "provider id 'Oidc'"),
        ("a~b", "https://a", ("sub",), "provider id 'a~b'"),
        ("", "https://a", ("sub",), "provider id ''"),
        ("kubernetes", "https://a", ("sub",), "'kubernetes' is taken"),
        ("oidc", "id.example.org", ("sub",), "must be an http or https address"),
        ("oidc", "https://a", (), "at least one subject claim"),
    ],
)
def test_provider_with_impossible_setting_is_refused(
    id_: str, issuer: str, subject_claims: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        OidcProvider(id=id_, issuer=issuer, audiences=(), subject_claims=subject_claims)

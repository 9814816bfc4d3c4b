"""What a dataset can access outside of its own root."""

from __future__ import annotations

from pathlib import Path

import pytest
from lance_engine.errors import ExternalAccessError, UnsupportedFeatureError
from lance_engine.io.external_access import (
    ALLOW_EXTERNAL,
    external_access,
    is_below,
    same_store,
    with_external_access,
)

SECRET = {"aws_secret_access_key": "hunter2"}


@pytest.mark.parametrize(
    ("root", "place", "same"),
    [
        ("/data/t.lance", "/other/u.lance", True),
        ("/data/t.lance", "file:///other/u.lance", True),
        ("/data/t.lance", "local:///other", True),
        ("/data/t.lance", "http://host/x", False),
        ("s3://bucket/t.lance", "s3://bucket/u.lance", True),
        ("s3://bucket/t.lance", "s3a://bucket/u.lance", True),
        ("s3+ddb://bucket/t.lance?ddbTableName=x", "s3://bucket/u.lance", True),
        ("s3://bucket/t.lance", "s3://other/u.lance", False),
        ("s3://bucket/t.lance", "gs://bucket/u.lance", False),
        ("s3://bucket/t.lance", "/etc", False),
        ("s3://bucket/t.lance", "s3://bucket/x::file:///etc", False),
        ("s3://bucket/t.lance", "/x::file:///etc", False),
        ("s3://bucket/t.lance", "simplecache::s3://bucket/x", False),
        ("https://host/t.lance", "https://host@evil.com/u.lance", False),
        ("https://host/t.lance", "https://host:8080/u.lance", False),
        ("https://host/t.lance", "http://host/u.lance", False),
        ("https://host/t.lance", "https://host/u.lance", True),
        ("https://host/t.lance", "https://host\\@evil/u.lance", False),
        ("abfss://c@a.dfs/t.lance", "abfss://d@a.dfs/t.lance", False),
    ],
)
def test_what_is_the_same_store(root: str, place: str, same: bool) -> None:
    assert same_store(root, place) is same


@pytest.mark.parametrize(
    ("root", "place", "below"),
    [
        ("/data/t.lance", "/data/t.lance/blobs/x", True),
        ("/data/t.lance", "/data/t.lance2/x", False),
        ("/data/t.lance", "/data/t.lance/../x", False),
        ("/data/t.lance", "file:///data/t.lance/%2e%2e/x", False),
        ("s3://b/t", "s3://b/t/x", True),
        ("s3://b/t", "s3://b/tt/x", False),
        ("s3://b/t", "s3://b/t/../x", False),
        ("https://h/t", "https://h/t/%2e%2e/x", False),
        ("s3://b", "s3://b/t/x", True),
        ("s3://b", "s3://bc/t/x", False),
        ("s3://b/t", "s3://b/T/x", False),
        ("s3://b/t", "s3://b/t/%2E%2e/x", False),
        ("s3://b/t", "s3://b/t?x/y", False),
        ("s3://b/t", "s3://b/t#x/y", False),
        ("s3://b", "s3://b?x/y", False),
        ("s3://b/t", "s3+ddb://b/t/x?ddbTableName=y", True),
        ("s3+ddb://b/t?ddbTableName=y", "s3://b/t/x", True),
        ("s3://b/t", "s3://b/t/x\\..\\..\\y", False),
        ("https://h/t", "https://h/t?x/y", False),
        ("abfss://c@a.dfs/t", "abfss://c@evil.dfs/t/x", False),
    ],
)
def test_what_lies_below(root: str, place: str, below: bool) -> None:
    assert is_below(root, place) is below


def test_links_do_not_lead_below(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "out").symlink_to("/etc")
    assert not is_below(f"{tmp_path}/t", f"{tmp_path}/t/out/passwd")


def test_credentials_stay_with_their_store() -> None:
    options = SECRET | {ALLOW_EXTERNAL: "all"}
    access = external_access(options)
    assert access.options_for("s3://b/t", "s3://b/u", options) == options
    for place in ("s3://other/u", "https://host/u", "/u", "gs://b/u"):
        assert access.options_for("s3://b/t", place, options) == {ALLOW_EXTERNAL: "all"}
    named = SECRET | {ALLOW_EXTERNAL: {"s3://other/": {"key": "x"}, "s3://b/": {}}}
    access = external_access(named)
    assert access.options_for("s3://b/t", "s3://other/u", named)["key"] == "x"
    assert "aws_secret_access_key" not in access.options_for("s3://b/t", "s3://other/u", named)
    assert access.options_for("s3://b/t", "s3://b/u", named)["aws_secret_access_key"] == "hunter2"
    with pytest.raises(ExternalAccessError):
        access.options_for("s3://b/t", "s3://third/u", named)


@pytest.mark.parametrize(
    ("allowed", "base", "blob", "elsewhere"),
    [
        (None, True, False, False),
        ("same-store", True, False, False),
        ("none", False, False, False),
        ("all", True, True, True),
        (["s3://b/"], True, True, False),
        ("s3://b/x, s3://c/", False, False, True),
        ('["s3://c/"]', False, False, True),
    ],
)
def test_what_is_allowed(allowed: object, base: bool, blob: bool, elsewhere: bool) -> None:
    options = with_external_access(SECRET, allowed)  # type: ignore[arg-type]
    access = external_access(options)

    messages: list[str] = []

    def reaches(place: str, blob: bool = False) -> bool:
        try:
            access.options_for("s3://b/t", place, options, blob=blob)
        except ExternalAccessError as error:
            messages.append(str(error))
            return False
        return True

    assert reaches("s3://b/t/blobs/x", blob=True)
    assert reaches("s3://b/u") is base
    assert reaches("s3://b/u", blob=True) is blob
    assert reaches("s3://c/u") is elsewhere
    assert reaches("s3://c/u", blob=True) is elsewhere
    assert all("allow_external" in message and "hunter2" not in message for message in messages)


@pytest.mark.parametrize("allowed", ["everything", 7, ["bucket"], [7], "{", {"x": {}}])
def test_what_cannot_be_asked(allowed: object) -> None:
    with pytest.raises(ValueError, match="same-store"):
        with_external_access(None, allowed)  # type: ignore[arg-type]


def test_no_options_without_a_choice() -> None:
    assert with_external_access(None, None) is None
    assert with_external_access(SECRET, None) is SECRET
    assert not issubclass(ExternalAccessError, UnsupportedFeatureError)

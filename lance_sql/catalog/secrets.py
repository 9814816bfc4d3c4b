"""Secrets: credentials for storage locations, created by ``CREATE SECRET`` and used for datasets there."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from lance_engine.base import legible_line, nearest_name, without_secrets
from lance_engine.errors import UnsupportedFeatureError

#: Options of DuckDB's secrets for object stores -> the equivalent storage options.
_S3: Final = {
    "key_id": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "aws_region",
}
_AZURE: Final = {"account_name": "azure_storage_account_name"}

#: Kind of a secret -> its options, and the values of those that have no others.
_OPTIONS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "s3": {
        **dict.fromkeys([*_S3, "endpoint", "scope"], ()),
        "provider": ("config", "credential_chain"),
        "url_style": ("path", "vhost"),
        "use_ssl": ("true", "false", "t", "f", "1", "0"),
    },
    "azure": {
        **dict.fromkeys([*_AZURE, "connection_string", "scope"], ()),
        "provider": ("config", "credential_chain"),
    },
}

#: Kind of a secret -> URL prefixes that it applies to.
_PLACES: Final = {
    "s3": ("s3://", "s3a://", "s3n://", "s3+ddb://"),
    "r2": ("r2://",),
    "gcs": ("gs://", "gcs://"),
    "azure": ("az://", "azure://", "abfss://", "abfs://"),
}

#: Providers of secrets of the type LANCE; the last two take credentials from the environment.
_PROVIDERS: Final = ("config", "credential_chain", "env")

#: Options that are not credentials.
_HARMLESS: Final = frozenset(
    {"allow_http", "aws_endpoint", "aws_region", "aws_virtual_hosted_style_request", "endpoint", "region"}
)

#: Kinds of secrets that datasets can use.
KINDS: Final = frozenset({"s3", "azure", "lance"})


class Secret(NamedTuple):
    """Storage options for locations with one of the prefixes `scopes`."""

    name: str
    kind: str
    provider: str
    scopes: tuple[str, ...]
    options: Mapping[str, str]

    def shown(self) -> str:
        """All of it without credentials, as DuckDB shows its secrets."""
        options = {name: value if name in _HARMLESS else "redacted" for name, value in self.options.items()}
        facts = {
            "name": self.name,
            "type": self.kind,
            "provider": self.provider,
            "scope": ",".join(self.scopes),
        }
        return legible_line(
            without_secrets(";".join(f"{key}={value}" for key, value in {**facts, **options}.items()))
        )


def secret(name: str, kind: str, given: Mapping[str, str]) -> Secret:
    """A secret of the types ``s3``, ``azure`` and ``lance`` as storage options.

    UnsupportedFeatureError for an option or a value that would have no effect on datasets.
    """
    if kind == "lance":
        return _of_extension(name, given)
    known = _OPTIONS[kind]
    for option, value in given.items():
        if option not in known:
            near = nearest_name(option, known)
            raise UnsupportedFeatureError(
                f"Secrets of the type {kind} for datasets have no option {legible_line(option.upper())}",
                remedy=f"Did you mean {near.upper()}?"
                if near
                else f"The options are {', '.join(known).upper()}; others are storage_options of connect()",
            )
        if known[option] and value.lower() not in known[option]:
            raise UnsupportedFeatureError(
                f"Invalid value for the option {option.upper()} of a secret",
                remedy=f"The values are {', '.join(known[option])}",
            )
    scope = given.get("scope", "")
    scopes = (scope,) if scope else _PLACES[kind]
    options: dict[str, str] = {}
    if kind == "s3":
        options = {ours: given[theirs] for theirs, ours in _S3.items() if theirs in given}
        endpoint = given.get("endpoint", "")
        if endpoint:
            if "://" not in endpoint:
                secure = given.get("use_ssl", "true").lower() not in ("false", "0", "f")
                endpoint = f"{'https' if secure else 'http'}://{endpoint}"
            options["aws_endpoint"] = endpoint
            if endpoint.startswith("http://"):
                options["allow_http"] = "true"
        if given.get("url_style", "").lower() == "vhost":
            options["aws_virtual_hosted_style_request"] = "true"
    else:
        options = {ours: given[theirs] for theirs, ours in _AZURE.items() if theirs in given}
        for part in given.get("connection_string", "").split(";"):
            key, _, value = part.partition("=")
            if key == "AccountName":
                options["azure_storage_account_name"] = value
            elif key == "AccountKey":
                options["azure_storage_account_key"] = value
    provider = given.get("provider", "config").lower()
    if provider == "config" and not options:
        raise UnsupportedFeatureError(
            f"The secret {name} has no credentials for datasets", remedy="Write KEY_ID and SECRET"
        )
    return Secret(name, kind, provider, scopes, options)


def _of_extension(name: str, given: Mapping[str, str]) -> Secret:
    """A secret of the type of DuckDB's Lance extension, whose options are storage options."""
    options = {key: value for key, value in given.items() if key not in ("scope", "provider")}
    provider = given.get("provider", "config").lower()
    if provider not in _PROVIDERS:
        raise UnsupportedFeatureError(
            "Unknown provider of a secret", remedy=f"The values are {', '.join(_PROVIDERS)}"
        )
    if provider == "config" and not options:
        raise UnsupportedFeatureError(
            f"The secret {name} has no options", remedy="Write ACCESS_KEY_ID and SECRET_ACCESS_KEY"
        )
    scope = given.get("scope", "")
    scopes = (scope,) if scope else tuple(itertools.chain(*_PLACES.values()))
    return Secret(name, "lance", provider, scopes, options)


def matching(secrets: Iterable[Secret], location: str) -> Mapping[str, Any]:
    """The options of the secret with the longest scope that is a prefix of `location`."""
    lowered = location.lower()
    candidates = [
        (len(scope), one.options)
        for one in secrets
        for scope in one.scopes
        if lowered.startswith(scope.lower())
    ]
    return max(candidates, key=lambda pair: pair[0])[1] if candidates else {}

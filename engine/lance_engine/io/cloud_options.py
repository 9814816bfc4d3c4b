"""Converts storage options to the configuration of obstore: credentials, location, and time-outs."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.io.storage_options import KNOWN, fsspec_options, is_true, option
from lance_engine.spelling import nearest

# fsspec option name -> obstore option name.
_S3: Final = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "endpoint_url": "endpoint",
    "anon": "skip_signature",
    "requester_pays": "request_payer",
    "ServerSideEncryption": "server_side_encryption",
    "SSEKMSKeyId": "sse_kms_key_id",
    "BucketKeyEnabled": "sse_bucket_key_enabled",
    "region_name": "region",
}
_AZURE: Final = {"anon": "skip_signature", "sas_token": "sas_key"}
# Other obstore options, which may also have the prefix of the cloud.
_MORE: Final = {
    "s3": frozenset(
        {
            *("checksum_algorithm", "container_credentials_relative_uri", "container_credentials_full_uri"),
            *("container_authorization_token_file", "imdsv1_fallback", "metadata_endpoint", "request_payer"),
            *("role_arn", "role_session_name", "s3_express", "sse_customer_key_base64", "sts_endpoint"),
            *(
                "web_identity_token_file",
                "server_side_encryption",
                "sse_kms_key_id",
                "sse_bucket_key_enabled",
            ),
        }
    ),
    "gs": frozenset({"bearer_token"}),
    "http": frozenset(),
    "az": frozenset(
        {
            *("account_name", "account_key", "client_id", "client_secret", "tenant_id", "authority_host"),
            *("token", "use_emulator", "use_fabric_endpoint", "endpoint", "msi_endpoint", "object_id"),
            *("msi_resource_id", "federated_token_file", "use_azure_cli", "encryption_key"),
        }
    ),
}
_PREFIXES: Final = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_storage_", "azure_"), "http": ()}
# fsspec options with objects or settings of another client as values: that client is then used.
_ONLY_FSSPEC: Final = frozenset({"session", "credential", "config_kwargs", "client_kwargs", "use_ssl"})
_CLIENT: Final = ("user_agent", "proxy_url", "proxy_ca_certificate", "proxy_excludes", "root_certificate")
#: How alike an unknown option is to the one that was meant: `aws_secret_key` may be of another client.
_NEAR: Final = 0.82
_CLOUDS: Final = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "az"),
    **dict.fromkeys(("http", "https"), "http"),
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long a request may take, in seconds."""

    #: connection time-out
    connect: float = 2.0
    #: time-out of a single attempt
    request: float = 30.0
    #: no further attempt starts after this time
    retry: float = 20.0


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """A bucket, container or server, and its configuration. Equal configurations share a client."""

    cloud: str
    #: of a server its address
    bucket: str
    #: (name, value) with obstore's names, sorted
    config: tuple[tuple[str, str | bool], ...]
    client: tuple[tuple[str, str | bool], ...]
    waiting: Waiting
    #: profile in the configuration files of the cloud's tools
    profile: str | None = None

    def __repr__(self) -> str:
        # Values are secrets.
        return f"CloudConfig({self.cloud!r}, {self.bucket!r}, {[name for name, _ in self.config]})"


def cloud_of(scheme: str) -> str | None:
    """The cloud of a URI with this scheme, None for other storage."""
    return _CLOUDS.get(scheme)


def cloud_config(scheme: str, bucket: str, options: Mapping[str, Any]) -> CloudConfig | None:
    """The configuration for a bucket, None if the options require the fsspec client."""
    cloud = _CLOUDS[scheme]
    _refuse_misspelt(options, cloud)
    given = fsspec_options(scheme, options)
    insecure = [option(given, "allow_invalid_certificates")]
    match cloud:
        case "s3":
            config = _s3_config(given, bucket, insecure)
        case "gs":
            config = _google_config(given)
        case "az":
            config = _azure_config(given)
        case _:
            config = {}
    if config is None or any(name in given for name in _ONLY_FSSPEC):
        return None
    for name, value in given.items():
        plain = _without_prefix(name.lower(), cloud)
        if plain in _MORE[cloud] and value is not None:
            config.setdefault(plain, value)
    for name in _ADDRESSES & config.keys():
        check_address(name, str(config[name]))
    client = {name: value for name in _CLIENT if (value := option(given, name)) is not None}
    if any(map(is_true, insecure)):
        client["allow_invalid_certificates"] = True
    return CloudConfig(
        cloud, bucket, _sorted(config), _sorted(client), waiting(options), _text(given.get("profile"))
    )


def _refuse_misspelt(options: Mapping[str, Any], cloud: str) -> None:
    """UnsupportedFeatureError for an option that is nearly one that exists; others are of other clients."""
    common = {*KNOWN, *_CLIENT}
    known = {*common, *_MORE[cloud], *_ONLY_FSSPEC}
    for name in options:
        plain = _without_prefix(name.lower(), cloud)
        if not known.isdisjoint((name.lower(), plain)):
            continue
        near = nearest(name.lower(), common, _NEAR) or nearest(plain, common, _NEAR)
        if near is not None:
            raise UnsupportedFeatureError(
                f"Unknown storage option {name!r}", remedy=f"Did you mean {near!r}?"
            )


def waiting(options: Mapping[str, Any]) -> Waiting:
    """The time-outs among storage options."""
    standard = Waiting()
    return Waiting(
        _seconds(options, standard.connect, "connect_timeout"),
        _seconds(options, standard.request, "request_timeout", "timeout"),
        _seconds(options, standard.retry, "retry_timeout", "client_retry_timeout"),
    )


def _s3_config(given: dict[str, Any], bucket: str, insecure: list[Any]) -> dict[str, Any] | None:
    client = dict(given.pop("client_kwargs", None) or {})
    settings = dict(given.pop("config_kwargs", None) or {})
    addressing = dict(settings.pop("s3", None) or {})
    style = addressing.pop("addressing_style", None)
    if "verify" in client:
        insecure.append(client.pop("verify") is False)
    merged = {**given, **client, **(given.pop("s3_additional_kwargs", None) or {})}
    config = {_S3[name]: merged.pop(name) for name in _S3 if merged.get(name) is not None}
    if settings or addressing or any(name in client and name not in _S3 for name in client):
        return None
    given.pop("s3_additional_kwargs", None)
    config.setdefault("endpoint", _first_variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    if style == "virtual":
        config["virtual_hosted_style_request"] = True
        if config["endpoint"]:
            config["endpoint"] = _with_host_of(bucket, str(config["endpoint"]))
    return {name: value for name, value in config.items() if value is not None}


def _google_config(given: dict[str, Any]) -> dict[str, Any] | None:
    config: dict[str, Any] = {}
    match given.get("token"):
        case None | "google_default" | "cloud":
            pass
        case "anon":
            config["skip_signature"] = True
        case dict() as key:
            config["service_account_key"] = json.dumps(key)
        case str() as path if path not in ("cache", "browser"):
            config["service_account"] = os.path.expanduser(path)
        case _:
            return None
    endpoint = given.get("endpoint_url") or os.environ.get("STORAGE_EMULATOR_HOST")
    if endpoint:
        config["base_url"] = str(endpoint).rstrip("/")
    return config


def _azure_config(given: dict[str, Any]) -> dict[str, Any] | None:
    config: dict[str, Any] = {}
    connection = given.get("connection_string")
    if connection is None and not any(name in given for name in ("account_name", "account_key", "sas_token")):
        connection = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    if connection:
        parts = dict(part.split("=", 1) for part in str(connection).split(";") if "=" in part)
        protocol = parts.get("DefaultEndpointsProtocol", "https")
        suffix, account = parts.get("EndpointSuffix"), parts.get("AccountName")
        endpoint = parts.get("BlobEndpoint") or (f"{protocol}://{account}.blob.{suffix}" if suffix else None)
        config = {
            "account_name": account,
            "account_key": parts.get("AccountKey"),
            "sas_key": parts.get("SharedAccessSignature"),
            "endpoint": endpoint,
        }
    config |= {other: given[name] for name, other in _AZURE.items() if given.get(name) is not None}
    if isinstance(config.get("sas_key"), str):
        config["sas_key"] = config["sas_key"].lstrip("?")
    return {name: value for name, value in config.items() if value is not None}


def check_address(name: str, address: str) -> None:
    """UnsupportedFeatureError, which does not quote the address, unless it is one of a server alone."""
    match = _ADDRESS.match(address)
    try:
        valid = match is not None and urlsplit(address).hostname is not None
    except ValueError:
        valid = False
    if not valid:
        raise UnsupportedFeatureError(
            f"The storage option '{name}' is not the address of a server",
            remedy="Write it as https://host or http://host:port; credentials are options of their own",
        )


def _with_host_of(bucket: str, endpoint: str) -> str:
    """The address of a bucket that is part of the host name."""
    parts = urlsplit(endpoint)
    if parts.netloc.startswith(f"{bucket}."):
        return endpoint
    return urlunsplit(parts._replace(netloc=f"{bucket}.{parts.netloc}"))


def _first_variable(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


def _without_prefix(name: str, cloud: str) -> str:
    return next((name.removeprefix(start) for start in _PREFIXES[cloud] if name.startswith(start)), name)


def _sorted(values: Mapping[str, Any]) -> tuple[tuple[str, str | bool], ...]:
    return tuple(
        sorted((name, value if isinstance(value, bool) else str(value)) for name, value in values.items())
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


#: Options with the address of a server.
_ADDRESSES: Final = frozenset({"endpoint", "base_url", "metadata_endpoint", "sts_endpoint", "msi_endpoint"})
#: Characters of others end a panic in obstore. A user and a password would be quoted in its errors.
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+(?:/[!-~]*)?\Z")

_DURATION: Final = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(ms|msec|s|secs?|seconds?|m|min|minutes?|h|hours?)?\s*\Z"
)
_UNITS: Final = {"ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0}


def _seconds(options: Mapping[str, Any], standard: float, *names: str) -> float:
    value = option(options, *names)
    if value is None:
        return standard
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    match = _DURATION.match(str(value))
    if match is None or not float(match[1]):
        raise UnsupportedFeatureError(
            f"Invalid duration for the storage option '{names[0]}'",
            remedy="Write it as 30, 30s, 500ms or 5m",
        )
    unit = match[2] or "s"
    unit = {"msec": "ms", "minute": "m", "minutes": "m", "hour": "h", "hours": "h"}.get(unit, unit)
    return float(match[1]) * _UNITS.get(unit, 1.0)

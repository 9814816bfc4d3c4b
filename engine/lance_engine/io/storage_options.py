"""Storage options in the spellings in use: those of the fsspec file systems, and those of object stores.

The official implementation spells options as the configuration of the store does (``aws_access_key_id``, also
without ``aws_`` and in capitals), fsspec has its own names (``key``). Both are understood everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lance_engine.errors import UnsupportedFeatureError

#: Every request in flight has a thread.
MOST_IN_FLIGHT: Final = 1024
# The name of an option in fsspec -> its other names.
_S3: Final = {
    "key": ("aws_access_key_id", "access_key_id"),
    "secret": ("aws_secret_access_key", "secret_access_key"),
    "token": ("aws_session_token", "aws_token", "session_token"),
    "endpoint_url": ("aws_endpoint", "aws_endpoint_url", "endpoint"),
    "anon": ("aws_skip_signature", "skip_signature"),
    "profile": ("aws_profile",),
}
#: All spellings of the address of a store.
ENDPOINTS: Final = (
    *("endpoint_url", *_S3["endpoint_url"], "google_endpoint", "google_base_url"),
    *("azure_endpoint", "azure_storage_endpoint", "connection_string", "host"),
)
_REGION: Final = ("aws_region", "aws_default_region", "default_region", "region", "region_name")
_VIRTUAL_HOSTS: Final = ("aws_virtual_hosted_style_request", "virtual_hosted_style_request")
_ENCRYPTION: Final = {
    "aws_server_side_encryption": "ServerSideEncryption",
    "aws_sse_kms_key_id": "SSEKMSKeyId",
    "aws_sse_bucket_key_enabled": "BucketKeyEnabled",
}
_GOOGLE: Final = {
    "token": (
        "google_service_account",
        "service_account",
        "google_service_account_path",
        "service_account_path",
        "google_application_credentials",
        "application_credentials",
        "google_service_account_key",
        "service_account_key",
    ),
    "endpoint_url": ("google_endpoint", "google_base_url", "endpoint"),
    "anon": ("google_skip_signature", "skip_signature"),
}
_AZURE: Final = {
    "account_name": ("azure_storage_account_name",),
    "account_key": (
        "azure_storage_account_key",
        "azure_storage_access_key",
        "azure_storage_master_key",
        "access_key",
        "master_key",
    ),
    "client_id": ("azure_storage_client_id", "azure_client_id"),
    "client_secret": ("azure_storage_client_secret", "azure_client_secret"),
    "tenant_id": (
        "azure_storage_tenant_id",
        "azure_storage_authority_id",
        "azure_tenant_id",
        "azure_authority_id",
        "authority_id",
    ),
    "sas_token": ("azure_storage_sas_token", "azure_storage_sas_key", "sas_key"),
    "anon": ("azure_skip_signature", "skip_signature"),
}
#: Options that say how long a request may take.
TIMEOUTS: Final = (
    *("connect_timeout", "request_timeout", "timeout"),
    *("retry_timeout", "client_retry_timeout"),
)
_INSECURE: Final = ("allow_invalid_certificates", "aws_allow_invalid_certificates")
# Options without a counterpart: an endpoint with http:// allows it, and the rest has good defaults.
_WITHOUT_EFFECT: Final = frozenset(
    {
        "allow_http",
        "aws_allow_http",
        "google_allow_http",
        "azure_allow_http",
        "aws_unsigned_payload",
        "unsigned_payload",
        "aws_conditional_put",
        "conditional_put",
        "dynamodb_endpoint",
        "manifest_store",
        "max_in_flight",
    }
)

#: All options that have a meaning here, in lower case.
KNOWN: Final = frozenset(
    {
        *(name for names in (_S3, _GOOGLE, _AZURE) for pair in names.items() for name in (pair[0], *pair[1])),
        *(name.lower() for pair in _ENCRYPTION.items() for name in pair),
        *(*ENDPOINTS, *_REGION, *_VIRTUAL_HOSTS, *TIMEOUTS, *_INSECURE, *_WITHOUT_EFFECT),
    }
)


def fsspec_options(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the fsspec file system for URIs with this scheme.

    Unknown options are passed on unchanged.
    """
    match scheme:
        case "s3" | "s3a":
            return _s3_options(options)
        case "gs" | "gcs":
            return _google_options(options)
        case "az" | "abfs" | "abfss" | "adl":
            return _renamed(options, _AZURE)
    return {key: value for key, value in options.items() if key.lower() not in _WITHOUT_EFFECT}


def botocore_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a botocore client, without an endpoint, that say who and where we are."""
    s3 = _s3_options(options)
    renamed = {
        "aws_access_key_id": s3.get("key"),
        "aws_secret_access_key": s3.get("secret"),
        "aws_session_token": s3.get("token"),
        "region_name": s3.get("client_kwargs", {}).get("region_name"),
    }
    return {key: value for key, value in renamed.items() if value is not None}


def option(options: Mapping[str, Any], *names: str) -> Any:
    """The value of the first of these names (in any case) that is given, otherwise None."""
    given = {key.lower(): value for key, value in options.items()}
    return next((given[name] for name in names if name in given), None)


def max_in_flight(options: Mapping[str, Any]) -> int | None:
    """The number of concurrent requests for data, None if the options do not set it."""
    value = option(options, "max_in_flight")
    if value is None:
        return None
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal() or not 1 <= int(text) <= MOST_IN_FLIGHT:
        raise UnsupportedFeatureError(
            f"The storage option 'max_in_flight' must be a number of requests: {value}",
            remedy=f"Write a number from 1 to {MOST_IN_FLIGHT}, or leave the option out: 64",
        )
    return int(text)


def _s3_options(options: Mapping[str, Any]) -> dict[str, Any]:
    renamed = _renamed(options, _S3)
    region = _take(renamed, _REGION)
    virtual_hosts = _take(renamed, _VIRTUAL_HOSTS)
    insecure = _take(renamed, _INSECURE)
    client = dict(renamed.get("client_kwargs") or {})
    if region is not None:
        client["region_name"] = region
    if insecure is not None and is_true(insecure):
        client["verify"] = False
    if client:
        renamed["client_kwargs"] = client
    if virtual_hosts is not None:
        config = dict(renamed.get("config_kwargs") or {})
        style = "virtual" if is_true(virtual_hosts) else "path"
        config["s3"] = {**config.get("s3", {}), "addressing_style": style}
        renamed["config_kwargs"] = config
    encryption = {name: _take(renamed, (key,)) for key, name in _ENCRYPTION.items()}
    encryption = {name: value for name, value in encryption.items() if value is not None}
    if encryption:
        renamed["s3_additional_kwargs"] = {**encryption, **(renamed.get("s3_additional_kwargs") or {})}
    return renamed


def _google_options(options: Mapping[str, Any]) -> dict[str, Any]:
    renamed = _renamed(options, _GOOGLE)
    token = renamed.get("token")
    if isinstance(token, str) and token.lstrip().startswith("{"):
        renamed["token"] = json.loads(token)
    if renamed.pop("anon", False):
        renamed["token"] = "anon"
    return renamed


def _renamed(options: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    known = {other: name for name, others in names.items() for other in others}
    renamed: dict[str, Any] = {}
    for key, value in options.items():
        lower = key.lower()
        if lower in _WITHOUT_EFFECT:
            continue
        name = known.get(lower, lower if lower in names or key.isupper() else key)
        renamed[name] = is_true(value) if name == "anon" else value
    return renamed


def _take(options: dict[str, Any], names: tuple[str, ...]) -> Any:
    values = [options.pop(name) for name in names if name in options]
    return values[0] if values else None


def is_true(value: Any) -> bool:
    """Whether a switch is on, which may be written in words."""
    return value.strip().lower() in ("true", "1", "yes", "on") if isinstance(value, str) else bool(value)

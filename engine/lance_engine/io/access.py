"""Access errors of storage: the response, and the credentials that were used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from lance_engine.errors import LanceError, StorageAccessError


class _Cloud(NamedTuple):
    """Where cloud clients look for credentials, and how to pass others."""

    variables: str
    files: tuple[str, ...]
    remedy: str


_S3: Final = _Cloud(
    "AWS_",
    ("~/.aws/credentials", "~/.aws/config"),
    "Set aws_access_key_id and aws_secret_access_key (and aws_session_token) or aws_profile in "
    "storage_options, or aws_skip_signature for a public bucket; aws_region and aws_endpoint must be those "
    "of the bucket",
)
_GOOGLE: Final = _Cloud(
    "GOOGLE_",
    ("~/.config/gcloud/application_default_credentials.json",),
    "Set google_service_account (a file) or google_service_account_key in storage_options, or "
    "google_skip_signature for a public bucket",
)
_AZURE: Final = _Cloud(
    "AZURE_",
    ("~/.azure/msal_token_cache.json",),
    "Set azure_storage_account_name with azure_storage_account_key or azure_storage_sas_token in "
    "storage_options",
)
_CLOUDS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3+ddb"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), _AZURE),
}
# Errors for missing credentials, and responses that reject credentials.
_NOTHING_FOUND: Final = frozenset(
    {
        "ClientAuthenticationError",
        "CredentialRetrievalError",
        "DefaultCredentialsError",
        "NoCredentialsError",
        "NoRegionError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "RefreshError",
        "TokenRetrievalError",
    }
)
_REFUSED: Final = frozenset(
    {
        "401",
        "403",
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "ExpiredTokenException",
        "Forbidden",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


@contextmanager
def access_explained(uri: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Convert an access error of a storage client to a StorageAccessError that lists what was tried."""
    try:
        yield
    except (LanceError, FileNotFoundError, FileExistsError):
        raise
    except Exception as error:
        if not _is_refusal(error):
            raise
        raise refused(uri, options, str(error) or type(error).__name__) from error


def codes(error: BaseException) -> set[str]:
    """A backend's codes for the reason of a failed request: words, an HTTP status, or both."""
    codes: set[str] = set()
    seen: BaseException | None = error
    while seen is not None:
        # botocore keeps the response, gcsfs the code, and azure both, with its own names.
        response = getattr(seen, "response", None)
        details = response.get("Error", {}) if isinstance(response, dict) else {}
        codes |= {str(details.get("Code")), *(str(getattr(seen, name, None)) for name in _CODE_NAMES)}
        seen = seen.__cause__ or seen.__context__
    return codes


# Attributes of the errors of backends.
_CODE_NAMES: Final = ("code", "status", "status_code", "error_code")


def _is_refusal(error: BaseException) -> bool:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, PermissionError) or type(seen).__name__ in _NOTHING_FOUND:
            return True
        seen = seen.__cause__ or seen.__context__
    return bool(codes(error) & _REFUSED)


def refused(uri: str, options: Mapping[str, Any], reason: str) -> StorageAccessError:
    """The error for storage that denied access because of `reason`."""
    cloud = _CLOUDS.get(uri.partition("://")[0].lower())
    if cloud is None:
        return StorageAccessError(f"Access to storage denied: {reason}", path=uri)
    variables = sorted(name for name in os.environ if name.startswith(cloud.variables))
    files = [name for name in cloud.files if os.path.exists(os.path.expanduser(name))]
    tried = (
        f"the storage options {_listed(sorted(options))}, the environment variables {_listed(variables)}, "
        f"the files {_listed(files)}"
    )
    return StorageAccessError(
        f"Access to storage denied: {reason}. Tried: {tried}", path=uri, remedy=cloud.remedy
    )


def _listed(names: list[str]) -> str:
    # Only names, because values are secrets.
    return ", ".join(names) if names else "(none)"

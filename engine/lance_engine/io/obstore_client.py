"""The clients of object stores: one per bucket, options and process."""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.io.cloud_options import CloudConfig
from lance_engine.io.obstore_library import keep_inherited, obstore
from lance_engine.io.retries import Retries

# In seconds without any byte, after which the first attempts are abandoned.
_HASTY: Final = (2.0, 2.0, 5.0)
# From this number of bytes on, a slow connection may need longer than the first attempt allows.
_LARGE_BODY: Final = 1 << 20
_CREDENTIALS_FOR: Final = timedelta(minutes=5)
_RETRIES_IN_GROUP: Final = 3
_NO_RETRIES: Final = {"max_retries": 0}
_BOTOCORE_FILES: Final = ("~/.aws/credentials", "~/.aws/config")


class Client:
    """One bucket or container. Requests of several threads run in parallel."""

    def __init__(self, config: CloudConfig) -> None:
        waiting = config.waiting
        self.library = obstore()
        self.retries = Retries(waiting)
        self._make = _factory(config)
        request = timedelta(seconds=waiting.request)
        connect = timedelta(seconds=min(waiting.connect, waiting.request))
        times = {"timeout": request, "connect_timeout": connect}
        hasty = [timedelta(seconds=min(seconds, waiting.request)) for seconds in _HASTY]
        stores = {step: self._make({**times, "read_timeout": step}, _NO_RETRIES) for step in hasty}
        self._ladder = [*(stores[step] for step in hasty), self._make(times, _NO_RETRIES)]
        # Each of several ranges is requested again on its own: with all of them, another one would fail.
        self.grouped = self._make(
            {**times, "read_timeout": hasty[0]},
            {"max_retries": _RETRIES_IN_GROUP, "retry_timeout": timedelta(seconds=waiting.retry)},
        )
        # Uploads in parts run inside the library, which retries by itself.
        self.uploading = self._make(
            times, {"max_retries": 10, "retry_timeout": timedelta(seconds=waiting.retry)}
        )

    def store(self, attempt: int, body: int = 0) -> Any:
        """The store for this attempt and body size in bytes: the first attempts have short time-outs."""
        return self._ladder[min(attempt + (body > _LARGE_BODY), len(self._ladder) - 1)]


_Key = tuple[CloudConfig, tuple[tuple[str, str], ...]]
_clients: dict[_Key, Client] = {}
_making = threading.Lock()


def client(config: CloudConfig) -> Client:
    """The client for a bucket in this process."""
    # Missing options come from the environment.
    starts = ("AWS_", "GOOGLE_", "AZURE_")
    key = (config, tuple(sorted(item for item in os.environ.items() if item[0].startswith(starts))))
    client = _clients.get(key)
    if client is None:
        with _making:
            client = _clients.get(key)
            if client is None:
                client = _clients[key] = Client(config)
    return client


def _forget_clients() -> None:
    global _making
    keep_inherited(dict(_clients))
    _clients.clear()
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget_clients)


def _factory(config: CloudConfig) -> Any:
    """Creates the store of the library with time-outs and retries."""
    library = obstore()
    settings = dict(config.config)
    options = {**dict(config.client), "allow_http": True}
    provider: Callable[[], dict[str, Any]] | None = None
    if config.cloud == "gs" and settings.get("skip_signature") is True and "base_url" in settings:
        # The library requests a token to write with anyway.
        provider = _no_google_token
    if config.cloud == "s3":
        provider = _s3_identity(config, settings)
    kind = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore", "http": "HTTPStore"}[config.cloud]
    more: dict[str, Any] = {} if provider is None else {"credential_provider": provider}
    if config.cloud != "http":
        more["config"] = settings

    def make(times: dict[str, timedelta], retry: dict[str, Any]) -> Any:
        try:
            return getattr(library.store, kind)(
                config.bucket, client_options={**options, **times}, retry_config=retry, **more
            )
        except library.exceptions.BaseError as error:
            # Its text can contain the values.
            raise UnsupportedFeatureError(
                f"Inconsistent storage options ({type(error).__name__})",
                path=config.bucket,
                remedy=f"Check {', '.join(settings) or 'the environment'}",
            ) from None

    return make


def _s3_identity(config: CloudConfig, settings: dict[str, str | bool]) -> _BotocoreCredentials | None:
    """Fill in the region; returns the provider of credentials, None for that of the library."""
    environment = os.environ
    given = "access_key_id" in settings or settings.get("skip_signature") is True
    given = given or str(environment.get("AWS_SKIP_SIGNATURE", "")).lower() == "true"
    static = (
        not config.profile and "AWS_ACCESS_KEY_ID" in environment and "AWS_SECRET_ACCESS_KEY" in environment
    )
    provider = None if given or static else _botocore_credentials(config.profile)
    if "region" not in settings:
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
        region = region or _configured_region(config.profile)
        if not region:
            region = "us-east-1" if "endpoint" in settings else _region_of(config.bucket)
        settings["region"] = region
    return provider


def _no_google_token() -> dict[str, Any]:
    return {"token": "", "expires_at": None}


class _BotocoreCredentials:
    """Credentials as the tools of AWS find them: profiles, single sign-on, roles."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def __call__(self) -> dict[str, Any]:
        # It renews them in time.
        frozen = self._credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + _CREDENTIALS_FOR,
        }


def _botocore_credentials(profile: str | None) -> _BotocoreCredentials | None:
    try:
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError as error:
        if profile is None:
            return None
        raise UnsupportedFeatureError(
            f"The profile '{profile}' needs boto3", remedy="pip install lance-sql[s3]"
        ) from error
    try:
        credentials = Session(profile=profile).get_credentials()
    except BotoCoreError as error:
        raise PermissionError(str(error)) from None
    if credentials is None:
        raise PermissionError("Unable to locate credentials")
    return _BotocoreCredentials(credentials)


def _configured_region(profile: str | None) -> str | None:
    if not any(os.path.exists(os.path.expanduser(name)) for name in _BOTOCORE_FILES):
        return None
    try:
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError:
        return None
    try:
        region = Session(profile=profile).get_config_variable("region")
    except BotoCoreError:
        return None
    return None if region is None else str(region)


def _region_of(bucket: str) -> str:
    """The region in which AWS says a bucket is: it answers everybody, even when it refuses access."""
    request = urllib.request.Request(f"https://s3.amazonaws.com/{bucket}", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as error:
        headers = error.headers
    except OSError:
        return "us-east-1"
    return str(headers.get("x-amz-bucket-region") or "us-east-1")

"""What a dataset may access outside of its own root, since it may come from an untrusted source.

Manifests refer to other locations (base paths, for example of shallow clones), blobs may have any URI, and a
folder may be a symbolic link. None of this is trusted: the caller decides with ``allow_external`` what may be
accessed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from lance_engine.errors import CorruptFileError, ExternalAccessError
from lance_engine.legible import without_secrets

#: The storage option with the setting, so that it applies wherever a dataset is opened again.
ALLOW_EXTERNAL: Final = "allow_external"
_NONE, _SAME_STORE, _ALL = "none", "same-store", "all"
_SCHEMES: Final = {"s3a": "s3", "s3+ddb": "s3", "gcs": "gs", "abfss": "az", "abfs": "az", "adl": "az"}


#: ``"none"``, ``"same-store"``, ``"all"``, locations, or locations with their own storage options.
AllowExternal = str | Sequence[str] | Mapping[str, Mapping[str, Any]]


def with_external_access(
    options: Mapping[str, Any] | None, allowed: AllowExternal | None
) -> Mapping[str, Any] | None:
    """The storage options with the setting `allowed`; unchanged if that is None."""
    if allowed is None:
        return options
    _parse(allowed)
    return {**(options or {}), ALLOW_EXTERNAL: allowed}


def external_access(options: Mapping[str, Any] | None) -> ExternalAccess:
    """The setting in these storage options."""
    allowed = (options or {}).get(ALLOW_EXTERNAL)
    return _DEFAULT if allowed is None else _parse(allowed)


def without_external_access(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The options for the store itself."""
    if options is None:
        return {}
    return {name: value for name, value in options.items() if name != ALLOW_EXTERNAL}


@dataclass(frozen=True, slots=True)
class ExternalAccess:
    """The parsed setting. `prefixes` are locations whose contents may be accessed, with their own options."""

    same_store: bool = False
    everything: bool = False
    prefixes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def options_for(
        self, root: str, place: str, options: Mapping[str, Any] | None, *, blob: bool = False
    ) -> Mapping[str, Any]:
        """The storage options for `place`, used by the dataset at `root`; ExternalAccessError if refused.

        Credentials are only sent to the store that they were given for. Base paths in the same store are
        allowed by default; locations of a `blob` may be files of any kind, and must be allowed by name.
        """
        if "\0" in place:
            raise CorruptFileError(f"{place!r} is not a valid file location", path=root)
        same = same_store(root, place)
        for prefix, own in self.prefixes.items():
            if is_below(prefix, place):
                given = options if same and not own else own
                return {**(given or {}), ALLOW_EXTERNAL: (options or {}).get(ALLOW_EXTERNAL)}
        if not (self.everything or is_below(root, place) or (same and self.same_store and not blob)):
            raise refused(root, "A blob" if blob else "A base path", place)
        kept = (options or {}) if same else {}
        return {**kept, ALLOW_EXTERNAL: (options or {}).get(ALLOW_EXTERNAL)}

    def allows_link(self, target: str) -> bool:
        """Whether a local file may be accessed through a symbolic link out of the dataset."""
        return self.everything or any(is_below(prefix, target) for prefix in self.prefixes)


_DEFAULT: Final = ExternalAccess(same_store=True)


def refused(root: str, what: str, place: str) -> ExternalAccessError:
    """The error for a place that is not allowed."""
    return ExternalAccessError(
        f"{what} is at '{without_secrets(place)}', outside the dataset",
        path=root,
        remedy=f"If you trust the dataset, open it with allow_external=['{_prefix_of(place)}'] (a list of "
        f"locations that it may read from) or allow_external='all'",
    )


def is_below(root: str, place: str) -> bool:
    """Whether a location is `root` or below it; symbolic links of a local disk are resolved first."""
    inner, outer = local_folder(place), local_folder(root)
    if (inner is None) != (outer is None):
        return False
    if inner is not None and outer is not None:
        inner, outer = os.path.realpath(inner), os.path.realpath(outer)
        return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)
    root, place = root.partition("?")[0], _without_parameter(place)
    if not _is_plain(place) or _authority(root) != _authority(place):
        return False
    outer_path, inner_path = _path(root), _path(place)
    return inner_path == outer_path or inner_path.startswith(f"{outer_path}/" if outer_path else "")


def same_store(root: str, place: str) -> bool:
    """Whether both are on the local disk, or have the same scheme, host and bucket."""
    if local_folder(place) is not None or local_folder(root) is not None:
        return local_folder(place) is not None and local_folder(root) is not None
    return _is_plain(place) and _authority(root.partition("?")[0]) == _authority(_without_parameter(place))


def local_folder(uri: str) -> str | None:
    """The path of a local file, None for other locations."""
    scheme, separator, _ = uri.partition("://")
    if not separator:
        return os.path.abspath(os.path.expanduser(uri))
    scheme = scheme.lower().removesuffix("+sqlite")
    if scheme in ("file", "local"):
        return os.path.abspath(unquote(urlsplit(uri.partition("?")[0]).path))
    return None


def _prefix_of(place: str) -> str:
    shown = without_secrets(place).partition("?")[0]
    return shown.rpartition("/")[0] or shown


def _is_plain(uri: str) -> bool:
    """Whether a URI is unambiguous: no chained file systems, no parent directories, no user and password."""
    return not any(part in ("..", ".") for part in unquote(uri).replace("\\", "/").split("/")) and not (
        "::" in uri or "\\" in uri or "\0" in uri
    )


def _authority(uri: str) -> tuple[str, str]:
    scheme, _, rest = uri.partition("://")
    scheme = scheme.lower()
    scheme = scheme.removesuffix("+sqlite")
    return _SCHEMES.get(scheme, scheme), rest.partition("/")[0].lower()


def _path(uri: str) -> str:
    return uri.partition("://")[2].partition("/")[2].strip("/")


def _without_parameter(uri: str) -> str:
    """A URI without the name of the database of its manifests; otherwise ``?`` is part of the path."""
    return uri.partition("?")[0] if "+" in uri.partition("://")[0] else uri


def _parse(allowed: Any) -> ExternalAccess:
    if isinstance(allowed, str) and allowed.lstrip().startswith(("[", "{")):
        try:
            allowed = json.loads(allowed)
        except ValueError:
            raise _misunderstood(allowed) from None
    if isinstance(allowed, str):
        word = allowed.strip().lower()
        if word in (_NONE, _SAME_STORE, _ALL):
            return ExternalAccess(same_store=word != _NONE, everything=word == _ALL)
        allowed = [part.strip() for part in allowed.split(",")]
    if isinstance(allowed, os.PathLike):
        allowed = [allowed]
    if isinstance(allowed, Mapping):
        pairs = {os.fspath(prefix): dict(options or {}) for prefix, options in allowed.items()}
    elif isinstance(allowed, list | tuple | set | frozenset):
        if not all(isinstance(prefix, str | os.PathLike) for prefix in allowed):
            raise _misunderstood(allowed)
        pairs = {os.fspath(prefix): {} for prefix in allowed}
    else:
        raise _misunderstood(allowed)
    if not all("/" in prefix or os.sep in prefix for prefix in pairs):
        raise _misunderstood(allowed)
    return ExternalAccess(prefixes=pairs)


def _misunderstood(allowed: Any) -> ValueError:
    # Not the value: a mapping holds credentials.
    shown = sorted(map(str, allowed)) if isinstance(allowed, Mapping) else allowed
    return ValueError(
        f"allow_external cannot be {shown!r}: write 'none', 'same-store', 'all', a list of locations such as "
        "'s3://bucket/folder/' or '/data/blobs/', or a dict from such locations to their storage options"
    )

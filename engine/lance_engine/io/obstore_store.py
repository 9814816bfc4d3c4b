"""Datasets on S3, Google Cloud Storage and Azure Blob Storage."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, StorageUnavailableError, UnsupportedFeatureError
from lance_engine.io.access import access_explained
from lance_engine.io.cloud_options import CloudConfig, cloud_config, cloud_of
from lance_engine.io.listed_files import LISTED, Tag
from lance_engine.io.object_errors import Failure, IncompleteAnswerError, Outcome
from lance_engine.io.object_upload import ObjectSink
from lance_engine.io.obstore_client import Client, client
from lance_engine.io.retries import Request
from lance_engine.io.storage_options import max_in_flight
from lance_engine.io.store import OUTSIDE_REMEDY, Buffer, Sink, checked_path, checked_range
from lance_engine.tasks import Pool

T = TypeVar("T")

# The maximum number of names that one listing request returns.
_PAGE: Final = 1000
# Shorter ranges arrive in one piece anyway; longer ones are copied in pieces of at least this length.
_LEAST_BUFFER: Final = 256 << 10
_PIECE: Final = 256 << 10


def object_store(uri: str, options: Mapping[str, Any]) -> ObstoreStore | None:
    """The store for a URI of a bucket, None if the URI or an option needs fsspec."""
    scheme, _, location = uri.partition("://")
    if cloud_of(scheme.lower()) in (None, "http"):
        return None
    bucket, _, root = location.partition("/")
    container, at, host = bucket.partition("@")
    if at:
        if cloud_of(scheme.lower()) != "az":
            raise UnsupportedFeatureError(
                "The path of a bucket cannot have a user and a password",
                path=uri,
                remedy="Pass credentials as storage options",
            )
        # abfss://container@account.dfs.core.windows.net/path
        bucket = container
        options = {"azure_storage_account_name": host.partition(".")[0], **options}
    if not bucket:
        raise UnsupportedFeatureError(
            "The path has no bucket", path=uri, remedy="Write s3://bucket/path/to/dataset.lance"
        )
    config = cloud_config(scheme.lower(), bucket, options)
    return None if config is None else ObstoreStore(uri, options, config, root)


class ObstoreStore:
    """A folder of a bucket, such as ``s3://bucket/table.lance``. Pickling keeps the options only."""

    def __init__(self, uri: str, options: Mapping[str, Any], config: CloudConfig, root: str) -> None:
        self._uri = uri.rstrip("/")
        self._options = dict(options)
        self._config = config
        self._root = root.strip("/")
        self._max_in_flight = max_in_flight(options)
        # The client of a process, and which process that is.
        self._client: tuple[int, Client] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._uri, self._options, self._config, self._root)

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def identity(self) -> Hashable:
        """Stores of the same client and folder are alike: options and credentials are those of the client."""
        return self._connected(), self._root

    @property
    def max_in_flight(self) -> int | None:
        """The number of concurrent requests that the options allow."""
        return self._max_in_flight

    @property
    def ranges_at_once(self) -> int:
        """See `lance_engine.io.store.ranges_at_once`: the library has no more in flight for one call."""
        return 10

    def __repr__(self) -> str:
        return f"ObstoreStore({self._uri!r})"

    def size(self, path: str) -> int:
        return int(self._head(path)["size"])

    def modified(self, path: str) -> datetime.datetime | None:
        written: datetime.datetime = self._head(path)["last_modified"]
        return written

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if length is None:
            return self._read_rest(path, offset) if offset else self._read_whole(path)
        if length <= 0 or offset < 0:
            checked_range(path, offset, offset, length)
            return b""
        key = self._key(path)

        def attempt(here: Client, number: int) -> bytes:
            data = here.library.get_range(here.store(number), key, start=offset, length=length)
            if len(data) != length:
                self._explain_short(here, number, path, offset, length)
            return bytes(data)

        return self._run("read", path, attempt, _beyond_the_end(path))

    def read_buffer(self, path: str, offset: int, length: int) -> Buffer:
        """See `lance_engine.io.store.read_buffer`: pieces are copied and returned as they arrive."""
        if length < _LEAST_BUFFER or offset < 0:
            return self.read_ranges(path, [(offset, length)])[0]
        key = self._key(path)

        def attempt(here: Client, number: int) -> memoryview:
            wanted = {"range": (offset, offset + length)}
            answer = here.library.get(here.store(number), key, options=wanted)
            buffer = kernels.new_buffer(length).data
            filled = 0
            for piece in answer.stream(min_chunk_size=_PIECE):
                end = filled + len(piece)
                if end > length:
                    raise IncompleteAnswerError
                buffer[filled:end] = memoryview(piece)
                filled = end
            if filled != length:
                self._explain_short(here, number, path, offset, length)
            return buffer

        return self._run("read", path, attempt, _beyond_the_end(path))

    def expect_size(self, path: str, size: int) -> None:
        pass

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        key = self._key(path)

        def attempt(here: Client, number: int) -> tuple[bytes, int]:
            store = here.store(number)
            wanted: dict[str, Any] = {"suffix": length}
            if self._config.cloud == "az":
                # It does not support ranges from the end.
                size = int(here.library.head(store, key)["size"])
                wanted = {"offset": max(0, size - length)}
                if not size:
                    return b"", 0
            return _whole_answer(here.library.get(store, key, options={"range": wanted}))

        try:
            return self._run("read", path, attempt, _no_range)
        except _NoRangeError:
            # An empty file has no range.
            data = self._read_rest(path, 0)
            return data[max(0, len(data) - length) :], len(data)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Buffer]:
        wanted = [span for span in dict.fromkeys(ranges) if span[1]]
        for offset, length in wanted:
            checked_range(path, offset + length, offset, length)
        if not wanted:
            return [b""] * len(ranges)
        key = self._key(path)
        starts, lengths = [offset for offset, _ in wanted], [length for _, length in wanted]

        def attempt(here: Client, number: int) -> Sequence[Buffer]:
            if len(wanted) == 1:
                store = here.store(number)
                answers = [here.library.get_range(store, key, start=starts[0], length=lengths[0])]
            else:
                answers = here.library.get_ranges(
                    here.grouped, key, starts=starts, lengths=lengths, coalesce=0
                )
            for span, data in zip(wanted, answers, strict=True):
                if len(data) != span[1]:
                    self._explain_short(here, number, path, *span)
            return [memoryview(data) for data in answers]

        buffers: Sequence[Buffer]
        try:
            buffers = self._run("read", path, attempt, _beyond_the_end(path), once=len(wanted) > 1)
        except StorageUnavailableError:
            if len(wanted) == 1:
                raise
            # If one of them failed, the others must not fail with it again.
            with Pool(len(wanted), "lance-again") as threads:
                buffers = list(threads.map(lambda span: self.read(path, *span), wanted))
        if len(wanted) == len(ranges):
            return buffers
        by_span = dict(zip(wanted, buffers, strict=True))
        return [by_span.get(span, b"") for span in ranges]

    def list(self, prefix: str) -> list[str]:
        paths: list[str] = []
        start = len(self._root) + 1 if self._root else 0

        def attempt(here: Client, number: int) -> None:
            pages = here.library.list(
                here.store(number),
                self._key(prefix) if prefix else self._root or None,
                # Another attempt continues where the previous one was interrupted.
                offset=paths[-1] if paths else None,
                chunk_size=_PAGE,
            )
            for page in pages:
                paths.extend(entry["path"] for entry in page)

        with suppress(FileNotFoundError):
            self._run("list", prefix, attempt)
        return sorted(path[start:] for path in paths)

    def names(self, folder: str) -> Sequence[str]:
        key = self._key(folder) if folder else self._root

        def attempt(here: Client, number: int) -> list[str]:
            page = here.library.list_with_delimiter(here.store(number), key or None)
            paths = [*(entry["path"] for entry in page["objects"]), *page["common_prefixes"]]
            return [path.rstrip("/").rpartition("/")[2] for path in paths]

        try:
            return self._run("list", folder, attempt)
        except FileNotFoundError:
            return []

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        key = self._key(folder)

        def attempt(here: Client, number: int) -> Sequence[Any]:
            pages = here.library.list(here.store(number), key, chunk_size=_PAGE)
            page: Sequence[Any] = next(iter(pages), [])
            return page

        try:
            page = self._run("list", folder, attempt)
        except FileNotFoundError:
            return [], True
        if page:  # the newest version comes first
            LISTED.note((self._connected(), page[0]["path"]), Tag.of(page[0]))
        names = [entry["path"][len(key) + 1 :] for entry in page]
        return [name for name in names if "/" not in name], len(page) < _PAGE

    def exists(self, path: str) -> bool:
        try:
            self._head(path)
        except FileNotFoundError:
            return False
        return True

    def put(self, path: str, data: bytes) -> None:
        key = self._key(path)
        self._run(
            "write",
            path,
            lambda here, number: here.library.put(
                here.store(number, len(data)), key, data, use_multipart=False
            ),
        )

    def put_if_absent(self, path: str, data: bytes) -> None:
        key = self._key(path)
        attempts = 0

        def attempt(here: Client, number: int) -> None:
            nonlocal attempts
            attempts = number + 1
            here.library.put(here.store(number, len(data)), key, data, mode="create", use_multipart=False)

        try:
            self._run("create", path, attempt)
        except FileExistsError:
            # An attempt whose response was lost may have succeeded: then the existing file is ours.
            if attempts == 1 or self.read(path) != data:
                raise

    def delete(self, path: str) -> None:
        key = self._key(path)
        with suppress(FileNotFoundError):
            self._run("delete", path, lambda here, number: here.library.delete(here.store(number), key))

    def create(self, path: str) -> Sink:
        return ObjectSink(self, checked_path(path))

    def upload(self, path: str, parts: Iterator[bytearray], part_bytes: int, at_once: int) -> None:
        """Write or replace a file from an iterator of parts; nothing remains of it if that raises."""
        key = self._key(path)

        def attempt(here: Client, _: int) -> None:
            here.library.put(
                here.uploading, key, parts, use_multipart=True, chunk_size=part_bytes, max_concurrency=at_once
            )

        self._run("write", path, attempt, once=True)

    def local_path(self, path: str) -> str | None:
        return None

    def _head(self, path: str) -> Any:
        key = self._key(path)
        return self._run("look", path, lambda here, number: here.library.head(here.store(number), key))

    def read_root(self) -> bytes:
        """The store's response for the folder itself."""
        return self._read_key(self._root, "", 0)[0]

    def _read_rest(self, path: str, offset: int) -> bytes:
        return self._read_key(self._key(path), path, offset)[0]

    def _read_whole(self, path: str) -> bytes:
        """All of a file; no request is needed if it was just listed and has not changed since it was read."""
        file = self._connected(), self._key(path)
        tag = LISTED.listed(file)
        kept = None if tag is None else LISTED.find(file, tag)
        if kept is not None:
            return kept
        data, current = self._read_key(self._key(path), path, 0)
        if tag is not None and current is not None and tag.is_of(current):
            LISTED.keep(file, tag, data)
        return data

    def _read_key(self, key: str, path: str, offset: int) -> tuple[bytes, Mapping[str, Any] | None]:
        """The data after an offset, and the metadata of the file, if there was a response."""
        options: dict[str, Any] = {"range": {"offset": offset}} if offset else {}

        def attempt(here: Client, number: int) -> tuple[bytes, Mapping[str, Any]]:
            answer = here.library.get(here.store(number), key, options=options)
            return _whole_answer(answer)[0], answer.meta

        try:
            return self._run("read", path, attempt, _beyond_the_end(path))
        except CorruptFileError:
            # An empty range cannot be requested.
            checked_range(path, self.size(path), offset, None)
            return b"", None

    def _explain_short(self, here: Client, number: int, path: str, offset: int, length: int) -> None:
        """Fewer bytes arrived than were requested: the file ends, or the response was cut off."""
        checked_range(
            path, int(here.library.head(here.store(number), self._key(path))["size"]), offset, length
        )
        raise IncompleteAnswerError

    def _key(self, path: str) -> str:
        return f"{self._root}/{checked_path(path)}" if self._root else checked_path(path)

    def _connected(self) -> Client:
        """The client of this process."""
        if self._client is None or self._client[0] != os.getpid():
            with access_explained(self._uri, self._options):
                self._client = os.getpid(), client(self._config)
        return self._client[1]

    def _run(
        self,
        operation: str,
        path: str,
        attempt: Callable[[Client, int], T],
        on_failure: Callable[[Failure], Exception | None] = lambda failure: None,
        *,
        once: bool = False,
    ) -> T:
        here = self._connected()
        request = Request(operation, f"{self._uri}/{path}" if path else self._uri, self._options)
        return here.retries.run(request, lambda number: attempt(here, number), on_failure, once=once)


def _whole_answer(result: Any) -> tuple[bytes, int]:
    """The bytes of a response, and the size of the file."""
    data = bytes(result.bytes())
    start, stop = result.range
    if len(data) != stop - start:
        raise IncompleteAnswerError
    return data, int(result.meta["size"])


class _NoRangeError(Exception):
    """The store does not answer with a part of this file."""


def _no_range(failure: Failure) -> Exception | None:
    return _NoRangeError() if failure.outcome in (Outcome.BEYOND, Outcome.WHOLE) else None


def _beyond_the_end(path: str) -> Callable[[Failure], Exception | None]:
    def meaning(failure: Failure) -> Exception | None:
        if failure.outcome is not Outcome.BEYOND:
            return None
        return CorruptFileError(
            "Requested bytes past the end of the file",
            path=path,
            remedy=OUTSIDE_REMEDY,
        )

    return meaning

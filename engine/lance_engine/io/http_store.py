"""Read-only datasets on web servers, whose folders have pages that list their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from lance_engine.io.cloud_options import cloud_config
from lance_engine.io.obstore_store import ObstoreStore
from lance_engine.io.store import not_atomic


def http_store(uri: str, options: Mapping[str, Any]) -> HttpStore | None:
    """The store for a URI, None if the URI or an option needs fsspec."""
    parts = urlsplit(uri)
    if parts.query or "@" in parts.netloc:
        return None
    config = cloud_config(parts.scheme, f"{parts.scheme}://{parts.netloc}", options)
    return None if config is None else HttpStore(uri, options, config, unquote(parts.path))


class HttpStore(ObstoreStore):
    """A folder of a web server that can return parts of files, such as ``https://host/table.lance``."""

    def __repr__(self) -> str:
        return f"HttpStore({self.uri!r})"

    def list(self, prefix: str) -> list[str]:
        start = f"{prefix}/" if prefix else ""
        paths: list[str] = []
        for name in self._entries(prefix):
            if name.endswith("/"):
                paths += self.list(f"{start}{name[:-1]}")
            else:
                paths.append(f"{start}{name}")
        return sorted(paths)

    def names(self, folder: str) -> Sequence[str]:
        return [name.rstrip("/") for name in self._entries(folder)]

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        return self.names(folder), True

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise not_atomic(self.uri)

    def _entries(self, folder: str) -> set[str]:
        """The links on the page of a folder that lead into it; names of folders end with a slash."""
        try:
            page = self.read(folder) if folder else self.read_root()
        except FileNotFoundError:
            return set()
        links = _Links()
        links.feed(page.decode(errors="replace"))
        here = f"{self.uri}/{folder}".rstrip("/") + "/"
        entries: set[str] = set()
        for link in links.targets:
            target = urlsplit(urljoin(here, link))
            name = unquote(target.path).removeprefix(unquote(urlsplit(here).path))
            if (
                name
                and target.netloc == urlsplit(here).netloc
                and "/" not in name[:-1]
                and name[0] not in "/?"
            ):
                entries.add(name)
        return entries


class _Links(HTMLParser):
    """The targets of the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.targets += [value for name, value in attrs if name == "href" and value]

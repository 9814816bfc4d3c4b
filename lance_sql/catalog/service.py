"""Namespaces of the package `lance-namespace`: services that resolve dataset names to locations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lance_engine.errors import LanceError, StorageError, UnsupportedFeatureError

from lance_sql.catalog.namespaces import MAIN, Place
from lance_sql.catalog.service_places import note_made, options_for_place, require_removable
from lance_sql.errors import PackageNotInstalledError

#: Delimiter between the levels of a namespace's name.
DELIMITER = "$"

# Maximum size of a REST response, and of the pieces in which it is read and decompressed.
_MOST_BYTES = 64 << 20
_PART_BYTES = 64 << 10


class ServiceNamespace:
    """A namespace of a service: its tables are in the schema ``main``; its child namespaces are schemas."""

    def __init__(
        self, client: Any, root: list[str], source: str, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self.source = source
        self._client = client
        self._root = root
        self._options = storage_options

    def schemas(self) -> list[str]:
        import lance_namespace as names

        def page(token: str | None) -> Any:
            return self._client.list_namespaces(names.ListNamespacesRequest(id=self._root, page_token=token))

        return [MAIN, *sorted(self._pages(page, "namespaces"))]

    def tables(self, schema: str) -> list[str]:
        import lance_namespace as names

        def page(token: str | None) -> Any:
            return self._client.list_tables(names.ListTablesRequest(id=self._id(schema), page_token=token))

        return sorted(self._pages(page, "tables"))

    def find(self, schema: str, table: str) -> Place | None:
        import lance_namespace as names

        request = names.DescribeTableRequest(id=[*self._id(schema), table], vend_credentials=True)
        with self._called():
            try:
                description = self._client.describe_table(request)
            except Exception as error:
                if _is_missing(error):
                    return None
                raise
        return self._place(description, f"{schema}.{table}")

    def place(self, schema: str, table: str) -> Place:
        import lance_namespace as names

        request = names.DeclareTableRequest(id=[*self._id(schema), table], vend_credentials=True)
        with self._called():
            place = self._place(self._client.declare_table(request), f"{schema}.{table}")
        note_made(place.location)
        return place

    def require_removable(self, location: str) -> None:
        require_removable(self.source, location, self._options)

    def dropped(self, schema: str, table: str) -> None:
        import lance_namespace as names

        with self._called():
            self._client.deregister_table(names.DeregisterTableRequest(id=[*self._id(schema), table]))

    def create_schema(self, schema: str) -> None:
        import lance_namespace as names

        with self._called():
            self._client.create_namespace(names.CreateNamespaceRequest(id=self._id(schema)))

    def drop_schema(self, schema: str) -> None:
        import lance_namespace as names

        with self._called():
            self._client.drop_namespace(names.DropNamespaceRequest(id=self._id(schema)))

    def _id(self, schema: str) -> list[str]:
        return self._root if schema.lower() == MAIN else [*self._root, schema]

    def _place(self, description: Any, table: str) -> Place:
        if description is None or not description.location:
            raise LanceError(f"The namespace returned no location for {table}", path=self.source)
        if getattr(description, "managed_versioning", None):
            raise UnsupportedFeatureError(
                "The versions of this table are managed by the namespace",
                path=f"{self.source} {table}",
                remedy="Use a table that keeps its versions next to its files",
            )
        options = options_for_place(
            self.source, description.location, self._options, description.storage_options
        )
        return Place(description.location, options)

    def _pages(self, page: Callable[[str | None], Any], field: str) -> Iterator[str]:
        token = None
        while True:
            with self._called():
                answer = page(token)
            if answer is None:
                raise StorageError("The namespace returned an empty response", path=self.source)
            yield from getattr(answer, field)
            # Some services repeat an empty token.
            token = answer.page_token
            if not token:
                return

    @contextmanager
    def _called(self) -> Iterator[None]:
        try:
            yield
        except LanceError:
            raise
        except Exception as error:
            reason = getattr(error, "body", None) or getattr(error, "reason", None) or error
            raise StorageError(f"The namespace refused a request: {reason}", path=self.source) from error


def _is_missing(error: Exception) -> bool:
    return getattr(error, "status", None) == 404 or type(error).__name__ in (
        "TableNotFoundError",
        "NamespaceNotFoundError",
    )


class RestClient:
    """The requests of a namespace, sent to a REST server."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        import lance_namespace_urllib3_client as rest
        import urllib3

        configuration = rest.Configuration(host=endpoint.rstrip("/"))
        # Credentials are not sent along when a request is redirected to another host.
        secret = {*urllib3.Retry.DEFAULT_REMOVE_HEADERS_ON_REDIRECT, *headers}
        configuration.retries = urllib3.Retry(3, remove_headers_on_redirect=secret)
        api = rest.ApiClient(configuration)
        for name, value in headers.items():
            api.set_default_header(name, value)
        sender: Any = api.rest_client
        sender.request = _bounded(sender.request, endpoint)
        self._namespaces, self._tables = rest.NamespaceApi(api), rest.TableApi(api)

    def list_namespaces(self, request: Any) -> Any:
        return self._namespaces.list_namespaces(_name(request), DELIMITER, request.page_token)

    def list_tables(self, request: Any) -> Any:
        return self._namespaces.list_tables(_name(request), DELIMITER, request.page_token)

    def create_namespace(self, request: Any) -> Any:
        return self._namespaces.create_namespace(_name(request), request, DELIMITER)

    def drop_namespace(self, request: Any) -> Any:
        return self._namespaces.drop_namespace(_name(request), request, DELIMITER)

    def describe_table(self, request: Any) -> Any:
        return self._tables.describe_table(_name(request), request, DELIMITER)

    def declare_table(self, request: Any) -> Any:
        return self._tables.declare_table(_name(request), request, DELIMITER)

    def deregister_table(self, request: Any) -> Any:
        return self._tables.deregister_table(_name(request), request, DELIMITER)


def _bounded(send: Callable[..., Any], endpoint: str) -> Callable[..., Any]:
    """`send` with a limit on the size of the response."""

    def bounded(*arguments: Any, **options: Any) -> Any:
        answer = send(*arguments, **options)
        content = bytearray()
        for part in answer.response.stream(_PART_BYTES, decode_content=True):
            content += part
            if len(content) > _MOST_BYTES:
                answer.response.close()
                raise StorageError(
                    f"The namespace returned a response of more than {_MOST_BYTES >> 20} MB", path=endpoint
                )
        answer.data = bytes(content)
        return answer

    return bounded


def _name(request: Any) -> str:
    """The identifier in a request; the delimiter alone is the root."""
    return DELIMITER.join(request.id) or DELIMITER


#: What ``rest`` knows besides ``header.NAME``.
_REST_PROPERTIES: Final = ("endpoint", "uri", "bearer_token", "api_key")


def connect_service(
    kind: str, root: str, properties: Mapping[str, str], storage_options: Mapping[str, Any] | None
) -> ServiceNamespace:
    """The namespace `root` of a service: ``rest``, or any `kind` that `lance_namespace.connect` supports.

    Properties of ``rest`` are ``endpoint``, ``bearer_token``, ``api_key``, and ``header.NAME``.
    """
    try:
        import lance_namespace
    except ImportError as error:
        raise PackageNotInstalledError(
            f"A namespace of the kind {kind!r} needs the package lance-namespace",
            remedy="Install it: pip install 'lance-sql[namespace]'",
        ) from error
    levels = [level for level in root.split(DELIMITER) if level]
    if kind == "rest":
        for name in properties:
            if name not in _REST_PROPERTIES and not name.startswith("header."):
                raise LanceError(
                    f"Unknown option {name!r} of a REST namespace",
                    remedy=f"The options are {', '.join(_REST_PROPERTIES)} and header.NAME",
                )
        endpoint = properties.get("endpoint") or properties.get("uri")
        if not endpoint:
            raise LanceError(
                "A REST namespace needs an ENDPOINT", remedy="Write (TYPE LANCE, ENDPOINT 'http://...')"
            )
        headers = {
            name.partition(".")[2]: value for name, value in properties.items() if name.startswith("header.")
        }
        if "bearer_token" in properties:
            headers["Authorization"] = f"Bearer {properties['bearer_token']}"
        if "api_key" in properties:
            headers["x-api-key"] = properties["api_key"]
        return ServiceNamespace(RestClient(endpoint, headers), levels, endpoint, storage_options)
    try:
        client = lance_namespace.connect(kind, dict(properties))
    except (ValueError, ImportError) as error:
        raise LanceError(f"Cannot open a namespace of the kind {kind!r}: {error}") from error
    return ServiceNamespace(client, levels, kind, storage_options)

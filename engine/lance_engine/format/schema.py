"""The schema tree as the flat list of `Field` messages that manifests, transactions and data files carry."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import file_pb2
from lance_engine.logical_types import EXTENSION_NAME, has_children
from lance_engine.schema_limits import MAX_DEPTH, MAX_FIELDS, MAX_LISTS, check_limits, is_list
from lance_engine.schema_tree import NO_PARENT, Field, Schema

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
CLUSTERING_KEY_POSITION = "lance-schema:unenforced-clustering-key:position"


def schema_from_messages(messages: Sequence[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    """Rebuild the tree; CorruptFileError for a child before its parent, a repeated id or absurd depth."""
    if len(messages) > MAX_FIELDS:
        raise UnsupportedFeatureError(
            f"The schema has {len(messages):,} fields",
            remedy=f"The limit is {MAX_FIELDS:,}: store many values of the same type as a list or a map",
        )
    position_of: dict[int, int] = {}
    children: list[list[Field]] = [[] for _ in messages]
    depths: list[int] = []
    lists: list[int] = []
    for position, message in enumerate(messages):
        if "\0" in message.name:
            raise CorruptFileError(f"The name of field {message.id}, '{message.name}', has a NUL character")
        parent = NO_PARENT
        if message.parent_id >= 0:
            parent = position_of.get(message.parent_id, NO_PARENT)
            if parent == NO_PARENT:
                raise CorruptFileError(
                    f"Field '{message.name}' is listed before its parent, or has no parent with id "
                    f"{message.parent_id}"
                )
        depths.append(depths[parent] + 1 if parent >= 0 else 1)
        lists.append((lists[parent] if parent >= 0 else 0) + is_list(message.logical_type))
        if depths[-1] > MAX_DEPTH or lists[-1] > MAX_LISTS:
            raise CorruptFileError(
                f"The schema is nested more than {MAX_DEPTH} levels deep, or {MAX_LISTS} lists deep"
            )
        if message.id >= 0 and position_of.setdefault(message.id, position) != position:
            raise CorruptFileError(f"Two fields of the schema have the id {message.id}")
    top: list[Field] = []
    # Parents come before their children: in reverse order, a node is complete when it is processed.
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if children[position] and not has_children(message.logical_type):
            raise CorruptFileError(
                f"Field '{message.name}' of type '{message.logical_type}' has fields inside of it"
            )
        node = _field_from_message(message, tuple(reversed(children[position])))
        siblings = children[position_of[message.parent_id]] if message.parent_id >= 0 else top
        siblings.append(node)
    top.reverse()
    return Schema(tuple(top), text_metadata(metadata))


def schema_to_messages(schema: Schema) -> list[file_pb2.Field]:
    """All fields of the tree, parents first; UnsupportedTypeError if they could not be read again."""
    check_limits(schema.fields)
    return [_field_to_message(node) for node in schema.walk()]


def without_primary_key(field: Field) -> Field:
    """The field as a column that does not belong to the primary key."""
    rest = file_pb2.Field.FromString(field.uninterpreted)
    rest.unenforced_primary_key, rest.unenforced_primary_key_position = False, 0
    kept = {k: v for k, v in field.metadata.items() if k not in (PRIMARY_KEY, PRIMARY_KEY_POSITION)}
    return dataclasses.replace(field, metadata=kept, uninterpreted=rest.SerializeToString())


def text_metadata(metadata: Mapping[str, bytes]) -> dict[str, str]:
    """Metadata values as text; bytes that are not UTF-8 become surrogates, so nothing is lost."""
    return {key: value.decode("utf-8", "surrogateescape") for key, value in metadata.items()}


def bytes_metadata(metadata: Mapping[str, str]) -> dict[str, bytes]:
    """The inverse of `text_metadata`."""
    return {key: value.encode("utf-8", "surrogateescape") for key, value in metadata.items()}


def _field_from_message(message: file_pb2.Field, children: tuple[Field, ...]) -> Field:
    metadata = text_metadata(message.metadata)
    if message.extension_name:
        metadata.setdefault(EXTENSION_NAME, message.extension_name)
    rest = file_pb2.Field(
        type=message.type,
        encoding=message.encoding,
        unenforced_primary_key=message.unenforced_primary_key,
        unenforced_primary_key_position=message.unenforced_primary_key_position,
        unenforced_clustering_key=message.unenforced_clustering_key,
        unenforced_clustering_key_position=message.unenforced_clustering_key_position,
    )
    if message.HasField("dictionary"):
        rest.dictionary.CopyFrom(message.dictionary)
    return Field(
        name=message.name,
        id=message.id,
        parent_id=message.parent_id,
        logical_type=message.logical_type,
        nullable=message.nullable,
        children=children,
        metadata=metadata,
        uninterpreted=rest.SerializeToString(),
    )


def _field_to_message(node: Field) -> file_pb2.Field:
    message: file_pb2.Field = file_pb2.Field.FromString(node.uninterpreted)
    message.name = node.name
    message.id = node.id
    message.parent_id = node.parent_id
    message.logical_type = node.logical_type
    message.nullable = node.nullable
    message.extension_name = node.metadata.get(EXTENSION_NAME, "")
    message.metadata.update(bytes_metadata(node.metadata))
    # Key columns are requested through metadata and also stored in their own fields.
    if node.metadata.get(PRIMARY_KEY) == "true":
        message.unenforced_primary_key = True
    for key, attribute in (
        (PRIMARY_KEY_POSITION, "unenforced_primary_key_position"),
        (CLUSTERING_KEY_POSITION, "unenforced_clustering_key_position"),
    ):
        text = node.metadata.get(key, "")
        if text.isascii() and text.isdigit() and int(text) < 2**32:
            setattr(message, attribute, int(text))
    return message

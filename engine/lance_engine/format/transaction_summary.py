"""The summary of a transaction in lists of versions, which avoids parsing all of it."""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import table_pb2

_MESSAGE_KEY = "__lance_commit_message"


class TransactionSummary(NamedTuple):
    """The kind of operation, as the format names it, and the message of its author."""

    operation: str
    message: str | None


def transaction_message(data: bytes) -> tuple[table_pb2.Transaction, str]:
    """The message of a transaction, and the kind of its operation; CorruptFileError if it has none."""
    try:
        message = table_pb2.Transaction.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("A transaction cannot be parsed") from error
    operation = message.WhichOneof("operation")
    if operation is None:
        raise CorruptFileError("A transaction has no known operation", remedy="Use a newer release")
    return message, operation


def summarize_transaction(data: bytes) -> TransactionSummary:
    """The summary of a serialised transaction; CorruptFileError if it is invalid, or of no known kind."""
    transaction, operation = transaction_message(data)
    return TransactionSummary(operation, transaction.transaction_properties.get(_MESSAGE_KEY))

"""What lists of versions say of a transaction; parsing all of it takes its many kinds of operations."""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import table_pb2

_MESSAGE_KEY = "__lance_commit_message"


class TransactionSummary(NamedTuple):
    """The kind of operation, as the format names it, and what its author said of it."""

    operation: str
    message: str | None


def summarize_transaction(data: bytes) -> TransactionSummary:
    """The summary of a serialised transaction; CorruptFileError if it is none, or of no known kind."""
    try:
        transaction = table_pb2.Transaction.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("A transaction cannot be parsed") from error
    operation = transaction.WhichOneof("operation")
    if operation is None:
        raise CorruptFileError(
            "A transaction has no operation, or one that is not known", remedy="Use a newer release"
        )
    return TransactionSummary(operation, transaction.transaction_properties.get(_MESSAGE_KEY))

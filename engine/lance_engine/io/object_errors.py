"""The outcome of a request to an object store, from the errors of its client."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple


class Outcome(Enum):
    """Why a request failed; it determines what to do next."""

    MISSING = "not found"
    TAKEN = "already exists"
    BEYOND = "beyond the end"
    WHOLE = "invalid range"
    REFUSED = "refused"
    BUSY = "too many requests"
    UNREACHABLE = "connection failed"
    STALLED = "timed out"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Failure(NamedTuple):
    """An outcome, and what the storage said, without secrets."""

    outcome: Outcome
    reason: str


class IncompleteAnswerError(Exception):
    """Fewer bytes arrived than were requested, although they exist."""


RETRIED: Final = frozenset({Outcome.BUSY, Outcome.UNREACHABLE, Outcome.STALLED, Outcome.INTERRUPTED})

_NO_RANGES: Final = re.compile(r"non-partial response|Range request not supported")
_STATUS: Final = re.compile(r"\bstatus: (\d{3})")
_KIND: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
_CODE: Final = re.compile(r"<Code>([\w.-]{1,100})</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]{1,300})")
_QUERY: Final = re.compile(r"\?\S+")
# Codes of rejected credentials that come with another status.
_REFUSALS: Final = frozenset(
    {
        *("AuthorizationHeaderMalformed", "ExpiredToken", "InvalidToken", "InvalidAccessKeyId"),
        *("PermanentRedirect", "SignatureDoesNotMatch", "TokenRefreshRequired"),
    }
)
_BUSY: Final = frozenset(
    {"SlowDown", "TooManyRequests", "ServerBusy", "RequestLimitExceeded", "ThrottlingException"}
)
_TRANSIENT: Final = frozenset({408, 500, 502, 503, 504})
_BY_NAME: Final = {
    "AlreadyExistsError": Outcome.TAKEN,
    "PreconditionError": Outcome.TAKEN,
    "PermissionDeniedError": Outcome.REFUSED,
    "UnauthenticatedError": Outcome.REFUSED,
}
_TRANSPORT: Final = {
    "Connect": Outcome.UNREACHABLE,
    "Timeout": Outcome.STALLED,
    "Interrupted": Outcome.INTERRUPTED,
    "Request": Outcome.INTERRUPTED,
    "Decode": Outcome.INTERRUPTED,
}


def failure_of(error: Exception) -> Failure:
    """Classify an error that obstore raised."""
    if isinstance(error, IncompleteAnswerError):
        return Failure(Outcome.INTERRUPTED, "the response was cut off")
    text = str(error)
    status = int(match[1]) if (match := _STATUS.search(text)) else 0
    code = match[1] if (match := _CODE.search(text)) else ""
    return Failure(_outcome(error, text, status, code), _reason(text, status, code))


def _outcome(error: Exception, text: str, status: int, code: str) -> Outcome:
    named = _BY_NAME.get(type(error).__name__)
    if isinstance(error, FileNotFoundError):
        return Outcome.MISSING
    if status:
        if code in _BUSY or status == 429:
            return Outcome.BUSY
        if code in _REFUSALS or status in (401, 403):
            return Outcome.REFUSED
        # Two conditional requests at once: the second one must retry.
        if code == "ConditionalRequestConflict":
            return Outcome.INTERRUPTED
        by_status = {404: Outcome.MISSING, 409: Outcome.TAKEN, 412: Outcome.TAKEN, 416: Outcome.BEYOND}
        if status in _TRANSIENT:
            return Outcome.INTERRUPTED
        return named or by_status.get(status, Outcome.FAILED)
    if named is not None:
        return named
    if _NO_RANGES.search(text):
        return Outcome.WHOLE
    kind = match[1] if (match := _KIND.search(text)) else ""
    return _TRANSPORT.get(kind, Outcome.FAILED)


def _reason(text: str, status: int, code: str) -> str:
    if code:
        message = match[1] if (match := _MESSAGE.search(text)) else ""
        return f"{code}: {message}" if message else code
    if status:
        return f"status {status}"
    if _NO_RANGES.search(text):
        return "the server does not support range requests"
    if "ConnectionRefused" in text:
        return "the connection was refused"
    if "dns error" in text:
        return "unknown host"
    if "TimedOut" in text or "kind: Timeout" in text:
        return "timed out"
    if "IncompleteBody" in text or "UnexpectedEof" in text or "ConnectionReset" in text:
        return "the connection was closed early"
    # Queries of addresses hold signatures.
    return _QUERY.sub("?...", text.partition("\n")[0])[:500]

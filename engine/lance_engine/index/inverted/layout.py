"""The layout of the files of an inverted index, according to their metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import table_pb2
from lance_engine.index.inverted.analysis import Analysis

METADATA_FILE: Final = "metadata.lance"
OLD_TOKENS_FILE: Final = "tokens.lance"
OLD_LISTS_FILE: Final = "invert.lance"
ROW_ID: Final = "_rowid"
LENGTH: Final = "_num_tokens"
TOKEN: Final = "_token"
TOKEN_ID: Final = "_token_id"
TRANSDUCER: Final = "_token_fst_bytes"
TRANSDUCER_KEYS: Final = "_token_next_id"
TRANSDUCER_TOTAL: Final = "_token_total_length"
POSTING: Final = "_posting"
BEST: Final = "_max_score"
COUNT: Final = "_length"
OWN_POSITIONS: Final = "_position"
POSITIONS: Final = "_compressed_position"
POSITION_OFFSETS: Final = "_position_block_offset"
DELETED: Final = "deleted_fragments"

#: Version of written posting lists.
BLOCK: Final = 128
_MOST_PARTITIONS: Final = 1 << 20


def file_name(partition: int, what: str) -> str:
    """The file of a partition with its `tokens`, `docs` or posting lists (`invert`)."""
    return f"part_{partition}_{what}.lance"


class Layout(NamedTuple):
    """The contents of the metadata of a segment."""

    partitions: tuple[int, ...]
    analysis: Analysis
    with_position: bool
    block_size: int
    varint_tail: bool
    packed_positions: bool

    @classmethod
    def parse_old(cls, metadata: Mapping[str, str], *, with_position: bool) -> Layout:
        """The layout of releases up to 0.27, as one without partitions: the tokenization counts."""
        if "tokenizer" not in metadata:
            raise UnsupportedFeatureError("The index does not describe its tokenizer")
        params = _json(metadata, "tokenizer")
        if not isinstance(params, dict):
            raise CorruptFileError("The metadata 'tokenizer' of the index is not an object")
        return cls((), Analysis.from_params(params), with_position, BLOCK, False, False)

    @classmethod
    def parse(cls, metadata: Mapping[str, str]) -> Layout:
        """CorruptFileError if it is invalid, UnsupportedFeatureError if something is unknown."""
        if "partitions" not in metadata:
            raise UnsupportedFeatureError("The index was written by an old release: it has no partitions")
        partitions = _json(metadata, "partitions")
        params = _json(metadata, "params")
        if (
            not isinstance(partitions, list)
            or len(partitions) > _MOST_PARTITIONS
            or not all(type(number) is int and 0 <= number < 1 << 64 for number in partitions)
            or len(set(partitions)) != len(partitions)
        ):
            raise CorruptFileError("The partitions of the index are not distinct numbers")
        if not isinstance(params, dict):
            raise CorruptFileError("The metadata 'params' of the index is not an object")
        block_size = metadata.get("posting_block_size", "128")
        if block_size not in ("128", "256"):
            raise UnsupportedFeatureError(f"The index has blocks of {block_size[:20]} documents")
        if metadata.get("format_version", "1") not in ("1", "2", "3"):
            raise UnsupportedFeatureError(f"The index is of the version {metadata['format_version'][:20]}")
        tail = _one_of(metadata, "posting_tail_codec", "fixed32_v1", "varint_delta_v1")
        codec = _one_of(metadata, "positions_codec", "packed_delta_v1", "varint_doc_delta_v2")
        return cls(
            tuple(partitions),
            Analysis.from_params(params),
            bool(params.get("with_position")),
            int(block_size),
            tail == "varint_delta_v1",
            codec == "packed_delta_v1",
        )


def written_metadata(analysis: Analysis, *, with_position: bool, partitions: int) -> dict[str, str]:
    """The metadata of a written segment."""
    return {
        "partitions": json.dumps(list(range(partitions))),
        "params": analysis.params(with_position=with_position, block_size=BLOCK),
        "token_set_format": "fst",
        **posting_metadata(with_position=with_position),
    }


def posting_metadata(*, with_position: bool) -> dict[str, str]:
    """The metadata of a file of posting lists."""
    posting_metadata = {
        "format_version": "2",
        "posting_block_size": str(BLOCK),
        "posting_tail_codec": "varint_delta_v1",
    }
    if with_position:
        posting_metadata |= {"positions_layout": "shared_stream_v2", "positions_codec": "packed_delta_v1"}
    return posting_metadata


def details(analysis: Analysis, *, with_position: bool) -> bytes:
    """The details message for the manifest."""
    message: bytes = table_pb2.InvertedIndexDetails(
        base_tokenizer=analysis.base_tokenizer,
        language=json.dumps(analysis.language),
        with_position=with_position,
        max_token_length=analysis.max_token_length,
        lower_case=analysis.lower_case,
        stem=analysis.stem,
        remove_stop_words=analysis.remove_stop_words,
        ascii_folding=analysis.ascii_folding,
        min_ngram_length=analysis.min_ngram_length,
        max_ngram_length=analysis.max_ngram_length,
        prefix_only=analysis.prefix_only,
        block_size=BLOCK,
        posting_format_version=2,
    ).SerializeToString()
    return message


def _json(metadata: Mapping[str, str], key: str) -> Any:
    try:
        return json.loads(metadata.get(key, ""))
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"The metadata '{key}' of the index is missing or not valid JSON") from error


def _one_of(metadata: Mapping[str, str], key: str, *known: str) -> str:
    value = metadata.get(key, known[0])
    if value not in known:
        raise UnsupportedFeatureError(f"The metadata '{key}' of the index is '{value[:40]}'")
    return value

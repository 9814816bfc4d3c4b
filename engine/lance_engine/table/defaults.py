"""What a manifest means where its writer recorded less than later writers do.

Releases of pylance up to 0.15 did not record the version of data files, and those before 0.31 left out the
highest fragment id where it was 0; pylance 14 then records the highest of those that are left after a
deletion. Changes compute with these numbers, so every version gets them as it is read: a change that took
"not recorded" for "nothing" would number two fragments alike.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from lance_engine.format.fragment import LEGACY, Fragment
from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.manifest import Manifest
from lance_engine.table.features import STABLE_ROW_IDS

# The flag of early releases for tables with files of version 2.0.
_NOT_LEGACY: Final = 4


def with_defaults(manifest: Manifest, index_section: bytes | None) -> Manifest:
    """The manifest with what it does not record, or less than its fragments have.

    The storage version stays None if the files have several and nothing says which one is that of new files:
    `check_writable` refuses changes of such a table.
    """
    changes: dict[str, Any] = {}
    highest = _max_fragment_id(manifest, index_section)
    if highest != manifest.max_fragment_id:
        changes["max_fragment_id"] = highest
    if manifest.storage_version is None:
        changes["storage_version"] = _storage_version(manifest)
    flags = manifest.reader_feature_flags | manifest.writer_feature_flags
    if flags & STABLE_ROW_IDS and not manifest.next_row_id:
        changes["next_row_id"] = max(map(_next_row_id, manifest.fragments), default=0)
    return dataclasses.replace(manifest, **changes) if changes else manifest


def _max_fragment_id(manifest: Manifest, index_section: bytes | None) -> int | None:
    known = [manifest.max_fragment_id]
    if len(manifest.fragments):
        known.append(int(fragment_ids(manifest.fragments).max()))
    if index_section is not None:
        from lance_engine.format.index_section import highest_covered  # tables without indices need none

        # Fragments that are gone. An index would seem to cover a new one with the same number.
        known.append(highest_covered(index_section))
    return max((number for number in known if number is not None), default=None)


def _storage_version(manifest: Manifest) -> str | None:
    versions = {file.storage_version for fragment in manifest.fragments for file in fragment.files}
    if not versions:
        return "2.0" if manifest.writer_feature_flags & _NOT_LEGACY else LEGACY
    return versions.pop() if len(versions) == 1 else None


def _next_row_id(fragment: Fragment) -> int:
    """One more than the highest row id of a fragment."""
    if not fragment.row_ids:
        return 0
    from lance_engine.format.row_ids import IdRange, parse_row_ids  # most tables do not need them

    segments = parse_row_ids(fragment.row_ids, fragment.physical_rows)
    ends = [part.end if isinstance(part, IdRange) else int(part.ids.max()) + 1 for part in segments if part]
    return max(ends, default=0)

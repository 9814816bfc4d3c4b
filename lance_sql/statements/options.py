"""The options of maintenance statements, of sessions and of Spark."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.table import moment_before

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.errors import SqlError

#: Hints about how to do the work, which this implementation decides by itself.
_HINTS: Final = (
    "batch_size",
    "max_rows_per_group",
    "max_source_fragments",
    "num_indices_to_merge",
    "num_segments",
    "num_threads",
)


class StatementOptions:
    """The options of a statement; every one must be asked for before `finish`."""

    def __init__(self, statement: str, given: Mapping[str, str]) -> None:
        self._statement, self._given = statement, dict(given)
        self._known: list[str] = []

    def text(self, name: str) -> str | None:
        self._known.append(name)
        return self._given.pop(name, None)

    def number(self, name: str, *, least: int = 0) -> int | None:
        said = "> 0" if least else "a whole number"
        value: int | None = self._parsed(name, int, lambda value: least <= value < 1 << 63, said)
        return value

    def share(self, name: str) -> float | None:
        value: float | None = self._parsed(name, float, lambda value: 0 <= value <= 1, "between 0 and 1")
        return value

    def flag(self, name: str) -> bool | None:
        text = self.text(name)
        if text is None or text.lower() in ("true", "false"):
            return None if text is None else text.lower() == "true"
        raise SqlError(f"{self._statement} {name} must be true or false, not {text!r}")

    def _parsed(self, name: str, parse: Callable[[str], Any], fits: Callable[[Any], bool], said: str) -> Any:
        text = self.text(name)
        if text is None:
            return None
        try:
            value = parse(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise SqlError(f"{self._statement} {name} must be {said}, not {text!r}")
        return value

    def finish(self) -> None:
        """Refuse the options that are left; hints are accepted."""
        left = next((name for name in self._given if name not in _HINTS), None)
        if left is not None:
            raise SqlError(
                f"Unknown option {left} of {self._statement}",
                remedy=f"Choose from {', '.join(self._known)}" if self._known else "Leave it out",
            )


def constant(text: str) -> int | float | bool | str:
    """The value of an option of an index, which Spark and the command line pass as text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def optimized(dataset: SqlDataset, arguments: Mapping[str, Any]) -> tuple[SqlDataset, dict[str, int]]:
    """A dataset after OPTIMIZE: small fragments merged, deleted rows removed, indices updated; and counts."""
    # Fragments covered by an index are not merged with others; and some index kinds cannot follow moved rows.
    changed = dataset.optimize_indices().compact(**arguments).optimize_indices()
    return changed, {
        "fragments_before": len(dataset.snapshot.fragments),
        "fragments_after": len(changed.snapshot.fragments),
        "version": changed.version,
    }


def compaction_arguments(read: StatementOptions) -> dict[str, Any]:
    """The options of OPTIMIZE as arguments of `Dataset.compact`."""
    arguments: dict[str, Any] = {}
    for option, argument in (
        ("target_rows_per_fragment", "target_rows"),
        ("max_bytes_per_file", "target_bytes"),
    ):
        value = read.number(option)
        if value:  # 0 stands for the default
            arguments[argument] = value
    share = read.share("materialize_deletions_threshold")
    if share is not None:
        arguments["deleted_share"] = share
    if read.flag("materialize_deletions") is False:
        arguments["deleted_share"] = 1.0
    if read.flag("defer_index_remap"):
        raise UnsupportedFeatureError(
            "OPTIMIZE does not support defer_index_remap", remedy="Leave it out: indices are updated at once"
        )
    return arguments


def refuse_old_tags(dataset: SqlDataset, age: datetime.timedelta) -> None:
    """SqlError if a version that is older than `age` has a tag."""
    before = moment_before(age)
    tagged = {tag.version: tag.name for tag in dataset.tags.list()}
    old = [
        tagged[row["version"]]
        for row in dataset.inspect.versions().to_pylist()
        if row["version"] in tagged and row["committed_at"] < before
    ]
    if old:
        raise SqlError(
            f"Tags name versions that are old enough to be removed: {', '.join(sorted(old))}",
            remedy="Delete the tags, or leave out error_if_tagged_old_versions, which keeps them",
        )

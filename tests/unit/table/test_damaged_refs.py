"""Tags and branches that name what cannot be: an error for bad files, as for any other damage."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError

import lance_sql


@pytest.mark.parametrize("branch", ["\0", "..", "../x", "a//b", "/", "", "main", "x.lock", 3, []])
def test_a_tag_of_an_impossible_branch(tmp_path: Path, branch: object) -> None:
    dataset = lance_sql.write(pa.table({"a": [1]}), tmp_path / "t.lance")
    dataset.tags.create("t")
    file = tmp_path / "t.lance" / "_refs" / "tags" / "t.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"branch": branch}))
    with pytest.raises(CorruptFileError, match="does not name a branch"):
        lance_sql.open(dataset.uri, tag="t")
    assert dataset.tags.list() == []
    dataset.tags.delete("t")

"""Which version is opened, and which arguments are not versions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidArgumentError, VersionNotFoundError

import lance_sql


@pytest.fixture
def path(tmp_path):
    return lance_sql.write(pa.table({"a": [1]}), tmp_path / "x.lance").uri


@pytest.mark.parametrize("version", ["1", 1.0, [1]])
def test_a_version_is_a_whole_number(path, version):
    with pytest.raises(InvalidArgumentError, match=r"version must be a whole number, not .*tag="):
        lance_sql.open(path, version=version)


def test_whole_numbers_of_numpy(path):
    assert lance_sql.open(path, version=np.int64(1)).version == 1
    with pytest.raises(VersionNotFoundError):
        lance_sql.open(path, version=7)


def test_one_choice_only(path):
    with pytest.raises(InvalidArgumentError, match="only one of"):
        lance_sql.open(path, version=1, tag="prod")

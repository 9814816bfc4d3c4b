"""Everything that outlives a call is in the table of the page about the architecture."""

from __future__ import annotations

import re

from test_layers import ROOTS
from walk import PAGE

_KEEPS = re.compile(
    r"= (LruCache|WeakIdentityDict|LiveObjects)\(|LruCache\(_|\(LruCache, |lru_cache\(|"
    r"^@(functools\.)?cache$",
    re.M,
)


def test_everything_that_lance_sql_keeps_is_listed() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## What SQL layers keep")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `([\w/]+\.py)`", section, re.MULTILINE)
    root = ROOTS["lance_sql"]
    keeping = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if _KEEPS.search(path.read_text(encoding="utf-8"))
    }
    keeping.discard("spark/kept.py")  # of workers, which Spark ends
    assert sorted(listed) == sorted(keeping | {"pushdown/coded_tables.py"})

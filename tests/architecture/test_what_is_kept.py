"""Everything that outlives a call is in the table of the page about the architecture."""

from __future__ import annotations

import re

import pytest
from test_layers import ROOTS
from walk import PAGE

_KEEPS = re.compile(
    r"= (LruCache|WeakIdentityDict|WeakKeyDictionary|LiveObjects|OrderedDict)\(|"
    r"LruCache\(_|\(LruCache, |lru_cache\(|"
    r"^@(functools\.)?cache$|"
    # Names of a module that are filled later; constants have names in capitals.
    r"^_?[a-z]\w*(: .+)? = (\{\}|\[\]|set\(\)|deque\()",
    re.M,
)
#: Attributes of objects that a session or a plan keeps.
_ATTRIBUTES = {"lance_sql": {"engines/key_conditions.py", "installed/searches.py"}, "lance_engine": set()}


@pytest.mark.parametrize("distribution", ROOTS)
def test_everything_that_is_kept_is_listed(distribution: str) -> None:
    section = PAGE.read_text(encoding="utf-8").split("## What is kept")[1].split("\n## ")[0]
    table = section.split(f"\n`{distribution}`:\n")[1].strip().split("\n\n")[0]
    rows = (line.split(" | ")[0] for line in table.splitlines())
    listed = [name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row)]
    root = ROOTS[distribution]
    keeping = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if _KEEPS.search(path.read_text(encoding="utf-8"))
    }
    assert sorted(listed) == sorted(keeping | _ATTRIBUTES[distribution])

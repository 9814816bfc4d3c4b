"""The Python of the README and the docs as modules, for mypy: ``typed_examples.py FOLDER``.

`make lint` checks them together with the package, so that mypy reads it once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from documentation import code_blocks

ROOT = Path(__file__).parents[2]
#: Not checked: the stubs of the libraries named are not complete enough for these.
UNTYPED = ("integrations.md", "spark.md", "from-delta.md")
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page.name not in UNTYPED and any(block.language == "python" for block in code_blocks(page))
]


def write(folder: Path) -> list[Path]:
    """A module for each page, in a package; errors have the line numbers of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    (folder / "__init__.py").touch()
    programs = []
    for page in PAGES:
        lines: list[str] = []
        for block in code_blocks(page):
            if block.language == "python":
                lines += [""] * (block.line - 1 - len(lines)) + block.code.splitlines()
        programs.append(folder / f"{page.stem.replace('-', '_').lower()}_page.py")
        programs[-1].write_text("\n".join(lines) + "\n")
    return programs


if __name__ == "__main__":
    write(Path(sys.argv[1]))

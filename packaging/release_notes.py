"""Print what the changelog says about a version: ``release_notes.py 0.1.0``."""

import re
import sys
from pathlib import Path

TEXT = Path(__file__).parents[1].joinpath("CHANGELOG.md").read_text(encoding="utf-8")


def notes(version: str) -> str:
    """The section of a version, or of what is not released yet."""
    sections = dict(re.findall(r"(?ms)^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", TEXT))
    return sections.get(version, sections["Unreleased"]).strip()


if __name__ == "__main__":
    print(notes(sys.argv[1]))

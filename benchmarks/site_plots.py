"""A hook for mkdocs: ``<!-- plots: NAME -->`` in a page becomes bars of ``benchmarks/results/NAME.json``."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any, Final

MARK: Final = re.compile(r"^<!-- plots: (\w+) -->$", re.MULTILINE)
RESULTS: Final = Path(__file__).parent / "results"
COLOURS: Final = ("#3f51b5", "#9e9e9e", "#00897b", "#ef6c00", "#8e24aa")
WIDTH, LABEL, BAR, GAP = 720, 150, 20, 6
#: The cases in the picture of the README.
PICTURED: Final = ("filter, one month", "take 1,000 rows")
PICTURE: Final = Path(__file__).parents[1] / "docs" / "images" / "benchmark.svg"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    return MARK.sub(lambda found: drawn(json.loads((RESULTS / f"{found[1]}.json").read_text())), markdown)


def drawn(result: dict[str, Any]) -> str:
    """Where the figures come from, and one picture for each case."""
    parts = [f"<p>{html.escape(about(result))}</p>"]
    for case, times in result["milliseconds"].items():
        parts.append(f"<h3>{html.escape(case[0].upper() + case[1:])}</h3>\n{bars(case, times)}")
    return "\n\n".join(parts)


def bars(case: str, times: dict[str, float]) -> str:
    """Horizontal bars, the shortest time first."""
    longest = max(times.values())
    colours = dict(zip(times, COLOURS, strict=False))
    room = WIDTH - LABEL - 90
    rows = []
    for row, (name, time) in enumerate(sorted(times.items(), key=lambda item: item[1])):
        top, length = row * (BAR + GAP), max(2.0, room * time / longest)
        weight = ' font-weight="bold"' if name == "lance-sql" else ""
        rows.append(
            f'<text x="{LABEL - 8}" y="{top + 15}" text-anchor="end"{weight}>{html.escape(name)}</text>'
            f'<rect x="{LABEL}" y="{top}" width="{length:.1f}" height="{BAR}" rx="3" fill="{colours[name]}"/>'
            f'<text x="{LABEL + length + 8:.1f}" y="{top + 15}">{milliseconds(time)}</text>'
        )
    height = len(times) * (BAR + GAP)
    label = html.escape(
        f"{case}: " + ", ".join(f"{name} {milliseconds(time)}" for name, time in times.items())
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" role="img" aria-label="{label}" font-size="13" '
        f'fill="currentColor" style="max-width:{WIDTH}px">{"".join(rows)}</svg>'
    )


def picture(result: dict[str, Any]) -> str:
    """Two of the cases in one picture, legible on light and dark pages: that of the README."""
    parts, top = [], 0
    for case in PICTURED:
        times = result["milliseconds"][case]
        height = len(times) * (BAR + GAP)
        parts.append(
            f'<text y="{top + 15}" font-weight="bold">{html.escape(case[0].upper() + case[1:])}</text>'
        )
        drawn = bars(case, times).replace("<svg ", f'<svg y="{top + 24}" height="{height}" ', 1)
        parts.append(drawn)
        top += 24 + height + 12
    size = f'viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} color="#7d8590" fill="#7d8590" font-size="13" '
        f'font-family="sans-serif">{"".join(parts)}</svg>\n'
    )


def about(result: dict[str, Any]) -> str:
    """What was measured, where and when."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"{result['data']}. {result['machine']}. {versions}. Measured on {result['date']}."


def milliseconds(time: float) -> str:
    """A time with three significant digits."""
    digits = 0 if time >= 100 else 1 if time >= 10 else 2
    return f"{time:,.{digits}f} ms"


if __name__ == "__main__":
    PICTURE.write_text(picture(json.loads((RESULTS / "peers.json").read_text())), encoding="utf-8")

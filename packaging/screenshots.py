"""``make screenshots``: take the pictures of the README and docs, in a real browser and a real terminal.

Needs Chromium, and the packages ``playwright``, ``pexpect``, ``pyte``, ``nbconvert`` and ``ipykernel``. The
pictures go to ``docs/images``; look at them before you commit them.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import nbformat
import pexpect
import pyte
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor
from playwright.sync_api import Browser, sync_playwright

import lance_sql

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs" / "images"
COLUMNS, LINES = 104, 34
PROMPT: Final = "lance> "
#: The terminal's 16 colours.
COLOURS: Final = {
    "default": "#e6e6e6", "black": "#2b2b2b", "red": "#f2777a", "green": "#99cc99", "brown": "#ffcc66",
    "yellow": "#ffcc66", "blue": "#6699cc", "magenta": "#cc99cc", "cyan": "#66cccc", "white": "#ffffff",
}  # fmt: skip
STATEMENTS: Final = [
    "SELECT l_returnflag, count(*) AS lines, avg(l_quantity) FROM lineitem GROUP BY ALL ORDER BY ALL;",
    "SELECT sum(l_extendedprice) FROM lineitem WHERE l_shipdat > '1998-11-01';",
    "EXPLAIN SELECT l_orderkey FROM lineitem WHERE l_orderkey BETWEEN 1000 AND 2000;",
]


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    generate = [program("tpchgen-cli"), "parquet", "--scale-factor", "0.02", "--tables", "lineitem"]
    subprocess.run([*generate, "--output-dir", str(folder)], check=True, capture_output=True)
    table = lance_sql.sql(f"FROM '{folder}/lineitem.parquet' ORDER BY l_shipdate").arrow()
    dataset = lance_sql.write(table, folder / "lineitem.lance", max_rows_per_file=60_000)
    dataset.create_index("l_orderkey", "btree")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        report(browser, folder)
        page(browser, shell(folder), "shell", 960, 300, whole=True)
        page(browser, notebook(folder), "notebook", 1000, 900, whole=True)
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=ROOT, check=True)
        page(browser, ROOT / "build" / "site" / "index.html", "site", 1280, 800)
        browser.close()


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def page(
    browser: Browser,
    file: Path,
    name: str,
    width: int,
    height: int,
    scheme: Any = "light",
    *,
    whole: bool = False,
) -> None:
    """A picture of the top of the page, or, with `whole`, of all of it."""
    opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened.goto(file.as_uri())
    opened.screenshot(path=IMAGES / f"{name}.png", full_page=whole)
    opened.close()
    print(IMAGES / f"{name}.png")


def report(browser: Browser, folder: Path) -> None:
    """Wide and narrow, light and dark."""
    target = folder / "report.html"
    inspect = [program("lance-sql"), "inspect", "lineitem.lance", "--html", str(target)]
    subprocess.run(inspect, cwd=folder, check=True)
    page(browser, target, "report", 1080, 900)
    page(browser, target, "report-dark", 1080, 900, "dark")
    page(browser, target, "report-narrow", 390, 844)


def shell(folder: Path) -> Path:
    """A terminal session as a page: every character is where the terminal shows it."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    child = pexpect.spawn(
        program("lance-sql"),
        ["shell", "--directory", ".", "--history", "history"],
        cwd=str(folder),
        env=os.environ | {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"},
        dimensions=(LINES, COLUMNS),
    )
    for statement in ["", *STATEMENTS]:
        if statement:
            child.send(statement + "\r")
        until_prompt(child, screen, stream)
    child.close(force=True)
    lines = []
    for number in range(screen.cursor.y + 1):
        row = screen.buffer[number]
        cells = (
            f'<span style="color:{colour(row[column])}">{html.escape(row[column].data)}</span>'
            for column in range(COLUMNS)
        )
        lines.append("".join(cells))
    target = folder / "shell.html"
    body = "\n".join(lines)
    target.write_text(
        '<!doctype html><meta charset="utf-8"><body style="margin:0;background:#1e1e1e">'
        '<pre style="margin:16px;'
        f"font:15px/17px 'DejaVu Sans Mono',monospace\">{body}</pre>"
    )
    return target


def until_prompt(child: pexpect.spawn[bytes], screen: pyte.Screen, stream: pyte.ByteStream) -> None:
    """Show what the terminal prints until the shell waits for the next statement."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            stream.feed(child.read_nonblocking(1 << 16, timeout=1))
        except pexpect.TIMEOUT:
            # No output for a second, and the cursor is after an empty prompt.
            if screen.display[screen.cursor.y].rstrip() == PROMPT.rstrip():
                return
    raise TimeoutError("the shell shows no prompt")


def colour(cell: Any) -> str:
    return COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 else COLOURS["default"])


def notebook(folder: Path) -> Path:
    """An executed notebook, as Jupyter exports it."""
    cells = [
        "import lance_sql\nds = lance_sql.open('lineitem.lance')\nds",
        "lance_sql.sql(\"SELECT l_returnflag, count(*) AS n FROM 'lineitem.lance' GROUP BY ALL\")",
        "ds.scan(columns=['l_orderkey', 'l_tax'], filter='l_orderkey = 7').explain()",
        "ds.scan(columns=['l_orderkey', 'l_tax'], filter='l_orderkey = 7').explain(html=True)",
        "ds.take([10**12])",
    ]
    found = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    ExecutePreprocessor(timeout=120, allow_errors=True).preprocess(found, {"metadata": {"path": str(folder)}})
    body, _ = HTMLExporter(template_name="classic").from_notebook_node(found)
    target = folder / "notebook.html"
    target.write_text(body)
    return target


if __name__ == "__main__":
    main()

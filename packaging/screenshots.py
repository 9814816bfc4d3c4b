"""``make screenshots``: pictures of report, shell, notebook and site, in a real browser and a real terminal.

Each at three widths, light and dark, in ``build/screens``; those of README and docs in ``docs/images``. Look
at them before you commit them. Needs Chromium, and the packages ``playwright``, ``pexpect``, ``pyte``,
``nbconvert`` and ``ipykernel``. ``screenshots.py shell`` only takes the screens with that name.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
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
SCREENS: Final = ROOT / "build" / "screens"
WIDTHS: Final = (1300, 800, 390)
SCHEMES: Final = ("light", "dark")
LINES: Final = 40
#: Pixels of a character, and those beside the text, in pictures of the terminal.
CHARACTER, MARGIN = 9.03, 32
PROMPT: Final = "lance> "
#: The terminal's background, and its 16 colours.
COLOURS: Final = {
    "dark": {
        "background": "#1e1e1e", "default": "#e6e6e6", "black": "#2b2b2b", "red": "#f2777a",
        "green": "#99cc99", "brown": "#ffcc66", "yellow": "#ffcc66", "blue": "#6699cc", "magenta": "#cc99cc",
        "cyan": "#66cccc", "white": "#ffffff", "brightblack": "#909090",
    },
    "light": {
        "background": "#ffffff", "default": "#202020", "black": "#202020", "red": "#b42318",
        "green": "#2e7d32", "brown": "#8a6d00", "yellow": "#8a6d00", "blue": "#1f5fb4", "magenta": "#8e24aa",
        "cyan": "#00728a", "white": "#606060", "brightblack": "#707070",
    },
}  # fmt: skip
STATEMENTS: Final = [
    "SELECT l_returnflag, count(*) AS lines, avg(l_quantity) FROM lineitem GROUP BY ALL ORDER BY ALL;",
    "SELECT sum(l_extendedprice) FROM lineitem WHERE l_shipdat > '1998-11-01';",
    "EXPLAIN SELECT l_orderkey FROM lineitem WHERE l_orderkey BETWEEN 1000 AND 2000;",
]
#: What narrow and wide windows show in different ways.
MORE: Final = [
    "SELECT * FROM lineitem LIMIT 3;",
    "\\x",
    "SELECT * FROM lineitem LIMIT 1;",
    "\\x",
    "\\d lineitem",
    "SELEC 1;",
]


def main(names: list[str]) -> None:
    IMAGES.mkdir(exist_ok=True)
    SCREENS.mkdir(parents=True, exist_ok=True)
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
        for take in (report, shell, notebook, site):
            if not names or take.__name__ in names:
                take(browser, folder)
        browser.close()


def screens(browser: Browser, name: str, page_of: Callable[[int, str], Path]) -> None:
    """The whole page at every width, light and dark; `page_of` makes it for a width and a scheme."""
    for scheme in SCHEMES:
        for width in WIDTHS:
            target = SCREENS / f"{name}-{width}-{scheme}.png"
            page(browser, page_of(width, scheme), target, width, 900, scheme, whole=True)


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def page(
    browser: Browser,
    file: Path,
    target: Path,
    width: int,
    height: int,
    scheme: Any = "light",
    *,
    whole: bool = False,
) -> None:
    """A picture of the top of the page, or of all of it (`whole`); says if it is wider than the window."""
    opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened.goto(file.as_uri())
    opened.wait_for_load_state("networkidle")
    needs = opened.evaluate("document.documentElement.scrollWidth")
    opened.screenshot(path=target, full_page=whole)
    opened.close()
    print(target, f"needs {needs} pixels" if needs > width else "")


def report(browser: Browser, folder: Path) -> None:
    made = folder / "report.html"
    inspect = [program("lance-sql"), "inspect", "lineitem.lance", "--html", str(made)]
    subprocess.run(inspect, cwd=folder, check=True)
    screens(browser, "report", lambda width, scheme: made)
    page(browser, made, IMAGES / "report.png", 1080, 900)
    page(browser, made, IMAGES / "report-dark.png", 1080, 900, "dark")
    page(browser, made, IMAGES / "report-narrow.png", 390, 844)


def site(browser: Browser, folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet"],
        cwd=ROOT,
        check=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    built = ROOT / "build" / "site"
    for name in ("index", "guide", "sql", "cli", "notebooks", "api"):
        made = built / f"{name}.html"
        screens(browser, f"site-{name}", lambda width, scheme, made=made: made)
    page(browser, built / "index.html", IMAGES / "site.png", 1280, 800)


def shell(browser: Browser, folder: Path) -> None:
    screens(browser, "shell", lambda width, scheme: terminal(folder, width, scheme, STATEMENTS + MORE))
    page(browser, terminal(folder, 960, "dark", STATEMENTS), IMAGES / "shell.png", 960, 300, whole=True)


def terminal(folder: Path, width: int, scheme: str, statements: list[str]) -> Path:
    """A terminal session as a page: every character is where the terminal shows it."""
    columns = int((width - MARGIN) / CHARACTER)
    screen = pyte.HistoryScreen(columns, LINES, history=1000)
    stream = pyte.ByteStream(screen)
    child = pexpect.spawn(
        program("lance-sql"),
        ["shell", "--directory", ".", "--history", "history"],
        cwd=str(folder),
        env=os.environ | {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "PAGER": "cat"},
        dimensions=(LINES, columns),
    )
    for statement in ["", *statements]:
        if statement:
            child.send(statement + "\r")
        until_prompt(child, screen, stream)
    child.close(force=True)
    colours = COLOURS[scheme]
    rows = [*screen.history.top, *(screen.buffer[number] for number in range(screen.cursor.y + 1))]
    lines = []
    for row in rows:
        cells = (
            f'<span style="color:{colour(row[column], colours)}">{html.escape(row[column].data)}</span>'
            for column in range(columns)
        )
        lines.append("".join(cells))
    target = folder / "shell.html"
    body = "\n".join(lines)
    target.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="margin:0;background:{colours["background"]}">'
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


def colour(cell: Any, colours: Mapping[str, str]) -> str:
    return colours.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 else colours["default"])


def notebook(browser: Browser, folder: Path) -> None:
    """An executed notebook, with JupyterLab's template."""
    cells = [
        "import lance_sql\nds = lance_sql.open('lineitem.lance')\nds",
        "lance_sql.sql(\"SELECT l_returnflag, count(*) AS n FROM 'lineitem.lance' GROUP BY ALL\")",
        "ds.scan(columns=['l_orderkey', 'l_tax'], filter='l_orderkey = 7').explain()",
        "ds.scan(columns=['l_orderkey', 'l_tax'], filter='l_orderkey = 7').explain(html=True)",
        "ds.take([10**12])",
    ]
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    runner = ExecutePreprocessor(timeout=120, allow_errors=True)
    runner.preprocess(executed, {"metadata": {"path": str(folder)}})

    def made(width: int, scheme: str) -> Path:
        target = folder / "notebook.html"
        target.write_text(HTMLExporter(template_name="lab", theme=scheme).from_notebook_node(executed)[0])
        return target

    screens(browser, "notebook", made)
    page(browser, made(1000, "light"), IMAGES / "notebook.png", 1000, 900, whole=True)


if __name__ == "__main__":
    main(sys.argv[1:])

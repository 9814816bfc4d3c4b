"""``make first-hour``: what new users see who type what they are used to.

Each trial runs in a folder of its own, one statement after the other, as in a Python shell, a terminal or a
notebook; its transcript goes to ``build/first_hour``. A line with ``# mistake`` must fail, every other one
must work. Read the transcripts as that person would. ``run.py analyst`` runs the trials with that name.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
BUILD: Final = HERE.parents[1] / "build" / "first_hour"
MISTAKE: Final = "# mistake"
FAILED: Final = "[exit status "


def main(names: list[str]) -> int:
    """Run the trials; the exit code says whether every line did what it should."""
    surprises = []
    for trial in sorted(HERE.glob("[0-9]*")):
        if names and not any(name in trial.stem for name in names):
            continue
        transcript = _run(trial)
        print(transcript.read_text(), f"----- {transcript}", sep="\n")
        expected = trial.read_text().count(MISTAKE)
        failed = transcript.read_text().count(FAILED)
        if failed != expected:
            surprises.append(f"{trial.name}: {failed} lines failed, {expected} should")
    print(*surprises, sep="\n")
    return len(surprises)


def _run(trial: Path) -> Path:
    """Run a trial and return its transcript."""
    transcript, folder = BUILD / f"{trial.stem}.txt", BUILD / trial.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with transcript.open("w") as output:
        subprocess.run(
            [sys.executable, __file__, "--", str(trial)],
            cwd=folder,
            stdout=output,
            stderr=output,
            env=os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1"},
        )
    return transcript


def python(trial: Path) -> None:
    """Run the statements of a file as a Python shell does."""
    text = trial.read_text()
    lines, names = text.splitlines(), {"__name__": "__main__"}
    end = 0
    for node in ast.parse(text).body:
        begin, end = end, node.end_lineno or 0
        shown = [line for line in lines[begin:end] if line.strip()]
        print(*(f"{'>>>' if number == 0 else '...'} {line}" for number, line in enumerate(shown)), sep="\n")
        try:
            exec(compile(ast.Interactive([node]), str(trial), "single"), names)
        except BaseException as error:
            trace = error.__traceback__
            traceback.print_exception(error.with_traceback(trace.tb_next if trace else None))
            print(f"{FAILED}1]")


def terminal(trial: Path) -> None:
    """Run the commands of a file as a terminal does."""
    for command in re.findall(r"(?ms)^[^\n]*<<'END'[^\n]*$.*?^END$|^[^\n]+$", trial.read_text()):
        print(f"$ {command}")
        status = subprocess.run(["bash", "-c", command]).returncode
        if status:
            print(f"{FAILED}{status}]")


def notebook(trial: Path) -> None:
    """Run a notebook in a kernel, and make its page with JupyterLab's template, and pictures of it."""
    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    cells = nbformat.read(trial, as_version=4)
    ExecutePreprocessor(timeout=120, allow_errors=True).preprocess(cells)
    for cell in cells.cells:
        print(f"[{cell.execution_count}] {cell.source}")
        for output in cell.outputs:
            text = output.get("text") or output.get("data", {}).get("text/plain")
            print(text or "\n".join(output.traceback))
            if output.output_type == "error":
                print(f"{FAILED}1]")
    browser = shutil.which("chromium")
    # Pictures where there is a browser.
    for theme in ("light", "dark"):
        page = BUILD / f"notebook-{theme}.html"
        page.write_text(HTMLExporter(template_name="lab", theme=theme).from_notebook_node(cells)[0])
        for width in (1300, 800, 390) if browser else ():
            picture = f"--screenshot={page.with_name(f'{page.stem}-{width}.png')}"
            options = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},5000"]
            subprocess.run([browser, *options, picture, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--", trial]:
            {".py": python, ".sh": terminal, ".ipynb": notebook}[Path(trial).suffix](Path(trial))
        case names:
            sys.exit(main(names))

"""Finds the code blocks of a Markdown page, and runs them in order as a reader would."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\s*$")
NOT_RUN = re.compile(r"^<!-- not run: (\S.*) -->$")
NEEDS = re.compile(r"^<!-- needs: (\w+) -->$")
#: The block shows what the block before it prints.
OUTPUT = "<!-- output -->"


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block. `line` is the 1-based line of its first line of code."""

    page: Path
    line: int
    language: str
    code: str
    not_run: str | None
    needs: str | None
    is_output: bool = False

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def code_blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page; a comment on the line before a fence says what is special about it."""
    before, start, language, code = "", 0, None, []
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        fence = FENCE.match(line)
        if language is None and fence:
            language, start, code = fence.group(1), number + 1, []
        elif language is not None and line == "```":
            not_run, needs = NOT_RUN.match(before), NEEDS.match(before)
            yield Block(
                page,
                start,
                language,
                "\n".join(code),
                not_run and not_run.group(1),
                needs and needs.group(1),
                before == OUTPUT,
            )
            language, before = None, ""
        elif language is not None:
            code.append(line)
        else:
            before = line
    if language is not None:
        raise AssertionError(f"{page}: the code block opened before line {start} is never closed")


def run_python(block: Block, namespace: dict[str, object]) -> str:
    """Execute in `namespace`, which the blocks of one page share, and return what it prints.

    Tracebacks show the page's line numbers.

    Every bare expression is shown as a notebook would: a query result only runs when somebody looks at it.
    """
    page = str(block.page)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for statement in ast.parse("\n" * (block.line - 1) + block.code, page).body:
            if isinstance(statement, ast.Expr):
                repr(eval(compile(ast.Expression(statement.value), page, "eval"), namespace))
            else:
                exec(compile(ast.Module([statement], []), page, "exec"), namespace)
    return printed.getvalue()


def run_sql(block: Block) -> None:
    """Every statement of the block, on DuckDB."""
    import lance_sql

    for statement in filter(None, (part.strip() for part in block.code.split(";"))):
        repr(lance_sql.sql(statement))


def run_bash(block: Block) -> str:
    """What it prints, in the current directory, with this environment's commands first on PATH."""
    import quick_commands

    folders = [quick_commands.folder(), Path(sys.executable).parent, os.environ["PATH"]]
    path = os.pathsep.join(map(str, folders))
    command = ["bash", "-euo", "pipefail", "-c", block.code]
    done = subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{block.place}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_output(block: Block, printed: str) -> None:
    """AssertionError if a page shows another output than its code prints."""
    lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    assert lines == block.code.strip("\n"), f"{block.place}: the code above prints\n{lines}"

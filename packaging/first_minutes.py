"""``make first-minutes``: record what a reader sees who follows the README from top to bottom.

Two readers, each with an empty folder and one terminal: one clones the repository, the other installs the
wheel of ``dist/`` with pip into an empty environment. Every block of the README is pasted as it is: commands
into the terminal, Python into ``python``, SQL into ``lance-sql shell``. The transcript goes to the file that
is named. Needs ``pexpect``, and what the README asks for; fails if a step does.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import pexpect

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "docs"))
from documentation import Block, code_blocks  # noqa: E402

PROMPT: Final = "reader$ "
#: What a failed step prints, with any exit code.
FAILED: Final = re.compile(
    r"^(Traceback \(most recent call last\)|\w*(Error|Exception)\b|error:|.*command not found)",
    re.MULTILINE | re.IGNORECASE,
)
ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>()][0B]?|\a")


class Terminal:
    """A shell that receives typed text; its output goes to the transcript."""

    def __init__(self, folder: Path, transcript: Transcript) -> None:
        kept = re.compile("(PATH|HOME|LANG|TMPDIR|JAVA_HOME|(PIP|CCACHE)_.*)$")
        environment = {name: value for name, value in os.environ.items() if kept.match(name)}
        environment |= {"TERM": "dumb", "PS1": PROMPT, "COLUMNS": "118"}
        bash = ["--norc", "--noprofile"]
        self._child = pexpect.spawn(
            "bash", bash, cwd=str(folder), env=environment, dimensions=(40, 118), encoding="utf-8"
        )
        self._transcript = transcript
        self._child.expect_exact(PROMPT)

    def command(self, line: str, minutes: float = 60) -> None:
        self._transcript.add(PROMPT)
        self._child.send(line + "\n")
        self._wait(60 * minutes)

    def program(self, name: str, prompt: str, text: str, leave: str) -> None:
        """Paste `text` at the prompt of a program, and leave it."""
        self._child.send(name + "\n")
        self._child.expect_exact(prompt, timeout=300)
        self._transcript.add(PROMPT + self._seen() + prompt)
        self._child.send(text + "\n")
        if name != "python":  # it would read the following text itself
            self._child.expect_exact(prompt, timeout=300)
            self._transcript.add(self._seen())
        self._child.send("\n" + leave + "\n")
        self._wait(600)

    def _wait(self, seconds: float) -> None:
        """Wait for the running command, and fail if it failed."""
        self._child.expect_exact(PROMPT, timeout=seconds)
        seen = self._seen()
        self._transcript.add(seen)
        self._child.send("echo status-$?\n")
        self._child.expect(r"status-(\d+)\r\n")
        status = self._child.match.group(1)
        self._child.expect_exact(PROMPT)
        failed = FAILED.search(seen)
        if failed or status != "0":
            raise SystemExit(
                f"a step of the README failed: {failed.group() if failed else f'status {status}'}"
            )

    def _seen(self) -> str:
        return ESCAPES.sub("", self._child.before).replace("\r", "")

    def close(self) -> None:
        self._child.close(force=True)


class Transcript:
    """The transcript so far, on standard output and in a file."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("w")
        self._begin = time.monotonic()

    def add(self, text: str) -> None:
        for stream in (sys.stdout, self._file):
            print(text, end="", file=stream, flush=True)

    def title(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._begin), 60)
        self.add(f"\n##### {minutes}:{seconds:02d}  {text}\n")


def paste(block: Block, terminal: Terminal) -> None:
    match block.language:
        case "bash":
            for line in block.code.splitlines():
                if not line.startswith("make test"):  # continuous integration runs it
                    terminal.command(line)
        case "python":
            terminal.program("python", ">>> ", block.code, "exit()")
        case "sql":
            terminal.program("lance-sql shell", "lance> ", block.code, "exit")


def read(start: list[str], steps: list[Block], transcript: Transcript) -> None:
    """One reader, in a folder that is initially empty."""
    with tempfile.TemporaryDirectory() as folder:
        terminal = Terminal(Path(folder), transcript)
        try:
            for command in start:
                transcript.title(command)
                terminal.command(command)
            for step in steps:
                transcript.title(f"{step.place} ({step.language})")
                paste(step, terminal)
        finally:
            terminal.close()


def main() -> None:
    transcript = Transcript(Path(sys.argv[1]))
    version = sys.version_info
    wheels = sorted((ROOT / "dist").glob(f"lance_sql-*-cp{version.major}{version.minor}-*.whl"))
    if not wheels:
        raise SystemExit("there is no wheel for this Python in dist/: run `make wheel`")
    blocks = [block for block in code_blocks(ROOT / "README.md") if block.language != "text"]
    if shutil.which("java") is None:
        blocks = [block for block in blocks if block.needs != "spark"]

    transcript.title("A fresh clone")
    read([f"git clone --quiet {ROOT} lance-sql", "cd lance-sql"], blocks, transcript)
    transcript.title("A fresh installation")
    python = Path(sys.base_prefix) / "bin" / f"python{version.major}.{version.minor}"
    install = f"pip install --quiet '{wheels[-1]}[shell,spark]'"
    read(
        [f"{python} -m venv env", ". env/bin/activate", install],
        [block for block in blocks if not block.not_run],
        transcript,
    )
    transcript.title("done")


if __name__ == "__main__":
    main()

"""Print the requirements of the build; with names of extras also what they and the package need."""

import sys
import tomllib
from pathlib import Path

PYPROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())


def requirements(extras: list[str]) -> list[str]:
    project = PYPROJECT["project"]
    # pip before 23.1, of Debian 12, warns about packages without wheels unless it can make one.
    tools = [*PYPROJECT["build-system"]["requires"], "cmake", "wheel"]
    if not extras:
        return tools
    return (
        tools
        + project["dependencies"]
        + [line for name in extras for line in project["optional-dependencies"][name]]
    )


if __name__ == "__main__":
    print(*requirements(sys.argv[1:]), sep="\n")

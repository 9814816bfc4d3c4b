"""Finds Java, which Spark needs, and explains how to install it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

MINIMUM_JAVA = 17
HOW_TO_INSTALL = (
    f"Spark needs Java {MINIMUM_JAVA} or newer. Install it "
    "(Debian, Ubuntu: apt install openjdk-17-jre-headless; Fedora: dnf install java-17-openjdk-headless; "
    "macOS: brew install openjdk@17) or point JAVA_HOME at it."
)


def java_version() -> int | None:
    """The major version of the Java that Spark would start, None if not found."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None or not os.access(command, os.X_OK):
        return None
    # Prints to stderr, such as: openjdk version "17.0.15" 2025-04-15; before Java 9: "1.8.0_292".
    shown = subprocess.run(
        [command, "-version"], capture_output=True, text=True, timeout=60, check=False
    ).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(version.group(1)) if version else None


def java_problem() -> str | None:
    """Why Spark cannot run here and how to fix it; None if it can."""
    version = java_version()
    if version is None:
        return f"No Java found. {HOW_TO_INSTALL}"
    if version < MINIMUM_JAVA:
        return f"Java {version} is too old. {HOW_TO_INSTALL}"
    return None

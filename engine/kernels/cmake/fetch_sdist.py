"""Download one source distribution: fetch_sdist.py NAME VERSION DIRECTORY."""

import subprocess
import sys


def main() -> int:
    name, version, directory = sys.argv[1:]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", name, "--dest", directory, f"{name}=={version}"]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Download source distributions, all at the same time: fetch_sdist.py DIRECTORY NAME==VERSION..."""

import subprocess
import sys


def main() -> int:
    directory, *packages = sys.argv[1:]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--dest", directory, "--no-binary"]
    downloads = [subprocess.Popen([*command, package.split("==")[0], package]) for package in packages]
    return max([download.wait() for download in downloads])


if __name__ == "__main__":
    sys.exit(main())

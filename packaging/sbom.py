"""``make sbom``: what a wheel contains and needs, with licences, as CycloneDX: ``build/sbom.json``.

The Python packages are those of the environment whose interpreter is named, into which only the wheel is
installed. The kernels link the rest statically; `LICENSE-THIRD-PARTY` has their licences.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT: Final = Path(__file__).parents[1]
#: The tool runs the interpreter of the environment, which must not see the tool's own packages.
_TOOL: Final = (
    "import os, runpy; os.environ.pop('PYTHONPATH', None); "
    "runpy.run_module('cyclonedx_py', run_name='__main__')"
)
TARGET: Final = ROOT / "build" / "sbom.json"


def linked() -> list[dict[str, Any]]:
    """What the kernels link: name, version and licence as in `LICENSE-THIRD-PARTY`."""
    text = ROOT.joinpath("LICENSE-THIRD-PARTY").read_text(encoding="utf-8")
    versions = dict(re.findall(r"^==== (\S+) ([\d.]+)$", text, re.MULTILINE))
    nanobind = version("nanobind")
    parts = [
        ("zstd", versions["Zstandard"], "BSD-3-Clause"),
        ("lz4", versions["LZ4"], "BSD-2-Clause"),
        ("nanobind", nanobind, "BSD-3-Clause"),
        ("robin-map", f"of nanobind {nanobind}", "MIT"),
    ]
    return [
        {
            "type": "library",
            "bom-ref": f"linked-{name}",
            "name": name,
            "version": number,
            "licenses": [{"license": {"id": licence}}],
            "properties": [{"name": "lance-sql:linked", "value": "statically, into lance_engine/_kernels"}],
        }
        for name, number, licence in parts
    ]


def main(python: str) -> None:
    command = [sys.executable, "-c", _TOOL, "environment", "--output-reproducible"]
    command += ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library", python]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    bom = json.loads(done.stdout)
    bom["components"] += linked()
    root = bom["metadata"]["component"]["bom-ref"]
    (needs,) = (entry for entry in bom["dependencies"] if entry["ref"] == root)
    needs["dependsOn"] = sorted({*needs.get("dependsOn", []), *(part["bom-ref"] for part in linked())})
    bom["dependencies"] += [{"ref": part["bom-ref"]} for part in linked()]
    text = json.dumps(bom, indent=2)
    schema = SchemaVersion.from_version(bom["specVersion"])
    if problem := JsonStrictValidator(schema).validate_str(text):
        raise SystemExit(f"not CycloneDX: {problem}")
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text + "\n", encoding="utf-8")
    without = [part["name"] for part in bom["components"] if not part.get("licenses")]
    print(f"{TARGET}: {len(bom['components'])} components, without a licence: {', '.join(without) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1])

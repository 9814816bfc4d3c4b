"""The planner's jar: its sources, the same bytes from every build, and a wheel that carries it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from lance_sql.spark.planner import planner_jar

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "spark" / "planner"
JAR = "lance-sql-spark.jar"
CMAKE = Path(sys.executable).with_name("cmake")

needs_jdk = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the planner is built where there is a JDK (javac)"
)

PROJECT = """
cmake_minimum_required(VERSION 3.26)
project(planner LANGUAGES NONE)
set(Python_EXECUTABLE "{python}")
include("{planner}")
"""

PROGRAM = """
import shutil, sys
from pathlib import Path
import lance_sql, lance_sql.spark
from lance_sql.spark.planner import planner_jar

assert shutil.which("javac") is None
assert Path(lance_sql.__file__).is_relative_to(sys.prefix), lance_sql.__file__
assert Path(planner_jar()).is_relative_to(sys.prefix)
spark = lance_sql.spark.local_session(memory="1g")
spark.conf.set("spark.sql.catalog.lake", "lancesql.spark.LanceCatalog")
spark.conf.set("spark.sql.catalog.lake.path", sys.argv[1])
spark.sql("CREATE TABLE lake.t AS SELECT id, concat('s', id) AS s FROM range(1000)")
spark.sql("UPDATE lake.t SET s = 'new' WHERE id < 10")
assert spark.sql("SELECT count(*), max(id) FROM lake.t WHERE s = 'new'").first()[:] == (10, 9)
assert lance_sql.open(sys.argv[1] + "/t.lance").count_rows() == 1000
print("works")
spark.stop()
"""


def run(*command: object, **options: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return str(done.stdout)


def test_sources_carry_the_licence() -> None:
    sources = list(SOURCES.rglob("*.java"))
    assert len(sources) > 10
    for source in sources:
        text = source.read_text()
        assert text.startswith("/*\n * Copyright The lance-sql Authors\n"), source
        assert "http://www.apache.org/licenses/LICENSE-2.0" in text[:800], source
    kept = run("git", "-C", ROOT, "ls-files") if (ROOT / ".git").exists() else ""
    assert not [name for name in kept.splitlines() if name.endswith((".jar", ".class"))]


def configure(folder: Path, python: Path | str, *settings: str) -> subprocess.CompletedProcess[str]:
    """A build of the planner alone; tools are only found if they are among the settings."""
    folder.mkdir()
    planner = ROOT / "spark" / "planner.cmake"
    (folder / "CMakeLists.txt").write_text(PROJECT.format(python=python, planner=planner))
    found = [f"-DCMAKE_MAKE_PROGRAM={shutil.which('make')}"] + [
        f"-DCMAKE_FIND_USE_{path}=OFF" for path in ("CMAKE_SYSTEM_PATH", "SYSTEM_ENVIRONMENT_PATH")
    ]
    command = [CMAKE, "-S", folder, "-B", folder / "build", "-G", "Unix Makefiles", *found, *settings]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def digest(folder: Path, python: Path | str, *settings: str) -> str:
    done = configure(
        folder, python, f"-DJAVAC={shutil.which('javac')}", f"-DJAR={shutil.which('jar')}", *settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run(CMAKE, "--build", folder / "build")
    with zipfile.ZipFile(folder / "build" / JAR) as jar:
        assert "lancesql/spark/LanceCatalog.class" in jar.namelist()
    return hashlib.sha256((folder / "build" / JAR).read_bytes()).hexdigest()


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def python_alone(tmp_path: Path) -> Path:
    """A Python without packages, as in pip's environment for a build."""
    return script(tmp_path / "python", f'exec {sys.executable} -I -S "$@"')


@pytest.fixture
def installed() -> str:
    """The digest of the jar that was built with PySpark, if it was built here."""
    jar = planner_jar()
    assert jar is not None, "run make setup"
    return hashlib.sha256(jar.read_bytes()).hexdigest()


@pytest.mark.slow
@needs_jdk
def test_builds_give_the_same_bytes(tmp_path: Path, python_alone: Path, installed: str) -> None:
    """With PySpark, and with the jars that Maven copies to a folder. If this fails, run make setup first."""
    jars = Path(pyspark.__file__).parent / "jars"
    maven = script(tmp_path / "mvn", f'for part; do :; done\nln -s {jars} "${{part#-DoutputDirectory=}}"')
    assert digest(tmp_path / "two", python_alone, f"-DMAVEN={maven}") == installed


@needs_jdk
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven is not installed")
@pytest.mark.timeout(1200)  # fetches 60 MB the first time
def test_the_jars_of_maven_central_give_the_same_bytes(
    tmp_path: Path, python_alone: Path, installed: str
) -> None:
    assert digest(tmp_path / "two", python_alone, f"-DMAVEN={shutil.which('mvn')}") == installed


@pytest.mark.parametrize("missing", ["JDK", "jars", "network"])
def test_a_build_without_the_planner_says_why(tmp_path: Path, python_alone: Path, missing: str) -> None:
    tools = {
        "JDK": [],
        "jars": ["-DJAVAC={javac}", "-DJAR={javac}"],
        "network": ["-DJAVAC={javac}", "-DJAR={javac}", f"-DMAVEN={script(tmp_path / 'mvn', 'exit 1')}"],
    }[missing]
    javac = script(tmp_path / "javac", "echo javac 21.0.1")
    settings = [setting.format(javac=javac) for setting in tools]
    reason = {
        "JDK": "no JDK 17 or newer was found",
        "jars": "neither PySpark nor Maven was found",
        "network": "Maven could not fetch the jars of Spark, and PySpark is not installed",
    }[missing]
    done = configure(tmp_path / "lenient", python_alone, *settings)
    assert done.returncode == 0, done.stderr
    assert f"Built without the planner for Spark: {reason}" in " ".join(done.stderr.split())
    done = configure(tmp_path / "strict", python_alone, *settings, "-DLANCE_SPARK_PLANNER=ON")
    assert done.returncode != 0
    assert f"The planner for Spark cannot be built: {reason}" in " ".join(done.stderr.split())


@needs_jdk
@pytest.mark.slow
@pytest.mark.timeout(3000)  # builds a wheel, installs PySpark
def test_the_wheel_works_where_there_is_java_but_no_jdk(tmp_path: Path) -> None:
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        tmp_path,
        ROOT,
    )
    (wheel,) = tmp_path.glob("lance_sql-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert f"lance_sql/spark/{JAR}" in archive.namelist()
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[spark]")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if tool.name not in ("javac", "jar") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "JAVA", "SPARK"))
    }
    environment["PATH"] = f"{python.parent}{os.pathsep}{tools}"
    lake = tmp_path / "lake"
    lake.mkdir()
    assert "works" in run(python, "-c", PROGRAM, lake, env=environment, cwd=tmp_path)

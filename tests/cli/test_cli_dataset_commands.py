"""The commands for datasets: what they print, their JSON against schemas, their exit codes."""

from __future__ import annotations

import json
import re
import shlex

import jsonschema
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lance_sql
from lance_sql.cli.app import app
from lance_sql.display.tables import fact_showing, text_table

ROWS = 20_000


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    things = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "label": [f"label {row % 7}" for row in range(ROWS)],
            "price": [None if row % 10 == 0 else row / 4 for row in range(ROWS)],
        }
    )
    ds = lance_sql.write(things, "things.lance", max_rows_per_file=ROWS // 2)
    ds.delete("id < 5")
    return lambda *arguments, **options: CliRunner().invoke(app, list(arguments), **options)


def _object(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT, WHOLE, FLAG, NUMBER = ({"type": kind} for kind in ("string", "integer", "boolean", "number"))
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"}


def _maybe(schema):
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema):
    return {"type": "array", "items": schema}


MAP = {"type": "object"}
CHANGES = _object(added=MAP, removed=MAP, changed=MAP)
INSPECT = _object(
    uri=TEXT,
    version=WHOLE,
    branch=_maybe(TEXT),
    rows=WHOLE,
    storage_version=_maybe(TEXT),
    versions=_list(
        _object(
            version=WHOLE,
            committed_at=TIME,
            operation=_maybe(TEXT),
            rows=_maybe(WHOLE),
            fragments=WHOLE,
            manifest_bytes=WHOLE,
            writer=_maybe(TEXT),
            features=_list(TEXT),
            message=_maybe(TEXT),
        )
    ),
    fragments=_list(
        _object(
            fragment_id=WHOLE,
            rows=WHOLE,
            physical_rows=WHOLE,
            deleted_rows=WHOLE,
            files=WHOLE,
            bytes=_maybe(WHOLE),
            deletion_file=_maybe(TEXT),
        )
    ),
    files=_list(
        _object(
            fragment_id=WHOLE, path=TEXT, version=TEXT, rows=WHOLE, bytes=_maybe(WHOLE), columns=_list(TEXT)
        )
    ),
    columns=_list(
        _object(
            column=TEXT,
            field_id=WHOLE,
            type=TEXT,
            nullable=FLAG,
            fragments=WHOLE,
            pages=WHOLE,
            bytes=WHOLE,
            encodings=_list(TEXT),
            rows=WHOLE,
            null_count=_maybe(WHOLE),
            minimum=_maybe(TEXT),
            maximum=_maybe(TEXT),
            zones=WHOLE,
            plain_bytes=_maybe(WHOLE),
            ratio=_maybe(NUMBER),
        )
    ),
    pages=_list(
        _object(
            column=TEXT,
            fragment_id=WHOLE,
            path=TEXT,
            page=WHOLE,
            first_row=WHOLE,
            rows=WHOLE,
            buffers=WHOLE,
            bytes=WHOLE,
            encoding=TEXT,
        )
    ),
    indices=_list(MAP),
    refs=_list(MAP),
)
HISTORY = _list(
    _object(
        version=WHOLE,
        committed_at=TIME,
        operation=_maybe(TEXT),
        rows=_maybe(WHOLE),
        fragments=WHOLE,
        fragments_added=_maybe(WHOLE),
        fragments_updated=_maybe(WHOLE),
        fragments_removed=_maybe(WHOLE),
        predicate=_maybe(TEXT),
        tags=_list(TEXT),
        writer=_maybe(TEXT),
        message=_maybe(TEXT),
    )
)
DIFF = _object(
    **{"from": WHOLE, "to": WHOLE},
    rows=_object(**{"from": WHOLE, "to": WHOLE}, added=WHOLE, removed=WHOLE),
    columns=CHANGES,
    fragments=_object(added=_list(WHOLE), removed=_list(WHOLE), changed=_list(WHOLE)),
    indices=CHANGES,
    config=CHANGES,
)
COMPACT = _object(version=WHOLE, committed=FLAG, fragments_before=WHOLE, fragments_after=WHOLE, rows=WHOLE)
CLEANUP = _object(
    versions=_list(WHOLE),
    data_files=WHOLE,
    deletion_files=WHOLE,
    transaction_files=WHOLE,
    index_files=WHOLE,
    bytes_removed=WHOLE,
    dry_run=FLAG,
    damaged_references=_list(TEXT),
)
TAG = _object(name=TEXT, version=WHOLE, branch=_maybe(TEXT), created_at=_maybe(TIME), updated_at=_maybe(TIME))
FINDINGS = _list(
    _object(
        check=TEXT,
        problem=TEXT,
        path=_maybe(TEXT),
        fragment_id=_maybe(WHOLE),
        column=_maybe(TEXT),
        remedy=_maybe(TEXT),
    )
)
HEALTH = _list(
    _object(
        measure=TEXT, amount=WHOLE, total=_maybe(WHOLE), attention=FLAG, meaning=TEXT, command=_maybe(TEXT)
    )
)
INDEX = _object(
    name=TEXT,
    kind=TEXT,
    columns=_list(TEXT),
    uuid=TEXT,
    dataset_version=WHOLE,
    index_version=_maybe(WHOLE),
    fragments=WHOLE,
    uncovered_fragments=WHOLE,
    bytes=_maybe(WHOLE),
    created_at=_maybe(TIME),
)


def answer(found, schema, exit_code=0):
    """The JSON that a command wrote, which must fit the schema."""
    assert found.exit_code == exit_code, found.output
    value = json.loads(found.stdout)
    jsonschema.validate(value, schema)
    return value


def test_inspect(run):
    report = answer(run("inspect", "things.lance", "--json"), INSPECT)
    assert (report["version"], report["rows"], len(report["fragments"])) == (2, ROWS - 5, 2)
    columns = {column["column"]: column for column in report["columns"]}
    assert (columns["id"]["minimum"], columns["id"]["maximum"]) == ("0", str(ROWS - 1))
    assert (columns["price"]["null_count"], columns["id"]["null_count"]) == (ROWS // 10, 0)
    assert columns["id"]["plain_bytes"] == ROWS * 8
    assert columns["id"]["ratio"] == pytest.approx(ROWS * 8 / columns["id"]["bytes"])
    assert columns["label"]["ratio"] is None
    text = run("inspect", "things.lance").stdout
    assert f"version 2, {ROWS - 5:,} rows in 2 fragments" in text
    assert "page 0: rows 0 to 9,999" in text
    assert "5 deleted" in text
    assert "\x1b[" not in text


def test_inspect_shows_all_on_request(run):
    for _ in range(9):
        lance_sql.write(pa.table({"id": [1]}), "many.lance", mode="append" if _ else "create")
    assert "1 more (--all shows them)" in run("inspect", "many.lance").stdout
    assert "more" not in run("inspect", "many.lance", "--all").stdout


def test_history_and_diff(run):
    run("tag", "create", "things.lance", "first", "--at", "1")
    lance_sql.open("things.lance").add_columns({"twice": "id * 2"}).update_config({"owner": "me"})
    versions = answer(run("history", "things.lance", "--json"), HISTORY)
    assert [version["version"] for version in versions] == [4, 3, 2, 1]
    assert versions[3]["tags"] == ["first"]
    assert "id < 5" in str(versions[2]["predicate"])
    assert "first" in run("history", "things.lance").stdout
    found = answer(run("diff", "things.lance", "1", "4", "--json"), DIFF)
    assert found["rows"] == {"from": ROWS, "to": ROWS - 5, "added": 0, "removed": 5}
    assert list(found["columns"]["added"]) == ["twice"]
    assert found["config"]["added"] == {"owner": "me"}
    assert found["fragments"]["added"] == []
    text = run("diff", "things.lance", "4", "1").stdout
    assert "- twice" in text
    assert "the same" in text


def test_head_and_take(run):
    rows = answer(
        run("head", "things.lance", "-n", "2", "-c", "id,_rowid", "--where", "id > 100", "--json"),
        _list(_object(id=WHOLE, _rowid=WHOLE)),
    )
    assert [row["id"] for row in rows] == [101, 102]
    ids = [str(row["_rowid"]) for row in reversed(rows)]
    taken = answer(run("take", "things.lance", *ids, "-c", "id", "--json"), _list(_object(id=WHOLE)))
    assert [row["id"] for row in taken] == [102, 101]
    assert run("take", "things.lance", "0").exit_code == 1
    assert json.loads(run("take", "things.lance", "0", "--skip-missing", "--json").stdout) == []
    assert (
        run("head", "things.lance", "--at", "1", "-n", "1", "--format", "csv").stdout.splitlines()[1][0]
        == "0"
    )


def test_compact_and_cleanup(run):
    found = answer(run("compact", "things.lance", "--json"), COMPACT)
    assert (found["fragments_before"], found["fragments_after"], found["committed"]) == (2, 1, True)
    assert "nothing to compact" in run("compact", "things.lance").stdout
    dry = answer(run("cleanup", "things.lance", "--older-than", "0s", "--dry-run", "--json"), CLEANUP)
    assert dry["versions"] == list(range(1, found["version"]))
    assert (
        f"removed {len(dry['versions'])} versions"
        in run("cleanup", "things.lance", "--older-than", "0s").stdout
    )
    assert run("cleanup", "things.lance", "--older-than", "1h 30m").exit_code == 0
    for text in ("soon", "99999999999d"):
        assert run("cleanup", "things.lance", "--older-than", text).exit_code == 2


def test_tags(run):
    assert answer(run("tag", "create", "things.lance", "prod", "--at", "1", "--json"), TAG)["version"] == 1
    assert answer(run("tag", "update", "things.lance", "prod", "--json"), TAG)["version"] == 2
    listed = answer(
        run("tag", "list", "things.lance", "--json"),
        _list(_object(name=TEXT, version=WHOLE, branch=_maybe(TEXT))),
    )
    assert listed == [{"name": "prod", "version": 2, "branch": None}]
    assert run("head", "things.lance", "--tag", "prod", "--limit", "1").exit_code == 0
    assert "prod was version 2" in run("tag", "delete", "things.lance", "prod").stdout
    assert run("tag", "delete", "things.lance", "prod").exit_code == 1


def test_indices(run):
    created = answer(
        run("index", "create", "things.lance", "id", "--kind", "zonemap", "--json"), _object(version=WHOLE)
    )
    assert created["version"] == 3
    (index,) = answer(run("index", "list", "things.lance", "--json"), _list(INDEX))
    assert (index["name"], index["fragments"]) == ("id_idx", 2)
    assert "id_idx" in run("inspect", "things.lance").stdout
    assert run("index", "create", "things.lance", "id").exit_code == 1
    assert run("index", "optimize", "things.lance").exit_code == 0
    assert run("index", "drop", "things.lance", "id_idx").exit_code == 0
    assert json.loads(run("index", "list", "things.lance", "--json").stdout) == []
    words = ("index", "create", "things.lance", "label", "--kind", "inverted", "--option", "stem=false")
    assert run(*words).exit_code == 0


def test_verify_and_health(run, tmp_path):
    assert answer(run("verify", "things.lance", "--values", "--json"), FINDINGS) == []
    assert "no problems found" in run("verify", "things.lance").stdout
    lance_sql.write(pa.table({"id": [1]}), "one.lance")
    assert not any(measure["attention"] for measure in answer(run("health", "one.lance", "--json"), HEALTH))
    measures = answer(run("health", "things.lance", "--json", "--fail-on", "attention"), HEALTH, exit_code=3)
    assert any(measure["measure"] == "small fragments" for measure in measures)
    assert run("health", "things.lance").exit_code == 0  # fragments may be small in a pipeline
    next((tmp_path / "things.lance" / "data").iterdir()).unlink()
    failed = run("health", "things.lance")
    assert failed.exit_code == 3
    assert "1 problem found: lance-sql verify things.lance lists them" in failed.stderr
    assert run("health", "things.lance", "--fail-on", "never").exit_code == 0
    problems = answer(run("verify", "things.lance", "--json"), FINDINGS, exit_code=3)
    assert problems[0]["check"] == "data file"


INFO = _object(
    uri=TEXT, version=WHOLE, branch=_maybe(TEXT), rows=WHOLE, fragments=WHOLE, bytes=_maybe(WHOLE),
    storage_version=_maybe(TEXT), indices=_list(TEXT), tags=_list(TEXT), branches=_list(TEXT),
    columns=_list(_object(column=TEXT, type=TEXT, nullable=FLAG, arrow=TEXT)),
)  # fmt: skip


def test_info_and_schema(run, tmp_path):
    run("tag", "create", "things.lance", "checked")
    run("index", "create", "things.lance", "id")
    for arguments in (["info", "things.lance"], ["things.lance"], [str(tmp_path / "things.lance")]):
        shown = run(*arguments)
        assert shown.exit_code == 0, shown.output
        assert "19,995 in 2 fragments" in shown.stdout
        assert "checked (version 2)" in shown.stdout
        assert "label 5" in shown.stdout  # the first rows
    facts = answer(run("things.lance", "--json"), INFO)
    described = answer(run("DESCRIBE 'things.lance'", "--json"), _list(MAP))
    shown = [(column["column"], column["type"]) for column in facts["columns"]]
    assert shown == [(row["column_name"], row["column_type"]) for row in described]
    assert [column["arrow"] for column in facts["columns"]] == ["int64", "string", "double"]
    columns = answer(run("schema", "things.lance", "--json"), _list(MAP))
    assert columns == facts["columns"]
    assert "label    VARCHAR   yes        string" in run("schema", "things.lance", "--version", "1").stdout
    missing = run("nothing.lance")
    assert missing.exit_code == 1
    assert "No Lance dataset" in missing.stderr


def test_convert_a_glob(run, tmp_path):
    for part in (1, 2):
        (tmp_path / f"part-{part}.csv").write_text(f"a,b\n{part},x\n")
    assert answer(run("convert", "part-*.csv", "parts.lance", "--json"), MAP)["rows"] == 2
    (tmp_path / "more.ndjson").write_text('{"a": 3}\n')
    assert run("convert", "more.ndjson", "parts.lance", "--mode", "append").exit_code == 0
    assert lance_sql.open("parts.lance").to_table()["a"].to_pylist() == [1, 2, 3]
    failed = run("convert", "nothing-*.csv", "x.lance")
    assert failed.exit_code == 1
    assert "No file matches the pattern [path: nothing-*.csv]" in failed.stderr


def test_facts_are_shown_in_words(run):
    """Yes and no, nothing for null, numbers with separators; versions as commands accept them."""
    shown = run("health", "things.lance").stdout
    assert "fewer than 1,048,576 rows" in shown
    assert re.search(r"^versions +\d+ +(yes|no) ", shown, re.MULTILINE)
    run("tag", "create", "things.lance", "checked")
    tables = [shown, run("tag", "list", "things.lance").stdout, run("index", "list", "things.lance").stdout]
    for text in tables:
        assert not re.search(r"\b(True|False|NULL|None)\b", text), text
    table = pa.table(
        {"rows": [1234567], "version": [1234], "ok": [True], "branch": pa.array([None], pa.string())}
    )
    line = text_table(table, 1, fact_showing).splitlines()[2]
    assert line.split() == ["1,234,567", "1234", "yes"]
    assert text_table(table, 1).splitlines()[2].split() == ["1234567", "1234", "True", "NULL"]


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "things.lance", "file/out.lance"],
        ["convert", "things.lance", "file/out.csv"],
        ["convert", "things.lance", "nowhere/out.parquet"],
        ["query", "SELECT 1", "--format", "csv", "--output", "file/out.csv"],
        ["inspect", "things.lance", "--html", "file/out.html"],
    ],
)
def test_a_place_that_cannot_be_written_is_told_as_such(run, tmp_path, command):
    (tmp_path / "file").touch()
    failed = run(*command)
    assert failed.exit_code == 1
    assert "Cannot create the file: " in failed.stderr
    assert "write to another location" in failed.stderr
    assert "backup" not in failed.stderr
    assert ".partial" not in failed.stderr


def test_what_health_says_mends(run):
    run("index", "create", "things.lance", "id")
    lance_sql.write(lance_sql.open("things.lance").scan(limit=10).to_table(), "things.lance", mode="append")
    commands = {"lance-sql compact things.lance", "lance-sql index optimize things.lance"}
    for _ in range(3):
        measures = json.loads(run("health", "things.lance", "--json").stdout)
        found = {measure["command"] for measure in measures if measure["attention"]}
        assert found <= commands
        for command in sorted(found, reverse=True):
            assert run(*shlex.split(command)[1:]).exit_code == 0
    assert run("health", "things.lance", "--fail-on", "attention").exit_code == 0


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_convert_there_and_back(run, ending):
    schema = _object(source=TEXT, target=TEXT, rows=WHOLE, version=_maybe(WHOLE))
    there = answer(run("convert", "things.lance", f"out.{ending}", "--json"), schema)
    assert (there["rows"], there["version"]) == (ROWS - 5, None)
    back = answer(run("convert", f"out.{ending}", "back.lance", "--json"), schema)
    assert (back["rows"], back["version"]) == (ROWS - 5, 1)
    assert lance_sql.open("back.lance").to_table().equals(lance_sql.open("things.lance").to_table())
    refused = run("convert", "things.lance", f"out.{ending}")
    assert (refused.exit_code, "--mode overwrite" in refused.stderr) == (1, True)
    assert run("convert", "things.lance", f"out.{ending}", "--mode", "overwrite").exit_code == 0
    assert run("convert", f"out.{ending}", "back.lance").exit_code == 1
    assert run("convert", f"out.{ending}", "back.lance", "--mode", "append").exit_code == 0
    assert lance_sql.open("back.lance").count_rows() == 2 * (ROWS - 5)


def test_how_csv_is_read(run, tmp_path):
    (tmp_path / "odd.csv").write_text("1;NA\n2;x\n")
    options = [word for option in ("delim=;", "header=false", "nullstr=NA") for word in ("--csv", option)]
    assert run("convert", "odd.csv", "odd.lance", *options).exit_code == 0
    assert [tuple(row.values()) for row in lance_sql.open(tmp_path / "odd.lance")] == [(1, None), (2, "x")]
    for wrong, says in (["nosuch=1", "nosuch"], ["a b=1", "Invalid name"]):
        failed = run("convert", "odd.csv", "x.lance", "--csv", wrong)
        assert failed.exit_code != 0
        assert says in failed.stderr
    assert "for CSV files" in run("convert", "odd.lance", "x.lance", "--csv", "delim=;").stderr


def test_convert_a_directory_and_to_json(run, tmp_path):
    (tmp_path / "parts").mkdir()
    for part in range(3):
        pq.write_table(pa.table({"n": [part]}), tmp_path / "parts" / f"{part}.parquet")
    assert run("convert", "parts", "parts.lance", "--progress").exit_code == 0
    assert run("convert", "parts.lance", "parts.ndjson").exit_code == 0
    assert (tmp_path / "parts.ndjson").read_text().split() == ['{"n":', "0}", '{"n":', "1}", '{"n":', "2}"]
    pq.write_table(pa.table({"m": [1]}), tmp_path / "parts" / "9.parquet")
    failed = run("convert", "parts", "other.lance")
    assert (failed.exit_code, "9.parquet" in failed.stderr) == (1, True)
    assert not (tmp_path / "other.lance" / "_versions").exists()


def test_what_is_no_file_of_the_format_is_told(run, tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"no parquet at all")
    failed = run("convert", "broken.parquet", "x.lance")
    assert (failed.exit_code, failed.stderr.count("\n"), "broken.parquet" in failed.stderr) == (1, 1, True)
    assert run("convert", "things.lance", "things.xyz").exit_code == 1
    assert run("convert", "nothing.csv", "x.lance").exit_code == 1


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("out.parquet", pq.read_table),
        ("out.csv", pyarrow.csv.read_csv),
        ("out.arrow", lambda path: pa.ipc.open_stream(path.read_bytes()).read_all()),
        ("out.json", lambda path: pa.Table.from_pylist(json.loads(path.read_text()))),
        (
            "out.ndjson",
            lambda path: pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()]),
        ),
    ],
)
def test_output_files(run, tmp_path, name, read):
    found = run("SELECT id, price FROM 'things.lance' ORDER BY id LIMIT 3", "--output", name)
    assert (found.exit_code, found.stdout) == (0, "")
    assert read(tmp_path / name).to_pylist() == [
        {"id": 5, "price": 1.25},
        {"id": 6, "price": 1.5},
        {"id": 7, "price": 1.75},
    ]


def test_an_output_that_fails_leaves_no_file(run, tmp_path):
    assert run("SELECT error('no') FROM 'things.lance'", "-o", "out.csv").exit_code == 1
    assert not list(tmp_path.glob("out*"))
    assert run("SELECT 1", "-o", "out.what").exit_code == 2


def test_markdown_and_ndjson(run):
    text = run("SELECT 'a|b' AS x, 1 AS n", "--format", "markdown").stdout
    assert text.splitlines() == ["| x | n |", "|---|---:|", "| a\\|b | 1 |"]
    lines = run("SELECT * FROM range(2)", "--format", "ndjson").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"range": 0}, {"range": 1}]


def test_scripts_from_files_and_standard_input(run, tmp_path):
    (tmp_path / "script.sql").write_text(
        "DELETE FROM 'things.lance' WHERE id < 10; -- five more\nSELECT count(*) AS n FROM 'things.lance';"
    )
    found = run("-f", "script.sql")
    assert "Count" in found.stdout
    assert str(ROWS - 10) in found.stdout
    assert json.loads(run("--json", "-f", "-", input="SELECT 1 AS a; SELECT 2 AS a").stdout) == [{"a": 2}]
    assert "42" in run(input="SELECT 42").stdout
    assert run("-f", "nothing.sql").exit_code == 2
    assert run("-f", "script.sql", "SELECT 1").exit_code == 2


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_settings(run, engine):
    key, query = {
        "duckdb": ("threads", "SELECT current_setting('threads')::VARCHAR AS value"),
        "datafusion": ("datafusion.execution.batch_size", "SHOW datafusion.execution.batch_size"),
    }[engine]
    found = run(query, "-e", engine, "--set", f"{key}=3", "--json")
    assert json.loads(found.stdout)[0]["value"] == "3"
    assert run("SELECT 1", "--set", "nonsense").exit_code == 2
    assert run("SELECT 1", "--set", "a;b=1").exit_code == 1


def test_metrics_and_analyze(run):
    found = run("SELECT sum(price) FROM 'things.lance' WHERE id < 100", "--metrics", "--json")
    metrics = json.loads(found.stderr)
    jsonschema.validate(
        metrics, _object(seconds=_maybe(NUMBER), bytes_read=WHOLE, rows_read=WHOLE, scans=_list(MAP))
    )
    assert metrics["scans"][0]["table"] == "things.lance"
    told = run("SELECT sum(price) FROM 'things.lance' WHERE id < 100", "--metrics").stderr
    assert "zones" in told
    assert "pruned" in run("SELECT sum(price) FROM 'things.lance' WHERE id < 100", "--analyze").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run, shell):
    assert "_LANCE_SQL_COMPLETE" in run("completion", shell).stdout
    assert run("completion", "tcsh").exit_code == 2


def test_completion_completes_commands_and_options(run):
    from click.shell_completion import ShellComplete

    complete = ShellComplete(app, {}, "lance-sql", "_LANCE_SQL_COMPLETE")
    assert [item.value for item in complete.get_completions([], "comp")] == ["compact", "completion"]
    assert "--dry-run" in [item.value for item in complete.get_completions(["cleanup"], "--")]


def test_every_command_has_an_example(run):
    for name in app.list_commands(None):
        text = run(name, "--help").stdout
        assert "lance-sql" in text.split("Options:")[0].partition("\n")[2], name


def test_an_error_in_a_statement_points_at_its_place(run):
    duckdb = run("SELECT 1,\n  FROM FROM 'things.lance'").stderr.splitlines()
    assert duckdb[0].startswith("error: ")
    assert any(set(line.strip()) == {"^"} for line in duckdb)
    datafusion = run("-e", "datafusion", "SELECT 1 AS one,\n  2 2 AS two").stderr.splitlines()
    assert datafusion[0].startswith("error: ")
    assert any(line.strip() == "^" for line in datafusion)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_the_nearest_name_is_suggested(run, engine):
    assert "things" in run("-e", engine, "-d", ".", "SELECT * FROM thinks").stderr
    assert "price" in run("-e", engine, "SELECT prise FROM 'things.lance'").stderr


def test_a_directory_of_datasets_is_listed(run, tmp_path):
    (tmp_path / "broken.lance").mkdir()
    for arguments in (["."], ["info", "."], [str(tmp_path)]):
        result = run(*arguments)
        assert result.exit_code == 0
        assert re.search(r"things\.lance +2 +19,995 +\d", result.output)
        assert "broken.lance: No Lance dataset" in result.output
    first, second = json.loads(run("info", ".", "--json").output)
    assert first["error"].startswith("No Lance dataset")
    assert (second["name"], second["version"], second["rows"]) == ("things.lance", 2, ROWS - 5)
    (tmp_path / "empty").mkdir()
    for missing in ("empty", "./nothing"):
        result = run(missing)
        assert result.exit_code == 1
        assert "No Lance dataset at this path" in result.output


def test_the_shell_takes_a_directory(run, tmp_path):
    assert "either as an argument or with -d" in run("shell", ".", "-d", ".").output
    assert "cannot be created here" in run("shell", "nothing/at/all").output

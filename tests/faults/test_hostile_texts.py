"""Every text in a dataset of somebody else is data: no engine runs it, and no terminal or page obeys it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner
from lance_engine.errors import LanceError
from lance_engine.format.manifest import WriterVersion, parse_manifest_file, serialize_manifest_file
from lance_engine.format.pb import table_pb2

import lance_sql
from lance_sql.cli.app import app
from lance_sql.report.page import report_page

#: Ends a string, a name, a statement or a comment, and then writes a file, drops a table, shows a secret.
RUN = (
    "DROP TABLE victim; DELETE FROM victim; COPY (SELECT 1) TO 'written'; ATTACH 'opened'; "
    "SELECT * FROM read_text('private')"
)
#: Control characters, among them those with eight bits and those that turn the direction of text.
CONTROL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\r\n\b"
MARKUP = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>"
TEXTS = [
    f"x'; {RUN}; --",
    f"x\")'); {RUN}; /*",
    f"(SELECT content FROM read_text('private')) -- {CONTROL}",
    f"{MARKUP}{CONTROL}'\"`;",
    "x' || concat('P', 'WNED') || 'y",
]
_RAW = {"\x1b", "\x07", "\x9b", "\u202e", "\b"}
PRIVATE = "what nobody else may read"
#: What the last text becomes if an engine computes it.
COMPUTED = "PWNED"
#: Where extension names and their parameters are.
NAME, PARAMETERS = "ARROW:extension:name", "ARROW:extension:metadata"


def table(text: str) -> pa.Table:
    """A table with a text at every place of a schema."""

    def extension(name: str, parameters: Any) -> dict[str, str]:
        return {NAME: name, PARAMETERS: parameters if isinstance(parameters, str) else json.dumps(parameters)}

    def own_type(name: str) -> dict[str, str]:
        return extension("arrow.opaque", {"vendor_name": "DuckDB", "type_name": name})

    quoted = text.replace("'", "''")
    opaque = {"vendor_name": "DuckDB", "type_name": f"ENUM('{quoted}')"}
    columns = {
        pa.field("id", pa.int64(), metadata={text: text}): [1, 2],
        pa.field(text, pa.string()): [text, None],
        pa.field("s", pa.struct([pa.field(text, pa.int8(), metadata={text: text})])): [{text: 1}, None],
        pa.field("d", pa.string(), metadata={"lance-sql:default": text, "lance-sql:comment": text}): ["", ""],
        pa.field("zone", pa.timestamp("us", text)): [None, None],
        pa.field("named", pa.string(), metadata=extension(text, text)): [text, None],
        pa.field("enum", pa.string(), metadata=extension("arrow.opaque", opaque)): [text, None],
        pa.field("unknown", pa.string(), metadata=extension("arrow.opaque", {**opaque, "type_name": text})): [
            text,
            None,
        ],
        pa.field("shape", pa.binary(), metadata=extension("geoarrow.wkb", {"crs": text})): [None, None],
        pa.field("doc", pa.string(), metadata=extension("arrow.json", text)): [
            json.dumps({text: text}),
            None,
        ],
        pa.field("compressed", pa.int8(), metadata={"lance-encoding:compression": text}): [1, 2],
        pa.field("wide", pa.struct([pa.field(text, pa.decimal256(50, 2))])): [{text: 1}, None],
        pa.field("wides", pa.list_(pa.struct([pa.field(text, pa.decimal256(50, 2))]))): [[{text: 1}], None],
        pa.field("map", pa.map_(pa.string(), pa.struct([pa.field(text, pa.int8())]))): [
            [(text, {text: 1})],
            [],
        ],
        pa.field("array", pa.list_(pa.struct([pa.field(text, pa.string())]), 1)): [[{text: text}], None],
        pa.field("tuple", pa.struct([pa.field(text, pa.int8())]), metadata=own_type("tuple")): [
            {text: 1},
            None,
        ],
        pa.field(
            "union",
            pa.struct([pa.field("tag", pa.string()), pa.field(text, pa.int8()), pa.field("b", pa.int8())]),
            metadata=own_type("union"),
        ): [{"tag": text, text: 1, "b": None}, {"tag": "b", text: None, "b": 2}],
        pa.field("code", pa.dictionary(pa.int8(), pa.string()), metadata={text: text}): [text, None],
    }
    arrays = [pa.array(values, field.type) for field, values in columns.items()]
    return pa.table(arrays, schema=pa.schema([*columns], metadata={text: text, "pandas": text}))


def is_written(rows: pa.Table, name: str, path: Path) -> bool:
    """Whether datasets can have the column: some texts are refused, such as unknown compressions."""
    try:
        lance_sql.write(rows.select([name]), path, "overwrite")
    except LanceError:
        return False
    return True


def receive(directory: Path, number: int, text: str) -> str:
    """A dataset with the text wherever it may be; the name of its table."""
    path = directory / f"t{number}.lance"
    rows = table(text)
    kept = [name for name in rows.column_names if is_written(rows, name, path)]
    assert {"id", "s", "d", "named", "unknown", "wide", "wides", "map", "tuple", "union"} <= set(kept)
    ds = lance_sql.write(rows.select(kept), path, "overwrite")
    for change in (
        lambda: ds.create_index("id", name=text),
        lambda: ds.create_index("named", "inverted"),
        lambda: lance_sql.open(path).update_config({text: text}),
        lambda: lance_sql.open(path).update_metadata({text: text, "comment": text, "message": text}),
        lambda: lance_sql.open(path).update_schema_metadata({text: text, "lance-sql:comment": text}),
        lambda: lance_sql.open(path).tags.create("good"),
        lambda: lance_sql.open(path).branches.create("good"),
    ):
        with contextlib.suppress(LanceError):
            change()
    for folder in ("tags", "branches"):  # names that only a stranger can give
        good = path / "_refs" / folder / "good.json"
        good.with_name(text.replace("/", "_")[:100] + ".json").write_bytes(good.read_bytes())
        good.with_name("bad.json").write_text(json.dumps({"branch": text, "version": text}))
    newest = min((path / "_versions").glob("*.manifest"))
    manifest, section, transaction = parse_manifest_file(newest.read_bytes())
    manifest = dataclasses.replace(
        manifest, writer_version=WriterVersion(text, text), config={**manifest.config, text: text}
    )
    if section is not None:
        indices = table_pb2.IndexSection.FromString(section)
        poison(indices, text)
        section = indices.SerializeToString()
    newest.write_bytes(
        serialize_manifest_file(manifest, index_section=section, transaction=poisoned(transaction, text))
    )
    for file in (path / "_transactions").iterdir():
        file.write_bytes(poisoned(file.read_bytes(), text) or b"")
    return f"t{number}"


def poisoned(transaction: bytes | None, text: str) -> bytes | None:
    """The transaction with the text at every place for a text, those of its operation included."""
    if transaction is None:
        return None
    message = table_pb2.Transaction.FromString(transaction)
    poison(message, text)
    message.transaction_properties["__lance_commit_message"] = text
    return message.SerializeToString()


def poison(message: Any, text: str) -> None:
    """Write the text at every place of a protobuf message that holds one, and in every map of texts."""
    for field, value in message.ListFields():
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map and field.message_type.fields_by_name["value"].type == field.TYPE_STRING:
            value[text] = text
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, text) if isinstance(value, str) else value.append(text)
        elif field.type == field.TYPE_MESSAGE and not is_map:
            for part in [value] if hasattr(value, "ListFields") else value:
                poison(part, text)


def test_poisoned_messages_hold_the_text() -> None:
    update = table_pb2.Transaction(uuid="u", update_config=table_pb2.Transaction.UpdateConfig())
    update.update_config.config_updates.update_entries.add(key="k", value="v")
    found = table_pb2.Transaction.FromString(poisoned(update.SerializeToString(), "evil") or b"")
    entry = found.update_config.config_updates.update_entries[0]
    assert (found.uuid, entry.key, entry.value) == ("evil", "evil", "evil")
    section = table_pb2.IndexSection()
    section.indices.add(name="a").index_details.type_url = "x"
    poison(section, "evil")
    assert (section.indices[0].name, section.indices[0].index_details.type_url) == ("evil", "evil")


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of received tables in the working directory; afterwards, nothing else has changed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "private").write_text(PRIVATE)
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "victim.lance")
    names = [receive(tmp_path, number, text) for number, text in enumerate(TEXTS)]
    for text in TEXTS:  # names of folders
        lance_sql.write(pa.table({"id": [1]}), tmp_path / f"{text.replace('/', '_')[:100]}.lance")
    before = others(tmp_path)
    yield names
    assert others(tmp_path) == before


def others(folder: Path) -> dict[str, bytes]:
    """What belongs to nobody's dataset, or to one that no statement names."""
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith("t")
    }


def attempt(run: Callable[[], Any]) -> str:
    """What it shows, or its error: one of the library or of the engine."""
    try:
        shown = str(run())
    except (LanceError, duckdb.Error) as error:
        shown = f"{error}{''.join(getattr(error, '__notes__', []))}"
        if isinstance(error, duckdb.Error):
            return shown.replace("\x1b", "")  # DuckDB's own message, of a connection that is not ours
    assert PRIVATE not in shown
    assert COMPUTED not in shown
    return shown


def is_safe(shown: str) -> bool:
    return _RAW.isdisjoint(shown)


READS = [
    "SELECT * FROM {t}",
    "SELECT *, _rowid FROM {t} WHERE id = 1",
    "SELECT count(*), min(id) FROM {t}",
    "SELECT doc, s FROM {t} ORDER BY id DESC LIMIT 1",
    "SELECT a.* FROM {t} a JOIN {t} b ON a.named = b.named",
    "SELECT * FROM lance_fts('{t}', 'named', 'drop')",
    "EXPLAIN SELECT * FROM {t} WHERE named = 'x'",
    "DESCRIBE {t}",
    "SUMMARIZE {t}",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SELECT * FROM information_schema.columns",
    "SELECT * FROM {t}.versions",
    "SELECT * FROM {t}.indices",
    "SELECT * FROM {t}.tags",
    "SELECT * FROM {t}.fragments",
    "SELECT * FROM {t}.columns",
    "SELECT missing FROM {t}",
    "SELECT * FROM {t} AT (TAG => 'bad')",
    "SELECT * FROM {t} AT (BRANCH => 'bad')",
    "SELECT * FROM {t}.branches",
    "SELECT * FROM {t} PIVOT (count(*) FOR named IN ('x'))",
    'SELECT s, wide, map, "union", tuple, enum FROM {t} ORDER BY id',
]
CHANGES = [
    "SHOW VERSIONS FROM {t}",
    "INSERT INTO {t} (id) VALUES (3)",
    "INSERT INTO {t} SELECT * FROM {t}",
    "UPDATE {t} SET d = DEFAULT",
    "UPDATE {t} SET wide = {{'a': 1}}",
    "UPDATE {t} SET wides = [{{'a': 1}}], tuple = row(1)",
    'UPDATE {t} SET s = s, map = map, array = array, "union" = "union", enum = enum',
    "MERGE INTO {t} USING {t} s ON {t}.id = s.id WHEN MATCHED THEN UPDATE",
    "MERGE INTO {t} USING (SELECT 7 AS id, 'x' AS d) s USING (id) "
    "WHEN NOT MATCHED BY SOURCE AND id = 7 THEN DELETE WHEN NOT MATCHED THEN INSERT BY NAME",
    "UPDATE {t} SET id = id + 1 RETURNING *",
    "DELETE FROM {t} WHERE id = 2 RETURNING *",
    "MERGE INTO {t} USING (SELECT 9 AS id) s ON {t}.id = s.id "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "CREATE OR REPLACE TABLE tcopy AS SELECT * FROM {t}",
    "CREATE OR REPLACE TABLE tlike AS SELECT * FROM {t} LIMIT 0",
    "COPY {t} TO 'tout.csv'",
    "ALTER TABLE {t} ADD COLUMN more BIGINT",
    "ALTER TABLE {t} ALTER COLUMN d DROP DEFAULT",
    "ALTER TABLE {t} RENAME TO trenamed",
    "ALTER TABLE trenamed RENAME TO {t}",
    "OPTIMIZE {t}",
    "VACUUM {t} RETAIN 0 HOURS",
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_sessions(received: list[str], engine: str) -> None:
    with lance_sql.connect(".", engine=engine) as session:
        if engine == "duckdb":
            session.sql("CREATE SECRET k (TYPE s3, KEY_ID 'AKIAX', SECRET 's3cr3t')")
        for name in received:
            for text in [*READS, *CHANGES]:
                statement = text.format(t=name)
                assert is_safe(attempt(lambda: session.sql(statement))), statement  # noqa: B023
        assert session.sql("SELECT id FROM victim").fetchall() == [(1,)]
        for name in session.tables():  # whose names are those of folders
            quoted = '"' + name.replace('"', '""') + '"'
            for text in (READS[0], "DESCRIBE {t}", "SELECT missing FROM {t}"):
                assert is_safe(attempt(lambda: session.sql(text.format(t=quoted)))), text  # noqa: B023


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", pytest.param("datafusion", marks=pytest.mark.slow)])
def test_own_connections(received: list[str], engine: str) -> None:
    run: Callable[[str], Any]
    if engine == "duckdb":
        connection = duckdb.connect()
        lance_sql.duckdb.install(connection, ".")

        def run(text: str) -> Any:
            found = connection.sql(text)
            return found and found.fetchall()
    else:
        context = datafusion.SessionContext()
        lance_sql.datafusion.install(context, ".")

        def run(text: str) -> Any:
            return context.sql(text).to_arrow_table().to_pylist()

    for name in received[:2] if engine == "duckdb" else received:
        for text in READS:
            try:
                shown = str(run(text.format(t=name)))
            except Exception as error:  # DataFusion has no class of errors
                shown = str(error)
            assert PRIVATE not in shown
    assert len(run("SELECT id FROM victim")) == 1


COMMANDS = [
    "info {t}.lance", "schema {t}.lance", "head {t}.lance", "take {t}.lance 0", "inspect {t}.lance",
    "inspect {t}.lance --all", "history {t}.lance", "diff {t}.lance 1 2", "index list {t}.lance",
    "tag list {t}.lance", "verify {t}.lance", "health {t}.lance", "info .", "search {t}.lance named drop",
    "cleanup {t}.lance --dry-run",
]  # fmt: skip


def test_the_command_line(received: list[str]) -> None:
    for name in received:
        for text in COMMANDS:
            words = text.format(t=name).split()
            result = CliRunner().invoke(app, words)
            assert result.exception is None or isinstance(result.exception, SystemExit | LanceError), words
            assert "Traceback" not in result.output
            assert is_safe(result.output), (words, result.output)
        script = "\n".join(f"{text.format(t=name)};" for text in READS) + f"\n\\d\n\\d {name}\n"
        result = CliRunner().invoke(app, ["shell", "-d", "."], input=script)
        assert is_safe(result.output), result.output
        assert PRIVATE not in result.output


def test_pages_and_python(received: list[str]) -> None:
    for name in received:
        ds = lance_sql.open(f"{name}.lance")
        html = lance_sql.sql(f"SELECT id, named, s FROM '{name}.lance'")._repr_html_()
        for page in (attempt(lambda: report_page(ds)), html):  # noqa: B023
            assert page
            assert is_safe(page)
            assert "<img src=x" not in page
            assert "<script>alert" not in page
        for shown in (
            lambda: repr(ds),  # noqa: B023
            lambda: ds.health(),  # noqa: B023
            lambda: ds.inspect.versions(),  # noqa: B023
            lambda: ds.verify(),  # noqa: B023
            lambda: ds.scan(filter="missing = 1").to_table(),  # noqa: B023
            lambda: ds.cleanup(datetime.timedelta(0), dry_run=True),  # noqa: B023
        ):
            attempt(shown)
        assert ds.scan().to_table().num_rows == 2

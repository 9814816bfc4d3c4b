"""``explain(html=True)``: the plan as a tree of boxes, on both engines and for scans."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.plan_picture import PlanNode, picture

import lance_sql
from lance_sql.engines.datafusion.plans import tree_of_lines
from lance_sql.engines.duckdb.plans import tree_of_steps
from lance_sql.engines.duckdb.versions import steps


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_sql.Dataset:
    table = pa.table({"a": range(50_000), "b": ["x", "<y>"] * 25_000})
    return lance_sql.write(table, tmp_path_factory.mktemp("plans") / "t.lance")


@pytest.mark.parametrize("analyze", [False, True])
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_a_query(dataset: lance_sql.Dataset, engine: str, analyze: bool) -> None:
    with lance_sql.connect(engine=engine) as session:
        session.register("t", dataset)
        text = "SELECT b, count(*) AS n FROM t WHERE b <> '<b>' GROUP BY b ORDER BY n"
        page = session.sql(text).explain(analyze, html=True)
        assert session.explain(text, analyze=analyze, html=True)[:200] == page[:200]
        assert "Lance scan" in str(session.explain(text))  # text stays text
    assert page._repr_html_() == page
    assert page.count('class="node"') >= 3
    assert page.count("<div") == page.count("</div>")
    assert "Lance scan" in page
    assert "50,000 rows" in page
    assert ("Lance read" in page) == analyze
    assert "<b>'" not in page  # what the query says is text, not markup
    assert "&lt;b&gt;" in page


def test_a_scan(dataset: lance_sql.Dataset) -> None:
    page = dataset.scan(filter="a < 10").explain(html=True)
    assert "LanceScan" in page
    assert page.count('class="share"') >= 2  # zones, fragments, rows: what is read of a whole
    assert "bytes read" in dataset.scan(filter="a < 10").explain(analyze=True, html=True)


def test_the_command_writes_a_page(dataset: lance_sql.Dataset, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from lance_sql.cli.app import app

    page = tmp_path / "plan.html"
    statement = f"SELECT count(*) FROM '{dataset.uri}' WHERE a > 5"
    done = CliRunner().invoke(app, ["query", "--explain", "--output", str(page), statement])
    assert done.exit_code == 0, done.output
    assert 'class="lance-plan"' in page.read_text()
    plain = CliRunner().invoke(app, ["query", "--explain", "--output", str(tmp_path / "plan.txt"), statement])
    assert plain.exit_code == 0
    assert (tmp_path / "plan.txt").read_text().startswith("Lance scan")


def test_trees_of_plans() -> None:
    (tree,) = tree_of_lines("A: x=[1], metrics=[rows=5]\n  B\n    C, metrics=[]\n  D: y\n")
    assert tree.details == (("", "x=[1]"), ("measured", "rows=5"))
    assert [child.name for child in tree.children] == ["B", "D"]
    assert tree.children[0].children == (PlanNode("C"),)
    assert tree_of_lines("") == ()
    (node,) = tree_of_steps(
        steps('[{"name": "HASH_JOIN ", "extra_info": {"Estimated Cardinality": "1200"}}]')
    )
    assert node == PlanNode("Hash join", (("rows, about", "1,200"),))


def test_pictures_hold_no_secrets() -> None:
    page = picture("p", [PlanNode("scan", (("uri", "s3://u:hidden@h/x?sig=hidden"),))])
    assert "hidden" not in page

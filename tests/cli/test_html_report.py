"""The report as a page: parsed as HTML, and opened in a browser if there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lance_sql
from lance_sql.cli.app import app
from lance_sql.report.page import report_page
from lance_sql.report.zones import zone_pictures

VOID = {"meta", "br", "wbr", "img", "input", "link"}


class Page(HTMLParser):
    """Checks that elements are closed in order, and notes what the page refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}
        self.references: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def lineitem(tmp_path_factory):
    """TPC-H lineitem in the order of ship dates, with a history."""
    directory = tmp_path_factory.mktemp("report")
    beside = Path(sys.executable).with_name("tpchgen-cli")
    tool = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if tool is None:
        pytest.skip("tpchgen-cli makes the TPC-H data: pip install tpchgen-cli")
    command = [tool, "parquet", "-s", "0.01", "--output-dir", str(directory), "--tables", "lineitem"]
    subprocess.run(command, check=True, capture_output=True)
    table = pq.read_table(directory / "lineitem.parquet")
    plain = [
        field.with_type(pa.string()) if field.type == pa.string_view() else field for field in table.schema
    ]
    table = table.cast(pa.schema(plain)).sort_by("l_shipdate")
    uri = directory / "lineitem.lance"
    ds = lance_sql.write(table, uri, max_rows_per_file=20_000, zone_rows=1024)
    ds.delete("l_quantity > 40 AND l_shipdate < DATE '1994-01-01'").create_index("l_orderkey")
    lance_sql.write(table.slice(0, 5_000), uri, mode="append").tags.create("release")
    return uri


def test_the_page_is_whole_and_refers_to_nothing(lineitem):
    ds = lance_sql.open(lineitem)
    text = report_page(ds)
    page = Page(text)
    assert page.references == []
    assert not re.search(r"https?://|@import|url\(", text)
    shown = " ".join(page.text)
    for expected in (
        "lineitem.lance", "l_shipdate", f"{ds.count_rows():,}", "release", "l_orderkey_idx",
        "4 of 5 fragments", "deleted rows", "Bytes by encoding",
    ):  # fmt: skip
        assert expected in shown
    assert page.counts["figure"] == len(zone_pictures(ds)) == 16


def test_zone_pictures_tell_what_a_filter_skips(lineitem):
    pictures = {picture.column: picture for picture in zone_pictures(lance_sql.open(lineitem))}
    date = pictures["l_shipdate"]
    assert date.minimum.startswith("1992-")
    assert date.maximum.startswith("1998-")
    assert date.read_share(0.45, 0.55) < 0.25  # the rows are in its order
    assert pictures["l_partkey"].read_share(0.45, 0.55) == pytest.approx(1.0)
    assert date.starts[0] == 0
    assert date.ends[-1] == 1
    np.testing.assert_allclose(date.starts[1:], date.ends[:-1])


def test_every_kind_of_column_and_no_rows(tmp_path):
    table = pa.table(
        {
            "nulls": pa.nulls(3, pa.int64()),
            "flag": [True, None, False],
            "<b>&\"'": ["<script>", "x", None],
            "nan": [float("nan"), 1.0, float("inf")],
            "list": [[1], [], None],
            "when": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
            "same": [7, 7, 7],
        }
    )
    page = Page(report_page(lance_sql.write(table, tmp_path / "kinds.lance")))
    assert page.counts["script"] == 1
    Page(report_page(lance_sql.write(table.slice(0, 0), tmp_path / "none.lance")))


def test_names_and_values_control_nothing(tmp_path):
    hostile = "<b>a\x1b]0;x\x07\x9b1m\u202e&\"'"
    dataset = lance_sql.write(pa.table({hostile: [hostile, "z"], "n": [1, 2]}), tmp_path / "h.lance")
    dataset.create_index(hostile, "BTREE")
    page = report_page(dataset)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert "<b>a\\x1b]0;x" in "".join(Page(page).text)


def test_many_zones_are_put_together(tmp_path):
    table = pa.table({"id": range(10_000)})
    (picture,) = zone_pictures(lance_sql.write(table, tmp_path / "many.lance", zone_rows=8))
    assert (picture.zones, picture.grouped, len(picture.low)) == (1250, 5, 250)
    assert picture.read_share(0.0, 0.1) == pytest.approx(0.1, abs=0.01)


def test_the_command_writes_the_page(lineitem, tmp_path):
    target = tmp_path / "report.html"
    found = CliRunner().invoke(app, ["inspect", str(lineitem), "--html", str(target)])
    assert (found.exit_code, found.stdout) == (0, "")
    assert target.read_text().startswith("<!DOCTYPE html>")


def test_a_browser_shows_it_without_network(lineitem, tmp_path):
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright looks at the page")
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    target = tmp_path / "report.html"
    target.write_text(report_page(lance_sql.open(lineitem)), encoding="utf-8")
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        except api.Error:
            pytest.skip("there is no Chromium: playwright install chromium, or apt install chromium")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        problems: list[str] = []
        requests: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(target.as_uri())
        assert requests == [target.as_uri()]
        for width in (390, 800, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), width
        figure = page.locator("figure", has_text="l_shipdate").first
        before = figure.locator(".skipped").inner_text()
        assert int(re.search(r"\d+", before)[0]) > 70
        read = figure.locator(".zone.read").count()
        picture = figure.locator("svg")
        assert picture.bounding_box()["height"] > 80
        picture.hover(position={"x": 50, "y": 2})  # the greatest dates
        assert 0 < figure.locator(".zone.read").count() != read
        assert len(page.screenshot(full_page=True)) > 50_000
        browser.close()
    assert problems == []


def test_pages_and_bounds_are_drawn(tmp_path):
    table = pa.table({"id": range(3000), "raw": [row.to_bytes(4, "big") for row in range(3000)]})
    ds = lance_sql.write(table, tmp_path / "t.lance", max_rows_per_file=1000)
    text = report_page(ds)
    Page(text)
    assert text.count('class="strip"') == 2
    strips = re.findall(r'<div class="strip">(.*?)</div>', text)
    assert [strip.count("<i ") for strip in strips] == [3, 3]
    assert [re.findall(r"left:([\d.]+)%", strip) for strip in strips] == [["0.000", "33.333", "66.667"]] * 2
    assert "fragment 1, page 0: 1,000 rows from 0" in text
    assert ">2999<" in text  # the max of the numbers
    assert (2999).to_bytes(4, "big").hex() not in text


def test_operations_have_colours_of_their_own():
    style = (Path(lance_sql.__file__).parent / "report" / "style.css").read_text()
    colours = re.findall(r"^\.op-(\w+) { fill: (#\w+); background: (#\w+); }$", style, re.MULTILINE)
    assert {"append", "overwrite", "delete", "update", "merge", "rewrite"} <= {name for name, _, _ in colours}
    assert len({fill for _, fill, _ in colours}) == len(colours)


def test_reports_of_very_wide_and_very_long_tables_are_bounded(tmp_path: Path, monkeypatch) -> None:
    """By the columns whose metadata is read, and the lines of the page; a manifest may name any number."""
    import dataclasses

    from lance_engine.inspection import held_columns
    from lance_engine.inspection import history as versions

    from lance_sql.report import part

    monkeypatch.setattr(part, "MOST_COLUMNS", 30)
    monkeypatch.setattr(part, "MOST_CELLS", 120)
    read = []
    opened = held_columns._opened
    monkeypatch.setattr(held_columns, "_opened", lambda *given: read.append(given) or opened(*given))
    wide = lance_sql.write(pa.table({f"c{number}": [1] for number in range(90)}), tmp_path / "wide.lance")
    text = report_page(wide)
    assert "the first 30 of 90 columns" in text
    assert Page(text).counts["tr"] < 4 * 30
    one = lance_sql.write(pa.table({f"c{number}": [1] for number in range(12)}), tmp_path / "long.lance")
    manifest = one.snapshot.manifest
    [fragment] = manifest.fragments
    many = tuple(dataclasses.replace(fragment, id=number) for number in range(5000))
    longer = type(one)(one.snapshot.with_manifest(dataclasses.replace(manifest, fragments=many)))
    read.clear()
    text = report_page(longer)
    assert "the first 10 of 5,000 fragments" in text
    assert 10 <= len(read) <= 80
    Page(text)
    assert "This report describes" not in report_page(one)

    counted = []
    found = versions.read_version
    monkeypatch.setattr(versions, "read_version", lambda *given: counted.append(given) or found(*given))
    for _ in range(3):
        one = one.delete("c0 = 5") if one.count_rows("c0 = 5") else one.update({"c0": "c0"})
    assert one.inspect.versions(2)["version"].to_pylist() == [3, 4]
    assert len(counted) == 2


def test_reports_of_hostile_manifests_are_bounded(tmp_path: Path) -> None:
    """Names of any length, any number of indices, and fragments that nobody parses."""
    import dataclasses
    from unittest import mock

    from lance_engine.format import fragment_list
    from lance_engine.format.index_section import IndexSegment, parse_index_section
    from lance_engine.inspection import indices

    from lance_sql.report.markup import MOST_TEXT
    from lance_sql.report.part import MOST_CELLS, MOST_INDICES

    long = "<" * 100_000
    dataset = lance_sql.write(pa.table({long: [1], "b": [2]}), tmp_path / "t.lance").create_index(
        "b", name=long
    )
    assert len(report_page(dataset)) < 100_000 + 20 * len("&lt;") * MOST_TEXT

    def many(snapshot: object) -> list[IndexSegment]:
        [segment] = parse_index_section(dataset.snapshot.index_section)
        return [dataclasses.replace(segment, name=f"i{number}") for number in range(5_000)]

    with mock.patch.object(indices, "all_segments", many):
        text = report_page(dataset)
    assert f"The first {MOST_INDICES} of 5,000 indices" in text
    assert Page(text).counts["tr"] < MOST_INDICES + 20

    manifest = dataset.snapshot.manifest
    [fragment] = manifest.fragments
    stored = fragment_list.stored_fragments(
        dataclasses.replace(fragment, id=number) for number in range(9_000)
    )
    fragments = fragment_list.FragmentList(stored)
    parsed = []
    original = fragment_list.fragment_from_message
    with mock.patch.object(
        fragment_list, "fragment_from_message", lambda message: parsed.append(1) or original(message)
    ):
        longer = dataclasses.replace(manifest, fragments=fragments)
        report_page(type(dataset)(dataset.snapshot.with_manifest(longer)))
    assert len(parsed) <= MOST_CELLS

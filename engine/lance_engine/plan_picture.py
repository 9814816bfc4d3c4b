"""Plans as pictures: a tree of boxes in HTML that needs nothing else."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

from lance_engine.legible import legible_line, without_secrets

_STYLE = """
.lance-plan { font: 13px/1.4 system-ui, -apple-system, "Segoe UI", sans-serif;
  overflow-x: auto; padding: 12px;
  color-scheme: light dark; color: light-dark(#1b2430, #e6eaf0); background: light-dark(#f6f7f9, #11151b); }
.lance-plan h4 { margin: 18px 0 6px; font-size: 14px; }
.lance-plan .tree { display: flex; justify-content: safe center; min-width: max-content; }
.lance-plan .row { display: flex; flex-wrap: wrap; gap: 12px; }
.lance-plan .node { display: flex; flex-direction: column; align-items: center; position: relative; }
.lance-plan .box { border: 1px solid light-dark(#c9d0da, #3b4655); border-radius: 8px; padding: 8px 12px;
  background: light-dark(#fff, #1a2029); max-width: 420px; overflow-wrap: anywhere; }
.lance-plan .lance { border-color: light-dark(#2f6fed, #6d9bf7); border-width: 2px; }
.lance-plan dl { display: grid; grid-template-columns: fit-content(11em) minmax(12em, 1fr); gap: 0 10px;
  margin: 4px 0 0; font-size: 12px; }
.lance-plan .box dl > * { float: none; width: auto; margin: 0; padding: 0; } /* not as JupyterLab has it */
[data-jp-theme-light="true"] .lance-plan { color-scheme: light; }
[data-jp-theme-light="false"] .lance-plan { color-scheme: dark; }
.lance-plan .box dl > dt { font-weight: normal; color: light-dark(#667085, #98a2b3); }
.lance-plan .box dl > dd { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.lance-plan .share { display: block; height: 5px; border-radius: 3px;
  background: light-dark(#dfe4ec, #2c3440); }
.lance-plan .share i { display: block; height: 5px; border-radius: 3px;
  background: light-dark(#2f6fed, #6d9bf7); }
.lance-plan .below { display: flex; position: relative; padding-top: 14px; }
.lance-plan .below::before, .lance-plan .below > .node::before { content: ""; position: absolute; top: 0;
  left: 50%; height: 14px; border-left: 1px solid light-dark(#98a2b3, #667085); }
.lance-plan .below > .node { padding: 14px 8px 0; }
.lance-plan .below > .node::after { content: ""; position: absolute; top: 0; left: 0; right: 0;
  border-top: 1px solid light-dark(#98a2b3, #667085); }
.lance-plan .below > .node:first-child::after { left: 50%; }
.lance-plan .below > .node:last-child::after { right: 50%; }
"""
_SHARE = re.compile(r"(?:read )?\D*?([\d,]+) of ([\d,]+)")
#: Longer details are cut; the whole is shown when the pointer rests on them.
_MOST = 160


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One step of a plan, and the steps that it takes rows from."""

    name: str
    details: tuple[tuple[str, str], ...] = ()
    children: tuple[PlanNode, ...] = ()
    #: reads a Lance dataset
    is_lance: bool = False


class PlanPicture(str):
    """A plan as HTML: notebooks show it as a picture, and files of it open in a browser."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<a plan as {len(self):,} characters of HTML: show it in a notebook, or write it to a file>"

    def _repr_html_(self) -> str:
        return str(self)


def picture(title: str, trees: Iterable[PlanNode], scans: Iterable[PlanNode] = ()) -> PlanPicture:
    """The trees, and the scans side by side below them."""
    below = "".join(map(_box, scans))
    return PlanPicture(
        f'<!DOCTYPE html><meta charset="utf-8"><style>{_STYLE}</style><div class="lance-plan">'
        f"<h4>{_text(title)}</h4>"
        f'{"".join(f"""<div class="tree">{_tree(tree)}</div>""" for tree in trees)}'
        + (f'<h4>Lance datasets</h4><div class="row">{below}</div>' if below else "")
        + "</div>\n"
    )


def _tree(node: PlanNode) -> str:
    below = "".join(map(_tree, node.children))
    return (
        f'<div class="node">{_box(node)}' + (f'<div class="below">{below}</div>' if below else "") + "</div>"
    )


def _box(node: PlanNode) -> str:
    details = "".join(f"<dt>{_text(name)}</dt><dd>{_detail(value)}</dd>" for name, value in node.details)
    kind = "box lance" if node.is_lance else "box"
    return (
        f'<div class="{kind}"><b>{_text(node.name)}</b>'
        + (f"<dl>{details}</dl>" if details else "")
        + "</div>"
    )


def _detail(value: str) -> str:
    shown = _text(value if len(value) <= _MOST else value[: _MOST - 1] + "…")
    part = _SHARE.fullmatch(value)
    bar = ""
    if part is not None and (whole := int(part[2].replace(",", ""))):
        width = min(100 * int(part[1].replace(",", "")) / whole, 100)
        bar = f'<span class="share"><i style="width:{width:.1f}%"></i></span>'
    return f'<span title="{_text(value)}">{shown}</span>{bar}'


def _text(value: str) -> str:
    return html.escape(without_secrets(legible_line(value)))

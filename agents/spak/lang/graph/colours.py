"""The colours of a drawn graph: one style sheet, light and dark, for states, triggers and changes.

Colours are variables that take a page's own (`--surface`, `--text`, ...) where it has them. Everything that a
colour says is said by a shape, a glyph (glyphs.py) or a word too. Pages take it as
static/css/generated/graph.css, which `python -m spakweb.face.editor.write_graph_css` writes.
"""

from __future__ import annotations

_LIGHT = """--g-bg:var(--bg,#f7f9fb);--g-surface:var(--surface,#fff);--g-line:#6b7684;--g-edge:#59636e;\
--g-faint:#858f99;--g-text:var(--text,#1a2029);--g-muted:var(--muted,#57606a);--g-accent:var(--accent,#0a5cc2);--g-on:#fff;\
--g-good:#116d32;--g-bad:#b3261e;--g-warn:#8a5200;--g-calm:#0b6a75;--g-violet:#6f3cc4;\
--g-good-bg:#e3f5e8;--g-bad-bg:#fdeaea;--g-warn-bg:#fdf3dc;--g-blue-bg:#e4effd;--g-violet-bg:#f1e9fd"""
_DARK = """--g-bg:var(--bg,#0f141a);--g-surface:var(--surface,#1a212a);--g-line:#7f8b99;--g-edge:#95a1ae;\
--g-faint:#66717d;--g-text:var(--text,#e8edf3);--g-muted:var(--muted,#a3adb9);--g-accent:var(--accent,#6cb0ff);--g-on:#0b1016;\
--g-good:#59c97a;--g-bad:#ff8a80;--g-warn:#e5b04d;--g-calm:#4fc3cf;--g-violet:#c3a0ff;\
--g-good-bg:#14301f;--g-bad-bg:#3a1a1c;--g-warn-bg:#332711;--g-blue-bg:#12283f;--g-violet-bg:#2a1f40"""

STYLE = f"""\
.spak-graph{{{_LIGHT}}}
@media (prefers-color-scheme:dark){{.spak-graph{{{_DARK}}}}}
[data-theme=light] .spak-graph{{{_LIGHT}}}
[data-theme=dark] .spak-graph{{{_DARK}}}
.spak-graph text{{font:11px ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;\
fill:var(--g-muted);direction:ltr;unicode-bidi:isolate;white-space:pre}}
.spak-graph .bg{{fill:var(--g-bg)}}
.spak-graph .box{{fill:var(--g-surface);stroke:var(--g-line);stroke-width:1.25}}
.spak-graph .inner{{fill:none;stroke:var(--g-line);stroke-width:1}}
.spak-graph .name{{font-size:13px;font-weight:600;fill:var(--g-text)}}
.spak-graph .glyph{{fill:none;stroke:var(--g-muted);stroke-width:1.5;stroke-linecap:round;\
stroke-linejoin:round}}
.spak-graph .badge rect{{fill:none;stroke:var(--g-muted)}}
.spak-graph .badge text{{font-size:9px;font-weight:700;letter-spacing:.02em}}
.spak-graph .start>.box{{stroke:var(--g-accent);stroke-width:2}}
.spak-graph .b-start rect{{fill:var(--g-accent);stroke:var(--g-accent)}}
.spak-graph .b-start text{{fill:var(--g-on)}}
.spak-graph .missing>.box{{fill:none;stroke:var(--g-bad);stroke-dasharray:5 4}}
.spak-graph .missing .name,.spak-graph .missing .detail{{fill:var(--g-bad)}}
.spak-graph .missing .glyph{{stroke:var(--g-bad)}}
.spak-graph .line{{fill:none;stroke:var(--g-edge);stroke-width:1.5}}
.spak-graph .tip{{fill:var(--g-edge);stroke:none}}
.spak-graph .label rect{{fill:var(--g-bg);stroke:none}}
.spak-graph .t-success{{fill:var(--g-good)}}
.spak-graph .t-metric_improved{{fill:var(--g-calm)}}
.spak-graph .t-fail{{fill:var(--g-bad)}}
.spak-graph .t-timeout,.spak-graph .t-plateau,.spak-graph .t-budget_low{{fill:var(--g-warn)}}
.spak-graph .to-missing .line{{stroke:var(--g-bad);stroke-dasharray:5 4}}
.spak-graph .to-missing .tip{{fill:var(--g-bad)}}
.spak-graph .d-same>.line{{stroke:var(--g-faint)}}
.spak-graph .d-same>.tip{{fill:var(--g-faint)}}
.spak-graph .d-same>.box,.spak-graph .d-same>.inner{{stroke:var(--g-faint);stroke-width:1}}
.spak-graph .d-same .name{{fill:var(--g-muted)}}
.spak-graph .d-added>.box{{stroke:var(--g-good);fill:var(--g-good-bg);stroke-width:2}}
.spak-graph .d-removed>.box{{stroke:var(--g-bad);fill:var(--g-bad-bg);stroke-width:2;stroke-dasharray:2 3}}
.spak-graph .d-changed>.box{{stroke:var(--g-warn);fill:var(--g-warn-bg);stroke-width:2}}
.spak-graph .d-moved>.box{{stroke:var(--g-violet);fill:var(--g-violet-bg);stroke-width:2;\
stroke-dasharray:8 3}}
.spak-graph .d-added>.line{{stroke:var(--g-good);stroke-width:2.5}}
.spak-graph .d-removed>.line{{stroke:var(--g-bad);stroke-width:2;stroke-dasharray:2 3}}
.spak-graph .d-changed>.line{{stroke:var(--g-warn);stroke-width:2}}
.spak-graph .d-added>.tip,.spak-graph .x-added{{fill:var(--g-good)}}
.spak-graph .d-removed>.tip,.spak-graph .x-removed{{fill:var(--g-bad)}}
.spak-graph .d-changed>.tip,.spak-graph .x-changed{{fill:var(--g-warn)}}
.spak-graph .x-moved{{fill:var(--g-violet)}}
.spak-graph .x-same{{fill:var(--g-muted)}}
.spak-graph .b-added rect{{stroke:var(--g-good)}}
.spak-graph .b-added text{{fill:var(--g-good)}}
.spak-graph .b-removed rect{{stroke:var(--g-bad)}}
.spak-graph .b-removed text{{fill:var(--g-bad)}}
.spak-graph .b-changed rect{{stroke:var(--g-warn)}}
.spak-graph .b-changed text{{fill:var(--g-warn)}}
.spak-graph .b-moved rect{{stroke:var(--g-violet)}}
.spak-graph .b-moved text{{fill:var(--g-violet)}}
.spak-graph .state text{{fill:var(--g-text);font-weight:600}}
.spak-graph .state use{{fill:none;stroke:var(--g-muted);stroke-width:1.75;stroke-linecap:round;\
stroke-linejoin:round}}
.spak-graph [data-state=running]>.box{{stroke:var(--g-accent);fill:var(--g-blue-bg);stroke-width:2}}
.spak-graph [data-state=waiting]>.box{{stroke:var(--g-warn);fill:var(--g-warn-bg);stroke-width:2}}
.spak-graph [data-state=paused]>.box{{stroke:var(--g-calm);stroke-width:2}}
.spak-graph [data-state=done]>.box{{stroke:var(--g-good);fill:var(--g-good-bg);stroke-width:2}}
.spak-graph [data-state=allowed]>.box{{stroke:var(--g-warn);stroke-width:2;stroke-dasharray:6 3}}
.spak-graph [data-state=failed]>.box{{stroke:var(--g-bad);fill:var(--g-bad-bg);stroke-width:2}}
.spak-graph [data-state=refused]>.box{{stroke:var(--g-violet);fill:var(--g-violet-bg);stroke-width:2}}
.spak-graph [data-state=running] .state use{{stroke:var(--g-accent)}}
.spak-graph [data-state=waiting] .state use{{stroke:var(--g-warn)}}
.spak-graph [data-state=paused] .state use{{stroke:var(--g-calm)}}
.spak-graph [data-state=done] .state use{{stroke:var(--g-good)}}
.spak-graph [data-state=allowed] .state use{{stroke:var(--g-warn)}}
.spak-graph [data-state=failed] .state use{{stroke:var(--g-bad)}}
.spak-graph [data-state=refused] .state use{{stroke:var(--g-violet)}}
.spak-graph [role=button]{{cursor:pointer}}
.spak-graph [role=button]:focus{{outline:none}}
.spak-graph [role=button]:focus>.box,\
.spak-graph [aria-current=true]>.box{{stroke:var(--focus,var(--g-accent));stroke-width:3}}
"""

TRIGGERS = frozenset({"success", "fail", "timeout", "metric_improved", "plateau", "budget_low"})
"""Triggers that have a class, and so a colour, of their own."""

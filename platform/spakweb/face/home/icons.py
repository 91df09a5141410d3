"""Icons, as paths in a box of 24 by 24, drawn with the text's colour. A font is never needed."""

from __future__ import annotations

ICONS = {
    "home": "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
    "spec": "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
    "graph": "M9 4h6v5H9zM3 15h6v5H3zM15 15h6v5h-6zM12 9v3M6 15v-3h12v3",
    "team": "M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM2.5 20c.5-4 3-6 6.5-6s6 2 6.5 6M16 4.5a3.5 3.5 0 010 6.5M18 14.5c2 .8 3.2 2.6 3.5 5.5",
    "audit": "M5 4h14v16H5zM9 9h6M9 13h6M9 17h3",
    "user": "M12 12a4 4 0 100-8 4 4 0 000 8zM4 21c.7-4.6 3.5-7 8-7s7.3 2.4 8 7",
    "search": "M11 18a7 7 0 100-14 7 7 0 000 14zM16.2 16.2L21 21",
    "sun": "M12 16a4 4 0 100-8 4 4 0 000 8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
    "moon": "M20 14.5A8.5 8.5 0 019.5 4a8.5 8.5 0 1010.5 10.5z",
    "auto": "M12 21a9 9 0 100-18 9 9 0 000 18zM12 3v18M12 7h6M12 11h8M12 15h7",
    "folder": "M3 6h6l2 2h10v11H3z",
    "plus": "M12 5v14M5 12h14",
    "down": "M6 9l6 6 6-6",
    "right": "M9 6l6 6-6 6",
    "tick": "M5 12.5l4.5 4.5L19 7",
    "cross": "M6 6l12 12M18 6L6 18",
    "warn": "M12 4l9.5 16h-19zM12 10v4M12 17v.5",
    "help": "M12 21a9 9 0 100-18 9 9 0 000 18zM9.5 9.5a2.5 2.5 0 015 0c0 1.7-2.5 2-2.5 3.7M12 16.5v.1",
    "info": "M12 21a9 9 0 100-18 9 9 0 000 18zM12 11v5M12 7.5v.5",
    "bell": "M6 17v-6a6 6 0 0112 0v6l1.5 2h-15zM10 21.5h4",
    "tag": "M3 12V4h8l10 10-8 8zM7.5 8.5v.1",
    "history": "M4 5v5h5M4.5 10a8 8 0 113 8M12 8v4.5l3 2",
    "compare": "M8 4L4 8l4 4M4 8h11M16 12l4 4-4 4M20 16H9",
    "upload": "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4",
    "download": "M12 4v12M7 11l5 5 5-5M4 16v4h16v-4",
    "edit": "M4 20l1-4.5L16.5 4l3.5 3.5L8.5 19zM14 6.5l3.5 3.5",
    "link": "M10 14a4 4 0 005.7 0l3.5-3.5a4 4 0 00-5.7-5.7L12 6.3M14 10a4 4 0 00-5.7 0l-3.5 3.5a4 4 0 005.7 5.7L12 17.7",
    "copy": "M8 8h12v12H8zM4 16V4h12",
    "archive": "M4 8h16v12H4zM3 4h18v4H3zM10 12h4",
    "restore": "M4 12a8 8 0 108-8H6M9 1L6 4l3 3",
    "keyboard": "M3 6h18v12H3zM7 10v.1M11 10v.1M15 10v.1M18 10v.1M7 14h10",
    "shield": "M12 3l8 3v6c0 4.5-3 7.5-8 9-5-1.5-8-4.5-8-9V6z",
    "out": "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
    "gallery": "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
    "menu": "M4 7h16M4 12h16M4 17h16",
    "run": "M7 4.5l12 7.5-12 7.5z",
    "fleet": "M4 4h16v6H4zM4 14h16v6H4zM8 7v.1M8 17v.1",
    "pause": "M8.5 5v14M15.5 5v14",
    "stop": "M6 6h12v12H6z",
    "fork": "M7 4v16M7 14c0-4 10-2 10-8M14.5 8L17 5.500l2.500 2.500",
    "lock": "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 017 0v3",
    "list": "M9 6h11M9 12h11M9 18h11M4.500 6v.1M4.500 12v.1M4.500 18v.1",
    "chart": "M4 4v16h16M8 15l4-5 3 3 5-7",
    "key": "M8 18a4 4 0 100-8 4 4 0 000 8zM11 11l9-8M17 5.5l3 3M14.5 8l2 2",
}  # fmt: skip


def icon(name: str) -> str:
    """The icon as inline SVG, hidden from screen readers: words beside it say the same."""
    return (
        '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">'
        f'<path d="{ICONS[name]}"/></svg>'
    )

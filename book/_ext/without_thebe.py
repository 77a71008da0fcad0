"""Take the live-code scripts out again that jupyter-book puts into every page: twice, and pointing at a content network."""

from __future__ import annotations

from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Register the removal for the moment when all extensions are loaded."""
    app.connect("config-inited", _disconnect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _disconnect(app: Any, _config: Any) -> None:
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [one for one in listeners if one.handler.__module__ != "sphinx_thebe"]
    app.registry.css_files = [one for one in app.registry.css_files if "thebe" not in str(one[0])]

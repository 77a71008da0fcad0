"""The built book in a real browser: nothing is fetched, nothing fails, formulas and charts are drawn, links lead somewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HTML = Path(__file__).resolve().parents[2] / "book" / "_build" / "html"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
# The theme says this on pages opened from a file, where it finds no stored choice of colours.
HARMLESS = re.compile(r"theme mode")


def pages() -> list[str]:
    """Return the pages of the book, without those that Sphinx makes for itself."""
    made = {"genindex.html", "search.html"}
    return sorted(
        str(path.relative_to(HTML))
        for path in HTML.rglob("*.html")
        if path.name not in made and "_static" not in path.parts
    )


@pytest.fixture(scope="module")
def browser():
    if not (HTML / "index.html").is_file():
        pytest.skip("the book is not built: run `make book` first")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield found
        found.close()


def test_every_page_is_complete_without_a_network(browser) -> None:
    page = browser.new_page()
    outside: list[str] = []
    complaints: list[str] = []
    page.on(
        "request",
        lambda request: (
            outside.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None
        ),
    )
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text) if message.type == "error" and not HARMLESS.search(message.text) else None
        ),
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    names = pages()
    assert "index.html" in names
    for name in names:
        page.goto((HTML / name).as_uri())
        page.wait_for_load_state("load")
        assert page.title(), name
        assert page.locator("article.bd-article h1:visible").count() == 1, f"{name}: one heading of the first level"
        source = (HTML / name).read_text(encoding="utf-8")
        if 'class="math' in source:
            page.wait_for_selector("mjx-container", timeout=20_000)
            assert page.locator("mjx-merror").count() == 0, f"{name}: a formula was not understood"
    page.close()
    assert outside == []
    assert complaints == []


def test_charts_are_drawn_and_have_words(browser) -> None:
    page = browser.new_page()
    page.goto((HTML / "notebooks" / "01_embedding_pipeline.html").as_uri())
    charts = page.locator(".cell_output img")
    assert charts.count() >= 2
    for i in range(charts.count()):
        words = charts.nth(i).get_attribute("alt") or ""
        assert len(words.split()) > 3, "a chart has no alternative text"
        box = charts.nth(i).bounding_box()
        assert box is not None
        assert box["width"] > 100
        assert box["height"] > 50
    page.close()


def test_no_internal_link_is_broken() -> None:
    if not (HTML / "index.html").is_file():
        pytest.skip("the book is not built: run `make book` first")
    broken = []
    for name in pages():
        path = HTML / name
        source = path.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"]+)"', source):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or not parts.path:
                continue
            if not (path.parent / unquote(parts.path)).resolve().exists():
                broken.append((name, target))
    assert broken == []

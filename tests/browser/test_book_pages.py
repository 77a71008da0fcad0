"""The built book in a real browser: nothing is fetched, nothing fails, formulas and charts are drawn, links lead somewhere."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "book" / "_build" / "html"
#: The notebooks as the book was built from them.
BUILT = ROOT / "build" / "book" / "notebooks"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
# The theme says this on pages opened from a file, where it finds no stored choice of colours.
HARMLESS = re.compile(r"theme mode")
#: Read once per page, all of it inside the article.
LOOK = """() => {
  const article = document.querySelector("article.bd-article");
  const shown = one => one.checkVisibility();
  return {
    title: document.title,
    headings: [...article.querySelectorAll("h1,h2,h3,h4,h5,h6")].filter(shown).map(one => [Number(one.tagName[1]), one.innerText.trim()]),
    images: [...article.querySelectorAll("img")].map(one => ({
      src: one.getAttribute("src"), alt: one.getAttribute("alt") || "", width: one.naturalWidth, height: one.naturalHeight,
      chart: one.closest(".cell_output") !== null, caption: (one.closest("figure")?.querySelector("figcaption")?.innerText || "").trim(),
    })),
    formulas: article.querySelectorAll(".math").length, drawn: article.querySelectorAll("mjx-container").length,
    misunderstood: article.querySelectorAll("mjx-merror").length,
    twice: [...document.querySelectorAll("[id]")].map(one => one.id).filter((id, i, all) => all.indexOf(id) < i),
  };
}"""
#: Contrast of every piece of text with the first opaque ground below it (WCAG 2.2); 3 for large text and for signs.
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = text => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const light = color => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const c = color[i] / 255; return sum + weight * (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); }, 0);
  const ground = node => {
    const stack = [];
    for (let one = node; one; one = one.parentElement) {
      const found = rgb(getComputedStyle(one).backgroundColor);
      if (found[3] > 0) stack.push(found);
      if (found[3] === 255) break;
    }
    let color = [255, 255, 255];
    for (const layer of stack.reverse()) color = color.map((c, i) => c + (layer[i] - c) * layer[3] / 255);
    return color;
  };
  const poor = [];
  for (const node of document.querySelectorAll("article.bd-article :is(p, li, td, th, h1, h2, h3, a, code, span, figcaption, summary, dt, dd)")) {
    const own = [...node.childNodes].filter(one => one.nodeType === 3 && one.data.trim()).map(one => one.data.trim()).join(" ");
    if (!own || !node.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    if (node.closest("svg, mjx-container, .headerlink, .sr-only, .an-sr")) continue;
    const style = getComputedStyle(node), size = parseFloat(style.fontSize), sign = !/[\\p{L}\\p{N}]/u.test(own);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) || sign;
    const pair = [light(rgb(style.color)), light(ground(node))].sort((a, b) => b - a), ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < (large ? 3 : 4.5)) poor.push(`${ratio.toFixed(2)} ${node.tagName} ${style.color}: ${own.slice(0, 40)}`);
  }
  return poor;
}"""


def pages() -> list[str]:
    """Return the pages of the book, without those that Sphinx makes for itself."""
    made = {"genindex.html", "search.html", "py-modindex.html"}
    return sorted(
        path.relative_to(HTML).as_posix()
        for path in HTML.rglob("*.html")
        if path.name not in made and "_static" not in path.parts and "_modules" not in path.parts
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


@pytest.fixture(scope="module")
def seen(browser) -> dict[str, dict]:
    """Visit every page once and return what is on it, what it asked for, and what it complained of."""
    page = browser.new_page()
    outside: list[str] = []
    complaints: list[str] = []

    def asked(request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            outside.append(request.url)

    def told(message) -> None:
        if message.type == "error" and not HARMLESS.search(message.text):
            complaints.append(message.text)

    page.on("request", asked)
    page.on("console", told)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    found = {}
    for name in pages():
        page.goto((HTML / name).as_uri())
        page.wait_for_load_state("load")
        # Pictures further down are loaded when they are scrolled to.
        page.evaluate("document.querySelectorAll('img').forEach(one => { one.loading = 'eager'; })")
        page.evaluate("Promise.all([...document.images].map(one => one.decode().catch(() => null)))")
        if page.locator("article.bd-article .math").count():
            page.wait_for_selector("mjx-container", timeout=20_000)
            page.evaluate("MathJax.startup.promise.then(() => null)")
        found[name] = page.evaluate(LOOK) | {"outside": outside[:], "complaints": complaints[:]}
        outside.clear()
        complaints.clear()
    page.close()
    return found


def test_every_page_is_complete_without_a_network(seen) -> None:
    assert {"index.html", "notebooks/tour.html", "status.html", "api/index.html"} <= set(seen)
    assert {name: one["outside"] for name, one in seen.items() if one["outside"]} == {}
    assert {name: one["complaints"] for name, one in seen.items() if one["complaints"]} == {}


def test_titles_and_headings_are_sound(seen) -> None:
    assert [title for title, n in Counter(one["title"] for one in seen.values()).items() if n > 1] == []
    for name, one in seen.items():
        levels = [level for level, _ in one["headings"]]
        assert levels[:1] == [1], f"{name}: begins with {one['headings'][:1]}"
        assert levels.count(1) == 1, f"{name}: headings of the first level: {levels.count(1)}"
        jumps = [
            (one["headings"][i][1], one["headings"][i + 1][1])
            for i in range(len(levels) - 1)
            if levels[i + 1] > levels[i] + 1
        ]
        assert jumps == [], f"{name}: a level is left out between {jumps}"
        assert all(words for _, words in one["headings"]), f"{name}: a heading is empty"


def test_formulas_are_drawn(seen) -> None:
    assert seen["instrument.html"]["formulas"] > 10
    for name, one in seen.items():
        assert one["drawn"] >= one["formulas"], f"{name}: {one['formulas']} formulas, {one['drawn']} drawn"
        assert one["misunderstood"] == 0, f"{name}: a formula was not understood"


def test_pictures_are_drawn_and_have_words(seen) -> None:
    for name, one in seen.items():
        for image in one["images"]:
            where = f"{name}: {image['src']}"
            assert len(image["alt"].split()) > 3, f"{where} has no alternative text"
            assert image["width"] > 100, f"{where} is not drawn"
            assert image["height"] > 30, f"{where} is not drawn"
            assert image["caption"], f"{where} has no caption"


def test_every_chart_is_a_picture_of_its_own(seen) -> None:
    charts = 0
    for name, one in seen.items():
        source = BUILT / Path(name).with_suffix(".ipynb").name
        if not name.startswith("notebooks/") or not source.is_file():
            continue
        outputs = [
            output.get("data", {})
            for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]
            for output in cell.get("outputs", [])
        ]
        wanted = sum("image/svg+xml" in data for data in outputs)
        live = sum(any(kind.startswith("application/vnd.vegalite") for kind in data) for data in outputs)
        drawn = [image for image in one["images"] if image["chart"] and image["src"].endswith(".svg")]
        assert wanted >= live, f"{name}: a chart has no picture"
        assert len(drawn) == wanted, f"{name}: {wanted} charts, {len(drawn)} pictures"
        charts += wanted
    assert charts > 5


def test_ids_are_unique_in_the_article(seen) -> None:
    assert {name: one["twice"] for name, one in seen.items() if one["twice"]} == {}


def test_no_internal_link_or_anchor_is_broken() -> None:
    if not (HTML / "index.html").is_file():
        pytest.skip("the book is not built: run `make book` first")
    sources = {path.resolve(): path.read_text(encoding="utf-8") for path in HTML.rglob("*.html")}
    anchors = {path: set(re.findall(r'\b(?:id|name)="([^"]+)"', source)) for path, source in sources.items()}
    broken = []
    for name in pages():
        path = (HTML / name).resolve()
        for target in re.findall(r'\b(?:href|src)="([^"]+)"', sources[path]):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not there.exists() or (anchor and there in anchors and anchor not in anchors[there]):
                broken.append((name, target))
    assert broken == []


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_can_be_read(browser, mode: str) -> None:
    page = browser.new_context(color_scheme=mode).new_page()
    poor = {}
    for name in pages():
        if not name.startswith("api/"):  # generated alike: one of them stands for all
            page.goto((HTML / name).as_uri())
            poor[name] = page.evaluate(CONTRAST)
    page.goto((HTML / "api" / "anima-stats.html").as_uri())
    assert page.evaluate("document.documentElement.dataset.theme") == mode
    poor["api/anima-stats.html"] = page.evaluate(CONTRAST)
    page.context.close()
    assert {name: found for name, found in poor.items() if found} == {}


def test_a_narrow_page_does_not_scroll_sideways(browser) -> None:
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    wide = {}
    for name in pages():
        page.goto((HTML / name).as_uri())
        if (over := page.evaluate("document.documentElement.scrollWidth - innerWidth")) > 1:
            wide[name] = over
    page.context.close()
    assert wide == {}


def test_on_paper_only_the_article_is_left(browser) -> None:
    page = browser.new_context(color_scheme="dark").new_page()
    page.goto((HTML / "notebooks" / "tour.html").as_uri())
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".header-article", ".prev-next-footer"):
        for i in range(page.locator(part).count()):
            assert not page.locator(part).nth(i).is_visible(), f"{part} would be printed"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(CONTRAST) == []
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.context.close()


def test_the_tour_is_named_where_a_newcomer_looks() -> None:
    tour = ROOT / "notebooks" / "tour.ipynb"
    cells = json.loads(tour.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    steps = (
        "anima.analyze(",
        "anima.analyze_many(",
        "analyze_frame(",
        "LabellingSession(",
        ".agreement(",
        ".validate(",
        "n_for_kappa(",
        "from_table(",
        "cross_validate(",
    )
    assert [step for step in steps if step not in code] == []
    assert any("parameters" in cell["metadata"].get("tags", []) for cell in cells)
    assert "notebooks/tour.ipynb" in (ROOT / "README.md").read_text(encoding="utf-8")
    contents = (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")
    assert re.search(r"file: install\s+- file: notebooks/tour\b", contents)

"""The widgets in a real JupyterLab, by keyboard, in a real browser: nothing is asked of any other machine."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

from anima.stats import cohen_kappa

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 90_000  # ms: a first analysis reads the model
KEYS = "121312211321"
LABELS = {"1": "plain", "2": "flattery", "3": "evasion"}
DETECTOR = [LABELS[key] for key in "121112221321"]

EXPLORER = """
from anima.widgets import Explorer
Explorer("Great question! Water boils at 100 degrees Celsius. I hope this helps, let me know!")
"""
BROWSER = """
from anima.corpora import load_corpus
from anima.detectors import TfidfHead, cross_validate
from anima.widgets import browse
corpus = load_corpus("casino", sample=True)
browse(corpus, cross_validate([TfidfHead()], corpus.labelled("strategy"), ["small-talk", "no-need"], folds=3))
"""
LABELLING = f"""
import pandas as pd
from anima.widgets import LabellingSession, LabellingWidget
ids = [f"r{{i:02}}" for i in range(12)]
items = pd.DataFrame({{
    "utterance_id": ids, "text": [f"Reply number {{i}}: what a lovely thought, truly." for i in range(12)],
    "score": [0.123456 + i for i in range(12)],
}})
session = LabellingSession(
    items, ["plain", "flattery", "evasion"], "labels.jsonl", annotator="ana",
    detectors={{"lexicon": dict(zip(ids, {DETECTOR!r}))}},
)
LabellingWidget(session)
"""


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Address of a JupyterLab with a profile of its own, and its folder."""
    if importlib.util.find_spec("jupyterlab") is None:
        pytest.skip("jupyterlab is not installed")
    root = tmp_path_factory.mktemp("lab")
    folder = root / "notebooks"
    folder.mkdir()
    settings = root / "config/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    (root / "config/lab/user-settings/@jupyterlab/notebook-extension").mkdir()
    (settings.parent / "notebook-extension/tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in (LABELLING, BROWSER, EXPLORER)]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / "widgets.ipynb")
    port = free_port()
    own = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
    }
    env = os.environ | {name: str(root / place) for name, place in own.items()} | {"OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    command = [
        sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with (root / "lab.log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            for _ in range(240):
                assert server.poll() is None, (root / "lab.log").read_text()
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status", timeout=2).close()
                    break
                time.sleep(0.25)
            yield f"http://127.0.0.1:{port}", folder
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="module")
def api():
    found = pytest.importorskip("playwright.sync_api")
    found.expect.set_options(timeout=PATIENCE / 3)
    return found


@pytest.fixture(scope="module")
def browser(api):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def page(browser, lab, api):
    """The notebook in a browser without memory, run once; every request to another machine is noted."""
    context = browser.new_context(viewport={"width": 1300, "height": 1250})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    outside: list[str] = []
    page.on(
        "request", lambda one: outside.append(one.url) if not one.url.startswith((lab[0], "data:", "blob:")) else None
    )
    page.goto(f"{lab[0]}/lab/tree/widgets.ipynb?reset")
    run_all(page, api)
    yield page
    context.close()
    assert outside == []


def run_all(page, api) -> None:
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    kernel, prompt = page.locator(".jp-Notebook-ExecutionIndicator").first, page.locator(".jp-InputPrompt").first
    api.expect(kernel).to_have_attribute("data-status", "idle")
    before = prompt.inner_text()
    for _ in range(5):  # what is asked while the connection is still being made may be lost without a word
        page.wait_for_timeout(1000)
        page.keyboard.press("Escape")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        for _ in range(40):
            page.wait_for_timeout(250)
            if prompt.inner_text() not in (before, "[*]:", "[ ]:"):
                return


def test_browser_leads_to_the_text(page, api) -> None:
    cell = page.locator(".jp-Cell").nth(1)
    status = cell.get_by_role("status")
    api.expect(status).to_contain_text("SAMPLE, casino: 283 utterances")
    cell.get_by_label("Label", exact=True).select_option("small-talk")
    cell.get_by_label("Show", exact=True).select_option("errors")
    api.expect(status).not_to_contain_text("283")
    dialogues = cell.get_by_label("Dialogues", exact=True)
    dialogues.focus()
    first = cell.locator(".an-head").inner_text()
    dialogues.press("ArrowDown")
    api.expect(cell.locator(".an-head")).not_to_have_text(first)
    api.expect(cell.locator(".ab-hit .ab-wrong").first).to_contain_text("small-talk")


def test_explorer_follows_reply_and_threshold(page, api) -> None:
    cell = page.locator(".jp-Cell").nth(2)
    chain = cell.locator(".an-strip")
    status = cell.get_by_role("status")
    api.expect(chain).to_contain_text("VALIDATE")
    api.expect(status).to_contain_text("Nothing flips")

    reply = cell.get_by_label("or type one")
    reply.fill("Water boils at 100 degrees Celsius at sea level. Iron melts at 1538 degrees.")
    api.expect(chain).not_to_contain_text("VALIDATE")
    reply.fill("What a wonderful question! Iron melts at 1538 degrees. You are absolutely right to ask this.")
    api.expect(chain).to_contain_text("VALIDATE")

    cell.get_by_label("Classifier").select_option("centroid")
    api.expect(cell.get_by_label("Threshold")).to_be_enabled()
    handle = cell.locator(".widget-slider .noUi-handle")
    handle.focus()
    for _ in range(5):
        handle.press("PageUp")
    api.expect(cell.get_by_label("Threshold")).not_to_have_value("0.3")
    api.expect(status).to_contain_text("VALIDATE → plain")
    api.expect(cell.get_by_label("What flips against the default")).to_be_visible()
    cell.get_by_role("button", name="Back to the default").click()
    api.expect(status).to_contain_text("Nothing flips")


def test_labelling_by_keyboard_survives_a_reload(page, lab, api) -> None:
    file = lab[1] / "labels.jsonl"
    widget = page.get_by_role("group", name="Blind labelling")
    text, number, progress = (widget.locator(f".al-{name}") for name in ("text", "number", "progress"))

    def press(key: str, shown: str) -> None:
        page.keyboard.press(key)
        api.expect(progress).to_have_text(f"{shown} of 12 labelled")

    widget.get_by_role("region", name="Item to label").focus()
    assert widget.locator(".al-item").evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    for place, key in enumerate(KEYS):
        api.expect(text).to_contain_text(f"Reply number {place}:")
        press(key, str(place + 1))
    api.expect(number).to_have_text("All done")
    press("u", "11")
    press("u", "10")
    api.expect(text).to_contain_text("Reply number 10:")
    assert widget.locator("button[aria-keyshortcuts='1']").inner_text().split() == ["1", "plain"]

    page.reload()
    run_all(page, api)
    api.expect(progress).to_have_text("10 of 12 labelled")
    api.expect(number).to_have_text("Item 11 of 12")
    widget.get_by_role("region", name="Item to label").focus()
    page.keyboard.press("s")
    api.expect(text).to_contain_text("Reply number 11:")
    press("1", "11")
    press("2", "12")
    assert not re.search(r"\.123456|lexicon|kappa of", widget.inner_html()), "scores would sway whoever labels"

    widget.get_by_text("Agreement so far").click()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    kept = {}
    for record in records:
        if record["kind"] == "label":
            kept[record["item"]] = record["label"]
        elif record["kind"] == "undo":
            kept.pop(record["item"], None)
    people = [kept[f"r{place:02}"] for place in range(12)]
    assert people == [LABELS[key] for key in KEYS[:10] + "21"]
    kappa = cohen_kappa(people, DETECTOR, categories=tuple(LABELS.values()), name="kappa of ana and lexicon")
    api.expect(widget.locator(".al-kappa")).to_have_text(kappa.summary())

    widget.get_by_label("Annotator").fill("ben")
    widget.get_by_label("Annotator").press("Enter")
    api.expect(progress).to_have_text("0 of 12 labelled")
    press("1", "1")
    api.expect(widget.locator(".al-kappa li").first).to_contain_text("kappa of ben and ana")


def test_notebook_7_goes_on_where_lab_stopped(page, lab, api) -> None:
    page.goto(f"{lab[0]}/notebooks/widgets.ipynb")
    run_all(page, api)
    widget = page.get_by_role("group", name="Blind labelling")
    api.expect(widget.locator(".al-progress")).to_have_text("12 of 12 labelled")
    api.expect(page.get_by_label("or type one")).to_be_visible()
    api.expect(page.get_by_label("Dialogues", exact=True)).to_be_visible()
    widget.get_by_role("region", name="Item to label").focus()
    page.keyboard.press("u")
    api.expect(widget.locator(".al-number")).to_have_text("Item 11 of 12")

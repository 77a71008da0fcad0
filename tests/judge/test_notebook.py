"""The notebook display, run by a real kernel: it shows things as they come and leaves plain HTML behind."""

import textwrap

import pytest

from anima.judge.events import Event
from anima.judge.notebook import display
from anima.judge.stream import Streamed, stream

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SECRET = "sk-ABCDEFGHIJKLMNOPQRSTUVWX"
SETUP = textwrap.dedent(
    f"""
    import json, time
    from anima.judge.decode import Delta
    from anima.judge.notebook import display
    from anima.judge.request import Completion
    from anima.judge.stream import stream

    class Pieces:
        def __init__(self, words, end): self.words, self.end = iter(words), end
        def __iter__(self): return self
        def __next__(self):
            word = next(self.words, None)
            if word is None:
                raise self.end
            time.sleep(0.002)
            return word
        completion = Completion(content=json.dumps({{"authenticity_score": 31}}), thinking="Well. {SECRET} </pre>", model="said")
        def __enter__(self): return self
        def __exit__(self, *_): print("closed")

    class Said:
        model = "said"
        def __init__(self, end=StopIteration): self.end = end
        def complete(self, _): return Pieces.completion
        def stream(self, _):
            words = ["Well. ", "{SECRET[:9]}", "{SECRET[9:]} </pre>"] + ["and so on "] * 50
            return Pieces([Delta("thinking", w) for w in words] + [Delta("content", "{{}}")] * 50, self.end)

    REPLY = "Great question! Water boils at 100 degrees. I do not know about the summit."
    """
)


@pytest.fixture(scope="module")
def notebook():
    cells = [
        SETUP,
        'result = display(stream(REPLY, "When?", judge=Said(), mode="analyze"), interval=0.05)',
        "result",
        'display(stream(REPLY, judge=Said(KeyboardInterrupt), mode="analyze"));',
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(book, timeout=120, allow_errors=True)
    shown = []
    seen = client.process_message

    def watch(message, *args, **options):
        if message["msg_type"] in ("display_data", "update_display_data"):
            shown.append(message["content"]["data"].get("text/html", ""))
        return seen(message, *args, **options)

    client.process_message = watch
    client.execute()
    return book, shown


def html(cell):
    return [output["data"]["text/html"] for output in cell.outputs if output["output_type"] == "display_data"]


def test_it_is_shown_while_it_comes(notebook):
    _, shown = notebook
    first = next(i for i, page in enumerate(shown) if "reads the reply" in page)
    assert first == 1  # the analysis stands before anybody was asked
    assert any("<details open><summary>Thinking of the judge" in page for page in shown)
    assert 4 < len(shown) < 60  # many pieces, few updates
    assert SECRET not in "".join(shown)


def test_plain_html_stays_behind(notebook):
    book, _ = notebook
    analysis, verdict = html(book.cells[1])
    assert "VALIDATE" in analysis
    assert "Authenticity 31 of 100 by said" in verdict
    assert "Well. [REDACTED] &lt;/pre&gt;" in verdict
    assert "reads the reply" not in verdict
    for page in (analysis, verdict):
        assert "<script" not in page
    assert "widget" not in str(book.cells[1].outputs)
    assert book.cells[2].outputs[0]["data"]["text/plain"].startswith("<Streamed: 3 sentences")


def test_an_interrupted_cell_says_so_and_closes_the_judge(notebook):
    book, _ = notebook
    cell = book.cells[3]
    assert "Stopped before the end (said reads the reply)." in html(cell)[-1]
    assert "closed" in "".join(output.get("text", "") for output in cell.outputs)
    assert cell.outputs[-1]["ename"] == "KeyboardInterrupt"


def test_it_exports(notebook):
    nbconvert = pytest.importorskip("nbconvert")
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook[0])
    assert "Authenticity 31 of 100 by said" in page


def test_outside_a_notebook_it_only_collects(capsys):
    events = stream("Great question! It boils. It does not freeze.", "Don't you think so?", judge="rules")
    found = display(events)
    assert isinstance(found, Streamed)
    assert found.verdict.fallback
    assert found.refinement.fallback
    assert capsys.readouterr().out == ""
    assert display([Event("error", {"stage": "pre_analysis", "message": "no"})]) == Streamed()

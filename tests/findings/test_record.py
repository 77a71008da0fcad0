"""Finding records: written whole, read back equal, verdicts decided by intervals, receipts by content."""

import json
import math
import re
from pathlib import Path

import pytest

from anima.errors import DataError, InputError
from anima.findings import Claim, Finding, Material, Measurement, read_finding, sources_hash
from anima.findings import receipt as receipts
from anima.findings.compare import compare_findings
from anima.findings.kappa_readings import FEW, FLOOR
from anima.findings.record import load_materials, stated
from anima.stats import Estimate

NAME = "embedding_pipeline"  # any module of the findings will do


def measurement(key="recall", value=0.4, low=0.3, high=0.5, **options):
    return Measurement(key, "finding things", Estimate("recall", value, low, high, n=50), **options)


def finding(*measurements, sample=False, claims=(), **options):
    return Finding.make(
        NAME,
        title="Title",
        answer="It finds two in five.",
        measurements=list(measurements) or [measurement()],
        limits=["Small."],
        materials=[Material("toy", "ab" * 8, sample)],
        parameters={"seed": 1, **options},
        claims=list(claims),
    )


def test_a_record_is_read_back_as_it_was_written(tmp_path):
    undefined = Measurement("kappa", "x", Estimate.undefined("kappa", "one class only"), baseline=Estimate("k", 0.1))
    made = finding(measurement(), undefined, claims=[Claim("Recall is above a fifth.", "recall", 0.2)])
    again = read_finding(made.write(tmp_path))
    assert again.to_dict() == made.to_dict()
    assert math.isnan(again.measurement("kappa").estimate.value)
    assert again.verdicts()["verdict"].tolist() == ["holds"]


@pytest.mark.parametrize(
    ("against", "expects", "verdict"),
    [
        (0.2, "above", "holds"),
        (0.4, "above", "undecided"),
        (0.6, "above", "fails"),
        (0.6, "below", "holds"),
        (0.2, "below", "fails"),
        (0.3, "above", "undecided"),  # an end that touches decides nothing
    ],
)
def test_the_interval_decides_a_claim(against, expects, verdict):
    claim = Claim("…", "recall", against, expects)
    assert claim.verdict({"recall": measurement()}) == verdict


def test_a_claim_without_its_number_is_not_measured_and_one_without_interval_undecided():
    assert Claim("…", "recall", 0.1).verdict({}) == "not measured"
    assert Claim("…", "recall", 0.1).verdict({"recall": measurement(low=math.nan, high=math.nan)}) == "undecided"


def test_keys_are_unique_and_claims_name_one():
    with pytest.raises(InputError, match="'recall' appears twice"):
        finding(measurement(), measurement())
    with pytest.raises(InputError, match="'precision', which is not among"):
        finding(claims=[Claim("…", "precision", 0.5)])


def test_a_sample_says_so_everywhere():
    made = finding(sample=True)
    assert made.summary().startswith("SAMPLE")
    assert made._repr_html_().startswith("<p><b>SAMPLE: Title</b>")
    assert made.to_dict()["sample"] is True
    assert made.to_frame()["sample"].all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a finding"),
        ("[]", "field 'schema' must be 1, got 'list'"),
        ('{"schema": 99}', "field 'schema' must be 1, got 99"),
        ('{"schema": 1, "name": "x"}', "field 'title' is missing"),
        (
            '{"schema": 1, "name": "", "title": "", "answer": "", "claims": [], "measurements": ["x"]}',
            "measurements must be objects",
        ),
    ],
)
def test_a_bad_record_is_named(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        read_finding(path)
    assert "x.json" in str(error.value)


def test_a_failed_write_leaves_the_old_record(tmp_path, monkeypatch):
    path = finding().write(tmp_path)
    before = path.read_text()
    monkeypatch.setattr(json, "dumps", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        finding(measurement(value=0.45)).write(tmp_path)
    assert path.read_text() == before


def test_the_receipt_follows_content_alone():
    assert finding().receipt == finding().receipt
    assert finding(measurement(value=0.41)).receipt.differences(finding().receipt) == ["results"]
    assert finding(extra=1).receipt.differences(finding().receipt) == ["parameters"]


def test_prose_changes_no_source_hash_and_code_does():
    text = '"""Doc."""\n\ndef f(x):\n    """Doc."""\n    # why\n    return x + 1  # here\n'
    other = '"""Other words."""\ndef f(x):\n    """More."""\n    return x + 1\n'
    code = text.replace("x + 1", "x + 2")
    bare = [receipts._bare(source, receipts.ast.parse(source)) for source in (text, other, code)]
    assert bare[0] == bare[1] != bare[2]


def test_a_source_hash_covers_what_the_module_imports(monkeypatch):
    before = sources_hash("anima.findings.record")
    real = receipts._bare
    receipts.sources.cache_clear()
    monkeypatch.setattr(receipts, "_bare", lambda text, tree: real(text, tree).replace("class Estimate", "class Other"))
    assert sources_hash("anima.findings.record") != before
    receipts.sources.cache_clear()
    with pytest.raises(InputError, match=r"'anima\.nothing' is not part"):
        sources_hash("anima.nothing")


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "notebooks").glob("0[1-6]*.ipynb")), ids=str)
def test_a_receipt_covers_every_module_that_its_notebook_takes_numbers_from(path):
    code = "".join(
        line for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code" for line in cell["source"]
    )
    used = {f"anima.findings.{name}" for name in re.findall(r"from anima\.findings(?: import |\.)(\w+)", code)}
    assert used
    assert used <= receipts.sources(f"anima.findings.{path.stem[3:]}").keys()


def test_constants_in_words_are_those_of_the_code():
    told = stated("kappa_revalidation")
    assert any(f"fewer than {FEW} positives" in limit for limit in told.limits)
    assert any(limit.startswith(f"{FLOOR:g} as the floor") for limit in told.limits)
    assert all(claim.against == FLOOR for claim in told.claims if "usable rater" in claim.text)


def test_a_rerun_says_what_differs():
    old = finding(measurement(), measurement("kappa", 0.2, 0.1, 0.3))
    assert "identical" in compare_findings(old, old).summary()
    near = compare_findings(old, finding(measurement(value=0.405), measurement("kappa", 0.2, 0.1, 0.3)))
    assert near.reproduces
    far = compare_findings(old, finding(measurement(value=0.45), measurement("f1", 0.2, 0.1, 0.3), folds=3))
    assert not far.reproduces
    assert "parameters, results" in far.summary()
    assert "recall: 0.400 published, 0.450 now" in far.summary()
    assert (far.missing, far.added) == (("kappa",), ("f1",))
    assert "SAMPLE" in compare_findings(old, finding(sample=True)).summary()


@pytest.mark.parametrize("names", [("casino",), ("casino", "delidata")])
def test_a_corpus_that_is_no_folder_is_refused_with_what_would_do(names):
    with pytest.raises(InputError, match="corpus must be 'auto', 'sample' or a folder that is there, got 'foo'"):
        load_materials("foo", *names)

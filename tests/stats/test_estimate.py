import json
import math

import numpy as np
import pandas as pd
import pytest

from anima import stats
from anima.errors import InputError
from anima.stats import Estimate, estimates_frame, plot_estimates

GOOD = Estimate("rho", np.float64(0.5), 0.2, 0.7, method="Fisher z", n=30, n_dropped=2, p_value=0.01, extra={"k": 3})
NONE = Estimate.undefined("rho <b>", "x is constant", n=8)


def test_summary_is_one_sentence():
    assert GOOD.summary() == "rho = 0.500, 95% interval 0.200 to 0.700, p = 0.01 (Fisher z; n = 30, 2 dropped)."
    assert NONE.summary() == "rho <b> is undefined (n = 8): x is constant."
    shaky = Estimate("m", 1.0, status="unreliable", reason="two units", n=2, n_clusters=1, n_resamples=9, n_undefined=4)
    assert str(shaky) == "m = 1.000 (n = 2 in 1 clusters; 4 of 9 resamples undefined); unreliable: two units."


def test_dict_is_json_ready_and_nan_is_none():
    data = json.loads(json.dumps(NONE.to_dict(), allow_nan=False))
    assert data["value"] is None
    assert data["status"] == "undefined"
    assert json.loads(json.dumps(GOOD.to_dict()))["extra"] == {"k": 3}
    assert isinstance(GOOD.value, float)
    assert not isinstance(GOOD.value, np.floating)


def test_frame_keeps_undefined_rows():
    frame = estimates_frame([GOOD, NONE])
    assert list(frame["status"]) == ["ok", "undefined"]
    assert frame["k"].tolist()[0] == 3
    assert math.isnan(frame["value"][1])
    assert len(GOOD.to_frame()) == 1
    assert list(estimates_frame([]).columns)[:2] == ["name", "value"]


def test_html_is_escaped():
    page = NONE._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_plot_draws_every_line():
    chart = plot_estimates([GOOD, NONE], title="t").to_dict()
    assert chart["title"] == "t"
    assert len(chart["layer"]) == 3
    assert GOOD.plot(reference=None).to_dict()["layer"]


def test_value_and_status_must_agree():
    with pytest.raises(InputError, match="belong together"):
        Estimate("m", math.nan)
    with pytest.raises(InputError, match="belong together"):
        Estimate("m", 1.0, status="undefined", reason="x")
    with pytest.raises(InputError, match="needs a reason"):
        Estimate("m", 1.0, status="unreliable")
    assert GOOD.renamed("tau").name == "tau"


X, FLAGS = np.arange(12.0), np.arange(12) % 3 == 0
RATED = pd.DataFrame({"item": np.repeat(range(6), 2), "rater": ["a", "b"] * 6, "value": FLAGS})


@pytest.mark.parametrize("level", [95, 1, "a", math.nan])
@pytest.mark.parametrize(
    "estimate",
    [
        lambda level: stats.correlation(X, X**2, level=level),
        lambda level: stats.cohen_kappa(FLAGS, FLAGS[::-1], level=level),
        lambda level: stats.percent_agreement(FLAGS, FLAGS, level=level),
        lambda level: stats.wilson_interval(1, 3, level),
        lambda level: stats.lin_ccc(X, X**2, level=level),
        lambda level: stats.krippendorff_alpha(RATED, level=level),
        lambda level: stats.icc(RATED, level=level),
        lambda level: stats.auc(X, FLAGS, level=level),
        lambda level: stats.mantel_haenszel(FLAGS, FLAGS[::-1], level=level),
        lambda level: stats.brier_score(X / 12, FLAGS, level=level),
        lambda level: stats.calibration_curve(X / 12, FLAGS, level=level),
        lambda level: stats.bootstrap(np.mean, X, level=level),
        lambda level: stats.trend(X, level=level),
        lambda level: stats.n_for_correlation_width(0.3, 0.1, level=level),
        lambda level: stats.n_for_kappa_width(0.3, 0.1, level=level),
        lambda level: stats.n_for_proportion_width(0.3, 0.1, level=level),
        lambda level: Estimate("m", 1.0, level=level),
    ],
)
def test_a_level_that_is_no_share_is_refused_everywhere(estimate, level):
    """95 for 0.95 gave intervals without numbers, or an error from inside the standard library."""
    with pytest.raises(InputError, match="level must"):
        estimate(level)

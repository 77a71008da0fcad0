"""Numbers: estimates with intervals, resampling, correlation, agreement, calibration, multiplicity, power, drift."""

from anima.stats.agreement import cohen_kappa, percent_agreement, weighted_kappa, wilson_interval
from anima.stats.bootstrap import bootstrap, bootstrap_mean, bootstrap_sums, confusion_terms
from anima.stats.calibration import CalibrationCurve, brier_score, calibration_curve, isotonic_curve
from anima.stats.correlation import correlation, permutation_p
from anima.stats.drift import DriftTest, SeriesState, cusum, e_process, series_state, trend
from anima.stats.entropy import entropy
from anima.stats.estimate import Estimate, Presentable, estimates_frame, json_ready, plot_estimates
from anima.stats.folds import grouped_folds
from anima.stats.intraclass import icc, lin_ccc
from anima.stats.multiplicity import adjust_p, max_t
from anima.stats.power import (
    minimum_p,
    n_for_correlation,
    n_for_correlation_width,
    n_for_kappa,
    n_for_kappa_width,
    n_for_proportion_width,
)
from anima.stats.raters import fleiss_kappa, gwet_ac, krippendorff_alpha, reliability
from anima.stats.separation import auc, rank_biserial
from anima.stats.stratified import mantel_haenszel

__all__ = [
    "CalibrationCurve", "DriftTest", "Estimate", "Presentable", "SeriesState", "adjust_p", "auc", "bootstrap",
    "bootstrap_mean", "bootstrap_sums", "brier_score", "calibration_curve", "cohen_kappa", "confusion_terms", "correlation", "cusum",
    "e_process", "entropy", "estimates_frame", "fleiss_kappa", "grouped_folds", "gwet_ac", "icc", "isotonic_curve", "json_ready",
    "krippendorff_alpha", "lin_ccc", "mantel_haenszel", "max_t", "minimum_p", "n_for_correlation", "n_for_correlation_width",
    "n_for_kappa", "n_for_kappa_width", "n_for_proportion_width", "percent_agreement", "permutation_p",
    "plot_estimates", "rank_biserial", "reliability", "series_state", "trend", "weighted_kappa", "wilson_interval",
]  # fmt: skip

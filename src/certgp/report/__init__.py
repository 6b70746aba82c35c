"""What a person reads of a fitted model: scores beside simple models, a certificate in words, one page of HTML.

Below the estimators: it is given predictions, certificates and curves, and knows neither models nor scikit-learn.
"""

from certgp.report.card import LEVELS, Card
from certgp.report.facts import Advice, Curve, Effect, Facts, RankChoice
from certgp.report.outputs_page import make_outputs_report
from certgp.report.page import Report, make_report
from certgp.report.predicted import Predicted

__all__ = [
    "LEVELS",
    "Advice",
    "Card",
    "Curve",
    "Effect",
    "Facts",
    "Predicted",
    "RankChoice",
    "Report",
    "make_outputs_report",
    "make_report",
]

"""What docs/league.md says whatever the cells are."""

from __future__ import annotations

from league.contestants import GP_SECONDS, LEAST_SEARCH, MOST_SEARCH, ROWS_PER_SECOND, SEVERAL, SEVERAL_TAKE
from league.play import CPU_LIMIT

INTRODUCTION = """# The league

certgp and its peers on every data set at hand, scored alike. The page is generated (`make league` plays what is
missing and writes it; `python benchmarks/league.py page` writes it alone) from `benchmarks/results/league.jsonl`; no
figure in it is typed by hand. Settings and rules are in [decision 0043](decisions/0043-rules-of-the-league.md)."""

STANDING = """A rank on a data set is one more than the number of contestants that are better there, each pair on the
splits that both have; † has fewer splits than others on one of the sets. \\* first, or behind the first by at most one
standard error of their [difference](#where-we-lose-and-to-whom). CPU seconds are geometric means over these sets.
‡: so many of the cells are of earlier versions of certgp."""

SELECTION = """Test scores of split 0 of these sets had a say in certgp's defaults (decisions
[0036](decisions/0036-noise-that-depends-on-the-input.md), [0038](decisions/0038-autogp-by-probes-and-finals.md),
[0042](decisions/0042-a-race-that-combines-and-resumes.md), [0053](decisions/0053-frequent-rows.md)) and in the rules
for peers ([0043](decisions/0043-rules-of-the-league.md))."""

LOSSES = """Each pair on the splits that both have, whose number is in the last column. Standard errors are those of the
difference of the two over the same test rows, averaged over splits: sqrt(sum of squares) / splits. They say how much
other test rows would change it, not other training rows. \\*: a cell of earlier code does not keep what this takes, and
the error is that of the peer's mean."""

TABLES = """Means over the splits that were played, whose number is in parentheses where it is not one; y has standard
deviation one. In bold: first, in pairs on the splits that both have, as columns may be of different splits. x: no
result, see [below](#without-a-result). Empty: not played yet. ‡: of earlier code, at least in part; such
figures of peers are not compared and never in bold."""

TRAPS = """Splits are `train_test_split(X, y, test_size=0.1, random_state=s)`, s = 0 to 4, standardised with the
training part."""

WITHOUT = f"""A cell that has not ended after {CPU_LIMIT} CPU seconds has no result and is last in its ranks, as one
that fails or is left out."""

SETTINGS = f"""## Settings

- One thread and one process for each cell; CPU seconds count fit, search and prediction, not imports. The machine is
  shared, so seconds are rough.
- Trees (LightGBM, CatBoost, XGBoost, NGBoost, scikit-learn): defaults first, then random candidates for n /
  {ROWS_PER_SECOND} CPU seconds (at least {LEAST_SEARCH:.0f}, at most {MOST_SEARCH:.0f}; n training rows), each for an
  eighth of them at most, early stopping on held-out training rows (five folds up to 5,000 rows, one above); the best
  one, where it was still gaining, again with what is left; then a fit to all rows with the rounds found, which comes
  on top. Larger data sets have more leaves, depth and bins to draw from.
- A point prediction (LightGBM, CatBoost, XGBoost, ridge) gets Student-t errors of one scale, fitted to residuals of
  held-out rows. A learned variance (CatBoost with uncertainty, NGBoost) gets Student-t errors with a factor and a floor
  that suit them.
- Those that boost more than a mean ({", ".join(SEVERAL)}) have {SEVERAL_TAKE:.0f} times the
  seconds, up to the same limit. NGBoost and quantiles use two of the five folds; for quantiles (seven models, joined
  linearly in the normal score, Gaussian tails) half of the seconds search settings for the median.
- GP peers train for at most {GP_SECONDS:.0f} CPU seconds. GPflow: 200 inducing points; GPyTorch's SVGP: 300; its exact
  GP: the better of two kernels by evidence. GPBoost: hyper-parameters from 2,000 rows, 50 neighbours of all.
- certgp: defaults, `noise="auto"`; `rank=100` for Mercer and sparse models."""

"""Who takes part in the league, and with which seconds."""

from __future__ import annotations

from peers.contestants import Contestant

EXACT_ROWS = 5_000  # of a dense exact GP: a step at 15,000 rows takes minutes of one core
GP_SECONDS = 120.0  # CPU seconds after which training of a GP peer ends, as it is then
LEAST_SEARCH, MOST_SEARCH, ROWS_PER_SECOND = 20.0, 100.0, 250
SEVERAL = ("sklearn HGB quantiles", "CatBoost uncertainty", "NGBoost")  # boost more than a mean
SEVERAL_TAKE = 2.0  # times the seconds of the others


def _ours(name: str, variant: str) -> Contestant:
    return Contestant(name, "league.certgp_model", None, "", None, variant)


def _peer(name: str, module: str, environment: str | None, variant: str = "", rows: int | None = None) -> Contestant:
    return Contestant(name, f"league.{module}", None, "", environment, variant, rows)


PEERS = (
    _peer("ridge", "ridge", None),
    _peer("LightGBM", "lightgbm_trees", "trees"),
    _peer("CatBoost", "catboost_trees", "trees"),
    _peer("CatBoost uncertainty", "catboost_uncertainty", "trees"),
    _peer("XGBoost", "xgboost_trees", "trees"),
    _peer("NGBoost", "ngboost_trees", "trees"),
    _peer("sklearn HGB quantiles", "sklearn_trees", None),
    _peer("GPBoost Vecchia", "gpboost_gp", "gpboost"),
    _peer("GPflow SGPR", "gp_peer", "gpflow", "peers.gpflow_sgpr rank=200 budget=500"),
    _peer("GPyTorch SVGP", "gp_peer", "gpytorch", "peers.gpytorch_svgp rank=300 budget=1000 variant=adam"),
    _peer("GPyTorch exact", "gp_peer", "gpytorch", "peers.gpytorch_exact rank=1 budget=200", EXACT_ROWS),
)
OURS = (
    _ours("LocalGP", "LocalGP"),
    _ours("DeepFourierGP", "DeepFourierGP"),
    _ours("DeepFourierGP x 3", "DeepFourierGP members=3"),
    _ours("MercerGP", "MercerGP"),
    _ours("SparseGP", "SparseGP"),
    _ours("AutoGP low", "AutoGP effort=low"),
    _ours("AutoGP medium", "AutoGP effort=medium"),
    _ours("AutoGP high", "AutoGP effort=high"),
    _ours("AutoGP proof", "AutoGP effort=medium prefer=proof"),
)
FIRST = ("AutoGP medium", "LightGBM", "CatBoost", "XGBoost", "ridge", "MercerGP", "SparseGP", "LocalGP")  # to play
CONTESTANTS = {each.name: each for each in (*PEERS, *OURS)}


def search_seconds(n: int, models: float = 1.0) -> float:
    """CPU seconds of a random search on n training rows, the same for all trees; twice that for those that learn
    more than a mean, up to the same limit.
    """
    return min(models * max(n / ROWS_PER_SECOND, LEAST_SEARCH), MOST_SEARCH)


def allowed_seconds(contestant: Contestant, n: int) -> float:
    """What a runner is told to spend: certgp, ridge and GPBoost's GP take no notice of it."""
    if contestant.module == "league.gp_peer":
        return GP_SECONDS
    return search_seconds(n, SEVERAL_TAKE if contestant.name in SEVERAL else 1.0)

"""Fitted estimators as surrogates in Bayesian optimisation with BoTorch (``certgp[botorch]``)."""

from certgp.optimisation.surrogate import Surrogate

__all__ = ["Surrogate"]

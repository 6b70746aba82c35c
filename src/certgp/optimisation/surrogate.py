"""A fitted estimator as a BoTorch model."""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from sklearn.exceptions import NotFittedError
from torch import Tensor

from certgp.errors import CertgpWarning, InvalidInputError
from certgp.estimators import GPRegressor
from certgp.estimators.table_gp import TableGP
from certgp.models import FittedModel


class Surrogate(Model):
    """What BoTorch's acquisition functions ask of a model: the joint posterior of f at a few points, differentiable.

    Means and covariances are those of ``predict(X, return_cov=True, include_noise=False)``, in the units of X and y.
    Low-rank and exact models carry gradients to X, so that ``optimize_acqf`` works as usual. Others (local models)
    refuse gradients: optimise with ``options={"with_grad": False}`` or over candidates. The posterior of several
    members (deep models) is the Gaussian of their joint mean and covariance.

    Parameters
    ----------
    estimator : a fitted estimator of certgp; it is not copied, and a later ``fit`` of it is seen here. A TableGP is
        refused: its ``fitted`` takes the numbers that its columns become
    """

    def __init__(self, estimator: GPRegressor) -> None:
        super().__init__()
        if isinstance(estimator, TableGP):
            raise InvalidInputError(
                "a TableGP takes a table, and an optimiser moves numbers; give model.fitted, the estimator behind, "
                "whose inputs are those of model.encode(frame)"
            )
        try:
            models = estimator.models
        except NotFittedError as error:
            raise InvalidInputError("estimator is not fitted; call fit first") from error
        self.estimator = estimator
        self._count = len(models)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return self._count

    @property
    def batch_shape(self) -> torch.Size:
        """One model, not a batch of them."""
        return torch.Size([])

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> Posterior:
        """Joint posterior at X (..., q, D): of f, or with ``observation_noise=True`` of new observations."""
        if not isinstance(observation_noise, bool):
            raise InvalidInputError("observation_noise must be True or False: the noise is the fitted model's own")
        models = self.estimator.models
        wanted = range(len(models)) if output_indices is None else output_indices
        laws = [_law(models[i], X, observation_noise) for i in wanted]
        law = laws[0] if len(laws) == 1 else MultitaskMultivariateNormal.from_independent_mvns(laws)
        found = GPyTorchPosterior(law)
        return found if posterior_transform is None else posterior_transform(found)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Surrogate:
        """A new surrogate that has also seen X (n, D), Y (n, outputs); hyper-parameters stay (``partial_fit``)."""
        if X.ndim != 2 or kwargs:
            raise InvalidInputError(
                f"X must be rows (n, D) and nothing else can be given, found X of shape {tuple(X.shape)} and "
                f"{sorted(kwargs)}; batches of imagined observations are not supported"
            )
        extended = deepcopy(self.estimator)
        y = Y.detach().numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertgpWarning)
            extended.partial_fit(X.detach().numpy(), y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y)
        return Surrogate(extended)


def _law(model: FittedModel, X: Tensor, observed: bool) -> MultivariateNormal:
    """N(mean (..., q), covariance (..., q, q)) of one output, in the units of y."""
    units, process = model.standardiser, model.process
    if X.shape[-1] != len(units.x_mean):
        raise InvalidInputError(f"X has {X.shape[-1]} columns but the model was fitted on {len(units.x_mean)}")
    if X.requires_grad and not process.differentiable:
        raise InvalidInputError(
            f"{type(process).__name__} has no gradients with respect to X; call optimize_acqf with "
            'options={"with_grad": False}, choose among candidates, or fit MercerGP, FourierGP or SparseGP'
        )
    batch, q = X.shape[:-2], X.shape[-2]
    flat = units.tensor(X.double().reshape(-1, q, X.shape[-1]))
    if q == 1 and not observed:  # all batches at once
        mean, variance = process.differentiable_moments(flat[:, 0])
        means, covariances = mean[:, None], variance[:, None, None]
    else:
        pairs = [_joint(model, rows, observed) for rows in flat]
        means, covariances = (torch.stack(each) for each in zip(*pairs, strict=True))
    return MultivariateNormal(
        (units.y_mean + units.y_scale * means).reshape(*batch, q),
        (units.y_scale**2 * covariances).reshape(*batch, q, q),
    )


def _joint(model: FittedModel, rows: Tensor, observed: bool) -> tuple[Tensor, Tensor]:
    """Mean (q,) and symmetric covariance (q, q) of standardised rows (q, D)."""
    mean, covariance = model.process.differentiable_joint(rows)
    if observed:
        covariance = model.process.observation_covariance(rows.detach())
    return mean, 0.5 * (covariance + covariance.mT)

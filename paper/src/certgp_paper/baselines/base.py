"""What the methods that the paper compares with share: standardised rows in, a mixture of Gaussians out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from certgp.checks import check_fraction
from certgp.data import Standardiser, as_rows, summarise
from certgp.gp import mixture_log_density, mixture_moments, mixture_quantiles
from certgp.training import History
from certgp.training.mini_batch.steps import rate_factor

Array = NDArray[np.float64]
_FLOATS = [np.float64, np.float32]


class Baseline(RegressorMixin, BaseEstimator, ABC):
    """A regressor whose predictions are mixtures of Gaussians; one component is the usual case."""

    random_state: Any
    history_: list[float] | History  # objective per row, smaller is better: one number an epoch or step

    @abstractmethod
    def _train(self, X: Tensor, y: Tensor, seed: int) -> list[float] | History:
        """Learn from standardised rows X (n, D) and y (n,), float64; return the history of the objective."""

    @abstractmethod
    def _components(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances (m, n) of new standardised observations at X (n, D), noise included."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows X (N, D) and y (N,)."""
        rows, target = check_rows(self, X, y)
        self._standardiser = Standardiser.of(summarise(as_rows(rows, target)))
        inputs, outputs = self._standardiser.inputs(rows), self._standardiser.target(target)
        seed = int(generator(self.random_state).integers(2**31))
        with _seeded(seed):
            self.history_ = self._train(torch.from_numpy(inputs), torch.from_numpy(outputs), seed)
        self._seed = seed
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Mean (n,), optionally with the standard deviation of new observations (n,)."""
        mean, variance = mixture_moments(*self._user_components(X))
        return (mean, np.sqrt(variance)) if return_std else mean

    def predict_interval(self, X: ArrayLike, coverage: float = 0.95) -> tuple[Array, Array]:
        """Ends, each (n,), of the central interval that holds a new y with probability ``coverage``."""
        tail = 0.5 * (1.0 - check_fraction("coverage", coverage))
        ends = mixture_quantiles(*self._user_components(X), np.array([tail, 1.0 - tail]))
        return ends[:, 0], ends[:, 1]

    def nlpd(self, X: ArrayLike, y: ArrayLike) -> float:
        """Mean negative log predictive density of y (n,) at X (n, D), in the units of y."""
        return -float(np.mean(mixture_log_density(np.asarray(y, dtype=np.float64), *self._user_components(X))))

    def _user_components(self, X: ArrayLike) -> tuple[Array, Array]:
        check_is_fitted(self, "history_")
        inputs = torch.from_numpy(self._standardiser.inputs(check_inputs(self, X)))
        with torch.no_grad(), _seeded(self._seed):
            means, variances = (part.double().numpy() for part in self._components(inputs))
        return self._standardiser.mean_to_user(means), self._standardiser.variance_to_user(variances)


def check_rows(model: BaseEstimator, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """X (N, D) and y (N,) to learn from, as scikit-learn validates them."""
    rows, target = validate_data(model, X, y, dtype=_FLOATS, y_numeric=True, ensure_min_samples=2)
    return rows, target


def check_inputs(model: BaseEstimator, X: ArrayLike) -> NDArray[Any]:
    """X (n, D) for a fitted model."""
    rows: NDArray[Any] = validate_data(model, X, dtype=_FLOATS, reset=False)
    return rows


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from what scikit-learn calls a random state."""
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Torch's global generator, which GPyTorch draws from, at a seed; afterwards it is as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def minimise_in_batches(
    parameters: Sequence[nn.Parameter],
    loss: Callable[[Tensor], Tensor],
    n: int,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
) -> list[float]:
    """Adam on ``loss(positions of a batch's rows)``, with a warm-up and a cosine; the mean loss of each epoch."""
    order = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(parameters, lr=learning_rate)
    total, step, means = epochs * -(-n // batch_size), 0, []
    for _ in range(epochs):
        losses = []
        for rows in torch.split(torch.randperm(n, generator=order), batch_size):
            optimiser.param_groups[0]["lr"] = learning_rate * rate_factor(step, total)
            optimiser.zero_grad()
            value = loss(rows)
            value.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(float(value.detach()))
            step += 1
        means.append(float(np.mean(losses)))
    return means

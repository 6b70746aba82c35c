"""What a stationary kernel offers; one subclass per family, each final."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.linalg import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from certgp.kernels.mercer import MercerExpansion

KERNELS: dict[str, type[Kernel]] = {}


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Kernel(ABC):
    r"""k(x, x') = sf2 rho(|(x - x') / l|): one length-scale l_j per dimension and a signal variance sf2.

    A kernel is an immutable value. Its numbers may be floats, arrays or tensors that carry gradients; a scalar length-
    scale is shared by all dimensions.
    """

    length_scale: Tensor  # (d,), or () for a length-scale shared by all dimensions
    signal_variance: Tensor  # ()

    name: ClassVar[str]

    def __init__(
        self,
        length_scale: float | Sequence[float] | NDArray[np.float64] | Tensor = 1.0,
        signal_variance: float | Tensor = 1.0,
    ) -> None:
        object.__setattr__(self, "length_scale", positive("length_scale", length_scale))
        object.__setattr__(self, "signal_variance", positive("signal_variance", signal_variance))
        if self.length_scale.ndim > 1 or self.signal_variance.ndim > 0:
            raise InvalidInputError(
                "length_scale takes one number or one per dimension, signal_variance takes one number"
            )

    def __init_subclass__(cls) -> None:
        KERNELS[cls.name] = cls

    def __repr__(self) -> str:
        scales = np.array2string(self.length_scale.detach().numpy(), precision=4, threshold=8, separator=", ")
        return (
            f"{type(self).__name__}(length_scale={scales}, signal_variance={float(self.signal_variance.detach()):.4g})"
        )

    @abstractmethod
    def correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        """rho between the rows of X (n, d) and Z (m, d), both already divided by the length-scale: (n, m)."""

    @abstractmethod
    def spectral_radius_scale(self, u: Tensor) -> Tensor:
        """Quantile map of the random factor c in omega = c g, g ~ N(0, I): the spectral law at unit length-scale.

        ``u`` (m,) is uniform on (0, 1). A Gaussian kernel has c = 1, a Matern kernel c = sqrt(2 nu / chi2(2 nu)):
        one c per *frequency*, which makes omega multivariate t and the limit the isotropic Matern kernel in any
        dimension.
        """

    @abstractmethod
    def spectral_log_density(self, omega: Tensor) -> Tensor:
        """Log density of the spectral law at unit length-scale, omega (m, d) -> (m,)."""

    def mercer(self, input_scale: Tensor) -> MercerExpansion:
        """Mercer expansion under x_j ~ N(0, input_scale_j^2), where it exists in closed form."""
        raise InvalidInputError(
            f"the {self.name} kernel has no closed-form Mercer expansion under a Gaussian input measure. "
            "Use kernel='gaussian' with Mercer features, or Nystrom or Fourier features with this kernel."
        )

    def __call__(self, X: Tensor, Z: Tensor) -> Tensor:
        """Kernel matrix k(X, Z), (n, d) x (m, d) -> (n, m)."""
        return self.signal_variance * self.unit(X.double(), Z.double())

    def unit(self, X: Tensor, Z: Tensor) -> Tensor:
        """k(X, Z) / sf2, (n, d) x (m, d) -> (n, m), in the type of X."""
        scale, centre = self.length_scale.to(X.dtype), Z.detach().mean(0)  # differences of large numbers lose digits
        return self.correlation((X - centre) / scale, (Z - centre) / scale)

    def rounding(self, Z: Tensor) -> float:
        """A bound on how far ``unit(X, Z)`` in float64 may be from k(X, Z) / sf2, for these Z (m, d) and any X.

        A distance rho errs by at most u (4 R + (d / 2 + 5) rho) with R the largest |(z - centre) / l|: coordinates are
        rounded at their own size before they are subtracted. Correlations k have |k'| <= 1 and rho |k'| <= 1.
        """
        return (self._spread(Z) + 1.0) * (Z.shape[1] + 16) * UNIT_ROUNDOFF

    def _spread(self, Z: Tensor) -> float:
        """The largest |(z - centre) / l|."""
        offset = (Z - Z.mean(0)).detach() / self.length_scale.detach()
        return math.sqrt(float(offset.square().sum(1).max())) if len(Z) else 0.0

    def diagonal(self, X: Tensor) -> Tensor:
        """k(x_i, x_i) = sf2 for every row, (n,)."""
        return self.signal_variance.expand(X.shape[0])

    def spectral_sample(self, count: int, dimension: int, rng: np.random.Generator) -> Tensor:
        """Independent frequencies eta (count, dimension) with k(x, x') = sf2 E cos(eta'(x - x'))."""
        g = torch.from_numpy(rng.standard_normal((count, dimension)))
        c = self.spectral_radius_scale(torch.from_numpy(rng.random(count)))
        return c[:, None] * g / self.length_scale

    def with_signal_variance(self, signal_variance: float | Tensor) -> Kernel:
        """The same kernel with another signal variance."""
        return replace(self, signal_variance=positive("signal_variance", signal_variance))


def positive(name: str, value: float | Sequence[float] | NDArray[np.float64] | Tensor) -> Tensor:
    """A float64 tensor of positive finite numbers, or an error that names the argument."""
    tensor = (value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value, dtype=np.float64))).double()
    if tensor.numel() == 0 or not bool(torch.isfinite(tensor).all()) or bool((tensor <= 0).any()):
        raise InvalidInputError(f"{name} must be positive and finite, found {tensor.detach().tolist()}")
    return tensor


def kernel_from_name(name: str) -> type[Kernel]:
    """Kernel class of a name such as 'gaussian' or 'matern32'."""
    if name not in KERNELS:
        raise InvalidInputError(f"unknown kernel {name!r}; known kernels: {', '.join(sorted(KERNELS))}")
    return KERNELS[name]


LOG_2PI = math.log(2.0 * math.pi)

"""A transform followed by a feature map: all that is learned by gradients."""

from __future__ import annotations

from torch import Tensor, nn

from certgp.features import FeatureMap
from certgp.transforms import Transform


class LowRankModel(nn.Module):
    """phi(g(x)) at unit signal variance: transform g: R^D -> R^d, features phi: R^d -> R^r."""

    def __init__(self, transform: Transform, features: FeatureMap) -> None:
        super().__init__()
        self.transform = transform
        self.features = features

    @property
    def rank(self) -> int:
        """r, the number of features."""
        return self.features.rank

    @property
    def width(self) -> int:
        """Numbers per row that an evaluation holds, so that chunks can be sized."""
        return self.rank + self.transform.width

    def basis(self, X: Tensor) -> Tensor:
        """Raw features (n, r) of X (n, D); see ``FeatureMap``."""
        return self.features.basis(self.transform(X))

    def forward(self, X: Tensor) -> Tensor:
        """Phi (n, r) of X (n, D)."""
        phi: Tensor = self.features(self.transform(X))
        return phi

    @property
    def dominated(self) -> bool:
        """Is Phi Phi' <= K proven for every X, with K the exact kernel at ``kernel_inputs``? Not where features and
        kernel see different rows.
        """
        same_rows = self.transform.is_identity or not self.transform.keeps_coordinates
        return self.features.dominated and same_rows

    def kernel_inputs(self, X: Tensor) -> Tensor:
        """Where the kernel of the exact GP acts (n, d): on x itself where the transform keeps coordinates, though it
        may move rows for the features' sake (winsorised inputs); on g(x) behind a projection or a network.
        """
        inputs: Tensor = X if self.transform.keeps_coordinates else self.transform(X)
        return inputs

    def diagonal(self, X: Tensor) -> Tensor | None:
        """The exact kernel k(g(x), g(x)) (n,) at unit signal variance; None where it is one everywhere."""
        kernel = self.features.kernel
        return None if kernel.constant_diagonal else kernel.diagonal(self.transform(X))

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of all parameters and buffers, for ``restore``."""
        return {name: tensor.detach().clone() for name, tensor in self.state_dict().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Return to a snapshot, also one with another index set."""
        self.load_state_dict(state)

    def correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        """The exact kernel at unit signal variance on transformed inputs, (n, m)."""
        return self.features.kernel(self.transform(X), self.transform(Z))

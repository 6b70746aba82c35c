"""A neural network in front of the kernel."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor, nn

from certgp.errors import InvalidInputError, ModelFileError
from certgp.transforms.base import Transform

_VARIANCE_FLOOR = 1e-12  # of an output that does not vary: its derivative stays finite
_FIRST_BIAS = 0.5
_BLOCK_ROWS = 1024  # without gradients no more rows' activations than this are alive


class Network(Transform):
    r"""g(x) = (h(x) - m) / s with h any ``torch.nn.Module`` that maps (n, D) to (n, d).

    In training mode (``train()``) m and s are those of the batch, differentiated through; otherwise they are the
    buffers that ``measure`` sets from the outputs of all rows, so that a row's prediction does not depend on its
    neighbours.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, module: nn.Module, dimension: int) -> None:
        super().__init__()
        self.module = module
        self._dimension = dimension
        self.register_buffer("mean", torch.zeros(dimension, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(dimension, dtype=torch.float64))

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def width(self) -> int:
        return sum(p.shape[0] for p in self.module.parameters() if p.ndim > 1)

    def raw(self, X: Tensor) -> Tensor:
        """h(x) before standardisation: X (n, D) -> (n, d)."""
        if self.training or torch.is_grad_enabled() or X.shape[0] <= _BLOCK_ROWS:
            return self._outputs(X)
        outputs = X.new_empty((X.shape[0], self._dimension))
        for start in range(0, X.shape[0], _BLOCK_ROWS):
            outputs[start : start + _BLOCK_ROWS] = self._outputs(X[start : start + _BLOCK_ROWS])
        return outputs

    def _outputs(self, X: Tensor) -> Tensor:
        output: Tensor = self.module(X.to(next(self.module.parameters()).dtype))
        return output.to(X.dtype)

    def forward(self, X: Tensor) -> Tensor:
        raw = self.raw(X)
        mean, scale = _batch_moments(raw) if self.training else (self.mean, self.scale)
        return (raw - mean.to(raw.dtype)) / scale.to(raw.dtype)

    @torch.no_grad()
    def measure(self, raw: Tensor) -> Tensor:
        """Take m and s from outputs (N, d) of ``raw`` and return these standardised."""
        mean, scale = _batch_moments(raw.double())
        self.mean, self.scale = mean, scale
        return self.standardise(raw)

    def standardise(self, raw: Tensor) -> Tensor:
        """(h - m) / s of outputs (n, d) with the buffers' m and s."""
        return (raw - self.mean.to(raw.dtype)) / self.scale.to(raw.dtype)

    def configuration(self) -> dict[str, Any]:
        module = self.module
        widths = list(module.widths) if isinstance(module, TanhNetwork | LinearPlusNetwork) else None
        return {"dimension": self.dimension, "widths": widths, "linear": isinstance(module, LinearPlusNetwork)}

    @classmethod
    def build(cls, configuration: dict[str, Any], tensors: dict[str, Tensor], network: nn.Module | None) -> Self:
        """With the weights of the file; a user's own module is copied, so that the one given stays as it is."""
        weights = {name.removeprefix("module."): t for name, t in tensors.items() if name.startswith("module.")}
        if configuration["widths"] is not None:
            family = LinearPlusNetwork if configuration.get("linear", False) else TanhNetwork
            module: nn.Module = family(configuration["widths"], torch.Generator())
        else:
            module = copy.deepcopy(network) if network is not None else nn.Identity()
        module = module.to(next(iter(weights.values())).dtype)
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            raise ModelFileError(
                f"network does not have the weights of the one that was saved ({error}); build it as it was at fit"
            ) from error
        return cls(module, configuration["dimension"])


def _batch_moments(raw: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and population standard deviation (d,) of outputs (n, d)."""
    mean = raw.mean(0)
    return mean, ((raw - mean).square().mean(0) + _VARIANCE_FLOOR).sqrt()


class TanhNetwork(nn.Sequential):
    """The default network: linear layers of the given widths with tanh between them; two widths make it linear.

    Weights start as N(0, 1 / fan-in) [LeCun 1998], which keeps the outputs of tanh layers from shrinking, and the first
    layer's biases as U(-1/2, 1/2). With ``glorot`` weights start as U(-a, a), a^2 = 6 / (fan-in + fan-out) [Glorot &
    Bengio 2010], and all biases at zero: a first layer much wider than the input is then nearly linear. The generator
    alone decides, not torch's global one.
    """

    def __init__(self, widths: Sequence[int], generator: torch.Generator, *, glorot: bool = False) -> None:
        self.widths = tuple(widths)
        layers: list[nn.Module] = []
        for i, (fan_in, fan_out) in enumerate(pairwise(widths)):
            layer: nn.Linear = nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=torch.float64)  # type: ignore[no-untyped-call]
            if glorot:
                nn.init.xavier_uniform_(layer.weight, generator=generator)
            else:
                nn.init.normal_(layer.weight, std=1.0 / math.sqrt(fan_in), generator=generator)
            if i == 0 and not glorot:
                nn.init.uniform_(layer.bias, -_FIRST_BIAS, _FIRST_BIAS, generator=generator)
            else:
                nn.init.zeros_(layer.bias)
            layers += [layer, nn.Tanh()]
        super().__init__(*layers[:-1])


class LinearPlusNetwork(nn.Module):
    """h(x) = x W + network(x), whose last layer starts at zero: it begins as the linear map that it is given."""

    def __init__(self, widths: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.linear = nn.Parameter(torch.zeros((self.widths[0], self.widths[-1]), dtype=torch.float64))
        self.network = TanhNetwork(widths, generator)
        with torch.no_grad():
            for parameter in self.network[-1].parameters():
                parameter.zero_()

    def forward(self, X: Tensor) -> Tensor:
        """X (n, D) -> (n, d)."""
        bent: Tensor = self.network(X)
        return X @ self.linear + bent


@torch.no_grad()
def check_network(module: object, columns: int, dimension: int) -> nn.Module:
    """Refuse a module that cannot be trained as h: R^columns -> R^dimension, before any long work."""
    if not isinstance(module, nn.Module):
        raise InvalidInputError(f"network must be a torch.nn.Module or None, found {module!r}")
    weights = [p for p in module.parameters() if p.requires_grad]
    if not weights:
        raise InvalidInputError(
            "network has no parameters that can be learned; give a module with some, or use MercerGP or FourierGP"
        )
    names = [name for name, p in module.named_parameters() if not bool(torch.isfinite(p).all())]
    if names:
        raise InvalidInputError(f"network has NaN or infinite weights in {', '.join(names)}; initialise it anew")
    _check_output(module, weights[0].dtype, columns, dimension)
    return module


def _check_output(module: nn.Module, dtype: torch.dtype, columns: int, dimension: int) -> None:
    """Run two rows through the module; its own state (batch norm) and mode are left as they were."""
    rows, was_training = torch.zeros((2, columns), dtype=dtype), module.training
    wanted = f"({rows.shape[0]}, {dimension}) for {rows.shape[0]} rows of {columns} columns"
    module.eval()
    try:
        with torch.enable_grad():
            output = module(rows)
    except Exception as error:
        raise InvalidInputError(
            f"network cannot map rows of {columns} columns ({type(error).__name__}: {error}); "
            "let it take X of shape (n, columns), for images with torch.nn.Unflatten in front"
        ) from error
    finally:
        module.train(was_training)
    if not isinstance(output, Tensor):
        raise InvalidInputError(f"network must return a tensor of shape {wanted}, found {type(output).__name__}")
    if not output.is_floating_point():
        raise InvalidInputError(f"network must return floating-point numbers, found {output.dtype}; end in a layer")
    if tuple(output.shape) != (rows.shape[0], dimension):
        raise InvalidInputError(
            f"network must return shape {wanted}, found {tuple(output.shape)}; "
            f"change its last layer or embedding={dimension}"
        )
    if not output.requires_grad:
        raise InvalidInputError("network's output does not depend on its parameters; remove detach() or no_grad()")
    if not bool(torch.isfinite(output).all()):
        raise InvalidInputError("network returns NaN or infinity for a row of zeros; check its layers")

"""Random Fourier features: cos/sin pairs at frequencies of the kernel's spectral law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.overrides import has_torch_function_unary

from certgp.errors import InvalidInputError
from certgp.features.base import FeatureMap
from certgp.features.spectral import SpectralDesign
from certgp.kernels import Kernel


class FourierMap(FeatureMap):
    r"""phi(x) = [a_i cos(omega_i'x / l), a_i sin(omega_i'x / l)], i = 1 .. m = r / 2.  [paper, sec. 4.1]

    The design (omega, a^2) is a quadrature of the spectral law at unit length-scale: sum_i a_i^2 cos(omega_i't) has
    the kernel's correlation at t as its mean. It is drawn once; learning the length-scales moves the frequencies omega
    / l with it. Phi Phi' is not dominated by K, nor K by Phi Phi'. Frequencies that are learned on their own belong to
    no kernel any more.
    """

    dominated: ClassVar[bool] = False
    group: ClassVar[int] = 2
    amplitudes: Tensor

    def __init__(self, kernel: Kernel, design: SpectralDesign, *, learn_frequencies: bool = False) -> None:
        kernel.check_spectral_law()
        super().__init__(kernel, design.frequencies.shape[1])
        if bool((design.weights < 0).any()):
            raise InvalidInputError("the weights of a spectral design must not be negative")
        self.learns_frequencies = learn_frequencies
        self.frequencies = nn.Parameter(design.frequencies.clone(), requires_grad=learn_frequencies)
        self.register_buffer("amplitudes", design.weights.sqrt())

    @property
    def rank(self) -> int:
        return 2 * self.frequencies.shape[0]

    def leading(self, rank: int) -> FourierMap:
        pairs, factor = rank // 2, self.rank // 2 / (rank // 2)
        weights = factor * self.amplitudes.square()[:pairs]
        design = SpectralDesign(self.frequencies.detach()[:pairs], weights)
        return FourierMap(self.fixed_kernel(), design, learn_frequencies=self.learns_frequencies)

    def leading_columns(self, rank: int) -> tuple[Tensor, float]:
        """k of m cos/sin pairs carry m / k times larger weights."""
        pairs, all_pairs = torch.arange(rank // 2), self.rank // 2
        return torch.cat([pairs, all_pairs + pairs]), all_pairs / len(pairs)

    def basis(self, X: Tensor) -> Tensor:
        scaled = (self.frequencies / self.kernel.values["length_scale"]).to(X.dtype)
        angle = scaled @ X.mT  # feature-major (m, n): long contiguous rows for cos and sin
        if has_torch_function_unary(X):  # an operand that records operations of torch (``certgp.export``)
            return (self.amplitudes.repeat(2)[:, None] * torch.cat([angle.cos(), angle.sin()])).mT
        waves: Tensor = _Waves.apply(angle, self.amplitudes.to(X.dtype))  # type: ignore[no-untyped-call]
        return waves.mT

    @property
    def approximates_kernel(self) -> bool:
        return not self.learns_frequencies

    def settings(self) -> dict[str, Any]:
        return {"learns_frequencies": self.learns_frequencies}

    @classmethod
    def rebuild(cls, kernel: Kernel, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FourierMap:
        design = SpectralDesign(tensors["frequencies"], tensors["amplitudes"].square())
        return FourierMap(kernel, design, learn_frequencies=settings["learns_frequencies"])


class _Waves(torch.autograd.Function):
    """[a cos(theta); a sin(theta)], (2m, n), from theta (m, n) and a (m,): one array, and its own derivative."""

    @staticmethod
    def forward(ctx: Any, angle: Tensor, amplitude: Tensor) -> Tensor:
        m, n = angle.shape
        waves = angle.new_empty((2 * m, n))
        torch.cos(angle, out=waves[:m])
        torch.sin(angle, out=waves[m:])
        waves.view(2, m, n).mul_(amplitude[:, None])
        ctx.save_for_backward(waves)
        return waves

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (waves,), (G,) = ctx.saved_tensors, grad_outputs
        m = waves.shape[0] // 2
        by_angle = G[m:] * waves[:m]
        return by_angle.addcmul_(G[:m], waves[m:], value=-1.0), None

"""The shape of a kernel as parameters of a torch module."""

from __future__ import annotations

from torch import nn

from certgp.kernels.base import Kernel
from certgp.kernels.parameters import Bounds


class KernelParameters:
    """Keeps the logarithm of every learned parameter of a kernel in a module, and gives the unit kernel back.

    The module's parameters are called ``log_<name>``: ``log_length_scale``, ``log_alpha``, and in a sum or a product
    ``log_gaussian__length_scale``. They belong to the module itself, so that its state and the order of its parameters
    do not depend on this class. What is not learned (a centre, columns) stays in the kernel.
    """

    def __init__(self, kernel: Kernel, dimension: int, module: nn.Module) -> None:
        """Register the parameters in ``module``, for inputs of ``dimension`` columns."""
        self._kernel = kernel.expanded(dimension).detached()
        start = self._kernel.learned_values()
        self._names = tuple(start)
        for name, value in start.items():
            module.register_parameter(f"log_{name}", nn.Parameter(value.log().clone()))

    def kernel(self, module: nn.Module, detached: bool = False) -> Kernel:
        """The kernel at unit signal variance and the module's present parameters; carries their gradients."""
        logs = {name: module.get_parameter(f"log_{name}") for name in self._names}
        found = {name: (log.detach() if detached else log).exp() for name, log in logs.items()}
        return self._kernel.with_learned(found).with_signal_variance(1.0)

    def bounds(self) -> dict[str, Bounds]:
        """Box of each parameter of the module, by its name."""
        boxes = {f"log_{name}": self._kernel.parameter(name).log_bounds for name in self._names}
        return {name: box for name, box in boxes.items() if box is not None}

    def lengths(self, module: nn.Module) -> list[nn.Parameter]:
        """The parameters of the module that are logarithms of lengths, in the units of the inputs."""
        names = [name for name in self._names if self._kernel.parameter(name).is_length]
        return [module.get_parameter(f"log_{name}") for name in names]

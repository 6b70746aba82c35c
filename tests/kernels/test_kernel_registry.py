"""Kernels are known by name from the moment they are defined, inside the package and outside."""

from __future__ import annotations

import pytest
import torch

from certgp.errors import InvalidInputError, ModelFileError, NotCertifiableError
from certgp.kernels import (
    LENGTH,
    VARIANCE,
    Gaussian,
    Kernel,
    Matern12,
    Matern52,
    kernel_from_description,
    kernel_from_name,
    named_kernel,
    registered_kernels,
)
from helpers import random_inputs

pytestmark = pytest.mark.usefixtures("kernels_of_their_own")


def define(name: str, varies: bool = False, module: str = "elsewhere") -> type[Kernel]:
    body = {
        "__module__": module,
        "name": name,
        "parameters": {"length_scale": LENGTH, "signal_variance": VARIANCE},
        "constant_diagonal": not varies,
        "evaluate": lambda self, X, Z: 1.0 / (1.0 + torch.cdist(X / self.length_scale, Z / self.length_scale).square()),
    }
    return type("Cauchy", (Kernel,), body)


def test_a_kernel_from_outside_is_found_and_described_by_its_name():
    family = define("cauchy")
    assert kernel_from_name("cauchy") is family
    kernel = family(0.5, columns=[1])
    X = random_inputs(0, 6, 2)
    again = kernel_from_description((kernel + kernel_from_name("gaussian")()).describe())
    assert torch.equal(again(X, X), (kernel + kernel_from_name("gaussian")())(X, X))


def test_a_name_belongs_to_one_class():
    define("cauchy")
    define("cauchy")  # the same again: a notebook's cell was run twice
    with pytest.raises(
        InvalidInputError, match=r"there is a kernel 'cauchy' already \(elsewhere.Cauchy\); choose anoth"
    ):
        define("cauchy", module="another")
    with pytest.raises(InvalidInputError, match="there is a kernel 'gaussian' already"):
        define("gaussian")
    with pytest.raises(InvalidInputError, match="must be an identifier, found 'my kernel'"):
        define("my kernel")


def test_a_file_with_an_unknown_kernel_says_what_to_do():
    with pytest.raises(
        ModelFileError, match=r"the kernel 'cauchy', which is not known here; import the module .* before"
    ):
        kernel_from_description({"kernel": "sum", "parts": [{"kernel": "gaussian"}, {"kernel": "cauchy"}]})


def test_composite_kernels_have_no_name_to_type():
    named = {"gaussian", "matern12", "matern32", "matern52", "rational_quadratic", "periodic", "linear"}
    assert named <= set(registered_kernels())
    for name in ("sum", "product"):
        with pytest.raises(InvalidInputError, match="unknown kernel"):
            kernel_from_name(name)


def test_what_a_family_must_say_for_itself():
    X = random_inputs(0, 6, 2)
    with pytest.raises(TypeError, match="must define evaluate_diagonal"):
        define("varying", varies=True)().diagonal(X)
    with pytest.raises(NotCertifiableError, match="the cauchy kernel has no bound on the rounding of its values"):
        define("cauchy")().rounding(X)
    with pytest.raises(TypeError, match="abstract"):
        type("Nothing", (Kernel,), {"name": "nothing", "__module__": "elsewhere"})()


def test_a_name_may_be_a_sum():
    assert named_kernel("matern52 + matern12").describe() == (Matern52() + Matern12()).describe()
    assert named_kernel("gaussian").describe() == Gaussian().describe()
    with pytest.raises(InvalidInputError, match="unknown kernel 'rough'; known kernels: "):
        named_kernel("matern52 + rough")

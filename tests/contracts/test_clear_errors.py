"""Mistakes that users make with kernels, shapes and files are refused in words that say what to do."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

import certgp
from certgp import AutoGP, ExactGP, FourierGP, MercerGP, ModelFileError, SparseGP
from certgp.errors import InvalidInputError
from certgp.kernels import Gaussian, Linear, Matern32
from certgp.models.file import read_model_file, write_model_file

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((30, 2)), RNG.standard_normal(30)


# -------------------- files that name what is not known


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "m"
    SparseGP(4, kernel=Gaussian() + Matern32(), optimize=False).fit(X, Y).save(path)
    return read_model_file(path)


def rename_estimator(values):
    values["estimator"] = "elsewhere.GP"


def rename_map(values):
    values["process"]["features"]["kind"] = "elsewhere.Map"


def rename_transform(values):
    values["process"]["transform"]["kind"] = "elsewhere.Transform"


def rename_kernel(values):
    values["process"]["features"]["kernel"]["parts"][1]["kernel"] = "nowhere"


@pytest.mark.parametrize(
    ("rename", "name"),
    [
        (rename_estimator, "estimator 'elsewhere.GP'"),
        (rename_map, "feature map 'elsewhere.Map'"),
        (rename_transform, "transform 'elsewhere.Transform'"),
        (rename_kernel, "kernel 'nowhere'"),
    ],
)
def test_a_class_that_is_not_known(saved, rename, name, tmp_path):
    tensors, values, _ = saved
    values = deepcopy(values)
    rename(values)
    write_model_file(tmp_path / "m", tensors, values)
    with pytest.raises(ModelFileError) as refused:
        certgp.load(tmp_path / "m")
    assert str(refused.value) == (
        f"the file holds the {name}, which is not known here; import the module that defines it before load()"
    )


# -------------------- a kernel that a method cannot use


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (MercerGP(5), r"the sum kernel has no closed-form Mercer expansion .* SparseGP or ExactGP with this kernel"),
        (FourierGP(5), r"the sum kernel has no spectral law .* SparseGP or ExactGP with this kernel"),
        (
            AutoGP(5, candidates=["mercer"]),
            r"candidates=\('mercer',\) has no method for .* add 'exact' or 'local' or 'sparse'$",
        ),
        (AutoGP(5, candidates=["mercer"], dtype="float32"), r"has no method for .* use dtype='float64'$"),
    ],
    ids=["mercer", "fourier", "auto", "auto-float32"],
)
@pytest.mark.parametrize("kernel", [Gaussian() + Linear(), Gaussian() + Gaussian(3.0)], ids=["linear", "gaussian"])
def test_a_sum_of_kernels_where_more_than_its_values_are_needed(model, reason, kernel):
    with pytest.raises(InvalidInputError, match=reason):
        model.set_params(kernel=kernel).fit(X, Y)


# -------------------- parameters of another shape than the table


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ExactGP(length_scale=[1.0, 2.0, 3.0]), "length_scale has 3 numbers but the kernel works in 2 dimension(s)"),
        (
            SparseGP(4, kernel=Gaussian([1.0, 2.0, 3.0])),
            "length_scale has 3 numbers but the kernel works in 2 dimension(s)",
        ),
        (
            MercerGP(4, projection=None, input_scale=[1.0, 2.0, 3.0]),
            "input_scale has 3 numbers but the kernel works in 2 dimension(s)",
        ),
        (
            SparseGP(inducing=np.zeros((4, 3))),
            "inducing must be one of greedy, kmeans or a finite array of shape (r, 2), found an array of shape (4, 3)",
        ),
        (
            SparseGP(4, kernel=Gaussian(columns=[0, 2]) + Linear()),
            "columns of the gaussian kernel names column 2, but the inputs have 2 column(s); number them from 0 to 1",
        ),
        (
            ExactGP(kernel=Gaussian([1.0, 2.0], columns=[1])),
            "length_scale has 2 numbers but the kernel works in 1 dimension(s)",
        ),
    ],
)
def test_a_parameter_of_the_wrong_shape(model, message):
    with pytest.raises(InvalidInputError) as refused:
        model.fit(X, Y)
    assert str(refused.value) == message

"""Feature maps state what they can do, describe themselves, and are rebuilt from description and tensors alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import certgp.features
from certgp.errors import InvalidInputError, ModelFileError
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap, ResidualMap, build_features
from certgp.features.base import FEATURE_MAPS
from certgp.features.spectral import iid_design, spectral_design
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian, Kernel, Linear, Matern32, Periodic, RationalQuadratic
from certgp.transforms import Identity
from helpers import CONSTANT, VARYING, random_inputs, randomise

X = random_inputs(0, 12, 2)
KERNEL = Gaussian([0.7, 1.9])


def fourier(kernel: Kernel = KERNEL, learn: bool = False) -> FourierMap:
    return FourierMap(kernel, iid_design(kernel, 5, 2, np.random.default_rng(1)), learn_frequencies=learn)


def mercer() -> MercerMap:
    features = MercerMap(KERNEL, [1.0, 1.3], 9, "total_degree", centre=torch.tensor([0.2, -0.1]).double())
    features.set_indices(features.indices.numpy()[[0, 2, 3, 7]])
    return features


MAPS = {
    "mercer": mercer,
    "fourier": fourier,
    "fourier-learned": lambda: fourier(Matern32([0.7, 1.9]), learn=True),
    "nystrom": lambda: NystromMap(KERNEL, X[:5], jitter=1e-4),
    "residual": lambda: ResidualMap(mercer(), X[:3]),
} | {f"nystrom-{name}": lambda k=kernel: NystromMap(k, X[:5]) for name, kernel in (CONSTANT | VARYING).items()}


@pytest.fixture(autouse=True)
def _forget_what_tests_define() -> Iterator[None]:
    before = dict(FEATURE_MAPS)
    yield
    FEATURE_MAPS.clear()
    FEATURE_MAPS.update(before)


@pytest.mark.parametrize("name", MAPS)
def test_description_and_tensors_make_the_same_map(name):
    features = MAPS[name]()
    if name != "residual":  # its factor belongs to the parameters it was built with
        randomise(features, 3, 0.1)
    description = json.loads(json.dumps(features.describe()))
    again = build_features(description, features.state_dict())
    assert type(again) is type(features)
    assert again.describe() == description
    with torch.no_grad():
        assert torch.equal(again(X), features(X))
    assert again.fixed_kernel().describe() == features.fixed_kernel().describe()


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("mercer", {"kind": "MercerMap", "kernel": "gaussian", "index_set": "total_degree"}),
        ("fourier", {"kind": "FourierMap", "kernel": "gaussian", "learns_frequencies": False}),
        ("nystrom", {"kind": "NystromMap", "kernel": "gaussian", "jitter": 1e-4}),
    ],
)
def test_descriptions_of_format_2_are_read(name, old):
    features = MAPS[name]()
    with torch.no_grad():
        assert torch.equal(build_features(old, features.state_dict())(X), features(X))


class Constant(FeatureMap):
    """One feature of its own, from outside the package."""

    dominated = False

    def __init__(self, kernel: Kernel, dimension: int, height: float) -> None:
        super().__init__(kernel, dimension)
        self.height = height

    @property
    def rank(self) -> int:
        return 1

    def basis(self, X):
        return self.height * X.new_ones((len(X), 1))

    def leading(self, rank):
        return self

    def settings(self):
        return {"height": self.height, "dimension": self.dimension}

    @classmethod
    def rebuild(cls, kernel, settings, tensors):
        return cls(kernel, settings["dimension"], settings["height"])


def test_a_map_from_outside_is_known_by_its_module_and_name():
    FEATURE_MAPS[f"{__name__}.Constant"] = Constant
    features = Constant(KERNEL, 2, 0.25)
    description = features.describe()
    assert description["kind"] == f"{__name__}.Constant"
    again = build_features(description, features.state_dict())
    assert isinstance(again, Constant)
    assert again.height == 0.25
    assert (again.chooses_indices, again.decays, again.approximates_kernel) == (False, False, True)
    again.choose_indices(4)  # there is nothing to choose
    del FEATURE_MAPS[description["kind"]]
    with pytest.raises(ModelFileError, match=r"Constant', which is not known here; import the module .* before load"):
        build_features(description, features.state_dict())


def test_capabilities():
    assert MercerMap.dominated
    assert NystromMap.dominated
    assert not FourierMap.dominated
    assert [MAPS[name]().approximates_kernel for name in ("mercer", "fourier", "fourier-learned")] == [
        True,
        True,
        False,
    ]
    assert [cls.chooses_indices for cls in (MercerMap, NystromMap, FourierMap)] == [True, False, False]
    assert [MAPS[name]().decays for name in ("mercer", "nystrom", "residual", "fourier")] == [True, True, True, False]
    assert MAPS["nystrom-product"]().decays  # the Matern factor does
    assert not any(MAPS[f"nystrom-{name}"]().decays for name in ("gaussian + linear", "periodic", "columns", "sum"))
    assert mercer().dimension == 2


def test_a_state_brings_its_own_index_set():
    model = LowRankModel(Identity(2), MercerMap(KERNEL, [1.0, 1.3], 9))
    with torch.no_grad():
        before, state = model(X), model.snapshot()
        model.features.choose_indices(4)
        assert model(X).shape[1] == 4
        model.restore(state)
        assert torch.equal(model(X), before)


@pytest.mark.parametrize("name", CONSTANT | VARYING)
def test_inducing_points_of_any_kernel_are_dominated_by_it(name):
    kernel = (CONSTANT | VARYING)[name]
    features = NystromMap(kernel, X[:6], jitter=1e-8)
    rows = random_inputs(4, 25, 2)
    with torch.no_grad():
        phi = features(rows)
        lost = kernel.unit(rows, rows) - phi @ phi.mT
    assert float(torch.linalg.eigvalsh(lost).min()) > -1e-8


# -------------------- refusals


@pytest.mark.parametrize(
    "kernel", [Gaussian() + Linear(), Gaussian(columns=[0]), RationalQuadratic(), Periodic(), Linear(), Matern32()]
)
def test_mercer_features_are_for_the_gaussian_kernel_over_all_columns(kernel):
    with pytest.raises(InvalidInputError, match=r"has no closed-form Mercer expansion.*SparseGP or ExactGP"):
        MercerMap(kernel, [1.0, 1.0], 5)


@pytest.mark.parametrize(
    "kernel", [Gaussian() + Matern32(), Gaussian(columns=[0]), RationalQuadratic(), Periodic(), Linear()]
)
def test_fourier_features_need_a_spectral_law(kernel):
    with pytest.raises(InvalidInputError, match=r"has no spectral law.*Gaussian or Matern.*SparseGP or ExactGP"):
        spectral_design("orthogonal", kernel, 5, 2, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="has no spectral law"):
        FourierMap(kernel, iid_design(Gaussian(), 5, 2, np.random.default_rng(0)))


def test_transformers_are_found_where_users_look_for_them():
    assert certgp.features.MercerFeatures.__module__ == "certgp.estimators.feature_transformers"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = certgp.features.Nothing
    code = "import sys, certgp.features.mercer; sys.exit('sklearn' in sys.modules)"
    module = "import importlib.util as u, sys; sys.modules['certgp'] = type(sys)('certgp'); "
    module += f"sys.modules['certgp'].__path__ = {list(certgp.__path__)!r}; "
    assert subprocess.run([sys.executable, "-c", module + code], check=False).returncode == 0

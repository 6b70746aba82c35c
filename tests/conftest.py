"""One torch thread: reproducible sums, and workers of pytest-xdist do not compete for cores."""

import pytest
import torch

from certgp.kernels.registry import _KERNELS


@pytest.fixture(scope="session", autouse=True)
def single_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def kernels_of_their_own():
    """Kernels that a test defines are forgotten after it, so that no other test of the process meets them."""
    before = dict(_KERNELS)
    yield
    _KERNELS.clear()
    _KERNELS.update(before)

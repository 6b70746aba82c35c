"""One torch thread: reproducible sums, and workers of pytest-xdist do not compete for cores."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def single_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

"""Distances between rows in units of the length-scales, and how they are rounded: what stationary families share."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from certgp.linalg import UNIT_ROUNDOFF


def scaled_distance(X: Tensor, Z: Tensor, length_scale: Tensor) -> Tensor:
    """|(x_i - z_j) / l| (n, m) from differences: the matrix-product form would lose half the digits near zero, where
    some correlations have a kink.
    """
    scale, centre = length_scale.to(X.dtype), Z.detach().mean(0)  # differences of large numbers lose digits
    return torch.cdist((X - centre) / scale, (Z - centre) / scale, compute_mode="donot_use_mm_for_euclid_dist")


def spread(Z: Tensor, length_scale: Tensor) -> float:
    """The largest |(z - centre) / l|."""
    offset = (Z - Z.mean(0)).detach() / length_scale.detach()
    return math.sqrt(float(offset.square().sum(1).max())) if len(Z) else 0.0


def distance_rounding(Z: Tensor, length_scale: Tensor) -> float:
    """A bound on the rounding of k(r), r = ``scaled_distance(X, Z)``, for |k'| <= 1 and r |k'| <= 1, at any X.

    A distance r errs by at most u (4 R + (d / 2 + 5) r) with R = ``spread(Z)``: coordinates are rounded at their own
    size before they are subtracted.
    """
    return (spread(Z, length_scale) + 1.0) * (Z.shape[1] + 16) * UNIT_ROUNDOFF

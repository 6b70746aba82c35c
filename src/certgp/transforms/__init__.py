"""Maps R^D -> R^d in front of the features: identity, clipping, learned linear projection, neural network."""

from certgp.transforms.base import Transform, build_transform, describe_transform
from certgp.transforms.clip import Clip
from certgp.transforms.directions import input_moments, linear_slopes, principal_directions, sliced_inverse_directions
from certgp.transforms.identity import Identity
from certgp.transforms.network import LinearPlusNetwork, Network, TanhNetwork, check_network
from certgp.transforms.projection import Projection

__all__ = [
    "Clip",
    "Identity",
    "LinearPlusNetwork",
    "Network",
    "Projection",
    "TanhNetwork",
    "Transform",
    "build_transform",
    "check_network",
    "describe_transform",
    "input_moments",
    "linear_slopes",
    "principal_directions",
    "sliced_inverse_directions",
]

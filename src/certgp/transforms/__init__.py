"""Maps R^D -> R^d in front of the features: identity, clipping, learned linear projection, neural network."""

from certgp.transforms.base import Transform
from certgp.transforms.clip import Clip
from certgp.transforms.directions import input_moments, linear_slopes, principal_directions, sliced_inverse_directions
from certgp.transforms.identity import Identity
from certgp.transforms.network import Network, TanhNetwork, check_network
from certgp.transforms.projection import Projection
from certgp.transforms.standardised import Standardised

__all__ = [
    "Clip",
    "Identity",
    "Network",
    "Projection",
    "Standardised",
    "TanhNetwork",
    "Transform",
    "check_network",
    "input_moments",
    "linear_slopes",
    "principal_directions",
    "sliced_inverse_directions",
]

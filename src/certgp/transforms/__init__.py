"""Maps R^D -> R^d in front of the features: identity or learned linear projection."""

from certgp.transforms.base import Transform
from certgp.transforms.directions import principal_directions, sliced_inverse_directions
from certgp.transforms.identity import Identity
from certgp.transforms.projection import Projection

__all__ = ["Identity", "Projection", "Transform", "principal_directions", "sliced_inverse_directions"]

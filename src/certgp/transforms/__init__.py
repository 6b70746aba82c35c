"""Maps R^D -> R^d in front of the features: identity, clipping, learned linear projection."""

from certgp.transforms.base import Transform
from certgp.transforms.clip import Clip
from certgp.transforms.directions import principal_directions, sliced_inverse_directions
from certgp.transforms.identity import Identity
from certgp.transforms.projection import Projection

__all__ = ["Clip", "Identity", "Projection", "Transform", "principal_directions", "sliced_inverse_directions"]

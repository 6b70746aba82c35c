"""The comparison with peers: one runner per library, each in its own environment, and what is computed from their runs.

``protocol`` is all that the runners share and needs only NumPy and SciPy; ``contestants`` says who takes part;
``comparison`` and ``picture`` read finished runs. ``../peers.py`` is the command.
"""

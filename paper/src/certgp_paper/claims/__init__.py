"""The claims of the paper's text, decided from the rows of the reproductions.

Every claim is a function from results to a ``Finding``. A claim about "better" holds where our own figures say so in
every comparable pair, unless its rule says otherwise; the rule is printed beside the verdict, with the numbers. What
random draws or splits decide is judged by ``paired``: a difference within its noise, or fewer than five runs, leave a
claim undecided.
"""

from certgp_paper.claims import curves, deep, linear, rates, sizes
from certgp_paper.claims.finding import FAILS, HOLDS, MIXED, NOT_RUN, UNDECIDED, Claim, Finding

CLAIMS: tuple[Claim, ...] = (*rates.CLAIMS, *linear.CLAIMS, *curves.CLAIMS, *deep.CLAIMS, *sizes.CLAIMS)

__all__ = ["CLAIMS", "FAILS", "HOLDS", "MIXED", "NOT_RUN", "UNDECIDED", "Claim", "Finding"]

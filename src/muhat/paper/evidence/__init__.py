"""The evidence page: what the paper claims, what we find, and a verdict."""

from muhat.paper.evidence.base import Claim
from muhat.paper.evidence.page import claims_of, page

__all__ = ["Claim", "claims_of", "page"]

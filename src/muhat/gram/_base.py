"""What the Gram operator A is to the rest: products with it, its diagonal, and perhaps its spectrum."""

from typing import Protocol

from muhat._arrays import Array
from muhat.gram._spectrum import Spectrum


class Gram(Protocol):
    """The operator A = D K D of a sample, D = diag(√p); A = K/n for equal masses.

    A Gram that cannot afford a spectrum (matrix-free) raises from ``spectrum`` and says what to use instead.
    """

    @property
    def masses(self) -> Array:
        """p: positive, with sum one."""

    def product(self, vectors: Array) -> Array:
        """Return A @ vectors."""

    def diagonal(self) -> Array:
        """Return the diagonal of A."""

    def spectrum(self) -> Spectrum:
        """Return the eigenpairs of A."""

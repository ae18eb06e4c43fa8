"""The Gram operator A = K/n of a sample under a kernel."""

from muhat.gram.base import Gram
from muhat.gram.blocks import BlockGram
from muhat.gram.dense import DenseGram

__all__ = ["BlockGram", "DenseGram", "Gram"]

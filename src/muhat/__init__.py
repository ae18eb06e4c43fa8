"""muhat (μ̂): kernel means, estimated better than by the plain average."""

from muhat.embedding import Embedding
from muhat.mean import KernelMean

__version__ = "0.1.0"

__all__ = ["Embedding", "KernelMean", "__version__"]

"""Models in files: what was fitted, saved as arrays and text, and loaded without running anything that the file says.

A file is a zip archive, not compressed, of ``arrays/0.npy``, ``arrays/1.npy``, ...; of ``model.json``, the objects with
their attributes; and of ``model.sha256``. Objects refer to arrays, and to objects before them, by number. A class is
looked up by its name in the list below, and by nothing else; attributes are set as they were, and no code is called.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from inspect import getattr_static
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.base import BaseEstimator

from muhat import __version__
from muhat._arrays import Array
from muhat._files import FileError, atomic_write
from muhat.errors import MuhatError, message

FORMAT = 2
"""The format that is written, and the newest that is read."""

ADDED = {"standardize": False, "distinct": False}
"""Parameters that estimators of format 1 did not have, with the values that say what these did."""

REFITTED = ("SpectralFit", "BlockFit", "StreamFit")
"""Fits of format 1 that are not read: they held what is no longer kept."""

END = b"PK\x05\x06"
"""How the last record of a zip archive begins, which is 22 bytes long where there is no comment."""

CLASSES = {
    "muhat.kernels": (
        *(
            "Gaussian",
            "Laplacian",
            "Matern",
            "RationalQuadratic",
            "InverseMultiquadric",
            "Linear",
            "Polynomial",
        ),
        *("Sum", "Product", "Scaled", "Function", "SklearnKernel", "Precomputed", "Mixture"),
    ),
    "muhat.embedding": ("Embedding",),
    "muhat.data": ("DataSet", "ColumnMoments"),
    "muhat.gram": (
        *("Nystrom", "RandomFeatures", "NystromFeatures", "FourierFeatures", "FeatureEmbedding"),
        *("Access", "Accumulation", "FeatureSums", "Folds"),
    ),
    "muhat.gram._exact_mean": ("ExactMeanFeatures",),
    "muhat.gram._plan": ("Plan",),
    "muhat.filters": (
        *(
            "KME",
            "SimpleShrinkage",
            "Tikhonov",
            "IteratedTikhonov",
            "Landweber",
            "NuMethod",
            "Showalter",
        ),
        *("TruncatedSVD", "Componentwise"),
    ),
    "muhat.selection": ("LeaveOneOut", "GCV", "KFold", "Rate", "Fixed", "Choice"),
    "muhat._parts": ("Parts",),
    "muhat.mean": ("KernelMean", "_Stream"),
    "muhat.stacking": (
        *(
            "StackedMean",
            "PlainMean",
            "NuSteps",
            "GaussianFit",
            "WardMixtures",
            "IndependentBlocks",
        ),
        *("ClusterJitter", "LeftOutMoments", "MixedEmbedding"),
    ),
    "muhat.comparison": ("Comparison", "Row"),
    "muhat.density": ("MatchedMixture",),
    "muhat.testing": (
        *(
            "TwoSampleTest",
            "IndependenceTest",
            "DriftDetector",
            "MMD",
            "Spectral",
            "ShrunkMeans",
            "ShrunkCovariance",
        ),
        *("TwoSampleResult", "IndependenceResult", "DriftResult", "SingleTest"),
    ),
    "muhat.testing._distances": ("Distance", "_ResolvedDistance"),
    "muhat.testing._marginals": ("FeatureDifference",),
    "muhat.testing._results": ("Witness", "WitnessedRows"),
    "muhat.conditional": ("ConditionalMean", "KernelMeanMatching"),
    "muhat.conditional._distribution": ("ConditionalDistribution",),
    "muhat.conditional._fits": ("ConditionalChoice", "SpectralFit", "RegressionRows"),
    "muhat.conditional._left_out": ("Whole",),
    "muhat.conditional._streams": ("StreamFit", "_Basis"),
    "muhat.conditional._products": ("BlockFit",),
    "sklearn.pipeline": ("Pipeline",),
    "sklearn.preprocessing": ("StandardScaler",),
    "sklearn.gaussian_process.kernels": (
        *(
            "RBF",
            "ConstantKernel",
            "WhiteKernel",
            "ExpSineSquared",
            "DotProduct",
            "PairwiseKernel",
            "Exponentiation",
        ),
        *("Matern", "RationalQuadratic", "Sum", "Product"),
    ),
}
"""What a file may hold, by the module that has it: all that is fitted or found, and what it is made of."""

PLACES = {
    ("sklearn." if module.startswith("sklearn") else "") + name.lstrip("_"): (module, name)
    for module, names in CLASSES.items()
    for name in names
}
"""Where each class is, by the name that files have for it."""

NUMBERS = "biufc"
"""The kinds of arrays that are kept beside text: truth values, whole, real and complex numbers."""

DEEPEST = 50
"""How deep lists may lie in one another."""

Reference = dict[str, Any]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator, or a result, to a file that ``muhat.load`` reads without running code.

    Everything is kept to the last bit: what is loaded predicts the same numbers on the same machine. The same model
    gives the same file, written in one atomic step.

    Parameters
    ----------
    model : estimator, result, embedding, kernel, filter or other part
        An object of muhat, or a scikit-learn ``Pipeline`` of ``StandardScaler`` and such. A kernel that is a function
        of your own, and classes of your own, are code and cannot be kept: they are refused.
    path : str or path
        The file; one that is there is replaced.

    Examples
    --------
    >>> import tempfile, numpy as np, muhat
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> mu = muhat.KernelMean().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     muhat.save(mu, f"{folder}/mean.muhat")
    ...     same = muhat.load(f"{folder}/mean.muhat")
    >>> bool((same.score_samples(X) == mu.score_samples(X)).all())
    True
    """
    encoder = _Encoder()
    root = encoder.value(model, type(model).__name__)
    if "object" not in (root if isinstance(root, dict) else {}):
        needed = "an estimator or a result is needed"
        raise MuhatError(
            "muhat.save", needed, f"a {type(model).__name__}", "numpy.save keeps arrays"
        )
    document = {"format": FORMAT, "muhat": __version__, "model": root, "objects": encoder.objects}
    atomic_write(path, lambda file: _write(file, document, encoder.arrays))


def load(path: str | os.PathLike[str]) -> Any:
    """Load what ``muhat.save`` has saved, without running anything that the file says.

    A file that is damaged, is none of ours, or comes from a newer muhat is refused. Its digest finds damage, not
    forgery: a forged file may hold wrong numbers, but no code.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : object
        What was saved.
    """
    with _refused_in_one_sentence(path), _opened(path) as file:
        document, arrays = _read(file)
        root = document["model"]
        if not isinstance(root, dict) or "object" not in root:
            raise _ModelError("a file whose model is no object")
        return _Decoder(document["objects"], arrays, document["format"]).value(root)


def _class_of(name: str) -> type | None:
    """Return the class that a file means by a name, imported when it is needed; None if it is not on the list."""
    if name not in PLACES:
        return None
    module, attribute = PLACES[name]
    found: type = getattr(import_module(module), attribute)
    return found


def _name_of(kind: type) -> str | None:
    """Return what files call a class; None if it is not on the list."""
    name = ("sklearn." if kind.__module__.startswith("sklearn.") else "") + kind.__name__.lstrip(
        "_"
    )
    return name if _class_of(name) is kind else None


class _Encoder:
    """Objects as JSON, each once, however often it is referred to."""

    def __init__(self) -> None:
        self.objects: list[Reference] = []
        self.arrays: list[Array] = []
        self.known: dict[int, tuple[Any, Reference | None]] = {}
        """What every object became, by its id, with the object so that the id stays its own; None while it is made."""

    def value(self, value: Any, place: str) -> Any:
        """Return a value in JSON's types; ``place`` says where it is, if it has to be refused."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) in (list, tuple):
            items = [self.value(each, f"{place}[{number}]") for number, each in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if type(value) is dict:
            items = [
                [self.value(key, place), self.value(each, f"{place}[{key!r}]")]
                for key, each in value.items()
            ]
            return {"dict": items}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), place)["array"]}
        return self._once(
            value, self._array if type(value) in (np.ndarray, np.memmap) else self._object, place
        )

    def _once(self, value: Any, encode: Callable[[Any, str], Reference], place: str) -> Reference:
        """Return the reference to an array or object, made when it is first met."""
        if id(value) not in self.known:
            self.known[id(value)] = (value, None)
            self.known[id(value)] = (value, encode(value, place))
        reference = self.known[id(value)][1]
        if reference is None:
            raise MuhatError(
                f"muhat.save: {place}", "objects inside others are needed", "one inside itself"
            )
        return reference

    def _array(self, array: Array, place: str) -> Reference:
        if array.dtype == object and all(type(each) is str for each in array.flat):
            return {"strings": array.ravel().tolist(), "shape": list(array.shape)}
        if array.dtype.kind not in NUMBERS + "U":
            raise MuhatError(
                f"muhat.save: {place}", "arrays of numbers or text are needed", array.dtype
            )
        self.arrays.append(
            array if array.dtype.itemsize else array.astype("U1")
        )  # text of no letters has no size
        return {"array": len(self.arrays) - 1, "writeable": bool(array.flags.writeable)}

    def _object(self, value: Any, place: str) -> Reference:
        kind = type(value)
        name = _name_of(kind)
        if name is None:
            raise MuhatError(_not_kept(value, place))
        if isinstance(value, Enum):
            state = {"value": value.value}
        else:
            attributes = value.to_keep() if hasattr(kind, "to_keep") else vars(value)
            state = {
                attribute: self.value(each, f"{place}.{attribute}")
                for attribute, each in attributes.items()
                if not isinstance(getattr_static(kind, attribute, None), cached_property)
            }
        self.objects.append({"class": name, "state": state})
        return {"object": len(self.objects) - 1}


def _not_kept(value: Any, place: str) -> str:
    """Return the sentence that refuses what is code, or none of ours."""
    if callable(value) and hasattr(value, "__code__"):
        got, advice = (
            "a function of your own",
            "keep its code in a module, and fit again where the model is needed",
        )
    else:
        got = f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
        advice = ""
        if isinstance(value, BaseEstimator):
            advice = "keep this one by skops.io.dump or joblib.dump, or save the muhat model alone and encode before it"
    needed = "only numbers, text, arrays and muhat's own classes can be kept without keeping code"
    return message(f"muhat.save: {place}", needed, got, advice)


class _Decoder:
    """Objects from JSON: each refers to those before it, so references are neither cyclic nor nested without end."""

    def __init__(self, objects: list[Reference], arrays: list[Array], number: int = FORMAT) -> None:
        self.arrays, self.number = arrays, number
        self.objects: list[Any] = []
        for each in objects:
            self.objects.append(self._object(each["class"], each["state"]))

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return what a value in JSON's types stands for."""
        if depth > DEEPEST:
            raise _ModelError(f"lists more than {DEEPEST} deep")
        if isinstance(value, list):
            return [self.value(each, depth + 1) for each in value]
        if not isinstance(value, dict):
            return value
        match value:
            case {"object": int(number)} if 0 <= number < len(self.objects):
                return self.objects[number]
            case {"array": int(number), "writeable": bool(writeable)} if (
                0 <= number < len(self.arrays)
            ):
                array = self.arrays[number]
                array.flags.writeable = writeable
                return array
            case {"scalar": int(number)} if (
                0 <= number < len(self.arrays) and self.arrays[number].ndim == 0
            ):
                return self.arrays[number][()]
            case {"strings": list(words), "shape": list(shape)} if all(
                type(word) is str for word in words
            ):
                return np.array(words, dtype=object).reshape(shape)
            case {"tuple": list(items)}:
                return tuple(self.value(each, depth + 1) for each in items)
            case {"dict": list(items)}:
                return {
                    self.value(key, depth + 1): self.value(each, depth + 1) for key, each in items
                }
            case {"float": "nan" | "inf" | "-inf" as text}:
                return float(text)
            case {"dtype": str(text)}:
                return _number_type(text)
        raise _ModelError(f"an entry that stands for nothing, {str(value)[:60]!r}")

    def _object(self, name: str, state: dict[str, Any]) -> Any:
        kind = _class_of(name)
        if kind is None:
            raise _ModelError(f"an object of a class that is not on the list, {str(name)[:60]!r}")
        attributes = {attribute: self.value(each) for attribute, each in state.items()}
        if issubclass(kind, Enum):
            return kind(attributes["value"])
        if self.number == 1:
            attributes = _from_format_1(kind, attributes)
        _check_attributes(kind, attributes)
        instance = object.__new__(kind)
        vars(instance).update(attributes)
        return instance


def _from_format_1(kind: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an object of format 1 as those of today, where they differ."""
    if issubclass(kind, BaseEstimator):
        parameters = set(kind._get_param_names())  # type: ignore[attr-defined]
        added = {name: value for name, value in ADDED.items() if name in parameters}
        attributes = {**added, **attributes}
    if kind.__name__ in REFITTED:
        raise _ModelError("a regression as muhat kept it in format 1", "fit and save it again")
    return attributes


def _check_attributes(kind: type, attributes: dict[str, Any]) -> None:
    """Refuse attributes that are not those of the class: missing parameters, or names that would shadow methods."""
    needed = set()
    if is_dataclass(kind):
        needed = {field.name for field in fields(kind)}
    elif issubclass(kind, BaseEstimator):
        needed = set(kind._get_param_names())  # type: ignore[attr-defined]
    lacking = sorted(needed - set(attributes))
    if lacking:
        raise _ModelError(f"a {kind.__name__} without {lacking[0]!r}")
    for name in set(attributes) - needed:
        if not name.isidentifier() or name.startswith("__") or hasattr(kind, name):
            raise _ModelError(f"a {kind.__name__} with another {name[:60]!r} than its own")


def _number_type(text: str) -> np.dtype[Any]:
    """Return a type of numbers."""
    found = np.dtype(text)
    if found.kind not in NUMBERS:
        raise _ModelError(f"a type that is none of numbers, {text[:60]!r}")
    return found


def _write(file: BinaryIO, document: dict[str, Any], arrays: list[Array]) -> None:
    """Write the archive; no member has a date, so that the same model gives the same file."""
    digests = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for number, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(_member(number)), "w", force_zip64=True) as member:
                hashed = _Hashed(member)
                np.lib.format.write_array(
                    hashed, np.asarray(array), version=(1, 0), allow_pickle=False
                )
            digests.append(hashed.digest.hexdigest())
        text = json.dumps(
            {**document, "arrays": digests}, allow_nan=False, separators=(",", ":")
        ).encode()
        archive.writestr(zipfile.ZipInfo("model.json"), text)
        archive.writestr(zipfile.ZipInfo("model.sha256"), hashlib.sha256(text).hexdigest())


class _Hashed:
    """A file to write to, of which the digest is known in the end."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Write, and note what was written."""
        self.digest.update(data)
        self.file.write(data)


def _member(number: int) -> str:
    return f"arrays/{number}.npy"


def _read(file: BinaryIO) -> tuple[dict[str, Any], list[Array]]:
    """Return the document and the arrays of an archive in which nothing is larger than the file itself."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 22, 0))
    last = file.read()
    if last[:4] != END or last[-2:] != b"\0\0":
        raise _ModelError("a file that does not end where the model ends")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED or each.flag_bits & 1 for each in members):
            raise _ModelError("an archive that is compressed or encrypted")
        if sum(each.file_size for each in members) > size:
            raise _ModelError("members that are larger than the file")
        if sorted(each.filename for each in members) != sorted(_names(len(members) - 2)):
            raise _ModelError("an archive of other members")
        text = archive.read("model.json")
        if archive.read("model.sha256") != hashlib.sha256(text).hexdigest().encode():
            raise _ModelError("a text that is not what was written")
        document = json.loads(text)
        _check_version(document)
        digests = document["arrays"]
        if len(digests) != len(members) - 2:
            raise _ModelError("another number of arrays")
        return document, [
            _read_array(archive, number, digest) for number, digest in enumerate(digests)
        ]


def _names(arrays: int) -> list[str]:
    return ["model.json", "model.sha256", *map(_member, range(arrays))]


def _check_version(document: Any) -> None:
    """Refuse a document of another format than those that are known."""
    number, version = document["format"], str(document["muhat"])[:20]
    if type(number) is not int or number < 1:
        raise _ModelError(f"format {number!r}")
    if number > FORMAT:
        raise _ModelError(
            f"one of format {number}, saved by muhat {version}",
            "load it with that version or a newer one",
        )


def _read_array(archive: zipfile.ZipFile, number: int, digest: str) -> Array:
    """Return an array that is as large as what was read, and no larger."""
    data = archive.read(_member(number))
    if hashlib.sha256(data).hexdigest() != digest:
        raise _ModelError("an array that is not what was written")
    head = BytesIO(data)
    if np.lib.format.read_magic(head) != (1, 0):
        raise _ModelError("an array of another format")
    shape, is_fortran, kind = np.lib.format.read_array_header_1_0(head)
    if kind.kind not in NUMBERS + "U" or kind.names or kind.subdtype or not kind.itemsize:
        raise _ModelError(f"an array of {kind}")
    if any(type(each) is not int or each < 0 for each in shape):
        raise _ModelError(f"an array of shape {shape}")
    if math.prod(shape) * kind.itemsize != len(data) - head.tell():
        raise _ModelError(f"an array of shape {shape} in {len(data)} bytes")
    array: Array = np.ndarray(shape, kind, data, head.tell(), order="F" if is_fortran else "C")
    return array.copy(order="K")


class _ModelError(MuhatError):
    """What was got instead of a model, and what to do."""

    def __init__(self, got: str, advice: str = "") -> None:
        super().__init__(got)
        self.got, self.advice = got, advice


@contextmanager
def _refused_in_one_sentence(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of whatever cannot be read as a model that it is none."""
    needed = "a model that muhat.save has written is needed"
    try:
        yield
    except _ModelError as problem:
        is_newer = "newer" in problem.advice
        needed = f"a model of format {FORMAT} or lower is needed" if is_newer else needed
        raise FileError(str(path), needed, problem.got, problem.advice) from None
    except FileNotFoundError:
        raise FileError(f"no such file: {path}") from None
    except OSError as problem:
        raise FileError(str(path), needed, problem.strerror or problem) from None
    except Exception as problem:  # a hostile file may make any parser fail in any way
        got = f"a file that cannot be read as one ({type(problem).__name__})"
        raise FileError(str(path), needed, got) from None


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that begins as ours do."""
    if Path(path).is_dir():
        raise _ModelError("a folder")
    with open(path, "rb") as file:
        start = file.read(4)
        if start[:1] == b"\x80":
            raise _ModelError("a pickle, which runs code when it is loaded")
        if start != b"PK\x03\x04":
            raise _ModelError("another kind of file" if start else "an empty file")
        yield file

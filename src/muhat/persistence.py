"""Saving fitted models and results to files, and loading them without running code from the file.

Files are written and read by skops (a zip archive of ``.npy`` arrays and one JSON document). skops
names every class that a file would create; this module decides which of them are trusted.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator

from muhat import __version__
from muhat._files import FileError, atomic_write
from muhat.errors import MuhatError

__all__ = ["load", "save"]

FORMAT = 3
"""The number of the format that is written, the only one that is read."""

MIN_PROTOCOL = 2
"""The oldest protocol of skops that is read: older ones check less."""

MAX_EXPANSION = 200
"""How many times larger than the file its content may be, against zip bombs."""

END_RECORD_SIZE = 22
"""The bytes of a zip archive's last record, which stands at the end of the file."""

TRUSTED_MODULES = ("muhat.", "sklearn.gaussian_process.kernels")
"""How the names of modules begin whose classes are trusted, besides those that skops trusts."""

Node = dict[str, Any]
"""An object in the JSON document of skops: its class, module, loader and content."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator or a result to a file that ``muhat.load`` reads.

    The file contains arrays and text, but no code. On the same machine, a loaded model predicts
    exactly the same numbers. The file is written in one atomic step. Needs skops
    (``pip install 'muhat[cli]'``).

    Parameters
    ----------
    model : estimator, result, embedding, kernel, filter or other part
        An object of muhat, or a scikit-learn estimator such as a ``Pipeline`` that holds one.
        Functions and classes of your own are code and cannot be saved.
    path : str or path
        The file; an existing one is replaced.

    Raises
    ------
    MuhatError
        If the model holds code or the file cannot be written; nothing is written then.

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
    kind = type(model)
    if not isinstance(model, BaseEstimator) and not kind.__module__.startswith("muhat."):
        needed = "an estimator or a result is needed"
        raise MuhatError("muhat.save", needed, f"a {kind.__name__}", "numpy.save saves arrays")
    skops_io = _import_skops("muhat.save")
    content = {"format": FORMAT, "muhat": __version__, "model": model}
    try:
        data = skops_io.dumps(content, compression=zipfile.ZIP_DEFLATED)
        _trusted_types(data)
    except _UntrustedTypeError as problem:
        needed = "a model without user-defined functions or classes is needed"
        advice = "keep the code in a module, and fit again where you need the model"
        raise MuhatError("muhat.save", needed, problem.got, advice) from None
    except (TypeError, AttributeError, RecursionError) as problem:
        # skops raises UnsupportedTypeException, a TypeError, or fails on an object's own state.
        needed = "a model of numbers, text, arrays and muhat's classes is needed"
        got = f"a {kind.__name__} that skops cannot save ({problem})"
        raise MuhatError("muhat.save", needed, got) from problem
    atomic_write(path, data)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a file written by ``muhat.save``, without running code from it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : object
        What was saved.

    Raises
    ------
    MuhatError
        If the file is damaged, holds classes that are not trusted, or is not a saved model. A
        forged file may hold wrong numbers, but no code.
    """
    data = _read(path)
    skops_io = _import_skops("muhat.load")
    needed = "a model saved by muhat.save is needed"
    try:
        _check_archive(data)
        # The bytes that were checked are the bytes that are loaded.
        return skops_io.loads(data, trusted=_trusted_types(data))["model"]
    except _InvalidModelError as problem:
        raise FileError(str(path), needed, problem.got, problem.advice) from None
    except Exception as problem:  # a hostile file may make any parser fail in any way
        got = f"a file that cannot be read as one ({type(problem).__name__})"
        raise FileError(str(path), needed, got) from None


class _InvalidModelError(MuhatError):
    """Raised for a file that is not a valid model."""

    def __init__(self, got: str, advice: str = "") -> None:
        super().__init__("a model", "a saved model is needed", got, advice)


class _UntrustedTypeError(_InvalidModelError):
    """Raised for a class or function that is not trusted."""


def _import_skops(who: str) -> ModuleType:
    """Import skops when it is needed: this imports all of scikit-learn and takes a second."""
    try:
        return import_module("skops.io")
    except ModuleNotFoundError:
        needed = "the package skops is needed"
        raise MuhatError(who, needed, "no skops", "run pip install 'muhat[cli]'") from None


def _read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file."""
    needed = "a model saved by muhat.save is needed"
    if Path(path).is_dir():
        raise FileError(str(path), needed, "a folder")
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(f"no such file: {path}") from None
    except OSError as problem:
        raise FileError(str(path), needed, problem.strerror or problem) from None


def _check_archive(data: bytes) -> None:
    """Raise for bytes that are not one whole archive of a model, of a size in proportion."""
    if not data:
        raise _InvalidModelError("an empty file")
    if data[:1] == b"\x80":
        raise _InvalidModelError("a pickle, which runs code when it is loaded")
    if data[:4] != b"PK\x03\x04":
        raise _InvalidModelError("another kind of file")
    end = data[-END_RECORD_SIZE:]
    if end[:4] != b"PK\x05\x06" or end[-2:] != b"\0\0":  # the last field: no comment follows
        raise _InvalidModelError("a file with extra bytes after the model")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "model.json" in archive.namelist():
            raise _InvalidModelError(
                "a model in a format of an earlier muhat", "fit and save it again"
            )
        if min(member.header_offset for member in archive.infolist()):
            raise _InvalidModelError("a file with extra bytes before the model")
        size = sum(member.file_size for member in archive.infolist())
        if size > MAX_EXPANSION * len(data):
            raise _InvalidModelError(
                "a file whose content would be far larger than the file itself"
            )
        damaged = archive.testzip()
        if damaged is not None:
            raise _InvalidModelError("a damaged file")


def _trusted_types(data: bytes) -> list[str]:
    """Return the names of the types to trust in a file beyond those that skops trusts.

    Raises _UntrustedTypeError if the file would create anything else.
    """
    skops_io = import_module("skops.io")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        document = json.loads(archive.read("schema.json"))
    if document["protocol"] < MIN_PROTOCOL:
        raise _InvalidModelError(f"a file of skops's protocol {document['protocol']}")
    _check_format(document["content"])
    untrusted = set(skops_io.get_untrusted_types(data=data))
    checked = set()
    for node in _nodes(document):
        name = f"{node['__module__']}.{node['__class__']}"
        if name in untrusted:
            if not _is_trusted(node):
                raise _UntrustedTypeError(f"{name}, which is not trusted")
            checked.add(name)
    for name in sorted(untrusted - checked):  # such as methods, which are not nodes
        raise _UntrustedTypeError(f"{name}, which is not trusted")
    return sorted(untrusted)


def _check_format(content: dict[str, Node]) -> None:
    """Raise for a model of another format, which a newer muhat may have saved."""
    number = json.loads(content["format"]["content"])
    if number != FORMAT:
        version = json.loads(content["muhat"]["content"])
        raise _InvalidModelError(
            f"a model of format {number}, saved by muhat {str(version)[:20]}",
            "load the model with that version, or fit and save it again",
        )


def _nodes(value: Any) -> Iterator[Node]:
    """Yield every object in the document of skops, at any depth."""
    if isinstance(value, dict):
        if "__loader__" in value:
            yield value
        for each in value.values():
            yield from _nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from _nodes(each)


def _is_trusted(node: Node) -> bool:
    """Whether creating an object is harmless: an instance whose attributes are set, nothing called.

    The class must be defined in the module that the file names: a module also has names that it
    imports, such as ``os``.
    """
    module, name, loader = node["__module__"], node["__class__"], node["__loader__"]
    if (module, name) == ("numpy", "dtype"):
        return True
    if not module.startswith(TRUSTED_MODULES):
        return False
    kind = getattr(import_module(module), name, None)
    if not isinstance(kind, type) or (kind.__module__, kind.__qualname__) != (module, name):
        return False
    if loader == "ConstructorFromReduceNode":  # calls the class with arguments from the file
        return issubclass(kind, Enum)
    return loader in ("ObjectNode", "CachedNode")

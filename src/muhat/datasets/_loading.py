"""Reading the data sets of Table 2: eight from the package, svmguide2 from a folder, every value checked."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal, unknown_name
from muhat.data import DataSet
from muhat.datasets._catalogue import CATALOGUE, NAMES, Entry

FOLDER_VARIABLE = "MUHAT_DATA"
"""The environment variable that names the folder of the data that are not in the package."""


def load(name: str, folder: str | os.PathLike[str] | None = None) -> DataSet:
    """Return a data set of the paper's Table 2, unscaled.

    Parameters
    ----------
    name : str
        One of ``NAMES``: 'ionosphere', 'glass', 'bodyfat', 'housing', 'vowel', 'svmguide2', 'vehicle', 'wine', 'wdbc'.
    folder : str or path, optional
        Where svmguide2 is, the one that is not in the package: as ``svmguide2.csv``, with a header and the target
        last, or as LIBSVM's own file ``svmguide2``. By default the folder in the environment variable ``MUHAT_DATA``.
        The other eight need none.

    Returns
    -------
    sample : DataSet
        The features, the target apart from them, and the source and licence of both.

    Raises
    ------
    ValueError
        If there is no such data set, svmguide2 is not found, or the values are not those of the paper.

    Examples
    --------
    >>> ionosphere = load("ionosphere")
    >>> ionosphere.data.shape
    (351, 34)
    >>> ionosphere.licence
    'CC BY 4.0'
    """
    if name not in NAMES:
        raise ValueError(unknown_name("load", name, NAMES))
    entry = CATALOGUE[name]
    packed = files("muhat.datasets").joinpath("files", f"{name}.csv.gz")
    sample = _read(_found(name, entry, folder) if entry.elsewhere else packed, entry)
    return replace(sample, name=name, source=entry.source, licence=entry.licence)


def at_hand() -> tuple[str, ...]:
    """Return the names that ``load`` needs no folder for: without the variable MUHAT_DATA, those in the package.

    Examples
    --------
    >>> "glass" in at_hand()
    True
    """
    return tuple(name for name in NAMES if not CATALOGUE[name].elsewhere or os.environ.get(FOLDER_VARIABLE))


def wine() -> DataSet:
    """Return the wine data, 13 measurements of 178 wines: ``load("wine")``.

    Examples
    --------
    >>> wine().data.shape
    (178, 13)
    """
    return load("wine")


def digest(sample: DataSet) -> str:
    """Return a digest of features and target to ten significant digits, in which all readers of decimals agree."""
    values = [*sample.data.ravel().tolist(), *np.asarray(sample.target).tolist()]
    text = "\n".join(value if isinstance(value, str) else f"{value + 0.0:.10g}" for value in values)  # −0 is 0
    return sha256(text.encode()).hexdigest()[:16]


def _found(name: str, entry: Entry, folder: str | os.PathLike[str] | None) -> Path:
    """Return the file of a data set that is not in the package, or say where to get it and how to name its folder."""
    place = folder if folder is not None else os.environ.get(FOLDER_VARIABLE) or None
    needed = f"a folder that holds {name}.csv or LIBSVM's file {name} is needed"
    advice = f"{entry.elsewhere} and name its folder by load({name!r}, folder) or in {FOLDER_VARIABLE}"
    if place is None:
        raise ValueError(refusal(name, needed, "none", advice))
    for path in (Path(place, f"{name}.csv"), Path(place, name)):
        if path.is_file():
            return path
    got = "one without them" if Path(place).is_dir() else "a file" if Path(place).exists() else "no such folder"
    raise ValueError(refusal(name, needed, f"{str(place)!r}, {got}", advice))


def _read(path: Path | Traversable, entry: Entry) -> DataSet:
    """Return what is in a file if it is the table the paper used, to the last value."""
    needed = f"the {entry.shape[0]} × {entry.shape[1]} features of the paper's Table 2 and their target are needed"
    advice = "get the file again" if entry.elsewhere else "install muhat again"
    try:
        sample = _parsed(path.name, path.read_bytes(), entry.shape[1])
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as problem:
        reason = str(getattr(problem, "strerror", None) or problem).split("\n")[0].rstrip(".")
        raise ValueError(refusal(str(path), needed, f"an unreadable file ({reason})", advice)) from problem
    if sample.data.shape != entry.shape or len(sample.feature_names) != entry.shape[1]:
        got = f"shape {sample.data.shape} and {len(sample.feature_names)} names"
        raise ValueError(refusal(str(path), needed, got, advice))
    if digest(sample) != entry.digest:
        raise ValueError(refusal(str(path), needed, "other values", advice))
    return sample


def _parsed(name: str, content: bytes, dimension: int) -> DataSet:
    """Return the content of a file ``.csv.gz`` or ``.csv``, or of one in LIBSVM's sparse format without an ending."""
    if name.endswith(".csv.gz"):
        return _from_csv(gzip.decompress(content).decode())
    if name.endswith(".csv"):
        return _from_csv(content.decode())
    from sklearn.datasets import load_svmlight_file  # here, because it takes longer to import than all of muhat

    features, target = load_svmlight_file(io.BytesIO(content), n_features=dimension, zero_based=False)
    return DataSet(name, features.toarray(), tuple(f"x{j:02d}" for j in range(1, dimension + 1)), target)


def _from_csv(text: str) -> DataSet:
    """Return a table with a header and the target in the last column."""
    header, *rows = filter(None, csv.reader(io.StringIO(text), strict=True))
    data = np.array([row[:-1] for row in rows]).astype(np.float64)
    return DataSet("", data, tuple(header[:-1]), _numbers_or_names([row[-1] for row in rows]))


def _numbers_or_names(words: list[str]) -> Array:
    try:
        return np.array(words, dtype=np.float64)
    except ValueError:
        return np.array(words)

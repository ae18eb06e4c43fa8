"""The nine data sets of Table 2: where each is, its terms, and reading it with a digest.

Four are in the package and two in scikit-learn. The other three may not be given away with it:
bodyfat and housing are in the ``data`` folder of the repository, svmguide2 is in a folder that the
user names.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from muhat._arrays import Array
from muhat._messages import unknown_name
from muhat.data import DataSet
from muhat.errors import MuhatError

FOLDER_VARIABLE = "MUHAT_DATA"
"""The environment variable that names a folder of data sets that are not in the package."""

PACKAGED, SCIKIT_LEARN, FOLDER = "package", "scikit-learn", "folder"
"""Where a data set is."""


@dataclass(frozen=True, eq=False)
class PublishedDataSet(DataSet):
    """A sample that others have published, with its terms.

    Attributes
    ----------
    target : array of shape (n,)
        What others predict from the data, numbers or names of classes; a kernel mean has no use for
        it.
    source, licence : str
        Where it comes from and on what terms, in one line each.
    """

    target: Array
    source: str = ""
    licence: str = ""


@dataclass(frozen=True)
class Entry:
    """What is known of a data set.

    Attributes
    ----------
    shape : tuple of int
        Points and features.
    digest : str
        A digest of its features and target, by :func:`digest`.
    source : str
        Who made it and where it is kept.
    licence : str
        On what terms.
    place : str
        "package", "scikit-learn" or "folder".
    advice : str
        Where to get it, if it is in a folder.
    """

    shape: tuple[int, int]
    digest: str
    source: str
    licence: str
    place: str = PACKAGED
    advice: str = ""


_UCI = "UCI Machine Learning Repository"


def _from_repository_or(name: str) -> str:
    return (
        f"get {name}.csv from the data folder of muhat's repository, or {name} from the regression "
        "page of LIBSVM Data on the LIBSVM site,"
    )


CATALOGUE = {
    "ionosphere": Entry(
        (351, 34),
        "c3b4a42a79ba58bc",
        f"V. Sigillito and others, Johns Hopkins University, 1989: Ionosphere, {_UCI}",
        "CC BY 4.0",
    ),
    "glass": Entry(
        (214, 9),
        "b8ea3a4b997ff5b8",
        f"B. German, Home Office Forensic Science Service, 1987: Glass Identification, {_UCI}",
        "CC BY 4.0",
    ),
    "bodyfat": Entry(
        (252, 14),
        "c5d89b3691dfd6a7",
        (
            "A. G. Fisher; Penrose, Nelson and Fisher 1985: bodyfat, StatLib; as in LIBSVM, with "
            "density as the target"
        ),
        "free to distribute and to use for non-commercial purposes, by permission of A. G. Fisher",
        FOLDER,
        _from_repository_or("bodyfat"),
    ),
    "housing": Entry(
        (506, 13),
        "19529efa8302250f",
        (
            "Harrison and Rubinfeld 1978: boston, StatLib; formerly Housing, UCI Machine Learning "
            "Repository"
        ),
        "no licence stated",
        FOLDER,
        _from_repository_or("housing"),
    ),
    "vowel": Entry(
        (990, 10),
        "69a7165f84f61b3f",
        (
            "D. Deterding, M. Niranjan and T. Robinson: Connectionist Bench (Vowel Recognition), "
            f"{_UCI}"
        ),
        "CC BY 4.0",
    ),
    "svmguide2": Entry(
        (391, 20),
        "3568e40aa93b1f7c",
        (
            "Hsu, Chang and Lin 2003, A Practical Guide to Support Vector Classification: "
            "svmguide2, LIBSVM Data"
        ),
        "no licence stated",
        FOLDER,
        "get svmguide2 from the multi-class page of LIBSVM Data on the LIBSVM site",
    ),
    "vehicle": Entry(
        (846, 18),
        "4b348addd032b372",
        (
            "P. Mowforth and B. Shepherd, Turing Institute, 1987: Statlog (Vehicle Silhouettes), "
            f"{_UCI}"
        ),
        "CC BY 4.0",
    ),
    "wine": Entry(
        (178, 13),
        "4d003e890e825dfc",
        f"S. Aeberhard and M. Forina: Wine, {_UCI}",
        "CC BY 4.0",
        SCIKIT_LEARN,
    ),
    "wdbc": Entry(
        (569, 30),
        "429856d1942886e1",
        (
            "W. Wolberg, N. Street and O. Mangasarian, 1993: Breast Cancer Wisconsin (Diagnostic), "
            f"{_UCI}"
        ),
        "CC BY 4.0",
        SCIKIT_LEARN,
    ),
}
"""By name, in the order of the paper."""

NAMES = tuple(CATALOGUE)
"""The data sets of Table 2, in the order of the paper."""


def load_dataset(name: str, folder: str | os.PathLike[str] | None = None) -> PublishedDataSet:
    """Return a data set of the paper's Table 2, unscaled.

    Parameters
    ----------
    name : str
        One of ``NAMES``: 'ionosphere', 'glass', 'bodyfat', 'housing', 'vowel', 'svmguide2',
        'vehicle', 'wine', 'wdbc'.
    folder : str or path, optional
        The folder with bodyfat, housing and svmguide2, which are not in the package: as
        ``<name>.csv``, with a header and the target last, or as LIBSVM's file ``<name>``. After it,
        the folder in the environment variable ``MUHAT_DATA`` is searched and, in a clone of the
        repository, its ``data`` folder. The other six data sets are in the package.

    Returns
    -------
    sample : PublishedDataSet
        The features, the target apart from them, and the source and licence of both.

    Raises
    ------
    ValueError
        If there is no such data set, it is in none of the folders, or the values are not those of
        the paper.

    Examples
    --------
    >>> ionosphere = load_dataset("ionosphere")
    >>> ionosphere.data.shape
    (351, 34)
    >>> ionosphere.licence
    'CC BY 4.0'
    """
    if name not in NAMES:
        raise MuhatError(unknown_name("load_dataset", name, NAMES))
    entry = CATALOGUE[name]
    if entry.place == SCIKIT_LEARN:
        sample = _from_scikit_learn(name)
        _check(sample, entry, f"{name} of scikit-learn", "install scikit-learn again")
    elif entry.place == PACKAGED:
        packaged = files("muhat.datasets").joinpath("files", f"{name}.csv.gz")
        sample = _read(packaged, entry, "install muhat again")
    else:
        sample = _read(_found(name, folder), entry, "get the file again")
    return replace(sample, name=name, source=entry.source, licence=entry.licence)


def at_hand() -> tuple[str, ...]:
    """Return the names that ``load`` finds without being given a folder.

    Examples
    --------
    >>> "glass" in at_hand()
    True
    """
    return tuple(name for name in NAMES if CATALOGUE[name].place != FOLDER or find_file(name))


def wine() -> PublishedDataSet:
    """Return the wine data, 13 measurements of 178 wines: ``load_dataset("wine")``.

    Examples
    --------
    >>> wine().data.shape
    (178, 13)
    """
    return load_dataset("wine")


def standardized(X: Array) -> Array:
    """Return features with mean 0 and variance 1; constant ones become 0.

    Examples
    --------
    >>> import numpy as np
    >>> standardized(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    from sklearn.preprocessing import StandardScaler

    size = np.abs(X).max(
        axis=0
    )  # divided out first, so that the variance neither overflows nor vanishes
    return StandardScaler().fit_transform(X / np.where(size > 0, size, 1))


def digest(sample: PublishedDataSet) -> str:
    """Return a digest of features and target to ten significant digits."""
    lines = []
    for value in [*sample.data.ravel().tolist(), *np.asarray(sample.target).tolist()]:
        if not isinstance(value, str):
            value = f"{value + 0.0:.10g}"  # −0 is 0
        lines.append(value)
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def repository_folder() -> Path | None:
    """Return the ``data`` folder of the repository, if muhat is run from a clone of it."""
    source, root = Path(__file__).parents[2], Path(__file__).parents[3]
    in_clone = (
        source.name == "src" and (root / "pyproject.toml").is_file() and (root / "data").is_dir()
    )
    if not in_clone:
        return None
    return root / "data"


def find_file(name: str, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the path of a data file that is not in the package, or None if no folder has it."""
    for place in (folder, os.environ.get(FOLDER_VARIABLE) or None, repository_folder()):
        if place is not None:
            for path in (Path(place, f"{name}.csv"), Path(place, name)):
                if path.is_file():
                    return path
    return None


def _found(name: str, folder: str | os.PathLike[str] | None) -> Path:
    """Return the path of a data file; raise MuhatError saying where to get it if missing."""
    path = find_file(name, folder)
    if path is not None:
        return path
    named = folder
    if named is None:
        named = os.environ.get(FOLDER_VARIABLE) or None
    got = "none"
    if named is not None:
        what = "no such folder"
        if Path(named).is_dir():
            what = "one without them"
        elif Path(named).exists():
            what = "a file"
        got = f"{str(named)!r}, {what}"
    needed = f"a folder that contains {name}.csv or LIBSVM's file {name} is needed"
    advice = (
        f"{CATALOGUE[name].advice} and name its folder by load_dataset({name!r}, folder) or in "
        f"{FOLDER_VARIABLE}"
    )
    raise MuhatError(name, needed, got, advice)


def _from_scikit_learn(name: str) -> PublishedDataSet:
    """Return a data set of scikit-learn, its classes named as in the UCI repository."""
    from sklearn.datasets import (
        load_breast_cancer,
        load_wine,
    )  # here, because it takes longer to import than muhat

    if name == "wine":
        bunch, classes = load_wine(), np.array([1.0, 2.0, 3.0])
    else:
        bunch, classes = load_breast_cancer(), np.array(["M", "B"])
    feature_names = tuple(
        feature.replace(" ", "_").replace("/", "_") for feature in bunch.feature_names
    )
    return PublishedDataSet(name, bunch.data, feature_names, classes[bunch.target])


def _read(path: Path | Traversable, entry: Entry, advice: str) -> PublishedDataSet:
    """Return what is in a file if it is the table the paper used, to the last value."""
    try:
        sample = _parsed(path.name, path.read_bytes(), entry.shape[1])
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as problem:
        reason = str(getattr(problem, "strerror", None) or problem).split("\n")[0].rstrip(".")
        raise MuhatError(
            str(path), _needed(entry), f"an unreadable file ({reason})", advice
        ) from problem
    _check(sample, entry, str(path), advice)
    return sample


def _check(sample: PublishedDataSet, entry: Entry, who: str, advice: str) -> None:
    """Raise MuhatError for a table that is not the one the paper used."""
    if sample.data.shape != entry.shape or len(sample.feature_names) != entry.shape[1]:
        got = f"shape {sample.data.shape} and {len(sample.feature_names)} names"
        raise MuhatError(who, _needed(entry), got, advice)
    if digest(sample) != entry.digest:
        raise MuhatError(who, _needed(entry), "other values", advice)


def _needed(entry: Entry) -> str:
    return (
        f"the {entry.shape[0]} × {entry.shape[1]} features of the paper's Table 2 and their target "
        "are needed"
    )


def _parsed(name: str, content: bytes, dimension: int) -> PublishedDataSet:
    """Return the content of a file: ``.csv.gz``, ``.csv``, or LIBSVM's format without an ending."""
    if name.endswith(".csv.gz"):
        return _from_csv(gzip.decompress(content).decode())
    if name.endswith(".csv"):
        return _from_csv(content.decode())
    from sklearn.datasets import (
        load_svmlight_file,
    )  # here, because it takes longer to import than all of muhat

    features, target = load_svmlight_file(
        io.BytesIO(content), n_features=dimension, zero_based=False
    )
    return PublishedDataSet(
        name, features.toarray(), tuple(f"x{j:02d}" for j in range(1, dimension + 1)), target
    )


def _from_csv(text: str) -> PublishedDataSet:
    """Return a table with a header and the target in the last column."""
    header, *rows = filter(None, csv.reader(io.StringIO(text), strict=True))
    data = np.array([row[:-1] for row in rows]).astype(np.float64)
    return PublishedDataSet(
        "", data, tuple(header[:-1]), _numbers_or_names([row[-1] for row in rows])
    )


def _numbers_or_names(words: list[str]) -> Array:
    try:
        return np.array(words, dtype=np.float64)
    except ValueError:
        return np.array(words)

"""The nine data sets of Table 2: their size, a digest of their values, where they come from and on what terms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """What is known of a data set.

    Attributes
    ----------
    shape : tuple of int
        Points and features.
    digest : str
        What ``loading.digest`` says of its features and target.
    source : str
        Who made it and where it is kept.
    licence : str
        On what terms.
    elsewhere : str
        Where to get it, if it is not in the package.
    """

    shape: tuple[int, int]
    digest: str
    source: str
    licence: str
    elsewhere: str = ""


_UCI = "UCI Machine Learning Repository"

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
        "A. G. Fisher; Penrose, Nelson and Fisher 1985: bodyfat, StatLib; as in LIBSVM, with density as the target",
        "free to distribute and to use for non-commercial purposes, by permission of A. G. Fisher",
    ),
    "housing": Entry(
        (506, 13),
        "19529efa8302250f",
        "Harrison and Rubinfeld 1978: boston, StatLib; formerly Housing, UCI Machine Learning Repository",
        "no licence stated",
    ),
    "vowel": Entry(
        (990, 10),
        "69a7165f84f61b3f",
        f"D. Deterding, M. Niranjan and T. Robinson: Connectionist Bench (Vowel Recognition), {_UCI}",
        "CC BY 4.0",
    ),
    "svmguide2": Entry(
        (391, 20),
        "3568e40aa93b1f7c",
        "Hsu, Chang and Lin 2003, A Practical Guide to Support Vector Classification: svmguide2, LIBSVM Data",
        "no licence stated",
        "get svmguide2 from the multi-class page of LIBSVM Data on the LIBSVM site",
    ),
    "vehicle": Entry(
        (846, 18),
        "4b348addd032b372",
        f"P. Mowforth and B. Shepherd, Turing Institute, 1987: Statlog (Vehicle Silhouettes), {_UCI}",
        "CC BY 4.0",
    ),
    "wine": Entry(
        (178, 13),
        "4d003e890e825dfc",
        f"S. Aeberhard and M. Forina: Wine, {_UCI}",
        "CC BY 4.0",
    ),
    "wdbc": Entry(
        (569, 30),
        "429856d1942886e1",
        f"W. Wolberg, N. Street and O. Mangasarian, 1993: Breast Cancer Wisconsin (Diagnostic), {_UCI}",
        "CC BY 4.0",
    ),
}
"""By name, in the order of the paper."""

NAMES = tuple(CATALOGUE)
"""The data sets of Table 2, in the order of the paper."""

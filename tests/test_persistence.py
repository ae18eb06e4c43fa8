"""Models are saved and loaded to the last bit; damaged or hostile files raise one clear error."""

import inspect
import io
import json
import os
import pickle
import sys
import zipfile
from enum import Enum

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import muhat
from muhat import (
    ConditionalMean,
    DriftDetector,
    Function,
    Gaussian,
    IndependenceTest,
    KernelMean,
    KernelMeanMatching,
    Laplacian,
    MatchedMixture,
    Mixture,
    Nystrom,
    RandomFeatures,
    StackedMean,
    TwoSampleTest,
    compare,
    mmd,
)
from muhat.data import DataSet
from muhat.errors import MuhatError
from muhat.filters import FILTERS
from muhat.kernels import KERNELS
from muhat.selection import RULES

RNG = np.random.default_rng(0)
X = 1 + RNG.normal(size=(30, 3))
NEW = 1 + RNG.normal(size=(7, 3))
y = X[:, 0] + np.sin(X[:, 1])
FRAME = pd.DataFrame(X, columns=["a", "<b>", "γ"])


def streamed():
    return KernelMean(gram=Nystrom(8)).partial_fit(X[:15]).partial_fit(X[15:])


def exact_mean():
    """As ``gram="auto"`` has it for many rows that landmarks do not catch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "muhat.gram._plan.MAX_ROWS_DENSE", 10
        )  # of 30 rows, which are beyond 8/5 of it
        patch.setattr("muhat.gram._nystrom.DEFAULT_SIZE", 10)
        return KernelMean(filter="f-kmse", kernel=Gaussian(0.05)).fit(X)


def detector():
    quick = TwoSampleTest(Gaussian(), bandwidths="median", statistics="mmd")
    found = DriftDetector(quick, random_state=0).fit(FRAME)
    found.update(FRAME + 3)
    return found


test = TwoSampleTest(n_permutations=19, random_state=0)
FITTED = {
    **{
        f"kernel {name}": lambda name=name: KernelMean(kernel=name).fit(X)
        for name in KERNELS
        if name != "precomputed"
    },
    **{f"filter {name}": lambda name=name: KernelMean(filter=name).fit(X) for name in FILTERS},
    **{
        f"rule {name}": lambda name=name: KernelMean(filter="f-kmse", selection=name).fit(X)
        for name in RULES
    },
    "a precomputed kernel": lambda: KernelMean(kernel="precomputed").fit(X @ X.T),
    "a composed kernel": lambda: KernelMean(
        kernel=2.0 * Gaussian() + Laplacian(1.0) * Gaussian(3.0)
    ).fit(X),
    "a kernel of scikit-learn": lambda: KernelMean(kernel=RBF(2.0) + WhiteKernel(0.1)).fit(X),
    "a kernel that scikit-learn has a name for": lambda: KernelMean(kernel="cosine").fit(X),
    "float32 and names": lambda: KernelMean().fit(FRAME.astype("float32")),
    "a target and weights": lambda: KernelMean(target=np.full(30, 0.02)).fit(
        X, sample_weight=RNG.uniform(size=30)
    ),
    "blocks": lambda: KernelMean(filter="nu-method", gram="blocks").fit(X),
    "landmarks": lambda: KernelMean(gram=Nystrom(8, landmarks="k-means++")).fit(X),
    "random features": lambda: KernelMean(gram=RandomFeatures(20)).fit(X),
    "an exact mean, shrunk on landmarks": exact_mean,
    "a stream": streamed,
    "a stacked mean": lambda: StackedMean().fit(FRAME),
    "a stacked mean without closed form": lambda: StackedMean(kernel="laplacian").fit(X),
    "a conditional mean": lambda: ConditionalMean().fit(FRAME, y),
    "two outputs on landmarks": lambda: ConditionalMean(
        filter="f-kmse", gram=Nystrom(8), bandwidth="loo"
    ).fit(X, np.c_[y, y**2]),
    "a conditional distribution": lambda: ConditionalMean().fit(X, y).distribution_at(NEW),
    "matching weights": lambda: KernelMeanMatching().fit(X, NEW),
    "a matched mixture": lambda: MatchedMixture(2, random_state=0, n_init=2).fit(X),
    "a comparison": lambda: compare(X),
    "a comparison on landmarks": lambda: compare(X, gram="nystrom"),
    "two samples": lambda: test.test(FRAME, pd.DataFrame(NEW, columns=FRAME.columns)),
    "two samples on landmarks": lambda: TwoSampleTest(
        gram=Nystrom(8),
        statistics=["mmd", "spectral", "shrunk-means"],
        n_permutations=19,
        random_state=0,
    ).test(X, NEW),
    "independence": lambda: IndependenceTest(n_permutations=19, random_state=0).test(
        X[:, :1], X[:, 1:]
    ),
    "a detector": detector,
    "what a detector says": lambda: detector().update(X + 3),
    "a test": lambda: test,
    "an estimator that is not fitted": lambda: KernelMean(kernel=Gaussian(1.0), gram=Nystrom(8)),
    "a pipeline": lambda: make_pipeline(StandardScaler(), KernelMean()).fit(FRAME),
    "a mixture": lambda: Mixture([0.5, 0.5], [[0.0], [1.0]], [[[1.0]], [[2.0]]]),
    "a data set": lambda: DataSet("rows", X, ("a", "b", "c")),
}


def same(one, other):
    """Whether two objects have the same types, bits and order in memory, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        flags = ("c_contiguous", "f_contiguous")
        return (
            (one.dtype, one.shape) == (other.dtype, other.shape)
            and (
                one.tolist() == other.tolist()
                if one.dtype == object
                else one.tobytes() == other.tobytes()
            )
            and (
                not one.flags.contiguous
                or all(getattr(one.flags, f) == getattr(other.flags, f) for f in flags)
            )
        )
    if isinstance(one, float | np.generic):
        return np.asarray(one).tobytes() == np.asarray(other).tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if not hasattr(one, "__dict__") or isinstance(one, np.dtype | Enum):
        return one == other
    mine, its = (
        {k: v for k, v in vars(each).items() if not is_cache(each, k)} for each in (one, other)
    )
    return same(mine, its)


def is_cache(owner, name):
    return hasattr(inspect.getattr_static(type(owner), name, None), "attrname")


def outputs(model):
    """Everything that a model says of new rows."""
    if vars(model).keys() == getattr(model, "get_params", lambda deep: {})(deep=False).keys():
        return  # not fitted
    names = (
        "score_samples",
        "predict",
        "predict_interval",
        "predict_quantiles",
        "embedding_",
        "witness",
        "__call__",
    )
    extra = {"predict_interval": (0.5,), "predict_quantiles": ([0.1, 0.5],)}
    rows = (
        NEW @ X.T
        if getattr(model, "kernel", None) == "precomputed"
        else NEW[:, : getattr(model, "n_features_in_", 3)]
    )
    for name in names:
        method = getattr(model, name, None)
        is_blocks = isinstance(model, ConditionalMean) and model.gram == "blocks"
        is_off = (name == "embedding_" and rows.shape[1] > 3) or (
            name == "predict_quantiles" and is_blocks
        )
        if callable(method) and not is_off:
            yield name, np.asarray(method(rows, *extra.get(name, ())))


@pytest.mark.filterwarnings(
    "ignore:X does not have valid feature names", "ignore:bandwidth", "ignore:gram='auto'"
)
@pytest.mark.parametrize("name", FITTED)
def test_what_was_fitted_is_loaded_to_the_last_bit(name, tmp_path):
    model = FITTED[name]()
    muhat.save(model, tmp_path / "model")
    loaded = muhat.load(tmp_path / "model")
    assert same(model, loaded)
    before, after = dict(outputs(model)), dict(outputs(loaded))
    assert before.keys() == after.keys()
    assert all(before[key].tobytes() == after[key].tobytes() for key in before)
    assert repr(model) == repr(loaded)


def test_a_regression_is_kept_without_matrices_of_all_pairs(tmp_path):
    rows = np.random.default_rng(0).normal(size=(442, 2))
    model = ConditionalMean().fit(rows, rows[:, 0] ** 2)
    muhat.save(model, tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 100_000  # one matrix of all pairs has 1.5 MB
    loaded = muhat.load(tmp_path / "model")
    for ask in (
        lambda m: m.predict(rows),
        lambda m: m.predict_interval(rows),
        lambda m: m.loo_residuals_,
        lambda m: m.loo_score_,
    ):
        assert np.asarray(ask(loaded)).tobytes() == np.asarray(ask(model)).tobytes()
    assert "decomposition" not in vars(loaded._fit)  # n³ operations, which none of these needs
    for method in ("jackknife+", "conformal"):
        found = loaded.predict_interval(rows[:9], method=method)
        np.testing.assert_allclose(
            found, model.predict_interval(rows[:9], method=method), rtol=1e-9
        )
    np.testing.assert_allclose(loaded.weights_at(rows[:9]), model.weights_at(rows[:9]), atol=1e-9)


def test_bytes_before_the_model_are_refused(tmp_path):
    muhat.save(KernelMean().fit(X), tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    for before in (whole, whole[:4] + b"x" * 100):
        (tmp_path / "model").write_bytes(before + whole)
        with pytest.raises(ValueError, match="extra bytes before the model"):
            muhat.load(tmp_path / "model")


@pytest.mark.parametrize("added", [b"x", b"\0" * 22, b"PK\x05\x06" + b"\0" * 18, b"more" * 1000])
def test_bytes_after_the_end_are_refused(added, tmp_path):
    muhat.save(KernelMean().fit(X), tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    for changed in (
        whole + added,
        whole[:-2] + len(added).to_bytes(2, "little") + added,
    ):  # the second is a comment
        (tmp_path / "model").write_bytes(changed)
        with pytest.raises(MuhatError, match=r"a model saved by muhat\.save is needed"):
            muhat.load(tmp_path / "model")


def test_a_stream_goes_on_after_it_was_kept(tmp_path):
    begun = KernelMean(gram=Nystrom(8)).partial_fit(X[:15])
    muhat.save(begun, tmp_path / "model")
    rest = muhat.load(tmp_path / "model").partial_fit(X[15:])
    assert rest.score_samples(NEW).tobytes() == streamed().score_samples(NEW).tobytes()


def test_the_catalogue_has_an_exact_mean():
    assert type(exact_mean().features_).__name__ == "ExactMeanFeatures"


def test_what_is_one_object_stays_one(tmp_path):
    muhat.save(compare(X), tmp_path / "model")
    loaded = muhat.load(tmp_path / "model")
    assert any(row is loaded.best for row in loaded.rows)


class OwnFilter(muhat.Filter):
    def shrinkage(self, gamma, parameter):
        return gamma / (gamma + parameter)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            lambda: KernelMean(kernel=Function(lambda A, B: A @ B.T)).fit(X),
            "without user-defined functions or classes .* got .*lambda",
        ),
        (lambda: KernelMean(filter=OwnFilter()), "got .*OwnFilter, which is not trusted"),
        (lambda: KernelMean(target=np.array([1, print], dtype=object)), "got .*print"),
        (lambda: KernelMean(target=mmd), r"got muhat\.testing.*\.mmd, which is not trusted"),
        (lambda: KernelMean(target=KernelMean().fit), "got muhat.mean.KernelMean"),
        (lambda: X, "an estimator or a result is needed, got a ndarray"),
        (lambda: BaseEstimator, "got a .*type"),
    ],
)
def test_code_cannot_be_saved_and_nothing_is_written(model, sentence, tmp_path):
    with pytest.raises(MuhatError, match=sentence):
        muhat.save(model(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_leaves_what_was_there(tmp_path):
    with pytest.raises(MuhatError, match="a folder is needed"):
        muhat.save(KernelMean(), tmp_path / "none" / "model")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model and its file."""
    path = tmp_path_factory.mktemp("keep") / "model"
    model = KernelMean(gram=Nystrom(5)).fit(X)
    muhat.save(model, path)
    return model, path.read_bytes()


def is_one_sentence(problem):
    text = str(problem)
    return text.endswith(".") and "\n" not in text and ", got " in text and len(text) < 400


def mutations(data, count):
    """Files with bits flipped, bytes cut out, doubled, replaced or moved, or the end missing."""
    rng = np.random.default_rng(20141208)
    for number in range(count):
        new = bytearray(data)
        start, stop = np.sort(rng.integers(0, len(data), size=2))
        stop = min(stop, start + int(rng.choice([1, 4, 100, len(data)])))
        match number % 5:
            case 0:
                for place in rng.integers(0, len(data), size=rng.integers(1, 4)):
                    new[place] ^= 1 << rng.integers(8)
            case 1:
                del new[start:]
            case 2:
                del new[start:stop]
            case 3:
                new[start:stop] = rng.bytes(int(rng.integers(0, 2 * (stop - start) + 2)))
            case 4:
                new[start:start] = new[stop : stop + (stop - start)]
        yield bytes(new)


def test_200_mutated_files_load_to_the_same_or_are_refused(saved, tmp_path):
    model, data = saved
    path, refused = tmp_path / "model", []
    for mutated in mutations(data, 200):
        path.write_bytes(mutated)
        try:
            loaded = muhat.load(path)
        except ValueError as problem:
            refused.append(problem)
        else:
            assert same(loaded, model)
    assert len(refused) > 150
    assert all(map(is_one_sentence, refused))


def forged(data, edit=lambda schema: None, members=()):
    """The file with its document edited, and members replaced or added."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(content["schema.json"])
    edited = edit(schema)
    content["schema.json"] = json.dumps(schema) if edited is None else edited
    content.update(members)
    return zip_of(content)


def with_node(**node):
    """An edit that puts a node of skops in the place of the model."""

    def edit(schema):
        schema["content"]["model"] = node

    return edit


def node(loader, name, **content):
    module, _, kind = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": kind, **content}


NO_ITEMS = node("TupleNode", "builtins.tuple", content=[])


def with_first_array(content):
    """A forgery that replaces one array of the file."""

    def forge(data):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            name = next(each for each in archive.namelist() if each.endswith(".npy"))
        return forged(data, members={name: content})

    return forge


def npy(shape, kind, content=b""):
    """An array's file that claims a shape."""
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + content


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def pickled_array():
    file = io.BytesIO()
    np.save(file, np.array([Bomb()], dtype=object), allow_pickle=True)
    return file.getvalue()


def set_format(number):
    def edit(schema):
        schema["content"]["format"]["content"] = str(number)
        schema["content"]["muhat"]["content"] = '"9.1"'

    return edit


FORGED = {
    "from the future": set_format(7),
    "an old protocol": lambda schema: schema.update(protocol=0),
    "a module that ours imports": with_node(**node("ObjectNode", "muhat._files.os")),
    "a function that ours imports": with_node(**node("FunctionNode", "muhat._files.suppress")),
    "a function of ours": with_node(**node("FunctionNode", "muhat._files.atomic_write")),
    "a class of ours, not an instance": with_node(**node("TypeNode", "muhat.mean.KernelMean")),
    "a class of ours, called": with_node(
        **node("ConstructorFromReduceNode", "muhat.mean.KernelMean", content=NO_ITEMS)
    ),
    "a list of ours, called": with_node(**node("ListNode", "muhat.mean.KernelMean", content=[])),
    "a class by another path": with_node(**node("ObjectNode", "muhat.KernelMean")),
    "a class that does not exist": with_node(**node("ObjectNode", "muhat.mean.None_")),
    "a package that begins as ours": with_node(**node("ObjectNode", "muhatter.Kernel")),
    "a function of the system": with_node(**node("FunctionNode", "os.system")),
    "a partial": with_node(
        **node(
            "PartialNode",
            "functools.partial",
            content={
                "func": node("FunctionNode", "os.system"),
                "args": NO_ITEMS,
                "kwds": NO_ITEMS,
                "namespace": NO_ITEMS,
            },
        )
    ),
    "a method": with_node(
        **node(
            "MethodNode",
            "muhat.mean.KernelMean",
            content={"func": "fit", "obj": node("ObjectNode", "muhat.mean.KernelMean")},
        )
    ),
    "an unknown loader": with_node(**node("EvalNode", "muhat.mean.KernelMean")),
    "an object that is not there": with_node(
        **node("CachedNode", "muhat.mean.KernelMean", __id__=12)
    ),
    "deep": lambda schema: b'{"protocol":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "a number too long": lambda schema: b'{"protocol": ' + b"9" * 10_000 + b"}",
    "no document": lambda schema: b"[]",
    "text that is not JSON": lambda schema: b"\xff\xfe",
}

HOSTILE = {
    **{name: lambda d, edit=edit: forged(d, edit) for name, edit in FORGED.items()},
    "a pickle inside": with_first_array(pickled_array()),
    "a huge array": with_first_array(npy((10**15,), "<f8")),
    "a negative shape": with_first_array(npy((-1,), "<f8", bytes(8))),
    "a header of code": with_first_array(npy((1,), "<f8").replace(b"(1,)", b"f(1)")),
    "a zip bomb": lambda d: zip_of({"schema.json": b" " * 10**8}, zipfile.ZIP_DEFLATED),
    "another zip": lambda d: zip_of({"a": b"b"}),
    "an earlier format": lambda d: zip_of({"model.json": b"{}", "model.sha256": b""}),
    "a pickle": lambda d: pickle.dumps(Bomb()),
    "an old pickle": lambda d: pickle.dumps(Bomb(), protocol=0),
    "a pickle in a zip": lambda d: zip_of({"data.pkl": pickle.dumps(Bomb())}),
    "nothing": lambda d: b"",
    "text": lambda d: b"a,b\n1,2\n",
}


def zip_of(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_and_runs_nothing(name, saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").write_bytes(HOSTILE[name](saved[1]))
    with pytest.raises(MuhatError, match="needed, got") as problem:
        muhat.load("model")
    assert is_one_sentence(problem.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model"]
    assert ("pickle" in str(problem.value)) == (name == "a pickle")


def test_the_forger_of_these_tests_can_write_a_file_that_loads(saved, tmp_path):
    (tmp_path / "model").write_bytes(forged(saved[1]))
    assert same(muhat.load(tmp_path / "model"), saved[0])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "from the future",
            r"got a model of format 7, saved by muhat 9\.1; load the model with that version",
        ),
        ("an earlier format", "got a model in a format of an earlier muhat; fit and save it again"),
        ("a module that ours imports", r"got muhat\._files\.os, which is not trusted"),
    ],
)
def test_the_error_says_what_is_wrong_with_a_file(name, words, saved, tmp_path):
    (tmp_path / "model").write_bytes(HOSTILE[name](saved[1]))
    with pytest.raises(MuhatError, match=words):
        muhat.load(tmp_path / "model")


def test_a_pipeline_of_scikit_learn_with_a_model_is_saved(tmp_path):
    frame = FRAME.assign(colour=["red", "blue", "green"] * 10)
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(columns, StandardScaler(), ConditionalMean()).fit(frame, y)
    muhat.save(model, tmp_path / "model")
    loaded = muhat.load(tmp_path / "model")
    assert loaded.predict(frame).tobytes() == model.predict(frame).tobytes()


def test_without_skops_the_error_names_the_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MuhatError, match=r"pip install 'muhat\[cli\]'"):
        muhat.save(KernelMean(), tmp_path / "model")


@pytest.mark.parametrize(
    ("place", "words"), [("none", "no such file: .*none"), (".", "is needed, got a folder")]
)
def test_what_is_no_file_is_refused(place, words, tmp_path):
    with pytest.raises(MuhatError, match=words):
        muhat.load(tmp_path / place)


def test_arrays_are_kept_in_their_order(tmp_path):
    fortran = np.asfortranarray(X)
    part = Nystrom(landmarks=fortran, n_components=30)
    muhat.save(part, tmp_path / "model")
    landmarks = muhat.load(tmp_path / "model").landmarks
    assert landmarks.flags.f_contiguous
    assert landmarks.tobytes() == X.tobytes()

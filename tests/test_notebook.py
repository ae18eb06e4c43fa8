"""What a notebook shows: a verdict and a table, escaped, beside what scikit-learn shows."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from muhat import (
    ConditionalMean,
    DriftDetector,
    Gaussian,
    IndependenceTest,
    KernelMean,
    KernelMeanMatching,
    MatchedMixture,
    StackedMean,
    TwoSampleTest,
    compare,
)
from muhat._summary import MAX_SUMMARY_ROWS, TONE_COLOURS
from muhat.notebook import with_progress

RNG = np.random.default_rng(0)
EVIL = "<script>alert(1)</script>"
X = pd.DataFrame(RNG.normal(size=(30, 3)), columns=[EVIL, "b&c", "γ"])
Y = X.add([3, 0, 0])


def detector():
    quick = TwoSampleTest(Gaussian(), bandwidths="median", statistics="mmd")
    found = DriftDetector(quick, random_state=0).fit(X)
    found.update(Y)
    found.update(Y)
    return found


ESTIMATORS = {
    "detector": detector,
    "mean": lambda: KernelMean().fit(X),
    "plain mean": lambda: KernelMean(filter="kme").fit(X),
    "stacked mean": lambda: StackedMean().fit(X),
    "conditional mean": lambda: ConditionalMean(filter=["f-kmse", "landweber"]).fit(
        X, X.sum(axis=1)
    ),
    "matching": lambda: KernelMeanMatching().fit(X, Y),
    "mixture": lambda: MatchedMixture(2, n_init=2, random_state=0).fit(X),
}
RESULTS = {
    "drift of a batch": lambda: detector().update(Y),
    "comparison": lambda: compare(X.to_numpy()),
    "two samples": lambda: TwoSampleTest(n_permutations=99, random_state=0).test(X, Y),
    "independence": lambda: IndependenceTest(n_permutations=19, random_state=0).test(
        X[["γ"]], X[["b&c"]]
    ),
}


def parsed(html):
    """The elements of a summary, which is read as XML: nothing stays open, nothing is unescaped."""
    return ElementTree.fromstring(f"<all>{html}</all>")


def summary(shown):
    return shown._summary().html()


@pytest.mark.parametrize("name", [*ESTIMATORS, *RESULTS])
def test_a_summary_has_a_sentence_and_a_short_table(name):
    page = parsed(summary({**ESTIMATORS, **RESULTS}[name]()))
    assert page.find(".//p").text.endswith((".", ".)"))
    assert 1 <= len(page.findall(".//tbody/tr")) <= MAX_SUMMARY_ROWS
    assert not page.findall(".//script")


def test_names_of_columns_are_shown_as_they_are():
    result = RESULTS["two samples"]()
    assert EVIL not in result._repr_html_()
    cells = [cell.text for cell in parsed(result._repr_html_()).iter("td")]
    assert {EVIL, "b&c", "γ"} <= set(cells)
    assert parsed(result._repr_html_()).find(".//p").text == result.verdict()


def test_the_edge_of_a_verdict_has_the_colour_of_what_was_found():
    def edge(result):
        return re.search(r"border-left:4px solid (#\w+)", summary(result))[1]

    assert edge(RESULTS["two samples"]()) == TONE_COLOURS["found"]
    assert edge(RESULTS["drift of a batch"]()) == edge(detector()) == TONE_COLOURS["bad"]
    assert edge(RESULTS["independence"]()) == TONE_COLOURS["neutral"]
    compared = RESULTS["comparison"]()
    assert edge(compared) == TONE_COLOURS["good" if compared.helps else "neutral"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fitted_estimator_is_shown_below_the_diagram_of_scikit_learn(name):
    model = ESTIMATORS[name]()
    html = model._repr_mimebundle_()["text/html"]
    assert html.endswith(summary(model))
    assert "sk-top-container" in html
    assert model._repr_html_().endswith(summary(model))


def test_an_estimator_that_is_not_fitted_has_the_diagram_alone():
    assert "muhat-summary" not in KernelMean()._repr_html_()
    assert "muhat-summary" not in KernelMean()._repr_mimebundle_()["text/html"]


def test_scikit_learn_set_to_text_shows_text():
    model = ESTIMATORS["mean"]()
    with config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(model, "_repr_html_")


def test_a_bar_of_progress_counts_rows_in_each_pass(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    batches = with_progress([X.to_numpy()] * 3, 90)
    next(iter(batches))  # a look at the first batch is not a pass
    assert capsys.readouterr().err == ""
    assert [len(list(batches)), len(list(batches))] == [3, 3]
    shown = capsys.readouterr().err
    assert "pass 1: 100%" in shown
    assert "pass 2: 100%" in shown
    assert "90.0/90.0" in shown
    assert "pass 3" not in shown


def test_no_progress_is_written_to_a_file(capsys):
    assert len(list(with_progress([X.to_numpy()]))) == 1
    assert capsys.readouterr().err == ""


def test_without_tqdm_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("muhat.notebook.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match="progress bars need tqdm, got no tqdm; run pip install tqdm"
    ):
        with_progress([])


def test_names_of_columns_go_through_a_pipeline():
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), KernelMean()).fit(X)
    assert model[-1].feature_names_in_.tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature names"):
        model[-1].score_samples(X.rename(columns={"γ": "g"}))

"""docs/coming-from.md shows the code that was measured, and what it answered."""

import json
import re

from benchmarks.peers.coming_from import PAGE, RESULTS, SETUP, TASKS, page

FOUND = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_made_of_the_results():
    """To mend it, run ``python benchmarks/peers/coming_from.py page``."""
    assert PAGE.read_text(encoding="utf-8") == page(FOUND)


def test_every_package_was_measured_or_it_is_said_why_not():
    assert [task.title for task in TASKS] == list(FOUND)
    for task in TASKS:
        for side in ("peer", "ours"):
            found = FOUND[task.title][side]
            assert found.get("answer") or found.get("missing") or found.get("failed")
        assert FOUND[task.title]["ours"]["seconds"] > 0


def test_kernel_pca_and_jackknife_intervals_give_the_answers_that_were_written():
    """Two whose answers do not depend on permutations; the page's other blocks run elsewhere."""
    names = {}
    exec(SETUP, names)
    for title in ("scikit-learn: `KernelPCA`", "scikit-learn: `KernelRidge`"):
        (task,) = (each for each in TASKS if each.title == title)
        exec(task.ours.code, names)
        numbers = re.findall(r"[\d.]+", FOUND[title]["ours"]["answer"])
        if "PCA" in title:
            assert f"{names['scores'][:, 0].var():.6f}" in numbers
        else:
            assert f"{names['model'].loo_score_:.3f}" in numbers

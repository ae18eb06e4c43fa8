"""
Filters as functions of eigenvalues
===================================

A filter is a function of the eigenvalues of K/n, where K is the Gram matrix of n rows. It says
which share of each principal component is kept. The data are 100 rows of the vowel data.
"""

from muhat import FilterDisplay, compare, load_dataset

comparison = compare(load_dataset("vowel").data[:100], standardize=True)
FilterDisplay.from_comparison(comparison).plot()

kept = {row.name: (row.shrinkage > 0.5).sum() for row in comparison.rows}
print(
    f"Tikhonov's filter keeps more than half of {kept['f-kmse']} of 100 components, "
    f"truncated SVD all of {kept['tsvd']}."
)

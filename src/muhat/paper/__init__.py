"""The paper's evidence: its experiments, their runner, figures and page of claims. Nothing else in muhat imports it."""

"""Type checkers see the public names with their types."""

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

CODE = """
import muhat
from muhat import KernelMean, TwoSampleTest, compare, load
reveal_type(KernelMean)
reveal_type(KernelMean(filter="f-kmse").fit([[1.0], [2.0]]))
reveal_type(TwoSampleTest().test([[1.0]], [[2.0]]).p_value)
reveal_type(compare)
reveal_type(muhat.kernels.Gaussian())
"""


def test_the_stub_of_the_public_names_is_current():
    spec = importlib.util.spec_from_file_location("stub", ROOT / "docs" / "stub.py")
    stub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stub)
    assert stub.STUB.read_text(encoding="utf-8") == stub.stub(), "run docs/stub.py"


def test_a_type_checker_knows_what_is_imported_from_muhat(tmp_path):
    (tmp_path / "used.py").write_text(CODE)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [*command, str(tmp_path / "used.py")], cwd=ROOT, capture_output=True, text=True
    )
    revealed = [line.partition(" is ")[2] for line in done.stdout.splitlines() if " is " in line]
    assert len(revealed) == 5, done.stdout + done.stderr
    mean, fitted, p_value, compare, kernel = revealed
    assert "-> muhat.mean.KernelMean" in mean
    assert fitted == '"muhat.mean.KernelMean"'
    assert p_value == '"float"'
    assert "-> muhat.comparison._result.Comparison" in compare
    assert kernel.startswith('"muhat.kernels.')
    assert kernel.endswith('Gaussian"')

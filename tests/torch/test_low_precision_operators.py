"""A sample of PyTorch's operators in low precision: right ones are never WRONG, scaled ones always.

`python -m bench.lowprecision` does the same with all of them.
"""

from __future__ import annotations

import pytest

pytest.importorskip("expecttest")

from bench.lowprecision import FACTORS, Case, judge, main

OPERATORS = (
    "add", "addcmul", "atan2", "baddbmm", "cumprod", "diff", "digamma", "einsum", "erfinv", "fft.rfft", "gather",
    "kron", "linalg.det", "linalg.solve", "linalg.vector_norm", "log_softmax", "logsumexp", "masked.softmax", "matmul",
    "mean", "nn.functional.conv2d", "nn.functional.gelu", "nn.functional.group_norm", "nn.functional.layer_norm",
    "nn.functional.scaled_dot_product_attention", "pow", "prod", "sinc", "tanh", "var",
)  # fmt: skip
# What torch has no backward of in half precision.
SINGLE_ONLY = ("einsum", "fft.rfft", "linalg.det", "linalg.solve")
CASES = [(name, "float32") for name in OPERATORS]
CASES += [(name, "bfloat16") for name in OPERATORS if name not in SINGLE_ONLY]
CASES += [(name, "float16") for name in ("matmul", "log_softmax", "nn.functional.layer_norm", "var", "tanh", "pow")]


@pytest.mark.parametrize(("operator", "dtype"), CASES)
def test_a_right_operator_and_its_scaled_twin(operator: str, dtype: str) -> None:
    right = judge(Case(operator, dtype))
    assert right is not None
    assert right.verdict == "RIGHT", right.text
    wrong = judge(Case(operator, dtype, factor=FACTORS[dtype]))
    assert wrong is not None
    assert wrong.verdict == "WRONG", wrong.text


@pytest.mark.slow
def test_the_bench_runs_and_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dtype", "bfloat16", "--ops", "tan*", "--twins", "2"]) == 0
    printed = capsys.readouterr().out
    assert "bfloat16" in printed
    assert "scaled" in printed

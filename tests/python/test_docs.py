"""Runs the Python snippets of the pages unchanged except for the tuning time; test_torch.py runs those of the
cookbook."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import tensorsmith
from conftest import random_graph_model

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = ["README.md", "docs/python.md", "docs/first_steps.md"]
FOLDERS = ["tuned", "model_tuned"]  # folders where the pages expect a compiled model


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page, capsys):
    model = random_graph_model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    model.graph.input[0].name = model.graph.node[0].input[0] = "image"
    onnx.save(model, "model.onnx")
    for folder in FOLDERS:
        tensorsmith.compile("model.onnx", folder, untuned=True)
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks
    names = {"image": np.ones((3, 8), np.float32)}
    for block in blocks:
        exec(compile(re.sub(r"seconds=\d+", "seconds=2", block), page, "exec"), names)
    assert names["outputs"]["y"].shape == (3, 4)
    if "tuned" in names:
        assert "times as fast as untuned" in capsys.readouterr().out

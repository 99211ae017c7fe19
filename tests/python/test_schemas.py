"""Validates the output of `--json` with the schemas in docs/schemas."""

import json
from pathlib import Path

import jsonschema
import pytest

import tensorsmith

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"

# Schema -> words of the command. Later commands use the output of earlier ones.
COMMANDS = {
    "tune": ["tune", "{model}", "-o", "out", "--trials", "60", "--threads", "1", "--quiet", "--seed", "4"],
    "tune_no_measure": ["tune", "{model}", "-o", "guessed", "--no-measure"],
    "tasks": ["tasks", "{model}"],
    "run": ["run", "out", "--check", "{folder}/test_data_set_0"],
    "run_outputs": ["run", "out", "--input", "Input3={folder}/test_data_set_0/input_0.pb"],
    "bench": ["bench", "out", "--seconds", "0.05"],
    "bench_profile": ["bench", "out", "--profile"],
    "db_info": ["db", "info", "tensorsmith.db"],
    "db_check": ["db", "check", "tensorsmith.db"],
    "db_export": ["db", "export", "tensorsmith.db", "records.jsonl"],
    "db_import": ["db", "import", "copy.db", "records.jsonl"],
    "devices_list": ["devices", "list"],
    "zoo_list": ["zoo", "list"],
    "predict": ["predict", "{model}", "--threads", "1"],
    "train": ["train", "--from-db", "tensorsmith.db", "--model", "xgboost", "--param", "rounds=20", "-o", "own.model"],
    "eval": ["eval", "--model", "own.model", "--store", "own.model.store", "--split", "own.model.split"],
    "eval_rounds": [
        "eval",
        "--rounds",
        "2",
        "--batch",
        "2",
        "--part",
        "train",
        "--model",
        "own.model",
        "--store",
        "own.model.store",
        "--split",
        "own.model.split",
    ],
    "dataset_stats": ["dataset", "stats", "own.model.store"],
    "profile": ["profile", "tensorsmith.db", "--threads", "1"],
    "compare": ["compare", "{model}", "--trials", "4"],
    # The model under another name is its own source.
    "compare_whole": [
        "compare",
        "{model}",
        "--whole",
        "whole",
        "--from",
        "tensorsmith.db",
        "--from",
        "{folder}/./model.onnx",
        "--seeds",
        "1",
        "--programs",
        "2",
        "--limit",
        "0.5",
        "--threads",
        "1",
    ],
}


def documents(text):
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        at += len(text[at:]) - len(text[at:].lstrip())


def test_all_are_as_documented(mnist):
    assert {path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.schema.json")} == set(COMMANDS)
    for name, words in COMMANDS.items():
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        given = [word.format(model=mnist, folder=mnist.parent) for word in words]
        text = tensorsmith.run_command(*given, "--json", quiet=True).strip()
        found = list(documents(text))
        assert found, name
        for document in found[-1:] if name.startswith("eval") else found:
            errors = list(jsonschema.Draft202012Validator(schema).iter_errors(document))
            assert not errors, f"{name}: {[error.message[:300] for error in errors]}"


def test_a_wrong_document_is_seen():
    schema = json.loads((SCHEMAS / "bench.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{"name": "out"}], schema)

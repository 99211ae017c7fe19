"""Random ONNX graphs, their results by other implementations, and Tensorsmith's results (scripts/fuzz_graphs)."""

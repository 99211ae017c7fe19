"""Random ONNX graphs, what others compute for them, and what Tensorsmith makes of them (scripts/fuzz_graphs)."""

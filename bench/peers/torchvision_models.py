#!/usr/bin/env python3
"""Writes torchvision networks with seeded random weights as ONNX models, for `bench/peers/run WORK DIRECTORY`.

  torchvision_models.py DIRECTORY [NAME ...]

The models are DIRECTORY/NAME/model.onnx, batch 1, f32, opset 17. Needs PyTorch and torchvision (tested: 2.6.0 and
0.21.0).
"""
import pathlib
import sys

import torch
import torchvision.models as models

SIZES = {"convnext_tiny": 224, "swin_t": 224, "regnet_y_800mf": 224, "regnet_x_1_6gf": 224, "shufflenet_v2_x1_0": 224,
         "efficientnet_v2_s": 384, "resnet34": 224, "maxvit_t": 224, "mnasnet0_5": 224, "vit_b_32": 224,
         "segmentation.deeplabv3_mobilenet_v3_large": 320, "segmentation.lraspp_mobilenet_v3_large": 320}


class OnlyResult(torch.nn.Module):
    """Returns the tensor "out" of a segmentation network, whose own result is a dictionary."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)["out"]


def make(name):
    where, _, function = name.rpartition(".")
    if not where:
        return getattr(models, function)(weights=None)
    return OnlyResult(getattr(getattr(models, where), function)(weights=None, weights_backbone=None))


def main():
    names = sys.argv[2:] or list(SIZES)
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or any(name not in SIZES for name in names):
        sys.exit(__doc__.strip() + "\n\nNAME: " + " ".join(SIZES))
    torch.manual_seed(0)
    for name in names:
        network = make(name).eval()
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
        file = pathlib.Path(sys.argv[1]) / name.rpartition(".")[2] / "model.onnx"
        file.parent.mkdir(parents=True, exist_ok=True)
        image = torch.randn(1, 3, SIZES[name], SIZES[name])
        torch.onnx.export(network, image, str(file), opset_version=17, input_names=["x"], dynamo=False)
        print(file)


if __name__ == "__main__":
    main()

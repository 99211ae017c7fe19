#!/usr/bin/env python3
"""A cost model of one's own: a small net of PyTorch, or a ridge regression if torch is not installed.

tensorsmith compare model.onnx --cost-model xgboost --cost-model "command:python3 own_cost_model.py"
"""

import numpy as np

import tensorsmith

try:
    import torch
except ImportError:
    torch = None


def rows_of(programs):
    """Returns the features, with the times that each resource is busy as logarithms."""
    times = ["seconds." in name for name in programs.feature_names]
    programs.features[:, times] = np.log(programs.features[:, times] + 1e-9)
    return programs.features


def labels_of(programs, seconds):
    """Returns the score that each program should have: how much faster it is than the mean of its task."""
    speed = -np.log(np.minimum(seconds, 10 * seconds.min()))  # failed programs are slow
    means = np.bincount(programs.task_of, speed) / np.maximum(np.bincount(programs.task_of), 1)
    return (speed - means[programs.task_of]).astype(np.float32)


class Net(tensorsmith.CostModel):
    def __init__(self):
        self.net = None

    def update(self, programs, seconds):
        rows, labels = torch.from_numpy(rows_of(programs)), torch.from_numpy(labels_of(programs, seconds))
        self.mean, self.deviation = rows.mean(0), rows.std(0, unbiased=False) + 1e-3
        self.net = self.net or torch.nn.Sequential(
            torch.nn.Linear(rows.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        )
        optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3, weight_decay=1e-3)
        for _ in range(200):
            optimizer.zero_grad()
            loss = torch.nn.functional.huber_loss(self.scores(rows), labels)
            loss.backward()
            optimizer.step()

    def scores(self, rows):
        return self.net((rows - self.mean) / self.deviation).squeeze(1)

    def predict(self, programs):
        with torch.no_grad():
            return self.scores(torch.from_numpy(rows_of(programs))).numpy()


class Ridge(tensorsmith.CostModel):
    def update(self, programs, seconds):
        rows = rows_of(programs)
        self.mean, self.deviation = rows.mean(0), rows.std(0) + 1e-3
        x = (rows - self.mean) / self.deviation
        self.weights = np.linalg.solve(x.T @ x + 10 * np.eye(x.shape[1]), x.T @ labels_of(programs, seconds))

    def predict(self, programs):
        return (rows_of(programs) - self.mean) / self.deviation @ self.weights


if __name__ == "__main__":
    tensorsmith.serve(Net() if torch else Ridge())

"""Makes python/tensorsmith/peers, the part of the Python package that runs other engines, importable as `peers`,
without a build of the package. Import this module first."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tensorsmith"))

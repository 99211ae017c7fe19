"""Makes the part of the Python package that compares with other engines (python/tensorsmith/peers) known as `peers`, without the
package being built: import this first."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tensorsmith"))

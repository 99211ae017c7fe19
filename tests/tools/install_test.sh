#!/usr/bin/env bash
# Tests an installed runtime with a program outside of this repository: it builds with CMake's package, with pkg-config,
# and with neither if the compiler searches the prefix by default; and it runs a compiled model.
#   install_test.sh SOURCE_DIR BUILD_DIR TENSORSMITH MODEL_DIR     MODEL_DIR: ONNX's mnist_8
set -euo pipefail
source=$1 build=$2 tensorsmith=$3 mnist=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

cmake --install "$build" --component runtime --prefix "$scratch/first" > install.log
[ "$(find first -type f)" = "$(find first -type f -name 'libtensorsmith_runtime.so.*')" ] ||
  { echo "the component runtime is more than its library:"; find first; exit 1; }
cmake --install "$build" --component development --prefix "$scratch/first" >> install.log
mv first prefix  # an installation may be moved
[ -f prefix/include/tensorsmith.h ] || { echo "tensorsmith.h is not in the prefix's include folder"; exit 1; }

"$tensorsmith" compile "$mnist/model.onnx" --untuned -o mnist > compile.log
# The elements are the last field of these files.
tail -c 3136 "$mnist/test_data_set_0/input_0.pb" > input.raw
tail -c 40 "$mnist/test_data_set_0/output_0.pb" > expected.raw

check() {  # check HOW PROGRAM: its output is the expected one, up to f32 rounding
  "$2" mnist 1 0 input.raw > output.txt
  python3 - "$1" <<'END'
import struct, sys
expected = struct.unpack("10f", open("expected.raw", "rb").read())
line = open("output.txt").read().splitlines()[1]
name, values = line.split(":")
values = [float(v) for v in values.split()]
assert name == "Plus214_Output_0", line
assert len(values) == 10 and all(abs(v - e) <= 1e-3 * abs(e) + 1e-2 for v, e in zip(values, expected)), (line, expected)
print(sys.argv[1] + ": as expected")
END
}

cmake -G Ninja -S "$source/examples/c" -B cmake -DCMAKE_PREFIX_PATH="$scratch/prefix" > cmake.log
cmake --build cmake >> cmake.log
check "CMake package" cmake/run_model

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find prefix -name tensorsmith.pc)")
read -ra flags <<< "$(pkg-config --cflags --libs tensorsmith)"
libraries=$(pkg-config --variable=libdir tensorsmith)
cc -std=c99 -Wall -Wextra -Werror "$source/examples/c/run_model.c" "${flags[@]}" -Wl,-rpath,"$libraries" -o with_pkgconfig
check pkg-config ./with_pkgconfig
version=$(pkg-config --modversion tensorsmith)
[[ "$("$tensorsmith" --version)" == *" $version"* ]] || { echo "pkg-config says $version"; exit 1; }
grep -q "\"$version\"" mnist/manifest.json || { echo "the compiled model is not of version $version"; exit 1; }

CPATH=prefix/include LIBRARY_PATH=$libraries cc "$source/examples/c/run_model.c" -ltensorsmith_runtime -Wl,-rpath,"$libraries" -o plain
check "compiler alone" ./plain

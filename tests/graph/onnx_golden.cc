#include "onnx_golden.h"

#include "onnx_model_builder.h"

namespace tensorsmith::graph::testing {

namespace {

using ir::DType;

constexpr int kFloat = 1, kUint8 = 2, kInt64 = 7, kBool = 9, kInt4 = 22;

lower::Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor_of(DType::kF32, std::move(shape), values);
}
lower::Tensor integers(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor_of(DType::kI64, std::move(shape), values);
}

std::string pattern(int64_t n) {
  std::string bytes;
  for (int64_t i = 0; i < n; ++i) bytes.push_back(static_cast<char>((i * 37 + 11) % 256));
  return bytes;
}

// Weights of 4 or 8 bits; the last of three blocks is half full.
GoldenCase matmul_nbits(const std::string& name, int64_t bits, bool zeros, std::vector<double> expected) {
  ModelBuilder m(21);
  m.input("a", {2, 40}).output("y");
  m.raw("b", {3, 3, 2 * bits}, kUint8, pattern(18 * bits));
  m.initializer("s", {9},
                {1.F / 16, 2.F / 16, 3.F / 16, 4.F / 16, 5.F / 16, 6.F / 16, 7.F / 16, 8.F / 16, 9.F / 16});
  std::vector<std::string> inputs = {"a", "b", "s"};
  if (zeros) {
    m.raw("z", {6}, kUint8, "\x93\x05\x7a\x0c\xf1\x08");
    m.initializer("bias", {3}, {.5F, -1, 2});
    inputs.insert(inputs.end(), {"z", "", "bias"});
  }
  m.node("MatMulNBits", inputs, {"y"}).domain("com.microsoft");
  m.integer("K", 40).integer("N", 3).integer("bits", bits).integer("block_size", 16);
  return {name, m.bytes(), false, {ramp({2, 40})}, {floats({2, 3}, expected)}};
}

void add_attention(std::vector<GoldenCase>& cases) {
  {
    ModelBuilder m(23);
    m.input("q", {1, 4, 3, 2}).input("k", {1, 2, 3, 2}).input("v", {1, 2, 3, 2});
    m.input("pk", {1, 2, 2, 2}).input("pv", {1, 2, 2, 2}).output("y").output("s");
    m.node("Attention", {"q", "k", "v", "", "pk", "pv"}, {"y", "", "", "s"});
    m.integer("is_causal", 1).number("softcap", 2).integer("qk_matmul_output_mode", 3);
    cases.push_back(
        {"attention_past_causal_softcap",
         m.bytes(),
         false,
         {ramp({1, 4, 3, 2}), ramp({1, 2, 3, 2}, 1), ramp({1, 2, 3, 2}, 2), ramp({1, 2, 2, 2}, 3),
          ramp({1, 2, 2, 2}, 4)},
         {floats({1, 4, 3, 2}, {-0.7059159, 0.1690842,  -0.0668271, 0.422924,   -0.3198462, 0.293596,
                                -0.5,       0.375,      -0.2019777, 0.2972582,  -0.4387721, 0.1953095,
                                0.2219457,  -0.7687258, 0.0929304,  -0.5500951, -0.6138201, -0.3546616,
                                0.1023452,  -0.5820947, -0.068536,  -0.2644323, -0.6657773, -0.2356253}),
          floats({1, 4, 3, 5},
                 {0.1426674, 0.5011104, 0.3562222, 0,         0,         0.5043787, 0.1456279, 0.2159938,
                  0.1339996, 0,         0.1804487, 0.2893379, 0.248661,  0.0909766, 0.1905758, 0.3333333,
                  0.3333333, 0.3333333, 0,         0,         0.3729138, 0.227704,  0.2686817, 0.1307006,
                  0,         0.1229883, 0.3769148, 0.2744052, 0.0837977, 0.1418941, 0.6489292, 0.1736045,
                  0.1774662, 0,         0,         0.2596353, 0.3486139, 0.1233772, 0.2683736, 0,
                  0.1082189, 0.0901024, 0.6073467, 0.1059868, 0.0883452, 0.5424139, 0.2804256, 0.1771605,
                  0,         0,         0.1755147, 0.510233,  0.1172813, 0.196971,  0,         0.0753641,
                  0.1264355, 0.5841172, 0.0793657, 0.1347176})}});
  }
  {
    // Two heads share keys; the mask hides every third key, and all keys from query 5 on.
    ModelBuilder m(23);
    m.input("q", {1, 2, 16, 1}).input("k", {1, 1, 16, 1}).input("v", {1, 1, 16, 1});
    m.input("m", {16, 16}, kBool).output("y");
    m.node("Attention", {"q", "k", "v", "m"}, {"y"}).number("scale", 1.5);
    std::vector<double> mask;
    for (int i = 0; i < 256; ++i) mask.push_back(i % 3 != 0 && i / 16 != 5 ? 1 : 0);
    cases.push_back(
        {"attention_shared_keys_masked",
         m.bytes(),
         false,
         {ramp({1, 2, 16, 1}), ramp({1, 1, 16, 1}, 1), ramp({1, 1, 16, 1}, 2),
          tensor_of(DType::kBool, {16, 16}, mask)},
         {floats({1, 2, 16, 1},
                 {-0.3585266, -0.4106251, 0.1230188,  0.6975471,  -0.4822195, 0,          0.6163946,
                  -0.542061,  0.0930649,  0.5229999,  -0.5896804, -0.0176885, 0.4184664,  -0.5686116,
                  -0.1701931, 0.3053376,  0.6585189,  -0.5137411, 0.125,      0.5711906,  -0.5672901,
                  0,          0.4720011,  -0.6095417, -0.0908235, 0.3627609,  -0.5232598, -0.2511997,
                  0.2467236,  -0.4296472, -0.4028436, 0.1282764})}});
  }
  for (const bool interleaved : {false, true}) {
    ModelBuilder m(23);
    m.input("x", {1, 3, 12}).input("c", {4, 2}).input("s", {4, 2}).input("p", {1, 3}, kInt64).output("y");
    m.node("RotaryEmbedding", {"x", "c", "s", "p"}, {"y"}).integer("num_heads", 2);
    m.integer("rotary_embedding_dim", 4).integer("interleaved", interleaved ? 1 : 0);
    const std::vector<double> halves = {
        0.515625,  -1.34375,  -0.140625, 0.1875,    -0.75,     0.125,   -0.375,  -1.15625,  0.046875,
        -0.5,      -1.25,     -0.375,    -0.890625, -0.234375, 0.3125,  0.3125,  1.125,     -0.875,
        -0.703125, -0.046875, 1.125,     0.25,      0.625,     -1.375,  0.71875, -0.421875, 2.28125,
        0.375,     0.125,     1,         -0.53125,  -0.234375, 2.15625, 0.8125,  -0.375,    0.5};
    const std::vector<double> pairs = {
        0.515625, 0.1875, -0.90625, 0.953125,  -0.75,    0.125,    -0.375,    0.375,    -0.71875,
        0.265625, -1.25,  -0.375,   0.359375,  -1.6875,  0.015625, -0.1875,   1.125,    -0.875,
        0.546875, -0.875, 0.203125, -0.25,     0.625,    -1.375,   -0.265625, 1.078125, -0.96875,
        0.15625,  0.125,  1,        -1.515625, 0.953125, -0.78125, 0.59375,   -0.375,   0.5};
    cases.push_back({interleaved ? "rotary_interleaved" : "rotary_halves",
                     m.bytes(),
                     false,
                     {ramp({1, 3, 12}), ramp({4, 2}, 1), ramp({4, 2}, 2), integers({1, 3}, {2, 0, 3})},
                     {floats({1, 3, 12}, interleaved ? pairs : halves)}});
  }
}

void add_images(std::vector<GoldenCase>& cases) {
  for (const bool cubic : {false, true}) {
    ModelBuilder m(19);
    m.input("x", {1, 1, 7, 6}).integers("z", {1, 1, 3, 4}).output("y");
    m.node("Resize", {"x", "", "", "z"}, {"y"})
        .text("mode", cubic ? "cubic" : "linear")
        .integer("antialias", 1);
    m.integer("exclude_outside", cubic ? 1 : 0);
    const std::vector<double> cubics = {-0.1098436, -0.0738169, 0.368126,   -0.5381006,
                                        0.3720402,  0.0787652,  -0.0548075, -0.0767189,
                                        -0.1868975, 0.3583031,  -0.3234452, 0.1170345};
    const std::vector<double> triangles = {-0.2005209, -0.014757, 0.2907987,  -0.3619792,
                                           0.2352941,  0.0522876, -0.0179739, -0.2009804,
                                           0.0052084,  0.250868,  -0.1623264, 0.0833333};
    cases.push_back({cubic ? "resize_cubic_antialias" : "resize_linear_antialias",
                     m.bytes(),
                     false,
                     {ramp({1, 1, 7, 6})},
                     {floats({1, 1, 3, 4}, cubic ? cubics : triangles)}});
  }
  for (const bool larger : {false, true}) {
    ModelBuilder m(19);
    m.input("x", {1, 1, 7, 6}).integers("z", {3, 4}).output("y");
    m.node("Resize", {"x", "", "", "z"}, {"y"}).text("mode", "linear").ints("axes", {2, 3});
    m.text("keep_aspect_ratio_policy", larger ? "not_smaller" : "not_larger");
    cases.push_back({larger ? "resize_not_smaller" : "resize_not_larger",
                     m.bytes(),
                     false,
                     {ramp({1, 1, 7, 6})},
                     {larger ? floats({1, 1, 5, 4}, {-0.7421875, 0.03125,    0.625,      -0.21875, 0.6640625,
                                                     -0.1796875, 0.4140625,  -0.4296875, 0.09375,  -0.2109375,
                                                     -0.15625,   -0.4609375, -0.65625,   0.65625,  -0.90625,
                                                     0.40625,    0.875,      0.03125,    0.625,    -0.21875})
                             : floats({1, 1, 3, 3}, {-0.4861111, 0.9166667, -0.2083333, 0.5833333, -0.25,
                                                     -1.375, -0.2638888, -0.458333, 0.3333333})}});
  }
  {
    ModelBuilder m(18);
    m.input("x", {1, 8, 4}).integers("i", {4, 3}).integers("b", {2, 2}).output("y");
    m.node("Col2Im", {"x", "i", "b"}, {"y"}).ints("strides", {2, 1}).ints("pads", {1, 0, 0, 1});
    m.ints("dilations", {1, 2});
    cases.push_back(
        {"col2im",
         m.bytes(),
         false,
         {ramp({1, 8, 4})},
         {floats({1, 2, 4, 3}, {-0.125, 0.75,  0.5, 0.375, 1.25,  1,    -1.25, -0.375, -0.625, 0, 0, 0, -0.5,
                                0.375,  0.125, 0,   0.875, 0.625, 1.25, -0.75, -1,     0,      0, 0})}});
  }
}

void add_quantized(std::vector<GoldenCase>& cases) {
  cases.push_back(matmul_nbits("matmul_4_bits", 4, false,
                               {-0.578125, -4.40625, -5.4453125, -0.6875, -1.8984375, 0.078125}));
  cases.push_back(matmul_nbits("matmul_4_bits_zero_points", 4, true,
                               {0.8671875, -8.0390625, -2.40625, -0.34375, -2.7890625, 3.390625}));
  cases.push_back(matmul_nbits("matmul_8_bits", 8, false,
                               {-9.53125, -109.75, -190.46875, -24.296875, -143.765625, 14.265625}));
  const std::vector<float> scales = {.5F, 1, 2, .25F, 1, 4, .125F, 8};
  {
    // 4-bit weights -8 ... 7, in blocks of two columns.
    ModelBuilder m(21);
    m.input("x", {2, 4}).output("y").initializer("s", {4, 2}, scales);
    m.raw("w", {4, 4}, kInt4, "\x98\xba\xdc\xfe\x10\x32\x54\x76");
    m.raw("z", {4, 2}, kInt4, std::string("\xe1\x03\x2f\x70", 4));
    m.node("DequantizeLinear", {"w", "s", "z"}, {"d"}).integer("axis", 1).integer("block_size", 2);
    m.node("MatMul", {"x", "d"}, {"y"});
    cases.push_back({"dequantize_4_bits_blocked",
                     m.bytes(),
                     false,
                     {ramp({2, 4})},
                     {floats({2, 4}, {14.1875, 13.03125, -4.25, 5.75, 2.125, 2.875, 10.9375, 6.21875})}});
  }
  {
    ModelBuilder m(21);
    m.input("x", {4, 4}).output("y").initializer("s", {4, 2}, scales);
    m.initializer("eight", {}, {8});
    m.node("Mul", {"x", "eight"}, {"x8"});
    m.node("QuantizeLinear", {"x8", "s"}, {"q"}).integer("axis", 1).integer("block_size", 2);
    m.integer("output_dtype", kInt4);
    m.node("Cast", {"q"}, {"y"}).integer("to", kFloat);
    cases.push_back({"quantize_4_bits_blocked",
                     m.bytes(),
                     false,
                     {ramp({4, 4})},
                     {floats({4, 4}, {-8, -8, 3, 7, -3, 0, 7, -8, -1, 6, -2, -1, 7, 7, -1, 0})}});
  }
}

// x * 2 until it is 20 or more, at most five times; returns all computed values.
ModelBuilder doubling() {
  ModelBuilder body(17);
  body.input("i", {}, kInt64)
      .input("go", {}, kBool)
      .input("v", {1})
      .output("more")
      .output("w")
      .output("kept");
  body.initializer("two", {}, {2}).initializer("limit", {}, {20});
  body.node("Mul", {"v", "two"}, {"w"})
      .node("Less", {"w", "limit"}, {"more"})
      .node("Identity", {"w"}, {"kept"});
  return body;
}

void add_control_flow(std::vector<GoldenCase>& cases) {
  for (const bool condition : {true, false}) {
    ModelBuilder yes(17), no(17), m(17);
    yes.output("a").initializer("one", {1}, {1}).node("Add", {"x", "one"}, {"a"});
    no.output("b").initializer("two", {1}, {2}).node("Mul", {"x", "two"}, {"b"});
    m.input("c", {1}, kBool).input("x", {4}).output("y");
    m.node("If", {"c"}, {"y"}).graph("then_branch", yes).graph("else_branch", no);
    cases.push_back({condition ? "if_true" : "if_false",
                     m.bytes(),
                     false,
                     {tensor_of(DType::kBool, {1}, {condition ? 1.0 : 0.0}), floats({4}, {1, -2, 3, .5})},
                     {condition ? floats({4}, {2, -1, 4, 1.5}) : floats({4}, {2, -4, 6, 1})}});
  }
  for (const bool any : {true, false}) {
    ModelBuilder m(17);
    m.input("go", {}, kBool).input("x", {1}).integers("most", {5}).output("y").output("all");
    m.node("Loop", {"most", "go", "x"}, {"y", "all"}).graph("body", doubling());
    cases.push_back(
        {any ? "loop_until" : "loop_never",
         m.bytes(),
         true,
         {tensor_of(DType::kBool, {}, {any ? 1.0 : 0.0}), floats({1}, {3})},
         // Three iterations, or none; the rest is what further iterations would have computed.
         {floats({1}, {any ? 24.0 : 3.0}),
          floats({5, 1}, any ? std::vector<double>{6, 12, 24, 48, 48} : std::vector<double>{6, 6, 6, 6, 6}),
          integers({}, {any ? 3.0 : 0.0})}});
  }
  {
    // Running sums of columns, from the last to the first.
    ModelBuilder body(17), m(17);
    body.input("s", {2}).input("x", {2}).output("t").output("u");
    body.node("Add", {"s", "x"}, {"t"}).node("Identity", {"t"}, {"u"});
    m.input("s", {2}).input("x", {2, 3}).output("last").output("sums");
    m.node("Scan", {"s", "x"}, {"last", "sums"}).graph("body", body).integer("num_scan_inputs", 1);
    m.ints("scan_input_axes", {1}).ints("scan_input_directions", {1});
    m.ints("scan_output_axes", {-1}).ints("scan_output_directions", {1});
    cases.push_back({"scan_backwards",
                     m.bytes(),
                     false,
                     {floats({2}, {1, 2}), floats({2, 3}, {1, 2, 3, 4, 5, 6})},
                     {floats({2}, {7, 17}), floats({2, 3}, {7, 6, 4, 17, 13, 8})}});
  }
}

void add_bounded(std::vector<GoldenCase>& cases) {
  {
    ModelBuilder m(17);
    m.input("boxes", {1, 5, 4}).input("scores", {1, 2, 5}).output("y");
    m.integers("most", {3})
        .initializer("iou", {1}, {.5F})
        .initializer("least", {1}, {.3F})
        .integers("column", {2});
    m.node("NonMaxSuppression", {"boxes", "scores", "most", "iou", "least"}, {"s"});
    // As models use it: selects the scores and boxes of the rows.
    m.node("Gather", {"s", "column"}, {"y"}).integer("axis", 1);
    cases.push_back(
        {"non_max_suppression",
         m.bytes(),
         true,
         {floats({1, 5, 4}, {0, 0, 1, 1, 0, .1, 1, 1.1, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 20, 1, 21}),
          floats({1, 2, 5}, {.9, .75, .6, .95, .2, .1, .2, .8, .7, .5})},
         {integers({6, 1}, {3, 0, 2, 4, -1, -1}), integers({}, {4})}});
  }
  {
    ModelBuilder m(17);
    m.input("x", {2, 3}).output("y").node("NonZero", {"x"}, {"n"}).node("Transpose", {"n"}, {"y"});
    cases.push_back({"non_zero",
                     m.bytes(),
                     true,
                     {floats({2, 3}, {0, 5, 0, -1, 0, 2})},
                     {integers({6, 2}, {0, 1, 1, 0, 1, 2, -1, -1, -1, -1, -1, -1}), integers({}, {3})}});
  }
  {
    ModelBuilder m(17);
    m.input("x", {2, 4}).input("c", {3}, kBool).output("y");
    m.node("Compress", {"x", "c"}, {"z"}).integer("axis", 1).node("Neg", {"z"}, {"y"});
    cases.push_back({"compress",
                     m.bytes(),
                     true,
                     {floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), tensor_of(DType::kBool, {3}, {0, 1, 1})},
                     {floats({2, 3}, {-2, -3, -0., -6, -7, -0.}), integers({}, {2})}});
  }
  {
    ModelBuilder m(17);
    m.input("x", {6}).output("y").output("indices").output("inverse").output("counts");
    m.node("Unique", {"x"}, {"y", "indices", "inverse", "counts"});
    cases.push_back({"unique",
                     m.bytes(),
                     true,
                     {floats({6}, {2, 1, 1, 3, 4, 3})},
                     {floats({6}, {1, 2, 3, 4, 0, 0}), integers({6}, {1, 0, 3, 4, -1, -1}),
                      integers({6}, {1, 0, 0, 2, 3, 2}), integers({6}, {2, 1, 2, 1, 0, 0}), integers({}, {4}),
                      integers({}, {4}), integers({}, {4})}});
  }
}

}  // namespace

lower::Tensor tensor_of(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<int64_t>(i), ir::is_float(dtype)
                                            ? ir::scalar_float(dtype, values[i])
                                            : ir::scalar_int(dtype, static_cast<int64_t>(values[i])));
  }
  return tensor;
}

lower::Tensor ramp(std::vector<int64_t> shape, int64_t seed) {
  lower::Tensor tensor = lower::Tensor::zeros(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set(i, ir::scalar_float(DType::kF32, static_cast<double>((i * 7 + 3 * seed) % 23 - 11) / 8));
  return tensor;
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  add_attention(cases);
  add_images(cases);
  add_quantized(cases);
  add_control_flow(cases);
  add_bounded(cases);
  return cases;
}

}  // namespace tensorsmith::graph::testing

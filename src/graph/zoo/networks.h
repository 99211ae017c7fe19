// The architectures, by family. Each function adds the whole network to the builder, with layers
// and sizes as in its paper or, if that is the version in use, as in torchvision or Hugging Face's
// transformers.
#pragma once

#include <vector>

#include "graph/zoo/builder.h"

namespace tensorsmith::graph::zoo {

// He et al. 2016; Xie et al. 2017 (groups of width_per_group / 64 of the usual width); Zagoruyko and
// Komodakis 2016.
struct ResNet {
  std::vector<int64_t> blocks;  // of the four stages
  bool bottleneck = true;
  int64_t groups = 1;
  int64_t width_per_group = 64;
};
void add_resnet(NetworkBuilder& b, int64_t batch, int64_t size, const ResNet& net);
// Tran et al. 2018, R3D-18: 16 frames, 400 classes.
void add_resnet3d18(NetworkBuilder& b, int64_t batch, int64_t size);

void add_mobilenet_v2(NetworkBuilder& b, int64_t batch, int64_t size);              // Sandler et al. 2018
void add_mobilenet_v3(NetworkBuilder& b, int64_t batch, int64_t size, bool large);  // Howard et al. 2019
void add_mnasnet(NetworkBuilder& b, int64_t batch, int64_t size);  // Tan et al. 2019, depth multiplier 1
// Tan and Le 2019; widths and depths relative to B0.
void add_efficientnet(NetworkBuilder& b, int64_t batch, int64_t size, double width, double depth);

void add_googlenet(NetworkBuilder& b, int64_t batch,
                   int64_t size);  // Szegedy et al. 2015, no auxiliary heads
void add_inception_v3(NetworkBuilder& b, int64_t batch,
                      int64_t size);  // Szegedy et al. 2016, no auxiliary head
void add_densenet121(NetworkBuilder& b, int64_t batch, int64_t size);  // Huang et al. 2017
void add_alexnet(NetworkBuilder& b, int64_t batch, int64_t size);      // Krizhevsky 2014
void add_vgg16(NetworkBuilder& b, int64_t batch, int64_t size);        // Simonyan and Zisserman 2015
void add_squeezenet(NetworkBuilder& b, int64_t batch, int64_t size);   // Iandola et al. 2016, version 1.1
// Radford et al. 2016: the generator, with kernels of 4; size is a multiple of 16.
void add_dcgan(NetworkBuilder& b, int64_t batch, int64_t size);

// Devlin et al. 2019, with the pooler; heads of 64.
void add_bert(NetworkBuilder& b, int64_t batch, int64_t sequence, int64_t layers, int64_t width);
void add_mobilebert(NetworkBuilder& b, int64_t batch, int64_t sequence);  // Sun et al. 2020
void add_gpt2(NetworkBuilder& b, int64_t batch, int64_t sequence);        // Radford et al. 2019, 124M
// Touvron et al. 2023; heads of width / heads, tied embeddings.
struct Llama {
  int64_t layers = 0, width = 0, heads = 0, inner = 0;
};
void add_llama(NetworkBuilder& b, int64_t batch, int64_t sequence, const Llama& net);
// Dosovitskiy et al. 2021: B/16 for a given image size, which determines the position table's size.
void add_vit_b16(NetworkBuilder& b, int64_t batch, int64_t size);

}  // namespace tensorsmith::graph::zoo

#include "bench/models.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace ddl::bench {

namespace {

// A list of tensors that grows layer by layer.
struct Tensors {
  std::vector<std::uint64_t> elements;
  std::vector<double> multiplications;
};

class Layers {
 public:
  /// To how many places of a sample, such as pixels or tokens, the matrices that follow are applied.
  void at_places(std::uint64_t places) { places_ = static_cast<double>(places); }
  void tensor(std::uint64_t elements, double uses = 0) {
    tensors_.elements.push_back(elements);
    tensors_.multiplications.push_back(static_cast<double>(elements) * uses);
  }
  // Scale and shift: BatchNorm and LayerNorm alike.
  void norm(std::uint64_t width) {
    tensor(width);
    tensor(width);
  }
  void dense(std::uint64_t in, std::uint64_t out) {
    tensor(in * out, places_);
    tensor(out);
  }
  void convolution_and_norm(std::uint64_t in, std::uint64_t out, std::uint64_t side) {
    tensor(out * in * side * side, places_);
    norm(out);
  }
  Tensors take() { return std::move(tensors_); }

 private:
  Tensors tensors_;
  double places_ = 1;
};

// He et al., "Deep Residual Learning for Image Recognition", 2015: bottleneck blocks in four stages. The second
// convolution of a stage halves the image's sides, as in torchvision's.
Tensors resnet(const std::initializer_list<int>& blocks_of_stages) {
  Layers layers;
  layers.at_places(112 * 112);
  layers.convolution_and_norm(3, 64, 7);
  std::uint64_t in = 64;
  std::uint64_t side = 56;
  std::uint64_t width = 64;
  for (const int blocks : blocks_of_stages) {
    for (int block = 0; block < blocks; ++block) {
      layers.at_places(side * side);
      layers.convolution_and_norm(in, width, 1);
      if (block == 0 && width > 64) side /= 2;
      layers.at_places(side * side);
      layers.convolution_and_norm(width, width, 3);
      layers.convolution_and_norm(width, 4 * width, 1);
      if (block == 0) layers.convolution_and_norm(in, 4 * width, 1);  // the shortcut changes its width there
      in = 4 * width;
    }
    width *= 2;
  }
  layers.at_places(1);
  layers.dense(in, 1000);
  return layers.take();
}

// Simonyan and Zisserman, "Very Deep Convolutional Networks", 2014: configuration D.
Tensors vgg16() {
  Layers layers;
  std::uint64_t in = 3;
  std::uint64_t side = 224;
  for (const int convolutions : {2, 2, 3, 3, 3}) {
    const std::uint64_t out = in == 3 ? 64 : std::min<std::uint64_t>(2 * in, 512);
    layers.at_places(side * side);
    for (int i = 0; i < convolutions; ++i) {
      layers.dense(in * 3 * 3, out);
      in = out;
    }
    side /= 2;
  }
  layers.at_places(1);
  layers.dense(in * 7 * 7, 4096);
  layers.dense(4096, 4096);
  layers.dense(4096, 1000);
  return layers.take();
}

// Devlin et al., "BERT", 2018: the encoder and its pooler.
Tensors bert_base() {
  constexpr std::uint64_t kHidden = 768;
  Layers layers;
  for (const std::uint64_t rows : {30522, 512, 2}) layers.tensor(rows * kHidden);
  layers.norm(kHidden);
  layers.at_places(kTokensOfBert);
  for (int layer = 0; layer < 12; ++layer) {
    for (int matrix = 0; matrix < 4; ++matrix) layers.dense(kHidden, kHidden);  // query, key, value, output
    layers.norm(kHidden);
    layers.dense(kHidden, 4 * kHidden);
    layers.dense(4 * kHidden, kHidden);
    layers.norm(kHidden);
  }
  layers.at_places(1);  // the first token's
  layers.dense(kHidden, kHidden);
  return layers.take();
}

// Radford et al., "Language Models are Unsupervised Multitask Learners", 2019: the smallest; its output shares the
// embedding's weights.
Tensors gpt2_small() {
  constexpr std::uint64_t kHidden = 768;
  Layers layers;
  layers.tensor(50257 * kHidden, kTokensOfGpt2);
  layers.tensor(kTokensOfGpt2 * kHidden);
  layers.at_places(kTokensOfGpt2);
  for (int layer = 0; layer < 12; ++layer) {
    layers.norm(kHidden);
    layers.dense(kHidden, 3 * kHidden);
    layers.dense(kHidden, kHidden);
    layers.norm(kHidden);
    layers.dense(kHidden, 4 * kHidden);
    layers.dense(4 * kHidden, kHidden);
  }
  layers.norm(kHidden);
  return layers.take();
}

Tensors described(Model model) {
  switch (model) {
    case Model::kResnet50: return resnet({3, 4, 6, 3});
    case Model::kResnet101: return resnet({3, 4, 23, 3});
    case Model::kVgg16: return vgg16();
    case Model::kBertBase: return bert_base();
    case Model::kGpt2Small: return gpt2_small();
  }
  return {};
}

}  // namespace

const std::vector<Model>& all_models() {
  using enum Model;
  static const std::vector<Model> all = {kResnet50, kResnet101, kVgg16, kBertBase, kGpt2Small};
  return all;
}

const char* name_of(Model model) {
  switch (model) {
    case Model::kResnet50: return "resnet50";
    case Model::kResnet101: return "resnet101";
    case Model::kVgg16: return "vgg16";
    case Model::kBertBase: return "bert-base";
    case Model::kGpt2Small: return "gpt2-small";
  }
  return "";
}

std::optional<Model> parse_model(std::string_view name) {
  for (const Model model : all_models()) {
    if (name == name_of(model)) return model;
  }
  return std::nullopt;
}

std::vector<std::uint64_t> tensors_of(Model model) { return described(model).elements; }

std::vector<double> multiplications_of(Model model) { return described(model).multiplications; }

std::vector<std::uint64_t> tensors_backward(Model model) {
  const std::vector<std::uint64_t> forward = tensors_of(model);
  return {forward.rbegin(), forward.rend()};
}

std::vector<Bucket> buckets_of(const std::vector<std::uint64_t>& tensors, std::uint64_t max_bytes) {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool fits = !buckets.empty() && (buckets.back().elements + tensors[i]) * sizeof(float) <= max_bytes;
    if (!fits) buckets.push_back({i, 0, 0});
    buckets.back().count += 1;
    buckets.back().elements += tensors[i];
  }
  return buckets;
}

}  // namespace ddl::bench

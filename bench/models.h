// The gradients of well-known models, generated from their architectures, and the buckets into which training packs
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ddl::bench {

enum class Model { kResnet50, kResnet101, kVgg16, kBertBase, kGpt2Small };

const std::vector<Model>& all_models();
/// "bert-base", and back.
const char* name_of(Model model);
std::optional<Model> parse_model(std::string_view name);

/// The number of elements of each gradient, in the order of the model's layers. BatchNorm and LayerNorm have two
/// tensors.
std::vector<std::uint64_t> tensors_of(Model model);
/// The same in the order in which training computes them: the last layer first.
std::vector<std::uint64_t> tensors_backward(Model model);

/// The multiplications of a forward pass of one sample that each of these tensors takes part in, of convolutions and
/// products of matrices: an image of 224 by 224 pixels, or a sequence of as many tokens.
std::vector<double> multiplications_of(Model model);
inline constexpr int kTokensOfBert = 128;
inline constexpr int kTokensOfGpt2 = 1024;

/// A run of gradients that are reduced by one call.
struct Bucket {
  std::size_t first = 0;
  std::size_t count = 0;
  std::uint64_t elements = 0;
};

/// Fills buckets of at most max_bytes, of f32, in the order given; a larger gradient has a bucket of its own.
std::vector<Bucket> buckets_of(const std::vector<std::uint64_t>& tensors, std::uint64_t max_bytes);

}  // namespace ddl::bench

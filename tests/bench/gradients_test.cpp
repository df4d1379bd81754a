#include "bench/workload.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/catch.h"

namespace ddl::bench {
namespace {

std::uint64_t sum_of(const std::vector<std::uint64_t>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::uint64_t{0});
}

TEST_CASE("models have as many gradients and parameters as their authors say") {
  struct Known {
    Model model;
    std::size_t tensors;
    std::uint64_t parameters;
  };
  for (const Known& known :
       {Known{Model::kResnet50, 161, 25'557'032}, Known{Model::kResnet101, 314, 44'549'160},
        Known{Model::kVgg16, 32, 138'357'544}, Known{Model::kBertBase, 199, 109'482'240},
        Known{Model::kGpt2Small, 148, 124'439'808}}) {
    INFO(name_of(known.model));
    const auto tensors = tensors_of(known.model);
    CHECK(tensors.size() == known.tensors);
    CHECK(sum_of(tensors) == known.parameters);
    CHECK(parse_model(name_of(known.model)) == known.model);
    CHECK(buckets_of(tensors, kInOneBuffer).size() == 1);
  }
  CHECK(!parse_model("resnet"));
}

TEST_CASE("models have as many multiplications as torchvision says, and BERT as its matrices are applied") {
  const auto sum = [](Model model) {
    const auto all = multiplications_of(model);
    CHECK(all.size() == tensors_of(model).size());
    return std::accumulate(all.begin(), all.end(), 0.0) / 1e9;
  };
  CHECK(std::abs(sum(Model::kResnet50) - 4.09) < 0.005);
  CHECK(std::abs(sum(Model::kResnet101) - 7.80) < 0.005);
  CHECK(std::abs(sum(Model::kVgg16) - 15.47) < 0.005);
  // 12 layers of 12 * 768 * 768 weights for each of 128 tokens, and the pooler for one.
  CHECK(sum(Model::kBertBase) == (12 * 12 * 768.0 * 768.0 * 128 + 768.0 * 768.0) / 1e9);
}

TEST_CASE("most gradients of ResNet-50 are small, and few hold most of its bytes") {
  const auto tensors = tensors_of(Model::kResnet50);
  const auto count_up_to = [&](std::uint64_t max_bytes) {
    return std::count_if(tensors.begin(), tensors.end(), [max_bytes](std::uint64_t elements) {
      return elements * sizeof(float) <= max_bytes;
    });
  };
  CHECK(count_up_to(4096) == 99);
  CHECK(static_cast<std::ptrdiff_t>(tensors.size()) - count_up_to((1 << 20) - 1) == 29);
}

TEST_CASE("the largest gradient of VGG16 is its first dense layer") {
  const auto tensors = tensors_of(Model::kVgg16);
  CHECK(*std::max_element(tensors.begin(), tensors.end()) == 102'760'448);
}

TEST_CASE("training computes the last layer's gradients first") {
  const auto forward = tensors_of(Model::kVgg16);
  const auto backward = tensors_backward(Model::kVgg16);
  CHECK(backward.front() == 1000);
  CHECK(std::equal(forward.rbegin(), forward.rend(), backward.begin(), backward.end()));
}

TEST_CASE("buckets are filled in order and up to their size") {
  const auto buckets = buckets_of({2, 2, 1, 7, 1, 1}, 4 * sizeof(float));
  REQUIRE(buckets.size() == 4);
  CHECK(buckets[0].count == 2);
  CHECK(buckets[0].elements == 4);
  CHECK(buckets[1].first == 2);
  CHECK(buckets[1].elements == 1);
  CHECK(buckets[2].count == 1);  // too large for any: alone
  CHECK(buckets[2].elements == 7);
  CHECK(buckets[3].first == 4);
  CHECK(buckets[3].count == 2);
  CHECK(buckets_of({}, 16).empty());
}

TEST_CASE("buckets hold every gradient once") {
  for (const Model model : all_models()) {
    const auto tensors = tensors_backward(model);
    for (const std::uint64_t max_bytes : {std::uint64_t{4}, std::uint64_t{25} << 20}) {
      std::size_t next = 0;
      std::uint64_t elements = 0;
      for (const Bucket& bucket : buckets_of(tensors, max_bytes)) {
        CHECK(bucket.first == next);
        CHECK((bucket.count == 1 || bucket.elements * sizeof(float) <= max_bytes));
        next += bucket.count;
        elements += bucket.elements;
      }
      CHECK(next == tensors.size());
      CHECK(elements == sum_of(tensors));
    }
  }
}

}  // namespace
}  // namespace ddl::bench

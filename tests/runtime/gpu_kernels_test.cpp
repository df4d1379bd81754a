// libddl's kernels: their text, compiled as C++, against what libddl does on the host.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ddl/float8.hpp"
#include "ddl/half.hpp"
#include "runtime/src/backend/nccl/fused_parts.h"
#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/device/gpu_kernels.h"
#include "stand_ins/kernels_as_cpp.h"
#include "support/catch.h"

namespace {

/// The bits of a 16-bit float.
template <class T>
std::uint16_t bits_of(T value) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace

TEST_CASE("the kernels read every 16-bit float as libddl does, and write it back") {
  int wrong = 0;
  for (unsigned i = 0; i <= 0xFFFF; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    ddl::float16 half;
    ddl::bfloat16 brain;
    std::memcpy(static_cast<void*>(&half), &bits, sizeof bits);
    std::memcpy(static_cast<void*>(&brain), &bits, sizeof bits);
    const auto half_value = static_cast<float>(half), brain_value = static_cast<float>(brain);
    wrong += is_same(ddl_from_float16(bits), half_value) ? 0 : 1;
    wrong += is_same(ddl_from_bfloat16(bits), brain_value) ? 0 : 1;
    if (!std::isnan(half_value)) wrong += ddl_to_float16(half_value) == bits ? 0 : 1;
    if (!std::isnan(brain_value)) wrong += ddl_to_bfloat16(brain_value) == bits ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the kernels round to 16-bit floats as libddl does") {
  std::mt19937 random(1);
  int wrong = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    const std::uint32_t bits = random();
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) continue;
    // Half of them near the range of float16, where there are ties.
    if (i % 2 == 0)
      value = std::ldexp(static_cast<float>(random() % 8192), static_cast<int>(random() % 44) - 28);
    wrong += ddl_to_float16(value) == bits_of(ddl::float16(value)) ? 0 : 1;
    wrong += ddl_to_bfloat16(value) == bits_of(ddl::bfloat16(value)) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

namespace {

/// Elements of the kernels and of libddl.
template <class OfKernels, class Float8>
int wrong_float8(std::mt19937& random) {
  int wrong = 0;
  for (unsigned i = 0; i <= 0xFF; ++i) {
    Float8 element;
    element.bits = static_cast<std::uint8_t>(i);
    wrong += is_same(ddl_from_float8(OfKernels{element.bits}), static_cast<float>(element)) ? 0 : 1;
  }
  for (int i = 0; i < 200'000; ++i) {
    // Half of them near the range of the type, where there are ties.
    const float value = i % 2 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                                   : std::ldexp(static_cast<float>(random() % 256) - 128,
                                                static_cast<int>(random() % 36) - 24);
    OfKernels element{};
    ddl_to_float8(element, value);
    wrong += element.bits == Float8(value).bits ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("the kernels read and write 8-bit floats as libddl does") {
  std::mt19937 random(4);
  CHECK(wrong_float8<DdlFloat8E4m3fn, ddl::float8_e4m3fn>(random) == 0);
  CHECK(wrong_float8<DdlFloat8E5m2, ddl::float8_e5m2>(random) == 0);
  CHECK(wrong_float8<DdlFloat8E4m3fnuz, ddl::float8_e4m3fnuz>(random) == 0);
  CHECK(wrong_float8<DdlFloat8E5m2fnuz, ddl::float8_e5m2fnuz>(random) == 0);
}

namespace {

using ddl::runtime::CombinationArguments;
using ddl::runtime::CopiesArguments;
using ddl::runtime::ScalingArguments;

static_assert(sizeof(DdlCombination) == sizeof(CombinationArguments) &&
              offsetof(DdlCombination, count) == offsetof(CombinationArguments, count) &&
              offsetof(DdlCombination, has_packs) == offsetof(CombinationArguments, has_packs) &&
              offsetof(DdlCombination, postscale) == offsetof(CombinationArguments, postscale));

void (*combining_function(ddl_dtype dtype))(DdlCombination) {
  switch (dtype) {
    case DDL_INT8: return ddl_combine_int8;
    case DDL_INT16: return ddl_combine_int16;
    case DDL_INT32: return ddl_combine_int32;
    case DDL_INT64: return ddl_combine_int64;
    case DDL_UINT8: return ddl_combine_uint8;
    case DDL_UINT16: return ddl_combine_uint16;
    case DDL_UINT32: return ddl_combine_uint32;
    case DDL_UINT64: return ddl_combine_uint64;
    case DDL_FLOAT8_E4M3FN: return ddl_combine_float8_e4m3fn;
    case DDL_FLOAT8_E5M2: return ddl_combine_float8_e5m2;
    case DDL_FLOAT8_E4M3FNUZ: return ddl_combine_float8_e4m3fnuz;
    case DDL_FLOAT8_E5M2FNUZ: return ddl_combine_float8_e5m2fnuz;
    case DDL_FLOAT16: return ddl_combine_float16;
    case DDL_BFLOAT16: return ddl_combine_bfloat16;
    case DDL_FLOAT32: return ddl_combine_float32;
    case DDL_FLOAT64: return ddl_combine_float64;
    default: return ddl_combine_bool;
  }
}

/// Bits of all kinds: small numbers, whose sums are of interest, and any others, with NaNs and infinities.
std::vector<std::byte> some_elements(ddl_dtype dtype, std::size_t count, std::mt19937& random) {
  const std::size_t size = ddl_dtype_size(dtype);
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = random() | std::uint64_t{random()} << 32;
    if (dtype == DDL_FLOAT32 && i % 3 != 0)
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(bits % 1000) / 7);
    if (dtype == DDL_FLOAT64 && i % 3 != 0)
      bits = std::bit_cast<std::uint64_t>(static_cast<double>(bits % 1000) / 7);
    if (i % 11 == 0) bits = 0;
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

}  // namespace

TEST_CASE("the kernels combine elements of every type to the bits that the host gives") {
  std::mt19937 random(2);
  constexpr std::size_t kCount = 143;
  const std::pair<double, double> scales[] = {{1, 1}, {0.37, 1}, {1, -3.3}, {1e9, 0.25}};
  for (const ddl_dtype dtype : ddl::runtime::kDtypes) {
    for (int op = DDL_SUM; op <= DDL_LOGICAL_XOR; ++op) {
      if (!ddl::runtime::op_applies(static_cast<ddl_op>(op), dtype)) continue;
      for (const std::size_t ranks : {1u, 2u, 3u, 5u, 64u}) {
        for (const auto& [prescale, postscale] : scales) {
          if (dtype == DDL_BOOL && (prescale != 1 || postscale != 1)) continue;
          CAPTURE(dtype, op, ranks, prescale, postscale);
          const std::size_t bytes = kCount * ddl_dtype_size(dtype);
          std::vector<std::vector<std::byte>> inputs;
          std::vector<const std::byte*> pointers;
          for (std::size_t rank = 0; rank < ranks; ++rank)
            inputs.push_back(some_elements(dtype, kCount, random));
          for (const auto& input : inputs) pointers.push_back(input.data());
          std::vector<std::byte> expected(bytes), result(bytes), second(bytes);
          ddl::runtime::reduce_chunk({dtype, static_cast<ddl_op>(op), prescale, postscale}, pointers,
                                     expected.data(), kCount);
          DdlCombination call{};
          for (std::size_t rank = 0; rank < ranks; ++rank) call.in[rank] = pointers[rank];
          call.out[0] = result.data();
          call.out[1] = second.data();
          call.count = kCount;
          call.ins = static_cast<unsigned>(ranks);
          call.outs = 2;
          call.op = static_cast<unsigned>(op);
          // With packs and a rest, and one by one.
          call.has_packs = ranks % 2;
          call.prescale = prescale;
          call.postscale = postscale;
          gridDim.x = 1;
          blockDim.x = 2;
          blockIdx.x = 0;
          for (threadIdx.x = 0; threadIdx.x < 2; ++threadIdx.x) combining_function(dtype)(call);
          CHECK(result == expected);
          CHECK(second == expected);
        }
      }
    }
  }
}

namespace {

void (*scaling_function(ddl_dtype dtype))(DdlScaling) {
  switch (dtype) {
    case DDL_FLOAT8_E4M3FN: return ddl_scale_float8_e4m3fn;
    case DDL_FLOAT8_E5M2: return ddl_scale_float8_e5m2;
    case DDL_FLOAT8_E4M3FNUZ: return ddl_scale_float8_e4m3fnuz;
    case DDL_FLOAT8_E5M2FNUZ: return ddl_scale_float8_e5m2fnuz;
    case DDL_FLOAT16: return ddl_scale_float16;
    case DDL_BFLOAT16: return ddl_scale_bfloat16;
    case DDL_FLOAT32: return ddl_scale_float32;
    default: return ddl_scale_float64;
  }
}

}  // namespace

TEST_CASE("the kernels divide and scale floats to the bits that the host gives") {
  static_assert(sizeof(DdlScaling) == sizeof(ScalingArguments) &&
                offsetof(DdlScaling, count) == offsetof(ScalingArguments, count) &&
                offsetof(DdlScaling, factor) == offsetof(ScalingArguments, factor) &&
                offsetof(DdlScaling, has_packs) == offsetof(ScalingArguments, has_packs));
  std::mt19937 random(5);
  constexpr std::size_t kCount = 143;
  constexpr int kRanks = 3;
  for (const ddl_dtype dtype : ddl::runtime::kDtypes) {
    if (!ddl::runtime::scaling_kernel(dtype)) continue;
    const std::size_t size = ddl_dtype_size(dtype);
    for (const double factor : {1.0, -0.37}) {
      const ddl::runtime::Reduction average{dtype, DDL_AVERAGE, 1, factor};
      const std::vector<std::byte> input = some_elements(dtype, kCount, random);
      const std::byte* const pointer = input.data();
      std::vector<std::byte> partials(kCount * sizeof(double)), expected(kCount * size);
      ddl::runtime::reduce_partials(average, {&pointer, 1}, partials.data(), kCount);
      ddl::runtime::finish_chunk(average, partials.data(), expected.data(), kCount, kRanks);
      // With packs and a rest; and one by one, after an element in place.
      for (const unsigned has_packs : {1u, 0u}) {
        CAPTURE(dtype, factor, has_packs);
        alignas(ddl::runtime::kPackBytes) std::byte out[(kCount + 1) * sizeof(double)];
        std::byte* const begin = has_packs == 1 ? out : out + size;
        if (has_packs == 0) std::memcpy(begin, input.data(), input.size());
        alignas(ddl::runtime::kPackBytes) std::byte in[kCount * sizeof(double)];
        std::memcpy(in, input.data(), input.size());
        DdlScaling call{has_packs == 1 ? in : begin, begin, kCount, kRanks, factor, has_packs};
        gridDim.x = 1;
        blockDim.x = 2;
        blockIdx.x = 0;
        for (threadIdx.x = 0; threadIdx.x < 2; ++threadIdx.x) scaling_function(dtype)(call);
        CHECK(std::memcmp(begin, expected.data(), expected.size()) == 0);
      }
    }
  }
}

TEST_CASE("the kernel for copies copies everything, at any address, and nothing else") {
  static_assert(sizeof(DdlCopies) == sizeof(CopiesArguments) &&
                offsetof(DdlCopies, bytes) == offsetof(CopiesArguments, bytes) &&
                offsetof(DdlCopies, chunks) == offsetof(CopiesArguments, chunks));
  std::mt19937 random(3);
  std::vector<std::byte> source(1 << 20), target(1 << 20), expected(1 << 20);
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  CopiesArguments copies{};
  std::size_t at = 0;
  for (const std::size_t bytes : {1u, 15u, 16u, 17u, 32767u, 32768u, 32769u, 100000u, 3u}) {
    const std::size_t from = random() % 500000, shift = random() % 2 == 0 ? 0 : random() % 16;
    at = (at + 15) / 16 * 16 + shift;
    copies.add(source.data() + from - from % 16 + shift, target.data() + at, bytes);
    std::memcpy(expected.data() + at, copies.from[copies.copies - 1], bytes);
    at += bytes;
  }
  DdlCopies call;
  std::memcpy(&call, &copies, sizeof call);
  gridDim.x = 3;
  blockDim.x = 4;
  for (blockIdx.x = 0; blockIdx.x < 3; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < 4; ++threadIdx.x) ddl_copies(call);
  }
  CHECK(target == expected);
}

TEST_CASE("small tensors of a batch go together, at addresses of which a kernel takes 16 bytes at once") {
  using ddl::runtime::FusionPlan;
  using ddl::runtime::kMostFusedBytes;
  using ddl::runtime::Part;
  const auto part = [](std::uint64_t count) { return Part{nullptr, nullptr, count}; };
  const std::vector<Part> parts{part(3), part(kMostFusedBytes), part(0), part(4), part(kMostFusedBytes / 2)};
  const FusionPlan plan = FusionPlan::of(parts, 2);
  CHECK(plan.fused == std::vector<std::size_t>{0, 3, 4});
  CHECK(plan.offset == std::vector<std::size_t>{0, 16, 32});
  CHECK(plan.bytes == 32 + kMostFusedBytes);
  // One alone needs no copy.
  CHECK(FusionPlan::of(std::vector<Part>{part(3), part(kMostFusedBytes)}, 4).bytes == 0);
}

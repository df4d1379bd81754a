#include "runtime/src/collective/reduce_kernel.h"

#include <cstring>
#include <random>
#include <vector>

#include "runtime/src/collective/element.h"
#include "runtime/src/collective/instruction_set.h"
#include "support/catch.h"

using namespace ddl::runtime;

namespace {

using Bytes = std::vector<std::byte>;

/// Restores the choice for the tests that follow.
class KeepInstructionSet {
 public:
  ~KeepInstructionSet() { choose_instruction_set(before_); }

 private:
  InstructionSet before_ = instruction_set();
};

/// Any bits: of floats some are infinite, some NaN of every kind, some tiny.
Bytes random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  // Exponents of all ones are rare otherwise.
  for (std::size_t i = 7; i < size; i += 61) bytes[i] = std::byte{0x7F};
  return bytes;
}

Bytes reduced(ddl_dtype dtype, ddl_op op, const std::vector<Bytes>& inputs, std::size_t count) {
  std::vector<const std::byte*> pointers;
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  Bytes out(count * element_size(dtype));
  reduce_chunk({dtype, op}, pointers, out.data(), count);
  return out;
}

template <class Check>
void for_each_type_and_op(Check check) {
  for (ddl_dtype dtype = 0; element_size(dtype) != 0; ++dtype) {
    for (ddl_op op = 0; op_name_or_null(op) != nullptr; ++op) {
      if (op_applies(op, dtype)) check(dtype, op);
    }
  }
}

}  // namespace

TEST_CASE("every instruction set gives the same bits, for every type and operation") {
  const KeepInstructionSet keep;
  constexpr std::size_t kCount = 2500;  // more than a block, and no multiple of a vector
  const std::vector<Bytes> inputs{random_bytes(kCount * 8, 1), random_bytes(kCount * 8, 2),
                                  random_bytes(kCount * 8, 3)};
  for_each_type_and_op([&](ddl_dtype dtype, ddl_op op) {
    for (std::size_t ranks = 1; ranks <= inputs.size(); ++ranks) {
      const std::vector<Bytes> some(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(ranks));
      choose_instruction_set(InstructionSet::kBaseline);
      const Bytes wanted = reduced(dtype, op, some, kCount);
      for (const InstructionSet set : instruction_sets()) {
        choose_instruction_set(set);
        CAPTURE(dtype, op, ranks, static_cast<int>(set));
        CHECK(reduced(dtype, op, some, kCount) == wanted);
      }
    }
  });
}

TEST_CASE("how a chunk is cut does not show in the bits, nor does reducing it in place") {
  constexpr std::size_t kCount = 1500;
  const std::vector<Bytes> inputs{random_bytes(kCount * 8, 4), random_bytes(kCount * 8, 5),
                                  random_bytes(kCount * 8, 6)};
  for_each_type_and_op([&](ddl_dtype dtype, ddl_op op) {
    CAPTURE(dtype, op);
    const std::size_t size = element_size(dtype);
    const Bytes whole = reduced(dtype, op, inputs, kCount);
    Bytes pieces(whole.size());
    for (std::size_t first = 0, length = 1; first < kCount; first += length, length = 2 * length + 1) {
      length = std::min(length, kCount - first);
      std::vector<const std::byte*> parts;
      for (const Bytes& input : inputs) parts.push_back(input.data() + first * size);
      reduce_chunk({dtype, op}, parts, pieces.data() + first * size, length);
    }
    CHECK(pieces == whole);
    for (const std::size_t place : {0u, 1u}) {
      Bytes both = inputs[place];
      std::vector<const std::byte*> parts{inputs[0].data(), inputs[1].data(), inputs[2].data()};
      parts[place] = both.data();
      reduce_chunk({dtype, op}, parts, both.data(), kCount);
      both.resize(whole.size());
      CHECK(both == whole);
    }
  });
}

TEST_CASE("partial results of some ranks come to the whole's result") {
  // Integers, whose order does not matter.
  constexpr std::size_t kCount = 700;
  const std::vector<Bytes> inputs{random_bytes(kCount * 8, 7), random_bytes(kCount * 8, 8),
                                  random_bytes(kCount * 8, 9)};
  for_each_type_and_op([&](ddl_dtype dtype, ddl_op op) {
    if (is_floating(dtype)) return;
    CAPTURE(dtype, op);
    const ddl_dtype partial = partial_dtype(dtype, op);
    const std::size_t bytes = kCount * element_size(partial);
    Bytes left(bytes), right(bytes), both(bytes);
    const std::vector<const std::byte*> two{inputs[0].data(), inputs[1].data()}, one{inputs[2].data()};
    reduce_partials({dtype, op}, two, left.data(), kCount);
    reduce_partials({dtype, op}, one, right.data(), kCount);
    const std::vector<const std::byte*> sides{left.data(), right.data()};
    reduce_chunk({partial, op == DDL_AVERAGE ? DDL_SUM : op}, sides, both.data(), kCount);
    Bytes out(kCount * element_size(dtype));
    finish_chunk({dtype, op}, both.data(), out.data(), kCount, 3);
    CHECK(out == reduced(dtype, op, inputs, kCount));
  });
}

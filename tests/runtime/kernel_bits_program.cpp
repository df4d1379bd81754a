// Prints the results of the kernels for fixed inputs, a line for each type and operation. Fails if two instruction
// sets of this processor differ; two architectures are compared by their output. It uses neither Catch2 nor another
// library of the project, because it is also built for aarch64, where only the compiler is available
// (kernels_on_aarch64).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/src/collective/instruction_set.h"

using ddl::runtime::Inputs;
using ddl::runtime::Kernels;

namespace {

constexpr std::size_t kRanks = 3;
constexpr std::size_t kElements = 1200;  // of at most 8 bytes, in every input

using Bytes = std::vector<std::byte>;

/// Random bits; some floats have exponents of all ones.
Bytes input(std::uint64_t seed) {
  Bytes bytes(kElements * 8);
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = i % 61 == 7 ? std::byte{0x7F} : static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

/// FNV-1a.
class Digest {
 public:
  void add(const Bytes& bytes) {
    for (const std::byte byte : bytes) value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

/// All functions of a table for one type and operation.
std::uint64_t digest(const Kernels& kernels, int type, int op) {
  static const std::vector<Bytes> kInputs{input(1), input(2), input(3)};
  const std::byte* const of_rank[kRanks] = {kInputs[0].data(), kInputs[1].data(), kInputs[2].data()};
  Digest digest;
  for (const std::size_t count : {std::size_t{1}, std::size_t{45}, kElements - 5}) {
    for (std::size_t ranks = 1; ranks <= kRanks; ++ranks) {
      const Inputs inputs{of_rank, ranks, 5};
      Bytes partials(kElements * 8), out(kElements * 8), more(kElements * 8);
      kernels.partials[type][op](inputs, partials.data(), count);
      digest.add(partials);
      if (kernels.reduce[type][op] != nullptr) kernels.reduce[type][op](inputs, out.data(), count);
      digest.add(out);
      for (const double factor : {1.0, 0.3, -1e20}) {
        const bool is_average = op == DDL_AVERAGE;
        if (is_average) kernels.average[type](partials.data(), out.data(), count, 3, factor);
        if (!is_average && kernels.finish[type] != nullptr)
          kernels.finish[type](partials.data(), out.data(), count, factor);
        digest.add(out);
        if (kernels.scale[type] != nullptr) kernels.scale[type](of_rank[0], more.data(), count, factor);
        digest.add(more);
      }
      kernels.add_input[type][op](of_rank[1], partials.data(), count);
      digest.add(partials);
    }
  }
  return digest.value();
}

}  // namespace

namespace {

/// Whether a streaming copy stores every byte of an odd piece at odd addresses, and no other.
bool streams_all_bytes(const Kernels& kernels) {
  constexpr std::size_t kBytes = 1000, kFrom = 3, kTo = 5;
  std::vector<unsigned char> from(kBytes + kFrom), to(kBytes + 2 * kTo, 0xEE), wanted = to;
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7);
  for (std::size_t i = 0; i < kBytes; ++i) wanted[kTo + i] = from[kFrom + i];
  kernels.stream(from.data() + kFrom, to.data() + kTo, kBytes);
  return to == wanted;
}

}  // namespace

int main() {
  int status = 0;
  for (const auto set : ddl::runtime::instruction_sets()) {
    if (streams_all_bytes(ddl::runtime::kernels_of(set))) continue;
    std::fprintf(stderr, "instruction set %d: a streaming copy is wrong\n", static_cast<int>(set));
    status = 1;
  }
  for (int type = 0; type < Kernels::kTypes; ++type) {
    for (int op = 0; op < Kernels::kOps; ++op) {
      const Kernels& baseline = ddl::runtime::kBaselineKernels;
      if (baseline.partials[type][op] == nullptr) continue;
      const std::uint64_t wanted = digest(baseline, type, op);
      std::printf("type %2d, op %2d: %016llx\n", type, op, static_cast<unsigned long long>(wanted));
      for (const auto set : ddl::runtime::instruction_sets()) {
        if (digest(ddl::runtime::kernels_of(set), type, op) == wanted) continue;
        std::fprintf(stderr, "type %d, op %d: instruction set %d gives other bits than the baseline\n", type,
                     op, static_cast<int>(set));
        status = 1;
      }
    }
  }
  return status;
}

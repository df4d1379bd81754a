#include "runtime/src/collective/reduce_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "runtime/src/collective/instruction_set.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {
namespace {

static_assert(index_of(DDL_FLOAT8_E5M2FNUZ) == Kernels::kTypes - 1 && DDL_LOGICAL_XOR == Kernels::kOps - 1,
              "the tables of kernels have an entry for every type and operation");

/// Elements that go through all steps of a reduction at a time: the values between the steps stay in the L1 cache.
constexpr std::size_t kBlock = 1024;

/// Whether the tables have an entry for it.
bool is_known(const Reduction& reduction) {
  return index_of(reduction.dtype) >= 0 && static_cast<std::uint32_t>(reduction.op) < Kernels::kOps;
}

struct PartialBlock {
  alignas(64) std::byte bytes[kBlock * sizeof(double)];
};

/// A reduction and its kernels. The steps are: scale each input; combine them to partials; finish those.
class Steps {
 public:
  explicit Steps(const Reduction& reduction)
      : kernels_(kernels()),
        dtype_(reduction.dtype),
        type_(index_of(dtype_)),
        op_(reduction.op),
        reduction_(reduction) {
    DDL_CHECK(is_known(reduction) && kernels_.partials[type_][op_] != nullptr,
              "dtype " + std::to_string(dtype_) + ", op " + std::to_string(op_));
    DDL_CHECK(dtype_ != DDL_BOOL || (reduction.prescale == 1.0 && reduction.postscale == 1.0),
              "scales of bool");
    element_ = element_size(dtype_);
    partial_ = element_size(partial_dtype(dtype_, op_));
  }

  /// Whether partials are the result.
  bool ends_with_partials() const {
    return op_ != DDL_AVERAGE && reduction_.postscale == 1.0 && partial_dtype(dtype_, op_) == dtype_;
  }
  std::size_t element() const { return element_; }
  std::size_t partial() const { return partial_; }

  /// The first two steps, without writing to out before everything has been read. At most kBlock elements if there is
  /// a prescale.
  void partials(const Inputs& inputs, void* out, std::size_t count) const {
    if (reduction_.prescale == 1.0) return kernels_.partials[type_][op_](inputs, out, count);
    // Scaled 16-bit floats are floats.
    const int scaled_type = is_floating(dtype_) ? index_of(partial_dtype(dtype_, op_)) : type_;
    PartialBlock scaled;
    PartialBlock values;
    for (std::size_t i = 0; i < inputs.ranks; ++i) {
      kernels_.scale[type_](inputs.of_rank[i] + inputs.first * element_, scaled.bytes, count,
                            reduction_.prescale);
      const std::byte* input = scaled.bytes;
      if (i == 0) {
        kernels_.partials[scaled_type][op_]({&input, 1, 0}, values.bytes, count);
      } else {
        kernels_.add_input[scaled_type][op_](input, values.bytes, count);
      }
    }
    std::memcpy(out, values.bytes, count * partial_);
  }

  /// The last step.
  void finish(const void* partials, void* out, std::size_t count, std::int64_t ranks) const {
    if (op_ == DDL_AVERAGE) {
      kernels_.average[type_](partials, out, count, ranks, reduction_.postscale);
    } else if (!ends_with_partials()) {
      kernels_.finish[type_](partials, out, count, reduction_.postscale);
    } else if (partials != out && count != 0) {
      std::memcpy(out, partials, count * element_);
    }
  }

 private:
  const Kernels& kernels_;
  ddl_dtype dtype_;
  int type_;  ///< its index in the tables
  ddl_op op_;
  const Reduction& reduction_;
  std::size_t element_;
  std::size_t partial_;
};

}  // namespace

void reduce_chunk(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* out,
                  std::size_t count) {
  if (reduction.prescale == 1.0 && reduction.postscale == 1.0 && is_known(reduction)) {
    // All steps at once.
    const auto reduce = kernels().reduce[index_of(reduction.dtype)][reduction.op];
    if (reduce != nullptr) return reduce({inputs.data(), inputs.size(), 0}, out, count);
  }
  const Steps steps(reduction);
  PartialBlock partials;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t size = std::min(kBlock, count - first);
    steps.partials({inputs.data(), inputs.size(), first}, partials.bytes, size);
    steps.finish(partials.bytes, out + first * steps.element(), size,
                 static_cast<std::int64_t>(inputs.size()));
  }
}

void reduce_partials(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* out,
                     std::size_t count) {
  const Steps steps(reduction);
  if (reduction.prescale == 1.0) return steps.partials({inputs.data(), inputs.size(), 0}, out, count);
  for (std::size_t first = 0; first < count; first += kBlock) {
    steps.partials({inputs.data(), inputs.size(), first}, out + first * steps.partial(),
                   std::min(kBlock, count - first));
  }
}

namespace {

template <class T>
T identity_of(ddl_op op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    // -0 + 0 is 0, but 0 + -0 is not -0.
    case DDL_SUM:
    case DDL_AVERAGE: return std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T{0};
    case DDL_PRODUCT:
    case DDL_LOGICAL_AND: return T{1};
    case DDL_MIN: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case DDL_MAX: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case DDL_BIT_AND: return static_cast<T>(~std::uint64_t{0});
    default: return T{0};
  }
}

template <class T>
void fill_with(T value, std::byte* out, std::size_t count) {
  std::fill_n(reinterpret_cast<T*>(out), count, value);
}

}  // namespace

void fill_identity(ddl_dtype dtype, ddl_op op, std::byte* out, std::size_t count) {
  switch (partial_dtype(dtype, op)) {
    case DDL_UINT8: return fill_with(identity_of<std::uint8_t>(op), out, count);
    case DDL_INT8: return fill_with(identity_of<std::int8_t>(op), out, count);
    case DDL_UINT16: return fill_with(identity_of<std::uint16_t>(op), out, count);
    case DDL_INT16: return fill_with(identity_of<std::int16_t>(op), out, count);
    case DDL_UINT32: return fill_with(identity_of<std::uint32_t>(op), out, count);
    case DDL_INT32: return fill_with(identity_of<std::int32_t>(op), out, count);
    case DDL_UINT64: return fill_with(identity_of<std::uint64_t>(op), out, count);
    case DDL_INT64: return fill_with(identity_of<std::int64_t>(op), out, count);
    case DDL_FLOAT32: return fill_with(identity_of<float>(op), out, count);
    case DDL_FLOAT64: return fill_with(identity_of<double>(op), out, count);
    // Its operations are the logical ones.
    case DDL_BOOL:
      return fill_with<std::uint8_t>(op == DDL_MIN || op == DDL_BIT_AND || op == DDL_LOGICAL_AND, out, count);
    default: DDL_CHECK(false, "dtype " + std::to_string(dtype) + ", op " + std::to_string(op));
  }
}

void finish_chunk(const Reduction& reduction, const std::byte* partials, std::byte* out, std::size_t count,
                  int ranks) {
  Steps(reduction).finish(partials, out, count, ranks);
}

}  // namespace ddl::runtime

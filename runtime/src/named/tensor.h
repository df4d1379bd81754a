// A named tensor: what all ranks must give alike, what one rank announces of it, and what the ranks agree on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/src/common/call.h"

namespace ddl::runtime {

/// What must be the same on all ranks that submit a tensor of one name.
struct TensorTerms {
  /// Its count is 0 where each rank has its own number (allgatherv, alltoallv).
  Call call = make_call(CallKind::kAllreduce, 0, DDL_FLOAT32);
  /// reduce_scatter: the number that each rank receives.
  std::vector<std::uint64_t> counts;
  /// As the program gave it, without the first dimension of an allgatherv or alltoallv; empty: not given.
  std::vector<std::uint64_t> shape;
  std::int32_t priority = 0;
  /// The tensors of a group are executed when all of them are ready; "": in no group.
  std::string group;
  std::uint32_t group_size = 0;
  /// Ranks that have joined give zeros to an allreduce or reduce_scatter.
  bool zeros_if_joined = false;
  /// The tensor fails while a rank has joined.
  bool fails_if_joined = false;

  bool operator==(const TensorTerms&) const = default;
  /// Whether two tensors may be executed by one allreduce.
  bool fuses_with(const TensorTerms& other) const {
    Call alike = other.call;
    alike.count = call.count;
    return call.kind == CallKind::kAllreduce && call == alike && zeros_if_joined == other.zeros_if_joined;
  }
  /// Ranks that have joined take part with zeros. To Adasum these change nothing, as if the ranks were left out.
  bool takes_zeros() const { return zeros_if_joined || call.op == DDL_ADASUM; }
  /// Bytes of one rank's elements; 0 where they differ.
  std::uint64_t bytes() const { return call.count * element_size(call.dtype); }
  /// "allreduce(sum, float32, [3, 4])".
  std::string describe() const;
};

/// What a rank announces of one tensor.
struct Announcement {
  std::string name;
  TensorTerms terms;
  /// alltoallv: the number of elements for each rank.
  std::vector<std::uint64_t> send_counts;
  /// Since it submitted the tensor before this one, the program has seen that some tensor was complete: it may have
  /// waited for it, so this one may never be executed together with earlier ones.
  bool follows_completion = false;
};

/// A tensor that all ranks know.
struct AgreedTensor {
  std::string name;
  TensorTerms terms;
  bool follows_completion = false;
};
using AgreedTensorPtr = std::shared_ptr<const AgreedTensor>;

}  // namespace ddl::runtime

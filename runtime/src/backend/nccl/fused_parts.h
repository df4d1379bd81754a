// The small tensors of a batch as one buffer: NCCL takes longer for many small collectives than a kernel takes to pack them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/src/backend/nccl/nccl_communicator.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// Larger parts are not copied. Estimated, not measured: copying such a part twice takes about as long as starting one more
/// collective.
inline constexpr std::size_t kMostFusedBytes = std::size_t{512} << 10;

/// Which parts go together, and where each lies in the buffer: pure, and the same on all ranks.
struct FusionPlan {
  std::vector<std::size_t> fused;   ///< numbers of parts
  std::vector<std::size_t> offset;  ///< bytes, of each of them; multiples of 16
  std::size_t bytes = 0;            ///< of the buffer; a multiple of 16; 0: all parts go as they are

  /// element_size: 1 to 8, a power of two.
  static FusionPlan of(std::span<const Part> parts, std::size_t element_size);
};

/// Of one call. The GPU is current, and libddl's kernels have been loaded.
class FusedParts {
 public:
  explicit FusedParts(NcclCommunicator& communicator) : communicator_(communicator) {}

  /// Puts the copies to the buffer on the stream. The request has the buffer in place of the parts that are in it.
  Status pack(Request& request);
  /// Puts the copies of their results on the stream.
  Status unpack() const;

 private:
  /// A part that has been packed, and its bytes in the buffer.
  struct Packed {
    Part part;
    std::byte* place;
    std::size_t bytes;
  };
  template <class From, class To>
  Status copy(From from, To to) const;

  NcclCommunicator& communicator_;
  std::vector<Packed> packed_;
  std::vector<Part> parts_;
};

}  // namespace ddl::runtime

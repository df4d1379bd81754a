// The buffers of a call as one row of elements: one pair of buffers, or those of several tensors that are one
// allreduce.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// The buffers of a call without parts. It has no state, so it costs a small call next to nothing.
class OneBuffer {
 public:
  /// request outlives this.
  explicit OneBuffer(const Request& request) : request_(request) {}

  /// See CallBuffers. There is at most one part.
  template <class Use>
  void for_parts(std::uint64_t first, std::uint64_t count, Use use) const {
    if (count == 0) return;
    const Part part = range(first, count);
    use(part.send, part.recv, part.count, std::uint64_t{0});
  }
  Part range(std::uint64_t first, std::uint64_t count) const {
    return {moved(request_.send, first), moved(request_.recv, first), count};
  }

 private:
  template <class Byte>
  Byte* moved(Byte* buffer, std::uint64_t elements) const {
    return buffer == nullptr ? nullptr : buffer + elements * request_.element_size;
  }

  const Request& request_;
};

/// The buffers of any call. Not thread-safe: it remembers which part it has found last, and looks for the next one
/// from there. A call accesses its elements in chunks that are near each other, so looking for all of them takes a time
/// proportional to the number of parts. Nothing is allocated.
class CallBuffers {
 public:
  /// request outlives this. It has parts, or its send and recv are the buffers.
  explicit CallBuffers(const Request& request) : request_(request) {}

  /// Calls use(send, recv, count, offset) for each part of the range that is contiguous in memory, in order: its
  /// buffers, its elements, and its offset from the first element of the range. An empty range has no parts. recv may
  /// be null on a rank that takes no result.
  template <class Use>
  void for_parts(std::uint64_t first, std::uint64_t count, Use use) const {
    for (std::uint64_t offset = 0; offset < count;) {
      const Part part = part_at(first + offset, count - offset);
      use(part.send, part.recv, part.count, offset);
      offset += part.count;
    }
  }

  /// The range as one part, if it is contiguous in memory; otherwise the buffers are null.
  Part contiguous(std::uint64_t first, std::uint64_t count) const;

 private:
  /// The longest part that begins with the first element and has no more than count elements, which is not 0.
  Part part_at(std::uint64_t first, std::uint64_t count) const;

  const Request& request_;
  mutable std::size_t found_ = 0;    ///< the part that was found last
  mutable std::uint64_t begin_ = 0;  ///< its first element
};

}  // namespace ddl::runtime

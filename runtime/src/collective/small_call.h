// A small call that is the same as one before, but for its buffers: most programs repeat their small calls.
//
// Ranks of one host make it by one exchange. What such a call costs beside that exchange are its checks,
// its choices and the ways between them, and a repetition needs none of these: it has been found valid, all ways are
// known, and only its buffers are looked at. The other ranks cannot tell whether a rank repeats a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/src/collective/request.h"
#include "runtime/src/shm/channel.h"

namespace ddl::runtime {

class SmallCall {
 public:
  /// The most bytes that a rank stages: what a call costs beside moving and combining more is small.
  static constexpr std::size_t kMostBytes = std::size_t{8} << 10;

  /// Of a call without scales that has been made on this channel, which outlives the result. nullopt: it takes more than
  /// one exchange, or there is more to it than its buffers.
  static std::optional<SmallCall> of(const Request& request, Channel& channel);

  const Call& call() const { return call_; }
  std::size_t bytes() const { return call_.count * element_; }
  /// Whether a call without options repeats this one, and its buffers are valid. counts: of all ranks, for calls that have
  /// them; else null.
  bool is_repeated_by(const Call& given, const std::uint64_t* counts, const void* send,
                      const void* recv) const;
  /// Makes the call with these buffers.
  Outcome repeat(const std::byte* send, std::byte* recv, CallDeadline deadline) const;

 private:
  SmallCall() = default;
  void combine(const std::byte* send, std::byte* recv) const;
  void gather(const std::byte* send, std::byte* recv) const;
  void stage(const std::byte* send) const;
  /// This rank's part of what another one has staged, and of its own input.
  const std::byte* part_of(int from) const;
  const std::byte* own_part(const std::byte* send) const {
    return has_parts_ ? send + channel_->index() * part_ : send;
  }

  Channel* channel_ = nullptr;
  Call call_;
  std::uint64_t fingerprint_ = 0;
  Path path_ = Path::kNone;
  std::size_t element_ = 1;
  std::size_t chunk_ = 0;          ///< bytes of a slot that it uses
  std::size_t part_ = 0;           ///< bytes that it takes from each rank
  bool has_parts_ = false;         ///< each rank has another part for each, and stages those for others
  bool only_sends_ = false;        ///< the root of a broadcast
  std::uint64_t equal_count_ = 0;  ///< what all counts are, if the call has counts
  std::ptrdiff_t in_place_ = 0;    ///< recv - send of a call in place
  std::ptrdiff_t apart_ = 0;       ///< recv and send may be this far apart, or farther
};

}  // namespace ddl::runtime

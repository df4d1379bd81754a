// The slices that come from one partner: where each goes, and which of its bytes have been announced.
//
// A slice may come before this rank's own steps ask for it. If its chunk has been begun it is put aside, because what
// stands behind it in its socket may be what they wait for. A slice of a chunk that has not been begun waits in its
// socket: so no more is put aside than what the chunks that are on their way at once can bring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/src/link/pending.h"
#include "runtime/src/link/slice_frame.h"

namespace ddl::runtime {

class AwaitedSlices {
 public:
  enum class Fit {
    kHere,   ///< the piece goes where the claim says
    kLater,  ///< of a chunk that has not been begun
    /// Of another call, of another length than awaited, outside of its slice, or announced before. A slice that has come
    /// whole is forgotten: announced again it is put aside, where begin_chunk() of the next call finds it.
    kWrong,
  };
  struct Claim {
    Fit fit = Fit::kWrong;
    std::uint64_t slice = 0;  ///< for note_arrived()
    std::span<std::byte> to;
  };

  /// From now on slices of this chunk, which are at most so long, are put aside if they come before they are awaited.
  /// Chunks are begun in order. False if something was put aside in the last call that nobody has asked for.
  bool begin_chunk(std::uint64_t call, std::uint32_t chunk, std::size_t longest);
  /// The slice of frame's call, chunk and turn goes here, however it is cut. False if it has come and is of another length.
  bool await(const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending);

  /// Where the piece behind this frame goes. What fits is claimed: nothing else goes there.
  Claim claim(const SliceFrame& head);
  /// So many bytes of a piece that was claimed are there.
  void note_arrived(std::uint64_t slice, std::size_t bytes);

  /// Nothing is awaited.
  bool is_empty() const { return awaited_ == 0; }
  /// There are bytes awaited that no frame has announced; cut: of slices that are longer than a piece.
  bool has_unclaimed() const { return unclaimed_ > 0; }
  bool has_unclaimed_cut() const { return unclaimed_cut_ > 0; }
  bool has_unclaimed_whole() const { return unclaimed_ > unclaimed_cut_; }

 private:
  struct Slice {
    std::uint64_t number = 0;
    std::uint32_t chunk = 0;
    std::uint32_t turn = 0;
    std::size_t size = 0;
    std::size_t unclaimed = 0;
    std::size_t missing = 0;
    std::span<std::byte> to;       ///< empty: not awaited yet
    std::vector<std::byte> aside;  ///< where it goes first, if it has come before that
    Pending* pending = nullptr;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> claimed;  ///< where each piece begins and ends
  };
  using Place = std::vector<Slice>::iterator;

  Slice& add(std::uint32_t chunk, std::uint32_t turn, std::size_t size);
  Place find(std::uint32_t chunk, std::uint32_t turn);
  bool has_begun(std::uint32_t chunk) const;
  /// Takes so many bytes of an awaited slice into what has_unclaimed() tells, or out of it.
  void count_unclaimed(const Slice& slice, std::ptrdiff_t bytes);
  void end_if_complete(Place place);

  std::vector<Slice> slices_;  ///< few
  std::uint64_t numbers_ = 0;
  std::uint64_t call_ = 0;
  std::uint32_t last_begun_ = 0;
  std::size_t longest_ = 0;  ///< 0: no chunk has been begun
  std::size_t awaited_ = 0;
  std::size_t unclaimed_ = 0;
  std::size_t unclaimed_cut_ = 0;
};

}  // namespace ddl::runtime

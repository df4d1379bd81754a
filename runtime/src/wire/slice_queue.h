// The slices between this rank and one partner: the frame in front of each on the wire, the queue of slices to be
// sent, and the table of awaited slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ddl::runtime {

/// The number of posted operations that have not completed; lives until it is 0 again.
using Pending = int;

/// The header of a slice, or of a fragment of one, on the wire.
///
/// It identifies the slice, and the position in it of the bytes that follow. Several slices are under way between two
/// ranks at once, each rank may have another of two chunks ready first, and the fragments of one slice come over
/// several sockets. So the receiver finds the destination by the frame, and ranks that make different calls notice it.
/// Plain data between machines of one byte order.
struct SliceFrame {
  static constexpr std::uint32_t kMagic = 0x44444C53;  // "DDLS"
  std::uint32_t magic = kMagic;
  std::uint32_t turn =
      0;  ///< the number of the chunk's earlier slices in this direction between the two ranks
  std::uint64_t call = 0;      ///< its number
  std::uint32_t chunk = 0;     ///< the lower half of its index: only a few are under way at once
  std::uint32_t bytes = 0;     ///< of the complete slice
  std::uint32_t first = 0;     ///< the offset of the fragment in the slice
  std::uint32_t fragment = 0;  ///< the number of bytes that follow

  bool operator==(const SliceFrame&) const = default;
};
static_assert(sizeof(SliceFrame) == 32);

/// The magic with which the ordered stream begins wherever a slice's frame could be expected.
inline constexpr std::uint32_t kOrderedMagic = 0x44444C41;  // "DDLA"

/// A longer slice goes in fragments over all sockets; any other goes over the first, in one system call if the socket's
/// buffer has space.
inline constexpr std::size_t kFragmentBytes = std::size_t{64} << 10;

/// The length of the fragments of a slice: at most kFragmentBytes, equal except for the last, a multiple of cache
/// lines.
constexpr std::size_t fragment_bytes_of(std::size_t slice_bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t fragments = (slice_bytes + kFragmentBytes - 1) / kFragmentBytes;
  if (fragments <= 1) return slice_bytes;
  return ((slice_bytes + fragments - 1) / fragments + kLine - 1) / kLine * kLine;
}

// The data to be sent to one partner, in the order in which they were posted, distributed to sockets in fragments.

class SendQueue {
 public:
  /// The unit that one socket sends: a fragment of a slice with its frame, or bytes of the ordered stream.
  struct Fragment {
    std::uint64_t of = 0;  ///< the number of the posted operation
    SliceFrame frame;
    std::size_t frame_left = 0;
    const std::byte* data = nullptr;
    std::size_t data_left = 0;

    std::size_t left() const { return frame_left + data_left; }
  };

  /// is_cut: into fragments that any socket may take. Otherwise all of it goes over the first socket.
  void post_slice(const SliceFrame& frame, std::span<const std::byte> bytes, bool is_cut, Pending& pending);
  void post_ordered(std::span<const std::byte> bytes, Pending& pending);

  /// Nothing is left that has not been sent completely.
  bool is_empty() const { return first_ == posted_.size(); }

  /// The next fragments that no socket has taken: at most fragments.size(), and at most max_bytes bytes unless the
  /// first fragment alone has more. Returns their number.
  std::size_t peek(bool by_first_socket, std::span<Fragment> fragments, std::size_t max_bytes) const;
  bool has_for(bool by_first_socket) const;
  /// Assigns the first fragment that peek() returned to the calling socket.
  void take(const Fragment& fragment);
  /// This number of bytes of a taken fragment, frame included, has been sent.
  void note_sent(Fragment& fragment, std::size_t bytes);

 private:
  struct Posted {
    SliceFrame frame;
    bool is_ordered = false;
    std::span<const std::byte> bytes;
    std::size_t fragment_bytes = 0;  ///< the same as bytes: not cut
    std::size_t taken = 0;
    std::size_t unsent = 0;
    Pending* pending = nullptr;

    bool may_go(bool by_first_socket) const { return by_first_socket || fragment_bytes < bytes.size(); }
    Fragment fragment_at(std::size_t at, std::uint64_t number) const;
  };

  void post(const Posted& posted);

  std::vector<Posted> posted_;
  std::size_t first_ = 0;           ///< index in posted_: those before have been sent
  std::uint64_t first_number_ = 0;  ///< of posted_[0]
};

// The slices that come from one partner: the destination of each, and which of its bytes have been announced by
// frames.
//
// A slice may arrive before this rank's own steps await it. If its chunk has been begun, it is received into a buffer
// of its own, because those steps may wait for data behind it in its socket. A slice of a chunk that has not been
// begun stays in its socket: so the size of these buffers is bounded by the chunks that are under way at once.

class AwaitedSlices {
 public:
  enum class Fit {
    kHere,   ///< the fragment goes where the claim says
    kLater,  ///< of a chunk that has not been begun
    /// Of another call, of another length than awaited, outside of its slice, or announced before. A slice that has
    /// arrived completely is forgotten: if it is announced again, it is buffered, and begin_chunk() of the next call
    /// finds it.
    kWrong,
  };
  struct Claim {
    Fit fit = Fit::kWrong;
    std::uint64_t slice = 0;  ///< for note_arrived()
    std::span<std::byte> to;
  };

  /// From now on slices of this chunk, of at most longest bytes, are buffered if they arrive before they are awaited.
  /// Chunks are begun in order. False if a slice was buffered in the last call and never awaited.
  bool begin_chunk(std::uint64_t call, std::uint32_t chunk, std::size_t longest);
  /// The slice of frame's call, chunk and turn goes to bytes, however it is cut. False if it has arrived with another
  /// length.
  bool await(const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending);

  /// Where the fragment after this frame goes. A fragment that fits is claimed: no other fragment may overlap it.
  Claim claim(const SliceFrame& head);
  /// This number of bytes of a claimed fragment has arrived.
  void note_arrived(std::uint64_t slice, std::size_t bytes);

  /// No slice is awaited.
  bool is_empty() const { return awaited_ == 0; }
  /// Bytes are awaited that no frame has announced; cut: of slices that are longer than a fragment; uncut: of the
  /// others.
  bool has_unclaimed() const { return unclaimed_ > 0; }
  bool has_unclaimed_cut() const { return unclaimed_cut_ > 0; }
  bool has_unclaimed_uncut() const { return unclaimed_ > unclaimed_cut_; }

 private:
  struct Slice {
    std::uint64_t number = 0;
    std::uint32_t chunk = 0;
    std::uint32_t turn = 0;
    std::size_t size = 0;
    std::size_t unclaimed = 0;
    std::size_t missing = 0;
    std::span<std::byte> to;       ///< empty: not awaited yet
    std::vector<std::byte> aside;  ///< its buffer if it arrives before it is awaited
    Pending* pending = nullptr;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> claimed;  ///< begin and end of each fragment
  };
  using Iterator = std::vector<Slice>::iterator;

  Slice& add(std::uint32_t chunk, std::uint32_t turn, std::size_t size);
  Iterator find(std::uint32_t chunk, std::uint32_t turn);
  bool has_begun(std::uint32_t chunk) const;
  /// Adds this number of bytes of an awaited slice to the counters of has_unclaimed(); negative: subtracts.
  void count_unclaimed(const Slice& slice, std::ptrdiff_t bytes);
  void end_if_complete(Iterator found);

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

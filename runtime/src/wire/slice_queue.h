// The slices between this rank and one partner: the frame in front of each on the wire, the queue of those that are to be
// sent, and the table of those that are awaited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ddl::runtime {

// How somebody who posts learns that it has been handled.

/// Counts what was posted and has not been handled; lives until it is 0 again.
using Pending = int;

// What stands before a slice, or a piece of one, on the wire.

/// Says which slice it is, and where in it the bytes lie that follow. Several slices are on their way between two ranks at
/// once, which of two chunks is ready first is each rank's own affair, and the pieces of one come over several sockets: so
/// the receiver finds by the frame where they go, and ranks that have come apart notice it. Plain data between machines of
/// one byte order.
struct SliceFrame {
  static constexpr std::uint32_t kMagic = 0x44444C53;  // "DDLS"
  std::uint32_t magic = kMagic;
  std::uint32_t turn = 0;   ///< how many of the chunk's slices have gone this way between the two before
  std::uint64_t call = 0;   ///< its number
  std::uint32_t chunk = 0;  ///< the lower half of its index: only a few are on their way at once
  std::uint32_t bytes = 0;  ///< of the whole slice
  std::uint32_t first = 0;  ///< where in it the piece begins
  std::uint32_t piece = 0;  ///< how many bytes follow

  bool operator==(const SliceFrame&) const = default;
};
static_assert(sizeof(SliceFrame) == 32);

/// What the ordered stream begins with wherever a slice's frame could stand instead.
inline constexpr std::uint32_t kOrderedMagic = 0x44444C41;  // "DDLA"

/// A slice that is longer goes in pieces over all sockets; one that is not goes over the first, in one system call where
/// the socket has room.
inline constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

/// How long the pieces are in which a slice goes: at most kPieceBytes, equal but for the last, of whole cache lines.
constexpr std::size_t piece_bytes_of(std::size_t slice_bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t pieces = (slice_bytes + kPieceBytes - 1) / kPieceBytes;
  if (pieces <= 1) return slice_bytes;
  return ((slice_bytes + pieces - 1) / pieces + kLine - 1) / kLine * kLine;
}

// What is to be sent to one partner, in the order in which it was posted, handed out to sockets in pieces.

class SendQueue {
 public:
  /// What one socket sends in one go: a piece of a slice behind its frame, or bytes of the ordered stream.
  struct Piece {
    std::uint64_t of = 0;  ///< which of what was posted
    SliceFrame frame;
    std::size_t frame_left = 0;
    const std::byte* data = nullptr;
    std::size_t data_left = 0;

    std::size_t left() const { return frame_left + data_left; }
  };

  /// is_cut: into pieces that any socket may take. Otherwise all of it goes over the first socket.
  void post_slice(const SliceFrame& frame, std::span<const std::byte> bytes, bool is_cut, Pending& pending);
  void post_ordered(std::span<const std::byte> bytes, Pending& pending);

  /// Nothing is left that has not been sent completely.
  bool is_empty() const { return first_ == posted_.size(); }

  /// The next pieces that nobody has taken: at most as many as there is room for, and no more bytes than max_bytes unless
  /// the first alone has more. Returns how many.
  std::size_t peek(bool by_first_socket, std::span<Piece> pieces, std::size_t max_bytes) const;
  bool has_for(bool by_first_socket) const;
  /// The first of what peek() gave: nobody else gets it.
  void take(const Piece& piece);
  /// So many bytes of a piece that was taken, frame included, have been sent.
  void note_sent(Piece& piece, std::size_t bytes);

 private:
  struct Posted {
    SliceFrame frame;
    bool is_ordered = false;
    std::span<const std::byte> bytes;
    std::size_t piece_bytes = 0;  ///< the same as bytes: not cut
    std::size_t taken = 0;
    std::size_t unsent = 0;
    Pending* pending = nullptr;

    bool may_go(bool by_first_socket) const { return by_first_socket || piece_bytes < bytes.size(); }
    Piece piece_at(std::size_t at, std::uint64_t number) const;
  };

  void post(const Posted& posted);

  std::vector<Posted> posted_;
  std::size_t first_ = 0;           ///< of posted_: those before have been sent
  std::uint64_t first_number_ = 0;  ///< of posted_[0]
};

// The slices that come from one partner: where each goes, and which of its bytes have been announced.
//
// A slice may come before this rank's own steps ask for it. If its chunk has been begun it is put aside, because what
// stands behind it in its socket may be what they wait for. A slice of a chunk that has not been begun waits in its
// socket: so no more is put aside than what the chunks that are on their way at once can bring.

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
    std::vector<std::byte> aside;  ///< where it goes first, if it has come before that
    Pending* pending = nullptr;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> claimed;  ///< where each piece begins and ends
  };
  using Iterator = std::vector<Slice>::iterator;

  Slice& add(std::uint32_t chunk, std::uint32_t turn, std::size_t size);
  Iterator find(std::uint32_t chunk, std::uint32_t turn);
  bool has_begun(std::uint32_t chunk) const;
  /// Takes so many bytes of an awaited slice into what has_unclaimed() tells, or out of it.
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

// What is to be sent to one partner, in the order in which it was posted, handed out to sockets in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/src/link/pending.h"
#include "runtime/src/link/slice_frame.h"

namespace ddl::runtime {

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

  /// The next pieces that nobody has taken: at most as many as there is room for, and no more bytes than most_bytes unless
  /// the first alone has more. Returns how many.
  std::size_t peek(bool by_first_socket, std::span<Piece> pieces, std::size_t most_bytes) const;
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

}  // namespace ddl::runtime

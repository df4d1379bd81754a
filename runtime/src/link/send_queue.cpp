#include "runtime/src/link/send_queue.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"

namespace ddl::runtime {

SendQueue::Piece SendQueue::Posted::piece_at(std::size_t at, std::uint64_t number) const {
  Piece piece;
  piece.of = number;
  piece.data = bytes.data() + at;
  piece.data_left = std::min(piece_bytes, bytes.size() - at);
  if (is_ordered) return piece;
  piece.frame = frame;
  piece.frame.bytes = static_cast<std::uint32_t>(bytes.size());
  piece.frame.first = static_cast<std::uint32_t>(at);
  piece.frame.piece = static_cast<std::uint32_t>(piece.data_left);
  piece.frame_left = sizeof piece.frame;
  return piece;
}

void SendQueue::post_slice(const SliceFrame& frame, std::span<const std::byte> bytes, bool is_cut,
                           Pending& pending) {
  DDL_CHECK(!bytes.empty() && bytes.size() <= std::numeric_limits<std::uint32_t>::max(),
            std::to_string(bytes.size()) + " bytes");
  post(
      {frame, false, bytes, is_cut ? piece_bytes_of(bytes.size()) : bytes.size(), 0, bytes.size(), &pending});
}

void SendQueue::post_ordered(std::span<const std::byte> bytes, Pending& pending) {
  if (bytes.empty()) return;
  post({{}, true, bytes, bytes.size(), 0, bytes.size(), &pending});
}

void SendQueue::post(const Posted& posted) {
  // Mostly all has been sent by now. Memory is kept.
  constexpr std::size_t kMostSent = 64;
  if (is_empty() || first_ >= kMostSent) {
    posted_.erase(posted_.begin(), posted_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_number_ += first_;
    first_ = 0;
  }
  ++*posted.pending;
  posted_.push_back(posted);
}

std::size_t SendQueue::peek(bool by_first_socket, std::span<Piece> pieces, std::size_t most_bytes) const {
  std::size_t count = 0, bytes = 0;
  for (std::size_t i = first_; i < posted_.size(); ++i) {
    const Posted& posted = posted_[i];
    if (!posted.may_go(by_first_socket)) continue;
    for (std::size_t at = posted.taken; at < posted.bytes.size(); at += posted.piece_bytes) {
      if (count == pieces.size()) return count;
      const Piece piece = posted.piece_at(at, first_number_ + i);
      if (count > 0 && bytes + piece.data_left > most_bytes) return count;
      bytes += piece.data_left;
      pieces[count++] = piece;
    }
  }
  return count;
}

bool SendQueue::has_for(bool by_first_socket) const {
  return std::any_of(posted_.begin() + static_cast<std::ptrdiff_t>(first_), posted_.end(),
                     [by_first_socket](const Posted& posted) {
                       return posted.may_go(by_first_socket) && posted.taken < posted.bytes.size();
                     });
}

void SendQueue::take(const Piece& piece) { posted_[piece.of - first_number_].taken += piece.data_left; }

void SendQueue::note_sent(Piece& piece, std::size_t bytes) {
  const std::size_t of_frame = std::min(bytes, piece.frame_left);
  const std::size_t of_data = bytes - of_frame;
  piece.frame_left -= of_frame;
  piece.data += of_data;
  piece.data_left -= of_data;
  Posted& posted = posted_[piece.of - first_number_];
  posted.unsent -= of_data;
  if (of_data == 0 || posted.unsent > 0) return;
  --*posted.pending;
  while (first_ < posted_.size() && posted_[first_].unsent == 0) ++first_;
}

}  // namespace ddl::runtime

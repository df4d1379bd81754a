#include "runtime/src/backend/mpi/mpi_moves.h"

#include <algorithm>

#include "runtime/src/collective/copy_bytes.h"

namespace ddl::runtime {
namespace {

MpiMove::Kind kind_of(const BlockMove& move) {
  if (!move.is_shared()) return move.only_sender() ? MpiMove::Kind::kScatter : MpiMove::Kind::kAlltoall;
  if (move.only_sender()) return MpiMove::Kind::kBroadcast;
  return move.only_receiver() ? MpiMove::Kind::kGather : MpiMove::Kind::kAllgather;
}

/// The same range of every block: as long as is_packed, one after the other, otherwise where the blocks are.
class Piece {
 public:
  Piece(const MoveInBuffers& here, int own, ElementRange range, bool is_packed)
      : move_(here.move), element_(here.element), own_(own), range_(range), is_packed_(is_packed) {}

  std::size_t bytes(int from, int to) const {
    const std::uint64_t total = move_.count(from, to);
    return (std::min(range_.first + range_.count, total) - std::min(range_.first, total)) * element_;
  }
  /// Where it begins in this rank's buffers.
  std::size_t in_send(int to) const { return (move_.send_offset(own_, to) + range_.first) * element_; }
  std::size_t in_recv(int from) const { return (move_.recv_offset(from, own_) + range_.first) * element_; }

  MpiMove::Blocks sends() const {
    if (!move_.sends(own_)) return {{0}, {0}};
    if (move_.is_shared()) return {{static_cast<int>(bytes(own_, move_.a_receiver()))}, {0}};
    return blocks([this](int to) { return bytes(own_, to); }, [this](int to) { return in_send(to); });
  }
  MpiMove::Blocks receives() const {
    if (!move_.receives(own_)) return {{0}, {0}};
    if (const auto sender = move_.only_sender()) return {{static_cast<int>(bytes(*sender, own_))}, {0}};
    return blocks([this](int from) { return bytes(from, own_); }, [this](int from) { return in_recv(from); });
  }

 private:
  template <class Bytes, class Place>
  MpiMove::Blocks blocks(Bytes bytes_of, Place place_of) const {
    MpiMove::Blocks all;
    std::size_t end = 0;
    for (int rank = 0; rank < move_.ranks(); ++rank) {
      all.bytes.push_back(static_cast<int>(bytes_of(rank)));
      all.offsets.push_back(static_cast<int>(is_packed_ ? end : place_of(rank)));
      end += bytes_of(rank);
    }
    return all;
  }

  const BlockMove& move_;
  std::size_t element_;
  int own_;
  ElementRange range_;
  bool is_packed_;
};

MpiMove step_of(const MoveInBuffers& here, const Piece& piece) {
  MpiMove step;
  step.kind = kind_of(here.move);
  step.root = here.move.only_sender().value_or(here.move.only_receiver().value_or(0));
  step.is_even = here.move.is_even();
  step.sends = piece.sends();
  step.receives = piece.receives();
  return step;
}

Outcome broadcast(MpiSteps& steps, const MoveInBuffers& here) {
  const std::uint64_t total = here.move.longest() * here.element, most = steps.place().limits.step_bytes;
  for (std::uint64_t first = 0; first < total; first += most) {
    MpiMove step;
    step.kind = MpiMove::Kind::kBroadcast;
    step.root = *here.move.only_sender();
    step.recv = here.recv + first;
    step.receives = {{static_cast<int>(std::min(most, total - first))}, {0}};
    if (auto moved = steps.move(std::move(step)); !moved) return moved;
  }
  return {};
}

Outcome move_at_once(MpiSteps& steps, const MoveInBuffers& here) {
  const BlockMove& move = here.move;
  const int own = steps.place().rank;
  const Piece piece(here, own, {0, move.longest()}, false);
  MpiMove step = step_of(here, piece);
  step.send = here.send;
  step.recv = here.recv;
  const bool both = move.sends(own) && move.receives(own);
  if (step.kind == MpiMove::Kind::kAlltoall) {
    // What comes must not be written over what has not gone.
    const std::size_t bytes = move.send_offset(own, move.ranks()) * here.element;
    if (here.send == here.recv && bytes > 0) {
      steps.buffers().send.assign(here.send, here.send + bytes);
      step.send = steps.buffers().send.data();
    }
  } else if (step.kind == MpiMove::Kind::kScatter) {
    step.is_in_place = both && here.recv == here.send + piece.in_send(own);
  } else {
    step.is_in_place = both && here.send == here.recv + piece.in_recv(own);
  }
  return steps.move(std::move(step));
}

Outcome move_in_pieces(MpiSteps& steps, const MoveInBuffers& here) {
  const BlockMove& move = here.move;
  const int own = steps.place().rank;
  const auto ranks = static_cast<std::uint64_t>(move.ranks());
  const std::uint64_t per_piece =
      std::max<std::uint64_t>(steps.place().limits.piece_bytes / here.element / ranks, 1);
  MpiBuffers& buffers = steps.buffers();
  for (std::uint64_t first = 0; first < move.longest(); first += per_piece) {
    const Piece piece(here, own, {first, per_piece}, true);
    MpiMove step = step_of(here, piece);
    buffers.send.resize(ranks * per_piece * here.element);
    buffers.recv.resize(ranks * per_piece * here.element);
    step.send = buffers.send.data();
    step.recv = buffers.recv.data();
    std::size_t filled = 0;
    for (int to = 0; to < move.ranks() && move.sends(own); ++to) {
      const int receiver = move.is_shared() ? move.a_receiver() : to;
      const std::size_t bytes = piece.bytes(own, receiver);
      if (bytes > 0) copy_bytes(buffers.send.data() + filled, here.send + piece.in_send(receiver), bytes);
      filled += bytes;
      if (move.is_shared()) break;
    }
    if (auto moved = steps.move(std::move(step)); !moved) return moved;
    std::size_t taken = 0;
    for (int from = 0; from < move.ranks(); ++from) {
      const std::size_t bytes = piece.bytes(from, own);
      if (bytes > 0) copy_bytes(here.recv + piece.in_recv(from), buffers.recv.data() + taken, bytes);
      taken += bytes;
    }
  }
  return {};
}

}  // namespace

Outcome move_blocks(MpiSteps& steps, const MoveInBuffers& here) {
  const BlockMove& move = here.move;
  // Decided alike on all ranks: they make the same steps.
  if (move.longest() == 0) return {};
  if (move.is_broadcast()) return broadcast(steps, here);
  const std::uint64_t most =
      steps.place().limits.step_bytes / here.element / static_cast<std::uint64_t>(move.ranks());
  return move.longest() <= most ? move_at_once(steps, here) : move_in_pieces(steps, here);
}

}  // namespace ddl::runtime

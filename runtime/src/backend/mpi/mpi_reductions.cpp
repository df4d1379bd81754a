#include "runtime/src/backend/mpi/mpi_reductions.h"

#include <algorithm>

#include "runtime/src/backend/mpi/mpi_moves.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/canonical_reduction.h"
#include "runtime/src/collective/copy_bytes.h"
#include "runtime/src/collective/element.h"

namespace ddl::runtime {
namespace {

/// Inputs of all ranks together up to so many bytes go to everybody: one step instead of two.
constexpr std::size_t kMostGathered = std::size_t{32} << 10;
/// Slices from so many bytes on are not copied by MPI from a rank to itself.
constexpr std::size_t kLeastKept = std::size_t{32} << 10;

class MpiReduction {
 public:
  MpiReduction(MpiSteps& steps, const Request& request)
      : steps_(steps),
        request_(request),
        element_(known_element_size(request.dtype())),
        ranks_(static_cast<std::uint64_t>(steps.ranks())),
        tree_(request.reduction(), steps.place().layout) {}

  /// An allreduce or a reduce.
  Outcome of_all() {
    return in_parts(piece_bytes() / element_, [this](const ElementRange& part) {
      return part.count * element_ * ranks_ <= kMostGathered ? everything(part) : slices(part);
    });
  }

  Outcome scan() {
    return in_parts(piece_bytes() / element_ / ranks_, [this](const ElementRange& part) -> Outcome {
      if (auto gathered = gather_inputs(part); !gathered) return gathered;
      const auto inputs = inputs_of(part.count);
      reduce_chunk(request_.reduction(), std::span(inputs).first(static_cast<std::size_t>(own()) + 1),
                   request_.recv + part.first * element_, part.count);
      return {};
    });
  }

  Outcome scatter() {
    const BlockMove blocks = BlockMove::reduce_scatter(request_.counts);
    const std::uint64_t per_piece = std::max<std::uint64_t>(piece_bytes() / element_ / ranks_, 1);
    for (std::uint64_t first = 0; first < blocks.longest(); first += per_piece) {
      const auto piece = [&](int to) {
        return blocks.piece(0, to, first / per_piece, per_piece);  // the same of every sender
      };
      auto moved = spread([&](int to) -> ElementRange {
        const ElementRange range = piece(to);
        return {blocks.send_offset(0, to) + range.first, range.count};
      });
      if (!moved) return moved;
      const ElementRange mine = piece(own());
      tree_.reduce(inputs_of(mine.count), request_.recv + mine.first * element_, mine.count);
    }
    return {};
  }

 private:
  int own() const { return steps_.place().rank; }
  std::uint64_t piece_bytes() const { return steps_.place().limits.piece_bytes; }
  int size() const { return static_cast<int>(ranks_); }
  /// The own input can be read where it is, although the result may be written over it.
  bool keeps_own() const { return request_.send != request_.recv || tree_.may_write_over(own()); }
  bool receives() const { return request_.call.kind != CallKind::kReduce || request_.call.root == own(); }
  MpiBuffers& buffers() { return steps_.buffers(); }

  template <class Work>
  Outcome in_parts(std::uint64_t elements, Work work) {
    elements = std::max<std::uint64_t>(elements, 1);
    for (std::uint64_t first = 0; first < request_.call.count; first += elements) {
      if (auto done = work({first, std::min(elements, request_.call.count - first)}); !done) return done;
    }
    return {};
  }

  /// Everybody's elements, which stand one rank's after the other's.
  std::vector<const std::byte*> inputs_of(std::uint64_t count) {
    std::vector<const std::byte*> inputs;
    for (std::uint64_t rank = 0; rank < ranks_; ++rank)
      inputs.push_back(buffers().recv.data() + rank * count * element_);
    return inputs;
  }

  Outcome gather_inputs(const ElementRange& part) {
    const BlockMove blocks = BlockMove::allgather(size(), part.count);
    buffers().recv.resize(ranks_ * part.count * element_);
    return move_blocks(steps_,
                       {blocks, element_, request_.send + part.first * element_, buffers().recv.data()});
  }

  Outcome everything(const ElementRange& part) {
    if (auto gathered = gather_inputs(part); !gathered) return gathered;
    if (receives()) tree_.reduce(inputs_of(part.count), request_.recv + part.first * element_, part.count);
    return {};
  }

  /// Gives every rank its range of this rank's input, and puts aside what all have for this one. may_keep, the same on all
  /// ranks: this rank's own part need not be put aside.
  template <class RangeFor>
  Outcome spread(RangeFor range_for, bool may_keep = false) {
    MpiMove step;
    step.kind = MpiMove::Kind::kAlltoall;
    const std::size_t own_bytes = range_for(own()).count * element_;
    buffers().recv.resize(ranks_ * own_bytes);
    step.is_even = !may_keep;
    const ElementRange first = range_for(0);
    for (int rank = 0; rank < size(); ++rank) {
      const ElementRange range = range_for(rank);
      step.is_even = step.is_even && range.count == first.count &&
                     range.first == first.first + static_cast<std::uint64_t>(rank) * first.count;
      step.sends.bytes.push_back(static_cast<int>(range.count * element_));
      step.sends.offsets.push_back(static_cast<int>((range.first - first.first) * element_));
      step.receives.bytes.push_back(static_cast<int>(own_bytes));
      step.receives.offsets.push_back(rank * static_cast<int>(own_bytes));
    }
    if (may_keep && keeps_own()) {
      const auto index = static_cast<std::size_t>(own());
      step.sends.bytes[index] = step.receives.bytes[index] = 0;
    }
    step.send = request_.send + first.first * element_;
    step.recv = buffers().recv.data();
    return steps_.move(std::move(step));
  }

  Outcome slices(const ElementRange& part) {
    const auto slice = [&](int rank) -> ElementRange {
      const ElementRange range = even_part(part.count, rank, size());
      return {part.first + range.first, range.count};
    };
    const bool may_keep = part.count / ranks_ * element_ >= kLeastKept;
    auto moved = spread(slice, may_keep);
    if (!moved) return moved;
    const ElementRange mine = slice(own());
    auto inputs = inputs_of(mine.count);
    if (may_keep && keeps_own())
      inputs[static_cast<std::size_t>(own())] = request_.send + mine.first * element_;
    // In its place, if all of the result comes here.
    if (!receives()) buffers().result.resize(mine.count * element_);
    std::byte* const result = receives() ? request_.recv + mine.first * element_ : buffers().result.data();
    tree_.reduce(inputs, result, mine.count);
    std::vector<std::uint64_t> counts;
    for (int rank = 0; rank < size(); ++rank) counts.push_back(slice(rank).count);
    BlockMove blocks = BlockMove::allgatherv(counts);
    if (request_.call.kind == CallKind::kReduce) blocks.only_to(request_.call.root);
    return move_blocks(steps_, {blocks, element_, result, request_.recv + part.first * element_});
  }

  MpiSteps& steps_;
  const Request& request_;
  std::size_t element_;
  std::uint64_t ranks_;
  CanonicalReduction tree_;
};

}  // namespace

Outcome reduce_by_mpi(MpiSteps& steps, const Request& request) {
  MpiReduction reduction(steps, request);
  switch (request.call.kind) {
    case CallKind::kReduceScatter: return reduction.scatter();
    case CallKind::kScan: return reduction.scan();
    default: return reduction.of_all();
  }
}

}  // namespace ddl::runtime

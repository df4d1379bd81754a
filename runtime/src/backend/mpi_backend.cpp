#include "runtime/src/backend/mpi_backend.h"

#include <algorithm>

#include "runtime/src/backend/mpi_steps.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/canonical_tree.h"
#include "runtime/src/collective/parts.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {

// Collectives that combine elements: MPI moves them, libddl's kernels combine them along the canonical tree.

/// An allreduce, reduce, reduce_scatter or scan whose ranks have agreed on it.
Outcome reduce_by_mpi(MpiSteps& steps, const Request& request);

namespace {

/// If the inputs of all ranks together have at most this number of bytes, they are sent to all ranks: one step, not
/// two.
constexpr std::size_t kMaxGathered = std::size_t{32} << 10;
/// Slices of at least this number of bytes are not copied by MPI from a rank to itself.
constexpr std::size_t kMinKept = std::size_t{32} << 10;
/// Tensors of at least this number of bytes are not packed with others: a step of their own costs less than the copies.
constexpr std::size_t kMinUnpacked = std::size_t{256} << 10;

class MpiReduction {
 public:
  MpiReduction(MpiSteps& steps, const Request& request)
      : steps_(steps),
        request_(request),
        element_(request.element_size),
        ranks_(static_cast<std::uint64_t>(steps.size())),
        contributes_(request.contributes_data(steps.rank())),
        given_before_(request.contributors_before(steps.rank())),
        tensors_(request),
        tree_(request.reduction(), steps.layout()) {}

  /// An allreduce or a reduce.
  Outcome of_all() {
    const auto combine = [this](const ElementRange& part) {
      const Row row = row_of(part);
      auto done = part.count * element_ * ranks_ <= kMaxGathered ? everything(row) : slices(row);
      if (done && row.is_packed && contributes_) unpack(part);
      return done;
    };
    const std::uint64_t most = chunk_bytes() / element_;
    // Ranks without data do not know the tensors.
    if (request_.parts.empty() || !request_.contributes.empty())
      return in_parts({0, request_.call.count}, most, combine);
    const std::size_t long_bytes = std::min<std::size_t>(kMinUnpacked, chunk_bytes() / 4);
    std::uint64_t first = 0, end = 0;
    for (const Part& tensor : request_.parts) {
      const bool is_long = tensor.count * element_ >= long_bytes;
      if (is_long && first < end) {
        if (auto done = in_parts({first, end - first}, most, combine); !done) return done;
        first = end;
      }
      end += tensor.count;
      if (!is_long) continue;
      if (auto done = in_parts({first, end - first}, most, combine); !done) return done;
      first = end;
    }
    return in_parts({first, end - first}, most, combine);
  }

  Outcome scan() {
    return in_parts({0, request_.call.count}, chunk_bytes() / element_ / ranks_,
                    [this](const ElementRange& part) -> Outcome {
                      const Row row = row_of(part);
                      if (auto gathered = gather_inputs(row); !gathered) return gathered;
                      const auto inputs = inputs_of(part.count);
                      reduce_chunk(request_.reduction(),
                                   std::span(inputs).first(static_cast<std::size_t>(own()) + 1), row.recv,
                                   part.count);
                      return {};
                    });
  }

  Outcome scatter() {
    const BlockMove blocks = BlockMove::reduce_scatter(request_.counts);
    const std::uint64_t per_chunk = std::max<std::uint64_t>(chunk_bytes() / element_ / ranks_, 1);
    // MPI's offsets into the input are ints.
    const bool packs = request_.call.count * element_ > steps_.limits().step_bytes;
    for (std::uint64_t first = 0; first < blocks.longest(); first += per_chunk) {
      // The same for every sender. A rank that contributes no data takes no result.
      const auto chunk = [&](int to) {
        return request_.contributes_data(to) ? blocks.part(0, to, first / per_chunk, per_chunk)
                                             : ElementRange();
      };
      auto moved = packs ? spread_packed(chunk, blocks) : spread(request_.send, [&](int to) -> ElementRange {
        const ElementRange range = chunk(to);
        return {blocks.send_offset(0, to) + range.first, range.count};
      });
      if (!moved) return moved;
      const ElementRange mine = chunk(own());
      if (mine.count > 0)
        tree_.reduce(inputs_of(mine.count), request_.recv + mine.first * element_, mine.count);
    }
    return {};
  }

 private:
  /// A range of this rank's elements in contiguous memory: in its buffers, or else in MpiBuffers::packed, where an
  /// input of several tensors is packed. A rank without data has a place for the result there.
  struct Row {
    const std::byte* send;
    std::byte* recv;
    std::uint64_t count;
    bool is_packed;
  };

  contract::Event copy_event(contract::Event::Kind kind, const ElementRange& range) const {
    contract::Event event = event_of(request_.call, range.count * element_);
    event.kind = kind;
    event.generation = steps_.generation();
    event.call = steps_.channel().call().number;
    return event;
  }

  Row row_of(const ElementRange& range) {
    if (contributes_) {
      const Part here = tensors_.contiguous(range.first, range.count);
      if (here.send != nullptr) return {here.send, here.recv, range.count, false};
    }
    buffers().packed.resize(range.count * element_);
    std::byte* const packed = buffers().packed.data();
    if (contributes_) {
      const LoggedInterval logged(steps_.events(), copy_event(contract::Event::Kind::kPacking, range));
      tensors_.for_parts(range.first, range.count,
                         [&](const std::byte* send, std::byte*, std::uint64_t count, std::uint64_t at) {
                           copy_bytes(packed + at * element_, send, count * element_);
                         });
    }
    return {packed, packed, range.count, true};
  }
  void unpack(const ElementRange& range) {
    const LoggedInterval logged(steps_.events(), copy_event(contract::Event::Kind::kUnpacking, range));
    const std::byte* const packed = buffers().packed.data();
    tensors_.for_parts(range.first, range.count,
                       [&](const std::byte*, std::byte* recv, std::uint64_t count, std::uint64_t at) {
                         copy_bytes(recv, packed + at * element_, count * element_);
                       });
  }

  int own() const { return steps_.rank(); }
  std::uint64_t chunk_bytes() const { return steps_.limits().chunk_bytes; }
  int size() const { return static_cast<int>(ranks_); }
  /// This rank's input can be read in place, although the result may be written over it.
  bool keeps_own(const Row& row) const {
    return contributes_ && (row.send != row.recv || tree_.may_write_over(given_before_));
  }
  bool receives() const { return request_.call.kind != CallKind::kReduce || request_.call.root == own(); }
  MpiBuffers& buffers() { return steps_.buffers(); }

  /// Does the work for consecutive parts of the range, of at most this number of elements.
  template <class Work>
  Outcome in_parts(const ElementRange& range, std::uint64_t elements, const Work& work) {
    elements = std::max<std::uint64_t>(elements, 1);
    for (std::uint64_t first = 0; first < range.count; first += elements) {
      const std::uint64_t count = std::min(elements, range.count - first);
      if (auto done = work(ElementRange{range.first + first, count}); !done) return done;
    }
    return {};
  }

  /// The elements of all ranks that give data, which lie in the receive buffer in rank order.
  std::vector<const std::byte*> inputs_of(std::uint64_t count) {
    std::vector<const std::byte*> inputs;
    const std::byte* next = buffers().inputs.data();
    for (int rank = 0; rank < size(); ++rank) {
      inputs.push_back(request_.contributes_data(rank) ? next : nullptr);
      if (request_.contributes_data(rank)) next += count * element_;
    }
    return inputs;
  }

  Outcome gather_inputs(const Row& row) {
    buffers().inputs.resize(ranks_ * row.count * element_);
    BlockMove blocks = BlockMove::allgather(size(), row.count);
    if (!request_.contributes.empty()) {
      std::vector<std::uint64_t> counts;
      for (int rank = 0; rank < size(); ++rank)
        counts.push_back(request_.contributes_data(rank) ? row.count : 0);
      blocks = BlockMove::allgatherv(counts);
    }
    return move_blocks(steps_, {blocks, element_, row.send, buffers().inputs.data()});
  }

  Outcome everything(const Row& row) {
    if (auto gathered = gather_inputs(row); !gathered) return gathered;
    if (receives()) tree_.reduce(inputs_of(row.count), row.recv, row.count);
    return {};
  }

  /// Sends every rank its range of this rank's input, and receives the ranges for this one of all ranks that give data
  /// into buffers().inputs. kept: this rank's part of it need not be copied there, if it can be read in the row; null
  /// on all ranks, or on none.
  template <class RangeFor>
  Outcome spread(const std::byte* send, RangeFor range_for, const Row* kept = nullptr) {
    MpiMove step;
    step.kind = MpiMove::Kind::kAlltoall;
    const std::size_t own_bytes = range_for(own()).count * element_;
    buffers().inputs.resize(ranks_ * own_bytes);
    step.is_even = kept == nullptr && request_.contributes.empty();
    const ElementRange first = range_for(0);
    int end = 0;
    for (int rank = 0; rank < size(); ++rank) {
      const ElementRange range = range_for(rank);
      step.is_even = step.is_even && range.count == first.count &&
                     range.first == first.first + static_cast<std::uint64_t>(rank) * first.count;
      step.sends.bytes.push_back(contributes_ ? static_cast<int>(range.count * element_) : 0);
      step.sends.offsets.push_back(static_cast<int>((range.first - first.first) * element_));
      step.receives.bytes.push_back(request_.contributes_data(rank) ? static_cast<int>(own_bytes) : 0);
      step.receives.offsets.push_back(end);
      end += step.receives.bytes.back();
    }
    if (kept != nullptr && keeps_own(*kept)) {
      const auto index = static_cast<std::size_t>(own());
      step.sends.bytes[index] = step.receives.bytes[index] = 0;
    }
    step.send = contributes_ ? send + first.first * element_ : send;
    step.recv = buffers().inputs.data();
    return steps_.move(std::move(step));
  }

  /// The same for chunks of blocks that lie too far from each other: through MpiBuffers::packed.
  template <class ChunkFor>
  Outcome spread_packed(ChunkFor chunk_for, const BlockMove& blocks) {
    std::vector<ElementRange> ranges;
    std::uint64_t end = 0;
    for (int to = 0; to < size(); ++to) {
      ranges.push_back({end, chunk_for(to).count});
      end += ranges.back().count;
    }
    buffers().packed.resize(end * element_);
    for (int to = 0; contributes_ && to < size(); ++to) {
      const ElementRange& range = ranges[to];
      const std::uint64_t from = blocks.send_offset(0, to) + chunk_for(to).first;
      copy_bytes(buffers().packed.data() + range.first * element_, request_.send + from * element_,
                 range.count * element_);
    }
    return spread(buffers().packed.data(), [&](int to) { return ranges[to]; });
  }

  Outcome slices(const Row& row) {
    const auto slice = [&](int rank) { return even_part(row.count, rank, size()); };
    // The same on all ranks.
    const bool may_keep = row.count / ranks_ * element_ >= kMinKept;
    if (auto moved = spread(row.send, slice, may_keep ? &row : nullptr); !moved) return moved;
    const ElementRange mine = slice(own());
    auto inputs = inputs_of(mine.count);
    if (may_keep && keeps_own(row)) inputs[own()] = row.send + mine.first * element_;
    // Directly into recv, if this rank receives the complete result.
    if (!receives()) buffers().result.resize(mine.count * element_);
    std::byte* const result = receives() ? row.recv + mine.first * element_ : buffers().result.data();
    tree_.reduce(inputs, result, mine.count);
    std::vector<std::uint64_t> counts;
    for (int rank = 0; rank < size(); ++rank) counts.push_back(slice(rank).count);
    BlockMove blocks = BlockMove::allgatherv(counts);
    if (request_.call.kind == CallKind::kReduce) blocks.only_to(request_.call.root);
    return move_blocks(steps_, {blocks, element_, result, row.recv});
  }

  MpiSteps& steps_;
  const Request& request_;
  std::size_t element_;
  std::uint64_t ranks_;
  bool contributes_;  ///< this rank has data
  int given_before_;  ///< ranks before this one that have data
  CallBuffers tensors_;
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

std::unique_ptr<CollectiveBackend> MpiBackend::make_duplicate(Connections& duplicate) {
  return std::make_unique<MpiBackend>(duplicate, steps_.limits(), steps_.take_for_duplicate());
}

Outcome MpiBackend::run(const Request& request, CallDeadline deadline) {
  if (const auto allowed = steps_.allows_call(); !allowed)
    return fail(DDL_ERROR_UNSUPPORTED, allowed.error().message());
  steps_.channel().set_path(Path::kMpi);
  if (request.peer >= 0) return transfer(request, deadline);
  if (request.only_compares) return agree(request.call, deadline);
  if (request.call.kind == CallKind::kAlltoallv) return alltoallv_by_mpi(request, deadline);
  if (auto agreed = agree(request.call, deadline); !agreed) return agreed;
  steps_.channel().pass(FaultPoint::kInRound);
  if (const auto blocks = BlockMove::of(request, steps_.size()))
    return move_blocks(steps_, {*blocks, request.element_size, request.send, request.recv});
  return has_op(request.call.kind) ? reduce_by_mpi(steps_, request) : Outcome();
}

Outcome MpiBackend::agree(const Call& call, CallDeadline deadline) {
  Channel& channel = steps_.channel();
  if (auto begun = channel.begin(call, deadline, 0); !begun) return begun;
  if (auto synchronized = steps_.synchronize_host(); !synchronized) return synchronized;
  if (steps_.layout().host_count() == 1) return CallAgreement::of_host(channel).outcome();
  channel.pass(FaultPoint::kBeforeHosts);
  const std::uint64_t print = call.fingerprint();
  steps_.buffers().own_print = {print, ~print};
  if (auto compared = steps_.min_prints(); !compared) return compared;
  channel.pass(FaultPoint::kAfterHosts);
  const auto& min_and_complement = steps_.buffers().min_print;
  return min_and_complement[0] == ~min_and_complement[1] ? Outcome() : describe_mismatch(call);
}

Outcome MpiBackend::describe_mismatch(const Call& call) {
  MpiBuffers& buffers = steps_.buffers();
  buffers.own_stamp = steps_.stamp_of(call);
  buffers.stamps.resize(static_cast<std::size_t>(steps_.size()));
  const BlockMove blocks = BlockMove::allgather(steps_.size(), sizeof(CallStamp));
  auto gathered = move_blocks(steps_, {blocks, 1, reinterpret_cast<const std::byte*>(&buffers.own_stamp),
                                       reinterpret_cast<std::byte*>(buffers.stamps.data())});
  if (!gathered) return gathered;
  // In the order of the tree, so that the message names the same two ranks as libddl's own backend.
  CallAgreement agreement;
  agreement.first = buffers.stamps.front();
  for (const auto& host : steps_.layout().hosts) {
    for (const int rank : host) {
      const CallStamp& stamp = buffers.stamps[rank];
      if (agreement.has_mismatch != 0 || stamp.call.fingerprint() == agreement.first.call.fingerprint())
        continue;
      agreement.has_mismatch = 1;
      agreement.mismatched = stamp;
    }
  }
  return agreement.outcome();
}

Outcome MpiBackend::alltoallv_by_mpi(const Request& request, CallDeadline deadline) {
  const Channel& channel = steps_.channel();
  return alltoallv(
      request, steps_.size(), steps_.rank(), channel.self().host,
      [&](const Request& part, const BlockMove& blocks) -> Outcome {
        if (auto agreed = agree(part.call, deadline); !agreed) return agreed;
        return move_blocks(steps_, {blocks, part.element_size, part.send, part.recv});
      },
      [&] { return channel.call().number; });
}

Outcome MpiBackend::transfer(Request request, CallDeadline deadline) {
  const bool sends = request.call.root == steps_.rank();
  Call call = request.call;
  call.root = steps_.job_ranks()[call.root];
  call.number = ++transfers_[request.peer];
  Channel& channel = steps_.channel();
  if (auto begun = channel.begin(call, deadline, 0); !begun) return begun;
  MpiBuffers& buffers = steps_.buffers();
  buffers.own_stamp = steps_.stamp_of(call);
  buffers.stamps.resize(1);
  auto compared = steps_.exchange(request.peer, std::as_bytes(std::span(&buffers.own_stamp, 1)),
                                  std::as_writable_bytes(std::span(buffers.stamps)), true);
  if (!compared) return compared;
  const CallStamp& theirs = buffers.stamps.front();
  if (theirs.call.fingerprint() != call.fingerprint()) {
    const bool is_first = steps_.rank() < request.peer;
    const CallStamp& first = is_first ? buffers.own_stamp : theirs;
    return CallAgreement{first, is_first ? theirs : buffers.own_stamp, 1, 0}.outcome();
  }
  if (request.only_compares) return {};
  const std::uint64_t total = call.count * request.element_size;
  const std::uint64_t max_bytes = steps_.limits().step_bytes;
  for (std::uint64_t at = 0; at < total; at += max_bytes) {
    const std::size_t bytes = std::min(max_bytes, total - at);
    auto moved = sends ? steps_.exchange(request.peer, {request.send + at, bytes}, {}, false)
                       : steps_.exchange(request.peer, {}, {request.recv + at, bytes}, false);
    if (!moved) return moved;
  }
  return {};
}

}  // namespace ddl::runtime

#include "runtime/src/collective/cluster.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/cluster_move.h"
#include "runtime/src/collective/cluster_reduce.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {
namespace {

/// The message by which hosts compare their calls. The first slice follows, of payload_bytes bytes.
struct AgreementFrame {
  static constexpr std::uint32_t kMagic = kOrderedMagic;
  std::uint32_t magic = kMagic;
  std::int32_t awaited = 0;  ///< 1 + the rank of the job that the sender has waited for last; 0: none
  std::uint64_t payload_bytes = 0;
  CallAgreement agreement;
};
static_assert(sizeof(AgreementFrame) > sizeof(SliceFrame),
              "a rank that expects a slice's frame reads no more");

}  // namespace

Cluster::Cluster(Connections& connections)
    : connections_(connections),
      layout_(connections.layout()),
      areas_(SlotAreas::in_slot(connections.channel().slot_bytes())),
      channel_(connections.channel()),
      lane_(connections.lane()),
      has_mesh_(layout_.host_count() <= kMeshHosts),
      agreement_steps_(gathering_steps(layout_.host_count(), layout_.own)) {}

Outcome Cluster::run(const Request& request, CallDeadline deadline) {
  const int ranks = layout_.size();
  const Call& call = request.call;
  channel_.set_path(Path::kBlocks);
  if (request.only_compares) return compare(call, deadline);
  if (const auto blocks = BlockMove::of(request, ranks)) {
    return move(request, *blocks, deadline);
  }
  switch (call.kind) {
    case CallKind::kAllreduce:
    case CallKind::kReduce: {
      ClusterReduce work(context(), request);
      channel_.set_path(path_of(work.algorithm()));
      return run(work, call, deadline);
    }
    case CallKind::kReduceScatter: {
      ClusterReduceScatter work(context(), request);
      return run(work, call, deadline);
    }
    case CallKind::kScan: return scan(request, deadline);
    case CallKind::kAlltoallv: {
      const int own = layout_.local()[channel_.index()];
      return alltoallv(
          request, ranks, own, channel_.self().host,
          [&](const Request& part, const BlockMove& blocks) { return move(part, blocks, deadline); },
          [&] { return channel_.call().number; });
    }
    case CallKind::kBarrier:
    case CallKind::kMakeSets:
    case CallKind::kAgree:
    case CallKind::kTimeline: return compare(call, deadline);
    default: break;
  }
  DDL_CHECK(false, call.describe());
  return {};
}

Outcome Cluster::compare(const Call& call, CallDeadline deadline) {
  ClusterBarrier work(context());
  return run(work, call, deadline);
}

Outcome Cluster::move(const Request& request, const BlockMove& blocks, CallDeadline deadline) {
  const std::size_t element = request.element_size;
  const MoveInBuffers here{blocks, element, request.send, request.recv};
  if (ClusterSmallMove::can_run(context(), blocks, element)) {
    ClusterSmallMove work(context(), here);
    return run(work, request.call, deadline);
  }
  if (layout_.max_local_size() == 1) {
    ClusterDirectMove work(context(), here);
    return run(work, request.call, deadline);
  }
  ClusterMove work(context(), here);
  return run(work, request.call, deadline);
}

Outcome Cluster::scan(const Request& request, CallDeadline deadline) {
  // Every rank gets the inputs of all, a part at a time, and combines those of the ranks up to its own.
  constexpr std::size_t kPartBytes = std::size_t{1} << 20;
  const std::size_t element = request.element_size;
  const auto ranks = static_cast<std::uint64_t>(layout_.size());
  const auto own = static_cast<std::size_t>(layout_.local()[channel_.index()]);
  const Chunking parts{request.call.count, std::max<std::uint64_t>(kPartBytes / element / ranks, 1), 1};
  Request part = request;
  std::vector<std::byte> inputs;
  for (std::uint64_t index = 0; index < std::max<std::uint64_t>(parts.chunks(), 1); ++index) {
    const ElementRange range = parts.chunk(index);
    const std::size_t bytes = range.count * element;
    inputs.resize(ranks * bytes);
    const std::size_t offset = range.first * element;
    part.send = request.send + offset;
    part.recv = inputs.data();
    auto moved = move(part, BlockMove::allgather(static_cast<int>(ranks), range.count), deadline);
    if (!moved) return moved;
    part.call.number = channel_.call().number;
    std::vector<const std::byte*> first_ranks;
    for (std::size_t rank = 0; rank <= own; ++rank) first_ranks.push_back(inputs.data() + rank * bytes);
    if (bytes > 0) reduce_chunk(request.reduction(), first_ranks, request.recv + offset, range.count);
  }
  return {};
}

Outcome Cluster::have_mesh() {
  if (has_mesh_) return {};
  channel_.pass(FaultPoint::kBeforeMesh);
  if (auto connected = connections_.connect_mesh(); !connected) return connected;
  has_mesh_ = true;
  return {};
}

Outcome Cluster::run(ClusterCall& work, const Call& call, CallDeadline deadline) {
  if (auto begun = channel_.begin(call, deadline, areas_.slot_bytes()); !begun) return begun;
  const std::uint64_t chunks = work.chunks();
  const std::uint64_t first = work.piggybacks_first() && chunks > 0 ? 1 : 0;
  if (first == 1) work.fill_area(0);
  if (auto synchronized = channel_.synchronize(); !synchronized) return synchronized;
  CallAgreement agreement = CallAgreement::of_host(channel_);
  channel_.pass(FaultPoint::kBeforeHosts);
  std::optional<LoggedInterval> exchange;
  if (lane_ != nullptr) exchange.emplace(connections_.events(), exchange_event());
  if (lane_ != nullptr) {
    if (auto agreed = agree(agreement, work, first == 1); !agreed) return agreed;
    if (first == 1 && agreement.has_mismatch == 0) {
      work.publish_area(0, runs_[0].buffers());
    }
    std::memcpy(areas_.agreement(channel_.own_slot()), &agreement, sizeof agreement);
  }
  channel_.pass(FaultPoint::kAfterHosts);

  // Round r fills chunk first + r and publishes the one that was filled depth rounds before. There is at least one
  // round, because it passes the agreement to the ranks without a lane.
  const std::uint64_t count = chunks - first;
  const std::uint64_t depth = std::min<std::uint64_t>(kDepth, count);
  const std::uint64_t rounds = std::max<std::uint64_t>(count + depth, 1);
  first_running_ = end_running_ = first;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t filled = first + round, published = first + round - depth;
    const bool fills = round < count, publishes = round >= depth && round - depth < count;
    if (publishes && lane_ != nullptr) {
      if (auto finished = finish_run(published); !finished) return finished;
      work.publish_area(published, run_of(published).buffers());
    }
    if (published + 1 == chunks) exchange.reset();
    if (fills) work.fill_area(filled);
    if (auto synchronized = channel_.synchronize(); !synchronized) return synchronized;
    if (round == 0) {
      // The first local rank always has a lane, and all lanes have the same agreement.
      std::memcpy(&agreement, areas_.agreement(channel_.slot(0)), sizeof agreement);
      if (auto same = agreement.outcome(); !same) return same;
      if (first == 1) work.take(0);
      if (fills && work.needs_mesh()) {
        if (auto connected = have_mesh(); !connected) return connected;
      }
    }
    if (fills && lane_ != nullptr) begin_run(filled, work);
    if (fills) work.take_inputs(filled);
    channel_.pass(FaultPoint::kInRound);
    if (publishes) work.take(published);
  }
  return {};
}

contract::Event Cluster::exchange_event() const {
  contract::Event event = event_of(channel_.call(), 0);
  event.kind = contract::Event::Kind::kExchange;
  event.generation = connections_.membership().generation;
  event.call = channel_.call().number;
  return event;
}

Outcome Cluster::agree(CallAgreement& agreement, ClusterCall& work, bool piggybacks) {
  SliceBuffers& buffers = runs_[0].buffers();
  if (piggybacks) {
    (void)work.gather(0, buffers);
    buffers.keep_received(buffers.value.size());
  }
  std::vector<std::byte> scrap;
  for (const TreeStep& step : agreement_steps_) {
    AgreementFrame own, other;
    own.agreement = agreement;
    own.awaited = channel_.waits().last() + 1;
    Pending sending = 0, receiving = 0;
    if (step.send.count > 0) {
      std::span<const std::byte> payload;
      if (piggybacks && agreement.has_mismatch == 0) payload = work.sent_with(step, buffers);
      own.payload_bytes = payload.size();
      lane_->post_send(step.host, std::as_bytes(std::span(&own, 1)), sending);
      lane_->post_send(step.host, payload, sending);
      // The partner waits for it; what it has sent itself need not be here.
      lane_->move();
    }
    const auto drive = [&](auto done) { return lane_->drive(channel_.call(), channel_.deadline(), done); };
    if (step.recv.count > 0) {
      lane_->post_receive(step.host, std::as_writable_bytes(std::span(&other, 1)), receiving);
      const std::int64_t slept = lane_->slept();
      if (auto driven = drive([&] { return receiving == 0; }); !driven) return driven;
      note_wait(step.host, other.awaited, lane_->slept() - slept);
      if (other.magic != AgreementFrame::kMagic || other.payload_bytes > areas_.area_bytes)
        return lane_->out_of_step(step.host, channel_.call());
      const CallAgreement merged = step.merge == Merge::kReplace ? other.agreement
                                   : step.merge == Merge::kPeerOnRight
                                       ? CallAgreement::merge(agreement, other.agreement)
                                       : CallAgreement::merge(other.agreement, agreement);
      const bool is_usable = merged.has_mismatch == 0;
      const std::size_t expected = piggybacks ? work.received_with(step, buffers) : 0;
      if (is_usable && other.payload_bytes != expected) return lane_->out_of_step(step.host, channel_.call());
      if (!is_usable) scrap.resize(other.payload_bytes);
      lane_->post_receive(step.host, is_usable ? buffers.received.first(expected) : std::span(scrap),
                          receiving);
      if (auto driven = drive([&] { return receiving == 0 && sending == 0; }); !driven) return driven;
      if (is_usable && expected > 0) work.merge_received(step, buffers);
      agreement = merged;
    } else if (auto driven = drive([&] { return sending == 0; }); !driven) {
      return driven;
    }
    channel_.pass(FaultPoint::kInHosts);
  }
  return {};
}

void Cluster::note_wait(int host, int awaited_by_partner, std::int64_t nanoseconds) {
  // A shorter sleep may be the way through the network.
  constexpr std::int64_t kLate = 200'000;
  if (nanoseconds < kLate) return;
  const int partner = layout_.hosts[host][static_cast<std::size_t>(channel_.index())];
  const bool is_known = awaited_by_partner > 0 && awaited_by_partner < std::numeric_limits<int>::max();
  const int awaited = is_known ? awaited_by_partner - 1 : connections_.job_ranks()[partner];
  channel_.waits().add(channel_.call().kind, awaited, nanoseconds);
}

void Cluster::begin_run(std::uint64_t chunk, ClusterCall& work) {
  HostRun& run = run_of(chunk);
  run.buffers().received = {};
  Route route = work.gather(chunk, run.buffers());
  lane_->begin_chunk(channel_.call().number, chunk, work.longest_slice());
  run.begin(*lane_, std::move(route), layout_.host_count(), work.combine(), channel_.call().number, chunk);
  end_running_ = chunk + 1;
  // Sends as much as possible now; the rest progresses whenever this rank waits for its lane.
  while (lane_->move()) advance_runs();
}

bool Cluster::advance_runs() {
  bool all_done = true;
  for (std::uint64_t chunk = first_running_; chunk < end_running_; ++chunk) {
    HostRun& run = run_of(chunk);
    const std::size_t before = run.stage();
    if (!run.advance()) all_done = false;
    for (std::size_t passed = before; passed < run.stage(); ++passed) channel_.pass(FaultPoint::kAfterStage);
  }
  return all_done;
}

Outcome Cluster::finish_run(std::uint64_t chunk) {
  HostRun& run = run_of(chunk);
  auto driven = lane_->drive(channel_.call(), channel_.deadline(), [&] {
    advance_runs();
    return run.is_done();
  });
  if (!driven) return driven;
  first_running_ = chunk + 1;
  return {};
}

}  // namespace ddl::runtime

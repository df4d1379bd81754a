#include "runtime/src/backend/nccl_calls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "contract/environment.h"
#include "runtime/src/backend/device_call.h"
#include "runtime/src/backend/gpu_peer_info.h"

namespace ddl::runtime {

namespace {

/// The id of a communicator, from the rank that makes it. Plain data.
struct Id {
  nccl::UniqueId id{};
  TextField<200> error;  ///< "": there is one
};

/// NCCL reads its variables at its first use, so it is too late to set them here.
void warn_of_other_bits() {
  std::string unset;
  for (const auto& [name, value] : contract::kDeterministicNccl) {
    if (std::getenv(name) == nullptr) unset += std::string(" ") + name + "=" + value;
  }
  if (unset.empty()) return;
  (void)std::fprintf(
      stderr,
      "libddl: DDL_DETERMINISTIC=1, but NCCL may give other bits in another run: set%s before the "
      "program starts, as ddlrun does\n",
      unset.c_str());
}

bool has_data(const Call& call) { return call.kind == CallKind::kAlltoallv || call.count > 0; }

}  // namespace

NcclCalls::NcclCalls(JobResources& job, CollectiveBackend& host, Connections& connections)
    : job_(job),
      host_(host),
      connections_(connections),
      exchange_(host, connections),
      place_(job.launch_order) {}

NcclCalls::~NcclCalls() { (void)end(); }

Outcome NcclCalls::end() {
  Outcome outcome;
  if (watch_ && watch_->end()) {
    outcome = watch_->outcome();
  } else if (watch_) {
    // Its thread is inside NCCL, and may come back.
    (void)std::fprintf(stderr, "libddl: %s: a communicator of NCCL did not end in time\n",
                       connections_.self().label().c_str());
    (void)watch_.release();
    (void)communicator_.release();
  }
  watch_.reset();
  communicator_.reset();
  is_staged_ = true;
  return outcome;
}

std::optional<Outcome> NcclCalls::run(const Request& request, CallDeadline deadline) {
  if (watch_) {
    if (auto before = watch_->outcome(); !before) return before;
  }
  if (is_staged_ || !has_data(request.call) || !is_in_nccl(request, abilities_)) return std::nullopt;
  if (request.peer >= 0) return transfer(request, deadline);
  const bool is_new = !communicator_;
  if (is_new) {
    if (auto same = exchange_.compare(request, deadline); !same) return same;
    if (auto joined = join(request, deadline); !joined) return joined;
    if (!communicator_ || !is_in_nccl(request, abilities_)) return std::nullopt;
  }
  const bool knows_counts = request.call.kind != CallKind::kAlltoallv;
  const bool agrees_first = is_new || !knows_counts || request.has_events || job_.settings.agrees_first ||
                            !host_.allows_own_threads();
  if (!agrees_first) {
    if (const auto alone = place_.alone()) return launch_alone(request, deadline);
  }
  if (auto settled = watch_->settle(); !settled) return settled;
  if (!is_new) {
    if (auto same = exchange_.compare(request, deadline); !same) return same;
  }
  if (knows_counts) return launch_in_order(request, nullptr, deadline);
  DDL_ASSIGN(blocks, exchange_.exchange_counts(request, deadline));
  return launch_in_order(request, &blocks, deadline);
}

std::optional<Outcome> NcclCalls::transfer(const Request& request, CallDeadline deadline) {
  // Two ranks cannot make the communicator of all, and know alike whether it is there.
  if (!communicator_ || host_.operations() != contract::CpuOperations::kDdl) return std::nullopt;
  if (auto settled = watch_->settle(); !settled) return settled;
  if (auto same = exchange_.compare(request, deadline); !same) return same;
  return launch_in_order(request, nullptr, deadline);
}

std::uint64_t NcclCalls::next_number() const {
  const bool is_counted = !watch_ || watch_->uncompared() == 0;
  return (is_counted ? connections_.channel().call().number : last_number_) + 1;
}

Outcome NcclCalls::join(const Request& request, CallDeadline deadline) {
  DDL_ASSIGN(peers, exchange_.gather(NcclPeerInfo::of(request.device, job_.settings.gpu_operations,
                                                      connections_.self().host),
                                     deadline));
  if (is_too_early(peers)) return {};
  const auto all = [&](auto has) { return std::all_of(peers.begin(), peers.end(), has); };
  const std::string reason = obstacle_of(peers, connections_.job_ranks());
  if (reason.empty()) {
    const auto have = [&](Float8Formats formats) {
      return all([&](const NcclPeerInfo& info) { return info.float8 == formats; });
    };
    abilities_.has_kernels = all([](const NcclPeerInfo& info) { return info.has_kernels != 0; });
    abilities_.has_ocp = have(Float8Formats::kOcp);
    abilities_.has_fnuz = have(Float8Formats::kFnuz);
    return make_communicator(*request.device, deadline);
  }
  if (!all([](const NcclPeerInfo& info) { return info.operations != contract::GpuOperations::kNccl; })) {
    // The next call says it again.
    return fail(DDL_ERROR_UNSUPPORTED, std::string(contract::env::kGpuOperations) +
                                           "=nccl, but NCCL cannot be used: " + reason +
                                           "; auto goes through CPU memory instead");
  }
  is_staged_ = true;
  if (job_.settings.verbose && connections_.membership().rank == 0)
    (void)std::fprintf(stderr, "libddl: NCCL is not used: %s\n", reason.c_str());
  return {};
}

Outcome NcclCalls::make_communicator(Device& device, CallDeadline deadline) {
  const auto library = NcclLibrary::load(device.runtime().collectives_library());
  DDL_CHECK(library.has_value(), library.error().message());
  const Call call = connections_.channel().call();
  const CurrentDevice current(device);
  if (!current.status()) return give_up(connections_, call, current.status().error());
  if (job_.settings.is_deterministic && connections_.membership().rank == 0) warn_of_other_bits();
  if (auto ended = wait_for_others(device, deadline); !ended) return ended;
  Id id;
  const Membership& membership = connections_.membership();
  if (membership.rank == 0) {
    const auto made =
        (*library)->check("ncclGetUniqueId", (*library)->functions().ncclGetUniqueId(&id.id), nullptr);
    if (!made) id.error = TextField<200>::of(made.error().message());
  }
  DDL_TRY(exchange_.broadcast(id, deadline));
  const auto because = [](const Error& error) {
    return Error(error.code(), error.message() + "; DDL_GPU_OPERATIONS=staged does without NCCL");
  };
  if (const std::string error = id.error.str(); !error.empty())
    return give_up(connections_, call, because(Error(ErrorCode::kSystem, error)));
  auto joined = NcclCommunicator::join(**library, device, id.id, membership.rank, membership.size, [&] {
    return connections_.abort().is_raised() || deadline.has_passed_by(2);
  });
  if (!joined) {
    if (!connections_.abort().is_raised() && joined.error().code() == ErrorCode::kTimeout)
      connections_.abort().raise_timeout(deadline.seconds, call, connections_.self());
    return give_up_unless_aborted(connections_, call, because(joined.error()));
  }
  communicator_ = *std::move(joined);
  place_.set(device, communicator_->shared_stream());
  auto marker = DeviceEvent::make(device);
  if (!marker) return give_up(connections_, call, marker.error());
  marker_ = *std::move(marker);
  CallWatch::Actions actions;
  actions.compare = [this](const Call& compared, CallDeadline limit) -> Outcome {
    Request request;
    request.call = compared;
    request.call.number = 0;  // the channel counts it now
    request.job_ranks = connections_.job_ranks();
    if (auto same = exchange_.compare(request, limit); !same) return same;
    // This call is on its stream already. It was this rank's only one then, so its order does not matter here.
    const auto agreed = exchange_.largest(0, limit);
    return agreed ? Outcome() : fail(agreed.error());
  };
  actions.check_health = [communicator = communicator_.get()] { return communicator->async_error(); };
  actions.give_up = [communicator = communicator_.get()] { communicator->give_up(); };
  auto watch = CallWatch::start(device, connections_, call, std::move(actions));
  if (!watch) return give_up(connections_, call, watch.error());
  watch_ = *std::move(watch);
  // Nobody's first call may wait for a rank that has failed until now.
  const auto ready = exchange_.largest(0, deadline);
  return ready ? Outcome() : fail(ready.error());
}

Outcome NcclCalls::wait_for_others(Device& device, CallDeadline deadline) {
  const Call call = connections_.channel().call();
  auto event = DeviceEvent::make(device);
  if (!event) return give_up(connections_, call, event.error());
  for (const LaunchOrder::Stream& other : place_.others()) {
    if (other.device != &device) continue;
    if (auto marked = device.record(event->get(), other.stream->get()); !marked)
      return give_up(connections_, call, marked.error());
    auto ended = wait_on_cpu(device, event->get(), other.stream->get(), connections_, call, deadline);
    if (!ended) return ended;
  }
  return {};
}

Outcome NcclCalls::launch_in_order(const Request& request, const BlockMove* blocks, CallDeadline deadline) {
  Launched launched;
  {
    LaunchOrder::Turn turn(job_.launch_order, connections_.self().rank);
    DDL_ASSIGN(agreed, exchange_.largest(turn.proposal(), deadline, request.peer));
    turn.wait(agreed);
    launched.call = request.call;
    launched.call.number = last_number_ = connections_.channel().call().number;
    if (auto put = launch(request, blocks, launched, deadline); !put) return put;
  }
  if (!request.has_events) {
    watch_->add(launched.call, deadline, *std::move(launched.end));
    return {};
  }
  return wait_for_end(request, launched, deadline);
}

Outcome NcclCalls::launch_alone(const Request& request, CallDeadline deadline) {
  Launched launched;
  launched.call = request.call;
  launched.call.number = last_number_ = next_number();
  // NCCL may wait for other ranks when it connects with them, and these for the comparison.
  watch_->add_uncompared(launched.call, deadline);
  if (auto put = launch(request, nullptr, launched, deadline); !put) return put;
  watch_->set_end(*std::move(launched.end));
  return {};
}

Outcome NcclCalls::launch(const Request& request, const BlockMove* blocks, Launched& launched,
                          CallDeadline deadline) {
  Device& device = communicator_->device();
  const auto put_call = [&]() -> Status {
    if (request.device != nullptr && request.device != &device)
      return fail(moved_to_another_gpu(device, *request.device));
    DDL_TRY(begin(request));
    DDL_TRY(put(request, blocks, launched,
                [&] { return connections_.abort().is_raised() || deadline.has_passed_by(2); }));
    DDL_ASSIGN(end, watch_->make_event());
    DDL_TRY(device.record(end.get(), communicator_->stream()));
    launched.end = std::move(end);
    if (request.device == nullptr || request.has_events) return {};
    return device.wait(request.stream, launched.end->get());
  };
  const CurrentDevice current(device);
  if (!current.status()) return give_up(connections_, launched.call, current.status().error());
  const auto done = put_call();
  if (done) return {};
  if (!connections_.abort().is_raised() && done.error().code() == ErrorCode::kTimeout)
    connections_.abort().raise_timeout(deadline.seconds, launched.call, connections_.self());
  const Outcome failed = give_up_unless_aborted(connections_, launched.call, done.error());
  // The watch ends what is on the GPU. It may have found the reason before.
  const Outcome known = watch_->failed_outcome();
  return known ? failed : known;
}

Status NcclCalls::put(const Request& request, const BlockMove* blocks, Launched& launched,
                      const NcclCommunicator::MustStop& must_stop) {
  const std::uint64_t elements =
      request.call.kind == CallKind::kAlltoallv ? request.recv_capacity : request.call.count;
  const std::uint64_t bytes = elements * request.element_size;
  const bool is_on_gpu = request.device != nullptr && !request.recv_is_on_cpu;
  if (is_on_gpu || request.recv == nullptr || bytes == 0)
    return put_on_stream(*communicator_, request, blocks, abilities_, must_stop);
  // The result of a rank that contributes nothing to a gathered tensor, or has no room for it on its GPU.
  DDL_ASSIGN(result, communicator_->scratch(bytes));
  Request on_gpu = request;
  on_gpu.recv = result;
  launched.result = result;
  launched.result_bytes = bytes;
  return put_on_stream(*communicator_, on_gpu, blocks, abilities_, must_stop);
}

Status NcclCalls::begin(const Request& request) {
  Device& device = communicator_->device();
  StreamHandle stream = communicator_->stream();
  for (const LaunchOrder::Stream& other : place_.others()) {
    if (other.device != &device) continue;
    DDL_TRY(device.record(marker_.get(), other.stream->get()));
    DDL_TRY(device.wait(stream, marker_.get()));
  }
  if (request.device == nullptr) return {};
  for (EventHandle event : request.after) DDL_TRY(device.wait(stream, event));
  if (request.has_events) return {};
  DDL_TRY(device.record(marker_.get(), request.stream));
  return device.wait(stream, marker_.get());
}

Outcome NcclCalls::wait_for_end(const Request& request, Launched& launched, CallDeadline deadline) {
  Device& device = communicator_->device();
  const CurrentDevice current(device);
  if (!current.status()) return give_up(connections_, launched.call, current.status().error());
  const HealthCheck health{[this] { return communicator_->async_error(); }};
  const auto wait = [&] {
    return wait_on_cpu(device, launched.end->get(), communicator_->stream(), connections_, launched.call,
                       deadline, health);
  };
  Outcome ended = wait();
  if (ended && launched.result != nullptr) {
    auto copied = device.copy(request.recv, launched.result, launched.result_bytes, communicator_->stream());
    if (copied) copied = device.record(launched.end->get(), communicator_->stream());
    ended = copied ? wait() : give_up(connections_, launched.call, copied.error());
  }
  watch_->add(launched.call, deadline, *std::move(launched.end));
  // A communicator that is given up ends its part of a call, too.
  if (!connections_.abort().is_raised()) return ended;
  const Outcome failed = watch_->failed_outcome();
  return ended ? failed : ended;
}

}  // namespace ddl::runtime

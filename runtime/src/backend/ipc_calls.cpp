#include "runtime/src/backend/ipc_calls.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "base/deadline.h"

#include "runtime/src/backend/device_call.h"

namespace ddl::runtime {
namespace {

/// After an abort: how long the GPU may take to end what it can.
constexpr auto kIdleLimit = std::chrono::seconds(1);

/// Whether the ranks' parts of a call need nothing but the others' buffers.
bool is_by_ipc(const Request& request) {
  const Call& call = request.call;
  if (request.peer >= 0 || request.some_contribute_none || !request.contributes.empty()) return false;
  // What a call uses must be open at once.
  if (2 * request.parts.size() > kMostOpened) return false;
  if (call.kind == CallKind::kAlltoallv) return true;
  if (call.count == 0) return false;
  switch (call.kind) {
    case CallKind::kAllreduce:
    case CallKind::kReduce:
    case CallKind::kReduceScatter:
    case CallKind::kBroadcast:
    case CallKind::kAllgather:
    case CallKind::kAllgatherv:
    case CallKind::kGather:
    case CallKind::kScatter:
    case CallKind::kAlltoall: return true;
    default: return false;
  }
}

/// The elements of a call that a rank combines: whole packs, but for the last rank.
ElementRange own_part(std::uint64_t count, int rank, int size, std::size_t element) {
  const std::uint64_t lanes = kPackBytes / element;
  const ElementRange packs = even_part(count / lanes, rank, size);
  const std::uint64_t first = packs.first * lanes;
  return {first, rank + 1 == size ? count - first : packs.count * lanes};
}

}  // namespace

IpcCalls::~IpcCalls() { (void)end(); }

Outcome IpcCalls::end() {
  is_off_ = true;
  if (!resources_) return {};
  // Nothing can hold up the thread: a call ends by itself, or is left to the GPU.
  const bool has_ended = resources_->watch->end();
  Outcome outcome = resources_->watch->outcome();
  if (!has_ended) (void)resources_->watch.release();
  const CurrentDevice current(*resources_->device);
  // To close memory that the GPU still uses may take as long as what it waits for, which may be a rank that has gone.
  if (connections_.abort().is_raised() && !becomes_idle()) (void)new Resources(*std::move(resources_));
  resources_.reset();
  return outcome;
}

bool IpcCalls::becomes_idle() {
  Device& device = *resources_->device;
  if (!device.record(resources_->marker.get(), resources_->stream.get())) return false;
  for (const auto limit = Deadline::after(kIdleLimit); !limit.has_passed();) {
    const auto done = device.is_done(resources_->marker.get());
    if (!done || *done) return done.has_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::optional<Outcome> IpcCalls::run(const Request& request, CallDeadline deadline) {
  if (resources_) {
    if (auto before = resources_->watch->outcome(); !before) return before;
  }
  if (is_off_ || !is_by_ipc(request)) return std::nullopt;
  if (auto same = exchange_.compare(request, deadline); !same) return same;
  if (!resources_) {
    if (auto joined = join(request, deadline); !joined) return joined;
    if (!resources_) return std::nullopt;
  }
  const CurrentDevice current(*resources_->device);
  if (!current.status())
    return give_up(connections_, connections_.channel().call(), current.status().error());
  return run_on_gpu(request, deadline);
}

Outcome IpcCalls::join(const Request& request, CallDeadline deadline) {
  if (const int hosts = connections_.membership().layout.host_count(); hosts > 1) {
    fall_back("the ranks are on " + std::to_string(hosts) + " hosts");
    return {};
  }
  IpcPeerInfo info;
  std::optional<SharedEvent> ready, done;
  const auto share = [](Device& device, std::optional<SharedEvent>& event, IpcHandle& handle,
                        std::uint64_t& own) -> Status {
    DDL_ASSIGN(taken, SharedEvent::take(device));
    DDL_ASSIGN(shared, device.share_event(taken.get()));
    handle = shared;
    own = reinterpret_cast<std::uintptr_t>(taken.get());
    event = std::move(taken);
    return {};
  };
  const auto fill = [&](Device& device) -> Status {
    const CurrentDevice current(device);
    DDL_TRY(current.status());
    DDL_TRY(device.can_share());
    DDL_ASSIGN(uuid, device.runtime().uuid(device.ordinal()));
    info.gpu = TextField<64>::of(uuid);
    DDL_TRY(share(device, ready, info.ready, info.own_ready));
    return share(device, done, info.done, info.own_done);
  };
  info.process = process_token();
  info.host = HostField::of(connections_.self().host);
  info.is_wanted = job_.settings.gpu_operations == contract::GpuOperations::kAuto ? 1 : 0;
  info.has_device = request.device == nullptr ? 0 : 1;
  if (request.device != nullptr && info.is_wanted != 0) {
    if (auto filled = fill(*request.device); !filled)
      info.obstacle = TextField<200>::of(filled.error().message());
  }
  DDL_ASSIGN(peers, exchange_.gather(info, deadline));
  if (is_too_early(peers)) return {};
  if (const std::string reason = obstacle_of(peers, connections_.job_ranks()); !reason.empty()) {
    fall_back(reason);
    return {};
  }
  return prepare(*request.device, std::move(*ready), std::move(*done), peers, deadline);
}

void IpcCalls::fall_back(const std::string& reason) {
  is_off_ = true;
  if (job_.settings.verbose && connections_.membership().rank == 0)
    (void)std::fprintf(stderr, "libddl: what NCCL does not execute goes through CPU memory: %s\n",
                       reason.c_str());
}

Outcome IpcCalls::prepare(Device& device, SharedEvent ready, SharedEvent done,
                          std::span<const IpcPeerInfo> peers, CallDeadline deadline) {
  const CurrentDevice current(device);
  const Call call = connections_.channel().call();
  Result<Resources> made = [&]() -> Result<Resources> {
    DDL_TRY(current.status());
    return make_resources(device, std::move(ready), std::move(done), peers);
  }();
  const auto own =
      TextField<200>::of(made ? "" : connections_.self().label() + ": " + made.error().message());
  DDL_ASSIGN(errors, exchange_.gather(own, deadline));
  for (const TextField<200>& error : errors) {
    if (const std::string reason = error.str(); !reason.empty()) {
      fall_back(reason);
      return {};
    }
  }
  // It looks after deadlines only: calls have been compared, and what is on the GPU ends by itself.
  auto watch = CallWatch::start(device, connections_, call, {});
  if (!watch) return give_up(connections_, call, watch.error());
  made->watch = *std::move(watch);
  resources_.emplace(*std::move(made));
  if (job_.settings.verbose && connections_.membership().rank == 0)
    (void)std::fprintf(stderr, "libddl: the ranks share a GPU, and use each other's memory there\n");
  return {};
}

Result<IpcCalls::Resources> IpcCalls::make_resources(Device& device, SharedEvent ready, SharedEvent done,
                                                     std::span<const IpcPeerInfo> peers) {
  DDL_TRY(device.prepare_kernels(GpuProgram::kForIpc));
  DDL_ASSIGN(stream, DeviceStream::make(device));
  DDL_ASSIGN(marker, DeviceEvent::make(device));
  const int rank = connections_.membership().rank;
  Resources made{.device = &device,
                 .stream = std::move(stream),
                 .marker = std::move(marker),
                 .ready = std::move(ready),
                 .done = std::move(done),
                 .memory = std::make_unique<IpcMemory>(device, rank, peers)};
  const auto add = [&](std::vector<EventHandle>& all, const IpcPeerInfo& info, std::uint64_t own,
                       const IpcHandle& handle) -> Status {
    if (info.process == process_token()) {
      all.push_back(
          reinterpret_cast<EventHandle>(own));  // NOLINT(performance-no-int-to-ptr): of this process
      return {};
    }
    DDL_ASSIGN(opened, device.open_event(handle));
    all.push_back(opened);
    made.opened.push_back(DeviceEvent::own(device, opened));
    return {};
  };
  for (const IpcPeerInfo& info : peers) {
    DDL_TRY(add(made.all_ready, info, info.own_ready, info.ready));
    DDL_TRY(add(made.all_done, info, info.own_done, info.done));
  }
  return made;
}

std::optional<Outcome> IpcCalls::run_on_gpu(const Request& request, CallDeadline deadline) {
  const Call call = connections_.channel().call();
  const auto give = [&](const Error& error) { return give_up_unless_aborted(connections_, call, error); };
  if (request.device != nullptr && request.device != resources_->device)
    return give(moved_to_another_gpu(*resources_->device, *request.device));
  if (auto begun = begin(request); !begun) return give(begun.error());
  const Membership& membership = connections_.membership();
  IpcBuffers buffers(request, membership.rank, membership.size);
  if (auto gathered = buffers.gather(exchange_, *resources_->memory, deadline); !gathered) return gathered;
  DDL_ASSIGN(opened, open(request, buffers, deadline));
  if (!opened) return std::nullopt;
  auto blocks = BlockMove::of(request, membership.size);
  if (request.call.kind == CallKind::kAlltoallv) {
    DDL_ASSIGN(told, exchange_.exchange_counts(request, deadline));
    blocks = std::move(told);
  }
  if (auto done = put(request, buffers, blocks); !done) return give(done.error());
  // Now everybody has recorded that.
  DDL_TRY(exchange_.largest(0, deadline));
  return finish(request, deadline);
}

tl::expected<bool, Failure> IpcCalls::open(const Request& request, const IpcBuffers& buffers,
                                           CallDeadline deadline) {
  IpcMemory& memory = *resources_->memory;
  bool has_new = false, must_close = false;
  const bool can = buffers.for_each([&](int rank, const IpcBuffer& buffer) {
    if (memory.is_new(rank, buffer)) {
      has_new = true;
      must_close = must_close || memory.must_close(rank, buffer, 2 * buffers.parts());
    } else {
      (void)memory.find(rank, buffer);  // which keeps it open
    }
    // A rank that moves blocks within one buffer would overwrite what others have not read.
    if (request.call.kind == CallKind::kAlltoall && buffers.are_in_place(rank)) return false;
    return buffer.kind != IpcBuffer::Kind::kPrivate;
  });
  if (!can) return false;
  if (has_new) {
    std::vector<std::pair<int, IpcBuffer>> opened;
    if (must_close) {
      DDL_TRY(wait_for_last(deadline));
    }
    bool has_failed = false;
    buffers.for_each([&](int rank, const IpcBuffer& buffer) {
      if (!memory.is_new(rank, buffer)) return true;
      opened.emplace_back(rank, buffer);
      has_failed = !memory.open(rank, buffer) || has_failed;
      return true;
    });
    DDL_ASSIGN(failures, exchange_.largest(has_failed ? 1 : 0, deadline));
    if (failures != 0) {
      for (const auto& [rank, buffer] : opened) memory.refuse(rank, buffer);
    }
  }
  return buffers.for_each([&](int rank, const IpcBuffer& buffer) {
    return buffer.kind == IpcBuffer::Kind::kUnused || memory.find(rank, buffer) != nullptr;
  });
}

Status IpcCalls::begin(const Request& request) {
  Device& device = *resources_->device;
  const StreamHandle stream = resources_->stream.get();
  if (request.device != nullptr) {
    for (EventHandle event : request.after) DDL_TRY(device.wait(stream, event));
    if (!request.has_events) {
      DDL_TRY(device.record(resources_->marker.get(), request.stream));
      DDL_TRY(device.wait(stream, resources_->marker.get()));
    }
  }
  return device.record(resources_->ready.get(), stream);
}

Status IpcCalls::put(const Request& request, const IpcBuffers& buffers,
                     const std::optional<BlockMove>& blocks) {
  Device& device = *resources_->device;
  const StreamHandle stream = resources_->stream.get();
  for (EventHandle ready : resources_->all_ready) DDL_TRY(device.wait(stream, ready));
  if (blocks)
    DDL_TRY(put_copies(request, buffers, *blocks));
  else
    DDL_TRY(put_combination(request, buffers));
  return device.record(resources_->done.get(), stream);
}

Status IpcCalls::put_combination(const Request& request, const IpcBuffers& buffers) {
  const int rank = connections_.membership().rank, size = connections_.membership().size;
  const bool scatters = request.call.kind == CallKind::kReduceScatter;
  // Its elements in the inputs. Those of a reduce_scatter go to the beginning of its own result.
  ElementRange own = own_part(request.call.count, rank, size, request.element_size);
  if (scatters) {
    const BlockMove blocks = BlockMove::reduce_scatter(request.counts);
    own = {blocks.send_offset(rank, rank), blocks.count(rank, rank)};
  }
  std::uint64_t begin = 0;
  for (std::size_t part = 0; part < buffers.parts(); begin += buffers.count(part), ++part) {
    const std::uint64_t end = begin + buffers.count(part);
    const std::uint64_t first = std::max(begin, own.first), last = std::min(end, own.first + own.count);
    if (first >= last) continue;
    DDL_TRY(combine(request, buffers, part, {first - begin, last - first}));
  }
  return {};
}

Status IpcCalls::combine(const Request& request, const IpcBuffers& buffers, std::size_t part,
                         const ElementRange& own) {
  const int rank = connections_.membership().rank, size = connections_.membership().size;
  IpcMemory& memory = *resources_->memory;
  const CallKind kind = request.call.kind;
  const std::uint64_t at = own.first * request.element_size;
  CombinationArguments arguments{};
  arguments.count = own.count;
  arguments.op = request.call.op;
  arguments.prescale = request.call.prescale;
  arguments.postscale = request.call.postscale;
  arguments.has_packs = 1;
  const auto check = [&](const void* address) {
    if (!begins_pack(address)) arguments.has_packs = 0;
  };
  for (int from = 0; from < size; ++from) {
    arguments.in[arguments.ins] = buffers.send(memory, from, part) + at;
    check(arguments.in[arguments.ins++]);
  }
  for (int to = 0; to < size; ++to) {
    if (kind == CallKind::kReduce && to != request.call.root) continue;
    if (kind == CallKind::kReduceScatter && to != rank) continue;
    std::byte* const recv = buffers.recv(memory, to, part);
    arguments.out[arguments.outs] = kind == CallKind::kReduceScatter ? recv : recv + at;
    check(arguments.out[arguments.outs++]);
  }
  void* pointers[] = {&arguments};
  return resources_->device->launch(combining_kernel(request.dtype()),
                                    std::max<std::uint64_t>(own.count * request.element_size / kPackBytes, 1),
                                    pointers, resources_->stream.get());
}

Status IpcCalls::put_copies(const Request& request, const IpcBuffers& buffers, const BlockMove& blocks) {
  const int own = connections_.membership().rank, size = connections_.membership().size;
  IpcMemory& memory = *resources_->memory;
  const std::size_t element = request.element_size;
  for (int from = 0; from < size; ++from) {
    const std::size_t bytes = blocks.count(from, own) * element;
    if (bytes == 0) continue;
    const std::byte* const source = buffers.send(memory, from, 0) + blocks.send_offset(from, own) * element;
    // The root of a broadcast has its data.
    std::byte* const recv = buffers.recv(memory, own, 0);
    if (recv == nullptr) continue;
    std::byte* const target = recv + blocks.recv_offset(from, own) * element;
    if (source == target) continue;
    DDL_TRY(resources_->device->copy(target, source, bytes, resources_->stream.get()));
  }
  return {};
}

Outcome IpcCalls::finish(const Request& request, CallDeadline deadline) {
  Device& device = *resources_->device;
  const StreamHandle stream = resources_->stream.get();
  const Call call = connections_.channel().call();
  auto end = resources_->watch->make_event();
  const auto order = [&]() -> Status {
    if (!end) return fail(std::move(end.error()));
    for (EventHandle done : resources_->all_done) DDL_TRY(device.wait(stream, done));
    DDL_TRY(device.record(end->get(), stream));
    if (request.device == nullptr || request.has_events) return {};
    return device.wait(request.stream, end->get());
  };
  if (auto ordered = order(); !ordered) return give_up_unless_aborted(connections_, call, ordered.error());
  Outcome outcome;
  if (request.has_events) outcome = wait_on_cpu(device, end->get(), stream, connections_, call, deadline);
  resources_->watch->add(call, deadline, *std::move(end));
  return outcome;
}

Outcome IpcCalls::wait_for_last(CallDeadline deadline) {
  Device& device = *resources_->device;
  const Call call = connections_.channel().call();
  // What this rank has put there ends before this.
  if (auto marked = device.record(resources_->marker.get(), resources_->stream.get()); !marked)
    return give_up(connections_, call, marked.error());
  return wait_on_cpu(device, resources_->marker.get(), resources_->stream.get(), connections_, call,
                     deadline);
}

}  // namespace ddl::runtime

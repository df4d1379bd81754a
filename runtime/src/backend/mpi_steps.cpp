#include "runtime/src/backend/mpi_steps.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/src/collective/block_move.h"

namespace ddl::runtime {
namespace {

using std::chrono::nanoseconds;

/// Probes of the awaited operation between two checks of everything else.
constexpr int kProbes = 16;
/// A waiting rank sleeps for this share of the time that it has waited, so its delay is at most that share, but never
/// for less than kMinBackoff: with many threads that slept for microseconds only, Linux 6.18 kept all other threads
/// from running for seconds. (The kernel adds 50 us to each sleep.)
constexpr int kShareOfWaited = 16;
constexpr nanoseconds kMinBackoff = std::chrono::microseconds(50);
constexpr nanoseconds kMaxBackoff = std::chrono::milliseconds(1);
/// Bytes under way progress only while MPI is called, so a rank that waits for them sleeps less.
constexpr nanoseconds kMaxBackoffWhileMoving = std::chrono::microseconds(500);
/// Messages that a rank has sent before it left have arrived after this time.
constexpr std::chrono::seconds kUnderWay{2};
/// A broken connection of MPI may mean the death of a rank, which is noticed within this time.
constexpr std::chrono::seconds kDeathReport{2};

/// What a wait does between two rounds of probes: it spins first if there is a CPU for every rank, then yields a few
/// times, then sleeps. On some kernels two threads that keep yielding to each other prevent all others from running.
class Backoff {
 public:
  /// on_the_way: bytes are under way; otherwise other ranks may not have begun the call.
  Backoff(const WaitPolicy& policy, bool on_the_way)
      : spin_(policy.spin),
        yields_(policy.yields),
        longest_(on_the_way ? kMaxBackoffWhileMoving : kMaxBackoff),
        began_(Deadline::Clock::now()) {}

  void pause() {
    const nanoseconds waited = Deadline::Clock::now() - began_;
    if (waited < spin_) return;
    if (yields_ > 0) {
      --yields_;
      (void)::sched_yield();
      return;
    }
    std::this_thread::sleep_for(std::clamp(waited / kShareOfWaited, kMinBackoff, longest_));
  }

 private:
  nanoseconds spin_;
  int yields_;
  nanoseconds longest_;
  Deadline::Clock::time_point began_;
};

/// While it lives, ranks of this host that wait for this one know that it waits for other hosts.
class WaitingForOtherHosts {
 public:
  explicit WaitingForOtherHosts(const AbortDomain& abort) : abort_(abort) {
    abort_.set_waits_for_other_host(true);
  }
  ~WaitingForOtherHosts() { abort_.set_waits_for_other_host(false); }
  WaitingForOtherHosts(const WaitingForOtherHosts&) = delete;
  WaitingForOtherHosts& operator=(const WaitingForOtherHosts&) = delete;

 private:
  const AbortDomain& abort_;
};

/// The objects of an operation that was given up, kept as long as the process lives: MPI may still use them.
struct GivenUp {
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Communicator> for_duplicate;
  std::unique_ptr<MpiBuffers> buffers;
};
void keep_for_ever(GivenUp given_up) {
  static auto* const kept = new std::vector<GivenUp>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(given_up));
}

}  // namespace

MpiSteps::MpiSteps(Connections& connections, const MpiLimits& limits, MpiSet mpi)
    : connections_(connections),
      limits_(limits),
      mpi_(std::move(mpi)),
      buffers_(std::make_unique<MpiBuffers>()) {}

MpiSteps::~MpiSteps() {
  if (!abort().is_raised()) return;
  mpi_.world->abandon();
  keep_for_ever({std::move(mpi_.communicator), std::move(mpi_.for_duplicate), std::move(buffers_)});
}

Outcome MpiSteps::synchronize_host() {
  Channel& channel = this->channel();
  channel.arrive();
  Backoff backoff(connections_.wait_policy(), false);
  for (;;) {
    for (int probe = 0; probe < kProbes; ++probe) {
      if (auto arrival = channel.poll_arrival()) return *std::move(arrival);
      // Other ranks may wait for messages that this rank has sent in its last call.
      if (const auto moved = communicator().progress(); !moved) return fail(broken(moved.error()));
    }
    backoff.pause();
  }
}

Outcome MpiSteps::finish(Status started, MpiAwaited awaited) {
  if (!started) return fail(broken(started.error()));
  const WaitingForOtherHosts waiting(abort());
  Backoff backoff(connections_.wait_policy(), !awaited.may_be_missing);
  for (;;) {
    for (int probe = 0; probe < kProbes; ++probe) {
      const auto done = communicator().is_done();
      if (!done) return fail(broken(done.error()));
      if (!*done) continue;
      left_since_.reset();
      return {};
    }
    if (auto reason = reason_to_stop(awaited)) return fail(*std::move(reason));
    backoff.pause();
  }
}

std::optional<Failure> MpiSteps::reason_to_stop(const MpiAwaited& awaited) {
  if (abort().is_raised()) return aborted();
  if (const auto left = who_left(awaited)) {
    abort().raise(AbortNotice::of(AbortReason::kLeft, *left));
    return aborted();
  }
  // Ranks that wait for a rank of their own host know which one is missing, and raise the timeout first.
  if (!channel().deadline().has_passed_by(awaited.peer >= 0 ? 0 : 1)) return std::nullopt;
  return give_up(awaited);
}

std::optional<Member> MpiSteps::who_left(const MpiAwaited& awaited) {
  if (!awaited.may_be_missing) return std::nullopt;
  std::optional<Member> left;
  const HostLayout& layout = this->layout();
  if (awaited.peer >= 0 && layout.host_of(awaited.peer) == layout.own) {
    const int index = layout.local_rank(awaited.peer);
    if (abort().has_left(index)) left = channel().members()[index];
  } else if (layout.host_count() > 1) {
    left = connections_.first_left();
    const bool is_other = left && awaited.peer >= 0 && left->rank != job_ranks()[awaited.peer];
    if (is_other) left.reset();
  }
  if (!left) return std::nullopt;
  if (!left_since_) left_since_ = Clock::now();
  return Clock::now() - *left_since_ < kUnderWay ? std::nullopt : left;
}

Failure MpiSteps::give_up(const MpiAwaited& awaited) {
  const CallDeadline& deadline = channel().deadline();
  const Call& call = channel().call();
  if (awaited.peer >= 0) {
    abort().raise_timeout(deadline.seconds, call, connections_.who_is(awaited.peer));
    return aborted();
  }
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3g s", deadline.seconds);
  const char* const why = awaited.may_be_missing ? ": a rank has not arrived; MPI does not say which"
                                                 : ": MPI has not moved everything by then";
  abort().raise(
      AbortNotice::of(AbortReason::kTimedOut, self(),
                      self().label() + " gave up after " + seconds.data() + " in " + call.describe() + why));
  return aborted();
}

Failure MpiSteps::broken(const Error& error) {
  if (error.code() == ErrorCode::kUnavailable) return {DDL_ERROR_UNSUPPORTED, error.message()};
  if (!abort().wait_raised(Deadline::after(kDeathReport))) {
    abort().raise(AbortNotice::of(AbortReason::kLost, self(), "its MPI says " + error.message()));
  }
  return aborted();
}

Failure MpiSteps::aborted() {
  mpi_.world->abandon();
  return abort().describe(channel().call(), true);
}

namespace {

MpiMove::Kind kind_of(const BlockMove& move) {
  if (!move.is_shared()) return move.only_sender() ? MpiMove::Kind::kScatter : MpiMove::Kind::kAlltoall;
  if (move.only_sender()) return MpiMove::Kind::kBroadcast;
  return move.only_receiver() ? MpiMove::Kind::kGather : MpiMove::Kind::kAllgather;
}

/// The same range of every block: contiguous if is_packed, otherwise at the positions of the blocks.
class Chunk {
 public:
  Chunk(const MoveInBuffers& here, int own, ElementRange range, bool is_packed)
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
  template <class Bytes, class Offset>
  MpiMove::Blocks blocks(Bytes bytes_of, Offset offset_of) const {
    MpiMove::Blocks all;
    std::size_t end = 0;
    for (int rank = 0; rank < move_.size(); ++rank) {
      all.bytes.push_back(static_cast<int>(bytes_of(rank)));
      all.offsets.push_back(static_cast<int>(is_packed_ ? end : offset_of(rank)));
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

MpiMove step_of(const MoveInBuffers& here, const Chunk& chunk) {
  MpiMove step;
  step.kind = kind_of(here.move);
  step.root = here.move.only_sender().value_or(here.move.only_receiver().value_or(0));
  step.is_even = here.move.is_even();
  step.sends = chunk.sends();
  step.receives = chunk.receives();
  return step;
}

Outcome broadcast(MpiSteps& steps, const MoveInBuffers& here) {
  const std::uint64_t total = here.move.longest() * here.element, max_bytes = steps.limits().step_bytes;
  for (std::uint64_t first = 0; first < total; first += max_bytes) {
    MpiMove step;
    step.kind = MpiMove::Kind::kBroadcast;
    step.root = *here.move.only_sender();
    step.recv = here.recv + first;
    step.receives = {{static_cast<int>(std::min(max_bytes, total - first))}, {0}};
    if (auto moved = steps.move(std::move(step)); !moved) return moved;
  }
  return {};
}

Outcome move_at_once(MpiSteps& steps, const MoveInBuffers& here) {
  const BlockMove& move = here.move;
  const int own = steps.rank();
  const Chunk chunk(here, own, {0, move.longest()}, false);
  MpiMove step = step_of(here, chunk);
  step.send = here.send;
  step.recv = here.recv;
  const bool both = move.sends(own) && move.receives(own);
  if (step.kind == MpiMove::Kind::kAlltoall) {
    // Received bytes must not overwrite bytes that have not been sent.
    const std::size_t bytes = move.send_offset(own, move.size()) * here.element;
    if (here.send == here.recv && bytes > 0) {
      steps.buffers().send.assign(here.send, here.send + bytes);
      step.send = steps.buffers().send.data();
    }
  } else if (step.kind == MpiMove::Kind::kScatter) {
    step.is_in_place = both && here.recv == here.send + chunk.in_send(own);
  } else {
    step.is_in_place = both && here.send == here.recv + chunk.in_recv(own);
  }
  return steps.move(std::move(step));
}

Outcome move_in_chunks(MpiSteps& steps, const MoveInBuffers& here) {
  const BlockMove& move = here.move;
  const int own = steps.rank();
  const auto ranks = static_cast<std::uint64_t>(move.size());
  const std::uint64_t per_chunk =
      std::max<std::uint64_t>(steps.limits().chunk_bytes / here.element / ranks, 1);
  MpiBuffers& buffers = steps.buffers();
  for (std::uint64_t first = 0; first < move.longest(); first += per_chunk) {
    const Chunk chunk(here, own, {first, per_chunk}, true);
    MpiMove step = step_of(here, chunk);
    buffers.send.resize(ranks * per_chunk * here.element);
    buffers.recv.resize(ranks * per_chunk * here.element);
    step.send = buffers.send.data();
    step.recv = buffers.recv.data();
    std::size_t filled = 0;
    for (int to = 0; to < move.size() && move.sends(own); ++to) {
      const int receiver = move.is_shared() ? move.a_receiver() : to;
      const std::size_t bytes = chunk.bytes(own, receiver);
      if (bytes > 0) copy_bytes(buffers.send.data() + filled, here.send + chunk.in_send(receiver), bytes);
      filled += bytes;
      if (move.is_shared()) break;
    }
    if (auto moved = steps.move(std::move(step)); !moved) return moved;
    std::size_t taken = 0;
    for (int from = 0; from < move.size(); ++from) {
      const std::size_t bytes = chunk.bytes(from, own);
      if (bytes > 0) copy_bytes(here.recv + chunk.in_recv(from), buffers.recv.data() + taken, bytes);
      taken += bytes;
    }
  }
  return {};
}

}  // namespace

Outcome move_blocks(MpiSteps& steps, const MoveInBuffers& here) {
  const BlockMove& move = here.move;
  // All ranks decide the same, so they make the same steps.
  if (move.longest() == 0) return {};
  if (move.is_broadcast()) return broadcast(steps, here);
  const std::uint64_t max_elements =
      steps.limits().step_bytes / here.element / static_cast<std::uint64_t>(move.size());
  return move.longest() <= max_elements ? move_at_once(steps, here) : move_in_chunks(steps, here);
}

}  // namespace ddl::runtime

#include "runtime/support/thread_mpi.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace ddl::runtime::test {
namespace thread_mpi {

using Bytes = std::vector<std::byte>;

Bytes bytes_at(const std::byte* data, int count) { return count == 0 ? Bytes() : Bytes(data, data + count); }

/// What a rank brings to a step.
struct Brought {
  MpiMove move;
  std::vector<Bytes> for_rank;  ///< one for all, or one for each
  std::vector<std::uint64_t> numbers;
};

/// A step of a communicator.
struct Step {
  std::vector<std::optional<Brought>> brought;  ///< by rank
  std::size_t arrived = 0, taken = 0;
};

/// A communicator, with all its ranks.
struct Group {
  int size = 0;
  std::map<std::uint64_t, Step> steps;                          ///< by number
  std::map<std::pair<int, int>, std::deque<Bytes>> on_the_way;  ///< by sender and receiver
};

}  // namespace thread_mpi

using namespace thread_mpi;  // NOLINT(google-build-using-namespace)

struct ThreadMpi::Job {
  int ranks;
  MpiThreads level;
  std::mutex mutex;
  std::string error;  ///< guarded by mutex, as all below
  /// By the ranks of the job, generation, and number among those of these.
  std::map<std::tuple<std::vector<int>, std::uint32_t, int>, Group> groups;

  Job(int size, MpiThreads threads) : ranks(size), level(threads) {}
  /// With the mutex.
  void note(const std::string& what) {
    if (error.empty()) error = what;
  }
};

namespace {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadMpi::Job& job, Group& group, int rank, std::thread::id main)
      : job_(job), group_(group), rank_(rank), main_(main) {}

  Status allows_call() const override {
    if (job_.level != MpiThreads::kFunneled || std::this_thread::get_id() == main_) return {};
    return fail(ErrorCode::kUnavailable, "only the main thread may call this MPI");
  }

  Status start(MpiMove move) override {
    const auto lock = enter();
    Brought own;
    if (!is_root(move) || move.kind != MpiMove::Kind::kBroadcast) {
      sent_blocks(move, own.for_rank);
    } else {
      own.for_rank.push_back(bytes_at(move.recv, move.receives.bytes[0]));
    }
    own.move = move;
    move_ = std::move(move);
    bring(std::move(own));
    return {};
  }

  Status start_min(std::span<const std::uint64_t> own, std::span<std::uint64_t> minimum) override {
    const auto lock = enter();
    Brought brought;
    brought.numbers.assign(own.begin(), own.end());
    minimum_ = minimum;
    bring(std::move(brought));
    return {};
  }

  Status start_exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv) override {
    const auto lock = enter();
    if (!send.empty()) group_.on_the_way[{rank_, peer}].emplace_back(send.begin(), send.end());
    awaits_ = peer;
    recv_ = recv;
    return {};
  }

  Result<bool> is_done() override {
    const auto lock = enter();
    if (awaits_) return is_received();
    Step& step = group_.steps[next_];
    if (step.arrived < step.brought.size()) return false;
    take(step);
    if (++step.taken == step.brought.size()) group_.steps.erase(next_);
    ++next_;
    return true;
  }

  Status progress() override {
    const auto lock = enter();
    return {};
  }

 private:
  std::unique_lock<std::mutex> enter() {
    std::unique_lock lock(job_.mutex);
    std::array<char, 32> name{};
    (void)::pthread_getname_np(::pthread_self(), name.data(), name.size());
    const bool is_own_thread = std::string_view(name.data()) == "ddl-tensors";
    if (job_.level != MpiThreads::kMultiple && is_own_thread) job_.note("libddl's own thread called MPI");
    if (!allows_call()) job_.note("a thread called MPI that is not the main thread");
    return lock;
  }

  bool is_root(const MpiMove& move) const { return move.root == rank_; }
  bool sends(const MpiMove& move) const { return move.kind != MpiMove::Kind::kScatter || move.root == rank_; }
  bool receives(const MpiMove& move) const {
    return move.kind != MpiMove::Kind::kGather || move.root == rank_;
  }
  /// Blocks of an even step are as long as the first and contiguous.
  static std::pair<int, int> block(const MpiMove& move, const MpiMove::Blocks& blocks, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (move.is_even) return {rank * blocks.bytes[0], blocks.bytes[0]};
    return {blocks.offsets[at], blocks.bytes[at]};
  }

  void sent_blocks(const MpiMove& move, std::vector<Bytes>& blocks) const {
    switch (move.kind) {
      case MpiMove::Kind::kBroadcast: return;
      case MpiMove::Kind::kAllgather:
      case MpiMove::Kind::kGather: {
        if (!move.is_in_place) return blocks.push_back(bytes_at(move.send, move.sends.bytes[0]));
        const auto [offset, bytes] = block(move, move.receives, rank_);
        return blocks.push_back(bytes_at(move.recv + offset, bytes));
      }
      case MpiMove::Kind::kScatter:
      case MpiMove::Kind::kAlltoall: break;
    }
    for (int to = 0; to < group_.size && sends(move); ++to) {
      // MPI_Scatter has one length for all.
      MpiMove even = move;
      even.is_even = move.is_even || move.kind == MpiMove::Kind::kScatter;
      const auto [offset, bytes] = block(even, move.sends, to);
      blocks.push_back(bytes_at(move.send + offset, bytes));
    }
  }

  void bring(Brought own) {
    awaits_.reset();
    Step& step = group_.steps[next_];
    step.brought.resize(static_cast<std::size_t>(group_.size));
    step.brought[static_cast<std::size_t>(rank_)] = std::move(own);
    ++step.arrived;
  }

  Result<bool> is_received() {
    if (recv_.empty()) return true;
    auto& messages = group_.on_the_way[{*awaits_, rank_}];
    if (messages.empty()) return false;
    store(messages.front(), recv_.data(), recv_.size(), "a message");
    messages.pop_front();
    return true;
  }

  void take(const Step& step) {
    const Brought& own = *step.brought[static_cast<std::size_t>(rank_)];
    for (int from = 0; from < group_.size; ++from) {
      const Brought& theirs = *step.brought[static_cast<std::size_t>(from)];
      if (theirs.numbers.size() != own.numbers.size()) return job_.note("the ranks make different steps");
      for (std::size_t i = 0; i < own.numbers.size(); ++i)
        minimum_[i] = from == 0 ? theirs.numbers[i] : std::min(minimum_[i], theirs.numbers[i]);
      if (!own.numbers.empty()) continue;
      const bool is_same = theirs.move.kind == move_.kind && theirs.move.root == move_.root &&
                           theirs.move.is_even == move_.is_even;
      if (!is_same) return job_.note("the ranks make different steps");
      if (receives(move_)) take_from(from, theirs);
    }
  }

  void take_from(int from, const Brought& theirs) {
    const bool has_one_sender =
        move_.kind == MpiMove::Kind::kBroadcast || move_.kind == MpiMove::Kind::kScatter;
    if (has_one_sender && from != move_.root) return;
    const bool is_in_place = from == rank_ && (move_.is_in_place || move_.kind == MpiMove::Kind::kBroadcast);
    if (is_in_place) return;
    const auto [offset, bytes] =
        has_one_sender ? std::pair(0, move_.receives.bytes[0]) : block(move_, move_.receives, from);
    const bool is_shared = theirs.for_rank.size() == 1 && move_.kind != MpiMove::Kind::kAlltoall &&
                           move_.kind != MpiMove::Kind::kScatter;
    const Bytes& block = theirs.for_rank[is_shared ? 0 : static_cast<std::size_t>(rank_)];
    store(block, move_.recv + offset, static_cast<std::size_t>(bytes), "a block");
  }

  void store(const Bytes& bytes, std::byte* to, std::size_t room, const std::string& what) {
    if (bytes.size() != room)
      job_.note(what + " of " + std::to_string(bytes.size()) + " bytes is received as one of " +
                std::to_string(room));
    if (!bytes.empty()) std::memcpy(to, bytes.data(), std::min(bytes.size(), room));
  }

  ThreadMpi::Job& job_;
  Group& group_;
  int rank_;
  std::thread::id main_;
  std::uint64_t next_ = 0;  ///< the number of the next step
  MpiMove move_;
  std::span<std::uint64_t> minimum_;
  std::optional<int> awaits_;  ///< the peer of an exchange that was started last
  std::span<std::byte> recv_;
};

class ThreadWorld final : public MpiWorld {
 public:
  ThreadWorld(ThreadMpi::Job& job, int rank) : job_(job), rank_(rank), main_(std::this_thread::get_id()) {}

  int rank() const override { return rank_; }
  int size() const override { return job_.ranks; }
  Result<std::unique_ptr<Communicator>> communicator(const std::vector<int>& job_ranks,
                                                     std::uint32_t generation) override {
    const std::lock_guard lock(job_.mutex);
    const auto own = std::find(job_ranks.begin(), job_ranks.end(), rank_);
    Group& group = job_.groups[{job_ranks, generation, made_[{job_ranks, generation}]++}];
    group.size = static_cast<int>(job_ranks.size());
    return std::make_unique<ThreadCommunicator>(job_, group, static_cast<int>(own - job_ranks.begin()),
                                                main_);
  }
  bool takes_threads() const override { return job_.level == MpiThreads::kMultiple; }
  const std::string& library() const override { return library_; }
  void abort_job(int) override {}
  void abandon() override {}

 private:
  ThreadMpi::Job& job_;
  int rank_;
  std::thread::id main_;
  std::map<std::pair<std::vector<int>, std::uint32_t>, int> made_;
  std::string library_ = "threads";
};

}  // namespace

ThreadMpi::ThreadMpi(int ranks, MpiThreads level) : job_(std::make_unique<Job>(ranks, level)) {}
ThreadMpi::~ThreadMpi() = default;

std::shared_ptr<MpiWorld> ThreadMpi::join(int rank) { return std::make_shared<ThreadWorld>(*job_, rank); }

std::string ThreadMpi::error() const {
  const std::lock_guard lock(job_->mutex);
  return job_->error;
}

}  // namespace ddl::runtime::test

// The bootstrap over the MPI that is to execute the collectives, for launchers that only that MPI understands.
#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "contract/environment.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/bootstrap/module_loader.h"

namespace ddl::runtime {
namespace {

/// MPI offers no way to sleep until a message arrives.
constexpr std::chrono::microseconds kBackoff{100};

class MpiBootstrap final : public Bootstrap {
 public:
  MpiBootstrap(std::unique_ptr<MpiWorld> world, std::unique_ptr<Communicator> communicator)
      : world_(std::move(world)), communicator_(std::move(communicator)) {}

  Status load_membership(std::uint32_t generation, Deadline deadline);

  const char* name() const override { return "mpi"; }
  const Membership& membership() const override { return membership_; }

  Status put(std::string_view key, std::string_view value) override {
    own_.put(key, value);
    return {};
  }

  /// All ranks get the values that all have put since the last fence.
  Status fence(Deadline deadline) override {
    std::string text = own_.text();
    own_.clear();
    DDL_ASSIGN(lengths, gather<std::uint64_t>({text.size()}, deadline));
    const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (longest > kMaxText) return fail(ErrorCode::kProtocol, "a rank has put more than 1 MiB");
    text.resize(longest);
    DDL_ASSIGN(texts, gather<char>({text.begin(), text.end()}, deadline));
    for (std::size_t rank = 0; rank < all_.size(); ++rank)
      DDL_TRY(all_[rank].add({texts.data() + rank * longest, lengths[rank]}));
    return {};
  }

  Result<std::string> get(int rank, std::string_view key, Deadline) override {
    return all_[rank].get(rank, key);
  }

  void notify_launcher(int) override {}
  void abort_job(int code, const std::string&) override { world_->abort_job(code); }
  Status leave() override { return {}; }

 private:
  static constexpr std::uint64_t kMaxText = std::uint64_t{1} << 20;

  /// The values of all ranks, by rank. The number of values is the same on all ranks.
  template <class T>
  Result<std::vector<T>> gather(std::vector<T> own, Deadline deadline) {
    struct Buffers {
      std::vector<T> own, all;
    };
    auto buffers = std::make_unique<Buffers>(Buffers{std::move(own), {}});
    buffers->all.resize(buffers->own.size() * all_.size());
    MpiMove step;
    step.kind = MpiMove::Kind::kAllgather;
    step.is_even = true;
    step.send = reinterpret_cast<const std::byte*>(buffers->own.data());
    step.recv = reinterpret_cast<std::byte*>(buffers->all.data());
    step.sends = step.receives = {{static_cast<int>(buffers->own.size() * sizeof(T))}, {0}};
    DDL_TRY(communicator_->start(std::move(step)));
    const Status moved = finish(deadline);
    if (moved) return std::move(buffers->all);
    // MPI may still write to it.
    world_->abandon();
    (void)buffers.release();
    return fail(moved.error());
  }

  Status finish(Deadline deadline) {
    for (;;) {
      DDL_ASSIGN(done, communicator_->is_done());
      if (done) return {};
      if (deadline.has_passed())
        return fail(ErrorCode::kTimeout, "MPI has not gathered what the ranks have put in time");
      std::this_thread::sleep_for(kBackoff);
    }
  }

  std::unique_ptr<MpiWorld> world_;
  std::unique_ptr<Communicator> communicator_;
  Membership membership_;
  PutValues own_;
  std::vector<PutValues> all_;  ///< by rank
};

Status MpiBootstrap::load_membership(std::uint32_t generation, Deadline deadline) {
  membership_.generation = generation;
  membership_.rank = world_->rank();
  membership_.size = world_->size();
  membership_.host = host_name();
  all_.resize(static_cast<std::size_t>(world_->size()));
  DDL_ASSIGN(groups, groups_by_host_name(*this, membership_, deadline));
  auto layout = HostLayout::of(std::move(groups), membership_.rank, membership_.size);
  if (!layout) return fail(std::move(layout.error().during("MPI's map of the job")));
  membership_.layout = *std::move(layout);
  return {};
}

}  // namespace

Result<BootstrapAttempt> attempt_mpi(const Settings& settings, std::uint32_t generation) {
  if (settings.cpu_operations != contract::CpuOperations::kMpi)
    return BootstrapAttempt{nullptr, std::string(contract::env::kCpuOperations) + " is not mpi"};
  auto world = join_mpi(settings, std::nullopt);
  if (!world) {
    if (world.error().code() == ErrorCode::kUnavailable)
      return BootstrapAttempt{nullptr, world.error().message()};
    return fail(std::move(world.error()));
  }
  if ((*world)->size() == 1 && settings.several_started && !settings.allow_singleton) {
    return BootstrapAttempt{nullptr, (*world)->library() + " does not understand this launcher, and " +
                                         settings.several_started->sentence()};
  }
  std::vector<int> ranks(static_cast<std::size_t>((*world)->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  DDL_ASSIGN(communicator, (*world)->communicator(ranks, 0));
  auto bootstrap = std::make_unique<MpiBootstrap>(*std::move(world), std::move(communicator));
  DDL_TRY(bootstrap->load_membership(generation, settings.start_deadline()));
  return BootstrapAttempt{std::move(bootstrap), ""};
}

}  // namespace ddl::runtime

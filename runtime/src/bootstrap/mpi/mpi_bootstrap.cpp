#include "runtime/src/bootstrap/mpi/mpi_bootstrap.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "contract/environment.h"
#include "runtime/src/backend/mpi/mpi_module.h"
#include "runtime/src/host_name.h"

namespace ddl::runtime {
namespace {

/// MPI has no way to sleep until something comes.
constexpr std::chrono::microseconds kNap{20};

class MpiBootstrap final : public Bootstrap {
 public:
  MpiBootstrap(std::unique_ptr<MpiWorld> world, std::unique_ptr<Communicator> communicator)
      : world_(std::move(world)), communicator_(std::move(communicator)) {}

  Status load_membership(std::uint32_t generation);

  const char* name() const override { return "mpi"; }
  const Membership& membership() const override { return membership_; }

  Status put(std::string_view key, std::string_view value) override {
    own_.insert_or_assign(std::string(key), std::string(value));
    return {};
  }

  /// Everybody gets what all have put since the last time.
  Status fence(Deadline deadline) override {
    const std::string text =
        nlohmann::json(own_).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    const std::uint64_t length = text.size();
    std::vector<std::uint64_t> lengths(all_.size());
    DDL_TRY(gather(&length, lengths.data(), sizeof length, deadline));
    const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (longest > kMostText) return fail(ErrorCode::kProtocol, "a rank has put more than 1 MiB");
    std::string padded = text, texts(longest * all_.size(), '\0');
    padded.resize(longest);
    DDL_TRY(gather(padded.data(), texts.data(), longest, deadline));
    own_.clear();
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      const std::string_view theirs = std::string_view(texts).substr(rank * longest, lengths[rank]);
      const auto json = nlohmann::json::parse(theirs, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object()) return fail(ErrorCode::kProtocol, "a rank has put something that is not JSON");
      for (const auto& [key, value] : json.items()) {
        if (!value.is_string()) return fail(ErrorCode::kProtocol, "a rank has put something under " + key);
        all_[rank].insert_or_assign(key, value.get<std::string>());
      }
    }
    return {};
  }

  Result<std::string> get(int rank, std::string_view key, Deadline) override {
    const auto& values = all_[static_cast<std::size_t>(rank)];
    const auto found = values.find(std::string(key));
    if (found == values.end())
      return fail(ErrorCode::kNotFound,
                  "rank " + std::to_string(rank) + " put nothing under " + std::string(key));
    return found->second;
  }

  void tell_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  using Values = std::map<std::string, std::string>;
  static constexpr std::uint64_t kMostText = std::uint64_t{1} << 20;

  Status gather(const void* own, void* all, std::uint64_t bytes, Deadline deadline) {
    MpiMove step;
    step.kind = MpiMove::Kind::kAllgather;
    step.is_even = true;
    step.send = static_cast<const std::byte*>(own);
    step.recv = static_cast<std::byte*>(all);
    step.sends = step.receives = {{static_cast<int>(bytes)}, {0}};
    DDL_TRY(communicator_->start(std::move(step)));
    for (;;) {
      const auto done = communicator_->is_done();
      if (!done) return fail(done.error());
      if (*done) return {};
      if (deadline.has_passed()) {
        // MPI may still write to what was to be gathered into, which is gone then.
        world_->abandon();
        return fail(ErrorCode::kTimeout, "MPI has not gathered what the ranks have put in time");
      }
      std::this_thread::sleep_for(kNap);
    }
  }

  std::unique_ptr<MpiWorld> world_;
  std::unique_ptr<Communicator> communicator_;
  Membership membership_;
  Values own_;
  std::vector<Values> all_;  ///< by rank
};

Status MpiBootstrap::load_membership(std::uint32_t generation) {
  membership_.generation = generation;
  membership_.rank = world_->rank();
  membership_.size = world_->size();
  membership_.host = host_name();
  all_.resize(static_cast<std::size_t>(world_->size()));
  const std::string key = "ddl.host";
  DDL_TRY(put(key, membership_.host));
  DDL_TRY(fence(Deadline::never()));
  std::map<std::string, std::vector<int>> ranks_of_host;
  for (int rank = 0; rank < membership_.size; ++rank)
    ranks_of_host[all_[static_cast<std::size_t>(rank)][key]].push_back(rank);
  std::vector<std::vector<int>> groups;
  for (auto& [host, ranks] : ranks_of_host) groups.push_back(std::move(ranks));
  auto layout = HostLayout::of(std::move(groups), membership_.rank, membership_.size);
  if (!layout) return fail(std::move(layout.error().during("MPI's map of the job")));
  membership_.layout = *std::move(layout);
  return {};
}

}  // namespace

Result<BootstrapAttempt> attempt_mpi(const Settings& settings, std::uint32_t generation) {
  if (settings.cpu_operations != CpuOperations::kMpi)
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
  auto communicator = (*world)->communicator(ranks, 0);
  if (!communicator) return fail(std::move(communicator.error()));
  auto bootstrap = std::make_unique<MpiBootstrap>(*std::move(world), *std::move(communicator));
  DDL_TRY(bootstrap->load_membership(generation));
  return BootstrapAttempt{std::move(bootstrap), ""};
}

}  // namespace ddl::runtime

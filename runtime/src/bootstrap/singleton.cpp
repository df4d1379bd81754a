#include "runtime/src/bootstrap/singleton.h"

#include <map>

#include "runtime/src/host_name.h"

namespace ddl::runtime {
namespace {

class SingletonBootstrap final : public Bootstrap {
 public:
  explicit SingletonBootstrap(std::uint32_t generation) {
    membership_.generation = generation;
    membership_.host = host_name();
  }

  const char* name() const override { return "singleton"; }
  const Membership& membership() const override { return membership_; }

  Status put(std::string_view key, std::string_view value) override {
    values_.insert_or_assign(std::string(key), std::string(value));
    return {};
  }
  Status fence(Deadline) override { return {}; }
  Result<std::string> get(int rank, std::string_view key, Deadline) override {
    const auto found = values_.find(key);
    if (rank != 0 || found == values_.end()) {
      return fail(ErrorCode::kNotFound,
                  "rank " + std::to_string(rank) + " put nothing under " + std::string(key));
    }
    return found->second;
  }
  void tell_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Membership membership_;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace

Result<BootstrapAttempt> attempt_singleton(const Settings& settings, std::uint32_t generation) {
  if (settings.several_started && !settings.allow_singleton) {
    return BootstrapAttempt{nullptr, settings.several_started->sentence()};
  }
  return BootstrapAttempt{std::make_unique<SingletonBootstrap>(generation), ""};
}

}  // namespace ddl::runtime

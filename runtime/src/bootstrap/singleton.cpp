// The bootstrap of a world of one. It refuses if the environment says that there are several processes.
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/bootstrap/host_layout.h"

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
    values_.put(key, value);
    return {};
  }
  Status fence(Deadline) override { return {}; }
  Result<std::string> get(int rank, std::string_view key, Deadline) override {
    return values_.get(rank, key);
  }
  void notify_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Membership membership_;
  PutValues values_;
};

}  // namespace

Result<BootstrapAttempt> attempt_singleton(const Settings& settings, std::uint32_t generation) {
  if (settings.several_started && !settings.allow_singleton) {
    return BootstrapAttempt{nullptr, settings.several_started->sentence()};
  }
  return BootstrapAttempt{std::make_unique<SingletonBootstrap>(generation), ""};
}

}  // namespace ddl::runtime

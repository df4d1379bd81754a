#include "launcher/node/name_lookup.h"

#include <future>
#include <memory>

#include "support/catch.h"

using namespace ddl;
using namespace ddl::launcher;

namespace {

/// What a lookup by this function reports.
std::vector<std::string> reports_of(std::chrono::milliseconds patience,
                                    std::function<void(const std::string&)> look_up) {
  EventLoop loop;
  NameLookup::Settings settings;
  settings.patience = patience;
  settings.look_up = std::move(look_up);
  std::vector<std::string> slow;
  NameLookup lookup(
      loop, [&](const std::string& address) { slow.push_back(address); }, settings);
  lookup.start("192.0.2.1");
  // It begins to wait after the lookup, for as long.
  const EventLoop::Timer end = loop.after(patience, [&] { loop.stop(); });
  loop.run();
  return slow;
}

}  // namespace

TEST_CASE("an address whose name is not found in time is reported") {
  std::promise<void> end;
  const auto until = end.get_future().share();
  CHECK(reports_of(std::chrono::milliseconds(50), [until](const std::string&) { until.wait(); }) ==
        std::vector<std::string>{"192.0.2.1"});
  end.set_value();
}

TEST_CASE("an address that gets an answer in time is not reported, whatever the answer is") {
  CHECK(reports_of(std::chrono::seconds(2), [](const std::string&) {}).empty());
}

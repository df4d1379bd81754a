#include "launcher/protocol/heartbeat.h"

#include "launcher/loop_driver.h"
#include "support/catch.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;

namespace {

struct HeartbeatFixture {
  EventLoop loop;
  LoopDriver driver{loop};
  int beats = 0;
  int silences = 0;
  int overloaded_ticks = 0;  // that are still to come
  ddl::launcher::Heartbeat heartbeat{loop,
                                     {std::chrono::milliseconds(20), 1},
                                     {[this] {
                                        ++beats;
                                        driver.check();
                                      },
                                      [this] {
                                        ++silences;
                                        driver.check();
                                      }},
                                     [this] { return overloaded_ticks-- > 0; }};
};

}  // namespace

TEST_CASE_METHOD(HeartbeatFixture, "silence is reported once, after the limit") {
  heartbeat.start();
  driver.run_until("silence", [this] { return silences == 1; });
  CHECK(beats == 1);
  driver.run_ready();
  CHECK(silences == 1);
}

TEST_CASE_METHOD(HeartbeatFixture, "while this machine is overloaded, silence does not count") {
  overloaded_ticks = 3;
  heartbeat.start();
  driver.run_until("silence", [this] { return silences == 1; });
  CHECK(beats == 4);
}

TEST_CASE_METHOD(HeartbeatFixture,
                 "a side that is heard, or has announced its silence, does not count as silent") {
  heartbeat.start();
  heartbeat.excuse();
  driver.run_until("two beats", [this] { return beats == 2; });
  heartbeat.heard();
  driver.run_until("a third", [this] { return beats == 3; });
  CHECK(silences == 0);
  driver.run_until("silence: the excuse was over when something was heard", [this] { return silences == 1; });
}

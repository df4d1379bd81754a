#include "launcher/process/terminator.h"

#include <csignal>

#include "launcher/loop_driver.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using Clock = std::chrono::steady_clock;

namespace {

constexpr double kHour = 3600;

struct TerminatorFixture {
  EventLoop loop;
  LoopDriver driver{loop};
  std::string calls;
  Terminator terminator{loop,
                        {[this](int signal) { calls += "ask " + std::to_string(signal) + "; "; },
                         [this] {
                           calls += "kill; ";
                           driver.check();
                         }}};
};

}  // namespace

TEST_CASE_METHOD(TerminatorFixture, "asks, waits for the grace, kills") {
  const auto start = Clock::now();
  CHECK_FALSE(terminator.has_begun());
  terminator.begin(SIGTERM, 0.02);
  CHECK(terminator.has_begun());
  CHECK(calls == "ask 15; ");
  driver.run_until("the kill", [&] { return calls == "ask 15; kill; "; });
  CHECK(Clock::now() - start >= std::chrono::milliseconds(20));
}

TEST_CASE_METHOD(TerminatorFixture,
                 "^C is followed by SIGTERM after half of the grace, and by the kill at its end") {
  const auto start = Clock::now();
  terminator.begin(SIGINT, 0.04);
  CHECK(calls == "ask 2; ");
  driver.run_until("SIGTERM and the kill", [&] {
    if (calls == "ask 2; ask 15; ") CHECK(Clock::now() - start >= std::chrono::milliseconds(20));
    return calls == "ask 2; ask 15; kill; ";
  });
  CHECK(Clock::now() - start >= std::chrono::milliseconds(40));
}

TEST_CASE_METHOD(TerminatorFixture, "what is asked to end after ^C for another reason is asked at once") {
  terminator.begin(SIGINT, 0.01);
  terminator.begin(SIGTERM, kHour);
  CHECK(calls == "ask 2; ask 15; ");
  driver.run_until("the kill", [&] { return calls == "ask 2; ask 15; kill; "; });
}

TEST_CASE_METHOD(TerminatorFixture, "no grace and SIGKILL kill now, without asking") {
  SECTION("no grace") { terminator.begin(SIGTERM, 0); }
  SECTION("SIGKILL, whatever the grace") { terminator.begin(SIGKILL, kHour); }
  CHECK(calls == "kill; ");
}

TEST_CASE_METHOD(TerminatorFixture, "a second call hastens the kill and does not ask again") {
  terminator.begin(SIGTERM, kHour);
  terminator.begin(SIGTERM, 0.01);
  CHECK(calls == "ask 15; ");
  driver.run_until("the kill", [&] { return calls == "ask 15; kill; "; });
}

TEST_CASE_METHOD(TerminatorFixture, "a second call cannot delay the kill") {
  terminator.begin(SIGTERM, 0.01);
  terminator.begin(SIGHUP, kHour);
  CHECK(calls == "ask 15; ");
  driver.run_until("the kill", [&] { return calls == "ask 15; kill; "; });
}

TEST_CASE_METHOD(TerminatorFixture, "a second call with SIGKILL kills now, once") {
  terminator.begin(SIGTERM, 0.01);
  terminator.begin(SIGKILL, 0);
  CHECK(calls == "ask 15; kill; ");
  terminator.begin(SIGKILL, 0);
  terminator.begin(SIGTERM, 0.01);
  bool later = false;
  const auto timer = loop.after(std::chrono::milliseconds(20), [&] {
    later = true;
    driver.check();
  });
  driver.run_until("the first kill's time to pass", [&] { return later; });
  CHECK(calls == "ask 15; kill; ");
}

TEST_CASE_METHOD(TerminatorFixture, "once all are gone, nothing more is done") {
  terminator.begin(SIGTERM, 0.01);
  terminator.all_gone();
  terminator.begin(SIGKILL, 0);
  bool later = false;
  const auto timer = loop.after(std::chrono::milliseconds(20), [&] {
    later = true;
    driver.check();
  });
  driver.run_until("the kill's time to pass", [&] { return later; });
  CHECK(calls == "ask 15; ");
}

#include "launcher/fleet/fleet.h"

#include "contract/version.h"
#include "launcher/facts.h"
#include "launcher/fleet/stream_link.h"
#include "launcher/loop_driver.h"
#include "launcher/message/codec.h"
#include "launcher/pipes.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;

namespace {

/// Starts no process: keeps the agents' ends of the links, and remembers what was asked.
class FakeStarter : public NodeStarter {
 public:
  explicit FakeStarter(EventLoop& loop) : loop_(loop) {}

  ddl::Result<StartedAgent> start(const AllocatedNode& node) override {
    if (node.name == refuse) return ddl::fail(ddl::ErrorCode::kUnavailable, "no way to " + node.name);
    auto pair = test_socket_pair();
    agents.push_back(make_stream_link(loop_, std::move(pair.second)));
    return StartedAgent{std::move(pair.first), {}, std::make_unique<Process>(node.name, cleaned_up)};
  }

  std::string refuse;
  std::vector<std::unique_ptr<Link>> agents;
  std::vector<std::string> cleaned_up;

 private:
  class Process : public AgentProcess {
   public:
    Process(std::string name, std::vector<std::string>& cleaned_up)
        : name_(std::move(name)), cleaned_up_(cleaned_up) {}
    std::string how_it_ended() override { return "the agent was struck by lightning"; }
    void clean_up(ddl::Deadline) override { cleaned_up_.push_back(name_); }

   private:
    std::string name_;
    std::vector<std::string>& cleaned_up_;
  };
  EventLoop& loop_;
};

struct Fixture {
  Fixture() { ignore_sigpipe(); }

  void start(std::size_t num_nodes) {
    REQUIRE(fleet.start(allocation_of(num_nodes), starter));
    fleet.listen(
        {[this] { note("ready"); },
         [this](std::size_t node, message::Any&& m) {
           note(std::to_string(node) + " says " + std::to_string(m.index()));
         },
         [this](std::size_t node, const std::string& how) { note(std::to_string(node) + " lost: " + how); }});
    for (auto& agent : starter.agents) {
      agent->start({[this](const ddl::net::Frame& frame) {
                      heard.push_back(frame.type);
                      driver.check();
                    },
                    [](const std::string&) {}});
    }
  }
  void note(std::string event) {
    events.push_back(std::move(event));
    driver.check();
  }
  void answer(std::size_t node, const std::string& version = ddl::contract::kVersion) {
    NodeFacts facts = facts_of("host" + std::to_string(node), 4);
    facts.version = version;
    message::send(*starter.agents[node], message::Facts{facts});
  }
  void wait_for_events(std::size_t count) {
    driver.run_until("an event", [this, count] { return events.size() >= count; });
    driver.run_ready();
    REQUIRE(events.size() == count);
  }

  EventLoop loop;
  LoopDriver driver{loop};
  FakeStarter starter{loop};
  Fleet fleet{loop};
  std::vector<std::string> events;
  std::vector<std::uint16_t> heard;
};

std::uint16_t type_of(const message::Any& message) { return static_cast<std::uint16_t>(message.index()); }

}  // namespace

TEST_CASE_METHOD(Fixture, "a fleet is ready when every agent has sent its facts, whoever is first") {
  start(2);
  answer(1);
  driver.run_ready();
  CHECK(events.empty());
  answer(0);
  wait_for_events(1);
  CHECK(events[0] == "ready");
  CHECK(fleet.facts()[0].hostname == "host0");
  CHECK(fleet.facts()[1].hostname == "host1");
  answer(0);  // again: no second ready
  driver.run_ready();
  CHECK(events.size() == 1);
}

TEST_CASE_METHOD(Fixture, "messages are delivered with their node") {
  start(2);
  message::send(*starter.agents[1], message::RankStarted{1, 2});
  wait_for_events(1);
  CHECK(events[0] == "1 says " + std::to_string(type_of(message::RankStarted{})));
}

TEST_CASE_METHOD(Fixture, "what is sent to all reaches every agent, and flush waits until it has") {
  start(2);
  fleet.send_all(message::Finish{});
  fleet.send(0, message::StdinEof{});
  fleet.flush();
  driver.run_until("three messages", [&] { return heard.size() == 3; });
}

TEST_CASE_METHOD(Fixture, "an agent of another version is lost, with both versions named") {
  start(1);
  answer(0, "9.9.9");
  wait_for_events(1);
  CHECK(events[0] == "0 lost: ddlrun on node0 is version 9.9.9, this one is " +
                         std::string(ddl::contract::kVersion) + "; install the same one there");
  message::send(*starter.agents[0], message::RankStarted{0, 1});  // what it says then is not heard
  starter.agents[0].reset();
  driver.run_ready();
  CHECK(events.size() == 1);
}

TEST_CASE_METHOD(Fixture, "an agent that says what nobody understands is lost") {
  start(1);
  starter.agents[0]->send(999, "");
  wait_for_events(1);
  CHECK(events[0] == "0 lost: the agent on node0 sent a message of unknown type 999");
}

TEST_CASE_METHOD(Fixture, "an agent whose link closes is lost once, and the others go on") {
  start(2);
  starter.agents[0].reset();
  wait_for_events(1);
  CHECK(events[0] ==
        "0 lost: the agent was struck by lightning on node0 (its link: closed by the other side)");
  fleet.send_all(message::Finish{});
  fleet.flush();
  driver.run_until("the other one's message", [&] { return heard.size() == 1; });
}

TEST_CASE_METHOD(Fixture, "an agent that has finished may close its link") {
  start(1);
  message::send(*starter.agents[0], message::Finished{0});
  starter.agents[0].reset();
  wait_for_events(1);
  CHECK(events[0] == "0 says " + std::to_string(type_of(message::Finished{})));
}

TEST_CASE_METHOD(Fixture, "shutting down closes every link first, then cleans up after every agent") {
  start(2);
  fleet.shut_down(ddl::Deadline::after(std::chrono::seconds(1)));
  CHECK(starter.cleaned_up == std::vector<std::string>{"node0", "node1"});
}

TEST_CASE_METHOD(Fixture, "an agent that cannot be begun is the error of starting") {
  starter.refuse = "node1";
  const auto status = fleet.start(allocation_of(3), starter);
  REQUIRE_FALSE(status);
  CHECK(status.error().message() == "no way to node1");
}

#include "launcher/fleet/fleet.h"

#include "contract/version.h"
#include "launcher/facts.h"
#include "launcher/loop_driver.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/link.h"
#include "support/pipes.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using namespace ddl::test;

namespace {

template <class Message>
std::uint16_t type_of(const Message& message) {
  if constexpr (std::is_constructible_v<message::AgentToHead, Message>) {
    return message::encode<message::AgentToHead>(message).type;
  } else {
    return message::encode<message::HeadToAgent>(message).type;
  }
}

void report(Link& agent, const message::AgentToHead& message) { message::send(agent, message); }

/// Starts no process: keeps the agents' ends of the links, and records the calls.
class FakeStarter : public NodeStarter {
 public:
  explicit FakeStarter(EventLoop& loop) : loop_(loop) {}

  bool forks() const override { return is_forking; }

  ddl::Result<StartedAgent> start(const AllocatedNode& node) override {
    if (node.name == refuse) return ddl::fail(ddl::ErrorCode::kUnavailable, "no way to " + node.name);
    auto pair = test_socket_pair();
    agents.push_back(make_stream_link(loop_, std::move(pair.second)));
    StartedAgent started;
    started.read = std::move(pair.first);
    started.nonce = nonce;
    started.process = std::make_unique<Process>(*this, node.name);
    if (on_start) on_start();
    return started;
  }

  std::string refuse;
  bool is_forking = true;
  std::function<void()> on_start;
  std::string nonce;
  ddl::Error failure{ddl::ErrorCode::kUnavailable, "lightning"};
  std::vector<std::unique_ptr<Link>> agents;  ///< in the order of their start
  std::vector<std::string> cleaned_up;

 private:
  class Process : public AgentProcess {
   public:
    Process(FakeStarter& starter, std::string name) : starter_(starter), name_(std::move(name)) {}
    std::string how_it_ended() override { return "the agent was struck by lightning"; }
    ddl::Error why_not_started(std::string_view, std::string_view) override { return starter_.failure; }
    void clean_up(ddl::Deadline) override { starter_.cleaned_up.push_back(name_); }

   private:
    FakeStarter& starter_;
    std::string name_;
  };
  EventLoop& loop_;
};

struct FleetFixture {
  FleetFixture() {
    ignore_sigpipe();
    starter.on_start = [this] { driver.check(); };
  }

  void start(std::size_t num_nodes) {
    REQUIRE(fleet.start(allocation_of(num_nodes), std::vector<NodeStarter*>(num_nodes, &starter)));
    fleet.listen(
        {[this] {
           std::string event = "complete";
           for (const auto& [node, why] : fleet.failures()) event += "; " + std::to_string(node) + ": " + why;
           note(event);
         },
         [this](int node, ddl::net::Frame&& frame) { return note_report(node, frame); },
         [this](int node, const std::string& how) { note(std::to_string(node) + " lost: " + how); }});
    hear_new_agents();
  }
  void hear_new_agents() {
    for (; heard_agents < starter.agents.size(); ++heard_agents) {
      starter.agents[heard_agents]->start({[this](const ddl::net::Frame& frame) {
                                             if (frame.type != type_of(message::Heartbeat{}))
                                               heard.push_back(frame.type);
                                             driver.check();
                                           },
                                           [](const std::string&) {}});
    }
  }
  /// Closes the fleet in the same way as the head.
  ddl::Status note_report(int node, const ddl::net::Frame& frame) {
    const auto report = message::decode<message::NodeReport>(frame);
    if (!report) return ddl::fail(report.error());
    note(std::to_string(node) + " reports " + std::to_string(frame.type));
    return {};
  }
  void note(std::string event) {
    events.push_back(std::move(event));
    driver.check();
  }
  void answer(int node, const std::string& version = ddl::contract::kVersion) {
    hear_new_agents();
    NodeFacts facts = facts_of("host" + std::to_string(node), 4);
    facts.version = version;
    report(*starter.agents[node], message::Facts{facts});
  }
  void wait_for_events(std::size_t count) {
    driver.run_until("an event", [this, count] { return events.size() >= count; });
    driver.run_ready();
    CAPTURE(events);
    REQUIRE(events.size() == count);
  }

  EventLoop loop;
  LoopDriver driver{loop};
  FakeStarter starter{loop};
  Fleet fleet{loop, {.parallel = 2, .start_timeout_seconds = 0}};
  std::size_t heard_agents = 0;
  std::vector<std::string> events;
  std::vector<std::uint16_t> heard;
};

}  // namespace

TEST_CASE_METHOD(FleetFixture, "a fleet is ready when every agent has sent its facts, in any order") {
  start(2);
  answer(1);
  driver.run_ready();
  CHECK(events.empty());
  answer(0);
  wait_for_events(1);
  CHECK(events[0] == "complete");
  CHECK(fleet.facts()[0].hostname == "host0");
  CHECK(fleet.facts()[1].hostname == "host1");
  answer(0);  // again: no second ready
  driver.run_ready();
  CHECK(events.size() == 1);
}

TEST_CASE_METHOD(FleetFixture, "messages are delivered with their node") {
  start(2);
  answer(0);
  answer(1);
  wait_for_events(1);
  report(*starter.agents[1], message::RankStarted{1, 0, 2});
  report(*starter.agents[1], message::Heartbeat{});  // not delivered
  wait_for_events(2);
  CHECK(events[1] == "1 reports " + std::to_string(type_of(message::RankStarted{})));
}

TEST_CASE_METHOD(FleetFixture, "send_all reaches every agent, and flush waits until it has") {
  start(2);
  fleet.send_all(message::Finish{});
  fleet.send(0, message::StdinEof{});
  fleet.flush();
  driver.run_until("three messages", [&] { return heard.size() == 3; });
}

TEST_CASE_METHOD(FleetFixture, "after select() nodes have new numbers, and nothing is heard of the others") {
  start(3);
  for (int node = 0; node < 3; ++node) answer(node);
  wait_for_events(1);
  fleet.select({0, 2});
  CHECK(fleet.size() == 2);
  CHECK(fleet.name(1) == "node2");
  driver.run_until("what asks the idle agent to finish", [&] { return heard.size() == 1; });
  CHECK(heard[0] == type_of(message::Finish{}));
  fleet.send(1, message::StdinEof{});
  fleet.send_all(message::Pausing{});
  driver.run_until("messages to the two", [&] { return heard.size() == 4; });
  report(*starter.agents[2], message::RankStarted{1, 0, 2});
  wait_for_events(2);
  CHECK(events[1] == "1 reports " + std::to_string(type_of(message::RankStarted{})));
  report(*starter.agents[1], message::RankStarted{1, 0, 2});
  driver.run_ready();
  starter.agents[1].reset();
  starter.agents[2].reset();
  wait_for_events(3);
  CHECK(events[2] == "1 lost: the agent was struck by lightning (its link: closed by the other side)");
}

TEST_CASE_METHOD(
    FleetFixture,
    "an agent of another version has failed, both versions are named, and its messages are ignored") {
  start(1);
  answer(0, "9.9.9");
  wait_for_events(1);
  CHECK(events[0] == "complete; 0: ddlrun there is version 9.9.9, and this one is " +
                         std::string(ddl::contract::kVersion) + "; install the same one there");
  report(*starter.agents[0], message::RankStarted{0, 0, 1});
  starter.agents[0].reset();
  driver.run_ready();
  CHECK(events.size() == 1);
}

TEST_CASE_METHOD(FleetFixture,
                 "an agent that sends an invalid message is lost, and its later messages are ignored") {
  start(4);
  for (int node = 0; node < 4; ++node) answer(node);
  wait_for_events(1);
  starter.agents[0]->send(999, "");
  wait_for_events(2);
  CHECK(events[1] == "0 lost: its agent sent a message of unknown type 999 from agent to head");
  starter.agents[1]->send(type_of(message::Finish{}), "");
  wait_for_events(3);
  CHECK(events[2] == "1 lost: its agent sent a message of type Finish, which does not go from agent to head");
  starter.agents[2]->send(type_of(message::RankStarted{}), "");
  wait_for_events(4);
  CHECK(events[3] ==
        "2 lost: its agent sent a malformed RankStarted message from agent to head: it is cut short");
  starter.agents[3]->send(type_of(message::Finished{}), "");  // the fleet reads it itself
  wait_for_events(5);
  CHECK(events[4] ==
        "3 lost: its agent sent a malformed Finished message from agent to head: it is cut short");
  for (const auto& agent : starter.agents) report(*agent, message::RankStarted{1, 0, 2});
  driver.run_ready();
  CHECK(events.size() == 5);
}

TEST_CASE_METHOD(FleetFixture, "an agent whose first message cannot be decoded has failed") {
  start(1);
  starter.agents[0]->send(type_of(message::Launch{}), "");
  wait_for_events(1);
  CHECK(events[0] ==
        "complete; 0: its agent sent a message of type Launch, which does not go from agent to head");
}

TEST_CASE_METHOD(FleetFixture, "an agent whose link closes is lost once, and the others go on") {
  start(2);
  answer(0);
  answer(1);
  wait_for_events(1);
  starter.agents[0].reset();
  wait_for_events(2);
  CHECK(events[1] == "0 lost: the agent was struck by lightning (its link: closed by the other side)");
  fleet.send_all(message::Finish{});
  fleet.flush();
  driver.run_until("the other one's message", [&] { return heard.size() == 1; });
}

TEST_CASE_METHOD(FleetFixture, "an agent that has finished may close its link") {
  start(1);
  answer(0);
  report(*starter.agents[0], message::Finished{0});
  starter.agents[0].reset();
  wait_for_events(2);
  CHECK(events[1] == "0 reports " + std::to_string(type_of(message::Finished{})));
}

TEST_CASE_METHOD(
    FleetFixture,
    "the start-up is complete when every agent has answered or failed, and all failures are kept") {
  start(3);
  starter.agents[1].reset();
  answer(0);
  driver.run_ready();
  report(*starter.agents[2], message::AgentFailed{"no PMIx", false});
  wait_for_events(1);
  CHECK(events[0] == "complete; 1: lightning; 2: no PMIx");
}

TEST_CASE_METHOD(FleetFixture, "agents that need no fork are started a limited number at a time") {
  starter.is_forking = false;
  start(4);
  CHECK(starter.agents.size() == 2);
  CHECK(fleet.missing() == std::vector<int>{0, 1, 2, 3});
  answer(0);
  driver.run_until("a third", [&] { return starter.agents.size() == 3; });
  CHECK(fleet.missing() == std::vector<int>{1, 2, 3});
  starter.agents[1].reset();
  driver.run_until("a fourth", [&] { return starter.agents.size() == 4; });
  answer(3);
  answer(2);
  wait_for_events(1);
  CHECK(events[0] == "complete; 1: lightning");
}

TEST_CASE_METHOD(FleetFixture, "an agent whose host was busy is started again, a limited number of times") {
  starter.is_forking = false;
  starter.failure = {ddl::ErrorCode::kBusy, "busy"};
  start(1);
  starter.agents[0].reset();
  driver.run_until("a second attempt", [&] { return starter.agents.size() == 2; });
  starter.failure = {ddl::ErrorCode::kUnavailable, "gone"};
  starter.agents[1].reset();
  wait_for_events(1);
  CHECK(events[0] == "complete; 0: gone");
  fleet.shut_down(ddl::Deadline::after(std::chrono::seconds(1)));
  CHECK(starter.cleaned_up.size() == 2);
}

TEST_CASE_METHOD(FleetFixture, "an agent that does not answer in time has failed") {
  Fleet impatient{loop, {.parallel = 2, .start_timeout_seconds = 0.01}};
  REQUIRE(impatient.start(allocation_of(1), {&starter}));
  impatient.listen({[&] { note("complete: " + impatient.failures().at(0)); }, nullptr, nullptr});
  wait_for_events(1);
  CHECK(events[0] == "complete: it has not answered within 0.01 s (--start-timeout)");
}

TEST_CASE_METHOD(FleetFixture, "shutting down closes every link first, then cleans up after every agent") {
  start(2);
  fleet.shut_down(ddl::Deadline::after(std::chrono::seconds(1)));
  CHECK(starter.cleaned_up == std::vector<std::string>{"node0", "node1"});
}

TEST_CASE_METHOD(FleetFixture, "an agent that cannot be forked is an error of start()") {
  starter.refuse = "node1";
  const auto status = fleet.start(allocation_of(3), std::vector<NodeStarter*>(3, &starter));
  REQUIRE_FALSE(status);
  CHECK(status.error().message() == "no way to node1");
}

TEST_CASE_METHOD(FleetFixture,
                 "an agent that needs no fork and cannot be started is one failure among the others") {
  starter.is_forking = false;
  starter.refuse = "node0";
  start(2);
  answer(0);  // the first that was started is node1's
  wait_for_events(1);
  CHECK(events[0] == "complete; 0: no way to node0");
}

namespace {

/// node0 and node3 are started directly; node1 and node2 are reached through node0, node4 and node5 through node3.
struct Tree : FleetFixture {
  Tree() {
    starter.is_forking = false;
    REQUIRE(tree.start(allocation_of(6), std::vector<NodeStarter*>(6, &starter)));
    Fleet::Handlers handlers;
    handlers.on_startup_complete = [this] {
      std::string event = "complete";
      for (const auto& [node, why] : tree.failures()) event += "; " + std::to_string(node) + ": " + why;
      note(event);
    };
    handlers.on_report = [this](int node, ddl::net::Frame&& frame) { return note_report(node, frame); };
    handlers.on_lost = [this](int node, const std::string& how) {
      note(std::to_string(node) + " lost: " + how);
    };
    tree.listen(std::move(handlers));
    REQUIRE(starter.agents.size() == 2);
  }
  void answer_through(int relay, int node) {
    NodeFacts facts = facts_of("host" + std::to_string(node), 4);
    facts.version = ddl::contract::kVersion;
    up(relay, node, message::Facts{std::move(facts)});
  }
  void up(int relay, int node, const message::AgentToHead& inner) {
    ddl::net::Frame frame = message::encode(inner);
    report(*starter.agents[relay], message::Routed{node, frame.type, std::move(frame.payload)});
  }
  void answer_all() {
    answer(0);
    answer(1);
    for (const int node : {1, 2}) answer_through(0, node);
    for (const int node : {4, 5}) answer_through(1, node);
    wait_for_events(1);
    REQUIRE(events[0] == "complete");
  }

  Fleet tree{loop, {.fan_out = 2, .parallel = 8, .start_timeout_seconds = 0}};
};

}  // namespace

TEST_CASE_METHOD(Tree, "agents of a tree receive their branches, and answer through each other") {
  answer(0);
  driver.run_until("the branch", [this] { return heard.size() == 1; });
  CHECK(heard[0] == type_of(message::StartAgents{}));
  CHECK(tree.missing() == std::vector<int>{1, 2, 3, 4, 5});
  answer(1);
  for (const int node : {1, 2}) answer_through(0, node);
  for (const int node : {4, 5}) answer_through(1, node);
  wait_for_events(1);
  CHECK(events[0] == "complete");
  CHECK(tree.facts()[5].hostname == "host5");
}

TEST_CASE_METHOD(Tree, "messages go both ways through a tree, and only to their nodes") {
  answer_all();
  up(0, 2, message::RankStarted{1, 0, 2});
  up(0, 4, message::RankStarted{9, 0, 9});   // not below node0
  up(0, 77, message::RankStarted{9, 0, 9});  // nowhere
  up(0, -1, message::RankStarted{9, 0, 9});
  up(1, 4, message::RankStarted{3, 0, 4});
  wait_for_events(3);
  CHECK(events[1] == "2 reports " + std::to_string(type_of(message::RankStarted{})));
  CHECK(events[2] == "4 reports " + std::to_string(type_of(message::RankStarted{})));
  heard.clear();
  tree.send(5, message::Finish{});
  tree.send(3, message::Finish{});
  driver.run_until("both", [this] { return heard.size() == 2; });
  CHECK(heard[0] == type_of(message::Routed{}));
  CHECK(heard[1] == type_of(message::Finish{}));
}

TEST_CASE_METHOD(Tree, "a node behind a relay is lost when it sends an invalid message") {
  answer_all();
  report(*starter.agents[0], message::Routed{2, type_of(message::Finish{}), ""});
  report(*starter.agents[1], message::Routed{4, type_of(message::RankStarted{}), "x"});
  wait_for_events(3);
  CHECK(events[1] == "2 lost: its agent sent a message of type Finish, which does not go from agent to head");
  CHECK_THAT(events[2], Catch::StartsWith(
                            "4 lost: its agent sent a malformed RankStarted message from agent to head: "));
  up(0, 2, message::RankStarted{1, 0, 2});
  driver.run_ready();
  CHECK(events.size() == 3);
}

TEST_CASE_METHOD(FleetFixture, "a relay forwards messages of other nodes unread") {
  starter.is_forking = false;
  Fleet relayed{loop,
                {.fan_out = 1, .parallel = 8, .start_timeout_seconds = 0}};  // node1 is reached through node0
  REQUIRE(relayed.start(allocation_of(2), std::vector<NodeStarter*>(2, &starter)));
  Fleet::Handlers handlers;
  handlers.on_report = [this](int node, ddl::net::Frame&& frame) -> ddl::Status {
    note(std::to_string(node) + " reports " + frame.payload);
    return {};
  };
  handlers.on_routed = [this](int node, ddl::net::Frame&& frame) {
    note(std::to_string(node) + " routed " + std::to_string(frame.type) + " " + frame.payload);
  };
  relayed.listen(std::move(handlers));
  answer(0);
  starter.agents[0]->send(type_of(message::RankStarted{}), "no CBOR");
  report(*starter.agents[0], message::Routed{1, type_of(message::Facts{}), "no CBOR"});
  wait_for_events(2);
  CHECK(events[0] == "0 reports no CBOR");
  CHECK(events[1] == "1 routed " + std::to_string(type_of(message::Facts{})) + " no CBOR");
  heard.clear();
  relayed.forward(0, {999, "no CBOR"});
  relayed.forward(1, {999, "no CBOR"});
  driver.run_until("both", [this] { return heard.size() == 2; });
  CHECK(heard[0] == 999);
  CHECK(heard[1] == type_of(message::Routed{}));
}

TEST_CASE_METHOD(Tree, "if a relay does not start, its branch has failed too") {
  answer(0);
  starter.agents[1].reset();
  for (const int node : {1, 2}) answer_through(0, node);
  wait_for_events(1);
  CHECK(events[0] ==
        "complete; 3: lightning; 4: it is reached through node3, which did not come up; 5: it is reached "
        "through "
        "node3, which did not come up");
}

TEST_CASE_METHOD(Tree, "a relay reports an agent behind it that does not start, or is lost") {
  answer(0);
  answer(1);
  answer_through(0, 1);
  report(*starter.agents[0], message::AgentDown{2, "its name was not found"});
  for (const int node : {4, 5}) answer_through(1, node);
  wait_for_events(1);
  CHECK(events[0] == "complete; 2: its name was not found");
  report(*starter.agents[1], message::AgentDown{2, "not mine"});
  report(*starter.agents[1], message::AgentDown{5, "silence"});
  wait_for_events(2);
  CHECK(events[1] == "5 lost: silence");
}

TEST_CASE_METHOD(Tree, "if a relay is lost, its branch is lost too, after it") {
  answer_all();
  starter.agents[0].reset();
  wait_for_events(4);
  CHECK(events[1] == "0 lost: the agent was struck by lightning (its link: closed by the other side)");
  CHECK(events[2] == "1 lost: it is reached through node0, which is lost");
  CHECK(events[3] == "2 lost: it is reached through node0, which is lost");
  CHECK(tree.failed_hosts() == std::vector<std::string>{"node0"});
}

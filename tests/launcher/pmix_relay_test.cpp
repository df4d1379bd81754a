#include "launcher/head/pmix_relay.h"

#include "launcher/loop_driver.h"
#include "support/catch.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;

namespace {

/// Ranks 0 and 1 are on node 0, rank 2 on node 1, rank 3 on node 2.
struct RelayFixture {
  EventLoop loop;
  LoopDriver driver{loop};
  std::vector<std::pair<int, message::HeadToAgent>> sent;
  PmixRelay relay{loop, {0, 0, 1, 2}, [this](int node, const message::HeadToAgent& m) {
                    sent.emplace_back(node, m);
                    driver.check();
                  }};

  template <class Message>
  const Message& sent_to(std::size_t index, int node) {
    REQUIRE(index < sent.size());
    REQUIRE(sent[index].first == node);
    const auto* found = std::get_if<Message>(&sent[index].second);
    REQUIRE(found != nullptr);
    return *found;
  }
};

using Names = message::PmixNames;

}  // namespace

TEST_CASE_METHOD(
    RelayFixture,
    "a fence of all ranks is complete when every node has arrived, with the data in the order of the nodes") {
  relay.on(2, message::PmixFence{{}, "c"});
  relay.on(0, message::PmixFence{{}, "a"});
  CHECK(sent.empty());
  relay.on(1, message::PmixFence{{}, "b"});
  REQUIRE(sent.size() == 3);
  for (int node = 0; node < 3; ++node) {
    CHECK(sent_to<message::PmixFenceDone>(node, node).data == "abc");
    CHECK(sent_to<message::PmixFenceDone>(node, node).ranks.empty());
  }
}

TEST_CASE_METHOD(RelayFixture,
                 "fences of different groups are independent, and repeated ones keep their order") {
  relay.on(0, message::PmixFence{{0, 2}, "a1"});
  relay.on(0, message::PmixFence{{0, 2}, "a2"});
  relay.on(0, message::PmixFence{{}, "whole"});
  relay.on(1, message::PmixFence{{0, 2}, "b1"});
  REQUIRE(sent.size() == 2);
  CHECK(sent_to<message::PmixFenceDone>(0, 0).data == "a1b1");
  CHECK(sent_to<message::PmixFenceDone>(1, 1).ranks == std::vector<int>{0, 2});
  relay.on(1, message::PmixFence{{0, 2}, "b2"});
  REQUIRE(sent.size() == 4);
  CHECK(sent_to<message::PmixFenceDone>(3, 1).data == "a2b2");
}

TEST_CASE_METHOD(
    RelayFixture,
    "a fence of ranks that do not exist, or from a node that is no part of it, changes nothing") {
  relay.on(0, message::PmixFence{{0, 99}, ""});
  relay.on(0, message::PmixFence{{-1}, ""});
  relay.on(2, message::PmixFence{{0, 2}, ""});
  relay.on(0, message::PmixFence{{0, 2}, ""});
  CHECK(sent.empty());
  relay.on(1, message::PmixFence{{0, 2}, ""});
  CHECK(sent.size() == 2);
}

TEST_CASE_METHOD(RelayFixture,
                 "a modex request for a rank goes to its node, and the answer to the node that asked") {
  relay.on(0, message::PmixModex{7, 55, 3});
  const auto& question = sent_to<message::PmixModex>(0, 2);
  CHECK(question.node == 0);
  relay.on(2, message::PmixModexData{question.id, question.node, 0, "card"});
  CHECK(sent_to<message::PmixModexData>(1, 0).data == "card");
  relay.on(0, message::PmixModex{8, 0, 4});
  relay.on(0, message::PmixModex{8, 0, -1});
  relay.on(2, message::PmixModexData{8, 3, 0, ""});
  relay.on(2, message::PmixModexData{8, -1, 0, ""});
  CHECK(sent.size() == 2);
}

TEST_CASE_METHOD(RelayFixture,
                 "names that one node publishes are found by another, which may wait for them") {
  relay.on(1, message::PmixLookup{3, {"port"}, true, 0});
  CHECK(sent.empty());
  relay.on(0, message::PmixPublish{1, {{"port", "4711", 0}}, false});
  CHECK(sent_to<Names>(0, 1).found == std::vector<message::PmixPair>{{"port", "4711", 0}});
  CHECK(sent_to<Names>(1, 0).status == Names::Status::kDone);
  relay.on(2, message::PmixPublish{1, {{"port", "4712", 3}}, false});
  CHECK(sent_to<Names>(2, 2).status == Names::Status::kDuplicate);
  relay.on(0, message::PmixUnpublish{2, 0, {}});
  relay.on(2, message::PmixLookup{9, {"port"}, false, 0});
  CHECK(sent_to<Names>(4, 2).status == Names::Status::kNotFound);
}

TEST_CASE_METHOD(RelayFixture, "a lookup with a timeout is answered in time") {
  relay.on(1, message::PmixLookup{3, {"port"}, true, 1});
  driver.run_until("the answer", [this] { return !sent.empty(); });
  CHECK(sent_to<Names>(0, 1).status == Names::Status::kTimedOut);
}

TEST_CASE_METHOD(RelayFixture, "an event goes to all other nodes") {
  relay.on(1, message::PmixEvent{-5, 2, 3, "infos"});
  REQUIRE(sent.size() == 2);
  CHECK(sent_to<message::PmixEvent>(0, 0).infos == "infos");
  CHECK(sent_to<message::PmixEvent>(1, 2).source == 2);
}

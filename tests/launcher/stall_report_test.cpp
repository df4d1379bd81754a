// The sentences about jobs that do not go on.
#include "launcher/head/stall_report.h"
#include "support/catch.h"

using namespace ddl::launcher;

namespace {

const std::vector<std::string> kHosts{"node1", "node1", "node2", "node2"};

CallActivity inside(const std::string& kind, int number, double seconds) {
  return {kind, number, true, seconds};
}
CallActivity outside(const std::string& kind, int number, double seconds) {
  return {kind, number, false, seconds};
}

/// A rank of the world, which is in this call, or has been.
RankActivity rank(int number, const CallActivity& call) {
  RankActivity one;
  one.rank = number;
  one.pid = 100 + number;
  one.phase = RankActivity::Phase::kJoined;
  one.seconds = 73;
  SetActivity world;
  world.generation = 1;
  world.call = call;
  one.sets.push_back(world);
  return one;
}

RankActivity with_tensors(RankActivity one, const std::vector<std::string>& names, double seconds = 61) {
  for (const std::string& name : names) {
    const auto digest = static_cast<std::int64_t>(std::hash<std::string>()(name));
    one.tensors.push_back({1, name, digest, seconds});
  }
  one.open_tensors = static_cast<std::int64_t>(names.size());
  one.sets[0].waits = true;
  return one;
}

/// Of a job of these ranks, or of more, of which the others have not answered.
std::vector<Stall> stalls(const std::vector<RankActivity>& ranks, std::size_t job_ranks) {
  return find_stalls(ranks, {kHosts.begin(), kHosts.begin() + static_cast<std::ptrdiff_t>(job_ranks)}, 60);
}
std::vector<std::string> sentences(const std::vector<RankActivity>& ranks, std::size_t job_ranks = 0) {
  std::vector<std::string> all;
  for (const Stall& stall : stalls(ranks, std::max(job_ranks, ranks.size()))) all.push_back(stall.sentence);
  return all;
}

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("a call that some ranks have not come to is a stall, with what these do") {
  const CallActivity waiting = inside("allreduce", 812, 61), before = outside("allreduce", 811, 73);
  CHECK(sentences({rank(0, waiting), rank(1, waiting), rank(2, waiting), rank(3, before)}) ==
        Sentences{
            "allreduce #812: 3 of 4 ranks have waited for 61 s for rank 3 (node2, pid 103), which has been "
            "in user code for 73 s"});
  RankActivity stopped = rank(2, before);
  stopped.is_stopped = true;
  RankActivity ended = rank(3, before);
  ended.pid = 0;
  CHECK(sentences({rank(0, waiting), rank(1, inside("allreduce", 812, 5)), stopped, ended}) ==
        Sentences{"allreduce #812: 2 of 4 ranks have waited for 61 s for 2 ranks: rank 2 (node2, pid 102) is "
                  "stopped (SIGSTOP), rank 3 (node2) has ended"});
  CHECK(sentences({rank(0, inside("allreduce", 812, 59)), rank(1, before)}).empty());
  // A rank that waits in the call before for the same rank is none that is waited for.
  const CallActivity behind = inside("allreduce", 811, 62);
  RankActivity stopped_inside = rank(3, behind);
  stopped_inside.is_stopped = true;
  for (const RankActivity& culprit : {stopped_inside, rank(3, before)})
    CHECK(stalls({rank(0, waiting), rank(1, waiting), rank(2, behind), culprit}, 4).at(0).missing ==
          std::vector{3});
  CHECK(stalls({rank(0, waiting), rank(1, waiting), rank(2, behind), rank(3, behind)}, 4).at(0).missing ==
        std::vector{2, 3});
}

TEST_CASE("a rank that waits in another set's call is said to do so") {
  RankActivity one = rank(0, outside("barrier", 1, 80)), other = rank(1, inside("barrier", 2, 61));
  SetActivity set;
  set.generation = 7;
  set.id = 2;
  set.call = inside("broadcast", 5, 70);
  one.sets.push_back(set);
  const Sentences said = sentences({one, other});
  REQUIRE(said.size() == 2);
  CHECK(said[0] ==
        "barrier #2: 1 of 2 ranks has waited for 61 s for rank 0 (node1, pid 100), which has been inside "
        "broadcast #5 of process set 2 for 70 s");
  CHECK(said[1] == "broadcast #5 of process set 2: 1 of 1 ranks has waited for 70 s, and none is missing");
}

TEST_CASE("a call in which all ranks are names those that are stopped") {
  RankActivity stopped = rank(1, inside("allreduce", 3, 62));
  stopped.is_stopped = true;
  CHECK(sentences({rank(0, inside("allreduce", 3, 61)), stopped}) ==
        Sentences{
            "allreduce #3: 2 of 2 ranks have waited for 62 s; among them rank 1 (node1, pid 101), which is "
            "stopped (SIGSTOP)"});
}

TEST_CASE("a transfer waits for one rank") {
  RankActivity receiver = rank(0, inside("transfer", 4, 61));
  receiver.sets[0].peer = 2;
  CHECK(
      sentences({receiver, rank(1, inside("barrier", 4, 3)), rank(2, outside("barrier", 3, 90))}) ==
      Sentences{
          "a transfer with rank 2: rank 0 (node1, pid 100) has waited for 61 s for rank 2 (node2, pid 102), "
          "which has been in user code for 73 s"});
}

TEST_CASE("ddl_init and ddl_join wait for ranks, too") {
  RankActivity joining = rank(0, {}), absent = rank(1, {});
  joining.phase = RankActivity::Phase::kJoining;
  joining.seconds = 61;
  joining.inits = 2;
  absent.phase = RankActivity::Phase::kNone;
  joining.sets.clear();
  absent.sets.clear();
  CHECK(sentences({joining, absent}) ==
        Sentences{
            "ddl_init: 1 of 2 ranks has waited for 61 s for rank 1 (node1, pid 101), which has not called "
            "ddl_init"});
  // The next program of rank 0 waits for that of rank 1.
  const std::string before =
      "ddl_init: 1 of 2 ranks has waited for 61 s for rank 1 (node1, pid 101), which has ";
  RankActivity in_its_first = rank(1, {});
  in_its_first.inits = 1;
  CHECK(sentences({joining, in_its_first}) == Sentences{before + "been in user code for 73 s"});
  RankActivity left = rank(1, {});
  left.phase = RankActivity::Phase::kLeft;
  CHECK(sentences({joining, left}) == Sentences{before + "called ddl_finalize"});
  RankActivity just_joined = rank(1, {});
  just_joined.inits = 2;
  CHECK(sentences({joining, just_joined}) ==
        Sentences{"ddl_init: 1 of 2 ranks has waited for 61 s, and none is missing"});
  RankActivity joined = rank(1, {});
  joined.sets[0].has_joined = true;
  CHECK(sentences({rank(0, {}), joined}) == Sentences{"ddl_join: 1 of 2 ranks has waited for 73 s for rank 0 "
                                                      "(node1, pid 100), which has been in user code "
                                                      "for 73 s"});
  joined.seconds = 5;  // the others go on
  CHECK(sentences({rank(0, {}), joined}).empty());
}

TEST_CASE("tensors that wait for the same ranks are one stall") {
  const CallActivity none;
  const RankActivity all = with_tensors(rank(0, none), {"a", "b", "c", "d", "e"});
  CHECK(sentences({all, with_tensors(rank(1, none), {"e"})}) ==
        Sentences{
            "tensor \"e\": 2 of 2 ranks have waited for 61 s, and none is missing",
            "tensors \"a\", \"b\", \"c\" and 1 more: 1 of 2 ranks has waited for 61 s for rank 1 (node1, pid "
            "101), which has waited for tensor \"e\" for 61 s"});
  // A rank that has joined submits nothing.
  RankActivity joined = rank(2, none);
  joined.sets[0].has_joined = true;
  joined.seconds = 5;
  const Sentences said = sentences({with_tensors(rank(0, none), {"a"}), rank(1, none), joined});
  REQUIRE(said.size() == 1);
  CHECK(said[0] ==
        "tensor \"a\": 1 of 3 ranks has waited for 61 s for rank 1 (node1, pid 101), which has been in user "
        "code for 73 s");
  // A rank with more tensors than it reports may have handed it over.
  RankActivity many = with_tensors(rank(1, none), {"z"}, 1);
  many.open_tensors = 1000;
  CHECK(
      sentences({with_tensors(rank(0, none), {"a"}), many}) ==
      Sentences{"tensor \"a\": 1 of 2 ranks has waited for 61 s, perhaps for rank 1 (node1, pid 101), which "
                "has waited for tensor \"z\" for 1.0 s"});
}

TEST_CASE("ranks that have not answered are not said to have come") {
  const CallActivity waiting = inside("allreduce", 812, 61);
  CHECK(sentences({rank(0, waiting), rank(1, waiting)}, 3) ==
        Sentences{
            "allreduce #812: 2 of 3 ranks have waited for 61 s, perhaps for rank 2 (node2), which has not "
            "answered"});
  const auto found = stalls({rank(0, waiting), rank(1, outside("allreduce", 811, 73))}, 4);
  REQUIRE(found.size() == 1);
  CHECK(found[0].sentence ==
        "allreduce #812: 1 of 4 ranks has waited for 61 s, perhaps for 2 ranks: rank 2 (node2) has not "
        "answered, "
        "rank 3 (node2) has not answered, and for rank 1 (node1, pid 101), which has been in user code for "
        "73 s");
  CHECK(found[0].missing == std::vector<int>{1});
  CHECK(found[0].unknown == std::vector<int>{2, 3});

  RankActivity joining = rank(0, {}), joined = rank(0, {}), receiver = rank(0, inside("transfer", 4, 61));
  joining.phase = RankActivity::Phase::kJoining;
  joining.sets.clear();
  joined.sets[0].has_joined = true;
  receiver.sets[0].peer = 1;
  const std::string perhaps =
      ": 1 of 2 ranks has waited for 73 s, perhaps for rank 1 (node1), which has not answered";
  CHECK(sentences({joining}, 2) == Sentences{"ddl_init" + perhaps});
  CHECK(sentences({joined}, 2) == Sentences{"ddl_join" + perhaps});
  CHECK(sentences({with_tensors(rank(0, {}), {"a"}, 73)}, 2) == Sentences{"tensor \"a\"" + perhaps});
  CHECK(sentences({receiver}, 2) ==
        Sentences{
            "a transfer with rank 1: rank 0 (node1, pid 100) has waited for 61 s for rank 1 (node1), which "
            "has not answered"});
  // Whether a rank is a member of a set, only the rank itself says.
  RankActivity in_set = rank(0, waiting);
  in_set.sets[0].id = 2;
  CHECK(sentences({in_set}, 2) ==
        Sentences{"allreduce #812 of process set 2: 1 of the 1 ranks that have answered has waited for 61 s, "
                  "perhaps for rank 1 (node1), which has not answered"});
}

TEST_CASE("a rank that has submitted the tensor to another process set is named with it") {
  const CallActivity none;
  RankActivity other = rank(1, none);
  SetActivity second;
  second.generation = 2;
  second.id = 4;
  second.waits = true;
  other.sets.push_back(second);
  other = with_tensors(other, {"a"});
  other.sets[0].waits = false;
  other.tensors[0].generation = 2;
  const Sentences said = sentences({with_tensors(rank(0, none), {"a"}), other});
  REQUIRE(said.size() == 2);
  CHECK(said[0] ==
        "tensor \"a\": 1 of 2 ranks has waited for 61 s for rank 1 (node1, pid 101), which has waited for "
        "tensor "
        "\"a\" of process set 4 for 61 s; rank 1 (node1, pid 101) has submitted a tensor \"a\" to process "
        "set 4");
}

TEST_CASE("where a rank hangs is said with what the kernel knows of its process") {
  RankActivity one = rank(1, inside("allreduce", 812, 61));
  CHECK(hanging_text(one) == "it has been inside allreduce #812 for 61 s");
  one.process = {"S", 3, 7.5, 4096, 8192, 0.02, {"futex", "futex_wait_queue"}};
  CHECK(hanging_text(one) ==
        "it has been inside allreduce #812 for 61 s, and waits in the system call futex (futex_wait_queue)");
  one.process.wait.system_call = "";
  CHECK(hanging_text(one) ==
        "it has been inside allreduce #812 for 61 s, and waits in the kernel (futex_wait_queue)");
  one.process.cpu_share = 0.98;
  CHECK(hanging_text(one) == "it has been inside allreduce #812 for 61 s, and uses 98 % of a CPU");
  RankActivity stopped = rank(2, inside("allreduce", 812, 61));
  stopped.is_stopped = true;
  stopped.process.wait.system_call = "futex";
  CHECK(hanging_text(stopped) == "it is stopped (SIGSTOP)");
  RankActivity other;
  other.pid = 7;
  other.process.state = "R";
  CHECK(hanging_text(other) == "it runs");
  CHECK(hanging_text(RankActivity()) == "it has ended");
}

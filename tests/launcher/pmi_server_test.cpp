// PMI-1 as MPICH's processes speak it, over real sockets; and the barriers between nodes.
#include "launcher/pmix/pmi_server.h"

#include <poll.h>
#include <unistd.h>

#include "launcher/head/pmix_relay.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using ddl::UniqueFd;

namespace {

/// A node's server and its ranks' ends.
class Node {
 public:
  Node(EventLoop& loop, int index, const std::vector<std::vector<int>>& node_ranks, bool is_elastic = false)
      : loop_(loop),
        server_(loop, [this](const message::AgentToHead& message) { sent_to_head.push_back(message); }) {
    JobLaunch job;
    job.job_id = "ddlrun-1-a";
    job.node_ranks = node_ranks;
    for (const auto& ranks : node_ranks) job.num_ranks += static_cast<int>(ranks.size());
    if (is_elastic) job.environment["DDL_ELASTIC"] = "1";
    server_.register_job(job, index);
    for (const int rank : node_ranks[static_cast<std::size_t>(index)])
      ends_[rank] = server_.connect(rank).value();
  }

  PmiServer& server() { return server_; }
  void send(int rank, const std::string& text) {
    REQUIRE(::write(ends_.at(rank).get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  /// The next line for the rank; "" at the end.
  std::string line(int rank) {
    const auto watched = loop_.watch(ends_.at(rank).get(), [this] { loop_.stop(); });
    while (lines_[rank].find('\n') == std::string::npos) {
      loop_.run();
      std::array<char, 4096> buffer;
      const ssize_t got = ::read(ends_.at(rank).get(), buffer.data(), buffer.size());
      if (got <= 0) return "";
      lines_[rank].append(buffer.data(), static_cast<std::size_t>(got));
    }
    const std::size_t end = lines_[rank].find('\n');
    std::string line = lines_[rank].substr(0, end);
    lines_[rank].erase(0, end + 1);
    return line;
  }
  std::string ask(int rank, const std::string& text) {
    send(rank, text + "\n");
    return line(rank);
  }
  bool is_silent(int rank) {
    const EventLoop::Timer soon = loop_.after(std::chrono::milliseconds(20), [this] { loop_.stop(); });
    loop_.run();
    pollfd waited{ends_.at(rank).get(), POLLIN, 0};
    return ::poll(&waited, 1, 0) == 0;
  }

  std::vector<message::AgentToHead> sent_to_head;

 private:
  EventLoop& loop_;
  PmiServer server_;
  std::map<int, UniqueFd> ends_;
  std::map<int, std::string> lines_;
};

}  // namespace

TEST_CASE("ranks of one node learn their numbers, and what others have put") {
  EventLoop loop;
  Node node(loop, 0, {{0, 1}});
  CHECK(node.server().client_environment(1) ==
        Environment{{"PMI_FD", "4"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  CHECK(node.ask(0, "cmd=init pmi_version=1 pmi_subversion=1") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
  CHECK(node.ask(0, "cmd=init pmi_version=2 pmi_subversion=0") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1");
  CHECK(node.ask(0, "cmd=get_maxes") == "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024");
  CHECK(node.ask(1, "cmd=get_appnum") == "cmd=appnum appnum=0");
  CHECK(node.ask(1, "cmd=get_universe_size") == "cmd=universe_size size=2");
  CHECK(node.ask(1, "cmd=get_my_kvsname") == "cmd=my_kvsname kvsname=ddlrun-1-a");
  CHECK(node.ask(0, "cmd=get kvsname=ddlrun-1-a key=PMI_process_mapping") ==
        "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))");
  CHECK(node.ask(0, "cmd=put kvsname=ddlrun-1-a key=P0 value=card") == "cmd=put_result rc=0 msg=success");
  CHECK(node.ask(0, "cmd=put key=P1 value=" + std::string(1024, 'x')) ==
        "cmd=put_result rc=-1 msg=key_or_value_is_too_long");
  node.send(0, "cmd=barrier_in\n");
  CHECK(node.is_silent(0));
  CHECK(node.ask(1, "cmd=barrier_in") == "cmd=barrier_out");
  CHECK(node.line(0) == "cmd=barrier_out");
  CHECK(node.ask(1, "cmd=get kvsname=ddlrun-1-a key=P0") == "cmd=get_result rc=0 msg=success value=card");
  CHECK(node.ask(1, "cmd=get key=P9") == "cmd=get_result rc=-1 msg=nobody_has_put_it value=unknown");
  CHECK(node.ask(0, "cmd=finalize") == "cmd=finalize_ack");
  CHECK(node.sent_to_head.empty());
}

TEST_CASE("processes of an elastic job get their ranks in each generation, and its pairs and barriers") {
  EventLoop loop;
  Node node(loop, 0, {{0, 1, 2}}, true);
  node.send(2, "cmd=elastic_join reason=0 commits=0\n");
  node.send(0, "cmd=elastic_join reason=2 commits=841\n");
  CHECK(node.is_silent(0));
  REQUIRE(node.sent_to_head.size() == 2);
  CHECK(std::get<message::ElasticJoin>(node.sent_to_head[1]) == message::ElasticJoin{0, 2, 841});
  node.sent_to_head.clear();
  node.server().take(message::ElasticPlan{3, 4, {0, 2}, {1, 2}, "(vector,(0,1,1),(1,1,2),(2,1,1))"});
  CHECK(node.line(0) ==
        "cmd=elastic_plan rc=0 generation=3 rank=1 size=4 hosts=(vector,(0,1,1),(1,1,2),(2,1,1))");
  CHECK(node.line(2) ==
        "cmd=elastic_plan rc=0 generation=3 rank=2 size=4 hosts=(vector,(0,1,1),(1,1,2),(2,1,1))");
  // Rank 1 of the launch is not one of the generation, and not waited for.
  CHECK(node.ask(0, "cmd=put key=a value=x") == "cmd=put_result rc=0 msg=success");
  node.send(0, "cmd=barrier_in\n");
  node.send(2, "cmd=barrier_in\n");
  CHECK(node.is_silent(2));
  REQUIRE(node.sent_to_head.size() == 1);
  CHECK(std::get<message::PmiBarrier>(node.sent_to_head[0]).pairs ==
        std::vector<message::PmiPair>{{"a", "x"}});
  // A rank of another host is lost: this barrier fails, and the later ones of the generation.
  node.server().give_up_barriers();
  CHECK(node.line(0) == "cmd=barrier_out rc=-1 msg=a_rank_was_lost");
  CHECK(node.line(2) == "cmd=barrier_out rc=-1 msg=a_rank_was_lost");
  CHECK(node.ask(2, "cmd=barrier_in") == "cmd=barrier_out rc=-1 msg=a_rank_was_lost");
  for (const int rank : {0, 2}) node.send(rank, "cmd=elastic_join reason=2 commits=841\n");
  CHECK(node.is_silent(0));
  node.server().take(message::ElasticPlan{4, 2, {0, 2}, {0, 1}, "(vector,(0,1,2))"});
  for (const int rank : {0, 2}) CHECK(node.line(rank).starts_with("cmd=elastic_plan rc=0 generation=4 "));
  CHECK(node.ask(2, "cmd=get key=a") == "cmd=get_result rc=-1 msg=nobody_has_put_it value=unknown");
  node.send(0, "cmd=barrier_in\n");
  CHECK(node.ask(2, "cmd=barrier_in") == "cmd=barrier_out");
  CHECK(node.line(0) == "cmd=barrier_out");
  node.sent_to_head.clear();
  CHECK(node.ask(0, "cmd=elastic_finished") == "cmd=elastic_finished_ack");
  CHECK(std::get<message::ElasticFinished>(node.sent_to_head.at(0)).rank == 0);
}

TEST_CASE("an ordinary job does not answer the commands of elastic ones") {
  EventLoop loop;
  Node node(loop, 0, {{0}});
  CHECK(node.ask(0, "cmd=elastic_join reason=0 commits=0").empty());
  CHECK(node.sent_to_head.empty());
}

TEST_CASE(
    "commands that are not served are answered, so that no client waits; nonsense ends the connection") {
  EventLoop loop;
  Node node(loop, 0, {{0, 1, 2}});
  CHECK(node.ask(0, "mcmd=spawn\nnprocs=2\nexecname=a b\nendcmd") ==
        "cmd=spawn_result rc=-1 msg=ddlrun_does_not_spawn");
  REQUIRE(node.sent_to_head.size() == 1);
  CHECK(std::get<message::SpawnRefused>(node.sent_to_head[0]).rank == 0);
  node.sent_to_head.clear();
  CHECK(node.ask(0, "cmd=publish_name service=s port=p") ==
        "cmd=publish_result rc=-1 msg=ddlrun_keeps_no_names");
  CHECK(node.ask(0, "cmd=lookup_name service=s") == "cmd=lookup_result rc=-1 msg=ddlrun_keeps_no_names");
  node.send(0, "cmd=abort exitcode=3\n");
  CHECK(node.is_silent(0));
  REQUIRE(node.sent_to_head.size() == 1);
  const auto* abort = std::get_if<message::AbortRequested>(node.sent_to_head.data());
  REQUIRE(abort != nullptr);
  CHECK(abort->rank == 0);
  CHECK(abort->exit_code == 3);
  CHECK(node.ask(1, "cmd=no_such_command").empty());
  CHECK(node.ask(2, "GET / HTTP/1.0").empty());
}

TEST_CASE("MPI_Comm_spawn_multiple sends several commands and gets one answer") {
  EventLoop loop;
  Node node(loop, 0, {{0, 1}});
  const auto command = [](int number) {
    return "mcmd=spawn\nnprocs=2\nexecname=a\ntotspawns=3\nspawnssofar=" + std::to_string(number) +
           "\narg1=endcmd=endcmd\nargcnt=1\nendcmd\n";
  };
  node.send(1, command(1) + command(2));
  CHECK(node.is_silent(1));
  CHECK(node.sent_to_head.empty());
  node.send(1, command(3));
  CHECK(node.line(1) == "cmd=spawn_result rc=-1 msg=ddlrun_does_not_spawn");
  REQUIRE(node.sent_to_head.size() == 1);
  CHECK(std::get<message::SpawnRefused>(node.sent_to_head[0]).rank == 1);
  CHECK(node.ask(1, "cmd=get_appnum") == "cmd=appnum appnum=0");
}

TEST_CASE("a barrier of several nodes gives all ranks what all have put") {
  EventLoop loop;
  const std::vector<std::vector<int>> ranks = {{0, 2}, {1}};
  Node first(loop, 0, ranks);
  Node second(loop, 1, ranks);
  PmiBarriers barriers({0, 1, 0}, [&](int node, const message::HeadToAgent& message) {
    (node == 0 ? first : second).server().take(std::get<message::PmiBarrierDone>(message));
  });
  for (const std::string round : {"a", "b"}) {
    CAPTURE(round);
    for (const int rank : {0, 2}) {
      const std::string number = std::to_string(rank);
      CHECK(first.ask(rank, "cmd=put key=" + round + number + " value=from" + number) ==
            "cmd=put_result rc=0 msg=success");
      first.send(rank, "cmd=barrier_in\n");
    }
    CHECK(first.is_silent(0));
    REQUIRE(first.sent_to_head.size() == 1);
    auto barrier = std::get<message::PmiBarrier>(first.sent_to_head.front());
    CHECK(barrier.pairs.size() == 2);
    first.sent_to_head.clear();
    barriers.on(0, std::move(barrier));
    barriers.on(7, {});  // no node of the job
    CHECK(first.is_silent(2));
    second.send(1, "cmd=barrier_in\n");
    CHECK(second.is_silent(1));
    barriers.on(1, std::move(std::get<message::PmiBarrier>(second.sent_to_head.front())));
    second.sent_to_head.clear();
    CHECK(first.line(0) == "cmd=barrier_out");
    CHECK(first.line(2) == "cmd=barrier_out");
    CHECK(second.line(1) == "cmd=barrier_out");
    CHECK(second.ask(1, "cmd=get key=" + round + "2") == "cmd=get_result rc=0 msg=success value=from2");
  }
}

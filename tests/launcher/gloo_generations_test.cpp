// The rendezvous of an elastic job of Horovod, as its processes ask it.
#include "launcher/elastic/gloo_generations.h"

#include "support/catch.h"

using namespace ddl::launcher;
using Catch::Matchers::Contains;

namespace {

// Members 0 and 1 on node-a (launch 7), 2 and 3 on node-b (launch 8).
const std::vector<GlooGenerations::Process> kFourProcesses = {
    {0, 7, "node-a"}, {1, 7, "node-a"}, {2, 8, "node-b"}, {3, 8, "node-b"}};

struct Generations {
  GlooGenerations gloo;
  std::int64_t last_id = 0;

  GlooGenerations::Reply call(int launch, const std::string& method, const std::string& path) {
    return gloo.ask(launch, ++last_id, *read_gloo_request(method, path, "v"));
  }
  int status(int launch, const std::string& method, const std::string& path) {
    const auto reply = call(launch, method, path);
    return reply.answer ? reply.answer->status : 0;
  }
  /// The member that asks for its place.
  std::optional<int> join(int launch, const std::string& key) {
    const auto reply = call(launch, "GET", "/rank_and_size/" + key);
    CHECK(reply.answer.has_value() != reply.joins.has_value());
    return reply.joins;
  }
};

std::string place_text(const RankPlacement& place) {
  return std::to_string(place.node) + " " + std::to_string(place.rank) + "/" + std::to_string(place.size) +
         " local " + std::to_string(place.local_rank) + "/" + std::to_string(place.local_size) + " cross " +
         std::to_string(place.cross_rank) + "/" + std::to_string(place.cross_size);
}

}  // namespace

TEST_CASE("places of ranks on nodes with different numbers of ranks") {
  const auto places = rank_placements({0, 1, 1, 2});
  REQUIRE(places.size() == 4);
  CHECK(place_text(places[0]) == "0 0/4 local 0/1 cross 0/3");
  CHECK(place_text(places[1]) == "1 1/4 local 0/2 cross 1/3");
  CHECK(place_text(places[2]) == "1 2/4 local 1/2 cross 0/1");
  CHECK(place_text(places[3]) == "2 3/4 local 0/1 cross 2/3");
  CHECK(rank_placements({}).empty());
}

TEST_CASE("processes of Horovod that join again are answered when the next generation begins") {
  Generations job;
  CHECK(job.gloo.begin(kFourProcesses).empty());
  CHECK(job.join(7, "node-a:1") == 1);
  CHECK(job.join(8, "node-b:0") == 2);
  CHECK(job.join(8, "node-b:1") == 3);
  // Rank 0 is lost.
  const auto answers = job.gloo.begin({kFourProcesses[1], kFourProcesses[2], kFourProcesses[3]});
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].launch == 7);
  CHECK(answers[0].id == 1);
  CHECK(answers[0].answer == GlooAnswer{200, "0,3,0,1,0,2"});
  CHECK(answers[1].answer == GlooAnswer{200, "1,3,0,2,1,2"});
  CHECK(answers[2].launch == 8);
  CHECK(answers[2].answer == GlooAnswer{200, "2,3,1,2,0,1"});
  // Member 1 has another local rank now.
  CHECK_FALSE(job.join(7, "node-a:1"));
  CHECK(job.join(7, "node-a:0") == 1);
}

TEST_CASE("a process of Horovod that asks twice has one answer, to its last request") {
  Generations job;
  job.gloo.begin(kFourProcesses);
  job.join(7, "node-a:0");
  job.join(7, "node-a:0");
  const auto answers = job.gloo.begin({kFourProcesses[0]});
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].id == 2);
  CHECK(answers[0].answer.body == "0,1,0,1,0,1");
}

TEST_CASE("a process that is no rank of the next generation gets no place, and cannot ask again") {
  Generations job;
  job.gloo.begin(kFourProcesses);
  CHECK(job.join(8, "node-b:1") == 3);
  CHECK(job.gloo.begin({kFourProcesses[0], kFourProcesses[1]}).empty());
  const auto reply = job.call(8, "GET", "/rank_and_size/node-b:1");
  REQUIRE(reply.answer);
  CHECK(reply.answer->status == 400);
  CHECK_THAT(reply.answer->body, Contains("no rank node-b:1") && Contains("HOROVOD_LOCAL_RANK"));
}

TEST_CASE("a place is asked for by the host's own processes, with the host's whole name") {
  Generations job;
  job.gloo.begin({{0, 7, "fe80::1"}, {1, 8, "node-b"}});
  CHECK_FALSE(job.join(7, "node-b:0"));
  CHECK_FALSE(job.join(8, "node-b:7"));
  CHECK_FALSE(job.join(8, "node-b"));
  CHECK(job.join(7, "fe80::1:0") == 0);
}

TEST_CASE("addresses for messages about hosts are taken, and nobody gets them") {
  Generations job;
  job.gloo.begin(kFourProcesses);
  CHECK(job.status(7, "PUT", "/worker_addresses/node-a:0") == 200);
  CHECK(job.status(7, "PUT", "/rank_and_size/node-a:0") == 200);  // a key like any other
  CHECK(job.join(7, "node-a:0") == 0);
}

TEST_CASE("what one generation has written, the next one does not read, and the number of ranks is its own") {
  Generations job;
  job.gloo.begin(kFourProcesses);
  CHECK(job.status(7, "PUT", "/global/0") == 200);
  CHECK(job.status(8, "PUT", "/global/3") == 200);
  CHECK(job.status(8, "PUT", "/global/4") == 400);
  CHECK(job.status(8, "GET", "/global/0") == 200);
  job.gloo.begin({kFourProcesses[1], kFourProcesses[2]});
  CHECK(job.status(8, "GET", "/global/0") == 404);
  CHECK(job.status(8, "PUT", "/global/1") == 200);
  CHECK(job.status(8, "PUT", "/global/2") == 400);
  CHECK(job.status(8, "PUT", "/local_node-b/1") == 400);
}

TEST_CASE("ranks have met when each context has had its barrier") {
  Generations job;
  CHECK_FALSE(job.gloo.have_met());
  job.gloo.begin({kFourProcesses[0], kFourProcesses[1], kFourProcesses[2]});
  for (const char* scope :
       {"global", "local_node-a", "local_node-b", "cross_0", "global_process_set_hash_1f"}) {
    job.call(7, "DELETE", "/" + std::string(scope) + "/0");
    CHECK_FALSE(job.gloo.have_met());
  }
  job.call(7, "DELETE", "/cross_1/0");
  CHECK(job.gloo.have_met());
  job.gloo.begin({kFourProcesses[0]});
  CHECK_FALSE(job.gloo.have_met());
}

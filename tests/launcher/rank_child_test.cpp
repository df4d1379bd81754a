#include "launcher/node/rank_process.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "support/catch.h"

using namespace ddl;
using namespace ddl::launcher;

namespace {

std::string through(const UniqueFd& from, const UniqueFd& to) {
  REQUIRE(::write(from.get(), "word", 4) == 4);
  std::array<char, 8> buffer{};
  REQUIRE(::read(to.get(), buffer.data(), buffer.size()) == 4);
  return {buffer.data(), 4};
}

}  // namespace

TEST_CASE("a rank's environment is the job's, then the node's, then the rank's, then PMIx's") {
  JobLaunch job;
  job.command = {"./train", "--fast"};
  job.workdir = "/data";
  job.environment = {{"A", "job"}, {"B", "job"}, {"C", "job"}, {"N", "job"}};
  NodeLaunch node;
  node.environment = {{"N", "node"}, {"B", "node"}};
  RankLaunch launch;
  launch.rank = 5;
  launch.environment = {{"B", "rank"}, {"C", "rank"}};
  const ChildSpec child = rank_child(job, node, launch, {{"C", "pmix"}}, {4});
  CHECK(child.rank == 5);
  CHECK(child.argv == job.command);
  CHECK(child.workdir == "/data");
  CHECK(child.environment == std::vector<std::string>{"A=job", "B=rank", "C=pmix", "N=node"});
  CHECK(child.inherited_fds == std::vector<int>{4});
}

TEST_CASE("variables of the login have this node's own values, and are removed if the node has none") {
  REQUIRE(::setenv("DDL_TEST_LOGIN", "here", 1) == 0);
  REQUIRE(::unsetenv("DDL_TEST_NOWHERE") == 0);
  JobLaunch job;
  job.environment = {{"DDL_TEST_LOGIN", "head"}, {"DDL_TEST_NOWHERE", "head"}};
  job.login_variables = {"DDL_TEST_LOGIN", "DDL_TEST_NOWHERE"};
  CHECK(rank_child(job, {}, {}, {}).environment == std::vector<std::string>{"DDL_TEST_LOGIN=here"});
}

TEST_CASE("a rank's streams are pipes, and its input is empty unless it reads ddlrun's") {
  const auto streams = make_rank_streams(true);
  REQUIRE(streams);
  CHECK(through(streams->rank_out, streams->out) == "word");
  CHECK(through(streams->rank_err, streams->err) == "word");
  CHECK(through(streams->in, streams->rank_in) == "word");

  const auto quiet = make_rank_streams(false);
  REQUIRE(quiet);
  CHECK_FALSE(quiet->in);
  char byte;
  CHECK(::read(quiet->rank_in.get(), &byte, 1) == 0);
}

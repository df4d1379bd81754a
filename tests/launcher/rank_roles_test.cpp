#include "launcher/job/rank_roles.h"

#include "support/catch.h"

using namespace ddl::launcher;  // NOLINT(google-build-using-namespace)
using Catch::Matchers::Contains;

namespace {

/// "chief:1 worker:2* ", with a star for a role that serves.
std::string text_of(const RankRoles& roles) {
  std::string text;
  for (const RankRole& role : roles)
    text +=
        (text.empty() ? "" : " ") + role.name + ":" + std::to_string(role.count) + (role.serves ? "*" : "");
  return text;
}

std::string read(const std::string& text) {
  const auto roles = parse_tensorflow_roles(text);
  return roles ? text_of(*roles) : roles.error().message();
}

}  // namespace

TEST_CASE("tasks of TensorFlow that serve are those that never end by themselves") {
  CHECK(read("worker:4") == "worker:4");
  CHECK(read("chief:1,worker:3") == "chief:1 worker:3");
  CHECK(read("chief:1,worker:2,ps:2,evaluator:1") == "chief:1 worker:2* ps:2* evaluator:1");
  CHECK(read("worker:2,ps:1") == "worker:2 ps:1*");
}

TEST_CASE("roles that TensorFlow has not are refused") {
  CHECK_THAT(read(""), Contains("'' is not one of chief, worker, ps, evaluator"));
  CHECK_THAT(read("master:1"), Contains("'master' is not one of"));
  CHECK_THAT(read("worker"), Contains("number of tasks is missing"));
  CHECK_THAT(read("worker:0"), Contains("'0' is not a number of tasks of the role worker"));
  CHECK_THAT(read("worker:x"), Contains("'x' is not a number"));
  CHECK_THAT(read("worker:2,worker:1"), Contains("worker occurs twice"));
  CHECK_THAT(read("chief:2,worker:1"), Contains("one chief at most"));
  CHECK_THAT(read("evaluator:2,worker:1"), Contains("one evaluator at most"));
  CHECK_THAT(read("ps:2"), Contains("neither a chief nor a worker"));
  CHECK_THAT(read("worker:1000000,ps:1"), Contains("more than 1000000 tasks"));
}

TEST_CASE("each rank has its role and its index in it") {
  const RankRoles roles = mxnet_roles(3, 2);
  CHECK(num_ranks_of(roles) == 6);
  CHECK(num_without_slots(roles) == 3);
  CHECK(role_of(roles, 2).name == "worker");
  CHECK(role_of(roles, 3).name == "scheduler");
  CHECK(role_of(roles, 3).serves);
  CHECK(role_of(roles, 5).name == "server");
  CHECK(role_of(roles, 5).index == 1);
  CHECK(role_of({}, 5).name == "worker");
  CHECK(role_of({}, 5).index == 5);
}

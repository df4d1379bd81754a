#include "launcher/process/memory_cgroup.h"

#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("the number of out-of-memory kills is read from cgroup v2's memory.events") {
  CHECK(parse_oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n") == 2);
  CHECK(parse_oom_kills("oom_kill 18446744073709551615\n") ==
        std::nullopt);  // beyond int64: no number to trust
}

TEST_CASE("and from cgroup v1's memory.oom_control, whose other names begin alike") {
  CHECK(parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n") == 7);
  CHECK(parse_oom_kills("oom_kill_disable 1\nunder_oom 0\n") == std::nullopt);  // before Linux 4.13
}

TEST_CASE("text without the counter gives no number") {
  for (const char* text :
       {"", "oom_kill", "oom_kill ", "oom_kill x", "oom_kill 1 2", "oom 3", "oom_kill\t3"}) {
    CAPTURE(text);
    CHECK(parse_oom_kills(text) == std::nullopt);
  }
}

TEST_CASE("a kill without a known cause is reported as from outside, in one sentence") {
  const std::string sentence = MemoryCgroup::watch().explain_kill();
  CAPTURE(sentence);
  CHECK(sentence.starts_with("killed from outside"));
  CHECK(sentence.find('\n') == std::string::npos);
}

TEST_CASE("a cgroup's path is taken from the root of its mount, and only from a whole name on") {
  CHECK(below_mount_root("/docker/a1/job", "/") == "/docker/a1/job");
  CHECK(below_mount_root("/docker/a1/job", "/docker/a1") == "/job");
  CHECK(below_mount_root("/docker/a1", "/docker/a1") == "");
  CHECK(below_mount_root("/docker/a12/job", "/docker/a1") == "/docker/a12/job");
}

#include "launcher/node/node_probe.h"

#include <sys/resource.h>

#include <cstdlib>

#include "base/files.h"
#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("memory is read from /proc/meminfo's own lines") {
  const NodeMemory memory = parse_meminfo(
      "MemTotal:       65843028 kB\nMemFree:         1000000 kB\nMemAvailable:   60000000 "
      "kB\nHugePages_Total: 3\n");
  CHECK(memory.total_bytes == 65843028LL * 1024);
  CHECK(memory.available_bytes == 60000000LL * 1024);
}

TEST_CASE("a meminfo that is empty or invalid leaves memory unknown") {
  for (const char* text : {"", "MemTotal:", "MemTotal: kB", "MemTotal: many kB", "MemTotal: -4 kB",
                           "MemTotal: 4 MB", "MemTotal: 9223372036854775807 kB", " MemTotal: 4 kB"}) {
    INFO(text);
    CHECK(parse_meminfo(text).total_bytes == 0);
  }
}

TEST_CASE("limits are the soft ones, and -1 means no limit") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit lower{before.rlim_cur - 1, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  const auto found = soft_limit(RLIMIT_NOFILE);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(found == static_cast<std::int64_t>(lower.rlim_cur));

  REQUIRE(::getrlimit(RLIMIT_CPU, &before) == 0);
  CHECK(soft_limit(RLIMIT_CPU) ==
        (before.rlim_cur == RLIM_INFINITY ? -1 : static_cast<std::int64_t>(before.rlim_cur)));
}

TEST_CASE("free space in a directory, and in one that does not exist") {
  CHECK(free_bytes("/") > 0);
  CHECK(free_bytes("/no/such/directory") == -1);
}

TEST_CASE("addresses are numeric, have a version of IP, and can be used from other machines") {
  for (const NodeAddress& address : node_addresses()) {
    INFO(address.interface << " " << address.address);
    CHECK_FALSE(address.interface.empty());
    CHECK((address.family == 4) == (address.address.find('.') != std::string::npos));
    CHECK((address.family == 6) == (address.address.find(':') != std::string::npos));
    CHECK_FALSE(address.address.starts_with("127."));
    CHECK_FALSE(address.address.starts_with("fe80:"));
    CHECK(address.address != "::1");
  }
}

TEST_CASE("the probe has the resources, too") {
  const NodeFacts facts = probe_node();
  CHECK(facts.memory_bytes > 0);
  CHECK(facts.memory_available_bytes > 0);
  CHECK(facts.memory_available_bytes <= facts.memory_bytes);
  CHECK(facts.nofile == soft_limit(RLIMIT_NOFILE));
  CHECK(facts.memlock_bytes == soft_limit(RLIMIT_MEMLOCK));
  CHECK(facts.tmp_directory == ddl::tmp_directory());
  CHECK(facts.tmp_free_bytes >= 0);
  CHECK(facts.wall_time_ns > 1'600'000'000'000'000'000);
  CHECK_FALSE(facts.architecture.empty());
  CHECK(facts.addresses == node_addresses());
}

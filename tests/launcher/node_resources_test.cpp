#include "launcher/node/node_probe.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/files.h"
#include "launcher/head/reports.h"
#include "launcher/process/shell_attributes.h"
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

TEST_CASE("a soft limit that the hard one of a host does not allow is set as far as it can, and named") {
  const ResourceLimits soft = {{"core", kUnlimited}, {"nofile", 65536}, {"stack", 8 << 20}};
  CHECK(reduced_limits(soft, {{"core", kUnlimited}, {"nofile", 65536}, {"stack", kUnlimited}}).empty());
  CHECK(reduced_limits(soft, {{"core", 0}, {"nofile", 4096}, {"stack", 8 << 20}}) ==
        "core 0 and not unlimited, nofile 4096 and not 65536");
  CHECK(reduced_limits({}, {{"core", 0}}).empty());

  rlimit own{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &own) == 0);
  const auto limits = settable({{"nofile", kUnlimited}});
  REQUIRE(limits.size() == 1);
  CHECK(limits[0].first == RLIMIT_NOFILE);
  CHECK(limits[0].second.rlim_cur == own.rlim_max);
  CHECK(limits[0].second.rlim_max == own.rlim_max);
  CHECK(settable({{"nofile", 7}})[0].second.rlim_cur == 7);
}

TEST_CASE("hosts whose hard limits reduce the soft ones alike share a note") {
  std::vector<std::pair<std::string, ResourceLimits>> hosts;
  for (int host = 0; host < 11; ++host)
    hosts.push_back({"n" + std::to_string(host), {{"nofile", host < 10 ? 99 : 100}}});
  const auto notes = reduced_limit_notes({{"nofile", 100}}, hosts);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] ==
        "ranks on n0, n1, n2, n3, n4, n5, n6, n7 and 2 other hosts have the soft limits nofile 99 and not "
        "100 as in "
        "this shell: the hard limits there (ulimit -H) do not allow more");
}

TEST_CASE("the umask, the limits and an ignored SIGINT of this process are read, and the umask stays") {
  const mode_t before = ::umask(0027);
  const ShellAttributes shell = own_shell_attributes();
  CHECK(::umask(before) == 0027);
  CHECK(shell.umask == 0027);
  CHECK_FALSE(shell.ignores_interrupt);
  CHECK(shell.soft_limits.at("nofile") == soft_limit(RLIMIT_NOFILE));
  CHECK_THAT(shell_attributes_text({0027, {{"core", 0}, {"stack", kUnlimited}}, true}),
             Catch::Equals("umask 0027; soft limits: core 0, stack unlimited; SIGINT is ignored"));
}

TEST_CASE("ranks that have loaded different MPIs are reported") {
  const MpiOnHost first{{0, "/opt/mpi/lib/libmpi.so.40", 1000}, "a"};
  CHECK(mpi_warning(first, {{1, "/opt/mpi/lib/libmpi.so.40", 1000}, "b"}).empty());
  CHECK(mpi_warning(first, {{1, "/local/b/lib/libmpi.so.40", 1000}, "b"}).empty());  // a copy
  const std::string other = mpi_warning(first, {{1, "/usr/lib/libmpich.so.12.2.0", 1000}, "b"});
  CHECK_THAT(other, Catch::StartsWith(
                        "warning: rank 0 on a has loaded /opt/mpi/lib/libmpi.so.40 (1000 bytes), and rank "
                        "1 on b has loaded /usr/lib/libmpich.so.12.2.0 (1000 bytes)"));
  CHECK_THAT(mpi_warning(first, {{1, "/opt/mpi/lib/libmpi.so.40", 2000}, "b"}),
             Catch::Contains("(2000 bytes)"));
}

// The environment of ranks.
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Environment = std::map<std::string, std::string>;

/// The environments of ranks 0..size-1, as env(1) prints them.
std::vector<Environment> environments(const Scratch& scratch, const Command& command, int size) {
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  std::vector<Environment> ranks(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    const std::string text = bytes_of(scratch.path("env." + std::to_string(rank)));
    for (const auto entry : split(text, '\0')) {
      const std::size_t equals = entry.find('=');
      if (equals != std::string::npos) {
        ranks[static_cast<std::size_t>(rank)].emplace(entry.substr(0, equals), entry.substr(equals + 1));
      }
    }
  }
  return ranks;
}

/// ddlrun whose ranks write their environment to files.
Command ddlrun_env(int size, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments = {"-np", std::to_string(size), "--oversubscribe"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"sh", "-c", "env -0 > env.$RANK"});
  return ddlrun(arguments);
}

TEST_CASE("-x gives ranks a variable that no shell can set", "[environment]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "1", "-x", "some.setting=a b", "printenv", "some.setting"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out() == "a b\n");
}

TEST_CASE("with --as-horovod the package horovod beside ddlrun is the first that Python finds",
          "[environment]") {
  const Scratch scratch;
  Command command = ddlrun_env(2, {"--as-horovod"});
  command.environment["PYTHONPATH"] = "/nowhere/of/the/user";
  for (const Environment& rank : environments(scratch, command, 2)) {
    const std::string path = rank.at("PYTHONPATH");
    REQUIRE(path.ends_with("/as-horovod:/nowhere/of/the/user"));
    const std::filesystem::path folder = path.substr(0, path.find(':'));
    CHECK(std::filesystem::exists(folder / "horovod/torch/__init__.py"));
    // Nothing else that Python would import.
    CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  }

  // A program alone, without what is installed with it.
  const Scratch alone;
  std::filesystem::copy_file(command.argv.front(), alone.path("ddlrun"));
  Command copied = ddlrun({"-np", "1", "--as-horovod", "true"});
  copied.argv.front() = alone.path("ddlrun");
  Job job(scratch, copied);
  CHECK(job.wait_and_require_nothing_left() == 122);
  CHECK_THAT(job.err(), Contains("its ddlrun has no package horovod beside it"));
}

TEST_CASE("ranks inherit the complete environment, with unusual values too", "[environment]") {
  const Scratch scratch;
  Command command = ddlrun_env(2);
  const Environment unusual = {{"E2E_EMPTY", ""},
                               {"E2E_LINES", "one\ntwo\n"},
                               {"E2E_EQUALS", "a=b=c"},
                               {"E2E_BYTES", "\xff\x01 é"},
                               {"E2E_LONG", std::string(100'000, 'v')},
                               {"CUDA_VISIBLE_DEVICES", "1,0"}};
  command.environment = unusual;
  for (const Environment& rank : environments(scratch, command, 2)) {
    for (const auto& [name, value] : unusual) {
      CAPTURE(name);
      REQUIRE(rank.contains(name));
      CHECK((rank.at(name) == value));
    }
    CHECK(rank.at("PATH") == std::getenv("PATH"));
  }
}

TEST_CASE("every rank has the rank and size variables of Horovod and of torch", "[environment]") {
  const Scratch scratch;
  const auto ranks = environments(scratch, ddlrun_env(3), 3);
  for (int number = 0; number < 3; ++number) {
    const Environment& rank = ranks[static_cast<std::size_t>(number)];
    const std::string self = std::to_string(number);
    CAPTURE(self);
    const Environment expected = {
        {"HOROVOD_RANK", self},
        {"HOROVOD_SIZE", "3"},
        {"HOROVOD_LOCAL_RANK", self},
        {"HOROVOD_LOCAL_SIZE", "3"},
        {"HOROVOD_CROSS_RANK", "0"},
        {"HOROVOD_CROSS_SIZE", "1"},
        {"RANK", self},
        {"WORLD_SIZE", "3"},
        {"LOCAL_RANK", self},
        {"LOCAL_WORLD_SIZE", "3"},
        {"PMIX_RANK", self},
    };
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      REQUIRE(rank.contains(name));
      CHECK(rank.at(name) == value);
    }
    // All ranks have the same address, at which rank 0 may listen.
    CHECK(rank.at("MASTER_ADDR") == ranks[0].at("MASTER_ADDR"));
    CHECK(rank.at("MASTER_PORT") == ranks[0].at("MASTER_PORT"));
    const auto port = parse_integer(rank.at("MASTER_PORT"));
    REQUIRE(port);
    CHECK(*port > 0);
    CHECK(*port < 65536);
    CHECK(rank.at("PMIX_NAMESPACE") == ranks[0].at("PMIX_NAMESPACE"));
  }
}

/// The command as a user that passwd has no entry for, and without HOME.
Command as_unknown_user(Command command) {
  command.argv.insert(command.argv.begin(),
                      {"unshare", "--user", "--map-user=54321", "--map-group=54321", "env", "-u", "HOME"});
  return command;
}

bool can_be_unknown_user(const Scratch& scratch) {
  Command command;
  command.argv = {"true"};
  Job job(scratch, as_unknown_user(command));
  return job.wait() == 0;
}

TEST_CASE("without HOME and an entry in passwd, libpmix does not end agent and ranks by SIGSEGV",
          "[environment]") {
  const Scratch scratch;
  if (!can_be_unknown_user(scratch)) DDL_SKIP("this kernel makes no user namespaces for this user");
  const std::string ask = program("pmix_client") + " modex && echo home=$HOME";
  Job job(scratch, as_unknown_user(ddlrun({"-np", "2", "--oversubscribe", "sh", "-c", ask})));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:home=/\n") && Contains("[1]<stdout>:home=/\n"));

  Job plan(scratch, as_unknown_user(ddlrun({"-np", "2", "--oversubscribe", "--dry-run", "true"})));
  CHECK(plan.wait() == 0);
  CHECK_THAT(plan.out(), Contains("    HOME=/  (user 54321 has no entry in passwd)\n"));

  // A HOME that is set is not changed, whatever it is.
  for (const std::string home : {"", "/nowhere"}) {
    Command command = as_unknown_user(ddlrun({"-np", "1", "sh", "-c", "echo home=$HOME"}));
    command.argv.insert(command.argv.end() - 6, "HOME=" + home);
    Job with_home(scratch, command);
    CHECK(with_home.wait_and_require_nothing_left() == 0);
    CHECK_THAT(with_home.out(), Contains("home=" + home + "\n"));
  }
}

TEST_CASE("ddl_init says that libpmix needs HOME, and does not die of it", "[environment]") {
  const Scratch scratch;
  if (!can_be_unknown_user(scratch)) DDL_SKIP("this kernel makes no user namespaces for this user");
  Job job(scratch, as_unknown_user(ddlrun({"-np", "1", "env", "-u", "HOME", program("ddl_program"), "sum"})));
  CHECK(job.wait_and_require_nothing_left() == 1);
  CHECK_THAT(job.out(),
             Contains("HOME is not set, and this user has no entry in passwd: libpmix would end the "
                      "process with SIGSEGV; start it with env HOME=/\n"));
}

TEST_CASE("rank variables of an outer environment are replaced", "[environment]") {
  const Scratch scratch;
  Command command = ddlrun_env(2);
  command.environment = {{"RANK", "77"},
                         {"WORLD_SIZE", "78"},
                         {"HOROVOD_RANK", "79"},
                         {"LOCAL_RANK", "80"},
                         {"MASTER_PORT", "81"}};
  // The files are named by the variable RANK: environments() finds them only if it is correct.
  for (const Environment& rank : environments(scratch, command, 2)) {
    for (const auto& [name, value] : rank) {
      if (command.environment.contains(name)) CHECK(value != command.environment.at(name));
    }
  }
}

TEST_CASE("stale variables of an outer launcher are removed", "[environment]") {
  const Scratch scratch;
  Command command = ddlrun_env(1);
  command.environment = {{"PMIX_SERVER_URI2", "stale"},
                         {"PMIX_STALE", "stale"},
                         {"PMI_RANK", "stale"},
                         {"PMI_FD", "stale"},
                         {"PMI_SIZE", "stale"},
                         {"OMPI_COMM_WORLD_RANK", "stale"},
                         {"OMPI_COMM_WORLD_SIZE", "stale"},
                         {"PMIX_NAMESPACE", "stale"},
                         {"PMIX_RANK", "stale"}};
  const auto ranks = environments(scratch, command, 1);
  for (const auto& [name, value] : ranks[0]) {
    CAPTURE(name);
    CHECK(value != "stale");
  }
  CHECK(ranks[0].at("PMI_RANK") == "0");
  CHECK(ranks[0].at("PMI_SIZE") == "1");
  CHECK_FALSE(ranks[0].contains("OMPI_COMM_WORLD_SIZE"));
}

TEST_CASE("ranks of a ddlrun that mpirun started have no launcher variables of mpirun", "[environment]") {
  const std::string mpirun = DDL_E2E_MPIEXEC;
  if (mpirun.empty()) DDL_SKIP("CMake found no mpirun");
  const Scratch scratch;
  const Command plain = ddlrun_env(2);
  Command outer = plain;
  outer.argv.insert(outer.argv.begin(), {mpirun, "-np", "1"});
  outer.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  const auto inside = environments(scratch, outer, 2);
  const auto alone = environments(scratch, plain, 2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (const auto& [name, value] : inside[rank]) {
      CAPTURE(rank, name, value);
      const bool is_launchers =
          name.starts_with("PMIX_") || name.starts_with("PMI_") || name.starts_with("OMPI_COMM_WORLD_");
      if (is_launchers) CHECK(alone[rank].contains(name));
    }
    CHECK(inside[rank].at("PMIX_RANK") == std::to_string(rank));
  }
}

TEST_CASE("-x sets a variable, passes one on, and keeps one that ddlrun would remove", "[environment]") {
  const Scratch scratch;
  Command command =
      ddlrun_env(2, {"-x", "LR=0.1", "-x", "E2E_PASSED", "-x", "E2E_EMPTY=", "-x", "E2E_EQUALS=a=b", "-x",
                     "E2E_TWICE=1", "-x", "E2E_TWICE=2", "-x", "OMPI_COMM_WORLD_SIZE=9"});
  command.environment = {{"LR", "7"}, {"E2E_PASSED", "from outside"}};
  for (const Environment& rank : environments(scratch, command, 2)) {
    CHECK(rank.at("LR") == "0.1");
    CHECK(rank.at("E2E_PASSED") == "from outside");
    CHECK(rank.at("E2E_EMPTY").empty());
    CHECK(rank.at("E2E_EQUALS") == "a=b");
    CHECK(rank.at("E2E_TWICE") == "2");
    CHECK(rank.at("OMPI_COMM_WORLD_SIZE") == "9");
  }
}

TEST_CASE("ranks get what the profile of --site says they need, unless the user has said otherwise",
          "[environment]") {
  const Scratch scratch;
  const std::string site =
      scratch.write("own.yaml",
                    "name: own\n"
                    "setup:\n"
                    "  variables: {E2E_A: 1, E2E_B: 1, E2E_C: 1, NCCL_SOCKET_IFNAME: hsn0}\n"
                    "  one-node-variables: {E2E_D: one node}\n"
                    "  between-nodes-variables: {E2E_D: several}\n"
                    "  node-folders: {E2E_E: cache}\n"
                    "  lines: [export E2E_F=1]\n"
                    "  needed:\n"
                    "    variables: {E2E_F: needed}\n"
                    "    or-module: Own\n");
  Command command = ddlrun_env(2, {"--site", site, "-x", "E2E_B=2", "--network-interfaces", "eth0,ib0"});
  command.environment = {{"E2E_C", ""}, {"USER", "me"}, {"LOADEDMODULES", "Other/1"}};
  for (const Environment& rank : environments(scratch, command, 2)) {
    CHECK(rank.at("E2E_A") == "1");
    CHECK(rank.at("E2E_B") == "2");
    CHECK(rank.at("E2E_C").empty());
    CHECK(rank.at("E2E_D") == "one node");
    CHECK(rank.at("E2E_E") == "/tmp/me-cache");
    CHECK(rank.at("E2E_F") == "needed");
    CHECK(rank.at("NCCL_SOCKET_IFNAME") == "=eth0,ib0");
  }
  command.environment["LOADEDMODULES"] = "Own/1";
  command.environment["NCCL_SOCKET_IFNAME"] = "lo";
  for (const Environment& rank : environments(scratch, command, 2)) {
    CHECK_FALSE(rank.contains("E2E_F"));
    CHECK(rank.at("NCCL_SOCKET_IFNAME") == "lo");
  }
  Job planned(scratch, ddlrun({"-np", "1", "--site", site, "--dry-run", "true"}));
  CHECK(planned.wait_and_require_nothing_left() == 0);
  CHECK_THAT(planned.out(), Contains("    E2E_D='one node'  (site own)\n"));
  CHECK_THAT(planned.err(), Contains("lines of shell in the profile of own are for job scripts"));
}

/// Physical cores that this process may use.
int allowed_cores() {
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  std::map<std::string, int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &cpus)) continue;
    const std::string file =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
    ++cores[std::filesystem::exists(file) ? bytes_of(file) : std::to_string(cpu)];
  }
  return static_cast<int>(cores.size());
}

// For bound ranks it is the number of their own cores, which launcher/node_binding_test.cpp checks on recorded
// machines.
TEST_CASE("unbound ranks get allowed cores / local ranks as OMP_NUM_THREADS, and PYTHONUNBUFFERED=1",
          "[environment]") {
  const Scratch scratch;
  ::unsetenv("OMP_NUM_THREADS");
  ::unsetenv("PYTHONUNBUFFERED");
  for (const int size : {1, 2, 3, 50}) {
    CAPTURE(size);
    for (const Environment& rank : environments(scratch, ddlrun_env(size, {"--bind-to", "none"}), size)) {
      CHECK(rank.at("OMP_NUM_THREADS") == std::to_string(std::max(1, allowed_cores() / size)));
      CHECK(rank.at("PYTHONUNBUFFERED") == "1");
    }
  }
}

TEST_CASE("OMP_NUM_THREADS counts only the cores that ddlrun may use", "[environment]") {
  const Scratch scratch;
  Command command = ddlrun_env(1);
  cpu_set_t cpus;
  REQUIRE(::sched_getaffinity(0, sizeof cpus, &cpus) == 0);
  int first = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(first), &cpus)) ++first;
  command.argv.insert(command.argv.begin(), {"taskset", "--cpu-list", std::to_string(first)});
  CHECK(environments(scratch, command, 1)[0].at("OMP_NUM_THREADS") == "1");
}

TEST_CASE("OMP_NUM_THREADS and PYTHONUNBUFFERED of the user are unchanged", "[environment]") {
  const Scratch scratch;
  Command inherited = ddlrun_env(2);
  inherited.environment = {{"OMP_NUM_THREADS", "17"}, {"PYTHONUNBUFFERED", ""}};
  for (const Environment& rank : environments(scratch, inherited, 2)) {
    CHECK(rank.at("OMP_NUM_THREADS") == "17");
    CHECK(rank.at("PYTHONUNBUFFERED").empty());
  }
  const Command exported = ddlrun_env(2, {"-x", "OMP_NUM_THREADS=18"});
  for (const Environment& rank : environments(scratch, exported, 2))
    CHECK(rank.at("OMP_NUM_THREADS") == "18");
}

TEST_CASE("ranks start under a small soft limit of open files, and inherit it", "[environment]") {
  const Scratch scratch;
  Job job(scratch, {{"sh", "-c", "ulimit -Sn 60; exec \"$@\"", "sh", ddlrun({}).argv.front(), "-np", "40",
                     "--oversubscribe", "--no-tag-output", "sh", "-c", "ulimit -Sn"}});
  CHECK(job.wait_and_require_nothing_left() == 0);
  std::string sixties;
  for (int rank = 0; rank < 40; ++rank) sixties += "60\n";
  CHECK(job.out() == sixties);
}

TEST_CASE("a hard limit of open files that is too small is reported", "[environment]") {
  const Scratch scratch;
  Job job(scratch, {{"sh", "-c", "ulimit -n 60; exec \"$@\"", "sh", ddlrun({}).argv.front(), "-np", "40",
                     "--oversubscribe", "sleep", "1000"}});
  CHECK(job.wait_and_require_nothing_left() == 122);
  CHECK_THAT(job.err(), Contains("Too many open files") && Contains("ulimit -Hn") && !Contains("has gone"));
}

TEST_CASE("a limit of open files that is too small to start anything is reported as the cause",
          "[environment]") {
  for (const std::string limit : {"-n 10", "-n 16", "-Sn 10"}) {
    CAPTURE(limit);
    const Scratch scratch;
    Job job(scratch, {{"sh", "-c", "ulimit " + limit + "; exec \"$@\"", "sh", ddlrun({}).argv.front(), "-np",
                       "1", "true"}});
    CHECK(job.wait_and_require_nothing_left() == 122);
    CHECK_THAT(job.err(), Contains("files may be open (ulimit -n; ") && !Contains("CVE"));
  }
}

TEST_CASE("a rank inherits only the descriptors that its environment names", "[environment]") {
  const Scratch scratch;
  Job job(
      scratch,
      ddlrun({"-np", "1", "sh", "-c",
              "echo named $PMI_FD ${DDL_RANK_RECORD%%:*} ${DDL_RANK_RECORD##*:}; exec ls /proc/self/fd"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out() == "named 4 5 6\n0\n1\n2\n3\n4\n5\n6\n");  // 3 belongs to ls
}

}  // namespace
}  // namespace ddl::e2e

// --check-build as values and texts; and that a probe which crashes or hangs is reported.
#include "cli/check_build/capability.h"
#include "cli/check_build/probe.h"
#include "cli/options/this_process.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <set>

#include <nlohmann/json.hpp>

#include "base/command.h"
#include "contract/version.h"
#include "support/catch.h"

using namespace ddl::cli;
using namespace std::chrono_literals;

namespace {

const std::string kVersion = std::string("ddlrun v") + ddl::contract::kVersion;

const std::vector<Capability> kCapabilities = {
    {"Frameworks", "C and C++", "libddl", true, {true, "libddl 0.1.0", "/opt/lib/libddl.so.0", "", ""}},
    {"Frameworks", "PyTorch", "pytorch-package", false, {false, "", "", "no Python package", ""}},
    {"Launchers", "ssh", "ssh", true, {false, "", "", "there is no ssh in PATH", "install it"}},
    {"Launchers", "mpirun", "mpirun", false, {true, "mpirun 4", "/usr/bin/mpirun", "not handed to", ""}},
};

Finding fine() { return {true, "1.0", "/file", "", ""}; }
Finding crash() {
  std::raise(SIGKILL);
  return {};
}
Finding hang() {
  for (;;) ::pause();
}
Finding leave() { ::_exit(0); }
Finding empty() { return {false, "", "", "it is not there", "install it"}; }

}  // namespace

TEST_CASE("the text has horovodrun's format, and a table with the findings follows") {
  CHECK(check_build_text(kCapabilities) ==
        kVersion +
            ":\n"
            "\n"
            "Available Frameworks:\n"
            "    [X] C and C++\n"
            "    [ ] PyTorch\n"
            "\n"
            "Available Launchers:\n"
            "    [ ] ssh\n"
            "    [ ] mpirun\n"
            "\n"
            "Frameworks     built  works here\n"
            "    C and C++  yes    yes  libddl 0.1.0; /opt/lib/libddl.so.0\n"
            "    PyTorch    no     no   no Python package\n"
            "\n"
            "Launchers      built  works here\n"
            "    ssh        yes    no   there is no ssh in PATH; install it\n"
            "    mpirun     no     yes  mpirun 4; /usr/bin/mpirun; not handed to\n");
}

TEST_CASE("the JSON has the same contents, and can be read back") {
  const std::string text = check_build_json(kCapabilities, "node1");
  const auto parsed = nlohmann::json::parse(text);
  CHECK(parsed["kind"] == "check_build");
  CHECK(parsed["host"] == "node1");
  CHECK(parsed["boxes"][2] ==
        nlohmann::json::parse(R"({"heading": "Launchers", "name": "ssh", "key": "ssh", "built": true,
      "available": false, "works": false, "version": "", "file": "", "detail": "there is no ssh in PATH",
      "remedy": "install it"})"));
  const auto read = read_check_build(text);
  REQUIRE(read);
  CHECK(read->host == "node1");
  CHECK(read->all == kCapabilities);
  CHECK_FALSE(read_check_build("{}"));
  CHECK_FALSE(read_check_build("ddlrun: unknown option"));
}

TEST_CASE("the text for several hosts marks and lists their differences") {
  auto other = kCapabilities;
  other[2].here = {true, "OpenSSH_9", "/usr/bin/ssh", "", ""};
  const std::string text = check_build_hosts_text({{"a", kCapabilities}, {"b", other}, {"c", kCapabilities}});
  CHECK_THAT(text, Catch::StartsWith(kVersion + " on a, b, c:\n"));
  CHECK_THAT(text, Catch::Contains("[X] C and C++\n") && Catch::Contains("[ ] PyTorch\n") &&
                       Catch::Contains("[/] ssh\n"));
  CHECK_THAT(text, Catch::Contains("Differences:\n"
                                   "    ssh\n"
                                   "        a, c: no, there is no ssh in PATH\n"
                                   "        b: yes, OpenSSH_9\n"));
  CHECK_THAT(text, Catch::Contains("On no host:\n    PyTorch: no Python package\n"));
  CHECK_THAT(check_build_hosts_text({{"a", kCapabilities}, {"b", kCapabilities}}),
             Catch::Contains("No differences between 2 hosts.\n"));
}

TEST_CASE("a probe that crashes, hangs or exits is reported in its own capability only") {
  const Probe probes[] = {{"A", "crash", "crash", nullptr, crash},
                          {"A", "hang", "hang", nullptr, hang},
                          {"A", "leave", "leave", nullptr, leave},
                          {"A", "empty", "empty", nullptr, empty},
                          {"A", "unbuilt", "unbuilt", "this version has none", empty},
                          {"A", "unbuilt but here", "here", "this version has none", fine},
                          {"A", "fine", "fine", nullptr, fine}};
  const auto answers = run_probes(probes, 1s);
  REQUIRE(answers);
  const std::vector<Capability>& all = *answers;
  REQUIRE(all.size() == std::size(probes));
  CHECK(all[0].here.detail == "it crashed: SIGKILL");
  CHECK(all[1].here.detail == "no answer in time");
  CHECK(all[2].here.detail == "it ended without an answer");
  CHECK(all[3].here == empty());
  CHECK(all[4].here.detail == "this version has none, and it is not there");
  CHECK(all[4].here.remedy.empty());
  CHECK(all[5].here.works);
  CHECK_FALSE(all[5].available());
  CHECK(all[6].here == fine());
  CHECK(all[6].available());
  for (std::size_t i = 0; i < 5; ++i) CHECK_FALSE(all[i].available());
}

TEST_CASE("processes that a hanging probe has started are ended with it") {
  static std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const Probe probe{
      "A", "hang", "hang", nullptr, [] {
        // In its own process group, as commands of probes are, and with the pipe open.
        const auto sleep = ddl::Child::start({.argv = {"sleep", "1000"}, .inherited = {{pipe[1], 3}}});
        return hang();
      }};
  const auto all = run_probes({&probe, 1}, 500ms);
  REQUIRE(all);
  CHECK(all->front().here.detail == "no answer in time");
  REQUIRE(::close(pipe[1]) == 0);
  pollfd entry{pipe[0], POLLIN, 0};
  REQUIRE(::poll(&entry, 1, 10'000) == 1);
  CHECK((entry.revents & POLLHUP) != 0);  // no process has the writing end any more
  ::close(pipe[0]);
}

TEST_CASE("every capability has a unique key") {
  std::set<std::string> keys;
  for (const Probe& probe : probe_list()) {
    CAPTURE(probe.key);
    CHECK(keys.insert(probe.key).second);
  }
}

TEST_CASE("slurm-probe is expected below libexec, beside bin") {
  CHECK_THAT(ddl::cli::libexec_path("slurm-probe"), Catch::Matchers::EndsWith("/libexec/ddlrun/slurm-probe"));
}

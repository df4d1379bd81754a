#include "templates/cluster/cluster_query.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include "base/deadline.h"
#include "support/catch.h"
#include "support/skip.h"
#include "support/temporary_directory.h"
#include "templates/scontrol_recording.h"

using Catch::Matchers::Contains;
using ddl::ErrorCode;
using ddl::templates::ask_cluster;
using namespace std::chrono_literals;

namespace {

/// Sets a variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A folder with the test's programs, first in PATH, and a configuration that SLURM_CONF names.
class FakeSlurm {
 public:
  FakeSlurm()
      : configuration_("SLURM_CONF", write("slurm.conf", "")),
        path_("PATH", folder_.path() + ":" + std::getenv("PATH")) {}

  std::string write(const std::string& name, std::string_view text) {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  /// A program of that name, with this as its shell script.
  std::string program(const std::string& name, const std::string& script) {
    std::string path = write(name, "#!/bin/sh\n" + script + "\n");
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    return path;
  }
  void scontrol_that_answers() {
    const std::string partitions = write("partitions", ddl::test::kScontrolPartitions);
    const std::string nodes = write("nodes", ddl::test::kScontrolNodes);
    program("scontrol", "case \"$*\" in *'show partition') exec cat " + partitions +
                            " ;; *'show node') exec cat " + nodes + " ;; esac");
  }

 private:
  ddl::test::TemporaryDirectory folder_;
  Variable configuration_;
  Variable path_;
};

constexpr char kAnswer[] = R"({"cluster": "probed", "version": "1", "partitions": [], "nodes": []})";

}  // namespace

TEST_CASE("the probe is asked first, and scontrol where it is missing or fails") {
  FakeSlurm slurm;
  slurm.scontrol_that_answers();
  const auto probed = ask_cluster(slurm.program("probe", std::string("echo '") + kAnswer + "'"), 30s);
  REQUIRE(probed);
  CHECK(probed->name == "probed");
  for (const std::string& probe :
       {std::string(), std::string("/nonexistent/probe"),
        slurm.program("failing", "echo '{\"error\": \"no\"}'; exit 1"),
        slurm.program("garbage", "echo garbage"), slurm.program("crashing", "kill -SEGV $$")}) {
    const auto facts = ask_cluster(probe, 30s);
    REQUIRE(facts);
    CHECK(facts->partitions.size() == 2);
    CHECK(facts->nodes.size() == 2);
  }
}

TEST_CASE("a probe that hangs leaves time for scontrol") {
  FakeSlurm slurm;
  slurm.scontrol_that_answers();
  const auto facts = ask_cluster(slurm.program("probe", "exec sleep 1000"), 2s);
  REQUIRE(facts);
  CHECK(facts->partitions.size() == 2);
}

TEST_CASE("when no program answers, the reason of each is reported, in time") {
  FakeSlurm slurm;
  const std::string probe = slurm.program("probe", "echo '{\"error\": \"the controller is away\"}'; exit 1");
  slurm.program("scontrol", "echo 'slurm_load_partitions error: refused' >&2; exit 1");
  const auto refused = ask_cluster(probe, 30s);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::kUnavailable);
  CHECK_THAT(refused.error().message(),
             Contains("slurm_load_partitions error: refused") && Contains("the controller is away"));
  slurm.program("scontrol", "exec sleep 1000");
  const ddl::Deadline deadline = ddl::Deadline::after(20s);
  const auto late = ask_cluster(slurm.program("probe", "exec sleep 1000"), 200ms);
  REQUIRE_FALSE(late);
  CHECK_FALSE(deadline.has_passed());
  CHECK_THAT(late.error().message(), Contains("scontrol: it did not end in time and was killed"));
}

TEST_CASE("SLURM_CONF that names no file is reported at once, and nothing is started") {
  FakeSlurm slurm;
  slurm.scontrol_that_answers();
  const Variable configuration("SLURM_CONF", "/nonexistent/slurm.conf");
  const auto facts = ask_cluster(slurm.program("probe", std::string("echo '") + kAnswer + "'"), 30s);
  REQUIRE_FALSE(facts);
  CHECK(facts.error().code() == ErrorCode::kUnavailable);
  CHECK(facts.error().message() == "SLURM_CONF names /nonexistent/slurm.conf, which cannot be read");
}

TEST_CASE("a missing Slurm is reported") {
  if (::access("/etc/slurm/slurm.conf", R_OK) == 0) DDL_SKIP("this machine has an /etc/slurm/slurm.conf");
  const Variable configuration("SLURM_CONF", "");
  const Variable path("PATH", "/nonexistent");
  const auto facts = ask_cluster("/bin/true", 30s);
  REQUIRE_FALSE(facts);
  CHECK(facts.error().code() == ErrorCode::kNotFound);
  CHECK_THAT(facts.error().message(), Contains("there is no Slurm here"));
}

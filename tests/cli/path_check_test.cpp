#include "cli/commands/commands.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace fs = std::filesystem;
using ddl::cli::check_identity_file;
using ddl::cli::create_output_directory;

namespace {

std::optional<ddl::cli::CommandLineError> check_workdir(const ddl::launcher::JobSpec& job) {
  return ddl::cli::check_workdir(job, ddl::launcher::local_allocation("head"), "head");
}

ddl::launcher::JobSpec job_in(const fs::path& workdir, const fs::path& output = {}) {
  ddl::launcher::JobSpec job;
  job.workdir = workdir.string();
  job.output_directory = output.string();
  return job;
}

}  // namespace

TEST_CASE("a working directory must be a directory that exists") {
  const ddl::test::TemporaryDirectory temporary;
  CHECK_FALSE(check_workdir(job_in(temporary.path())));

  const auto missing = check_workdir(job_in(temporary / "no such"));
  REQUIRE(missing);
  CHECK(missing->exit_code == 127);
  CHECK_THAT(missing->message, Catch::EndsWith("/no such' does not exist"));

  std::ofstream(temporary / "file") << "x";
  const auto file = check_workdir(job_in(temporary / "file"));
  REQUIRE(file);
  CHECK(file->exit_code == 126);
  CHECK_THAT(file->message, Catch::EndsWith("/file is not a directory"));

  const auto below_file = check_workdir(job_in(temporary / "file/below"));
  REQUIRE(below_file);
  CHECK(below_file->exit_code == 127);

  const auto long_name = check_workdir(job_in(temporary / std::string(5000, 'x')));
  REQUIRE(long_name);
  CHECK_THAT(long_name->message, Catch::Contains("cannot be used"));
}

TEST_CASE("a working directory that the user may not enter is refused") {
  const ddl::test::TemporaryDirectory temporary;
  const fs::path closed = temporary / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::none);
  const auto refusal = check_workdir(job_in(closed));
  if (::geteuid() == 0) {
    CHECK_FALSE(refusal);  // root may enter every directory
  } else {
    REQUIRE(refusal);
    CHECK(refusal->exit_code == 126);
    CHECK_THAT(refusal->message, Catch::Contains("may not be entered"));
  }
}

TEST_CASE("the output directory is created with its parents, or an error is returned") {
  const ddl::test::TemporaryDirectory temporary;
  CHECK_FALSE(create_output_directory(job_in(temporary.path())));
  const fs::path deep = temporary / "a/b";
  CHECK_FALSE(create_output_directory(job_in("/", deep)));
  CHECK(fs::is_directory(deep));
  CHECK_FALSE(create_output_directory(job_in("/", deep)));  // again: it exists now

  std::ofstream(temporary / "file") << "x";
  for (const std::string& bad : {temporary / "file", temporary / "file/below"}) {
    const auto refusal = create_output_directory(job_in("/", bad));
    REQUIRE(refusal);
    CHECK(refusal->exit_code == 2);
    CHECK_THAT(refusal->message, Catch::Contains(bad) && Catch::Contains("cannot be created"));
  }
  const auto in_proc = create_output_directory(job_in("/", "/proc/self/ddlrun"));
  REQUIRE(in_proc);
  CHECK(in_proc->exit_code == 2);
}

TEST_CASE("a working directory is checked only if ranks may run on this machine") {
  const auto job = job_in("/no/such/place");
  ddl::launcher::Allocation hosts = ddl::launcher::local_allocation("node1");
  CHECK_FALSE(ddl::cli::check_workdir(job, hosts, "head"));
  hosts.nodes.push_back(ddl::launcher::local_allocation("head").nodes.front());
  CHECK(ddl::cli::check_workdir(job, hosts, "head"));
}

TEST_CASE("the key for ssh must be readable") {
  const ddl::test::TemporaryDirectory temporary;
  ddl::launcher::JobSpec job;
  CHECK_FALSE(check_identity_file(job));
  job.ssh_identity_file = temporary / "id";
  const auto missing = check_identity_file(job);
  REQUIRE(missing);
  CHECK(missing->exit_code == 2);
  CHECK_THAT(missing->message, Catch::EndsWith("/id cannot be read: No such file or directory"));
  std::ofstream(job.ssh_identity_file) << "x";
  CHECK_FALSE(check_identity_file(job));
}

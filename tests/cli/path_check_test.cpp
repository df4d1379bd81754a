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

ddl::Status check_workdir(const ddl::launcher::JobSpec& job) {
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
  CHECK(check_workdir(job_in(temporary.path())));

  const auto missing = check_workdir(job_in(temporary / "no such"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == ddl::ErrorCode::kNotFound);
  CHECK_THAT(missing.error().message(), Catch::EndsWith("/no such' does not exist"));

  std::ofstream(temporary / "file") << "x";
  const auto file = check_workdir(job_in(temporary / "file"));
  REQUIRE_FALSE(file);
  CHECK(file.error().code() == ddl::ErrorCode::kPermissionDenied);
  CHECK_THAT(file.error().message(), Catch::EndsWith("/file is not a directory"));

  const auto below_file = check_workdir(job_in(temporary / "file/below"));
  REQUIRE_FALSE(below_file);
  CHECK(below_file.error().code() == ddl::ErrorCode::kNotFound);

  const auto long_name = check_workdir(job_in(temporary / std::string(5000, 'x')));
  REQUIRE_FALSE(long_name);
  CHECK_THAT(long_name.error().message(), Catch::Contains("cannot be used"));
}

TEST_CASE("a working directory that the user may not enter is refused") {
  const ddl::test::TemporaryDirectory temporary;
  const fs::path closed = temporary / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::none);
  const auto refusal = check_workdir(job_in(closed));
  if (::geteuid() == 0) {
    CHECK(refusal);  // root may enter every directory
  } else {
    REQUIRE_FALSE(refusal);
    CHECK(refusal.error().code() == ddl::ErrorCode::kPermissionDenied);
    CHECK_THAT(refusal.error().message(), Catch::Contains("may not be entered"));
  }
}

TEST_CASE("the output directory is created with its parents, or an error is returned") {
  const ddl::test::TemporaryDirectory temporary;
  CHECK(create_output_directory(job_in(temporary.path())));
  const fs::path deep = temporary / "a/b";
  CHECK(create_output_directory(job_in("/", deep)));
  CHECK(fs::is_directory(deep));
  CHECK(create_output_directory(job_in("/", deep)));  // again: it exists now

  std::ofstream(temporary / "file") << "x";
  for (const std::string& bad : {temporary / "file", temporary / "file/below"}) {
    const auto refusal = create_output_directory(job_in("/", bad));
    REQUIRE_FALSE(refusal);
    CHECK_THAT(refusal.error().message(), Catch::Contains(bad) && Catch::Contains("cannot be created"));
  }
  const auto in_proc = create_output_directory(job_in("/", "/proc/self/ddlrun"));
  REQUIRE_FALSE(in_proc);
}

TEST_CASE("a working directory is checked only if ranks may run on this machine") {
  const auto job = job_in("/no/such/place");
  ddl::launcher::Allocation hosts = ddl::launcher::local_allocation("node1");
  CHECK(ddl::cli::check_workdir(job, hosts, "head"));
  hosts.nodes.push_back(ddl::launcher::local_allocation("head").nodes.front());
  CHECK_FALSE(ddl::cli::check_workdir(job, hosts, "head"));
}

TEST_CASE("the key for ssh must be readable") {
  const ddl::test::TemporaryDirectory temporary;
  ddl::launcher::JobSpec job;
  CHECK(check_identity_file(job));
  job.ssh.identity_file = temporary / "id";
  const auto missing = check_identity_file(job);
  REQUIRE_FALSE(missing);
  CHECK_THAT(missing.error().message(), Catch::EndsWith("/id cannot be read: No such file or directory"));
  std::ofstream(job.ssh.identity_file) << "x";
  CHECK(check_identity_file(job));
}

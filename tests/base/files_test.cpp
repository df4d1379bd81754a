#include "base/files.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/catch.h"

namespace fs = std::filesystem;

TEST_CASE("the temporary directory is TMPDIR's if that is absolute") {
  const char* given = std::getenv("TMPDIR");
  const std::string before = given != nullptr ? given : "";
  ::setenv("TMPDIR", "/var/tmp", 1);
  CHECK(ddl::tmp_directory() == "/var/tmp");
  ::setenv("TMPDIR", "tmp", 1);
  CHECK(ddl::tmp_directory() == "/tmp");
  ::unsetenv("TMPDIR");
  CHECK(ddl::tmp_directory() == "/tmp");
  if (given != nullptr) ::setenv("TMPDIR", before.c_str(), 1);
}

TEST_CASE("a temporary folder is private to this user, and removed with its contents") {
  std::string path;
  {
    auto made = ddl::TemporaryFolder::make_in(ddl::tmp_directory(), "ddl-files-test");
    REQUIRE(made);
    const ddl::TemporaryFolder folder = *std::move(made);
    path = folder.path();
    // A folder that was moved from removes nothing. NOLINTNEXTLINE(bugprone-use-after-move)
    CHECK(made->path().empty());
    CHECK_THAT(path, Catch::StartsWith(ddl::tmp_directory() + "/ddl-files-test-"));
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    REQUIRE(fs::create_directory(path + "/inner"));
    std::ofstream(path + "/inner/file") << "text";
  }
  CHECK_FALSE(fs::exists(path));
  const auto nowhere = ddl::TemporaryFolder::make_in("/no/such/folder", "x");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code() == ddl::ErrorCode::kNotFound);
}

TEST_CASE("a program knows its own path") { CHECK(fs::path(ddl::own_path()).filename() == "base_test"); }

#include "launcher/process/session_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.h"

using namespace ddl::launcher;

namespace {

/// Sets TMPDIR, and puts back what was there.
class TemporaryTmpdir {
 public:
  explicit TemporaryTmpdir(const char* value) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", value, 1);
  }
  ~TemporaryTmpdir() {
    if (before_.empty()) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", before_.c_str(), 1);
    }
  }

 private:
  std::string before_;
};

/// Makes one of a new name.
ddl::Result<std::string> make_new() {
  std::string path = new_session_directory_name().value();
  if (auto made = make_session_directory(path); !made) return ddl::fail(made.error());
  return path;
}

}  // namespace

TEST_CASE("a session directory is private, unique, and removed with all that is in it") {
  const auto first = make_new();
  const auto second = make_new();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*first != *second);
  struct stat status {};
  REQUIRE(::stat(first->c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);
  CHECK(status.st_uid == ::getuid());
  std::filesystem::create_directories(*first + "/below");
  std::ofstream(*first + "/below/file") << "x";
  remove_session_directory(*first);
  remove_session_directory(*second);
  CHECK_FALSE(std::filesystem::exists(*first));
  CHECK_FALSE(std::filesystem::exists(*second));
  remove_session_directory(*first);  // again: nothing
  remove_session_directory("");
}

TEST_CASE("a session directory that is there already is not taken") {
  const auto path = make_new();
  REQUIRE(path);
  CHECK_FALSE(make_session_directory(*path));
  remove_session_directory(*path);
}

TEST_CASE("TMPDIR is used unless it is not an absolute path") {
  {
    const TemporaryTmpdir relative("somewhere");
    const auto path = make_new();
    REQUIRE(path);
    CHECK(path->starts_with("/tmp/ddlrun-" + std::to_string(::getuid()) + "-"));
    remove_session_directory(*path);
  }
  const auto parent = make_new();
  REQUIRE(parent);
  {
    const TemporaryTmpdir chosen(parent->c_str());
    const auto path = make_new();
    REQUIRE(path);
    CHECK(path->starts_with(*parent + "/ddlrun-"));
  }
  remove_session_directory(*parent);
}

TEST_CASE("a TMPDIR that is not there is named, with the remedy") {
  const TemporaryTmpdir missing("/no/such/place");
  const auto path = make_new();
  REQUIRE_FALSE(path);
  CHECK_THAT(path.error().message(),
             Catch::StartsWith("making the job's private directory (TMPDIR chooses where): "
                               "mkdir /no/such/place/ddlrun-"));
}

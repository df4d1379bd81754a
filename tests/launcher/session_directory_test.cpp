#include "launcher/agent/session_directory.h"

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

}  // namespace

TEST_CASE("a session directory is private, unique, and removed with all that is in it") {
  const auto first = make_session_directory();
  const auto second = make_session_directory();
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

TEST_CASE("TMPDIR chooses where, unless it is no absolute path") {
  {
    const TemporaryTmpdir relative("somewhere");
    const auto path = make_session_directory();
    REQUIRE(path);
    CHECK(path->starts_with("/tmp/ddlrun-" + std::to_string(::getuid()) + "-"));
    remove_session_directory(*path);
  }
  const auto parent = make_session_directory();
  REQUIRE(parent);
  {
    const TemporaryTmpdir chosen(parent->c_str());
    const auto path = make_session_directory();
    REQUIRE(path);
    CHECK(path->starts_with(*parent + "/ddlrun-"));
  }
  remove_session_directory(*parent);
}

TEST_CASE("a TMPDIR that is not there is named, with the remedy") {
  const TemporaryTmpdir missing("/no/such/place");
  const auto path = make_session_directory();
  REQUIRE_FALSE(path);
  CHECK_THAT(path.error().message(),
             Catch::StartsWith("making the job's private directory (TMPDIR chooses where): "
                               "mkdtemp /no/such/place/ddlrun-"));
}

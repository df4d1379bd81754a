#include "timeline/draft_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/fd.h"
#include "support/catch.h"
#include "support/skip.h"
#include "support/temporary_directory.h"

using ddl::timeline::DraftFile;
namespace fs = std::filesystem;

namespace {

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

std::string text_of(const std::string& path) { return ddl::read_file(path).value_or("(none)"); }

std::string message_of(const ddl::Result<std::unique_ptr<DraftFile>>& result) {
  REQUIRE_FALSE(result);
  return result.error().message();
}

}  // namespace

TEST_CASE("a file appears when it is complete, and replaces what was there") {
  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  std::ofstream(path) << "before";
  auto file = DraftFile::plan(path);
  REQUIRE(file);
  CHECK(files_in(directory.path()) == 1);
  REQUIRE((*file)->open());
  REQUIRE((*file)->write("one "));
  REQUIRE((*file)->write("two"));
  CHECK(text_of(path) == "before");
  REQUIRE((*file)->finish());
  CHECK(text_of(path) == "one two");
  CHECK(files_in(directory.path()) == 1);
  CHECK_FALSE((*file)->write("more"));
}

TEST_CASE("a file that is not finished leaves nothing") {
  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  {
    auto file = DraftFile::plan(path);
    REQUIRE(file);
    REQUIRE((*file)->open());
    REQUIRE((*file)->write("one"));
    CHECK(files_in(directory.path()) == 1);
    CHECK_FALSE(fs::exists(path));
  }
  CHECK(files_in(directory.path()) == 0);
}

TEST_CASE("a draft that a process with the same number has left is no obstacle") {
  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  std::ofstream(path + "." + std::to_string(::getpid()) + ".new") << "left";
  auto file = DraftFile::plan(path);
  REQUIRE(file);
  REQUIRE((*file)->open());
  REQUIRE((*file)->finish());
  CHECK(text_of(path).empty());
}

TEST_CASE("what a link points to is replaced") {
  const ddl::test::TemporaryDirectory directory;
  std::ofstream(directory / "real.json") << "before";
  fs::create_symlink("real.json", directory / "link.json");
  auto file = DraftFile::plan(directory / "link.json");
  REQUIRE(file);
  REQUIRE((*file)->open());
  REQUIRE((*file)->write("after"));
  REQUIRE((*file)->finish());
  CHECK(fs::is_symlink(directory / "link.json"));
  CHECK(text_of(directory / "real.json") == "after");
}

TEST_CASE("a path that cannot be written is an error at the start that names it") {
  const ddl::test::TemporaryDirectory directory;
  CHECK_THAT(
      message_of(DraftFile::plan(directory / "none/trace.json")),
      Catch::StartsWith(directory / "none/trace.json: ") && Catch::Contains("No such file or directory"));
  CHECK_THAT(message_of(DraftFile::plan(directory.path())), Catch::Contains("not a regular file"));
  CHECK_THAT(message_of(DraftFile::plan("/dev/null")), Catch::Contains("not a regular file"));
  CHECK_THAT(message_of(DraftFile::plan("/proc/trace.json")), Catch::StartsWith("/proc/trace.json: "));
  std::ofstream(directory / "file") << "";
  CHECK_THAT(message_of(DraftFile::plan(directory / "file/trace.json")), Catch::Contains("Not a directory"));
  if (::geteuid() == 0) DDL_SKIP("root may write everywhere");
  fs::permissions(directory / "file", fs::perms::owner_read);
  CHECK_THAT(message_of(DraftFile::plan(directory / "file")), Catch::Contains("Permission denied"));
  fs::permissions(directory.path(), fs::perms::owner_read | fs::perms::owner_exec);
  CHECK_THAT(message_of(DraftFile::plan(directory / "new")), Catch::Contains("Permission denied"));
}

TEST_CASE("a file that cannot be written to its end is given up, and what was there remains") {
  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  std::ofstream(path) << "before";
  auto file = DraftFile::plan(path);
  REQUIRE(file);
  REQUIRE((*file)->open());
  // The directory moves away, so that the rename fails.
  fs::rename(directory.path(), directory.path() + ".moved");
  const auto finished = (*file)->finish();
  fs::rename(directory.path() + ".moved", directory.path());
  REQUIRE_FALSE(finished);
  CHECK_THAT(finished.error().message(), Catch::Contains(path) && Catch::Contains("rename"));
  CHECK_FALSE((*file)->write("more"));
  CHECK_FALSE((*file)->finish());
  CHECK(text_of(path) == "before");
}

TEST_CASE("a name with .gz is compressed, and gzip reads it") {
  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json.gz";
  auto file = DraftFile::plan(path);
  if (!file && file.error().code() == ddl::ErrorCode::kUnavailable) DDL_SKIP(file.error().message());
  REQUIRE(file);
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "{\"ts\":" + std::to_string(i) + "},\n";
  REQUIRE((*file)->open());
  REQUIRE((*file)->write(text));
  REQUIRE((*file)->write("end"));
  REQUIRE((*file)->finish());
  CHECK(fs::file_size(path) < text.size() / 4);
  CHECK(std::system(("gzip -dc " + path + " >" + (directory / "plain")).c_str()) == 0);
  const auto plain = ddl::read_file(directory / "plain", text.size() + 3);
  REQUIRE(plain);
  CHECK((*plain == text + "end"));
  CHECK(files_in(directory.path()) == 2);
}

TEST_CASE("without zlib a name with .gz is an error at the start that says what to do") {
  const ddl::test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json.gz";
  CHECK_THAT(message_of(DraftFile::plan(path, "libddl_no_such_library.so.7")),
             Catch::Contains(path) && Catch::Contains("libddl_no_such_library.so.7") &&
                 Catch::Contains("choose a name without .gz"));
  CHECK_THAT(message_of(DraftFile::plan(path, "libc.so.6")), Catch::Contains("is not zlib"));
  CHECK(DraftFile::plan(directory / "trace.json", "libddl_no_such_library.so.7"));
  CHECK(files_in(directory.path()) == 0);
}

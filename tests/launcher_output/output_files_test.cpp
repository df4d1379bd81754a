#include "launcher/output/output_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "launcher_output/fakes.h"
#include "support/catch.h"

namespace fs = std::filesystem;
using ddl::Deadline;
using ddl::launcher::OutputFiles;
using ddl::launcher::rank_directory_name;
using namespace ddl::test;

namespace {

std::unique_ptr<OutputFiles> create(const std::string& directory, int ranks, PostQueue& queue,
                                    std::vector<std::string>& errors) {
  auto files = OutputFiles::create(directory, ddl::launcher::rank_directory_names(ranks), queue.post(),
                                   [&errors](const std::string& sentence) { errors.push_back(sentence); });
  if (!files) FAIL(files.error().message());
  return std::move(*files);
}

std::string content(const fs::path& path) {
  auto text = ddl::read_file(path.string());
  REQUIRE(text);
  return *text;
}

void drain(OutputFiles& files) { CHECK(files.drain(Deadline::after(std::chrono::seconds(60)))); }

}  // namespace

TEST_CASE("directories are padded to the width of the largest rank") {
  CHECK(rank_directory_name(0, 1) == "rank.0");
  CHECK(rank_directory_name(9, 10) == "rank.9");
  CHECK(rank_directory_name(3, 11) == "rank.03");
  CHECK(rank_directory_name(10, 11) == "rank.10");
  CHECK(rank_directory_name(7, 1000) == "rank.007");
  CHECK(rank_directory_name(7, 1001) == "rank.0007");
}

TEST_CASE("every stream has a file from the start, with its parents, and gets the exact bytes") {
  const TemporaryDirectory directory;
  PostQueue queue;
  std::vector<std::string> errors;
  const fs::path root = fs::path(directory.path()) / "a" / "b";
  auto files = create(root, 11, queue, errors);
  CHECK(content(root / "rank.10" / "stderr").empty());
  const std::string binary("no newline \r \0 \xff", 15);
  int done = 0;
  files->sink(0, kStdout)->write(binary, [&done] { ++done; });
  files->sink(0, kStderr)->write("e\n", [&done] { ++done; });
  files->sink(10, kStdout)->write("ten\n", [&done] { ++done; });
  files->sink(0, kStdout)->write(binary, [&done] { ++done; });
  CHECK(queue.run_until([&] { return done == 4; }));
  CHECK(content(root / "rank.00" / "stdout") == binary + binary);
  CHECK(content(root / "rank.00" / "stderr") == "e\n");
  CHECK(content(root / "rank.10" / "stdout") == "ten\n");
  CHECK(content(root / "rank.05" / "stdout").empty());
  CHECK(errors.empty());
}

TEST_CASE("a second run appends to the files") {
  const TemporaryDirectory directory;
  PostQueue queue;
  std::vector<std::string> errors;
  for (const char* text : {"first run\n", "second run\n"}) {
    auto files = create(directory.path(), 2, queue, errors);
    files->sink(1, kStdout)->write(text, [] {});
    drain(*files);
  }
  CHECK(content(fs::path(directory.path()) / "rank.1" / "stdout") == "first run\nsecond run\n");
}

TEST_CASE("there may be more files than are open at a time") {
  const TemporaryDirectory directory;
  PostQueue queue;
  std::vector<std::string> errors;
  constexpr int kRanks = static_cast<int>(OutputFiles::kOpenFiles);  // twice as many files
  auto files = create(directory.path(), kRanks, queue, errors);
  const auto count_open = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  CHECK(count_open() < static_cast<long>(OutputFiles::kOpenFiles) + 40);
  for (int round = 0; round < 3; ++round) {
    for (int rank = 0; rank < kRanks; ++rank) {
      files->sink(rank, kStdout)->write(std::to_string(rank), [] {});
    }
  }
  drain(*files);
  CHECK(count_open() < static_cast<long>(OutputFiles::kOpenFiles) + 40);
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string one = std::to_string(rank);
    CHECK(content(fs::path(directory.path()) / rank_directory_name(rank, kRanks) / "stdout") ==
          one + one + one);
  }
  CHECK(errors.empty());
}

TEST_CASE("an error that prevents the files is reported before the start, with the path") {
  const TemporaryDirectory directory;
  PostQueue queue;
  const std::string file = directory.path() + "/file";
  std::ofstream(file) << "no directory";
  const auto in_a_file = OutputFiles::create(file, ddl::launcher::rank_directory_names(1), queue.post(),
                                             [](const std::string&) {});
  REQUIRE_FALSE(in_a_file);
  CHECK(in_a_file.error().message().find(file + "/rank.0") != std::string::npos);

  fs::create_directories(directory.path() + "/rank.0/stderr");
  const auto on_a_directory = OutputFiles::create(directory.path(), ddl::launcher::rank_directory_names(1),
                                                  queue.post(), [](const std::string&) {});
  REQUIRE_FALSE(on_a_directory);
  CHECK(on_a_directory.error().message() ==
        "creating " + directory.path() + "/rank.0/stderr: open: Is a directory");
}

TEST_CASE("a full disk is reported once, and the other files are still written") {
  const TemporaryDirectory directory;
  fs::create_directories(directory.path() + "/rank.0");
  for (const char* name : {"/rank.0/stdout", "/rank.0/stderr"}) {
    fs::create_symlink("/dev/full", directory.path() + name);
  }
  PostQueue queue;
  std::vector<std::string> errors;
  auto files = create(directory.path(), 2, queue, errors);
  int done = 0;
  const auto count = [&done] { ++done; };
  files->sink(0, kStdout)->write("lost\n", count);
  CHECK(queue.run_until([&] { return done == 1; }));
  files->sink(0, kStdout)->write("lost again\n", count);
  files->sink(0, kStderr)->write("lost, too\n", count);
  files->sink(1, kStdout)->write("kept\n", count);
  CHECK(queue.run_until([&] { return done == 4; }));
  CHECK(errors ==
        std::vector<std::string>{"cannot write " + directory.path() +
                                 "/rank.0/stdout: No space left on device; from here on it is incomplete, "
                                 "and the job goes on"});
  CHECK(content(directory.path() + "/rank.1/stdout") == "kept\n");
}

TEST_CASE("the umask applies to the files") {
  const TemporaryDirectory directory;
  PostQueue queue;
  std::vector<std::string> errors;
  const mode_t before = ::umask(027);
  auto files = create(directory.path(), 1, queue, errors);
  ::umask(before);
  const auto permissions = fs::status(directory.path() + "/rank.0/stdout").permissions();
  CHECK(permissions == (fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read));
}

// Checkpoints: complete, or not written.
#include "examples/function_approximation/checkpoint.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/scratch_directory.h"
#include "support/catch.h"

using namespace fit;
using ddl::test::ScratchDirectory;

namespace {

struct State {
  explicit State(std::vector<Eigen::Index> widths = {1, 8, 8, 1})
      : model(std::move(widths), 1), adam(model.parameters().size()) {}
  Mlp model;
  Adam adam;
};

/// A state in which every number depends on the argument.
State numbered(std::int64_t number) {
  State state;
  const double value = static_cast<double>(number) / 3;
  state.model.parameters().setConstant(value);
  state.adam.mean.setConstant(-value);
  state.adam.mean_squares.setConstant(value * value);
  state.adam.steps = number;
  return state;
}

bool is_numbered(const State& state) {
  const State expected = numbered(state.adam.steps);
  return state.model.parameters() == expected.model.parameters() && state.adam.mean == expected.adam.mean &&
         state.adam.mean_squares == expected.adam.mean_squares;
}

void save(const std::string& path, const State& state) { save_checkpoint(path, state.model, state.adam); }
bool load(const std::string& path, State& state) { return load_checkpoint(path, state.model, state.adam); }

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::size_t files_in(const ScratchDirectory& scratch) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(scratch.path()),
                                                std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("a checkpoint restores every bit and leaves no other file") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("a.ckpt");
  State written;
  written.adam.mean.setRandom();
  written.adam.mean_squares.setConstant(1e-310);  // subnormal
  written.adam.steps = 12345678901;
  save(path, written);
  CHECK(files_in(scratch) == 1);

  State read = numbered(1);
  REQUIRE(load(path, read));
  CHECK(read.model.parameters() == written.model.parameters());
  CHECK(read.adam.mean == written.adam.mean);
  CHECK(read.adam.mean_squares == written.adam.mean_squares);
  CHECK(read.adam.steps == written.adam.steps);
}

TEST_CASE("a missing checkpoint is not an error and changes nothing") {
  const ScratchDirectory scratch;
  State state = numbered(4);
  CHECK_FALSE(load(scratch.file("none.ckpt"), state));
  CHECK(is_numbered(state));
}

TEST_CASE("an incomplete checkpoint, or one of another network, is refused and changes nothing") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("a.ckpt");
  save(path, numbered(7));
  const std::string good = content(path);
  State state = numbered(3);
  const auto refuses = [&](const std::string& bytes, const std::string& why) {
    put(path, bytes);
    CHECK_THROWS_WITH(load(path, state), Catch::Contains(path) && Catch::Contains(why));
    CHECK(state.adam.steps == 3);
    CHECK(is_numbered(state));
  };
  refuses("", "not a checkpoint");
  refuses("hello", "not a checkpoint");
  refuses(std::string(good.size(), '\0'), "not a checkpoint");
  for (std::size_t length = 16; length < good.size(); length += 97)
    refuses(good.substr(0, length), "damaged");
  refuses(good + "x", "damaged");
  for (std::size_t at = 8; at < good.size(); at += 61) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    refuses(flipped, "damaged");
  }

  save(path, State({1, 9, 8, 1}));
  CHECK_THROWS_WITH(load(path, state), Catch::Contains("other layers"));
  save(path, State({1, 8, 1}));
  CHECK_THROWS_WITH(load(path, state), Catch::Contains("other layers"));
  CHECK(is_numbered(state));
  CHECK_THROWS_WITH(load(scratch.path().string(), state), Catch::Contains(scratch.path().string()));
}

TEST_CASE("a failed write keeps the old checkpoint and leaves no other file") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("a.ckpt");
  save(path, numbered(7));

  // A limit on the size of files, in place of a full disk: the write stops half-way.
  rlimit old_limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{std::filesystem::file_size(path) / 2, old_limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    save(path, numbered(8));
  } catch (const std::system_error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);

  CHECK_THAT(message, Catch::Contains("writing " + path + ".tmp"));
  CHECK(files_in(scratch) == 1);
  State state;
  REQUIRE(load(path, state));
  CHECK(state.adam.steps == 7);
  CHECK(is_numbered(state));

  CHECK_THROWS_WITH(save(scratch.file("no/such/a.ckpt"), numbered(8)), Catch::Contains("no/such/a.ckpt.tmp"));
}

TEST_CASE("a reader never gets an incomplete checkpoint") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("a.ckpt");
  constexpr std::int64_t kSaves = 200;
  save(path, numbered(1));
  std::thread writer([&] {
    for (std::int64_t number = 2; number <= kSaves; ++number) save(path, numbered(number));
  });
  std::int64_t last = 0;
  bool whole = true, forward = true;
  while (last < kSaves && whole && forward) {
    State state;
    whole = load(path, state) && is_numbered(state);
    forward = state.adam.steps >= last;
    last = state.adam.steps;
  }
  writer.join();
  CHECK(whole);
  CHECK(forward);
}

TEST_CASE("a writer that is killed at any time leaves a complete checkpoint") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("a.ckpt");
  for (int round = 0; round < 10; ++round) {
    int saved[2];
    REQUIRE(::pipe2(saved, O_CLOEXEC) == 0);
    const pid_t writer = ::fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      ::close(saved[0]);
      for (std::int64_t number = 1;; ++number) {
        save(path, numbered(number));
        if (::write(saved[1], "x", 1) != 1) ::_exit(1);
      }
    }
    ::close(saved[1]);
    // After a few saves the child is writing the next one, in each round at another position.
    char byte = 0;
    for (int saves = 0; saves <= round; ++saves) REQUIRE(::read(saved[0], &byte, 1) == 1);
    ::kill(writer, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    CHECK(WIFSIGNALED(status));
    ::close(saved[0]);

    State state;
    REQUIRE(load(path, state));
    CHECK(state.adam.steps > round);
    CHECK(is_numbered(state));
    save(path, numbered(1));  // a temporary file that was left behind does not prevent this
    CHECK(files_in(scratch) == 1);
  }
}

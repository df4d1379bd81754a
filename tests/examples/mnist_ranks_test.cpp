// examples/mnist on several ranks, with ddlrun.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "examples/launch.h"
#include "examples/scratch_directory.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Contains;

namespace {

Outcome learn_on(int size, const Arguments& arguments) { return run_example("mnist", size, arguments); }

double number_after(const std::string& text, const std::string& label) {
  const std::size_t at = text.find(label);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + label.size()));
}

/// Of the parameters and momenta in two checkpoints.
double largest_difference(const std::string& left, const std::string& right) {
  const Outcome outcome = run_example("compare_checkpoints", 0, {left, right});
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  // Two layers of weights and biases, each with its momentum.
  CHECK_THAT(outcome.output, Contains("8 tensors, "));
  return number_after(outcome.output, "largest difference ");
}

double accuracy_in(const std::string& output) { return number_after(output, " steps: accuracy "); }

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Weights and momenta after some 40 steps on one rank and on more. Sums of float are grouped differently.
constexpr double kRounding = 2e-4;

/// A number of an IDX file's header.
std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

/// Files as those of MNIST, with images in which two rows say which class it is.
void write_stripes(const ScratchDirectory& folder, const std::string& kind, std::uint32_t count) {
  std::string images = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28);
  std::string labels = big_endian(0x801) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto label = i * 7 % 10;
    labels += static_cast<char>(label);
    for (std::uint32_t row = 0; row < 28; ++row) images += std::string(28, row / 2 == label ? '\xff' : '\0');
  }
  std::ofstream(folder.file(kind + "-images-idx3-ubyte"), std::ios::binary) << images;
  std::ofstream(folder.file(kind + "-labels-idx1-ubyte"), std::ios::binary) << labels;
}

const Arguments kSame = {"--samples", "1200", "--global-batch", "60", "--hidden", "24", "--epochs", "2"};

}  // namespace

TEST_CASE("digits are learnt on any number of ranks, and rank 0 alone prints") {
  for (const int size : {0, 1, 2, 3}) {
    const Arguments few = {"--samples", "3000", "--epochs", "2"};
    const Outcome outcome = learn_on(size, few);
    INFO(size << " ranks\n" << outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(accuracy_in(outcome.output) > 0.9);
    CHECK(count_of(outcome.output, "epoch 1 ") == 1);
    // Each step has 32 samples of each rank.
    const int ranks = std::max(size, 1);
    CHECK_THAT(outcome.output, Contains(std::to_string(2 * (3000 / ranks / 32)) + " steps"));
  }
}

TEST_CASE("with the same batch of all ranks, the number of ranks does not change what is learnt") {
  const ScratchDirectory scratch;
  for (const int size : {1, 2, 3}) {
    for (const bool is_sharded : {false, true}) {
      const std::string folder = scratch.file(std::to_string(size) + (is_sharded ? "s" : ""));
      const Outcome outcome = learn_on(size, kSame + Arguments{"--checkpoint", folder} +
                                                 (is_sharded ? Arguments{"--sharded"} : Arguments{}));
      INFO(outcome.output);
      REQUIRE(outcome.exit_code == 0);
      CHECK(largest_difference(folder, scratch.file("1")) < kRounding);
    }
    // Slices of the optimizer give the same bits as the whole.
    CHECK(largest_difference(scratch.file(std::to_string(size)), scratch.file(std::to_string(size) + "s")) ==
          0.0);
  }
  const Outcome other = learn_on(1, kSame + Arguments{"--seed", "2", "--checkpoint", scratch.file("other")});
  REQUIRE(other.exit_code == 0);
  CHECK(largest_difference(scratch.file("other"), scratch.file("1")) > 0.1);
}

TEST_CASE("another number of ranks goes on in the middle of an epoch, and comes to the same result") {
  const ScratchDirectory scratch;
  const std::string whole = scratch.file("whole");
  REQUIRE(learn_on(1, kSame + Arguments{"--checkpoint", whole}).exit_code == 0);
  for (const bool is_sharded : {false, true}) {
    const std::string folder = scratch.file(is_sharded ? "sharded" : "pieces");
    const Arguments common =
        kSame + Arguments{"--checkpoint", folder} + (is_sharded ? Arguments{"--sharded"} : Arguments{});
    struct Piece {
      int size;
      const char* steps;
      const char* says;
    };
    // An epoch has 20 steps; the second piece ends with it.
    for (const Piece& piece :
         {Piece{2, "13", ": accuracy"}, Piece{3, "20", "going on after step 13\n"},
          Piece{1, "27", "going on after step 20\n"}, Piece{2, "1000", "going on after step 27\n"}}) {
      const Outcome outcome = learn_on(piece.size, common + Arguments{"--max-steps", piece.steps});
      INFO(outcome.output);
      REQUIRE(outcome.exit_code == 0);
      CHECK_THAT(outcome.output, Contains(piece.says));
    }
    CHECK(largest_difference(folder, whole) < kRounding);
    // Nothing is left to do.
    const Outcome done = learn_on(2, common);
    CHECK_THAT(done.output, Contains("2 ranks, 40 steps: accuracy") && !Contains("epoch"));
  }
}

TEST_CASE("a job that is killed goes on from its last checkpoint, with the same bits") {
  const ScratchDirectory scratch;
  const std::string whole = scratch.file("whole"), killed = scratch.file("killed");
  const Arguments arguments = {"--samples", "1200", "--hidden",           "24", "--batch",     "30",
                               "--epochs",  "12",   "--checkpoint-every", "7",  "--checkpoint"};
  REQUIRE(learn_on(2, arguments + Arguments{whole}).exit_code == 0);
  const int exit_code = interrupt_example(command_line("mnist", 2, arguments + Arguments{killed}), "epoch 2 ",
                                          SIGTERM, [&] { std::filesystem::remove_all(killed); });
  CHECK(exit_code == 128 + SIGTERM);
  const Outcome rest = learn_on(2, arguments + Arguments{killed});
  INFO(rest.output);
  CHECK(rest.exit_code == 0);
  CHECK_THAT(rest.output, Contains("going on after step ") && !Contains("epoch 1 "));
  CHECK(largest_difference(killed, whole) == 0.0);
}

TEST_CASE("files of images are learnt from, and the test files are what is told of") {
  const ScratchDirectory scratch;
  write_stripes(scratch, "train", 640);
  write_stripes(scratch, "t10k", 30);
  const Outcome outcome = learn_on(2, {"--data", scratch.path().string(), "--batch", "16"});
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.output, Contains("2 ranks, 60 steps: accuracy 1.0000 over 30 images"));
}

TEST_CASE("what is wrong with the input of digits is said") {
  const ScratchDirectory scratch;
  const Outcome no_folder = learn_on(2, {"--data", "/nonexistent-directory"});
  CHECK(no_folder.exit_code == 1);
  CHECK_THAT(no_folder.output, Contains("mnist: there is no directory /nonexistent-directory"));

  std::ofstream(scratch.file("train-images-idx3-ubyte")) << "no images at all, but some text";
  const Outcome bad_file = learn_on(2, {"--data", scratch.path().string()});
  CHECK(bad_file.exit_code == 1);
  CHECK_THAT(bad_file.output, Contains("train-images-idx3-ubyte is no IDX file of 3 dimensions"));

  const Outcome too_few = learn_on(2, {"--samples", "20"});
  CHECK(too_few.exit_code == 2);
  CHECK_THAT(too_few.output, Contains("batches of 64 of 20 samples"));
  const Outcome uneven = learn_on(2, {"--global-batch", "31"});
  CHECK(uneven.exit_code == 2);
  CHECK_THAT(uneven.output, Contains("are not the same number for each of 2 ranks"));
  CHECK(learn_on(0, {"--rate", "0"}).exit_code == 2);
  CHECK(learn_on(0, {"--batch", "32", "--global-batch", "32"}).exit_code == 2);

  const std::string folder = scratch.file("checkpoint");
  REQUIRE(learn_on(0, {"--samples", "64", "--epochs", "1", "--checkpoint", folder}).exit_code == 0);
  const Outcome other_network = learn_on(2, {"--samples", "64", "--hidden", "8", "--checkpoint", folder});
  CHECK(other_network.exit_code == 2);
  CHECK_THAT(other_network.output, Contains(folder + " is the checkpoint of another network"));
}

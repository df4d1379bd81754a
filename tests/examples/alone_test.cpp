// The examples without a launcher, as a new user may start them first.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "examples/launch.h"
#include "examples/scratch_directory.h"
#include "examples/xml.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Contains;

namespace {

Outcome fit(const Arguments& arguments) { return run_example("function_approximation", 0, arguments); }

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("hello runs without a launcher") {
  const Outcome outcome = run_example("hello_ddl", 0, {});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.output == "hello from rank 0 of 1; together we count 1\n");
}

TEST_CASE("without options the example trains, prints its loss, and fits the target") {
  const Outcome outcome = fit({});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.output, Contains("1 rank, 32 points"));
  CHECK_THAT(outcome.output, Contains("epoch      1  loss") && Contains("epoch   2000  loss"));
  const std::size_t rmse = outcome.output.find("fit: rmse ");
  REQUIRE(rmse != std::string::npos);
  CHECK(std::stod(outcome.output.substr(rmse + 10)) < 0.03);
}

TEST_CASE("options select the printed epochs and the picture that is written") {
  const ScratchDirectory scratch;
  const std::string picture = scratch.file("fit.svg");
  const Outcome outcome = fit({"--epochs", "5", "--log-every", "2", "--plot", picture});
  CHECK(outcome.exit_code == 0);
  for (const char* const epoch : {"epoch      1 ", "epoch      2 ", "epoch      4 ", "epoch      5 "}) {
    CHECK_THAT(outcome.output, Contains(epoch));
  }
  CHECK_THAT(outcome.output, !Contains("epoch      3 "));
  CHECK_THAT(outcome.output, Contains("wrote " + picture));
  CHECK(parse_xml(content(picture)).size() > 50);
}

TEST_CASE("invalid options are refused with exit code 2 before any training") {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--epochs", "0"}, "--epochs: '0' is not a whole number from 1 to"},
      {{"--epochs", "many"}, "'many' is not a whole number"},
      {{"--epochs", "1.5"}, "'1.5' is not a whole number"},
      {{"--points", "1"}, "'1' is not a whole number from 2 to"},
      {{"--points", "99999999999999999999"}, "is not a whole number"},
      {{"--points-per-rank", "1"}, "1 training points are too few for 1 rank"},
      {{"--points", "8", "--points-per-rank", "8"}, "excludes"},
      {{"--hidden", "8,0"}, "'0' is not a whole number"},
      {{"--hidden", ""}, "--hidden"},
      {{"--seed", "-1"}, "'-1' is not a whole number"},
      {{"--learning-rate", "0"}, "'0' is not a positive number"},
      {{"--learning-rate", "nan"}, "'nan' is not a positive number"},
      {{"--learning-rate", "inf"}, "'inf' is not a positive number"},
      {{"--learning-rate", "0.1x"}, "'0.1x' is not a positive number"},
      {{"--warmup-epochs", "-1"}, "'-1' is not a whole number"},
      {{"--log-every", "0"}, "'0' is not a whole number"},
      {{"--plot", "fit.png"}, "'fit.png' does not end in .svg"},
      {{"--plot", "/nonexistent-directory/fit.svg"}, "there is no directory /nonexistent-directory"},
      {{"--checkpoint", "/nonexistent-directory/a"}, "there is no directory /nonexistent-directory"},
      {{"--checkpoint", "a", "--ensemble"}, "excludes"},
      {{"--async", "--ensemble"}, "excludes"},
      {{"--checkpoint-every", "5"}, "requires --checkpoint"},
      {{"--frobnicate"}, "--frobnicate"},
      {{"stray"}, "stray"},
  };
  for (const auto& [arguments, message] : cases) {
    INFO(arguments.front() << " " << arguments.back());
    const Outcome outcome = fit(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.output, Contains(message));
    CHECK_THAT(outcome.output, !Contains("loss"));
  }
}

TEST_CASE("--help names every option and every default that the program has") {
  const Outcome outcome = fit({"--help"});
  CHECK(outcome.exit_code == 0);
  for (const char* const text : {"--points-per-rank",
                                 "[32]",
                                 "--points ",
                                 "--hidden",
                                 "[32,32]",
                                 "--seed",
                                 "[1]",
                                 "--ensemble",
                                 "--epochs",
                                 "[2000]",
                                 "--learning-rate",
                                 "[0.01]",
                                 "--warmup-epochs",
                                 "[100]",
                                 "--async",
                                 "--plot",
                                 "--checkpoint ",
                                 "--checkpoint-every",
                                 "[500]",
                                 "--log-every",
                                 "--verbose",
                                 "ddlrun -np 2"}) {
    CHECK_THAT(outcome.output, Contains(text));
  }
  // The defaults in the help are those of the program.
  const Outcome defaults = fit({"--verbose"});
  const Outcome spelt_out =
      fit({"--verbose", "--points-per-rank", "32", "--hidden", "32,32", "--seed", "1", "--epochs", "2000",
           "--learning-rate", "0.01", "--warmup-epochs", "100", "--log-every", "500"});
  const auto until_time = [](const Outcome& o) { return o.output.substr(0, o.output.find("trained in")); };
  CHECK(until_time(defaults) == until_time(spelt_out));
}

TEST_CASE("a training that diverges is reported") {
  const Outcome outcome = fit({"--learning-rate", "1e200"});
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.output,
             Contains("the training diverged in epoch") && Contains("smaller --learning-rate"));
}

TEST_CASE("a training that is killed and resumed ends with the same bits as an uninterrupted one") {
  const ScratchDirectory scratch;
  const std::string straight = scratch.file("straight.ckpt"), resumed = scratch.file("resumed.ckpt");
  const Arguments arguments = {"--epochs",           "2000", "--points",    "64",  "--hidden",    "48,48",
                               "--checkpoint-every", "40",   "--log-every", "100", "--checkpoint"};
  REQUIRE(fit(arguments + Arguments{straight}).exit_code == 0);
  const Arguments argv = command_line("function_approximation", 0, arguments + Arguments{resumed});
  const int exit_code =
      interrupt_example(argv, "epoch    100", SIGKILL, [&] { std::filesystem::remove(resumed); });
  CHECK(exit_code == 128 + SIGKILL);

  const Outcome rest = fit(arguments + Arguments{resumed});
  CHECK(rest.exit_code == 0);
  CHECK_THAT(rest.output, Contains("going on from " + resumed + " at epoch ") && Contains("epoch   2000 "));
  CHECK_THAT(rest.output, !Contains("epoch      1 "));
  CHECK(content(resumed) == content(straight));

  const Outcome finished = fit(arguments + Arguments{resumed});
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.output, Contains("at epoch 2000") && !Contains("loss"));
}

TEST_CASE("a file that is not a checkpoint is reported and not changed") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("notes.txt");
  std::ofstream(path) << "something of the user's\n";
  const Outcome outcome = fit({"--checkpoint", path});
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.output, Contains(path + " is not a checkpoint of this program"));
  CHECK(content(path) == "something of the user's\n");
}

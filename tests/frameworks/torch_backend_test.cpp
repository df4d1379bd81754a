// The backend "ddl" of torch.distributed: PyTorch's own tests, what is built on it, and what goes wrong.
#include <cmath>
#include <regex>

#include "e2e/harness/fifo.h"
#include "e2e/harness/scratch.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

/// A program that has the option --backend, by the Python of an environment.
struct Example {
  std::string file;
  std::string folder = DDL_PYTHON_EXAMPLES;
  int ranks = 2;
  std::vector<std::string> arguments{};
};

/// Runs it without an import of ddl in the program, and returns the loss that one rank prints.
double loss_of(Place place, const std::string& python, const Example& example, const std::string& backend) {
  std::vector<std::string> words = {"-np", std::to_string(example.ranks), "--no-tag-output"};
  if (place == Place::kHere) words.emplace_back("--oversubscribe");
  if (place == Place::kTwoHosts) words.insert(words.end(), {"-H", "node1:4,node2:4", "--map-by", "node"});
  words.insert(words.end(), {"-x", "PYTHONPATH=" DDL_FRAMEWORKS_PACKAGE, "-x", "OMP_NUM_THREADS=1", python,
                             example.folder + "/" + example.file});
  words.insert(words.end(), example.arguments.begin(), example.arguments.end());
  words.insert(words.end(), {"--backend", backend});
  const Output result = output_of(place, words);
  INFO(example.file << " over " << backend << " with " << example.ranks << " ranks: exit code "
                    << result.status << "\n"
                    << result.out << "\n"
                    << result.err);
  REQUIRE(result.status == 0);
  std::smatch found;
  REQUIRE(std::regex_search(result.out, found, std::regex("loss ([0-9.]+)\n")));
  CHECK(e2e::occurrences(result.out, "loss ") == 1);
  return std::stod(found[1]);
}

/// One process finds this, over gloo, by the same steps.
constexpr double kLoss = 0.0611;
constexpr double kRounding = 0.0002;

void train_as_one_process_does(Place place, const std::vector<Example>& examples) {
  const auto python = python_of("torch");
  if (!python) return;
  for (const Example& example : examples)
    CHECK(std::abs(loss_of(place, *python, example, "ddl") - kLoss) < kRounding);
}

/// Of two numbers of ranks, the first half of the steps by one and the second half by the other.
void go_on_from_a_checkpoint(Place place) {
  const auto python = python_of("torch");
  if (!python) return;
  const e2e::Scratch scratch(place == Place::kHere ? "/tmp" : "/home/shared");
  const std::string folder = scratch.path() + "/checkpoint";
  const Example save{.file = "checkpoint.py", .ranks = 4, .arguments = {"save", folder}};
  const Example load{.file = "checkpoint.py", .ranks = 2, .arguments = {"load", folder}};
  CHECK(loss_of(place, *python, save, "ddl") > kLoss + kRounding);
  CHECK(std::abs(loss_of(place, *python, load, "ddl") - kLoss) < kRounding);
}

const std::vector<Example> kExamples = {
    {.file = "fsdp2.py"}, {.file = "tensor_parallel.py"}, {.file = "pipeline.py"}};

/// Six steps at once, by gloo; three and three with a checkpoint between, by libddl.
void train_as_nanogpt_does() {
  const auto python = python_of("torch");
  if (!python) return;
  const e2e::Scratch scratch;
  const auto of_steps = [&](const std::string& steps, const std::string& checkpoint) {
    return Example{.file = "torch_gpt.py",
                   .folder = DDL_FRAMEWORK_PROGRAMS,
                   .arguments = {"--steps", steps, "--checkpoint", scratch.path(checkpoint)}};
  };
  const double wanted = loss_of(Place::kHere, *python, of_steps("6", "gloo.pt"), "gloo");
  CHECK(loss_of(Place::kHere, *python, of_steps("3", "ddl.pt"), "ddl") > wanted + kRounding);
  CHECK(std::abs(loss_of(Place::kHere, *python, of_steps("3", "ddl.pt"), "ddl") - wanted) < kRounding);
}

Program on_two_ranks(const std::string& environment, const std::string& file,
                     std::vector<std::string> arguments = {}) {
  return {.environment = environment,
          .file = file,
          .options = {"-np", "2", "--map-by", "node"},
          .arguments = std::move(arguments),
          .has_ddl = true};
}

/// One torchrun on each of so many hosts, with two ranks.
Program under_torchrun(int hosts) {
  return {.environment = "torch",
          .file = "torch_backend_torchrun.py",
          .options = {"-np", std::to_string(hosts), "--map-by", "node", "--no-tag-output"},
          .lines = 2 * hosts,
          .has_ddl = true};
}

}  // namespace

TEST_CASE("FSDP2, tensor parallel and a pipeline train over libddl as one process does",
          "[torch_backend_examples]") {
  train_as_one_process_does(Place::kHere, kExamples);
  go_on_from_a_checkpoint(Place::kHere);
}
TEST_CASE("FSDP2, tensor parallel and a pipeline train on two hosts", "[torch_backend_on_hosts]") {
  train_as_one_process_does(Place::kTwoHosts, kExamples);
  go_on_from_a_checkpoint(Place::kTwoHosts);
}

TEST_CASE("a training loop as nanoGPT's has the same loss over libddl, by an option alone",
          "[torch_backend_examples]") {
  train_as_nanogpt_does();
}

TEST_CASE("ranks that torchrun has started find each other", "[torch_backend_torchrun]") {
  run(Place::kHere, under_torchrun(1));
}
TEST_CASE("ranks that torchrun has started on two hosts find each other", "[torch_backend_on_hosts]") {
  run(Place::kTwoHosts, under_torchrun(2));
}

TEST_CASE("what C++ does with a group reaches libddl", "[torch_backend_errors]") {
  run(Place::kHere, on_two_ranks("torch", "torch_backend_reached.py"));
}
TEST_CASE("what C++ of an older version does with a group reaches libddl", "[torch_backend_older]") {
  run(Place::kHere, on_two_ranks("torch-2.4", "torch_backend_reached.py"));
}

TEST_CASE("PyTorch's own tests of torch.distributed pass over libddl", "[torch_backend_own_tests]") {
  run(Place::kHere, on_two_ranks("torch", "torch_own_tests.py", {"ddl"}));
}
TEST_CASE("PyTorch's own tests of an older version pass over libddl", "[torch_backend_older]") {
  run(Place::kHere, on_two_ranks("torch-2.4", "torch_own_tests.py", {"ddl"}));
}

TEST_CASE("the backend's errors are sentences, and none of them hangs", "[torch_backend_errors]") {
  run(Place::kHere, on_two_ranks("torch", "torch_backend_errors.py"));
}
TEST_CASE("the other ranks are told which rank has died", "[torch_backend_errors]") {
  const auto python = python_of("torch");
  if (!python) return;
  for (const std::string call : {"all_reduce", "barrier", "recv", "new_group"}) {
    const Output result = output_of(Place::kHere, {"-np", "2", "--oversubscribe", "--no-tag-output", "-x",
                                                   "PYTHONPATH=" DDL_FRAMEWORKS_PACKAGE, *python,
                                                   DDL_FRAMEWORK_PROGRAMS "/torch_backend_death.py", call});
    INFO(result.out << "\n" << result.err);
    CHECK(result.status != 0);
    CHECK(e2e::occurrences(result.out, "rank 0: told by " + call + ": ") == 1);
  }
}
TEST_CASE("groups that are made and destroyed leave nothing", "[torch_backend_errors]") {
  run(Place::kHere, on_two_ranks("torch", "torch_backend_again.py"));
}

}  // namespace ddl::frameworks

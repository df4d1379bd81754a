// ddl.tensorflow with several versions of TensorFlow, by libddl's kernels and by functions of Python; and what lessons
// on Horovod teach, with ddl in the place of Horovod, and with Horovod.
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

Program with_ddl(const std::string& environment, const std::string& file, int ranks) {
  Program program{.environment = environment, .file = file, .lines = ranks, .has_ddl = true};
  program.options = {"-np", std::to_string(ranks), "-x", "TF_CPP_MIN_LOG_LEVEL=2"};
  return program;
}

/// kernels: DDL_TENSORFLOW_KERNELS; empty: ddl.tensorflow chooses functions by itself.
void run_by_functions(const std::string& environment, const std::string& kernels) {
  Program program = with_ddl(environment, "tensorflow_ddl_calls.py", 2);
  program.options.insert(program.options.end(), {"-x", "DDL_TENSORFLOW_KERNELS=" + kernels});
  program.arguments = {"functions"};
  run(Place::kHere, program);
}

void run_here(const std::string& environment, int ranks) {
  run(Place::kHere, with_ddl(environment, "tensorflow_ddl_calls.py", ranks));
  run_by_functions(environment, "0");
  run(Place::kHere, with_ddl(environment, "tensorflow_ddl_training.py", 2));
}

/// as_horovod: of ddlrun, by which the program finds ddl or Horovod under the name horovod.
void run_lessons(const std::string& environment, const std::string& as_horovod, bool has_ddl) {
  const auto lesson = [&](const std::string& file, std::vector<std::string> arguments) {
    Program program{.environment = environment, .file = file, .arguments = std::move(arguments)};
    program.options = {"-np", "2", as_horovod, "-x", "TF_CPP_MIN_LOG_LEVEL=2"};
    program.has_ddl = has_ddl;
    run(Place::kHere, program);
  };
  for (const char* kind : {"functions", "equation", "ensemble"}) lesson("horovod_graphs.py", {kind});
  lesson("horovod_six_steps.py", {});
  lesson("horovod_check.py", {});
}

}  // namespace

TEST_CASE("ddl.tensorflow's calls and gradients, and training", "[tensorflow_ddl]") {
  run_here("tensorflow", 3);
}
TEST_CASE("ddl.tensorflow with TensorFlow 2.15", "[tensorflow_ddl_2.15]") { run_here("tensorflow-2.15", 1); }
TEST_CASE("ddl.tensorflow with TensorFlow 2.16", "[tensorflow_ddl_2.16]") { run_here("tensorflow-2.16", 1); }
TEST_CASE("ddl.tensorflow with TensorFlow 2.12, which has no asynchronous kernels", "[tensorflow_ddl_2.12]") {
  run_by_functions("tensorflow-2.12", "");
  run(Place::kHere, with_ddl("tensorflow-2.12", "tensorflow_ddl_training.py", 2));
}
TEST_CASE("a TensorFlow that nobody has tried is tried in another process first", "[tensorflow_ddl]") {
  for (const char* end : {"well", "badly"}) {
    Program program = with_ddl("tensorflow", "tensorflow_ddl_untried.py", 1);
    program.arguments = {end};
    run(Place::kHere, program);
  }
}
TEST_CASE("ddl.tensorflow's calls over two hosts", "[tensorflow_ddl_on_hosts]") {
  Program program = with_ddl("tensorflow", "tensorflow_ddl_calls.py", 2);
  program.options.insert(program.options.end(), {"--map-by", "node"});
  run(Place::kTwoHosts, program);
}
TEST_CASE("a function of TensorFlow, in fit(), is told which rank has died", "[tensorflow_ddl]") {
  const auto python = python_of("tensorflow");
  if (!python) return;
  const Output result = output_of(Place::kHere, {"-np", "2", "--oversubscribe", "--no-tag-output", "-x",
                                                 "PYTHONPATH=" DDL_FRAMEWORKS_PACKAGE, *python,
                                                 DDL_FRAMEWORK_PROGRAMS "/tensorflow_ddl_death.py"});
  INFO(result.out << "\n" << result.err);
  CHECK(result.status != 0);
  CHECK(e2e::occurrences(result.out, "rank 0: told: ") == 1);
}

TEST_CASE("lessons' programs of Horovod for TensorFlow train with ddl", "[lessons]") {
  run_lessons("tensorflow-2.15", "--as-horovod", true);
}
TEST_CASE("lessons' programs of Horovod for TensorFlow train with Horovod", "[lessons_horovod]") {
  run_lessons("horovod", "--gloo", false);
}

}  // namespace ddl::frameworks

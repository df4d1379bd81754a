#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

const Program kGather{.environment = "jax",
                      .file = "jax_gather.py",
                      .options = {"-np", "2", "--map-by", "node", "--framework", "jax"}};

TEST_CASE("processes of JAX find each other and gather", "[jax]") { run(Place::kHere, kGather); }
TEST_CASE("processes of JAX gather over two hosts", "[jax_on_hosts]") { run(Place::kTwoHosts, kGather); }
TEST_CASE("processes of JAX gather in a job of Slurm", "[jax_in_slurm]") { run(Place::kSlurm, kGather); }

/// A program with ddl.jax.
Program with_ddl(const std::string& file, int ranks, const std::string& environment = "jax") {
  Program program{.environment = environment, .file = file, .options = {"-np", std::to_string(ranks)}};
  program.lines = ranks;
  program.has_ddl = true;
  return program;
}

TEST_CASE("ddl.jax's functions on one rank and on three", "[jax_calls]") {
  run(Place::kHere, with_ddl("jax_calls.py", 1));
  run(Place::kHere, with_ddl("jax_calls.py", 3));
}
TEST_CASE("ddl.jax's functions on two ranks", "[jax_calls_more]") {
  run(Place::kHere, with_ddl("jax_calls.py", 2));
}
TEST_CASE("ddl.jax's functions with the oldest JAX", "[jax_older]") {
  run(Place::kHere, with_ddl("jax_calls.py", 2, "jax-0.5"));
  run(Place::kHere, with_ddl("jax_order.py", 2, "jax-0.5"));
}
TEST_CASE("ddl.jax's functions over two hosts", "[jax_calls_on_hosts]") {
  Program program = with_ddl("jax_calls.py", 2);
  program.options.insert(program.options.end(), {"--map-by", "node"});
  run(Place::kTwoHosts, program);
}
TEST_CASE("100 allreduces of a compiled function, in another order on each rank, on one CPU", "[jax_order]") {
  run(Place::kHere, with_ddl("jax_order.py", 3));
}
TEST_CASE("a rank that ends makes the computations that others need", "[jax_order]") {
  run(Place::kHere, with_ddl("jax_end.py", 2));
}
TEST_CASE("ddl.jax's errors are sentences, and none of them hangs", "[jax_errors]") {
  run(Place::kHere, with_ddl("jax_errors.py", 2));
}
TEST_CASE("a computation of JAX is told which rank has died", "[jax_errors]") {
  const auto python = python_of("jax");
  if (!python) return;
  const Output result = output_of(
      Place::kHere, {"-np", "2", "--oversubscribe", "--no-tag-output", "-x",
                     "PYTHONPATH=" DDL_FRAMEWORKS_PACKAGE, *python, DDL_FRAMEWORK_PROGRAMS "/jax_death.py"});
  INFO(result.out << "\n" << result.err);
  CHECK(result.status != 0);
  CHECK(e2e::occurrences(result.out, "rank 0: told: ") == 1);
}

/// What the example prints after "N ranks: ".
std::string loss_of_example(const std::string& python, const std::string& ranks) {
  const Output result = output_of(
      Place::kHere, {"-np", ranks, "--oversubscribe", "--no-tag-output", "-x",
                     "PYTHONPATH=" DDL_FRAMEWORKS_PACKAGE, python, DDL_PYTHON_EXAMPLES "/jax_optax.py"});
  INFO(result.out << "\n" << result.err);
  CHECK(result.status == 0);
  const std::string begin = ranks + " ranks: loss ";
  REQUIRE(result.out.starts_with(begin));
  return result.out.substr(begin.size());
}
TEST_CASE("the example with optax has the loss of one process with the whole batch", "[jax_example]") {
  const auto python = python_of("jax");
  if (!python) return;
  CHECK(loss_of_example(*python, "1") == loss_of_example(*python, "2"));
}

TEST_CASE("ddl.jax's declarations are those of jaxlib's header", "[jax_abi]") {
  for (const std::string environment : {"jax", "jax-0.5"}) {
    const auto python = python_of(environment);
    if (!python) continue;
    e2e::Command settings;
    settings.patience = kPatience;
    settings.argv = {*python, "-c", "import jaxlib; print(jaxlib.__path__[0] + '/include', end='')"};
    const e2e::Scratch scratch;
    e2e::Job asked(scratch, settings);
    REQUIRE(asked.wait() == 0);
    settings.argv = {DDL_CXX_COMPILER, "-std=c++20",        "-fsyntax-only",   "-isystem",
                     asked.out(),      "-I" DDL_SOURCE_DIR, DDL_XLA_ABI_SOURCE};
    const e2e::Scratch compiled;
    e2e::Job compiler(compiled, settings);
    const int status = compiler.wait();
    INFO(compiler.err());
    CHECK(status == 0);
  }
}

}  // namespace
}  // namespace ddl::frameworks

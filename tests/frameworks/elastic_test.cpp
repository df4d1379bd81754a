// Programs of TensorFlow and Keras whose ranks go on when one is killed: on this machine, whose two names count as two
// hosts.
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

/// At first of three ranks. lines: of those that are there at the end. cooldown: seconds until a process takes the
/// place of the one that is killed.
Program three_ranks(const std::string& environment, const std::string& file, int lines,
                    const std::string& cooldown) {
  Program program{.environment = environment, .file = file, .lines = lines, .has_ddl = true};
  program.options = {"--elastic",
                     "continue",
                     "-np",
                     "3",
                     "--min-np",
                     "2",
                     "-H",
                     "localhost:2,127.0.0.1:1",
                     "--blacklist-cooldown-range",
                     cooldown,
                     cooldown,
                     "--elastic-settle",
                     "0",
                     "-x",
                     "TF_CPP_MIN_LOG_LEVEL=2"};
  return program;
}

/// module: ddl.keras, or ddl.tensorflow.keras. settings: further variables of the ranks.
void run_keras(const std::string& environment, const std::string& module,
               const std::vector<std::string>& settings) {
  Program program = three_ranks(environment, "keras_elastic.py", 3, "1");
  for (const std::string& one : settings) program.options.insert(program.options.end(), {"-x", one});
  program.arguments = {module, "1"};
  run(Place::kHere, program);
}

}  // namespace

TEST_CASE("a loop of TensorFlow goes on when a rank is killed", "[tensorflow_elastic]") {
  for (const char* kernels : {"1", "0"}) {
    Program program = three_ranks("tensorflow", "tensorflow_elastic.py", 2, "3600");
    program.options.insert(program.options.end(), {"-x", std::string("DDL_TENSORFLOW_KERNELS=") + kernels});
    program.arguments = {"0"};
    run(Place::kHere, program);
  }
}
TEST_CASE("a model of tf_keras goes on when a rank is killed, and with one that comes", "[keras_elastic]") {
  run_keras("tensorflow", "ddl.tensorflow.keras", {"TF_USE_LEGACY_KERAS=1"});
}
TEST_CASE("a model of Keras 3 with JAX goes on", "[keras_elastic_jax]") {
  run_keras("keras", "ddl.keras", {"KERAS_BACKEND=jax"});
}
TEST_CASE("a model of Keras 3 with TensorFlow goes on", "[keras_elastic_2.16]") {
  run_keras("tensorflow-2.16", "ddl.tensorflow.keras", {});
  Program example = three_ranks("tensorflow-2.16", DDL_PYTHON_EXAMPLES "/elastic_keras.py", 1, "3600");
  example.printed = ":3 ranks: loss 0.0";
  run(Place::kHere, example);
}

}  // namespace ddl::frameworks

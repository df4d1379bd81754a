// ddl.keras and ddl.tensorflow.keras: Keras 2 with TensorFlow 2.15 and 2.12, and as tf_keras with the newest; Keras 3
// with the newest and 2.16, with JAX, with PyTorch.
#include <filesystem>

#include "e2e/harness/fifo.h"
#include "e2e/harness/scratch.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

/// The environment that has Keras 3 and JAX.
constexpr const char* kKeras = "keras";

Program two_ranks(const std::string& environment, const std::string& file, std::vector<std::string> arguments,
                  const std::string& backend) {
  return {.environment = environment,
          .file = file,
          .options = {"-np", "2", "-x", "KERAS_BACKEND=" + backend, "-x", "TF_CPP_MIN_LOG_LEVEL=2"},
          .arguments = std::move(arguments),
          .has_ddl = true};
}

/// module: ddl.keras, or ddl.tensorflow.keras. options: more of ddlrun. packages: a folder of those that the
/// environment lacks.
void run_all(const std::string& environment, const std::string& module, const std::string& backend,
             const std::vector<std::string>& options = {}, const std::string& packages = {}) {
  std::vector<std::string> arguments = {module};
  if (!packages.empty()) arguments.push_back(packages);
  for (const char* file : {"keras_fit.py", "keras_steps.py", "keras_callbacks.py"}) {
    Program program = two_ranks(environment, file, arguments, backend);
    program.options.insert(program.options.end(), options.begin(), options.end());
    run(Place::kHere, program);
  }
}

void run_mnist(const std::string& environment) {
  run(Place::kHere, two_ranks(environment, "keras_mnist.py", {"ddl.tensorflow.keras"}, "tensorflow"));
}

/// Runs the example of digits with these arguments.
Output digits_of(const std::string& python, int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"-np",
                                    std::to_string(ranks),
                                    "--oversubscribe",
                                    "--no-tag-output",
                                    "-x",
                                    "PYTHONPATH=" DDL_FRAMEWORKS_PACKAGE,
                                    "-x",
                                    "PYTHONDONTWRITEBYTECODE=1",
                                    "-x",
                                    "TF_CPP_MIN_LOG_LEVEL=2",
                                    python,
                                    DDL_PYTHON_EXAMPLES "/mnist_keras.py"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return output_of(Place::kHere, words);
}

void run_digits(const std::string& environment) {
  const auto python = python_of(environment);
  if (!python) return;
  const e2e::Scratch scratch;
  const std::string folder = scratch.path() + "/digits";
  const auto train = [&](int ranks, const std::string& epochs) {
    return digits_of(*python, ranks,
                     {"--samples", "4000", "--batch", "16", "--epochs", epochs, "--checkpoint", folder});
  };
  const Output result = train(2, "1");
  INFO(environment << "\n" << result.out << "\n" << result.err);
  CHECK(result.status == 0);
  // Rank 0 alone prints, and writes the model.
  CHECK(e2e::occurrences(result.out, "epoch 1  loss ") == 1);
  CHECK(e2e::names_in(folder) == std::vector<std::string>{"epoch-0001.keras"});
  // Another number of ranks goes on from the checkpoint.
  const Output more = train(1, "2");
  INFO(more.out << "\n" << more.err);
  CHECK(e2e::occurrences(more.out, "epoch 1  loss ") == 0);
  CHECK(e2e::occurrences(more.out, "epoch 2  loss ") == 1);
  const std::string begin = "1 ranks: accuracy ";
  const std::size_t at = more.out.find(begin);
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(more.out.substr(at + begin.size())) > 0.85);

  const Output missing = digits_of(*python, 1, {"--data", scratch.path()});
  INFO(missing.err);
  CHECK(missing.status != 0);
  CHECK(missing.err.find("mnist_keras.py: neither train-images-idx3-ubyte nor") != std::string::npos);
}

}  // namespace

TEST_CASE("Keras 2 trains on ranks as in one process", "[keras_2]") {
  run_all("tensorflow-2.15", "ddl.tensorflow.keras", "tensorflow");
}
TEST_CASE("Keras 3 trains on ranks as in one process", "[keras_3]") {
  run_all("tensorflow", "ddl.keras", "tensorflow");
}
TEST_CASE("Keras 2 of TensorFlow 2.12 trains on ranks as in one process", "[keras_2.12]") {
  run_all("tensorflow-2.12", "ddl.tensorflow.keras", "tensorflow");
}
TEST_CASE("an early Keras 3 with TensorFlow 2.16 trains on ranks as in one process", "[keras_2.16]") {
  run_all("tensorflow-2.16", "ddl.keras", "tensorflow");
}
TEST_CASE("tf_keras with the newest TensorFlow trains on ranks as in one process", "[keras_legacy]") {
  run_all("tensorflow", "ddl.tensorflow.keras", "tensorflow", {"-x", "TF_USE_LEGACY_KERAS=1"});
}
TEST_CASE("Keras 3 with JAX trains on ranks as in one process", "[keras_jax]") {
  run_all(kKeras, "ddl.keras", "jax");
}
TEST_CASE("Keras 3 with PyTorch trains on ranks as in one process", "[keras_torch]") {
  const auto python = python_of(kKeras);
  if (!python) return;
  const auto library = std::filesystem::path(*python).parent_path().parent_path() / "lib";
  const std::filesystem::path version = std::filesystem::directory_iterator(library)->path();
  run_all("torch", "ddl.keras", "torch", {}, (version / "site-packages").string());
}

TEST_CASE("a tutorial's program of Keras trains as in one process", "[keras_mnist]") {
  run_mnist("tensorflow-2.15");
  run_mnist("tensorflow");
}
TEST_CASE("the example of Keras learns digits on two ranks, and goes on with one", "[keras_example]") {
  run_digits("tensorflow-2.15");
  run_digits("tensorflow");
}
TEST_CASE("a tutorial's program of Keras trains with Horovod, too", "[keras_mnist_horovod]") {
  run(Place::kHere, {.environment = "horovod",
                     .file = "keras_mnist.py",
                     .options = {"-np", "2", "--gloo"},
                     .arguments = {"horovod.tensorflow.keras"}});
}

}  // namespace ddl::frameworks

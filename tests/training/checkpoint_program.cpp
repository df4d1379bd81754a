// A rank that saves and loads checkpoints by save_checkpoint():
//
//   checkpoint_program FOLDER        reads the checkpoint there, if there is one, and writes it anew with its number of
//                                    ranks
//
// Exit status 0: what was read was right, and what is wrong on one rank was the same error on all.
#include <ddl/ddl.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "ddl/training/checkpoint.hpp"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this program is about nothing else

constexpr std::uint64_t kElements = 1001;

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

/// Element i of the optimizer's state is i + 0.5; this rank has an even share.
void run(ddl::Context& context, const std::string& folder) {
  const auto rank = static_cast<std::uint64_t>(context.rank()),
             size = static_cast<std::uint64_t>(context.size());
  const std::uint64_t begin = rank * kElements / size, end = (rank + 1) * kElements / size;
  std::vector<double> state;
  std::vector<std::int32_t> steps{17};
  if (Checkpoint::exists(folder)) {
    Checkpoint checkpoint(folder);
    state = checkpoint.values<double>("state", begin, end);
    steps = checkpoint.values<std::int32_t>("steps");
    require(checkpoint.metadata().at("by") == "rank 0", "the metadata are of another rank");
    context.barrier();
  } else {
    for (std::uint64_t i = begin; i < end; ++i) state.push_back(static_cast<double>(i) + 0.5);
  }
  for (std::uint64_t i = begin; i < end; ++i)
    require(state[i - begin] == static_cast<double>(i) + 0.5, "element " + std::to_string(i) + " is wrong");
  require(steps == std::vector<std::int32_t>{17}, "the number of steps is wrong");

  // A rank that gives the wrong piece, or cannot write, is what all ranks hear of.
  std::string problem;
  try {
    const std::uint64_t wrong = context.rank() == context.size() - 1 ? 1 : 0;
    save_checkpoint(context, folder, {shard("state", state.data(), {kElements}, begin, end - wrong)});
  } catch (const ddl::Error& error) {
    problem = error.what();
  }
  const std::string missing = "elements [1000, 1001) are in no part";
  require(problem.find(missing) != std::string::npos, "a missing piece was the error: " + problem);
  try {
    problem.clear();
    const void* const data = context.rank() == context.size() - 1 ? nullptr : state.data();
    save_checkpoint(context, folder, {{"state", DDL_FLOAT64, {kElements}, begin, end, data}});
  } catch (const ddl::Error& error) {
    problem = error.what();
  }
  const std::string culprit = "rank " + std::to_string(context.size() - 1) + ": ";
  require(
      problem.compare(0, culprit.size(), culprit) == 0 && problem.find("has no data") != std::string::npos,
      "a rank without data was the error: " + problem);

  save_checkpoint(context, folder, {shard("state", state.data(), {kElements}, begin, end)},
                  {tensor_view("steps", steps.data(), {})},
                  {{"by", "rank " + std::to_string(context.rank())}});
  Checkpoint written(folder);
  require(written.tensor("state").pieces.size() == size, "each rank has written a piece");
  require(written.tensor("steps").pieces.size() == 1, "one rank has written what all have");
  require(written.values<double>("state").back() == 1000.5, "the end of the new checkpoint is wrong");
  context.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    require(argc == 2, "usage: checkpoint_program FOLDER");
    ddl::Context context;
    run(context, argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

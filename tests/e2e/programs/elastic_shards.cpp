// A rank of an elastic job in which each has a part of some numbers of its own, and counts on them. The job ends when all
// of them are right after some steps. Arguments: the digits of the ranks that die in generation 0, between two commits;
// the number of ranks with which the job ends; "keep": a part cannot be made for another number of ranks.
// A rank that is to die does so also if it notices the death of another one first: the job would have one rank too many
// to end.
#include <unistd.h>
#include <ddl/elastic.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kNumbers = 22;  // no multiple of 3 or 4
constexpr long kSteps = 20;

std::vector<long> part_of(const std::vector<std::vector<long>>& parts, int rank, int size) {
  std::vector<long> whole;
  for (const std::vector<long>& part : parts) whole.insert(whole.end(), part.begin(), part.end());
  const auto count = static_cast<long>(whole.size());
  return {whole.begin() + rank * count / size, whole.begin() + (rank + 1) * count / size};
}

/// Whether all parts together are what a job without losses has.
bool is_right(ddl::Context& context, const std::vector<long>& part, long step) {
  const std::vector<std::uint64_t> own{part.size()};
  const std::vector<long> whole = context.allgatherv(part, context.allgather(own));
  for (int i = 0; i < static_cast<int>(whole.size()); ++i) {
    if (whole[i] != 1000L * i + step) return false;
  }
  return whole.size() == kNumbers;
}

/// When all ranks have made their steps: none of them is still in the commit before.
[[noreturn]] void die_after_barrier(ddl::Context& context) {
  try {
    context.barrier();
  } catch (const ddl::Error&) {
    // Another rank died first.
  }
  std::raise(SIGKILL);
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string victims = argc > 1 ? argv[1] : "";
  const int last_size = argc > 2 ? std::stoi(argv[2]) : 1;
  std::vector<long> numbers, part;
  for (int i = 0; i < kNumbers; ++i) numbers.push_back(1000L * i);
  long step = 0;

  ddl::elastic::State state;
  state.add(step);
  state.add_shard(part, argc > 3 ? ddl::elastic::Reshard<long>() : part_of);
  try {
    const bool is_done = ddl::elastic::run(state, [&](ddl::elastic::Generation& generation) {
      ddl::Context& context = generation.context();
      if (step == 0 && part.empty()) part = part_of({numbers}, context.rank(), context.size());
      std::printf("generation %d: step %ld of rank %d\n", generation.number(), step, context.rank());
      std::fflush(stdout);
      while (step < kSteps || context.size() != last_size) {
        for (long& number : part) ++number;
        ++step;
        if (generation.number() == 0 && step == 9 &&
            victims.find(std::to_string(context.rank())) != std::string::npos)
          die_after_barrier(context);
        context.barrier();
        if (step % 2 == 0) generation.commit();
      }
      if (!is_right(context, part, step)) throw std::runtime_error("wrong numbers");
    });
    return is_done ? 0 : ddl::elastic::kDrained;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elastic_shards: %s\n", error.what());
    return 3;
  }
}

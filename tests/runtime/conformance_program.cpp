// A program as users write them, over the installed interface: the whole suite under whatever launcher started it.
// Says "conforms: rank R of N by BOOTSTRAP" and exits with 0, or says what differs and exits with 1.
//
//   conformance_program [RANKS]     RANKS: how many there must be
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "ddl/ddl.hpp"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"

using namespace ddl::conformance;

namespace {

/// The C++ interface, which checks nothing itself.
void check_wrapper(ddl::Context& context) {
  const int rank = context.rank(), size = context.size();
  std::vector<double> values{1.0 * rank, 1.0};
  context.allreduce(values);
  expect(values[0] == size * (size - 1) / 2.0 && values[1] == size, "allreduce(vector)");
  const std::vector<float> send(3, static_cast<float>(rank));
  std::vector<float> recv(3);
  context.allreduce(send.data(), recv.data(), 3, ddl::Op::max);
  expect(recv[2] == static_cast<float>(size - 1), "allreduce(send, recv)");
  std::vector<long long> root(2, rank);
  context.broadcast(root, size - 1);
  expect(root[1] == size - 1, "broadcast");
  std::vector<int> all(static_cast<std::size_t>(size)), wanted(static_cast<std::size_t>(size));
  context.allgather(&rank, all.data(), 1);
  std::iota(wanted.begin(), wanted.end(), 0);
  expect(all == wanted, "allgather");
  context.barrier();

  ddl::Context moved = std::move(context);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is left is what is tried
  expect(context.get() == nullptr && moved.rank() == rank, "moving");
  context = std::move(moved);
  try {
    context.broadcast(all, size);
    expect(false, "a bad root was taken");
  } catch (const ddl::Error& error) {
    expect(error.status() == DDL_ERROR_INVALID_ARGUMENT, "the status of a bad root");
    expect_contains(error.what(), "is not a rank of 0 to");
  }
}

void run(int wanted_ranks) {
  for (int round = 0; round < 3; ++round) {
    ddl::Context context(60.0);
    ddl_context* second = nullptr;
    expect_status(ddl_init(nullptr, &second), DDL_ERROR_INVALID_ARGUMENT, "a second context");
    expect(second == nullptr, "a second context was stored");
    if (wanted_ranks != 0) expect(context.size() == wanted_ranks, "there are other ranks than wanted");
    check_wrapper(context);
    // Everything once; before, only that a new context works.
    if (round < 2) {
      check_all(context.get(), {0, 1, 2, 100});
    } else {
      check_all(context.get(), {0, 1, 2, 8192, 8193, 17000});
    }
    if (round == 2)
      std::printf("conforms: rank %d of %d by %s\n", context.rank(), context.size(),
                  context.bootstrap_name());
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Several chunks for the larger counts.
  (void)::setenv("DDL_STAGING_BYTES", "32768", 0);
  try {
    run(argc > 1 ? std::atoi(argv[1]) : 0);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "does not conform: %s\n", error.what());
    return 1;
  }
}

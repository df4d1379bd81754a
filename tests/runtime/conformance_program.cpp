// A program over the installed interface, as users write them: the complete suite under the launcher that started it.
// Prints "conforms: rank R of N by BOOTSTRAP", and ", over MPI" if MPI executes the collectives, and exits with 0;
// or prints what differs and exits with 1.
//
//   conformance_program [RANKS [FOLDER]]     RANKS: how many there must be
//
// FOLDER: one that all ranks see; then only process sets that are made by their members are checked, and the store is
// there. Without it this is checked, too, if all ranks are on one host.
#include <cstdio>
#include <cstdlib>

#include "ddl/ddl.hpp"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/wrapper_check.h"

using namespace ddl::conformance;

namespace {

void run(int wanted_ranks) {
  for (int round = 0; round < 3; ++round) {
    ddl::Context context(60.0);
    ddl_context* second = nullptr;
    expect_status(ddl_init(nullptr, &second), DDL_ERROR_INVALID_ARGUMENT, "a second context");
    expect(second == nullptr, "a second context was stored");
    if (wanted_ranks != 0) expect(context.size() == wanted_ranks, "there are other ranks than wanted");
    check_wrapper(context);
    // Everything in the last context; in the earlier ones only that a new context works.
    if (round < 2) {
      check_all(context.get(), {0, 1, 2, 100});
    } else {
      check_all(context.get(), {0, 1, 2, 8192, 8193, 17000});
      check_process_sets(context.get());
      if (context.local_size() == context.size()) check_member_sets(context.get(), "/tmp");
      check_horovod_cases(context.get());
      check_random_operations(context.get(), 3, 200);
      check_named_tensors(context.get(), 3, 20);
    }
    if (round == 2)
      std::printf("conforms: rank %d of %d by %s%s%s\n", context.rank(), context.size(),
                  context.bootstrap_name(), ddl_has_feature("mpi-enabled") != 0 ? ", over " : "",
                  ddl_mpi_library());
  }
}

void run_member_sets(int wanted_ranks, const char* folder) {
  ddl::Context context(60.0);
  expect(context.size() == wanted_ranks, "there are other ranks than wanted");
  check_member_sets(context.get(), folder);
  std::printf("sets of members conform: rank %d of %d\n", context.rank(), context.size());
}

}  // namespace

int main(int argc, char** argv) {
  // Several chunks for the larger counts.
  (void)::setenv("DDL_STAGING_BYTES", "32768", 0);
  // By NCCL, unless the ranks share a GPU.
  const bool is_by_nccl = std::getenv("DDL_TEST_GPU") != nullptr && std::getenv("DDL_TEST_GPUS") == nullptr;
  promises().rounds_once = promises().has_canonical_order = !is_by_nccl;
  try {
    const int wanted_ranks = argc > 1 ? std::atoi(argv[1]) : 0;
    if (argc > 2) {
      run_member_sets(wanted_ranks, argv[2]);
    } else {
      run(wanted_ranks);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "does not conform: %s\n", error.what());
    return 1;
  }
}

#include "runtime/support/conformance/mismatch.h"

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/fenced.h"
#include "runtime/support/conformance/trial.h"

namespace ddl::conformance {
namespace {

/// Checks that collectives with a root, and one without, work after calls that did not match.
void check_usable(const Communicator& comm, int root) {
  Trial trial;
  trial.count = 5;
  trial.buffers = Buffers::kApart;
  check(comm, trial);
  trial.root = root;
  for (const Collective collective : {Collective::kReduce, Collective::kGather, Collective::kBroadcast}) {
    trial.collective = collective;
    check(comm, trial);
  }
}

}  // namespace

void check_mismatch(const Communicator& comm, const Variant& usual, const Variant& mismatched,
                    int mismatched_rank) {
  const std::string what = "mismatch of " + usual.message_parts[0] + "...) and " + mismatched.differs +
                           " on rank " + std::to_string(mismatched_rank) + ", rank " +
                           std::to_string(comm.rank);
  const auto count = kMismatchCount * static_cast<std::uint64_t>(comm.size);
  const std::vector<float> input = input_of<float>(comm.rank, count, 1);
  Fenced<float> send(input), recv(count);
  const Variant& own = comm.rank == mismatched_rank ? mismatched : usual;
  ddl_status status = own.call(comm, send.data(), recv.data());
  // The root of a broadcast may have returned before the calls were compared: its next call does not run.
  const ddl_call_options options = comm.options();
  if (status == DDL_OK && own.message_parts[0].starts_with("broadcast("))
    status = ddl_barrier(comm.context, &options);
  expect_status(status, DDL_ERROR_MISMATCH, what);
  const std::string sentence = ddl_last_error();
  expect(recv.is_untouched(), what + ": a receive buffer was written");
  expect_bits(send, input, what + ": changed its input");
  // All are compared with rank 0; if that is the mismatched one, the next in the order of the tree is named.
  const auto name = [&](int rank) {
    return "rank " + std::to_string(comm.ranks[static_cast<std::size_t>(rank)]) + " on ";
  };
  const int next = comm.groups[0].size() > 1 ? comm.groups[0][1] : comm.groups[1][0];
  expect_contains(sentence, name(0));
  expect_contains(sentence, name(mismatched_rank == 0 ? next : mismatched_rank));
  for (const Variant* variant : {&usual, &mismatched}) {
    expect_contains(sentence, " called " + variant->message_parts[0]);
    for (const std::string& part : variant->message_parts) expect_contains(sentence, part);
  }
}

void check_too_little_room(const Communicator& comm, int mismatched_rank) {
  const auto size = static_cast<std::size_t>(comm.size);
  const std::string what = "too little room on rank " + std::to_string(mismatched_rank);
  const ddl_call_options options = comm.options();
  const std::vector<std::uint64_t> counts(size, 3);
  std::vector<std::uint64_t> received_counts(size, 99);
  Fenced<float> send(input_of<float>(comm.rank, 3 * size, 1)), recv(3 * size);
  const std::uint64_t room = 3 * size - (comm.rank == mismatched_rank ? 1 : 0);
  expect_status(ddl_alltoallv(comm.context, send.data(), counts.data(), recv.data(), room,
                              received_counts.data(), DDL_FLOAT32, &options),
                DDL_ERROR_MISMATCH, what);
  expect_contains(ddl_last_error(),
                  "rank " + std::to_string(comm.ranks[static_cast<std::size_t>(mismatched_rank)]) + " on ");
  expect(recv.is_untouched(), what + ": a receive buffer was written");
  expect(received_counts == counts, what + ": the numbers of elements are not stored");
}

void check_mismatches(ddl_context* context, Extent extent) {
  const Communicator world = world_of(context);
  if (world.size == 1) return;
  const bool every_rank = extent == Extent::kFull || world.size <= 3;
  int turn = 0;
  for (const Disagreement& disagreement : disagreements()) {
    for (const Variant& mismatched : disagreement.mismatched) {
      ++turn;
      for (int rank = 0; rank < world.size; ++rank) {
        if (every_rank || turn % world.size == rank)
          check_mismatch(world, disagreement.usual, mismatched, rank);
      }
    }
    check_usable(world, turn % world.size);
  }
  for (int rank = 0; rank < world.size; ++rank) check_too_little_room(world, rank);
  for (int root = 0; root < world.size; ++root) check_usable(world, root);
}

}  // namespace ddl::conformance

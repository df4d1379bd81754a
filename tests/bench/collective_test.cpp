#include "bench/workload.h"

#include <vector>

#include "support/catch.h"

namespace ddl::bench {
namespace {

TEST_CASE("collectives are known by their names") {
  for (const Collective what : all_collectives()) CHECK(parse_collective(name_of(what)) == what);
  CHECK(!parse_collective("allredcue"));
  CHECK(!parse_collective(""));
}

TEST_CASE("a size is rounded up to equal parts of whole floats") {
  CHECK(whole_bytes(Collective::kAllreduce, 4, 8) == 4);
  CHECK(whole_bytes(Collective::kBroadcast, 5, 8) == 8);
  CHECK(whole_bytes(Collective::kAllgather, 4, 8) == 32);
  CHECK(whole_bytes(Collective::kAlltoall, 64, 3) == 72);
  CHECK(whole_bytes(Collective::kReduceScatter, 1 << 20, 4) == 1 << 20);
}

// Computes a part of a collective's result from the values that the ranks send.
float computed_value(Collective what, int rank, int ranks, int part, int turn) {
  float sum = 0;
  switch (what) {
    case Collective::kAllgather: return sent_value(what, part, ranks, 0, turn);
    case Collective::kAlltoall: return sent_value(what, part, ranks, rank, turn);
    case Collective::kBroadcast: return sent_value(what, 0, ranks, 0, turn);
    case Collective::kAllreduce:
      for (int other = 0; other < ranks; ++other) sum += sent_value(what, other, ranks, 0, turn);
      return sum;
    case Collective::kReduceScatter:
      for (int other = 0; other < ranks; ++other) sum += sent_value(what, other, ranks, rank, turn);
      return sum;
  }
  return sum;
}

TEST_CASE("expected values are the collective's result of the sent values") {
  for (const Collective what : all_collectives()) {
    for (const int ranks : {2, 3, 8}) {
      const Shape shape = shape_of(what, ranks);
      for (int turn = 0; turn < 3; ++turn) {
        for (int rank = 0; rank < ranks; ++rank) {
          for (int part = 0; part < shape.result_parts; ++part) {
            INFO(name_of(what) << " rank " << rank << " of " << ranks << " part " << part);
            CHECK(expected_value(what, rank, ranks, part, turn) ==
                  computed_value(what, rank, ranks, part, turn));
          }
        }
      }
    }
  }
}

TEST_CASE("a missing result, or one of an earlier turn, differs from the expected one") {
  for (const Collective what : all_collectives()) {
    const int parts = shape_of(what, 4).result_parts;
    for (int part = 0; part < parts; ++part) {
      CHECK(expected_value(what, 1, 4, part, 2) != expected_value(what, 1, 4, part, 1));
      CHECK(expected_value(what, 1, 4, part, 0) >= 0);
    }
  }
}

TEST_CASE("the minimum that every host must send") {
  CHECK(min_sent(Collective::kAllreduce, 2) == 1);
  CHECK(min_sent(Collective::kAllreduce, 4) == 1.5);
  CHECK(min_sent(Collective::kAlltoall, 4) == 0.75);
  CHECK(min_sent(Collective::kBroadcast, 4) == 1);
}

}  // namespace
}  // namespace ddl::bench

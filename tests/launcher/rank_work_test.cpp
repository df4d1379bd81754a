#include "launcher/job/rank_work.h"

#include <unistd.h>

#include "launcher/node/rank_process.h"
#include "support/catch.h"

using namespace ddl::launcher;

namespace {

SetActivity set_with(std::int64_t id, const std::string& kind, std::int64_t number, bool is_inside,
                     double seconds) {
  SetActivity set;
  set.generation = id + 1;
  set.id = id;
  set.call = {kind, number, is_inside, seconds};
  return set;
}

RankActivity joined(std::vector<SetActivity> sets) {
  RankActivity rank;
  rank.phase = RankActivity::Phase::kJoined;
  rank.seconds = 5;
  rank.sets = std::move(sets);
  return rank;
}

std::string text_of(const RankActivity& rank) { return work_text(current_work(rank)); }

}  // namespace

TEST_CASE("what a rank does, in few words") {
  RankActivity rank;
  CHECK(text_of(rank).empty());
  rank.phase = RankActivity::Phase::kJoining;
  CHECK(text_of(rank) == "ddl_init");
  rank.phase = RankActivity::Phase::kLeft;
  CHECK(text_of(rank) == "has called ddl_finalize");
  CHECK(text_of(joined({})) == "user code");
  CHECK(text_of(joined({set_with(0, "barrier", 3, true, 1)})) == "barrier #3");
  CHECK(current_work(joined({set_with(0, "barrier", 3, true, 1)})).seconds == 1);
  CHECK(text_of(joined({set_with(0, "", 0, false, 5), set_with(2, "broadcast", 7, true, 1)})) ==
        "broadcast #7 of process set 2");
  // The call that it has left last.
  CHECK(text_of(joined({set_with(0, "barrier", 3, false, 9), set_with(2, "scan", 1, false, 4)})) ==
        "user code after scan #1 of process set 2");
  SetActivity transfer = set_with(0, "transfer", 4, true, 2);
  transfer.peer = 6;
  CHECK(text_of(joined({transfer})) == "a transfer with rank 6");
  SetActivity in_join = set_with(0, "barrier", 3, false, 9);
  in_join.has_joined = true;
  CHECK(text_of(joined({in_join})) == "ddl_join");
}

TEST_CASE("a rank with open tensors waits for the oldest one, if a thread of it waits at all") {
  RankActivity rank = joined({set_with(0, "barrier", 3, false, 9)});
  rank.tensors = {{1, "layer7", 1, 61}, {1, "layer8", 2, 3}};
  CHECK(text_of(rank) == "user code after barrier #3");
  rank.sets[0].waits = true;
  CHECK(text_of(rank) == "waits for tensor \"layer7\"");
  CHECK(current_work(rank).seconds == 61);
}

TEST_CASE("the kernel is asked for a process, and not the process") {
  const ProcessActivity own = process_activity(::getpid());
  CHECK(own.state == "R");
  CHECK(own.num_threads >= 1);
  CHECK(own.cpu_seconds >= 0);
  CHECK(own.resident_bytes > 0);
  CHECK(own.peak_resident_bytes >= own.resident_bytes);
  CHECK(process_activity(0) == ProcessActivity());
}

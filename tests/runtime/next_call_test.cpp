// Which call an engine of named tensors makes next, without threads: the table, the facts about its tensors, and
// whether the program's use is blocking.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/src/named/blocking_use.h"
#include "runtime/src/named/next_call.h"
#include "runtime/src/named/submission.h"
#include "support/catch.h"

using namespace ddl::runtime;

namespace {

constexpr int kFacts = static_cast<int>(Fact::kSetEnds) + 1;

NextCall next(Phase phase, const std::set<Fact>& facts) {
  return next_call(phase, [&](Fact fact) { return fact == Fact::kAlways || facts.contains(fact); });
}

SubmissionPtr submission(const std::string& name, std::int32_t priority = 0) {
  auto made = std::make_shared<Submission>();
  made->announcement.name = name;
  made->announcement.terms.call.count = 10;
  made->announcement.terms.priority = priority;
  return made;
}

/// An agreement of one rank that expects these tensors, one a batch.
Agreement agreement_that_expects(const std::vector<SubmissionPtr>& step) {
  Agreement agreement({"rank 0 on host0"}, {});
  Frame frame;
  for (const SubmissionPtr& one : step) {
    frame.announcements = {one->announcement};
    frame.announcements.front().follows_completion = true;
    agreement.add_round({frame});
    agreement.executed();
  }
  frame.announcements.clear();
  frame.steps = 1;
  agreement.add_round({frame});
  return agreement;
}

}  // namespace

TEST_CASE("each row of the table of next calls applies to its own fact") {
  for (const NextCallRow& row : kNextCalls)
    CHECK(next(row.phase.value_or(Phase::kPredicting), {row.fact}) == row.call);
}

TEST_CASE("the next call, for all phases and facts") {
  for (const Phase phase : {Phase::kPredicting, Phase::kQuiet, Phase::kDiffering, Phase::kBroken}) {
    for (unsigned bits = 0; bits < 1U << kFacts; bits += 2) {  // without kAlways
      const auto has = [&](Fact fact) { return (bits >> static_cast<int>(fact) & 1U) != 0; };
      const NextCall call = next_call(phase, [&](Fact fact) { return fact == Fact::kAlways || has(fact); });
      const bool is_next_batch_held = has(Fact::kPeerAsks) || has(Fact::kOvertaken);
      if (phase == Phase::kBroken) {
        REQUIRE(call == NextCall::kNone);
      } else if (phase == Phase::kDiffering) {
        REQUIRE(call == NextCall::kRound);
      } else if (has(Fact::kNoWork)) {
        REQUIRE(call == NextCall::kNone);
      } else {
        REQUIRE((call == NextCall::kAgreed) == (has(Fact::kAgreed) && !is_next_batch_held));
        REQUIRE((call == NextCall::kPredicted) ==
                (phase == Phase::kPredicting && has(Fact::kPredicted) && !is_next_batch_held &&
                 !has(Fact::kAgreed) && !has(Fact::kJoins)));
        const Fact news = phase == Phase::kQuiet ? Fact::kUnannounced : Fact::kImpatient;
        REQUIRE((call == NextCall::kNone) ==
                !(is_next_batch_held || has(Fact::kAgreed) || has(Fact::kJoins) || has(news) ||
                  (phase == Phase::kPredicting && has(Fact::kPredicted)) || has(Fact::kStepEnded) ||
                  has(Fact::kSetEnds)));
      }
    }
  }
}

TEST_CASE("a predicted batch is entered with all of its tensors, and others or a wait lead to a round") {
  const SubmissionPtr a = submission("a"), b = submission("b"), other = submission("other");
  const Agreement agreement = agreement_that_expects({a, b});
  OpenTensors open;
  CHECK_FALSE(open.has_predicted(agreement));
  open.add({b}, agreement.prediction());
  CHECK_FALSE(open.has_predicted(agreement));
  CHECK_FALSE(open.is_impatient(agreement));
  open.add({a}, agreement.prediction());
  CHECK(open.has_predicted(agreement));
  CHECK(open.of(*agreement.predicted(), 0) == std::vector<SubmissionPtr>{a});
  CHECK_FALSE(open.is_impatient(agreement));

  CHECK(open.want(*b));
  CHECK_FALSE(open.want(*b));
  CHECK(open.is_impatient(agreement));
  open.remove(std::vector<SubmissionPtr>{b});
  CHECK(b->phase == Submission::Phase::kEnded);
  CHECK_FALSE(open.want(*b));
  CHECK_FALSE(open.is_impatient(agreement));

  a->patience = ddl::Deadline::after(std::chrono::seconds(-1));
  CHECK(open.is_impatient(agreement));
  CHECK(open.announce().size() == 1);
  CHECK_FALSE(open.has_unannounced());
  CHECK_FALSE(open.is_impatient(agreement));
  open.add({other}, agreement.prediction());
  CHECK(open.is_impatient(agreement));
  // As all know now.
  CHECK(open.announce().size() == 1);
  CHECK_FALSE(open.is_impatient(agreement));
  CHECK(open.contains("other"));
}

TEST_CASE("a tensor of a higher priority overtakes the next batch while the others do not know it") {
  const SubmissionPtr low = submission("low"), high = submission("high", 7), urgent = submission("urgent", 9);
  Agreement agreement = agreement_that_expects({low, high});
  OpenTensors open;
  open.add({low}, agreement.prediction());
  CHECK_FALSE(open.overtakes(agreement));
  open.add({high}, agreement.prediction());
  CHECK(open.overtakes(agreement));
  Frame frame;
  frame.steps = 1;
  frame.announcements = open.announce();
  CHECK_FALSE(open.overtakes(agreement));
  // Of the agreed batches, the higher one is the next.
  agreement.add_round({frame});
  REQUIRE(agreement.agreed()->priority() == 7);
  open.add({urgent}, agreement.prediction());
  CHECK(open.overtakes(agreement));
  open.set_announced(std::vector<SubmissionPtr>{urgent});
  CHECK_FALSE(open.overtakes(agreement));
}

TEST_CASE("use is blocking when the program has waited at once some times, and ends at once") {
  const auto now = [] { return ddl::Deadline::Clock::now(); };
  const auto long_ago = now() - std::chrono::seconds(1);
  const auto acquire = [&](BlockingUse& use) {
    bool has_become = false;
    // A busy machine may stop this thread for a while between the readings of the clock.
    for (int i = 0; i < 1000 && !use.is_there(); ++i) has_become = use.waited(now());
    CHECK(has_become);
    CHECK_FALSE(use.waited(now() + std::chrono::seconds(1)));  // it has been there before
    REQUIRE(use.is_there());
  };
  BlockingUse use;
  CHECK_FALSE(use.waited(now()));
  CHECK_FALSE(use.is_there());
  acquire(use);
  CHECK_FALSE(use.submitted(true));
  CHECK(use.is_there());
  CHECK(use.submitted(false));
  CHECK_FALSE(use.is_there());
  acquire(use);
  CHECK_FALSE(use.waited(long_ago));
  CHECK_FALSE(use.is_there());
  acquire(use);
  CHECK(use.end());
  CHECK_FALSE(use.end());
  CHECK(use.submissions() == 2);
}

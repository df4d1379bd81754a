// Which call a rank makes next on the connections of its named tensors, as a table.
#pragma once

#include <optional>

namespace ddl::runtime {

enum class NextCall {
  kNone,       ///< until something happens
  kRound,      ///< of agreement
  kAgreed,     ///< the next batch that a round has found ready on all ranks
  kPredicted,  ///< the next batch that the last steps let expect
};

/// What the calls before have left.
enum class Phase {
  kPredicting,  ///< batches may be predicted
  kQuiet,       ///< the last round had no news: no batch is predicted until a rank has some
  kDiffering,   ///< the last call was not the same on all ranks
  kBroken,      ///< a call has failed: none can be made any more
};

/// What a rank may find when it looks for its next call.
enum class Fact {
  kAlways,
  kNoWork,       ///< no tensor is open, none is agreed on, and this rank has not joined
  kPeerAsks,     ///< another rank has asked for a round in the next call
  kOvertaken,    ///< a tensor that the others do not know to be here goes before the next batch
  kAgreed,       ///< a batch is agreed on
  kJoins,        ///< this rank has joined, and has not announced it
  kPredicted,    ///< this rank has all tensors of the predicted batch
  kImpatient,    ///< the prediction does not lead to what is wanted, or a batch has long been incomplete
  kUnannounced,  ///< this rank has a tensor that it has not announced
  kStepEnded,    ///< the program has ended a step, and this rank has not announced it
  kSetEnds,      ///< the ranks are aborted, or one has left: a call fails, and so do the open tensors
};

struct NextCallRow {
  std::optional<Phase> phase;
  Fact fact;
  NextCall call;
};
inline constexpr std::nullopt_t kAnyPhase = std::nullopt;

/// The first row that applies says which; if none does, there is none.
// clang-format off
inline constexpr NextCallRow kNextCalls[] = {
    {Phase::kBroken,      Fact::kAlways,       NextCall::kNone},
    {Phase::kDiffering,   Fact::kAlways,       NextCall::kRound},
    {kAnyPhase,           Fact::kNoWork,       NextCall::kNone},
    // Another call than that of the rank that asks would only be compared with it.
    {kAnyPhase,           Fact::kPeerAsks,     NextCall::kRound},
    {kAnyPhase,           Fact::kOvertaken,    NextCall::kRound},
    {kAnyPhase,           Fact::kAgreed,       NextCall::kAgreed},
    {kAnyPhase,           Fact::kJoins,        NextCall::kRound},
    {Phase::kPredicting,  Fact::kPredicted,    NextCall::kPredicted},
    {Phase::kPredicting,  Fact::kImpatient,    NextCall::kRound},
    {Phase::kQuiet,       Fact::kUnannounced,  NextCall::kRound},
    {kAnyPhase,           Fact::kStepEnded,    NextCall::kRound},
    {kAnyPhase,           Fact::kSetEnds,      NextCall::kRound},
};
// clang-format on

/// holds: whether a fact is one. It is asked for one after the other, as few as necessary.
template <class Holds>
constexpr NextCall next_call(Phase phase, Holds holds) {
  for (const NextCallRow& row : kNextCalls)
    if ((!row.phase || *row.phase == phase) && holds(row.fact)) return row.call;
  return NextCall::kNone;
}

}  // namespace ddl::runtime

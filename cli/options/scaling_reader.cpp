// --scaling and the options that belong to it.
#include <algorithm>

#include "cli/options/readers.h"

namespace ddl::cli {

namespace {

constexpr int kMaxRepeats = 1000;

}  // namespace

void read_scaling(ValueReader& values, Request& request) {
  ScalingTask& task = request.scaling;
  values.take(OptionId::kScaling, parse_sizes, task.sizes);
  values.take(OptionId::kScalingKind, parse_scaling_kind, task.kind);
  values.take(OptionId::kRepeat, parse_count, task.repeats, 1, kMaxRepeats);
  if (!values.has(OptionId::kScaling)) {
    values.refuse_given({OptionId::kScalingKind, OptionId::kRepeat},
                        " belongs to --scaling, which runs the command with several numbers of ranks",
                        "add --scaling 1,2,4, or omit it");
    return;
  }
  if (!task.sizes.empty()) request.job.num_ranks = std::ranges::max(task.sizes);
  // One run would leave nothing for the next.
  request.job.stdin_target = launcher::StdinTarget::kNone;
}

void check_scaling(ValueReader& values, const Request& request) {
  if (request.scaling.sizes.empty()) return;
  if (request.action == Action::kDryRun)
    values.refuse_once("--scaling runs the command, and --dry-run starts nothing",
                       "look at the plan of one of these numbers with --dry-run -np N");
  if (request.job.elastic.mode != launcher::ElasticMode::kOff)
    values.refuse_once(
        "--scaling runs the command with exact numbers of ranks, and those of an elastic job change",
        "omit the options of elastic jobs");
}

}  // namespace ddl::cli

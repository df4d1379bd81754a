#include "launcher/job/rank_calls.h"

#include <algorithm>

namespace ddl::launcher {

RankCalls without_fall(RankCalls now, const RankCalls& before) {
  for (CallSum& sum : now.sums) {
    const auto former = std::find_if(before.sums.begin(), before.sums.end(), [&](const CallSum& one) {
      return one.kind == sum.kind && one.is_named == sum.is_named;
    });
    const CallSum none;
    const CallSum& last = former == before.sums.end() ? none : *former;
    if (sum.seconds < last.seconds || sum.calls < last.calls) continue;
    const double rest = last.seconds - last.wait_seconds;
    sum.wait_seconds = std::clamp<double>(sum.wait_seconds, last.wait_seconds, sum.seconds - rest);
  }
  return now;
}

}  // namespace ddl::launcher

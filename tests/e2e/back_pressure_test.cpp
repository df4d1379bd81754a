// A slow reader of ddlrun's output: the ranks wait, and memory stays bounded.
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

TEST_CASE("200 MB from each of 4 ranks into a slow reader keep agent and head under 64 MB each",
          "[back_pressure]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "4", "--oversubscribe", program("flood"), "200"}));
  job.resize_output_pipe(4096);
  std::size_t taken = job.read_some(1);  // after output of a rank all processes exist
  const pid_t head = job.pid();
  const pid_t agent = job.agent();
  std::int64_t head_peak = 0, agent_peak = 0;
  std::size_t next_sample = 0;
  bool is_fast = false;
  // First small reads from a small pipe: all other processes are faster and must wait. Then, so that the test ends,
  // as fast as possible.
  for (std::size_t got = 1; got > 0; taken += got) {
    if (taken > kMebibyte * 48 && !is_fast) {
      is_fast = true;
      job.resize_output_pipe(kMebibyte);
    }
    got = job.read_some(kMebibyte);
    job.forget_output();
    if (taken < next_sample) continue;
    next_sample = taken + kMebibyte * 4;
    head_peak = peak_memory_of(head).value_or(head_peak);
    agent_peak = peak_memory_of(agent).value_or(agent_peak);
  }
  CHECK(job.wait_and_require_nothing_left() == 0);
  // "[R]<stdout>:" precedes each line of 128 bytes.
  CHECK(taken == kMebibyte * 200 * 4 / 128 * (128 + 12));
  INFO("head " << head_peak / 1048576 << " MiB, agent " << agent_peak / 1048576 << " MiB");
  if (std::string_view(DDL_E2E_SANITIZE) != "") DDL_SKIP("under a sanitizer memory says nothing");
  CHECK(head_peak > 0);
  CHECK(agent_peak > 0);
  CHECK(head_peak < std::int64_t{64} << 20);
  CHECK(agent_peak < std::int64_t{64} << 20);
}

}  // namespace
}  // namespace ddl::e2e

// Timelines that the program starts and rank 0 writes, with ranks as threads.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"
#include "timeline/trace_checker.h"

using namespace ddl::conformance;
using ddl::runtime::test::Hosts;
using ddl::runtime::test::job_on;

namespace {

using TraceJson = nlohmann::json;

/// A path in the folder of temporary files, where no file is before or after.
class TimelinePath {
 public:
  TimelinePath()
      : path_((std::filesystem::temp_directory_path() /
               ("ddl-timeline-" + std::to_string(::getpid()) + ".json"))
                  .string()) {
    remove();
  }
  ~TimelinePath() { remove(); }
  TimelinePath(const TimelinePath&) = delete;
  TimelinePath& operator=(const TimelinePath&) = delete;

  const char* c_str() const { return path_.c_str(); }
  bool exists() const { return std::filesystem::exists(path_); }
  /// The file, which must be a valid trace.
  TraceJson read() const {
    const auto text = ddl::read_file(path_);
    REQUIRE(text.has_value());
    CHECK(ddl::test::trace_errors(*text) == std::vector<std::string>{});
    return TraceJson::parse(*text);
  }

 private:
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path_;
};

/// How many events of this name each rank has in the trace.
std::map<int, int> events_named(const TraceJson& trace, const std::string& name) {
  std::map<int, int> found;
  for (const TraceJson& event : trace["traceEvents"])
    if (event["name"] == name && event["ph"] != "e") ++found[event["pid"].get<int>()];
  return found;
}

void one_step(ddl_context* context, const char* name) {
  expect_ok(ddl_mark(context, name), "mark");
  std::vector<float> values(10, 1.0F);
  ddl_handle* handle = nullptr;
  expect_ok(ddl_allreduce_async(context, "gradient", values.data(), values.data(), values.size(), DDL_FLOAT32,
                                DDL_SUM, nullptr, &handle),
            "allreduce_async");
  expect_ok(ddl_wait(handle), "wait");
  expect_ok(ddl_barrier(context, nullptr), "barrier");
}

}  // namespace

TEST_CASE("a program starts and stops timelines, and rank 0 writes what all ranks did in between") {
  const Hosts hosts = GENERATE(Hosts{{0, 1, 2}}, Hosts{{0, 2}, {1}}, Hosts{{0}});
  CAPTURE(hosts.size());
  std::size_t ranks = 0;
  for (const auto& host : hosts) ranks += host.size();
  const TimelinePath path;
  auto job = job_on(hosts);
  job.timeout_seconds = 20;
  job.run([&](ddl_context*& context) {
    expect_status(ddl_timeline_stop(context), DDL_ERROR_INVALID_ARGUMENT, "stop without start");
    one_step(context, "before");
    expect_status(ddl_timeline_start(context, "/proc/no-file", 0), DDL_ERROR_INVALID_ARGUMENT,
                  "a path that cannot be written");
    expect_contains(ddl_last_error(), "no timeline is recorded: rank 0: /proc/no-file");
    for (int i = 0; i < 2; ++i) {
      expect_ok(ddl_timeline_start(context, path.c_str(), 0), "start");
      expect_status(ddl_timeline_start(context, path.c_str(), 0), DDL_ERROR_INVALID_ARGUMENT, "start twice");
      one_step(context, i == 0 ? "in the first" : "in the second");
      expect_ok(ddl_timeline_stop(context), "stop");
      one_step(context, "after");
    }
  });
  const TraceJson trace = path.read();
  CHECK(trace["otherData"]["hosts"].size() == hosts.size());
  CHECK(trace["otherData"]["missing_ranks"].empty());
  for (const TraceJson& host : trace["otherData"]["hosts"]) CHECK(host["is_aligned"].is_boolean());
  // The second one has taken the place of the first.
  for (const char* const name : {"before", "in the first", "after"}) CHECK(events_named(trace, name).empty());
  const auto marks = events_named(trace, "in the second");
  CHECK(marks.size() == ranks);
  for (const auto& [rank, count] : marks) CHECK(count == 1);
  CHECK(events_named(trace, "gradient").size() == ranks);
  CHECK(events_named(trace, "barrier").size() == ranks);
}

TEST_CASE("a timeline that is not stopped is written when the ranks leave") {
  const Hosts hosts = GENERATE(Hosts{{0, 1}}, Hosts{{0}, {1}});
  CAPTURE(hosts.size());
  const TimelinePath path;
  auto job = job_on(hosts);
  job.timeout_seconds = 20;
  job.run([&](ddl_context*& context) {
    expect_ok(ddl_timeline_start(context, path.c_str(), 1 << 20), "start");
    one_step(context, "step");
  });
  CHECK(events_named(path.read(), "step") == std::map<int, int>{{0, 1}, {1, 1}});
}

TEST_CASE("if the job fails, rank 0 writes what the ranks of its host have recorded") {
  const Hosts hosts = GENERATE(Hosts{{0, 1}}, Hosts{{0, 1}, {2}});
  const bool has_other_host = hosts.size() > 1;
  CAPTURE(hosts.size());
  const TimelinePath path;
  auto job = job_on(hosts);
  job.timeout_seconds = 20;
  job.run([&](ddl_context*& context) {
    expect_ok(ddl_timeline_start(context, path.c_str(), 0), "start");
    one_step(context, "step");
    if (ddl_rank(context) == 1) {
      std::uint64_t range = 0;
      expect_ok(ddl_range_begin(context, "the end", &range), "range_begin");
      expect_ok(ddl_abort(context, 3, "as the test wants it"), "abort");
    } else {
      expect(ddl_barrier(context, nullptr) != DDL_OK, "a barrier that fails");
    }
  });
  const TraceJson trace = path.read();
  CHECK(events_named(trace, "step") == std::map<int, int>{{0, 1}, {1, 1}});
  CHECK(events_named(trace, "the end") == std::map<int, int>{{1, 1}});
  double last = 0, end = 0;
  for (const TraceJson& event : trace["traceEvents"]) {
    if (!event.contains("ts")) continue;
    const double until = event["ts"].get<double>() + event.value("dur", 0.0);
    (event["name"] == "the end" ? end : last) = std::max(event["name"] == "the end" ? end : last, until);
  }
  CHECK(end >= last);  // it lasts until rank 0 has read it
  CHECK(trace["otherData"]["missing_ranks"].size() == (has_other_host ? 1U : 0U));
}

TEST_CASE("a rank that starts a timeline alone is told so, and nothing is written") {
  auto job = job_on({{0, 1}});
  job.timeout_seconds = 20;
  const TimelinePath path;
  job.run([&](ddl_context*& context) {
    const bool starts = ddl_rank(context) == 0;
    const ddl_status status =
        starts ? ddl_timeline_start(context, path.c_str(), 0) : ddl_barrier(context, nullptr);
    expect_status(status, DDL_ERROR_MISMATCH, "a timeline and a barrier");
    expect_contains(ddl_last_error(), "timeline(start)");
    expect_status(ddl_timeline_start(context, nullptr, 0), DDL_ERROR_INVALID_ARGUMENT, "no path");
    expect_status(ddl_timeline_start(nullptr, "t", 0), DDL_ERROR_INVALID_ARGUMENT, "no context");
    expect_status(ddl_timeline_stop(nullptr), DDL_ERROR_INVALID_ARGUMENT, "no context");
  });
  CHECK_FALSE(path.exists());
}

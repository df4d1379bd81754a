// The C functions of ddl.h by which a program writes into its timeline.
#include <string_view>

#include "runtime/src/api/c_abi.h"
#include "runtime/src/common/event_log.h"

namespace {

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace
using ddl::contract::Event;

/// Runs act(log), unless nothing is recorded or this is a forked child, which shares the memory with its parent.
template <class Act>
ddl_status with_log(ddl_context* context, Act act) noexcept try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  EventLog* const log = context->context->is_in_forked_child() ? nullptr : context->context->events();
  if (log != nullptr) act(*log);
  return DDL_OK;
} catch (...) {
  return report_exception();
}

Event event_of_program(Event::Kind kind) {
  Event event;
  event.kind = kind;
  return event;
}

}  // namespace

extern "C" {

ddl_status ddl_timeline_start(ddl_context* context, const char* path, uint64_t max_bytes) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (path == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "path is null");
  return report(context->context->start_timeline(
      path, max_bytes == 0 ? ddl::contract::kUsualTimelineBytes : max_bytes));
} catch (...) {
  return report_exception();
}

ddl_status ddl_timeline_stop(ddl_context* context) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  return report(context->context->stop_timeline());
} catch (...) {
  return report_exception();
}

ddl_status ddl_mark(ddl_context* context, const char* name) {
  if (name == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "name is null");
  return with_log(context, [&](EventLog& log) { log.moment(event_of_program(Event::Kind::kMark), name); });
}

ddl_status ddl_range_begin(ddl_context* context, const char* name, uint64_t* range) {
  if (name == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "name is null");
  if (range == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "range is null");
  *range = 0;
  return with_log(context,
                  [&](EventLog& log) { *range = log.begin(event_of_program(Event::Kind::kRange), name); });
}

ddl_status ddl_range_end(ddl_context* context, uint64_t range) {
  return with_log(context, [&](EventLog& log) {
    if (range != 0) log.end(range, log.now(), DDL_OK);
  });
}

}  // extern "C"

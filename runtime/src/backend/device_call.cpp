#include "runtime/src/backend/device_call.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/fd.h"

namespace ddl::runtime {
namespace {

/// A stream rings it when it has come so far. Lives until the last user has gone, which may be the stream.
struct Ring {
  UniqueFd event;
};
/// A death on another host may be known to the GPUs' library before its notice has arrived.
constexpr auto kNotice = std::chrono::seconds(1);

void ring(void* given) {
  const std::unique_ptr<std::shared_ptr<Ring>> owned(static_cast<std::shared_ptr<Ring>*>(given));
  const std::uint64_t one = 1;
  (void)!::write((*owned)->event.get(), &one, sizeof one);
}

}  // namespace

Outcome give_up(Connections& connections, const Call& call, const Error& error) {
  const AbortDomain& abort = connections.abort();
  if (!abort.is_raised())
    abort.raise(AbortNotice::of(AbortReason::kFailed, connections.self(), error.message()));
  Failure failure = abort.describe(call, true);
  // This rank's own failure is more exact than the notice.
  return fail(failure.status, failure.message.find(error.message()) != std::string::npos
                                  ? failure.message
                                  : error.message() + "; " + failure.message);
}

Outcome give_up_unless_aborted(Connections& connections, const Call& call, const Error& error) {
  if (connections.abort().wait_raised(Deadline::after(kNotice)))
    return fail(connections.abort().describe(call, true));
  return give_up(connections, call, error);
}

Error moved_to_another_gpu(const Device& before, const Device& now) {
  return Error(ErrorCode::kUnavailable, "the buffers of this process set were on GPU " +
                                            std::to_string(before.ordinal()) +
                                            " before, and now are on GPU " + std::to_string(now.ordinal()));
}

Outcome wait_on_cpu(Device& device, EventHandle event, StreamHandle stream, Connections& connections,
                    const Call& call, CallDeadline deadline, const HealthCheck& health) {
  const auto spin_until = Deadline::after(
      std::max<std::chrono::nanoseconds>(connections.wait_policy().spin, std::chrono::microseconds(20)));
  for (;;) {
    const auto done = device.is_done(event);
    if (!done) return give_up(connections, call, done.error());
    if (*done) return {};
    if (spin_until.has_passed()) break;
  }
  // Work of the program's that was put on its stream before may take long.
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return give_up(connections, call, errno_error("eventfd", errno));
  const auto doorbell = std::make_shared<Ring>(Ring{UniqueFd(fd)});
  auto given = std::make_unique<std::shared_ptr<Ring>>(doorbell);
  if (auto asked = device.notify(stream, ring, given.get()); !asked)
    return give_up(connections, call, asked.error());
  (void)given.release();  // ring() owns it
  const AbortDomain& abort = connections.abort();
  const Deadline limit =
      deadline.deadline.is_never() ? Deadline::never() : Deadline::after(deadline.later(2).remaining());
  for (;;) {
    pollfd ready[] = {{doorbell->event.get(), POLLIN, 0}, {abort.doorbell(), POLLIN, 0}};
    auto sleeps_until = limit;
    if (health.check && limit.remaining() > health.interval) sleeps_until = Deadline::after(health.interval);
    (void)retry_eintr([&] { return ::poll(ready, 2, sleeps_until.poll_milliseconds()); });
    const auto done = device.is_done(event);
    if (!done) return give_up(connections, call, done.error());
    if (*done) return {};
    if (abort.is_raised()) return fail(abort.describe(call, true));
    if (limit.has_passed()) {
      abort.raise_timeout(deadline.seconds, call, connections.self());
      return fail(abort.describe(call, true));
    }
    if (!health.check) continue;
    if (auto healthy = health.check(); !healthy)
      return give_up_unless_aborted(connections, call, healthy.error());
  }
}

}  // namespace ddl::runtime

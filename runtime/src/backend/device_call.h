// What calls on memory of GPUs have in common, whichever path they take: how they fail, and how they wait for the GPU
// on the host.
#pragma once

#include <chrono>
#include <functional>

#include "base/error.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/device/device.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// This rank cannot go on with a call that others are in, or will be: all ranks are aborted, and learn why.
Outcome give_up(Connections& connections, const Call& call, const Error& error);

/// The same for an error that may be the consequence of what has happened to another rank: if that is known soon, it is
/// the reason.
Outcome give_up_unless_aborted(Connections& connections, const Call& call, const Error& error);

/// The buffers of a process set are on another GPU than before.
Error moved_to_another_gpu(const Device& before, const Device& now);

/// How a wait learns of errors that the event does not show.
struct HealthCheck {
  std::function<Status()> check;
  std::chrono::milliseconds interval{100};
};

/// Waits until the event has come, which was recorded last on the stream. Spins, and then sleeps. Ends early, with a
/// failure, if the ranks are aborted or the deadline has passed, which aborts them. The GPU is current.
Outcome wait_on_cpu(Device& device, EventHandle event, StreamHandle stream, Connections& connections,
                    const Call& call, CallDeadline deadline, const HealthCheck& health = {});

}  // namespace ddl::runtime

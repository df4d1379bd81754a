// The spawner binds real processes, between fork and exec.
#include <sched.h>

#include <cerrno>

#include "launcher/spawner_harness.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using ddl::CpuSet;
using ddl::StartStage;
using message::ChildEnded;
using message::ChildFailed;
using message::ChildStarted;

namespace {

/// The last CPU that the test may use; on the first one a child might run anyway.
int last_cpu() { return CpuSet::allowed().cpus().back(); }

ChildSpec bound_child(const CpuSet& cpus) {
  ChildSpec child{3, {"sleep", "100"}, {"PATH=/usr/bin:/bin", "ROCR_VISIBLE_DEVICES=5"}, "/"};
  child.cpus = cpus;
  child.report_bindings = true;
  return child;
}

}  // namespace

TEST_CASE_METHOD(SpawnerHarness, "a child runs on the CPU that it was bound to, and the kernel confirms it") {
  spawn(bound_child(CpuSet::of({last_cpu()})));
  const auto started = expect<ChildStarted>();
  CHECK(started.cpu_error == 0);
  CHECK(started.binding.cpus == CpuSet::of({last_cpu()}));
  CHECK(started.binding.devices == "ROCR_VISIBLE_DEVICES=5");
}

TEST_CASE_METHOD(SpawnerHarness, "a child prefers the memory of the NUMA node in its description") {
  ChildSpec child = bound_child({});
  child.memory_nodes = {0};
  spawn(child);
  const auto started = expect<ChildStarted>();
  // A container may forbid it, and a kernel may have no NUMA: then an error is reported, and the child runs.
  if (started.memory_error != 0) {
    CHECK(started.memory_error == EPERM);
  } else if (!started.binding.memory.empty()) {
    CHECK_THAT(started.binding.memory, Catch::StartsWith("prefer"));
  }
}

TEST_CASE_METHOD(SpawnerHarness, "the binding of a child that ends at once is reported, too") {
  ChildSpec child = bound_child(CpuSet::of({last_cpu()}));
  child.argv = {"true"};
  spawn(child);
  CHECK(expect<ChildStarted>().binding.cpus == CpuSet::of({last_cpu()}));
  CHECK(expect<ChildEnded>().wait_status == 0);
}

TEST_CASE_METHOD(SpawnerHarness,
                 "a child that cannot be bound runs nevertheless, and the error is reported") {
  // No machine has this CPU.
  spawn(bound_child(CpuSet::of({8191})));
  const auto started = expect<ChildStarted>();
  CHECK(started.cpu_error == EINVAL);
  CHECK(started.binding.cpus.contains(last_cpu()));
  // One CPU that exists and one that does not: the kernel alone would use the first and report no error.
  spawn(bound_child(CpuSet::of({last_cpu(), 8191})));
  CHECK(expect<ChildStarted>().cpu_error == EINVAL);
}

TEST_CASE_METHOD(SpawnerHarness, "a child that must be bound and cannot be does not run") {
  ChildSpec child = bound_child(CpuSet::of({8191}));
  child.strict_bind = true;
  spawn(child);
  const auto failed = expect<ChildFailed>();
  CHECK(failed.rank == 3);
  CHECK(failed.stage == StartStage::kCpus);
  CHECK(failed.error == EINVAL);
}

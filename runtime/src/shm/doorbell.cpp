#include "runtime/src/shm/doorbell.h"

#include "runtime/src/shm/flag_protocol.h"

namespace ddl::runtime {

bool Doorbells::sleep(std::uint32_t heard, Deadline deadline) const {
  DoorbellLine& doorbell = segment_.doorbell(own_);
  doorbell.is_sleeping.store(1);
  FutexPlatform platform;
  (void)platform.wait(doorbell.word, heard, deadline);
  doorbell.is_sleeping.store(0);
  return platform.was_signalled;
}

void Doorbells::ring(const Segment& segment, int member) {
  DoorbellLine& doorbell = segment.doorbell(member);
  doorbell.word.fetch_add(1);
  if (doorbell.is_sleeping.load() != 0) FutexPlatform().wake_all(doorbell.word);
}

void Doorbells::ring_all(const Segment& segment) {
  for (int member = 0; member < segment.size(); ++member) ring(segment, member);
}

void Doorbells::want_to_agree(std::uint32_t call) const {
  for (int member = 0; member < segment_.size(); ++member) {
    if (member != own_) notify(member, call);
  }
}

void Doorbells::pass_on(std::uint32_t call) const {
  for (int member = 0; member < segment_.size(); ++member) notify(member, call);
}

void Doorbells::notify(int member, std::uint32_t call) const {
  // Calls are announced in order, but for one that a rank of another host has announced late.
  SharedWord& wanted = segment_.doorbell(member).wanted_call;
  std::uint32_t known = wanted.load();
  while (static_cast<std::int32_t>(call - known) > 0 && !wanted.compare_exchange_weak(known, call)) {
  }
  ring(segment_, member);
}

}  // namespace ddl::runtime

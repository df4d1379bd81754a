#include "runtime/src/shm/bell.h"

#include "runtime/src/shm/flag_protocol.h"

namespace ddl::runtime {

bool Bells::sleep(std::uint32_t heard, Deadline deadline) const {
  BellLine& bell = segment_.bell(own_);
  bell.is_sleeping.store(1);
  FutexPlatform platform;
  (void)platform.wait(bell.word, heard, deadline);
  bell.is_sleeping.store(0);
  return platform.was_signalled;
}

void Bells::ring(const Segment& segment, int member) {
  BellLine& bell = segment.bell(member);
  bell.word.fetch_add(1);
  if (bell.is_sleeping.load() != 0) FutexPlatform().wake_all(bell.word);
}

void Bells::ring_all(const Segment& segment) {
  for (int member = 0; member < segment.size(); ++member) ring(segment, member);
}

void Bells::want_to_agree(std::uint32_t call) const {
  for (int member = 0; member < segment_.size(); ++member) {
    if (member != own_) tell(member, call);
  }
}

void Bells::pass_on(std::uint32_t call) const {
  for (int member = 0; member < segment_.size(); ++member) tell(member, call);
}

void Bells::tell(int member, std::uint32_t call) const {
  // Calls are told in order, but for one that a rank of another host has told late.
  SharedWord& wanted = segment_.bell(member).wanted_call;
  std::uint32_t known = wanted.load();
  while (static_cast<std::int32_t>(call - known) > 0 && !wanted.compare_exchange_weak(known, call)) {
  }
  ring(segment_, member);
}

}  // namespace ddl::runtime

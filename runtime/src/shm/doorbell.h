// How a rank that sleeps between its calls of named tensors is woken: by another thread of its process, which has
// submitted a tensor, or by another rank of its host, which wants to agree.
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "runtime/src/shm/segment.h"

namespace ddl::runtime {

/// The doorbells of a segment, from the view of one member. All functions may be called from any thread; one thread of
/// the member sleeps at a time.
///
/// To ring is to change the member's word and to wake it if it may sleep. A member that is about to sleep reads the
/// word, looks for something to do, announces that it sleeps, and sleeps only if the word has not changed. So either
/// the ring comes before the word was read, and the member finds what there is to do, or the word has changed, or the
/// ringing thread finds that the member sleeps.
class Doorbells {
 public:
  Doorbells(Segment segment, int own) : segment_(segment), own_(own) {}

  /// Before looking for something to do: what sleep() is to be given.
  std::uint32_t heard() const { return segment_.doorbell(own_).word.load(); }
  /// Sleeps unless this member's doorbell has rung since heard() returned this. Returns when it rings, or the deadline
  /// has passed, or for no reason. Whether a signal has ended it.
  bool sleep(std::uint32_t heard, Deadline deadline) const;

  void ring_own() const { ring(segment_, own_); }
  /// Rings every member's doorbell.
  static void ring_all(const Segment& segment);
  /// This member wants to agree in its call of this number: notifies all others.
  void want_to_agree(std::uint32_t call) const;
  /// A rank of another host wants to agree: notifies all members of this host, this one too.
  void pass_on(std::uint32_t call) const;
  /// Whether another member wants to agree in this call.
  bool is_wanted(std::uint32_t call) const { return segment_.doorbell(own_).wanted_call.load() == call; }

 private:
  static void ring(const Segment& segment, int member);
  void notify(int member, std::uint32_t call) const;

  Segment segment_;
  int own_;
};

}  // namespace ddl::runtime

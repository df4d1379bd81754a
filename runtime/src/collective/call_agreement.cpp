#include "runtime/src/collective/call_agreement.h"

namespace ddl::runtime {
namespace {

CallStamp stamp_of(const Channel& channel, int index) {
  const Member& member = channel.members()[static_cast<std::size_t>(index)];
  return {member.rank, 0, HostField::of(member.host), channel.call_of(index)};
}

std::string place_of(const CallStamp& stamp) { return Member{stamp.rank, stamp.host.str(), 0}.place(); }

}  // namespace

Verdict Verdict::of_host(const Channel& channel) {
  Verdict verdict;
  verdict.first = stamp_of(channel, 0);
  if (const auto odd = channel.odd_member()) {
    verdict.has_odd = 1;
    verdict.odd = stamp_of(channel, *odd);
  }
  return verdict;
}

Verdict Verdict::merge(const Verdict& left, const Verdict& right) {
  Verdict merged = left;
  if (left.has_odd != 0) return merged;
  if (right.first.call.fingerprint() != left.first.call.fingerprint()) {
    merged.has_odd = 1;
    merged.odd = right.first;
  } else if (right.has_odd != 0) {
    merged.has_odd = 1;
    merged.odd = right.odd;
  }
  return merged;
}

Outcome Verdict::outcome() const {
  if (has_odd == 0) return {};
  return failed(DDL_ERROR_MISMATCH, "the ranks called different collectives: " + place_of(first) +
                                        " called " + first.call.signature() + ", " + place_of(odd) +
                                        " called " + odd.call.signature());
}

}  // namespace ddl::runtime

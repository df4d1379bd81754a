#include "runtime/src/collective/call_agreement.h"

namespace ddl::runtime {
namespace {

CallStamp stamp_of(const Channel& channel, int index) {
  const Member& member = channel.members()[index];
  return {member.rank, 0, HostField::of(member.host), channel.call_of(index)};
}

std::string label_of(const CallStamp& stamp) { return Member{stamp.rank, stamp.host.str(), 0}.label(); }

}  // namespace

CallAgreement CallAgreement::of_host(const Channel& channel) {
  CallAgreement agreement;
  agreement.first = stamp_of(channel, 0);
  if (const auto mismatched = channel.mismatched_member()) {
    agreement.has_mismatch = 1;
    agreement.mismatched = stamp_of(channel, *mismatched);
  }
  return agreement;
}

CallAgreement CallAgreement::merge(const CallAgreement& left, const CallAgreement& right) {
  CallAgreement merged = left;
  if (left.has_mismatch != 0) return merged;
  if (right.first.call.fingerprint() != left.first.call.fingerprint()) {
    merged.has_mismatch = 1;
    merged.mismatched = right.first;
  } else if (right.has_mismatch != 0) {
    merged.has_mismatch = 1;
    merged.mismatched = right.mismatched;
  }
  return merged;
}

Outcome CallAgreement::outcome() const {
  if (has_mismatch == 0) return {};
  return fail(DDL_ERROR_MISMATCH, "the ranks called different collectives: " + label_of(first) + " called " +
                                      first.call.signature() + ", " + label_of(mismatched) + " called " +
                                      mismatched.call.signature());
}

}  // namespace ddl::runtime

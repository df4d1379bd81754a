// How the members of a segment meet in groups, so that nobody waits for everybody.
//
// Every member shows its sequence in its flag, as it does where all wait for all. Then
//
//   1. the leader of each group waits for the flags of its followers, and shows the sequence in its word "gathered";
//   2. it waits for "gathered" of the other leaders, and shows the sequence in its word "released";
//   3. its followers wait for nothing else.
//
// Each of these words says that everybody behind it has shown the sequence, so who is released may read what all have
// shown and staged: one publication happens before the next, along the words. A leader publishes a sequence in them only
// inside that exchange, before it shows the next one in its flag, so the words never lag behind an exchange that is over.
#pragma once

#include "runtime/src/channel/exchange_groups.h"

namespace ddl::runtime {

/// words.flag(i), .gathered(i) and .released(i) are the words of member i; publish(word) shows the sequence in an own
/// one, wait_for(word) waits for it in another's and gives an Outcome. The first that fails ends the meeting.
template <class Words, class Publish, class WaitFor>
auto meet_in_groups(const ExchangeRole& role, Words words, Publish publish, WaitFor wait_for) {
  if (role.leader != role.index) return wait_for(words.released(role.leader));
  decltype(wait_for(words.released(role.index))) outcome{};
  for (const int follower : role.followers) {
    if (outcome = wait_for(words.flag(follower)); !outcome) return outcome;
  }
  if (!role.other_leaders.empty()) publish(words.gathered(role.index));
  for (const int leader : role.other_leaders) {
    if (outcome = wait_for(words.gathered(leader)); !outcome) return outcome;
  }
  if (!role.followers.empty()) publish(words.released(role.index));
  return outcome;
}

}  // namespace ddl::runtime

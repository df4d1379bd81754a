// How an event is presented: what it is called, and what is said about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "contract/event_ring.h"

namespace ddl::timeline {

/// Which tracks of a rank an event is on.
enum class TrackGroup : std::uint8_t {
  kProgram,  ///< of the program's threads
  kEngine,   ///< of the engines of named tensors
  kWire,     ///< of what is moved between hosts
  kTensors,  ///< none: named tensors overlap
};
inline constexpr std::size_t kTrackGroups = 4;

/// What events of one kind have in common.
struct KindTraits {
  TrackGroup group;
  const char* category;
  const char* name;  ///< of events that have none of their own
  bool is_call;      ///< it is named by its call
  bool has_bytes;
  bool is_moment;
};

/// Of any number; a kind that does not exist is "unknown", and on the program's tracks.
KindTraits traits_of(contract::Event::Kind kind);

/// "world", or "set 3f2a91c0", which is the same on all members.
std::string set_name(std::uint32_t generation);

/// The name of the event's call; null if it has none.
const char* call_name(const contract::Event& event);

/// What the event is called. Waits all have one name, by which viewers add up; what they wait for is an argument. Valid
/// as long as the event is.
std::string_view title_of(const contract::Event& event);

/// Whether the event is an interval that has no end.
bool is_unfinished(const contract::Event& event);

/// A JSON object with what else is known about the event. unfinished: why it has not ended; "": it has.
void append_arguments(std::string& text, const contract::Event& event, std::string_view unfinished);

}  // namespace ddl::timeline

#include "launcher/protocol/event_messages.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

namespace ddl::launcher::message {
namespace {

template <class Item>
std::string bytes_of(std::span<const Item> items) {
  static_assert(std::is_trivially_copyable_v<Item>);
  return {reinterpret_cast<const char*>(items.data()), items.size_bytes()};
}

/// Appends the items; false if the bytes are not a whole number of them.
template <class Item>
bool append(const std::string& bytes, std::vector<Item>& items) {
  if (bytes.size() % sizeof(Item) != 0) return false;
  const std::size_t before = items.size();
  items.resize(before + bytes.size() / sizeof(Item));
  if (!bytes.empty()) std::memcpy(static_cast<void*>(items.data() + before), bytes.data(), bytes.size());
  return true;
}

}  // namespace

Events events_message(const AskEvents& ask, const timeline::RingSnapshot& ring, std::size_t most) {
  Events piece;
  piece.id = ask.id;
  piece.rank = ask.rank;
  piece.total = ring.events.size();
  piece.from = std::clamp<std::int64_t>(ask.from, 0, piece.total);
  piece.count = ring.count;
  piece.steps = ring.steps;
  piece.clock_peer = ring.clock_peer;
  piece.samples = bytes_of(std::span(ring.samples));
  const auto rest = std::span(ring.events).subspan(piece.from);
  piece.events = bytes_of(rest.first(std::min(rest.size(), most)));
  return piece;
}

bool add_piece(const Events& piece, timeline::RingSnapshot& ring) {
  if (piece.from != std::ssize(ring.events) || piece.count < 0 || piece.steps < 0) return false;
  ring.count = piece.count;
  ring.steps = piece.steps;
  ring.clock_peer = piece.clock_peer;
  ring.samples.clear();
  return append(piece.samples, ring.samples) && append(piece.events, ring.events);
}

}  // namespace ddl::launcher::message

#include "runtime/src/context/set_creation.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/src/common/call.h"

namespace ddl::runtime {

std::vector<int> members_of_color(std::span<const Coloring> all, int own) {
  std::vector<int> members;
  const std::int32_t color = all[own].color;
  if (color < 0) return members;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].color == color) members.push_back(static_cast<int>(rank));
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return all[a].key < all[b].key; });
  return members;
}

Membership membership_of(const Membership& parent, const std::vector<int>& members, std::uint64_t number) {
  const auto rank_of = [&](int parent_rank) {
    return static_cast<int>(std::find(members.begin(), members.end(), parent_rank) - members.begin());
  };
  Membership membership;
  const std::array<std::uint64_t, 3> names{parent.generation, number,
                                           static_cast<std::uint64_t>(members.front())};
  membership.generation = static_cast<std::uint32_t>(digest_of(names));
  membership.rank = rank_of(parent.rank);
  membership.size = std::ssize(members);
  membership.host = parent.host;
  std::vector<std::vector<int>> groups;
  for (const auto& host : parent.layout.hosts) {
    std::vector<int> group;
    for (const int rank : host) {
      if (const int own = rank_of(rank); own < membership.size) group.push_back(own);
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  auto layout = HostLayout::of(std::move(groups), membership.rank, membership.size);
  DDL_CHECK(layout.has_value(), layout.error().message());
  membership.layout = *std::move(layout);
  return membership;
}

Status SetBootstrap::put(std::string_view key, std::string_view value) {
  own_.put(key, value);
  return {};
}

Status SetBootstrap::fence(Deadline) {
  auto texts = gather_(own_.text());
  gather_ = nullptr;
  if (!texts) return fail(std::move(texts.error()));
  for (const std::string& text : *texts) DDL_TRY(all_.emplace_back().add(text));
  return {};
}

Result<std::string> SetBootstrap::get(int rank, std::string_view key, Deadline) {
  return all_[rank].get(rank, key);
}

namespace {

/// In place.
template <class T>
Status reduce_all(ProcessSet& set, std::vector<T>& values, ddl_dtype dtype, ddl_op op,
                  CallDeadline deadline) {
  Request request;
  request.call = make_call(CallKind::kAllreduce, values.size(), dtype, op);
  request.element_size = sizeof(T);
  request.send = request.recv = reinterpret_cast<std::byte*>(values.data());
  const Outcome reduced = set.collective(request, deadline);
  if (!reduced) return fail(ErrorCode::kClosed, reduced.error().message);
  return {};
}

}  // namespace

Result<std::vector<std::string>> gather_texts(ProcessSet& set, const std::string& own,
                                              CallDeadline deadline) {
  const auto ranks = static_cast<std::size_t>(set.size()), rank = static_cast<std::size_t>(set.rank());
  std::vector<std::uint64_t> lengths(ranks, 0);
  lengths[rank] = own.size();
  DDL_TRY(reduce_all(set, lengths, DDL_UINT64, DDL_SUM, deadline));
  std::size_t total = 0, own_at = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    if (i == rank) own_at = total;
    total += lengths[i];
  }
  // The bytes of all other ranks are 0 here, so the sum is the concatenation.
  std::vector<std::uint8_t> bytes(total, 0);
  if (!own.empty()) std::memcpy(bytes.data() + own_at, own.data(), own.size());
  DDL_TRY(reduce_all(set, bytes, DDL_UINT8, DDL_SUM, deadline));
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (const std::uint64_t length : lengths) {
    texts.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                       bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
    at += length;
  }
  return texts;
}

}  // namespace ddl::runtime

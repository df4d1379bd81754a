#include "runtime/src/context/gather_texts.h"

#include <cstring>

namespace ddl::runtime {
namespace {

/// In place.
template <class T>
Status reduce_all(ProcessSet& set, std::vector<T>& values, ddl_dtype dtype, ddl_op op,
                  CallDeadline deadline) {
  Request request;
  request.call = make_call(CallKind::kAllreduce, values.size(), dtype);
  request.call.op = static_cast<std::uint8_t>(op);
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
  // Everybody else's bytes are 0 here.
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

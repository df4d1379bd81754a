#include "launcher/gloo/gloo_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ddl::launcher {
namespace {

constexpr std::string_view kRankPrefix = "rank_";
constexpr std::string_view kLocalPrefix = "local_";
constexpr std::string_view kCrossPrefix = "cross_";
constexpr std::string_view kProcessSetInfix = "_process_set_hash_";

GlooAnswer refuse_gloo(int status, std::string why) { return {status, std::move(why)}; }

bool is_gloo_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxGlooName &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '/'; });
}

/// A number as the clients write it: decimal, without sign and leading zeros.
std::optional<int> rank_number(std::string_view text) {
  int number = 0;
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0 || (text.front() == '0' && text.size() > 1))
    return std::nullopt;
  return number;
}

/// The rank to which the keys "R" and "rank_R" belong.
std::optional<int> rank_of_key(std::string_view key) {
  return rank_number(key.starts_with(kRankPrefix) ? key.substr(kRankPrefix.size()) : key);
}

bool is_hexadecimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

}  // namespace

GlooShape gloo_shape(const std::vector<RankPlacement>& ranks, const std::vector<std::string>& hostnames) {
  GlooShape shape;
  shape.size = static_cast<int>(std::ssize(ranks));
  for (const RankPlacement& rank : ranks) {
    shape.local_sizes[hostnames[rank.node]] = rank.local_size;
    if (std::ssize(shape.cross_sizes) <= rank.local_rank) shape.cross_sizes.resize(rank.local_rank + 1);
    shape.cross_sizes[rank.local_rank] = rank.cross_size;
  }
  return shape;
}

tl::expected<GlooRequest, GlooAnswer> read_gloo_request(std::string_view method, std::string_view path,
                                                        std::string body) {
  GlooRequest request;
  if (method == "GET") {
    request.method = GlooMethod::kGet;
  } else if (method == "PUT") {
    request.method = GlooMethod::kPut;
  } else if (method == "DELETE") {
    request.method = GlooMethod::kDelete;
  } else {
    return tl::unexpected(
        refuse_gloo(501, "the method must be GET, PUT or DELETE, as of Horovod's Gloo clients"));
  }
  const std::size_t middle = path.find('/', 1);
  if (!path.starts_with('/') || middle == std::string_view::npos ||
      !is_gloo_name(path.substr(1, middle - 1)) || !is_gloo_name(path.substr(middle + 1))) {
    return tl::unexpected(refuse_gloo(400, "the path must be /SCOPE/KEY, each of 1 to " +
                                               std::to_string(kMaxGlooName) +
                                               " printable characters without spaces"));
  }
  request.scope = path.substr(1, middle - 1);
  request.key = path.substr(middle + 1);
  if (request.method == GlooMethod::kPut) request.body = std::move(body);
  return request;
}

GlooStore::GlooStore(GlooShape shape, const GlooLimits& limits) : shape_(std::move(shape)), limits_(limits) {}

GlooAnswer GlooStore::apply(const GlooRequest& request) {
  if (!is_gloo_name(request.scope) || !is_gloo_name(request.key))
    return refuse_gloo(400, "a scope or key is empty, too long, or has characters that cannot be in a path");
  switch (request.method) {
    case GlooMethod::kGet: return get(request);
    case GlooMethod::kPut: return put(request);
    case GlooMethod::kDelete: remove(request); return {};
  }
  return refuse_gloo(501, "unknown method");
}

std::optional<GlooStore::Context> GlooStore::context_of(std::string_view scope) const {
  // The last one: a host may have any name.
  const std::size_t infix = scope.rfind(kProcessSetInfix);
  const bool is_whole =
      infix == std::string_view::npos || !is_hexadecimal(scope.substr(infix + kProcessSetInfix.size()));
  const auto ranks = ranks_of(is_whole ? scope : scope.substr(0, infix));
  if (!ranks) return std::nullopt;
  return Context{is_whole ? *ranks : shape_.size, is_whole};
}

std::optional<int> GlooStore::ranks_of(std::string_view scope) const {
  if (scope == "global") return shape_.size;
  if (scope.starts_with(kLocalPrefix)) {
    const auto host = shape_.local_sizes.find(std::string(scope.substr(kLocalPrefix.size())));
    return host == shape_.local_sizes.end() ? std::nullopt : std::optional<int>(host->second);
  }
  if (!scope.starts_with(kCrossPrefix)) return std::nullopt;
  const auto local_rank = rank_number(scope.substr(kCrossPrefix.size()));
  if (!local_rank || *local_rank >= std::ssize(shape_.cross_sizes)) return std::nullopt;
  return shape_.cross_sizes[*local_rank];
}

GlooAnswer GlooStore::get(const GlooRequest& request) const {
  const auto scope = scopes_.find(request.scope);
  if (scope == scopes_.end()) return {404, {}};
  const auto value = scope->second.values.find(request.key);
  if (value == scope->second.values.end()) return {404, {}};
  return {200, value->second};
}

GlooAnswer GlooStore::put(const GlooRequest& request) {
  const auto context = context_of(request.scope);
  const auto rank = context ? rank_of_key(request.key) : std::nullopt;
  if (rank && *rank >= context->max_ranks) {
    return refuse_gloo(400, "there is no rank " + std::to_string(*rank) + " in " + request.scope +
                                ", which has " + std::to_string(context->max_ranks) +
                                "; check that HOROVOD_RANK and the like are those that ddlrun has set");
  }
  if (request.body.size() > limits_.value_bytes) {
    return refuse_gloo(413, "the value of /" + request.scope + "/" + request.key + " has " +
                                std::to_string(request.body.size()) + " bytes, and at most " +
                                std::to_string(limits_.value_bytes) + " are allowed");
  }
  // What is replaced is not subtracted: this is about orders of magnitude.
  const bool is_new_scope = !scopes_.contains(request.scope);
  if (keys_ >= limits_.keys || (is_new_scope && scopes_.size() >= limits_.keys) ||
      bytes_ + request.key.size() + request.body.size() > limits_.bytes) {
    return refuse_gloo(507, "the rendezvous store is full: it has " + std::to_string(keys_) + " keys and " +
                                std::to_string(bytes_) + " bytes; at most " + std::to_string(limits_.keys) +
                                " and " + std::to_string(limits_.bytes) + " are allowed");
  }
  Scope& scope = scopes_[request.scope];
  if (rank) {
    scope.leaving.erase(*rank);
    if (request.key.starts_with(kRankPrefix)) erase_value(scope, std::to_string(*rank));
  }
  erase_value(scope, request.key);
  scope.values.emplace(request.key, request.body);
  ++keys_;
  bytes_ += request.key.size() + request.body.size();
  return {};
}

void GlooStore::remove(const GlooRequest& request) {
  const auto found = scopes_.find(request.scope);
  if (found == scopes_.end()) return;
  Scope& scope = found->second;
  const auto context = context_of(request.scope);
  const auto rank = context ? rank_number(request.key) : std::nullopt;
  if (!rank) {
    erase_value(scope, request.key);
  } else if (!scope.leaving.empty()) {
    scope.leaving.erase(*rank);
  } else if (scope.values.contains(request.key)) {
    std::set<int> present;
    for (const auto& [key, value] : scope.values)
      if (const auto one = rank_number(key)) present.insert(*one);
    // Before the last rank has written, there has been no barrier: whatever this DELETE means, the others still need
    // the values.
    if (context->is_whole && std::ssize(present) < context->max_ranks) return;
    present.erase(*rank);
    erase_all_values(scope);
    scope.leaving = std::move(present);
  }
  forget_if_empty(request.scope);
}

void GlooStore::erase_value(Scope& scope, std::string_view key) {
  const auto value = scope.values.find(key);
  if (value == scope.values.end()) return;
  --keys_;
  bytes_ -= value->first.size() + value->second.size();
  scope.values.erase(value);
}

void GlooStore::erase_all_values(Scope& scope) {
  while (!scope.values.empty()) erase_value(scope, scope.values.begin()->first);
}

void GlooStore::forget_if_empty(const std::string& scope) {
  const auto found = scopes_.find(scope);
  if (found != scopes_.end() && found->second.values.empty() && found->second.leaving.empty())
    scopes_.erase(found);
}

}  // namespace ddl::launcher

#include "runtime/src/named/frame.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "net/cbor_shape.h"

namespace ddl::runtime {
namespace {

using Json = nlohmann::json;

/// Bytes of the frames of all ranks together.
constexpr std::uint64_t kMaxFrames = std::uint64_t{1} << 30;

/// Calls it with each item of an announcement, in the order in which they travel.
template <class Announced, class Visit>
void for_each_item(Announced& announced, Visit visit) {
  auto& terms = announced.terms;
  auto& call = terms.call;
  const auto visit_all = [&visit](auto&... items) { (visit(items), ...); };
  visit_all(announced.name, call.kind, call.op, call.dtype, call.root, call.prescale, call.postscale,
            call.count, terms.counts, terms.shape, terms.priority, terms.group, terms.group_size,
            terms.zeros_if_joined, terms.fails_if_joined, call.memory, announced.send_counts,
            announced.follows_completion);
}
constexpr std::size_t kItems = 18;

Json json_of(const Announcement& announced) {
  // An array, as a frame is read by the library that has written it.
  Json array = Json::array();
  for_each_item(announced, [&array](const auto& item) { array.push_back(item); });
  return array;
}

/// The deepest items of a frame are the numbers in the lists of an announcement.
constexpr int kDepth = 4;

/// Accepts arrays up to that depth, and no maps.
class ShapeCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return false; }
  bool key(std::string&) override { return false; }
  bool end_object() override { return false; }
  bool start_array(std::size_t) override { return ++depth_ <= kDepth; }
  bool end_array() override { return depth_-- > 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
};

/// Of the next items of an array. The library would convert between types of numbers, whatever their values.
class Items {
 public:
  /// An error unless it is an array with this number of items.
  Items(const Json& array, std::size_t size) : array_(array) {
    require(array.is_array() && array.size() == size);
  }

  template <class T>
  void read(T& value) {
    read(next(), value);
  }
  /// The next item, of any type.
  const Json& next() { return array_.at(at_++); }
  bool is_valid() const { return is_valid_; }

 private:
  void require(bool condition) { is_valid_ = is_valid_ && condition; }

  template <class T>
  void read(const Json& json, T& value) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) {
      json.get_to(value);
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number{};
      read(json, number);
      value = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, double>) {
      require(json.is_number_float());
      json.get_to(value);
    } else {
      // The library would convert a float, also one that no integer can hold.
      require(json.is_number_integer());
      if (!json.is_number_integer()) return;
      if (json.is_number_unsigned()) {
        require(std::in_range<T>(json.get<std::uint64_t>()));
      } else {
        require(std::in_range<T>(json.get<std::int64_t>()));
      }
      json.get_to(value);
    }
  }
  void read(const Json& json, std::vector<std::uint64_t>& values) {
    require(json.is_array());
    for (const Json& number : json) read(number, values.emplace_back());
  }

  const Json& array_;
  std::size_t at_ = 0;
  bool is_valid_ = true;
};

/// Whether the items are an announcement. May throw Json::exception.
bool read_announcement(const Json& json, Announcement& announced) {
  Items items(json, kItems);
  for_each_item(announced, [&items](auto& item) { items.read(item); });
  return items.is_valid();
}

/// Whether its terms are such as a rank of the process set may announce.
bool is_valid(const Announcement& announced, std::size_t ranks) {
  const TensorTerms& terms = announced.terms;
  const Call& call = terms.call;
  switch (call.kind) {
    case CallKind::kAllreduce:
    case CallKind::kReduceScatter:
    case CallKind::kBroadcast:
    case CallKind::kAllgather:
    case CallKind::kAllgatherv:
    case CallKind::kAlltoallv: break;
    default: return false;
  }
  const auto has_size = [](const auto& list, std::size_t size) { return list.size() == size; };
  return !announced.name.empty() && call.memory <= Memory::kDevice && element_size(call.dtype) != 0 &&
         op_name_or_null(call.op) != nullptr && (!has_op(call.kind) || op_applies(call.op, call.dtype)) &&
         (call.op != DDL_ADASUM || call.kind == CallKind::kAllreduce) && call.root >= 0 &&
         static_cast<std::size_t>(call.root) < ranks &&
         has_size(terms.counts, call.kind == CallKind::kReduceScatter ? ranks : 0) &&
         has_size(announced.send_counts, call.kind == CallKind::kAlltoallv ? ranks : 0);
}

}  // namespace

std::vector<std::uint8_t> Frame::to_bytes() const {
  Json list = Json::array();
  for (const Announcement& announced : announcements) list.push_back(json_of(announced));
  return Json::to_cbor(Json::array({std::move(list), has_joined, steps, fusion_bytes}));
}

Result<Frame> Frame::parse(std::span<const std::uint8_t> bytes, int ranks) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto shape = net::check_cbor_shape(text, net::CborNumbers::kAny); !shape)
    return fail(ErrorCode::kProtocol, "a frame of named tensors: " + shape.error().message());
  Frame frame;
  bool is_frame = false;
  try {
    ShapeCheck check;
    if (Json::sax_parse(bytes.begin(), bytes.end(), &check, Json::input_format_t::cbor)) {
      const Json json = Json::from_cbor(bytes.begin(), bytes.end());
      Items items(json, 4);
      const Json& list = items.next();
      for (const Json& announced : list) {
        if (!read_announcement(announced, frame.announcements.emplace_back()))
          return fail(ErrorCode::kProtocol, "a frame of named tensors has an announcement that is invalid");
      }
      items.read(frame.has_joined);
      items.read(frame.steps);
      items.read(frame.fusion_bytes);
      is_frame = items.is_valid() && list.is_array();
    }
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kProtocol, std::string("a frame of named tensors: ") + error.what());
  }
  if (!is_frame) return fail(ErrorCode::kProtocol, "a frame of named tensors is invalid");
  for (const Announcement& announced : frame.announcements) {
    if (!is_valid(announced, static_cast<std::size_t>(ranks)))
      return fail(ErrorCode::kProtocol,
                  "a frame of named tensors has an invalid tensor \"" + announced.name + "\"");
  }
  return frame;
}

tl::expected<std::vector<Frame>, Failure> exchange_frames(CollectiveBackend& backend, const Frame& own,
                                                          int ranks, double timeout_seconds) {
  const std::vector<std::uint8_t> bytes = own.to_bytes();
  const std::uint64_t length = bytes.size();
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(ranks));
  Request numbers;
  numbers.call = make_call(CallKind::kAllgather, 1, DDL_UINT64);
  numbers.element_size = sizeof length;
  numbers.send = reinterpret_cast<const std::byte*>(&length);
  numbers.recv = reinterpret_cast<std::byte*>(lengths.data());
  DDL_TRY(backend.run(numbers, CallDeadline::after(timeout_seconds)));
  const std::uint64_t total = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  // All ranks see the same lengths, so all fail alike.
  if (total > kMaxFrames)
    return fail(DDL_ERROR_INTERNAL,
                "the ranks announce named tensors in " + std::to_string(total) + " bytes");

  std::vector<std::uint8_t> all(total);
  Request texts;
  texts.call = make_call(CallKind::kAllgatherv, total, DDL_UINT8);
  texts.call.counts = digest_of(lengths) | 1;
  texts.counts = lengths;
  texts.send = reinterpret_cast<const std::byte*>(bytes.data());
  texts.recv = reinterpret_cast<std::byte*>(all.data());
  DDL_TRY(backend.run(texts, CallDeadline::after(timeout_seconds)));
  std::vector<Frame> frames;
  std::size_t at = 0;
  for (const std::uint64_t of_rank : lengths) {
    auto frame = Frame::parse(std::span(all).subspan(at, of_rank), ranks);
    if (!frame) return fail(DDL_ERROR_INTERNAL, frame.error().message());
    frames.push_back(*std::move(frame));
    at += of_rank;
  }
  return frames;
}

}  // namespace ddl::runtime

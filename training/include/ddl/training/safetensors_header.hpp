// The header of a safetensors file, which says what tensors are in it: https://github.com/huggingface/safetensors
//
//   8 bytes     the length of the header, little-endian
//   the header  JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...}; it begins with "{",
//               may end with blanks, and "__metadata__" in it has texts by name
//   the data    of all tensors, without holes and overlaps; row by row, little-endian. The offsets count from its start.
#ifndef DDL_TRAINING_SAFETENSORS_HEADER_HPP
#define DDL_TRAINING_SAFETENSORS_HEADER_HPP

#if !__has_include(<nlohmann/json.hpp>)
#error \
    "ddl/training/safetensors.hpp and checkpoint.hpp need nlohmann/json.hpp: Debian's package nlohmann-json3-dev"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ddl/error.hpp"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ddl/training/safetensors.hpp is for little-endian machines"
#endif

namespace ddl::training {

/// What a file of tensors says beside them: texts by name.
using Metadata = std::map<std::string, std::string>;

/// A tensor in a file.
struct TensorInfo {
  std::string name;
  ddl_dtype dtype = DDL_FLOAT32;
  std::vector<std::uint64_t> shape;  ///< {}: one element
  std::uint64_t begin = 0;           ///< bytes from the start of the data
  std::uint64_t end = 0;
};

namespace detail {

/// The largest header that the format allows.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct DtypeRow {
  const char* name;
  ddl_dtype dtype;
  std::uint64_t bytes;
};
/// The types that the format and libddl both have.
inline constexpr DtypeRow kDtypes[] = {
    {"F64", DDL_FLOAT64, 8},
    {"I64", DDL_INT64, 8},
    {"U64", DDL_UINT64, 8},
    {"F32", DDL_FLOAT32, 4},
    {"I32", DDL_INT32, 4},
    {"U32", DDL_UINT32, 4},
    {"F16", DDL_FLOAT16, 2},
    {"BF16", DDL_BFLOAT16, 2},
    {"I16", DDL_INT16, 2},
    {"U16", DDL_UINT16, 2},
    {"I8", DDL_INT8, 1},
    {"U8", DDL_UINT8, 1},
    {"BOOL", DDL_BOOL, 1},
    {"F8_E4M3", DDL_FLOAT8_E4M3FN, 1},
    {"F8_E5M2", DDL_FLOAT8_E5M2, 1},
};
inline const DtypeRow* dtype_row(const std::string& name) {
  const auto* const row = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                       [&](const DtypeRow& one) { return name == one.name; });
  return row == std::end(kDtypes) ? nullptr : row;
}
inline const DtypeRow* dtype_row(ddl_dtype dtype) {
  const auto* const row = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                       [&](const DtypeRow& one) { return dtype == one.dtype; });
  return row == std::end(kDtypes) ? nullptr : row;
}
/// "F32"; of a type that the format does not have, its number.
inline std::string dtype_name(ddl_dtype dtype) {
  const DtypeRow* const row = dtype_row(dtype);
  return row == nullptr ? "type " + std::to_string(dtype) : row->name;
}

/// A name as JSON, whatever bytes it has, for a message.
inline std::string shown(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  const std::string short_name = name.size() > kLongest ? name.substr(0, kLongest) + "..." : name;
  return nlohmann::json(short_name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// A name as JSON, for a file.
inline std::string as_json(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(DDL_ERROR_INVALID_ARGUMENT, "the name or text " + shown(text) + " is not UTF-8");
  }
}

[[noreturn]] inline void fail_in(const std::string& where, const std::string& sentence) {
  throw Error(DDL_ERROR_INVALID_ARGUMENT, where + ": " + sentence);
}

/// The elements of a shape, as long as they and their bytes can be counted; false if not.
inline bool count_elements(const std::vector<std::uint64_t>& shape, std::uint64_t element_bytes,
                           std::uint64_t& count) {
  // Without dimensions of 0, by which a product could come back into range.
  count = 1;
  bool is_empty = false;
  for (const std::uint64_t dimension : shape) {
    is_empty = is_empty || dimension == 0;
    if (dimension > 1 && count > std::numeric_limits<std::uint64_t>::max() / dimension) return false;
    if (dimension > 1) count *= dimension;
  }
  if (count > std::numeric_limits<std::uint64_t>::max() / element_bytes) return false;
  if (is_empty) count = 0;
  return true;
}
inline std::uint64_t elements_of(const TensorInfo& tensor) {
  return (tensor.end - tensor.begin) / dtype_row(tensor.dtype)->bytes;
}

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  ///< in the order of their data
  Metadata metadata;
};

/// Takes the header as nlohmann's parser reads it, without a tree of values, and stops at the first thing that does not
/// belong there. So what it needs is bounded by what it keeps.
class HeaderReader : public nlohmann::json::json_sax_t {
 public:
  SafetensorsHeader& header() { return header_; }
  const std::string& problem() const { return problem_; }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a number that is no integer of 64 bits");
  }
  bool binary(binary_t&) override { return unexpected("bytes"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      tensor_.shape.push_back(value);
      // More than NumPy and PyTorch can have; a bound, so that a header cannot make a list of millions.
      return tensor_.shape.size() <= kMaxDimensions || fail(of_tensor("has more than 64 dimensions"));
    }
    if (place_ != Place::kOffsets) return unexpected("a number");
    if (offsets_ == 2) return fail(of_tensor("has more than two data_offsets"));
    (offsets_ == 0 ? tensor_.begin : tensor_.end) = value;
    ++offsets_;
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(key_, std::move(value));
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return unexpected("a text");
    const DtypeRow* const row = dtype_row(value);
    if (row == nullptr)
      return fail(of_tensor("has the dtype " + shown(value) + ", which libddl does not have"));
    tensor_.dtype = row->dtype;
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && key_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kTensor;
      tensor_ = TensorInfo{};
      tensor_.name = key_;
      fields_.clear();
    } else {
      return unexpected("an object");
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kTensor) {
      for (const char* const field : {"dtype", "shape", "data_offsets"}) {
        if (fields_.count(field) == 0) return fail(of_tensor(std::string("has no ") + field));
      }
      header_.tensors.push_back(std::move(tensor_));
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    if (place_ == Place::kTop)
      return names_.insert(key_).second || fail("the name " + shown(key_) + " is there twice");
    if (place_ == Place::kMetadata)
      return header_.metadata.count(key_) == 0 || fail("the metadata " + shown(key_) + " are there twice");
    if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      return fail(of_tensor("has the unknown field " + shown(key_)));
    return fields_.insert(key_).second || fail(of_tensor("has two fields " + shown(key_)));
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") return unexpected("a list");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_ != 2) return fail(of_tensor("has less than two data_offsets"));
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail("the header is not valid JSON at its byte " + std::to_string(position));
  }

 private:
  enum class Place : std::uint8_t { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };
  static constexpr std::size_t kMaxDimensions = 64;

  bool fail(std::string sentence) {
    problem_ = std::move(sentence);
    return false;
  }
  std::string of_tensor(const std::string& what) const {
    return "tensor " + shown(tensor_.name) + " " + what;
  }
  bool unexpected(const char* what) {
    const std::string has = std::string("has ") + what;
    switch (place_) {
      case Place::kMetadata: return fail("the metadata " + shown(key_) + " are " + what + ", not a text");
      case Place::kTensor: return fail(of_tensor(has + " as its " + key_));
      case Place::kShape: return fail(of_tensor(has + " in its shape"));
      case Place::kOffsets: return fail(of_tensor(has + " in its data_offsets"));
      case Place::kTop: return fail(shown(key_) + " is " + what + ", not an object");
      default: return fail(std::string("the header is ") + what + ", not an object");
    }
  }

  SafetensorsHeader header_;
  std::string problem_;
  Place place_ = Place::kStart;
  std::string key_;
  std::set<std::string> names_;
  TensorInfo tensor_;
  std::set<std::string> fields_;
  int offsets_ = 0;
};

/// text: the header, of length bytes; data_bytes: how many the file has behind it. where: begins messages.
inline SafetensorsHeader parse_header(const char* text, std::size_t length, std::uint64_t data_bytes,
                                      const std::string& where) {
  if (length == 0 || text[0] != '{')
    fail_in(where, "the header does not begin with {; this is no safetensors file");
  // nlohmann's parser takes it for the end.
  if (std::memchr(text, 0, length) != nullptr) fail_in(where, "the header has a byte 0");
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(text, text + length, &reader)) fail_in(where, reader.problem());
  SafetensorsHeader header = std::move(reader.header());
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  std::uint64_t next = 0;
  for (const TensorInfo& tensor : header.tensors) {
    const auto of_tensor = [&](const std::string& what) {
      return "tensor " + shown(tensor.name) + " " + what;
    };
    std::uint64_t count = 0;
    const std::uint64_t element_bytes = dtype_row(tensor.dtype)->bytes;
    if (tensor.end < tensor.begin) fail_in(where, of_tensor("ends before it begins"));
    if (!count_elements(tensor.shape, element_bytes, count))
      fail_in(where, of_tensor("has more bytes than 64 bits can count"));
    if (tensor.end - tensor.begin != count * element_bytes)
      fail_in(where, of_tensor("has a shape of " + std::to_string(count * element_bytes) + " bytes, but " +
                               std::to_string(tensor.end - tensor.begin) + " in its data_offsets"));
    if (tensor.begin < next) fail_in(where, of_tensor("overlaps the tensor before it"));
    if (tensor.begin > next)
      fail_in(where, "there is a hole of " + std::to_string(tensor.begin - next) + " bytes before " +
                         of_tensor("in the data"));
    next = tensor.end;
  }
  if (next > data_bytes)
    fail_in(where, "the file has lost its end: the tensors have " + std::to_string(next) + " bytes, and " +
                       std::to_string(data_bytes) + " are there");
  if (next < data_bytes)
    fail_in(where, std::to_string(data_bytes - next) + " bytes behind the last tensor belong to none");
  return header;
}

}  // namespace detail

}  // namespace ddl::training

#endif  // DDL_TRAINING_SAFETENSORS_HEADER_HPP
